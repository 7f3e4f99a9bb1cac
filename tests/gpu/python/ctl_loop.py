"""A loop of PyTorch's (or of plain copies) that goes on until it is told to end, and measures calls on demand: for `custream ctl`.

    ctl_loop.py torch|bindings

Reads lines from its standard input. `round N` launches empty kernels with a grid of N, measures cuStreamQuery and cuLaunchKernel through the shim and past it,
and prints a JSON line; `end` prints the result and ends.
"""
import json
import os
import select
import sys
import time

from both_ways import LAUNCH, QUERY, BothWays

MARKS, CALLS, TURNS = 5, 500, 3


def torch():
    import torch as th
    x = th.zeros(1 << 12, device="cuda", dtype=th.int64)
    stream = th.cuda.Stream()
    th.cuda.synchronize()

    def step():
        x.add_(1)

    def rest():
        th.cuda.synchronize()
    return step, rest, stream.cuda_stream, lambda: int(x[-1].item())


def bindings():
    from cuda.bindings import driver

    def ok(answer):
        error, *values = answer
        assert int(error) == 0, error
        return values[0] if len(values) == 1 else values

    ok(driver.cuInit(0))
    ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(ok(driver.cuDeviceGet(0))))))
    stream = ok(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
    memory, steps = ok(driver.cuMemAlloc(4096)), [0]

    def step():
        ok(driver.cuMemsetD8Async(memory, 1, 4096, stream))
        steps[0] += 1
    return step, lambda: ok(driver.cuStreamSynchronize(stream)), int(stream), lambda: steps[0]


def lines_waiting():
    """What has come on the standard input, without waiting for more; None at its end."""
    if not select.select([0], [], [], 0)[0]:
        return ""
    data = os.read(0, 4096).decode()
    return data or None


def measure(ways, stream, number):
    for _ in range(MARKS):
        ways.mark(stream, number)
    # The ways take turns, and each turn begins with the other one; of each the least, which nothing else has disturbed.
    best = {}
    for turn in range(TURNS):
        for own in (turn % 2 == 0, turn % 2 == 1):
            for what in (QUERY, LAUNCH):
                ns = ways.ns(own, what, stream, CALLS)
                best[own, what] = min(ns, best.get((own, what), ns))
    return {"what": "round", "number": number, "marks": MARKS, "query_ns": best[False, QUERY], "query_own_ns": best[True, QUERY],
            "launch_ns": best[False, LAUNCH], "launch_own_ns": best[True, LAUNCH]}


def main():
    step, rest, stream, result = {"torch": torch, "bindings": bindings}[sys.argv[1]]()
    ways, steps, text = BothWays(), 0, ""
    rest()
    print(json.dumps({"what": "ready"}), flush=True)
    while True:
        for _ in range(20):
            step()
            steps += 1
        rest()
        time.sleep(0.003)
        more = lines_waiting()
        text += "end\n" if more is None else more
        while "\n" in text:
            line, _, text = text.partition("\n")
            if line == "end":
                print(json.dumps({"what": "result", "steps": steps, "value": result()}), flush=True)
                return
            print(json.dumps(measure(ways, stream, int(line.split()[1]))), flush=True)


if __name__ == "__main__":
    main()
