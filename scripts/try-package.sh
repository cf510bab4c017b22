#!/bin/sh
# Installs a Debian package in a new root that has nothing else, uses it, and removes it. Needs root.
#   scripts/try-package.sh FILE.deb
set -eu
package=$(readlink -f "${1:?usage: scripts/try-package.sh FILE.deb}")
. /etc/os-release
work=$(mktemp -d)
trap 'umount "$work/root/proc" 2>/dev/null || true; rm -rf "$work"' EXIT
root=$work/root
echo "Making a clean root of Debian $VERSION_CODENAME" >&2
needed=$(dpkg-deb -f "$package" Depends | sed 's/([^)]*)//g; s/ //g')
mmdebstrap --quiet --variant=minbase --include="$needed" "$VERSION_CODENAME" "$root" >/dev/null
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive "$@"; }
mount -t proc proc "$root/proc"
cp "$package" "$root/package.deb"
cp -r samples "$root/samples"
inside dpkg -i /package.deb >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
inside sh -eu <<'INSIDE'
cd /tmp
backup-tool --version
# 3: two of the sample's PDFs are missing on purpose, and a conflict waits.
backup-tool -q import --create --store s.db /samples 2>/dev/null || test $? = 3
backup-tool -q export --store s.db -o e.tar.zst
backup-tool -q verify e.tar.zst --level deep
backup-tool -q restore e.tar.zst --create --store t.db 2>/dev/null || test $? = 3
test "$(backup-tool store digest --store s.db)" = "$(backup-tool store digest --store t.db)"
mkdir -p /etc/backup-tool
gzip -t /usr/share/man/man1/backup-tool.1.gz
INSIDE
inside dpkg --purge backup-tool >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
if (cd "$root" && find usr -path '*backup-tool*') | grep .; then
    echo "These files were left behind." >&2
    exit 1
fi
echo "Installed, used and removed." >&2
