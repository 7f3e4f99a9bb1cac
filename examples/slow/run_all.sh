#!/bin/bash
# Runs each program slow and mended: three times alone, then once traced. One process at a time.
# Usage: SHIM=libcustream_shim.so OUT=folder run_all.sh [NAME...]; RUNS, PY and PART=alone|traced|all are optional.
# Writes $OUT/times.txt (alone), $OUT/traced.txt, $OUT/errors.txt, $OUT/NAME.json.gz and $OUT/NAME.mended.json.gz.
set -u
here=$(cd "$(dirname "$0")" && pwd)
: "${OUT:?set OUT to a folder}"
PART=${PART:-all} RUNS=${RUNS:-3} PY=${PY:-python3}
[ "$PART" = alone ] || : "${SHIM:?set SHIM to the path of libcustream_shim.so}"
mkdir -p "$OUT"
: >>"$OUT/errors.txt"
names=("$@")
if [ ${#names[@]} = 0 ]; then
    for file in "$here"/*.py; do names+=("$(basename "$file" .py)"); done
fi

# once LABEL RESULTS NAME FORM [VARIABLE=VALUE...]: one run; its JSON line into RESULTS, a failure into errors.txt
once() {
    local label=$1 results=$2 name=$3 form=$4 rc=0 log
    shift 4
    log=$(mktemp)
    # shellcheck disable=SC2086
    timeout -k 5 40 env "$@" "$PY" "$here/$name.py" $form >"$log.out" 2>"$log" || rc=$?
    grep -h '^{"name"' "$log.out" >>"$results" || [ $rc != 0 ] || rc=no-json
    if [ "$rc" != 0 ]; then
        echo "== $label $name ${form:-slow}: rc $rc" >>"$OUT/errors.txt"
        tail -n 25 "$log" >>"$OUT/errors.txt"
    fi
    rm -f "$log" "$log.out"
}

if [ "$PART" != traced ]; then
    for name in "${names[@]}"; do
        for _ in $(seq "$RUNS"); do
            for form in "" mended; do once alone "$OUT/times.txt" "$name" "$form"; done
        done
    done
fi
if [ "$PART" != alone ]; then
    for name in "${names[@]}"; do
        for form in "" mended; do
            once traced "$OUT/traced.txt" "$name" "$form" \
                LD_PRELOAD="$SHIM" CUSTREAM_TRACE="$OUT/$name${form:+.$form}.json.gz"
        done
    done
fi
echo "$(wc -l <"$OUT/times.txt" 2>/dev/null || echo 0) lines in times.txt, $(grep -c '^==' "$OUT/errors.txt") failures"
