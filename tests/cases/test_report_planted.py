"""`custream report` on tests/apps/planted: programs that know why the GPU idles in them. Each has a mended twin, in which nothing of it may be found."""
import json
import re

import pytest

from tests.report import Report
from tests.reportmodel import Model, check_idle, end_of, ns

COMMON = {"CUSTREAM_FAKE_DEVICES": 2, "CUSTREAM_FAKE_COPY_NS": 3_000_000, "CUSTREAM_FAKE_COPY_ENGINES": 1}
OWN = {"graph_edge": {"CUSTREAM_GRAPH": "node"}, "unknown": {"CUSTREAM_WINDOW": "profiler"}, "many_streams": {"CUSTREAM_FAKE_QUEUES": 8},
       "device_full": {"CUSTREAM_FAKE_FULL": 1}}
SHARE = 0.95  # of what a program planted and measured, so much at least must be found

# What the host's thread did while the GPU was idle.
HOST = {
    **dict.fromkeys(["own_code", "device_sync", "synchronous_copies", "pageable_copies"], ("waiting outside CUDA", "")),  # they sleep
    "blocked_stream": ("blocked", "cuStreamSynchronize"), "blocked_context": ("blocked", "cuCtxSynchronize"),
    "blocked_event": ("blocked", "cuEventSynchronize"), "blocked_copy": ("blocked", "cuMemcpyDtoH_v2"), "frees": ("in a call", "cuMemFree_v2"),
}
# The GPU was idle for these reasons of its own.
HELD = ["event_device", "event_chain", "event_gate", "event_host", "legacy_holds", "holds_legacy", "host_function", "graph_edge", "memory_value",
        "unknown"]
GRAPHS = {"graph_edge"}  # the model has none
# Streams ran one after the other, and nothing is gained by more streams.
CROWDED = ["copies", "device_full"]
# Programs in which something is to be found, and what mending it wins, as the program measured it: "cost_ns" or "idle_ns". SOME: something else than that, as
# what was planted is held by more than one thing: a pause of the host stays without the copy before it. None: no gain is known.
SOME = "some"
FINDINGS = {
    "legacy_holds": SOME, "holds_legacy": SOME, "legacy_serial": "cost_ns", "legacy_blocking": "cost_ns", "device_sync": SOME, "synchronous_copies": SOME,
    "pageable_copies": SOME, "frees": SOME, "launch_bound": SOME, "early_record": None, "never_recorded": None, "wait_for_nothing": SOME, "many_events": None,
    "many_streams": SOME, "priorities": None, "spinning": None, "one_engine": SOME, "failing": None, "host_function": "idle_ns",
}


@pytest.fixture
def planted(run_app):
    """planted(name, "mended") runs a program, and is what it says of itself, its trace as data, and the report of it."""
    def run(name, *twin):
        ran = run_app(["planted", name, *twin], env={**COMMON, **OWN.get(name, {})}).check()
        return json.loads(ran.stdout), ran.load(), Report(ran.trace)
    return run


@pytest.mark.parametrize("name", [*HOST, *HELD])
def test_cause(planted, name):
    told, trace, report = planted(name)
    found = check_idle(trace, report, name not in GRAPHS)
    assert found[told["cause"]] >= SHARE * told["idle_ns"] > 0, (found, told)


@pytest.mark.parametrize("name", [*HOST, *HELD])
def test_twin_has_no_such_cause(planted, name):
    planned = planted(name)[0]
    told, trace, report = planted(name, "mended")
    found = check_idle(trace, report, name not in GRAPHS)
    assert found[told["cause"]] <= (1 - SHARE) * planned["idle_ns"], (found, planned)


def thread_did(trace):
    """What the thread that enqueued the next work did while device 0 was idle for the host's sake: ns by the name of the call, "" for none."""
    model, did = Model(trace), {"": 0}
    for begin, end, (work, *_) in model.gaps(0):
        next_call = model.op_of(work).call
        enqueued = min(ns(next_call["ts"]), end)
        did[""] += max(enqueued - begin, 0)
        for call in trace.host(cat="cuda_driver"):
            within = min(end_of(call), enqueued) - max(ns(call["ts"]), begin)
            if call["tid"] == next_call["tid"] and within > 0:
                did[call["name"]] = did.get(call["name"], 0) + within
                did[""] -= within
    return did


