"""Work before, between and after cudaProfilerStart and cudaProfilerStop, for CUSTREAM_WINDOW=profiler.

    window.py torch|bindings

Kernels that can be told apart: both_ways.mark() with grids 101 to 103 before, 201 to 207 between, 301 to 304 after; and copies, additions and waits of the
library's beside them.
"""
import json
import sys

from both_ways import BothWays

BEFORE, BETWEEN, AFTER = range(101, 104), range(201, 208), range(301, 305)


def torch():
    import torch as th
    x = th.zeros(1 << 16, device="cuda")
    host = th.ones(1 << 16).pin_memory()
    stream = th.cuda.Stream()
    th.cuda.synchronize()

    def work(add):
        with th.cuda.stream(stream):
            y = host.to("cuda", non_blocking=True)
            x.add_(y * add)
        stream.synchronize()
        x.sub_(1)
        th.cuda.synchronize()
    return work, th.cuda.profiler.start, th.cuda.profiler.stop, stream.cuda_stream, lambda: float(x[0].item())


def bindings():
    from cuda.bindings import driver

    def ok(answer):
        error, *values = answer
        assert int(error) == 0, error
        return values[0] if len(values) == 1 else values

    ok(driver.cuInit(0))
    ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(ok(driver.cuDeviceGet(0))))))
    stream = ok(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
    memory, back, sums = ok(driver.cuMemAlloc(1024)), bytearray(1024), []

    def work(add):
        ok(driver.cuMemsetD8Async(memory, add, 1024, stream))
        ok(driver.cuMemcpyDtoHAsync(back, memory, 1024, stream))
        ok(driver.cuStreamSynchronize(stream))
        sums.append(sum(back))
        ok(driver.cuCtxSynchronize())
    return work, lambda: ok(driver.cuProfilerStart()), lambda: ok(driver.cuProfilerStop()), int(stream), lambda: float(sum(sums))


def main():
    work, start, stop, stream, result = {"torch": torch, "bindings": bindings}[sys.argv[1]]()
    ways = BothWays()

    def part(grids, add):
        for grid in grids:
            ways.mark(stream, grid)
        work(add)

    work(1)
    part(BEFORE, 2)
    start()
    part(BETWEEN, 3)
    stop()
    part(AFTER, 4)
    print(json.dumps({"what": "result", "value": result()}), flush=True)


if __name__ == "__main__":
    main()
