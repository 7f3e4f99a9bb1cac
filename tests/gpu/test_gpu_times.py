"""On a real GPU: the times and places of its work in the trace are those that the program, CUPTI and the profilers say. See docs/check-gpu.md.

    python3 -m pytest tests/gpu/test_gpu_times.py
    CUSTREAM_GPU_SIMULATED=1 python3 -m pytest tests/gpu/test_gpu_times.py    # of the tests what a simulated GPU can show
"""
import collections
import functools
import os
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import observe  # noqa: E402
import times  # noqa: E402
from known import known_run  # noqa: E402
from times import gpu_only, program, real_only, report, run, run_well  # noqa: E402
from tests.trace import level_of  # noqa: E402

pytestmark = gpu_only


# --- a program that knows what it did ---

WAYS = [(build, source, graph) for build in ("driver", "runtime") if build == "driver" or not observe.SIMULATED
        for source, graph in (("cupti", "graph"), ("cupti", "node"), ("events", "graph"))]


@pytest.fixture(params=WAYS, ids="-".join)
def way(request):
    """(what the report calls the run, the run, where its GPU times come from, how graphs are shown)"""
    build, source, graph = request.param
    return "known-" + "-".join(request.param), known_run(*request.param), source, graph


def test_all_work_is_there_once(way):
    """Every kernel, copy, memset and graph launch exactly once, with what it is called and how much it moved; and nothing else."""
    name, known, source, graph = way
    for op in known.ops:
        found = known.found[op["id"]]
        pieces = len(known.nodes) if op["kind"] == "graph" and graph == "node" else 1
        if op["kind"] in ("copy", "memset"):
            assert found, f"{op} is not in the trace"
        else:
            assert len(found) == pieces, f"{op} is {len(found)} times in the trace, and not {pieces}"
        for e in found:
            if op["kind"] == "kernel":
                assert e["name"].startswith(op["name"]) or op["name"] in e["name"], (op, e)
            if op["kind"] == "memset":
                assert e["args"]["value"] & 0xff == op["value"], (op, e)
            if op["kind"] == "copy":
                assert e["name"].startswith("Memcpy " + op["direction"]), (op, e)
            if op["kind"] == "copy" and source == "cupti":
                ends = {"HtoD": (op["memory"], "Device"), "DtoH": ("Device", op["memory"]), "DtoD": ("Device", "Device")}[op["direction"]]
                assert e["name"].endswith("({} -> {})".format(*ends)), (op, e)
    in_graphs = sum(n["launches"] for n in known.nodes) if graph == "node" else 0
    kernels = len(times.work_of(known.trace, "kernel"))
    assert kernels == len(known.of_kind("kernel")) + in_graphs, f"{kernels} kernels in the trace"
    for kind, category in (("copy", "gpu_memcpy"), ("memset", "gpu_memset")):
        calls = {e["args"].get("correlation") for e in times.work_of(known.trace, category)}
        assert len(calls) == len(known.of_kind(kind)), f"{category}: {len(calls)} calls"
        report(name, f"{category} slices for {len(calls)} calls", len(times.work_of(known.trace, category)))
    assert not times.work_of(known.trace, "gpu_range")
    totals = times.gpu_totals(known.trace)
    assert totals["kernels"] == kernels and totals["graphs"] == (0 if graph == "node" else len(known.of_kind("graph"))), totals
    times.assert_whole(known.trace)
    times.assert_checked(known.trace)
    report(name, "kernels", kernels)


