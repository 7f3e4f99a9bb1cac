"""Triton: an own kernel launched on two streams, and once on the default stream. Its launcher calls cuLaunchKernelEx."""
import torch
import triton
import triton.language as tl

from parts import checksum, part


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask), mask=mask)


N = 100000


def add(x, y):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(N, 1024),)](x, y, out, N, BLOCK=1024)
    return out


def numbers(tensor):
    return checksum(tensor[:256].cpu().tolist()), int(tensor.sum())


def default_stream():
    x = torch.arange(N, device="cuda", dtype=torch.int64)
    return numbers(add(x, x))


def two_streams():
    x = torch.arange(N, device="cuda", dtype=torch.int64)
    streams = [torch.cuda.Stream(), torch.cuda.Stream(priority=-1)]
    torch.cuda.synchronize()
    results = []
    for _k, stream in enumerate(streams):
        with torch.cuda.stream(stream):
            y = x
            for _ in range(20):
                y = add(y, x)
            results.append(y)
    torch.cuda.synchronize()
    return [numbers(y) for y in results]


def captured():
    x = torch.arange(N, device="cuda", dtype=torch.int64)
    add(x, x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = add(x, x)
    for k in range(3):
        x.fill_(k)
        graph.replay()
    torch.cuda.synchronize()
    return numbers(y)


if __name__ == "__main__":
    part("default stream", default_stream)
    part("two streams", two_streams)
    part("captured", captured)
