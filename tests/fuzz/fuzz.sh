#!/bin/sh
# fuzz.sh PROGRAM SECONDS TARGET...: a longer search from the committed corpus. Exit status 1 if a target was broken.
program=$1 seconds=$2 status=0
shift 2
for target in "$@"; do
    case $target in check | report | convert | recover) corpus=trace ;; *) corpus=$target ;; esac
    mkdir -p "build/fuzz/$target"
    FUZZ=$target ASAN_OPTIONS=detect_leaks=0 "$program" -close_fd_mask=3 -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -max_len=65536 -print_final_stats=1 \
        -artifact_prefix="build/fuzz/$target-" "build/fuzz/$target" "tests/fuzz/corpus/$corpus" > "build/fuzz/$target.log" 2>&1 || status=1
    tail -n 12 "build/fuzz/$target.log" | grep -E 'DONE|SUMMARY|executed' | sed "s/^/$target: /"
done
exit $status
