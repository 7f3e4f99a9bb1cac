"""The tables of `custream report` say what others say of the same trace: a slow model, Perfetto, HTA. And traces of other tools, or that lack things, have tables too."""
import collections
import gzip
import json
import random
import subprocess
import sys

import pytest

from tests.handmade import HOST, meta, slice_
from tests.madetrace import MAIN, WORKER, Made, cells, only, process_range, report, report_of


# ---- the same numbers, worked out the slow way ----

def union(intervals):
    """The length of intervals together, without what two of them share."""
    total, reached = 0, -1
    for begin, end in sorted(intervals):
        total += max(0, end - max(begin, reached))
        reached = max(reached, end)
    return total


def random_trace(seed):
    """Works on streams of two devices, some at once on one stream; ranges that nest, cross and repeat, of two threads and of the process. Times are whole us."""
    dice = random.Random(seed)
    made, calls, ranges = Made(), [], []
    for number in range(60):
        at, length, thread, lane = dice.randrange(400), dice.randrange(1, 30), dice.choice([MAIN, WORKER]), dice.choice([13, 14, 15, 16])
        made.launch("abcd"[number % 4], at, at + dice.randrange(1, 60), length, lane, thread=thread, took=1, device=lane % 2)
        row = made.rows[-1]
        calls.append((at, thread, row["pid"], lane, int(row["ts"]), int(row["ts"] + length)))
    for number in range(20):
        begin, length, name, domain = dice.randrange(400), dice.randrange(80), dice.choice("xyz"), dice.choice(["", "lib"])
        thread = dice.choice([MAIN, WORKER, None])
        about = {"domain": domain} if domain else {}
        if thread:
            made.range(name, begin, length, thread, **about)
        else:
            first, last = process_range(name, hex(number), begin, length)
            made.rows += [{**first, "args": about}, last]
        ranges.append((name, domain, thread, begin, begin + length))
    return made, calls, ranges


def at_work(calls, device):
    """How long so many streams of a device were at work, from us to us; and the streams' busy and lone times."""
    works = [call for call in calls if call[2] == device]
    shares, busy, alone = [0] * 4, collections.Counter(), collections.Counter()
    for at in range(min(call[4] for call in works), max(call[5] for call in works)):
        streams = {call[3] for call in works if call[4] <= at < call[5]}
        shares[min(len(streams), 3)] += 1
        busy.update(streams)
        if len(streams) == 1:
            alone.update(streams)
    return shares, busy, alone


@pytest.mark.parametrize("seed", range(12))
def test_random_traces(tmp_path, seed):
    made, calls, ranges = random_trace(seed)
    tables = report(tmp_path, made)
    for device in tables["devices"]:
        shares, busy, alone = at_work(calls, device["device"])
        assert [device[f"at_work_{n}"] for n in range(4)] == pytest.approx([share / sum(shares) for share in shares])
        assert cells(device, "span_ns", "idle_ns") == (1000 * sum(shares), 1000 * shares[0])
        assert device["at_once"] == pytest.approx(sum(busy.values()) / sum(shares[1:]))
        streams = {row["stream"]: cells(row, "busy_ns", "alone_ns") for row in tables["streams"] if row["device"] == device["device"]}
        assert streams == {f"stream {lane}": (1000 * busy[lane], 1000 * alone[lane]) for lane in busy}
    expected = {}
    for name, domain in {(name, domain) for name, domain, *_ in ranges}:
        mine = [(thread, begin, end) for *names, thread, begin, end in ranges if names == [name, domain]]
        within = [(begin, end) for at, thread, _, _, begin, end in calls if any(of in (thread, None) and first <= at < last for of, first, last in mine)]
        expected[name, domain] = (len(mine), 1000 * sum(end - begin for _, begin, end in mine), 1000 * union(within))
    assert {cells(row, "name", "domain"): cells(row, "times", "total_ns", "gpu_busy_ns") for row in tables["ranges"]} == expected


# ---- traces of other tools, and broken ones ----

