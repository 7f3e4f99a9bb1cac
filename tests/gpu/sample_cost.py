"""What CUSTREAM_GPU=sample:50 costs, beside other ways: a launch, and a training step of GPT-2 in PyTorch. Prints two tables for docs/measurements.md.

    python3 tests/gpu/sample_cost.py [SECONDS]        140 seconds if none are given, and never much more
    python3 tests/gpu/sample_cost.py 60 launch        one of both: launch, train

CUPTI slows every launch of a process, so no two ways can share one: processes of all ways take turns, and each turn begins with another way. A ratio is that of
a turn, over the plain process of the same turn; shown are the median, the lowest and the highest. Turns go on while there is time. A way that fails is left out,
which is said once on stderr.
"""
import importlib.util
import os
import statistics
import sys
import tempfile
import time

from launch_full import BUILD, HERE, LAUNCH, one_run, shim

TRAIN = [sys.executable, os.path.join(HERE, "python", "train_step.py")]
SECONDS, LAUNCH_SHARE = 140, 0.25  # of the time, if both are measured
NAMES = {"plain": "alone", "host": "`CUSTREAM_GPU=off`: host calls only", "sample": "`CUSTREAM_GPU=sample:50`", "events": "`CUSTREAM_GPU=events`",
         "full": "`CUSTREAM_GPU=cupti`: GPU times of all calls", "client": "a plain client of CUPTI (kernels, copies, memsets)",
         "profiler": "torch.profiler, CUDA only"}
SOURCES = {"host": "off", "sample": "sample:50", "full": "cupti"}


def launch_ways(folder):
    figure, client = "gpu_driver_launch_ns_linked", os.path.join(BUILD, "gpu", "libcupti_client.so")
    ways = {"plain": lambda: one_run(LAUNCH, figure)}
    for way, source in {**SOURCES, "events": "events"}.items():
        ways[way] = lambda source=source: one_run(LAUNCH, figure, shim(folder, source))
    ways["client"] = lambda: one_run(LAUNCH, figure, {"LD_PRELOAD": client, "CUPTI_CLIENT_EARLY": "1", "CUPTI_CLIENT_OUT": os.devnull})
    return ways


def train_ways(folder):
    figure = "train_step_ms"
    ways = {"plain": lambda: one_run([*TRAIN, "none"], figure)}
    for way, source in SOURCES.items():
        ways[way] = lambda source=source: one_run([*TRAIN, "none"], figure, shim(folder, source))
    ways["profiler"] = lambda: one_run([*TRAIN, "cuda"], figure)
    return ways


def by_turns(ways, seconds):
    """way -> its values, one a turn. A turn is begun while the longest one so far would still fit; the first always is, until the time is over."""
    begin, longest, turns, failed = time.monotonic(), 0.0, [], set()
    while not turns or time.monotonic() - begin + longest <= seconds:
        start, names = time.monotonic(), [name for name in ways if name not in failed]
        turn, first = {}, len(turns) % len(names)
        for name in names[first:] + names[:first]:
            if time.monotonic() - begin > seconds:
                break
            turn[name] = ways[name]()
            if turn[name] is None:
                failed.add(name)
        turns.append(turn)
        longest = max(longest, time.monotonic() - start)
        if "plain" in failed:
            return []
    return turns


def spread(values, digits):
    return f"{statistics.median(values):.{digits}f}", f"{min(values):.{digits}f} to {max(values):.{digits}f}"


def table(title, unit, digits, turns, ways):
    print(f"| {title} | {unit} | lowest to highest | over alone | lowest to highest | turns |\n| --- | --- | --- | --- | --- | --- |")
    for way in ways:
        values = [turn[way] for turn in turns if turn.get(way)]
        ratios = [turn[way] / turn["plain"] for turn in turns if turn.get(way) and turn.get("plain")]
        if values:
            print(f"| {NAMES[way]} | " + " | ".join([*spread(values, digits), *(spread(ratios, 3) if ratios else ("", "")), str(len(values))]) + " |")
    print(flush=True)


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS
    wanted = sys.argv[2:] or ["launch", "train"]
    if "train" in wanted and not all(importlib.util.find_spec(name) for name in ("torch", "transformers")):
        print("sample_cost: no torch or no transformers here: no training step", file=sys.stderr)
        wanted = [what for what in wanted if what != "train"]
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        if "launch" in wanted:
            ways = launch_ways(folder)
            found["launch"] = by_turns(ways, seconds * (LAUNCH_SHARE if "train" in wanted else 1))
            table("a launch", "ns", 0, found["launch"], ways)
        if "train" in wanted:
            ways = train_ways(folder)
            found["train"] = by_turns(ways, seconds * (1 - LAUNCH_SHARE if "launch" in wanted else 1))
            table("a training step", "ms", 2, found["train"], ways)
    return 0 if found and all(found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
