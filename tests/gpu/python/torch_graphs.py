"""PyTorch: graphs that are captured before, within and after torch.profiler, and within cudaProfilerStart and Stop; each is replayed in each of these times."""
import torch
from torch.profiler import ProfilerActivity, profile

N = 1 << 16


def capture(number):
    """A graph that adds `number` to a tensor, and sums it up on a branch."""
    a, total = torch.zeros(N, device="cuda", dtype=torch.int64), torch.zeros(1, device="cuda", dtype=torch.int64)
    graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        a.add_(number)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            total.copy_(a.sum())
        b = a * 2
        torch.cuda.current_stream().wait_stream(side)
        b.copy_(a)
    return graph, total


def replay(graphs):
    for graph, _ in graphs:
        for _ in range(5):
            graph.replay()
    torch.cuda.synchronize()
    return [int(total) for _, total in graphs]


def main():
    graphs = [capture(1)]
    print(replay(graphs))
    for turn in range(2):
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
            graphs.append(capture(10 + turn))
            print(replay(graphs))
        print("kernels in the profile:", sum("sum" in e.name or "reduce" in e.name for e in seen.events()) > 0)
        graphs.append(capture(20 + turn))
        print(replay(graphs))
        torch.cuda.profiler.start()
        print(replay(graphs))
        graphs.append(capture(30 + turn))
        print(replay(graphs))
        torch.cuda.profiler.stop()
        print(replay(graphs))


if __name__ == "__main__":
    main()