def torch_trace():
    """As torch.profiler writes it: calls of the runtime, work tied by correlation alone, ranges, nothing of streams or totals."""
    rows = [meta("process_name", HOST, HOST, "python"), meta("process_name", 0, 0, "python")]
    for step in range(3):
        at = 100 + 1000 * step
        rows += [slice_("user_annotation", f"ProfilerStep#{step}", HOST, MAIN, at, 900, **{"External id": step}),
                 slice_("cpu_op", "aten::mm", HOST, MAIN, at + 5, 40), slice_("python_function", "forward", HOST, MAIN, at, 800),
                 slice_("cuda_runtime", "cudaLaunchKernel", HOST, MAIN, at + 10, 5, correlation=step + 1, cbid=211),
                 slice_("kernel", "gemm", 0, 7, at + 20, 300, device=0, context=1, stream=7, correlation=step + 1, grid=[1, 1, 1], block=[128, 1, 1],
                        **{"registers per thread": 32, "shared memory": 0, "est. achieved occupancy %": 3}),
                 slice_("gpu_user_annotation", f"ProfilerStep#{step}", 0, 7, at + 20, 300)]
    about = [{"id": 0, "name": "NVIDIA H100", "numSms": 132}]
    return json.dumps({"schemaVersion": 1, "deviceProperties": about, "baseTimeNanoseconds": 1760000000000000000, "traceEvents": rows, "traceName": "t.json"})


def test_trace_of_torch_profiler(tmp_path):
    tables = report(tmp_path, torch_trace())
    run = only(tables["run"])
    assert cells(run, "calls", "works", "streams", "whole", "lost_calls", "source") == (3, 3, 1, "the file does not say", None, "")
    assert cells(only(tables["devices"]), "device", "name", "works", "busy_ns") == (0, "NVIDIA H100", 3, 900000)
    assert cells(only(tables["kernels"]), "name", "times", "total_ns", "fills") == ("gemm", 3, 900000, pytest.approx(1 / (132 * 16)))
    assert cells(only(tables["streams"]), "stream", "kind", "works") == ("stream 7", "", 3)
    assert cells(only(tables["calls"]), "call", "times", "failed") == ("cudaLaunchKernel", 3, 0)
    assert cells(only(tables["steps"]), "name", "times") == ("ProfilerStep#N", 3)
    assert [row["gpu_busy_ns"] for row in tables["ranges"]] == [300000] * 3


def without(value, name):
    """The same JSON without the members of that name."""
    if isinstance(value, dict):
        return {key: without(member, name) for key, member in value.items() if key != name}
    return [without(member, name) for member in value] if isinstance(value, list) else value


def names_in(value):
    if isinstance(value, dict):
        return set(value) | {name for member in value.values() for name in names_in(member)}
    return {name for member in value for name in names_in(member)} if isinstance(value, list) else set()


@pytest.mark.parametrize("sample", ["demo", "known-nodes"])
def test_whatever_a_trace_lacks(root, tmp_path, sample):
    """Without any one name of members, there still is a report with all tables."""
    with gzip.open(root / f"traces/{sample}-h200.json.gz") as file:
        trace = json.load(file)
    names = names_in(trace) - {"traceEvents"}
    whole = set(report(tmp_path, json.dumps(trace)))
    assert len(names) > 40
    for name in names:
        assert set(report(tmp_path, json.dumps(without(trace, name)))) == whole, name


def test_trace_of_nothing(tmp_path):
    tables = report(tmp_path, '{"metadata":{"tool":"custream 0.1.0"},"traceEvents":[]}')
    assert len(tables.pop("run")) == 1 and not any(rows for key, rows in tables.items() if key not in ("metrics", "running"))


# ---- what Perfetto and HTA say of the same traces ----

PROGRAMS = {
    "demo": (["demo"], {}), "nodes": (["demo"], {"CUSTREAM_GRAPH": "node"}), "events": (["demo"], {"CUSTREAM_GPU": "events"}), "timeline": (["timeline"], {}),
    **{f"nvtx-{how}": (["nvtx", how], {}) for how in ("nested", "described", "crossing", "process", "threads")}, "burst": (["burst", 2, 5000], {}), "devices": (["devices"], {"CUSTREAM_FAKE_DEVICES": 2}), "badcalls": (["badcalls"], {}),
}
SLICES = "SELECT p.pid AS device, s.name AS name, s.category AS category, s.dur AS dur FROM slice s LEFT JOIN thread_track k ON k.id = s.track_id " \
         "LEFT JOIN thread t USING (utid) LEFT JOIN process p USING (upid) WHERE s.category IN ('cuda_driver', 'kernel', 'gpu_memcpy', 'user_annotation') AND s.dur > 0"