def test_work_stands_on_its_stream(way):
    """On the lane of the stream that the program put it on; lanes in the order in which the streams were made."""
    name, known, source, graph = way
    lanes = [known.lane(s["index"]) for s in known.streams]
    assert lanes == sorted(set(lanes)), f"lanes of streams in the order of their creation: {lanes}"
    extra = 0
    for op in known.ops:
        if op["kind"] == "graph" and graph == "node":
            continue
        for e in known.found[op["id"]]:
            assert times.lane_of(e) == e["args"]["stream"] == known.lane(op["stream"]) and e["pid"] == 0, (op, e)
            extra += level_of(e["tid"]) > 0
            if op["stream"] >= 0:
                assert e["args"].get("priority", 0) == known.streams[op["stream"]]["priority"], (op, e)
    streams = {n["grid"]: n["stream"] for n in known.nodes if graph == "node"}
    nodes = [e for e in times.work_of(known.trace, "kernel") if e["args"]["grid"][0] in streams]
    assert len(nodes) == sum(n["launches"] for n in known.nodes if graph == "node")
    for e in nodes:  # a node on the stream that it was captured from, wherever the driver ran it
        assert level_of(e["tid"]) == 0 and times.lane_of(e) == known.lane(streams[e["args"]["grid"][0]]), e
    report(name, "slices on extra lanes", extra)
    assert extra == 0, "work of a stream never overlaps here"


def test_nothing_begins_before_its_cause_has_ended(way):
    name, known, _, _ = way
    gaps = []
    for op in known.ops:
        for cause in op["after"]:
            before, after = known.last(cause), known.begin(op["id"])
            allowed = times.error_us(before) + times.error_us(after) + 0.002  # and the rounding of two times
            gaps.append((after["ts"] - times.end(before), allowed, cause, op["id"]))
    for launch in known.launches if known.nodes and len(known.launches[0]) > 1 else []:
        at = {e["args"]["grid"][0]: e for e in launch}
        gaps += [(at[n["grid"]]["ts"] - times.end(at[cause]), 0.002, cause, n["grid"]) for n in known.nodes for cause in n["after"]]
    report(name, f"smallest of {len(gaps)} gaps between cause and effect", min(gaps)[0], "us")
    wrong = sorted(g for g in gaps if g[0] < -g[1])
    assert not wrong, "(us from the cause's end to the effect's begin, allowed, cause, effect)\n" + "\n".join(map(str, wrong[:20]))


def test_kernels_are_as_long_as_events_measured(way):
    """Within 5 %; and no kernel is shorter than it spins."""
    name, known, _, _ = way
    off = []
    for op in known.of_kind("kernel"):
        e = known.found[op["id"]][0]
        assert e["dur"] >= op["us"] * 0.98 - times.error_us(e), (op, e)
        if "ms" in op:
            off.append((abs(e["dur"] - op["ms"] * 1000) - times.error_us(e), op["ms"] * 1000, e["dur"], op["id"], op["timed"]))
    assert len(off) == 44
    for timed in (True, False):
        report(name, f"largest deviation of a length, {'the kernel with the events' if timed else 'its twin without'}",
               max(abs(o[2] - o[1]) / o[1] for o in off if o[4] == timed) * 100, "%")
    wrong = [o for o in off if o[0] > 0.05 * o[1]]
    assert not wrong, "(us apart, us by events, us in the trace, op, timed)\n" + "\n".join(map(str, wrong[:20]))


def same_kernel(host, gpu):
    """The host's slice has the kernel's symbol, or the short form of what people read."""
    return host in gpu["name"] or times.plain_name(host) == times.plain_name(gpu["name"])


