#!/bin/sh
# Makes a package of the release build, in .build/packages: the same bytes from the same commit.
#
#   scripts/package.sh deb     a Debian package
#   scripts/package.sh dist    a tarball with an install.sh, for other systems
set -eu
cd "$(dirname "$0")/.."
umask 022
form=${1:?"usage: scripts/package.sh deb|dist"}
binary=.build/release/backup-tool
packages=.build/packages
version=$("$binary" --version | awk '{ print $2; exit }')
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH LC_ALL=C

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$packages"

# What both packages hold, below a prefix.
stage() {
    install -D -m 755 "$binary" "$1/bin/backup-tool"
    strip --strip-all --remove-section=.comment "$1/bin/backup-tool"
    mkdir -p "$1/share/man/man1" "$1/share/bash-completion/completions" "$1/share/zsh/vendor-completions" \
        "$1/share/fish/vendor_completions.d" "$1/share/doc/backup-tool/examples"
    "$binary" -q man --all "$1/share/man/man1"
    gzip -9n "$1"/share/man/man1/*.1
    "$binary" completions bash >"$1/share/bash-completion/completions/backup-tool"
    "$binary" completions zsh >"$1/share/zsh/vendor-completions/_backup-tool"
    "$binary" completions fish >"$1/share/fish/vendor_completions.d/backup-tool.fish"
    install -m 644 packaging/config.toml "$1/share/doc/backup-tool/examples/config.toml"
    install -m 644 packaging/copyright "$1/share/doc/backup-tool/copyright"
}

# The libraries that the binary is linked with, as dpkg knows them.
dependencies() {
    mkdir -p "$work/shlibs/debian"
    printf 'Source: backup-tool\n\nPackage: backup-tool\nArchitecture: any\n' >"$work/shlibs/debian/control"
    (cd "$work/shlibs" && dpkg-shlibdeps -O "$1" 2>/dev/null) | sed -n 's/^shlibs:Depends=//p'
}

deb() {
    root=$work/root
    stage "$root/usr"
    install -D -m 644 -t "$root/usr/lib/systemd/system" "packaging/backup-tool@.service" "packaging/backup-tool@.timer"
    printf 'backup-tool (%s) unstable; urgency=medium\n\n  * See %s\n\n -- %s  %s\n' "$version" \
        "/usr/share/doc/backup-tool/changelog.gz for what changed." "the backup-tool authors <maintainers@backup-tool.example>" \
        "$(date -u -R -d "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$root/usr/share/doc/backup-tool/changelog.Debian.gz"
    gzip -9nc CHANGELOG.md >"$root/usr/share/doc/backup-tool/changelog.gz"
    mkdir "$root/DEBIAN"
    (cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
    cat >"$root/DEBIAN/control" <<CONTROL
Package: backup-tool
Version: $version
Architecture: $(dpkg --print-architecture)
Maintainer: the backup-tool authors <maintainers@backup-tool.example>
Installed-Size: $(du -k -s "$root/usr" | cut -f 1)
Depends: $(dependencies "$root/usr/bin/backup-tool")
Recommends: libcurl4 | libcurl4t64
Suggests: restic
Section: utils
Priority: optional
Description: back up, export, verify and restore libraries and event logs
 backup-tool keeps publications, notes, events and their files in a local store
 that syncs, exports all of it into files that other programs read, proves that
 an export is whole, and restores all of it or one thing without overwriting
 what is newer. Nightly backups go into an encrypted repository that restic
 reads as well.
CONTROL
    find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
    file=$packages/backup-tool_${version}_$(dpkg --print-architecture).deb
    dpkg-deb -Zxz --root-owner-group --build "$root" "$file" >/dev/null
    echo "$file"
}

dist() {
    name=backup-tool-$version-linux-$(uname -m)
    stage "$work/$name/root"
    mkdir -p "$work/$name/root/share/zsh/site-functions"
    mv "$work/$name/root/share/zsh/vendor-completions/_backup-tool" "$work/$name/root/share/zsh/site-functions"
    rmdir "$work/$name/root/share/zsh/vendor-completions"
    install -m 755 packaging/install.sh "$work/$name/install.sh"
    install -m 644 README.md LICENSE "$work/$name"
    (cd "$work/$name" && find . -type f ! -name SHA256SUMS | sort | xargs sha256sum) >"$work/SHA256SUMS"
    mv "$work/SHA256SUMS" "$work/$name"
    file=$packages/$name.tar.zst
    tar -C "$work" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -cf - "$name" |
        zstd -q -f -19 -T1 -o "$file"
    echo "$file"
}

case $form in
deb) deb ;;
dist) dist ;;
*)
    echo "usage: scripts/package.sh deb|dist" >&2
    exit 64
    ;;
esac
