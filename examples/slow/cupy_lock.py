"""The main thread and a worker thread hold one lock around each kernel and its synchronisation, so their kernels, of
one block each and on streams of their own, run in turns. Mended: no lock, since the threads share no data."""
import contextlib
import json
import sys
import threading
import time

import cupy
import numpy as np

MENDED = "mended" in sys.argv[1:]
STEPS, THREADS = 60, 256
CODE = r"""
extern "C" __global__ void walk(float* x, int n, float r) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i];
    for (int k = 0; k < n; k++) v = r * v * (1.0f - v);
    x[i] = v;
}
"""
walk = cupy.RawKernel(CODE, "walk")
count, rate = np.int32(200000), np.float32(3.7)
streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(2)]
values = [cupy.linspace(0.1, 0.9, THREADS, dtype=cupy.float32) for _ in streams]
gpu = contextlib.nullcontext() if MENDED else threading.Lock()


def serve(k, steps):
    with streams[k]:
        for _ in range(steps):
            with gpu:
                walk((1,), (THREADS,), (values[k], count, rate))
                streams[k].synchronize()


def loop(steps):
    worker = threading.Thread(target=serve, args=(1, steps))
    worker.start()
    serve(0, steps)
    worker.join()


cupy.cuda.Device().synchronize()
serve(0, 2)
loop(3)
cupy.cuda.Device().synchronize()
start = time.perf_counter()
loop(STEPS)
cupy.cuda.Device().synchronize()
ms = (time.perf_counter() - start) * 1e3
assert all(bool(cupy.isfinite(v).all()) for v in values)
print(json.dumps({"name": "cupy_lock", "mended": MENDED, "loop_ms": round(ms, 3)}))
