#!/bin/bash
# A recorded call beside what other tracers take for one, on this machine and in this run: LTTng-UST with its own consumer, uftrace. Lines "name value unit".
#
#     make bench-peers        Debian's lttng-tools, liblttng-ust-dev and uftrace are needed
set -euo pipefail
build=$1 made=$1/bench/peers
mkdir -p "$made"
for what in lttng lttng-sessiond uftrace; do
    command -v "$what" > /dev/null || { echo "bench-peers: $what is missing: apt-get install lttng-tools liblttng-ust-dev uftrace" >&2; exit 1; }
done
${CC:-gcc} -O2 -I. tests/bench/peers.c -o "$made/alone"
${CC:-gcc} -O2 -I. -DLTTNG tests/bench/peers.c -o "$made/lttng" -llttng-ust -ldl
${CC:-gcc} -O2 -I. -pg tests/bench/peers.c -o "$made/uftrace"

export LTTNG_HOME=$PWD/$made/home
end() { lttng destroy peers > /dev/null 2>&1 || true; [ -z "${daemon:-}" ] || kill "$daemon" 2> /dev/null || true; rm -rf "${made:?}/home" "$made/trace" "$made/uftrace.data"; }
trap end EXIT
mkdir -p "$LTTNG_HOME"
lttng-sessiond --no-kernel > "$made/sessiond.log" 2>&1 &
daemon=$!
for _ in $(seq 50); do lttng list > /dev/null 2>&1 && break; sleep 0.1; done

lttng create peers --output="$PWD/$made/trace" > /dev/null
lttng enable-channel --userspace --subbuf-size=4M --num-subbuf=8 all > /dev/null
lttng enable-event --userspace --channel=all 'peers:*' > /dev/null
lttng start > /dev/null
for _ in 1 2 3; do
    "$made/alone" peers_alone
    "$made/lttng" lttng
    (cd "$made" && uftrace record --no-libcall -d uftrace.data ./uftrace uftrace 20000 2> uftrace.log)
    CUSTREAM_TRACE=$made/record.json CUSTREAM_GPU=off CUSTREAM_FAKE_DIRECT=1 LD_LIBRARY_PATH=$build/fakecuda LD_PRELOAD=$PWD/$build/libcustream_shim.so "$build/bench/calls" record | sed -n '/^record_\(ns\|floor_alone_ns\|direct_ns\)/p'
done
lttng stop > /dev/null
echo "lttng_events $(du -sb "$made/trace" | cut -f1) bytes"
rm -f "$made/record.json"
