#!/bin/sh
# Looks for bytes that make one of our readers crash, hang or take too much memory, with libFuzzer of the Swift toolchain:
#     scripts/fuzz.sh SECONDS [TARGET...]
# Each TARGET (default: all; see Tests/TestSupport/FuzzTargets.swift) runs for SECONDS. What is found is put below
# Tests/Finds/TARGET, where `make test` replays it. Ends with 1 when something was found.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:?how many seconds for each target?}
shift
all="bib jsonl notes settings manifest toml schema tar zip zstd xz gzip store hub vault"
export BACKUP_TOOL_FUZZ=1
swift build -c release --scratch-path .build/fuzz --product fuzz --sanitize address \
    -Xswiftc -enable-testing -Xswiftc -sanitize=fuzzer -Xswiftc -parse-as-library -Xlinker --allow-multiple-definition
binary=$(swift build -c release --scratch-path .build/fuzz --show-bin-path --sanitize address)/fuzz
failed=0
for target in ${*:-$all}; do
    corpus=.build/fuzz/corpus/$target
    mkdir -p "$corpus" "Tests/Finds/$target"
    echo "== $target, $seconds s"
    FUZZ_TARGET=$target FUZZ_SEEDS=$corpus ASAN_OPTIONS=detect_leaks=0 "$binary" "$corpus" \
        -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -max_len=65536 -print_final_stats=1 \
        -artifact_prefix="Tests/Finds/$target/" > ".build/fuzz/$target.log" 2>&1 || failed=1
    # A target that is slow, or whose coverage does not grow beyond that of its seeds, reaches nothing.
    awk '/ cov: / { for (i = 1; i < NF; i++) if ($i == "cov:") { if (!first) first = $(i + 1); last = $(i + 1) } }
        /average_exec_per_sec/ { rate = $2 } /number_of_executed/ { runs = $2 }
        END { print runs + 0, "runs,", rate + 0, "a second, coverage", first + 0, "to", last + 0 }' ".build/fuzz/$target.log"
    grep -E 'SUMMARY|ERROR|not an error of ours|Test unit written' ".build/fuzz/$target.log" || true
    rmdir "Tests/Finds/$target" 2> /dev/null || true
done
rm -rf /dev/shm/backup-tool-fuzz-*
exit $failed