BY_NAME = f"SELECT device, name, count(*) AS times, sum(dur) AS total_ns, max(dur) AS longest_ns FROM ({SLICES}) WHERE category = '%s' GROUP BY %s"
NAMED = ("times", "total_ns", "longest_ns")


def name_of_copy(row):
    return f"Memcpy {row['direction']} ({row['memory']})" if row["memory"] else f"Memcpy {row['direction']}"


@pytest.mark.parametrize("argv, env", PROGRAMS.values(), ids=PROGRAMS)
def test_perfetto_says_the_same(run_app, trace_processor, argv, env):
    run = run_app(argv, env=env).check()
    tables = report_of(run.trace)
    trace_processor.load(run.trace)

    def said(category, *keys, cells_of=NAMED):
        return {cells(row, *keys): cells(row, *cells_of) for row in trace_processor.query(BY_NAME % (category, ", ".join(keys)))}
    assert {cells(row, "call"): cells(row, *NAMED) for row in tables["calls"]} == said("cuda_driver", "name")
    assert {cells(row, "device", "name"): cells(row, *NAMED) for row in tables["kernels"]} == said("kernel", "device", "name")
    copies = {(row["device"], name_of_copy(row)): cells(row, "times", "total_ns") for row in tables["copies"]}
    assert copies == said("gpu_memcpy", "device", "name", cells_of=("times", "total_ns"))
    assert sum(row["bytes"] for row in tables["copies"]) == (trace_processor.value(
        "SELECT sum(int_value) FROM slice JOIN args USING (arg_set_id) WHERE category = 'gpu_memcpy' AND key = 'args.bytes'") or 0)
    ranges = collections.defaultdict(lambda: [0, 0])
    for row in tables["ranges"]:
        ranges[row["name"],] = [ranges[row["name"],][0] + row["times"], ranges[row["name"],][1] + row["total_ns"]]  # Perfetto's rows here have no domain
    assert {name: tuple(sums) for name, sums in ranges.items()} == said("user_annotation", "name", cells_of=("times", "total_ns"))
    assert tables["calls"] and bool(tables["ranges"]) == (argv[0] == "nvtx")
    for device in tables["devices"]:
        assert device["at_work_0"] == pytest.approx(device["idle"]) and sum(device[f"at_work_{n}"] for n in range(4)) == pytest.approx(1)


HTA = """
import json, sys
sys.path.insert(0, sys.argv[1])
import hta_check
hta = hta_check.analyse(sys.argv[2])
_, kernels = hta.get_gpu_kernel_breakdown(visualize=False, num_kernels=1000000, duration_ratio=1.0, include_memory_kernels=True)
temporal = hta.get_temporal_breakdown(visualize=False).iloc[0]
names = {name: [float(total), float(longest), float(mean)] for name, total, longest, mean in
         zip(kernels["name"], kernels["sum (us)"], kernels["max (us)"], kernels["mean (us)"])}
print("said", json.dumps({"names": names, "idle": float(temporal["idle_time(us)"]), "span": float(temporal["kernel_time(us)"])}))
"""


def test_hta_says_the_same(run_app, root):
    """Kernels and copies by name, in microseconds; how long the GPU was idle."""
    run = run_app(["demo"], env={"CUSTREAM_FAKE_COPY_NS": 20000, "CUSTREAM_FAKE_KERNEL_NS": 3000}).check()
    done = subprocess.run([sys.executable, "-c", HTA, root / "tests" / "gpu", run.trace], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    hta = json.loads(done.stdout.split("said ")[1])
    tables = report_of(run.trace)
    device = only(tables["devices"])
    assert (device["idle_ns"] / 1000, device["span_ns"] / 1000) == (pytest.approx(hta["idle"], abs=0.01), pytest.approx(hta["span"], abs=0.01))
    ours = {row["name"]: [row["total_ns"] / 1000, row["longest_ns"] / 1000, row["mean_ns"] / 1000] for row in tables["kernels"]}
    assert ours and set(ours) < set(hta["names"])
    for name, sums in ours.items():
        assert sums == pytest.approx(hta["names"][name], abs=0.01)
    for row in tables["copies"]:
        assert row["total_ns"] / 1000 == pytest.approx(hta["names"][name_of_copy(row)][0], abs=0.01)
