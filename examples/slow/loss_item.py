"""A small training loop reads loss.item() after each step, so the host draws the next batch in Python only when the
GPU has finished, and the GPU waits meanwhile. Mended: the loss is summed on the GPU and read once after the loop."""
import json
import random
import sys
import time

import torch
from torch import nn

MENDED = "mended" in sys.argv[1:]
STEPS, BATCH, WIDTH, VOCAB = 60, 2048, 2048, 50000
rng = random.Random(1)
torch.manual_seed(1)
table = torch.randn(VOCAB, WIDTH, device="cuda")
net = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(),
                    nn.Linear(WIDTH, WIDTH)).cuda()
opt = torch.optim.SGD(net.parameters(), lr=1e-3)
staging = [torch.empty(BATCH, 2, dtype=torch.int64).pin_memory() for _ in range(STEPS)]


def draw(i):
    """Draw pairs of words in Python and upload them from pinned memory."""
    pairs = [(rng.randrange(VOCAB), rng.randrange(VOCAB)) for _ in range(BATCH)]
    staging[i].copy_(torch.tensor(pairs))
    return staging[i].to("cuda", non_blocking=True)


def train(steps):
    total = 0.0 if not MENDED else torch.zeros((), device="cuda")
    for i in range(steps):
        ids = draw(i)
        left, right = table[ids[:, 0]], table[ids[:, 1]]
        loss = (net(left) - right).square().mean()
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if MENDED:
            total += loss.detach()
        else:
            total += loss.item()
    return total


train(5)
torch.cuda.synchronize()
start = time.perf_counter()
result = train(STEPS)
torch.cuda.synchronize()
ms = (time.perf_counter() - start) * 1e3
assert float(result) > 0
print(json.dumps({"name": "loss_item", "mended": MENDED, "loop_ms": round(ms, 3)}))
