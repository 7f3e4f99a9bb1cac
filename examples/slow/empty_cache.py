"""torch.cuda.empty_cache() after each step gives all memory back to the driver, so each step pays for cudaFree, which
waits for the GPU, and for cudaMalloc again. Mended: the call is left out and the allocator reuses its blocks."""
import json
import sys
import time

import torch

MENDED = "mended" in sys.argv[1:]
STEPS, ROWS, WIDTH, LAYERS = 40, 8192, 2048, 8
torch.manual_seed(1)
x = torch.randn(ROWS, WIDTH, device="cuda", dtype=torch.bfloat16)
weights = [torch.randn(WIDTH, WIDTH, device="cuda", dtype=torch.bfloat16) / WIDTH ** 0.5 for _ in range(LAYERS)]
total = torch.zeros((), device="cuda")


def features(h):
    """Keep the activation of each layer, 32 MiB each."""
    kept = []
    for w in weights:
        h = torch.relu(h @ w)
        kept.append(h)
    return kept


def loop(steps):
    for _ in range(steps):
        kept = features(x)
        total.add_(sum(k[0, 0] for k in kept))
        del kept
        if not MENDED:
            torch.cuda.empty_cache()


loop(5)
torch.cuda.synchronize()
start = time.perf_counter()
loop(STEPS)
torch.cuda.synchronize()
ms = (time.perf_counter() - start) * 1e3
assert bool(torch.isfinite(total))
print(json.dumps({"name": "empty_cache", "mended": MENDED, "loop_ms": round(ms, 3)}))