def test_each_has_an_arrow_from_its_call(way):
    name, known, _, graph = way
    flows = [f for f in known.trace.flows("ac2g")]
    assert all(f.start and f.finish for f in flows)
    ends = collections.Counter(id(f.finish) for f in flows)
    calls = times.arrows(known.trace)
    prefix = {"kernel": "cuLaunchKernel", "copy": "cuMemcpy", "memset": "cuMemset", "graph": "cuGraphLaunch"}
    order = []
    for op in known.ops:
        for e in known.found[op["id"]]:
            assert ends[id(e)] == 1, f"{ends[id(e)]} arrows lead to {e}"
            call = calls[id(e)]
            assert call["name"].startswith(prefix[op["kind"]]) and call["args"]["cs.stream"] == known.lane(op["stream"]), (op, call, e)
            assert call["args"]["correlation"] == e["args"]["correlation"] and call["ts"] <= e["ts"], (call, e)
            if op["kind"] == "kernel":
                assert call["args"].get("grid", e["args"]["grid"]) == e["args"]["grid"] == [op["grid"], 1, 1] and same_kernel(call["args"]["kernel"], e), (call, e)
        order.append(calls[id(known.found[op["id"]][0])])
    assert [c["ts"] for c in order] == sorted(c["ts"] for c in order), "the calls are not in the program's order"
    assert len({id(c) for c in order}) == len(order), "one call made two of the program's pieces of work"
    whole = sum(len(known.found[op["id"]]) for op in known.ops)
    assert len(flows) == whole, f"{len(flows)} arrows for {whole} pieces of work"
    raw = sum("cs.raw_start_ns" in e["args"] for found in known.found.values() for e in found)
    report(name, "slices that CUPTI began before their call", raw)


def test_graphs(way):
    name, known, _, graph = way
    launches = known.of_kind("graph")
    least = 450 * 0.98  # the longer of the two branches, and what is before and behind
    assert len(known.launches) == len(launches) == known.nodes[0]["launches"]
    if graph == "node":
        for launch in known.launches:
            assert sorted(e["args"]["grid"][0] for e in launch) == sorted(n["grid"] for n in known.nodes)
            assert all("graph node" in e["args"] and e["args"].get("graph") for e in launch), launch
            assert max(map(times.end, launch)) - launch[0]["ts"] >= least
            for n, e in ((n, e) for n in known.nodes for e in launch if e["args"]["grid"][0] == n["grid"]):
                assert n["us"] * 0.98 <= e["dur"] <= n["us"] * 1.1 + 20, (n, e)
    else:
        for launch in known.launches:
            assert len(launch) == 1 and launch[0]["cat"] == "gpu_graph" and launch[0]["dur"] >= least - times.error_us(launch[0]), launch
        report(name, "longest of the graph launches (450 us at the least)", max(launch[0]["dur"] for launch in known.launches), "us")


# --- another client of CUPTI ---

def client_environment(name, **more):
    env = dict(more, CUPTI_CLIENT_OUT=os.path.join(observe.TRACES, name + ".client.%p.json"))
    cupti = os.environ.get("CUPTI_COUNT_LIB") or observe.toolkit_library("libcupti.so.1[2-9]")
    if cupti and not observe.SIMULATED:
        env["CUPTI_COUNT_LIB"] = cupti
    return env


def client_run(name, shim, build="driver", **more):
    """A run with the plain client in it: the run, its trace (None without the shim), the client's records."""
    done, trace = run_well(name, [program(f"known-{build}")], shim=shim, preload=[times.CLIENT], **client_environment(name, **more))
    path = observe.keep(name + ".client.%p.json", done.pid, name + ".client.json")
    assert path, "the client wrote nothing\n" + done.tail()
    assert "cupti_client:" not in done.stderr, done.stderr
    with open(path, encoding="utf-8") as file:
        return done, trace, times.lines_of(file.read())


def counts_of(records):
    """What a client has of each kind; names as they come."""
    return collections.Counter((r["kind"], r.get("name"), r.get("grid"), r.get("bytes")) for r in records if r["kind"] != "clock")


@functools.lru_cache(maxsize=None)
def client_alone(build):
    return client_run(f"client-{build}-alone", False, build)


