"""Microseconds of host time that a small operation of PyTorch's takes: plain, or in torch.profiler.

    launch_loop.py none|cuda|both [LAUNCHES [ROUNDS]]
"""
import contextlib
import statistics
import sys
import time

import torch
from torch.profiler import ProfilerActivity, profile

KINDS = {"none": [], "cuda": [ProfilerActivity.CUDA], "both": [ProfilerActivity.CPU, ProfilerActivity.CUDA]}


def one_round(x, count):
    """Waits for the GPU outside of what it measures, often enough for the launch queue never to fill."""
    spent = 0
    for _ in range(count // 500):
        begin = time.perf_counter_ns()
        for _ in range(500):
            x.add_(1)
        spent += time.perf_counter_ns() - begin
        torch.cuda.synchronize()
    return spent / (count // 500 * 500) / 1000


def main():
    activities = KINDS[sys.argv[1]]
    count, rounds = (int(a) for a in (sys.argv[2:] + ["5000", "3"][len(sys.argv) - 2:])[:2])
    x = torch.zeros(64, device="cuda")
    one_round(x, 5000)
    with profile(activities=activities) if activities else contextlib.nullcontext():
        one_round(x, 2000)
        print(f"torch_add_us {statistics.median(one_round(x, count) for _ in range(rounds)):.3f} us")


if __name__ == "__main__":
    main()
