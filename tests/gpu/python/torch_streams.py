"""PyTorch: streams, events, priorities, pinned copies, CUDA graphs, threads, two small trainings."""
import threading

import torch
from torch import nn

from parts import checksum, in_threads, part

torch.manual_seed(0)
torch.backends.cudnn.deterministic = True
torch.backends.cudnn.benchmark = False
N = 1 << 16


def numbers(tensor):
    return checksum(tensor.flatten()[:256].cpu().tolist())


def streams():
    first, second = torch.cuda.Stream(), torch.cuda.Stream(priority=-1)
    a = torch.arange(N, device="cuda", dtype=torch.int64)
    b = torch.zeros_like(a)
    done = torch.cuda.Event(enable_timing=True)
    begin = torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    with torch.cuda.stream(first):
        begin.record()
        torch.cuda._sleep(200000)
        b.copy_(a * 3)
        done.record()
    with torch.cuda.stream(second):
        done.wait()
        b.add_(7)
    second.synchronize()
    first.synchronize()
    torch.cuda.current_stream().wait_stream(second)
    return numbers(b), done.query(), begin.elapsed_time(done) > 0, first.query(), (second.priority, first.priority)


def priorities():
    return [torch.cuda.Stream(priority=p).priority for p in (0, -1, -2, -5, -100)]


def pinned_copies():
    host = torch.arange(N, dtype=torch.int32).pin_memory()
    back = torch.empty_like(host).pin_memory()
    up, down = torch.cuda.Stream(), torch.cuda.Stream()
    with torch.cuda.stream(up):
        device = host.to("cuda", non_blocking=True)
        device.mul_(2)
    down.wait_stream(up)
    with torch.cuda.stream(down):
        back.copy_(device, non_blocking=True)
        device.record_stream(down)
    down.synchronize()
    return numbers(back)


def default_stream():
    a = torch.ones(1000, device="cuda")
    b = torch.empty(1000, device="cuda").fill_(2)
    return float((a + b).sum()), numbers((a * b).to(torch.int32)), torch.zeros(5, device="cuda").tolist()


def graph():
    static = torch.ones(N, device="cuda", dtype=torch.int64)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            result = static * 2 + 1
    torch.cuda.current_stream().wait_stream(side)
    recorded = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recorded):
        result = static * 2 + 1
    sums = []
    for k in range(4):
        static.fill_(k)
        recorded.replay()
        sums.append(int(result.sum()))
    return sums


def broken_capture():
    recorded = torch.cuda.CUDAGraph()
    stream = torch.cuda.Stream()
    try:
        with torch.cuda.graph(recorded, stream=stream):
            torch.cuda.synchronize()
    except Exception as error:
        message = type(error).__name__
    else:
        message = "no error"
    torch.cuda.synchronize()
    return message


def work(number):
    stream = torch.cuda.Stream(priority=-(number % 2))
    with torch.cuda.stream(stream):
        a = torch.full((N,), number, device="cuda", dtype=torch.int64)
        for _ in range(50):
            a.add_(number)
        return int(a.sum())


together = threading.Barrier(4)


def default_work(number):
    """All have their memory at once: else PyTorch takes now one segment for the four of them, now two, and more or fewer calls are made."""
    a = torch.full((N,), number, device="cuda", dtype=torch.int64)
    together.wait(60)
    for _ in range(50):
        a.add_(1)
    total = int(a.sum())
    together.wait(60)
    return total


def train(model, shape):
    model = model.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = torch.randn(*shape, generator=torch.Generator().manual_seed(1)).cuda()
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = model(data).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(round(loss.item(), 3))
    return losses


def main():
    print("device count", torch.cuda.device_count() > 0)
    part("streams", streams)
    part("priorities", priorities)
    part("pinned copies", pinned_copies)
    part("default stream", default_stream)
    part("graph", graph)
    part("threads", in_threads, 4, work)
    part("threads on the default stream", in_threads, 4, default_work)
    part("matrices", train, nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 8)), (32, 64))
    part("convolution", train, nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 3)), (4, 3, 16, 16))
    part("broken capture", broken_capture)  # last: PyTorch's allocator need not survive it
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
