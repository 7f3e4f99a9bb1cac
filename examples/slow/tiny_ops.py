"""A hand-written Adam updates 40 small parameters with seven elementwise operations each, 280 launches of a few
microseconds per step, so the GPU waits for the host's next launch. Mended: the step is one CUDA graph."""
import json
import sys
import time

import torch

MENDED = "mended" in sys.argv[1:]
STEPS, PARAMS, SIDE = 100, 40, 64
torch.manual_seed(1)


def tensors():
    return [torch.zeros(SIDE, SIDE, device="cuda") for _ in range(PARAMS)]


grads = [torch.randn(SIDE, SIDE, device="cuda") for _ in range(PARAMS)]
params, first, second = tensors(), tensors(), tensors()


def adam():
    for p, g, m, v in zip(params, grads, first, second):
        m.mul_(0.9).add_(g, alpha=0.1)
        v.mul_(0.999).addcmul_(g, g, value=0.001)
        p.addcdiv_(m, v.sqrt().add_(1e-8), value=-1e-3)


step = adam
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    adam()
torch.cuda.current_stream().wait_stream(side)
if MENDED:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        adam()
    step = graph.replay
for _ in range(5):
    step()
torch.cuda.synchronize()
start = time.perf_counter()
for _ in range(STEPS):
    step()
torch.cuda.synchronize()
ms = (time.perf_counter() - start) * 1e3
assert all(bool(torch.isfinite(p).all()) for p in params)
print(json.dumps({"name": "tiny_ops", "mended": MENDED, "loop_ms": round(ms, 3)}))
