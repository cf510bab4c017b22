#!/usr/bin/env bash
# The round trip in one minute: import the sample library, export it, prove the export, restore it into a second store,
# and see that both stores hold the same. Everything happens in a temporary folder.
#
#   BACKUP_TOOL=path/to/backup-tool scripts/demo.sh
set -euo pipefail
cd "$(dirname "$0")/.."
tool=$(realpath "${BACKUP_TOOL:-.build/release/backup-tool}")
samples=$PWD/samples
work=$(mktemp -d "${TMPDIR:-/tmp}/backup-tool-demo.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
# A short name for the commands below, and nothing of the user's own settings.
cp -Rp "$samples" samples
export XDG_CONFIG_HOME=$work/config XDG_DATA_HOME=$work/data
export BACKUP_TOOL_STORE=first.db

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'; else bold='' dim='' plain=''; fi

say() { printf '\n%s%s%s\n' "$bold" "$1" "$plain"; }

# run EXPECTED-EXIT-CODE ARGUMENTS…: shows the command, runs it, and insists on how it ends.
run() {
    local expected=$1 code=0
    shift
    printf '%s$ backup-tool' "$dim"
    printf ' %s' "$@"
    printf '%s\n' "$plain"
    "$tool" "$@" || code=$?
    if [ "$code" -ne "$expected" ]; then
        echo "demo: this should have ended with exit code $expected, and ended with $code" >&2
        exit 1
    fi
}

say "1. Make a store, and import a small library and a week of events"
printf '%s$ export BACKUP_TOOL_STORE=first.db%s\n' "$dim" "$plain"
run 0 store init
# Exit code 3: done, and something needs attention. One attachment in samples/ belongs to nobody and one cite key is
# there twice; neither may go unnoticed.
run 3 import samples --attachments samples/library/Attachments
run 0 store info

say "2. Export everything into one file, and prove it"
run 0 export -o library.tar.zst
run 0 verify library.tar.zst --level deep

say "3. Restore it into a second, empty store"
# Settings are restored only when they are asked for, and the two works of one cite key wait here, too.
run 3 restore library.tar.zst --create --store second.db

say "4. Both stores hold the same, to the last field"
first=$("$tool" store digest)
second=$("$tool" store digest --store second.db)
echo "first.db   $first"
echo "second.db  $second"
if [ "$first" != "$second" ]; then
    echo "demo: the digests differ" >&2
    exit 1
fi

say "5. The archive needs no backup-tool"
printf '%s$ tar --zstd -xOf library.tar.zst README.txt | head -n 5%s\n' "$dim" "$plain"
# head hangs up early; that is not tar's failure.
{ tar --zstd -xOf library.tar.zst README.txt 2>/dev/null || true; } | head -n 5

say "What next?"
cat <<'END'
Install it with `make build && sudo make install` (or call it by its path,
.build/release/backup-tool), and then:

  backup-tool store init
  backup-tool import YOUR.bib --attachments YOUR-PDFS
  backup-tool export -o my-library.tar.zst
  backup-tool verify my-library.tar.zst
  backup-tool help

README.md shows the everyday commands.
END
