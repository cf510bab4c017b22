#!/bin/sh
# Makes the machine ready to build, test or measure: installs the Debian packages that are missing, and nothing else.
# Says nothing when all is there.
#
#   scripts/setup.sh [build|test|bench|package]
set -eu
cd "$(dirname "$0")/.."
purpose=${1:-build}

build_packages="libarchive-dev libsqlite3-dev libssl-dev libzstd-dev zlib1g-dev liblzma-dev libsimdjson-dev libcurl4-openssl-dev pkg-config"
# The tests let others read what we write, and read what others wrote.
test_packages="restic sqlite3 zstd xz-utils zip unzip libarchive-tools jq python3 strace groff-base bash zsh fish cron"
# The peers of the benchmarks. Their data comes through scripts/bench-data.sh and is not installed.
bench_packages="zstd libarchive-tools unzip bibtool restic borgbackup python3 python3-venv"
package_packages="binutils dpkg-dev lintian mmdebstrap zstd"

case $purpose in
build) packages=$build_packages ;;
test) packages="$build_packages $test_packages" ;;
bench) packages="$build_packages $bench_packages" ;;
package) packages="$build_packages $package_packages" ;;
*)
    echo "usage: scripts/setup.sh [build|test|bench|package]" >&2
    exit 64
    ;;
esac

complain() {
    printf '%s\n' "$@" >&2
    exit 1
}

check_swift() {
    command -v swift >/dev/null || complain \
        "backup-tool is built with Swift 6, and there is no 'swift' on the PATH." \
        "Get a toolchain from https://www.swift.org/install/linux/ and try again."
    version=$(swift --version 2>/dev/null | sed -n 's/.*Swift version \([0-9][0-9]*\.[0-9][0-9]*\).*/\1/p' | head -n 1)
    case $version in
    "") complain "'swift --version' does not say which version it is; Swift 6.0 or later is needed." ;;
    [0-5].*) complain "This is Swift $version; backup-tool needs Swift 6.0 or later: https://www.swift.org/install/linux/" ;;
    esac
}

is_installed() {
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# Without dpkg nobody can say what is installed under which name; what the build itself needs can be asked for.
check_without_apt() {
    missing=
    for module in libarchive sqlite3 libcrypto libzstd zlib liblzma simdjson libcurl; do
        pkg-config --exists "$module" 2>/dev/null || missing="$missing $module"
    done
    [ -z "$missing" ] && [ "$purpose" = build ] && return
    complain "This system has no apt, so please install by hand what these Debian packages contain:" \
        "$(printf '  %s\n' $packages)" \
        "Libraries that pkg-config does not find:${missing:- none}"
}

install_missing() {
    missing=
    for package in $packages; do
        is_installed "$package" || missing="$missing $package"
    done
    [ -n "$missing" ] || return 0
    as_root=
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || complain "Please install as root:" "  apt-get install$missing"
        as_root=sudo
    fi
    echo "Installing:$missing" >&2
    log=$(mktemp)
    # The lists may be old or absent; they are only fetched again when the first try fails.
    # shellcheck disable=SC2086 # one word each is what is wanted
    for attempt in 1 2; do
        if $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing \
            </dev/null >"$log" 2>&1; then
            rm -f "$log"
            return 0
        fi
        [ "$attempt" = 2 ] || $as_root apt-get update </dev/null >/dev/null 2>&1 || true
    done
    cat "$log" >&2
    rm -f "$log"
    complain "Could not install:$missing"
}

check_swift
if command -v apt-get >/dev/null && command -v dpkg-query >/dev/null; then
    install_missing
else
    check_without_apt
fi

# Peers of the benchmarks that Debian does not have stay out of the system's Python.
venv=.build/bench-venv
if [ "$purpose" = bench ] && ! "$venv/bin/python" -c 'import bibtexparser, duckdb, sqlite_utils' 2>/dev/null; then
    echo "Installing: bibtexparser 2, duckdb, sqlite-utils (below $venv)" >&2
    mkdir -p .build
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --pre 'bibtexparser>=2.0.0b1' </dev/null
    "$venv/bin/pip" install --quiet --disable-pip-version-check duckdb sqlite-utils </dev/null
fi
