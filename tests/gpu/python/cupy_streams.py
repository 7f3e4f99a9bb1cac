"""CuPy: streams, events, raw kernels, pinned copies, capture, host functions, memory pools, threads."""
import cupy as cp
import numpy as np

from parts import checksum, in_threads, part

N = 1 << 14
SOURCE = 'extern "C" __global__ void scale(int *p, int n, int k) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) p[i] = p[i] * k + 1; }'


def numbers(array):
    return checksum(cp.asnumpy(array).ravel()[:256])


def scale_kernel():
    return cp.RawKernel(SOURCE, "scale")


def urgent_stream():
    try:
        return cp.cuda.Stream(non_blocking=True, priority=-1)
    except TypeError:  # older versions
        return cp.cuda.Stream(non_blocking=True)


def streams():
    scale = scale_kernel()
    first, second = cp.cuda.Stream(non_blocking=True), urgent_stream()
    begin, done = cp.cuda.Event(), cp.cuda.Event()
    a = cp.arange(N, dtype=cp.int32)
    cp.cuda.Device().synchronize()
    with first:
        begin.record(first)
        scale((N // 256,), (256,), (a, np.int32(N), np.int32(3)))
        done.record(first)
    second.wait_event(done)
    with second:
        scale((N // 256,), (256,), (a, np.int32(N), np.int32(5)))
    second.synchronize()
    first.synchronize()
    return numbers(a), first.done, second.done, cp.cuda.get_elapsed_time(begin, done) > 0


def pinned_copies():
    memory = cp.cuda.alloc_pinned_memory(N * 4)
    host = np.frombuffer(memory, np.int32, N)
    host[:] = np.arange(N)
    stream = cp.cuda.Stream(non_blocking=True)
    device = cp.empty(N, cp.int32)
    device.set(host, stream=stream)
    with stream:
        device *= 2
    back = device.get(stream=stream)
    stream.synchronize()
    return checksum(back[:256])


def default_streams():
    a = cp.ones(1000, cp.int32)
    with cp.cuda.Stream.ptds:
        b = cp.full(1000, 2, cp.int32)
        cp.cuda.Stream.ptds.synchronize()
    cp.cuda.Stream.null.synchronize()
    return numbers(a + b), int(a.sum())


def capture():
    scale = scale_kernel()
    stream = cp.cuda.Stream(non_blocking=True)
    a = cp.ones(N, cp.int32)
    scale((1,), (1,), (a, np.int32(0), np.int32(1)))  # compiled and loaded before the capture
    cp.cuda.Device().synchronize()
    with stream:
        stream.begin_capture()
        for k in (2, 3):
            scale((N // 256,), (256,), (a, np.int32(N), np.int32(k)))
        graph = stream.end_capture()
        for _ in range(3):
            graph.launch(stream)
    stream.synchronize()
    return numbers(a)


def host_functions():
    called = []
    stream = cp.cuda.Stream(non_blocking=True)
    stream.launch_host_func(lambda argument: called.append(argument), 5)
    stream.add_callback(lambda s, status, argument: called.append((status, argument)), 6)
    stream.synchronize()
    return called


def pool():
    memory = cp.cuda.MemoryAsyncPool()
    stream = cp.cuda.Stream(non_blocking=True)
    sums = []
    with cp.cuda.using_allocator(memory.malloc), stream:
        for k in range(3):
            sums.append(int(cp.full(N, k + 1, cp.int32).sum()))
    stream.synchronize()
    return sums


def refused():
    names = []
    for call in (lambda: cp.cuda.runtime.streamWaitEvent(0, 0), lambda: cp.cuda.runtime.eventSynchronize(0),
                 lambda: cp.cuda.runtime.streamCreateWithFlags(0xFF00), lambda: cp.cuda.runtime.memcpy(0, 0, 4, 1)):
        try:
            call()
            names.append("accepted")
        except Exception as error:
            names.append(str(getattr(error, "status", type(error).__name__)))
    return names


def work(number):
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        a = cp.full(N, number, cp.int64)
        for _ in range(50):
            a += number
        return int(a.sum())


def main():
    part("streams", streams)
    part("pinned copies", pinned_copies)
    part("default streams", default_streams)
    part("capture", capture)
    part("host functions", host_functions)
    part("pool", pool)
    part("refused", refused)
    part("threads", in_threads, 4, work)
    part("matrices", lambda: round(float((cp.ones((64, 64)) @ cp.full((64, 64), 2.0)).sum()), 3))
    cp.cuda.Device().synchronize()


if __name__ == "__main__":
    main()