@pytest.mark.parametrize("name", HOST)
def test_what_the_host_did(planted, name):
    told, trace, report = planted(name)
    assert {**report.sums("idle_host", "call", "idle_ns", device=0)} == {call: took for call, took in thread_did(trace).items() if took}
    doing, call = HOST[name]
    rows = report.rows("idle_host", device=0, call=call)
    assert rows[0]["doing"] == doing and {row["doing"] for row in rows} <= {doing, "own code"}, "what is shorter than a pause is own code"
    took = [row["idle_ns"] for row in report["idle_host"]]
    assert took == sorted(took, reverse=True), "the most expensive row is first"


def test_launches_that_take_longer_than_kernels(planted):
    """All of the idle time is the host's, or the launches' way to the GPU."""
    told, trace, report = planted("launch_bound")
    found = check_idle(trace, report)
    assert found["host"] + found["launch"] >= told["idle_ns"] > 0, (found, told)
    assert not check_idle(*planted("launch_bound", "mended")[1:])


def test_one_stream_in_order(planted):
    """A stream with enough before it leaves the device no idle time, whatever holds each kernel."""
    _, trace, report = planted("own_order")
    check_idle(trace, report)
    (device,) = report.rows("devices", device=0)
    assert device["idle_ns"] < (1 - SHARE) * device["busy_ns"]


def gain(report, finding):
    """The largest of that finding, and whether there is one."""
    rows = report.rows("findings", id=finding)
    return max((row["gain_high_ns"] or 0 for row in rows), default=0), bool(rows)


@pytest.mark.parametrize("name", FINDINGS)
def test_finding(planted, name):
    told, _, report = planted(name)
    rows = report.rows("findings", id=told["finding"])
    assert rows
    assert all(row["title"] and row["evidence"] and row["remedy"] and row["page"] == f"docs/findings.md#{row['id'].lower()}" for row in rows)
    if FINDINGS[name]:
        planned = 0 if FINDINGS[name] == SOME else told[FINDINGS[name]]
        assert all(0 <= row["gain_low_ns"] <= row["gain_high_ns"] for row in rows)
        assert max(0.9 * planned, 1) <= gain(report, told["finding"])[0] <= report["run"][0]["wall_ns"], (rows, told)
    else:
        assert all(row["gain_low_ns"] is None and row["gain_high_ns"] is None for row in rows)


@pytest.mark.parametrize("name", FINDINGS)
def test_twin_has_nothing_of_it(planted, name):
    """Or a twentieth of what the program has. Something else may be found in either: a GPU that is busy, or work that could run side by side."""
    told, _, report = planted(name)
    there, here = gain(report, told["finding"]), gain(planted(name, "mended")[2], told["finding"])
    assert here[0] <= 0.05 * there[0] and (FINDINGS[name] or not here[1])


OTHERS = {"CS117", "CS118", "CS119", "CS120", "CS121", "CS122", "CS123", "CS124", "CS125", "CS126", "CS127", "CS128"}  # tests/cases/test_report_findings.py has a story for each


def test_each_finding_and_program_is_here(root, run_app):
    """`planted` alone lists what there is."""
    rows = [json.loads(line) for line in run_app("planted", shim=False).check().stdout.splitlines()]
    ids = set(re.findall(r"^## (CS\d+)", (root / "docs/findings.md").read_text(encoding="utf-8"), re.M))
    assert {row["finding"] for row in rows if row["finding"]} == ids - OTHERS
    assert {row["name"] for row in rows if row["finding"]} == set(FINDINGS)
    assert {row["name"] for row in rows} == {*HOST, *HELD, *CROWDED, *FINDINGS, "own_order"}
