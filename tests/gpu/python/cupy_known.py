"""CuPy: kernels, copies, memsets and graph launches that are counted as they are made, printed as JSON lines."""
import json

import cupy as cp
import numpy as np

KERNELS, COPIES, SETS, LAUNCHES = 40, 5, 3, 4
UP, DOWN, SET = (3 << 20) + 256, (3 << 20) + 512, (1 << 20) + 768
SOURCE = 'extern "C" __global__ void custream_mark(int *p) { if (p && !blockIdx.x && !threadIdx.x) *p += 1; }'


def say(what, name, count, **more):
    print(json.dumps(dict(what=what, name=name, count=count, **more)), flush=True)


def main():
    mark = cp.RawKernel(SOURCE, "custream_mark")
    streams = [cp.cuda.Stream(non_blocking=True) for _ in range(2)]
    number = cp.zeros(1, cp.int32)
    mark((76,), (32,), (number,))  # compiled and loaded
    cp.cuda.Device().synchronize()
    for i in range(KERNELS):
        with streams[i % 2]:
            mark((77,), (32,), (number,))
    say("kernel", "custream_mark", KERNELS, grid=77)

    memory = cp.cuda.alloc_pinned_memory(4 << 20)
    host, device = np.frombuffer(memory, np.uint8, 4 << 20).ctypes.data, cp.empty(4 << 20, cp.uint8)
    runtime = cp.cuda.runtime
    for _ in range(COPIES):
        runtime.memcpyAsync(device.data.ptr, host, UP, runtime.memcpyHostToDevice, streams[0].ptr)
        runtime.memcpyAsync(host, device.data.ptr, DOWN, runtime.memcpyDeviceToHost, streams[0].ptr)
    say("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", COPIES, bytes=UP)
    say("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", COPIES, bytes=DOWN)
    for i in range(SETS):
        runtime.memsetAsync(device.data.ptr, i, SET, streams[1].ptr)
    say("gpu_memset", "Memset (Device)", SETS, bytes=SET)

    stream = streams[0]
    with stream:
        stream.begin_capture()
        for _ in range(2):
            mark((78,), (32,), (number,))
        graph = stream.end_capture()
        for _ in range(LAUNCHES):
            graph.launch(stream)
    say("graph", "", LAUNCHES)
    cp.cuda.Device().synchronize()


if __name__ == "__main__":
    main()
