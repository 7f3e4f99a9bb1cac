"""Milliseconds of a training step of GPT-2 (small, random weights) in PyTorch: plain, or in torch.profiler.

    train_step.py none|cuda|both [STEPS [BATCH [LENGTH]]]
"""
import contextlib
import os
import statistics
import sys
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch  # noqa: E402
from torch.profiler import ProfilerActivity, profile  # noqa: E402
from transformers import GPT2Config, GPT2LMHeadModel  # noqa: E402

KINDS = {"none": [], "cuda": [ProfilerActivity.CUDA], "both": [ProfilerActivity.CPU, ProfilerActivity.CUDA]}
WARM_STEPS = 5


def main():
    activities = KINDS[sys.argv[1]]
    steps, batch, length = (int(a) for a in (sys.argv[2:] + ["30", "4", "128"][len(sys.argv) - 2:])[:3])
    torch.manual_seed(1)
    model = GPT2LMHeadModel(GPT2Config()).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    words = torch.randint(0, model.config.vocab_size, (batch, length), device="cuda")

    def step():
        begin = time.perf_counter_ns()
        optimizer.zero_grad(set_to_none=True)
        model(input_ids=words, labels=words).loss.backward()
        optimizer.step()
        torch.cuda.synchronize()
        return (time.perf_counter_ns() - begin) / 1e6

    for _ in range(WARM_STEPS):
        step()
    with profile(activities=activities) if activities else contextlib.nullcontext():
        step()
        print(f"train_step_ms {statistics.median(step() for _ in range(steps)):.3f} ms", flush=True)


if __name__ == "__main__":
    main()
