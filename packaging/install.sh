#!/bin/sh
# Installs what lies beside this script below PREFIX (default: /usr/local).
#   [PREFIX=DIR] ./install.sh
set -eu
cd "$(dirname "$0")"
prefix=${PREFIX:-/usr/local}
sha256sum --quiet -c SHA256SUMS
for file in $(cd root && find . -type f | cut -c3-); do
    mode=644
    [ "${file#bin/}" = "$file" ] || mode=755
    install -D -m "$mode" "root/$file" "$prefix/$file"
done
echo "Installed below $prefix. '$prefix/bin/backup-tool help' lists the commands."
