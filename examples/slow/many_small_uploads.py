"""Each step uploads 256 samples of 4 KiB one by one from pageable memory, and each upload is a call that waits, while
the GPU has nothing to do. Mended: the host stacks them into one pinned batch and uploads that asynchronously."""
import json
import sys
import time

import torch

MENDED = "mended" in sys.argv[1:]
STEPS, BATCH, FEATURES, WIDTH = 50, 256, 1024, 4096
torch.manual_seed(1)
dataset = [torch.randn(FEATURES) for _ in range(2048)]
first = torch.randn(FEATURES, WIDTH, device="cuda") / FEATURES ** 0.5
layers = [torch.randn(WIDTH, WIDTH, device="cuda") / WIDTH ** 0.5 for _ in range(4)]
pinned = [torch.empty(BATCH, FEATURES).pin_memory() for _ in range(3)]
free = [torch.cuda.Event() for _ in range(3)]


def upload(i):
    at = (i * BATCH) % len(dataset)
    batch = dataset[at:at + BATCH]
    if not MENDED:
        return torch.stack([sample.to("cuda") for sample in batch])
    k = i % 3
    free[k].synchronize()  # the upload that read this buffer three steps ago
    torch.stack(batch, out=pinned[k])
    x = pinned[k].to("cuda", non_blocking=True)
    free[k].record()
    return x


def loop(steps):
    for i in range(steps):
        h = upload(i) @ first
        for w in layers:
            h = torch.relu(h) @ w
    return h


loop(5)
torch.cuda.synchronize()
start = time.perf_counter()
result = loop(STEPS)
torch.cuda.synchronize()
ms = (time.perf_counter() - start) * 1e3
assert bool(torch.isfinite(result).all())
print(json.dumps({"name": "many_small_uploads", "mended": MENDED, "loop_ms": round(ms, 3)}))
