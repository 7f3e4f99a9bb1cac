#!/bin/bash
# One of these programs, as it was and as it was mended, three times each by turns under custream: traces, reports, and what changed.
#
#     examples/worked/run.sh FOLDER PROGRAM [GPU]        # PROGRAM: torch_transformer, cupy_filter or jax_train
#
# Leaves in FOLDER: PROGRAM.1.json to PROGRAM.3.json and what each run printed (.out); PROGRAM.report and PROGRAM.html of the first of them; the same of
# PROGRAM-mended (and PROGRAM-graphed of the transformer), each with a .diff against the variant before it.
# BUILD_DIR is custream's build folder, PYTHON the Python that has the program's libraries. A variant that fails is left out; the status is 1 then.
set -eu
shopt -s nullglob
[ $# -ge 2 ] || { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
folder=$1 program=$2 gpu=${3:-0}
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${BUILD_DIR:-$here/../../build}" && pwd)
[ -e "$here/$program.py" ] || { echo "$0: $program: no such program here" >&2; exit 2; }
mkdir -p "$folder"

# The arguments that make the variants; the first has none.
variants=("" mended)
[ "$program" != torch_transformer ] || variants+=(graphed)
called() { echo "$program${1:+-$1}"; }

run() { # variant, file without its ending
    rm -f "$2.json"
    CUDA_VISIBLE_DEVICES=$gpu CUSTREAM_WINDOW=profiler CUSTREAM_TRACE=$2.json LD_PRELOAD=$build/libcustream_shim.so \
        timeout 200 "${PYTHON:-python3}" "$here/$program.py" ${1:+"$1"} > "$2.out" 2>&1
}

status=0
for n in 1 2 3; do
    for variant in "${variants[@]}"; do
        file=$folder/$(called "$variant").$n
        run "$variant" "$file" || { status=1; rm -f "$file.json"; echo "$0: this run failed:" >&2; }
        echo "$file: $(tail -n 1 "$file.out")"
    done
done

before=
for variant in "${variants[@]}"; do
    file=$folder/$(called "$variant")
    traces=("$file".[123].json)
    [ ${#traces[@]} = 3 ] || { status=1; echo "$file: left out, not all of its runs have a trace" >&2; continue; }
    "$build/custream" check "$file.1.json" || status=1
    "$build/custream" report --html="$file.html" "$file.1.json" > "$file.report"
    [ -z "$before" ] || "$build/custream" diff "$before".[123].json --after "${traces[@]}" > "$file.diff"
    before=$file
done
exit $status
