#!/bin/sh
# `make demo`: runs the sample program under the shim. The program uses the GPU if a driver loads
# that has one, else the simulated GPU. $1: the build folder.
set -eu
build=$(cd "$1" && pwd)
trace=$build/demo.json
if "$build/tests/demo" --probe 2>/dev/null; then
    where="on this machine's GPU"
else
    where="on the simulated GPU (no CUDA driver with a device here)"
    LD_LIBRARY_PATH=$build/fakecuda${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
fi
rm -f "$trace"
echo "running build/tests/demo under custream, $where"
"$build/custream" run --trace "$trace" -- "$build/tests/demo"
"$build/custream" check "$trace"
cat <<EOF

The timeline is $trace
Open it: $build/custream open $trace      or drop the file on https://ui.perfetto.dev (it stays on your machine)
Why was the GPU idle?  $build/custream report $trace
Your own program:  custream run -- ./app      or      LD_PRELOAD=$build/libcustream_shim.so ./app
EOF
