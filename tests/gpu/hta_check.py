"""HolisticTraceAnalysis reads a trace, and says of it what the trace's own slices add up to.

    PYTHONPATH=build/carry-hta python3 tests/gpu/hta_check.py trace.json...

Prints of each trace a line `name value unit` for each figure and ends with 1 where HTA says otherwise. HTA's times are those of the file, in microseconds and as
floats, where HTA_DISABLE_NS_ROUNDING is set; that is set here.
"""
import collections
import json
import os
import re
import sys

os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"

GPU = ("kernel", "gpu_graph", "gpu_memcpy", "gpu_memset")
# HTA goes by names: communication, and kernels that are neither that nor computation, which it leaves out of its breakdown.
COMMUNICATION, NEITHER = re.compile(r"nccl.*Kernel"), re.compile(r".*Memcpy|Memset|.*Sync")


def union(intervals):
    """The length of all intervals together, without what two of them share; and from the first's begin to the last's end."""
    total, reached, first = 0.0, None, None
    for begin, end in sorted(intervals):
        first = begin if first is None else first
        if reached is None or begin > reached:
            total, reached = total + end - begin, end
        elif end > reached:
            total, reached = total + end - reached, end
    return total, (reached - first if intervals else 0.0)


def own_sums(path):
    """What the trace says, without HTA."""
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    slices = [e for e in events if e["ph"] == "X" and e.get("cat") in GPU]
    spans = [(e["ts"], e["ts"] + e["dur"]) for e in slices]
    compute = [span for e, span in zip(slices, spans)
               if e["cat"] in ("kernel", "gpu_graph") and not COMMUNICATION.match(e["name"]) and not NEITHER.match(e["name"])]
    busy, total = union(spans)
    by_name = collections.Counter()
    for e in slices:
        if e["cat"] in ("gpu_memcpy", "gpu_memset") or not NEITHER.match(e["name"]):
            by_name[e["name"]] += e["dur"]
    by_stream = collections.Counter((e["args"]["stream"]) for e in slices if e["cat"] != "gpu_graph")
    return {"kernel_time": total, "idle": total - busy, "compute": union(compute)[0], "by_name": by_name, "by_stream": by_stream}


def analyse(path):
    """HTA's own words on the trace."""
    from hta.trace_analysis import TraceAnalysis
    return TraceAnalysis(trace_files={0: path}, trace_dir=os.path.dirname(os.path.abspath(path)))


def check(path):
    """(name, HTA's, ours) of each figure, in microseconds; asserts what HTA must be able to do at all."""
    own, hta = own_sums(path), analyse(path)
    temporal = hta.get_temporal_breakdown(visualize=False).iloc[0]
    figures = [("hta_idle_time", float(temporal["idle_time(us)"]), own["idle"]), ("hta_compute_time", float(temporal["compute_time(us)"]), own["compute"]),
               ("hta_non_compute_time", float(temporal["non_compute_time(us)"]), own["kernel_time"] - own["idle"] - own["compute"]),
               ("hta_kernel_time", float(temporal["kernel_time(us)"]), own["kernel_time"])]
    _, kernels = hta.get_gpu_kernel_breakdown(visualize=False, num_kernels=1000000, duration_ratio=1.0, include_memory_kernels=True)
    kernels = kernels[kernels["kernel_type"].isin(["COMPUTATION", "COMMUNICATION", "MEMORY"])]
    theirs = {name: float(total) for name, total in zip(kernels["name"], kernels["sum (us)"])}
    assert set(theirs) == set(own["by_name"]), f"HTA's kernels differ: {set(theirs) ^ set(own['by_name'])}"
    figures += [("hta_sum " + name[:60], theirs[name], total) for name, total in own["by_name"].items()]
    idle, _ = hta.get_idle_time_breakdown(visualize=False, show_idle_interval_stats=True)
    # On a lane with one piece of work there is no interval between two.
    assert {int(s) for s in idle["stream"]} <= set(own["by_stream"]), "idle times of streams that the trace does not have"
    assert {s for s, n in own["by_stream"].items() if n > 1} <= {int(s) for s in idle["stream"]}, "idle times of a stream are missing"
    return figures


def main(path):
    figures = check(path)
    wrong = [(name, theirs, ours) for name, theirs, ours in figures if abs(theirs - ours) > 0.01 + 1e-6 * abs(ours)]
    for name, theirs, _ in figures:
        if not name.startswith("hta_sum "):
            print(f"{name} {theirs:.3f} us")
    print(f"hta_names {sum(name.startswith('hta_sum ') for name, _, _ in figures)} names")
    for name, theirs, ours in wrong:
        print(f"differs: {path}: {name}: HTA {theirs:.3f}, the trace {ours:.3f}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(max([main(path) for path in sys.argv[1:]]))
