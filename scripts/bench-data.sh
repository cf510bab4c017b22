#!/bin/sh
# Gathers the data of the benchmarks: real PDFs and .bib files from Debian's TeX documentation. The packages are
# downloaded and unpacked, not installed.
#
#   scripts/bench-data.sh DIR      DIR/pdfs  5,000 PDFs (1.4 GB)      DIR/bib  270 .bib files      DIR/all.bib  all of them
set -eu
target=${1:?usage: scripts/bench-data.sh DIR}
packages="texlive-latex-extra-doc texlive-pictures-doc texlive-latex-recommended-doc texlive-science-doc
texlive-publishers-doc texlive-bibtex-extra"
pdf_count=5000
bib_count=270

[ -e "$target/complete" ] && exit 0
command -v apt-get >/dev/null || {
    echo "The data comes from Debian packages; there is no apt-get here to download:" $packages >&2
    exit 1
}
mkdir -p "$target"
target=$(cd "$target" && pwd)
work=$target/unpacking
rm -rf "$work"
mkdir -p "$work/deb" "$work/root"
trap 'rm -rf "$work"' EXIT

echo "Downloading" $packages "(about 1.5 GB, once)" >&2
cd "$work/deb"
for package in $packages; do
    apt-get download -q "$package" >"$work/log" 2>&1 || {
        cat "$work/log" >&2
        exit 1
    }
    dpkg-deb -x "$package"_*.deb "$work/root"
    rm -f "$package"_*.deb
done

# The first so many in the order of their names: the same on every machine that has the same packages. Hard links, so
# that the memory file system holds them once.
cd "$work/root"
keep() { # suffix count folder
    rm -rf "$target/$3"
    mkdir "$target/$3"
    find . -type f -name "*$1" -printf '%P\n' | LC_ALL=C sort | head -n "$2" | tr '\n' '\0' |
        xargs -0 cp --link --parents -t "$target/$3"
}
keep .pdf "$pdf_count" pdfs
keep .bib "$bib_count" bib

cd "$target"
find bib -type f | LC_ALL=C sort | while read -r file; do
    cat "$file"
    echo
done >all.bib
: >complete
