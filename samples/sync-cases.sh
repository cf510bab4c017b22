#!/usr/bin/env bash
# The cases of syncing, to watch: three devices A, B and C, and a hub in a file.
# Each says what happens and checks it. BACKUP_TOOL names the tool; nothing is left behind.
set -euo pipefail

tool=${BACKUP_TOOL:-backup-tool}
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT && cd "$folder"
export BACKUP_TOOL_HUB=hub.db
unset BACKUP_TOOL_STORE BACKUP_TOOL_USER

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
run() { printf '  $ backup-tool %s\n' "$*" && "$tool" "$@" | sed 's/^/    /'; }
sync() { for device in "$@"; do run sync -q --store "$device.db"; done; }
shows() { "$tool" store changes --store "$1.db" | grep -c '^changed .*diary-1' || true; }

# expect DEVICE there|gone
expect() {
    local found
    found=$([ "$(shows "$1")" -gt 0 ] && echo there || echo gone)
    if [ "$found" != "$2" ]; then
        echo "  ✗ on $1 the record is $found, and should be $2"
        exit 1
    fi
    echo "  ✓ $1: $2"
}

# says DEVICE TEXT
says() {
    local note
    note=$(sqlite3 "$1.db" "SELECT fields ->> 'note' FROM records WHERE local_id = 'diary-1' AND NOT deleted")
    if [ "$note" != "$2" ]; then
        echo "  ✗ $1 says '$note', and should say '$2'"
        exit 1
    fi
    echo "  ✓ $1: '$2'"
}

# Three new devices that all have the record, and a new hub.
begin() {
    rm -rf ./*.db ./*.db.assets ./*.db-*
    "$tool" hub init -q hub.db
    for device in A B C; do "$tool" store init -q --store "$device.db"; done
    printf '%s\n' '{"id":"diary-1","time":"2026-02-14T15:00:00+01:00","type":"medicatie","note":"vaccinated"}' \
        >2026-02-14.jsonl
    "$tool" import -q --store A.db 2026-02-14.jsonl
    for device in A B C; do "$tool" sync -q --store "$device.db"; done
}

say '1. Deleted on A: the hub has a tombstone, and nothing of the record'
begin
run store delete --store A.db diary-1
sync A
grep -q vaccinated hub.db && echo '  ✗ the hub still has data' && exit 1
expect A gone

say '2. Then B syncs: gone on B'
sync B
expect B gone

say '3. C was away for three weeks: gone on C, and it comes back nowhere'
sync C A B C
for device in A B C; do expect "$device" gone; done

say '4. Kept on A only: A keeps it, B and C lose it'
begin
run store set-local --store A.db diary-1
sync A B C
expect A there
expect B gone
expect C gone

say '5. Given back by A: B and C have it again'
run store enable-cloud --store A.db diary-1
sync A B C
for device in A B C; do expect "$device" there; done

say '6. Kept on A only, and deleted on B meanwhile: A keeps it'
begin
run store set-local --store A.db diary-1
run store delete --store B.db diary-1
sync B A C A
expect A there
expect B gone
expect C gone

say '7. Kept on A only, and edited on B meanwhile: the copy on A stays as it is, the edit is not lost'
begin
run store set-local --store A.db diary-1
now=$(date -u +%Y-%m-%dT%H:%M:%S.%3NZ)
printf '{"id":"diary-1","time":"2026-02-14T15:00:00+01:00","type":"medicatie","note":"second dose","modified_at":"%s"}\n' \
    "$now" >2026-02-14.jsonl
run import -q --store B.db 2026-02-14.jsonl
sync B A C
for device in A B C; do expect "$device" there; done
says A vaccinated
says B 'second dose'
says C 'second dose'

say '8. Kept on A and on C, each for itself: both keep it, B loses it'
begin
run store set-local --store A.db diary-1
run store set-local --store C.db diary-1
sync A C B A
expect A there
expect C there
expect B gone

say 'All is as it should be.'