@pytest.mark.parametrize("build", ["driver"] if observe.SIMULATED else ["driver", "runtime"])
@pytest.mark.parametrize("clock", ["cupti", "own"])
def test_a_plain_client_sees_the_same(build, clock):
    """The client has the same work as without the shim, and the same times as the trace, to the microsecond."""
    name = f"client-{build}-{clock}"
    _, trace, records = client_run(name, True, build, CUSTREAM_GPU="cupti", CUPTI_CLIENT_CLOCK=clock)
    alone = counts_of(client_alone(build)[2])
    under = counts_of(records)
    assert under == alone, "with / without the shim\n" + times.differing(under, alone)
    report(name, "records of the client, as many as without the shim", sum(under.values()))

    # The client's clock is the time of day in both modes; the pairs that it took at begin and end say by how much that is not so.
    clocks = [r for r in records if r["kind"] == "clock"]
    off = [r["cupti"] - r["realtime"] for r in clocks]
    assert len(clocks) == 2 and all(r["result"] == 0 for r in clocks), clocks
    report(name, "CUPTI's clock less the time of day, at begin and end", f"{off[0] / 1000:.3f} {off[1] / 1000:.3f}", "us")
    ours, theirs = collections.defaultdict(list), collections.defaultdict(list)
    for e in times.work_of(trace, "kernel", "gpu_memcpy", "gpu_memset"):
        ours[e["cat"], e["args"]["grid"][0] if e["cat"] == "kernel" else e["args"]["bytes"]].append(e)
    category = {"kernel": "kernel", "copy": "gpu_memcpy", "memset": "gpu_memset"}
    for r in sorted((r for r in records if r["kind"] in category), key=lambda r: r["start"]):
        theirs[category[r["kind"]], r["grid"] if r["kind"] == "kernel" else r["bytes"]].append(r)
    assert {k: len(v) for k, v in ours.items()} == {k: len(v) for k, v in theirs.items()}
    begins, lengths = [], []
    for key, slices in ours.items():
        for e, r in zip(slices, theirs[key]):
            begins.append((times.begin_ns(trace, e) - (r["start"] - off[0])) / 1000)
            if "cs.raw_start_ns" not in e["args"]:
                lengths.append(e["dur"] - (r["end"] - r["start"]) / 1000)
            if e["cat"] == "kernel":
                assert times.plain_name(e["name"]) == times.plain_name(r["name"])
    begins.sort(key=abs)
    report(name, f"begins of {len(begins)} pieces of work, trace less client: median", begins[len(begins) // 2], "us")
    report(name, "the farthest apart", begins[-1], "us")
    report(name, "lengths, the farthest apart", max(lengths, key=abs), "us")
    assert max(map(abs, lengths)) <= 1 and abs(begins[len(begins) // 2]) <= 1 and abs(begins[-1]) <= 3


def test_a_client_that_comes_first_keeps_its_records():
    """Then CUPTI's times are the client's, and the trace says so; with CUSTREAM_GPU=auto it has those of events."""
    alone = counts_of(client_alone("driver")[2])
    for source, expected in (("cupti", "none"), ("auto", "events")):
        _, trace, records = client_run(f"client-first-{source}", True, CUSTREAM_GPU=source, CUPTI_CLIENT_EARLY="1")
        assert counts_of(records) == alone
        assert times.gpu_totals(trace)["source"] == expected and any("another profiler" in cause for cause in times.losses(trace)), times.losses(trace)
        times.assert_checked(trace)


@real_only
def test_which_calls_cupti_records():
    """What the backend relies on, and the simulated CUPTI does: by what was asked for when, which record of a call has the number of its work."""
    cupti = os.environ.get("CUPTI_COUNT_LIB") or observe.toolkit_library("libcupti.so.1[2-9]")
    modes = subprocess.run([program("cupti_calls")], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    assert len(modes) == 21
    wrong = []
    for mode in modes:
        done, _ = run("cupti-calls-" + mode, [program("cupti_calls"), mode], shim=False, **({"CUPTI_COUNT_LIB": cupti} if cupti else {}))
        report("cupti_calls " + mode, "records of calls", done.stdout.replace("\n", " ").strip())
        wrong += [f"{mode}: {done.stdout}{done.stderr}"] if done.status else []
    assert not wrong, "\n".join(wrong)
