"""Two independent walks run on two CuPy streams, but the scratch of each is zeroed on the null stream, which waits for
both streams and makes both wait, so the walks never overlap. Mended: each scratch is zeroed on its walk's stream."""
import json
import sys
import time

import cupy
import numpy as np

MENDED = "mended" in sys.argv[1:]
STEPS, THREADS = 60, 256
CODE = r"""
extern "C" __global__ void walk(float* x, int* scratch, int n, float r) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i];
    for (int k = 0; k < n; k++) v = r * v * (1.0f - v);
    x[i] = v;
    scratch[i] += v > 0.5f;
}
"""
walk = cupy.RawKernel(CODE, "walk")
count, rate = np.int32(200000), np.float32(3.7)
streams = [cupy.cuda.Stream(), cupy.cuda.Stream()]  # blocking streams: they keep order with the null stream
values = [cupy.linspace(0.1, 0.9, THREADS, dtype=cupy.float32) for _ in streams]
scratch = [cupy.zeros(THREADS, dtype=cupy.int32) for _ in streams]


def zero(array):
    array.data.memset_async(0, array.nbytes)  # on CuPy's current stream


def loop(steps):
    for _ in range(steps):
        for k, stream in enumerate(streams):
            if not MENDED:
                zero(scratch[k])
            with stream:
                if MENDED:
                    zero(scratch[k])
                walk((1,), (THREADS,), (values[k], scratch[k], count, rate))


cupy.cuda.Device().synchronize()
loop(3)
cupy.cuda.Device().synchronize()
start = time.perf_counter()
loop(STEPS)
cupy.cuda.Device().synchronize()
ms = (time.perf_counter() - start) * 1e3
assert all(0 <= int(s.max()) <= 1 for s in scratch)
print(json.dumps({"name": "cupy_null_stream", "mended": MENDED, "loop_ms": round(ms, 3)}))
