"""A side stream uploads the next batch from pinned memory, but first waits for all of the main stream, so upload and
product never overlap. Mended: it waits only for the product that read the buffer it overwrites, one step earlier."""
import json
import sys
import time

import torch

MENDED = "mended" in sys.argv[1:]
STEPS, ROWS, WIDTH, OUT = 60, 4096, 4096, 2048
torch.manual_seed(1)
host = [torch.randn(ROWS, WIDTH).pin_memory() for _ in range(2)]
batch = [torch.empty(ROWS, WIDTH, device="cuda") for _ in range(2)]
weight = torch.randn(WIDTH, OUT, device="cuda")
result = torch.empty(ROWS, OUT, device="cuda")
read = [torch.cuda.Event() for _ in range(2)]
main = torch.cuda.current_stream()
side = torch.cuda.Stream()


def prefetch(k):
    if MENDED:
        side.wait_event(read[k])  # the last product that read batch[k]
    else:
        side.wait_stream(main)  # also the product that was enqueued just now, which reads the other buffer
    with torch.cuda.stream(side):
        batch[k].copy_(host[k], non_blocking=True)


def loop(steps):
    prefetch(0)
    for i in range(steps):
        k = i % 2
        main.wait_stream(side)  # batch[k] is there
        torch.mm(batch[k], weight, out=result)
        read[k].record(main)
        prefetch(1 - k)


loop(5)
torch.cuda.synchronize()
start = time.perf_counter()
loop(STEPS)
torch.cuda.synchronize()
ms = (time.perf_counter() - start) * 1e3
assert bool(torch.isfinite(result).all())
print(json.dumps({"name": "prefetch_waits", "mended": MENDED, "loop_ms": round(ms, 3)}))
