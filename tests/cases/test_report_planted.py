"""`custream report` on tests/apps/planted: programs that know why the GPU idles in them. Each has a mended twin, in which nothing of it may be found."""
import json
import re

import pytest

from tests.gputrace import works
from tests.report import Report
from tests.reportmodel import Model, check_idle, end_of, ns

COMMON = {"CUSTREAM_FAKE_DEVICES": 2, "CUSTREAM_FAKE_COPY_NS": 3_000_000, "CUSTREAM_FAKE_COPY_ENGINES": 1}
OWN = {"graph_edge": {"CUSTREAM_GRAPH": "node"}, "unknown": {"CUSTREAM_WINDOW": "profiler"}, "many_streams": {"CUSTREAM_FAKE_QUEUES": 8},
       "device_full": {"CUSTREAM_FAKE_FULL": 1}}
SHARE = 0.95  # of what a program planted and measured, so much at least must be found

# What the host's thread did while the GPU was idle.
HOST = {
    "own_code": ("own code", ""), "device_sync": ("own code", ""), "synchronous_copies": ("own code", ""), "pageable_copies": ("own code", ""),
    "blocked_stream": ("blocked", "cuStreamSynchronize"), "blocked_context": ("blocked", "cuCtxSynchronize"),
    "blocked_event": ("blocked", "cuEventSynchronize"), "blocked_copy": ("blocked", "cuMemcpyDtoH_v2"), "frees": ("in a call", "cuMemFree_v2"),
}
# The GPU was idle for these reasons of its own.
HELD = ["event_device", "event_chain", "event_gate", "event_host", "legacy_holds", "holds_legacy", "host_function", "graph_edge", "memory_value",
        "unknown"]
GRAPHS = {"graph_edge"}  # the model has none
# Streams ran one after the other for these causes, though the device was not idle.
SERIALIZED = {"copies": "copy_engine", "device_full": "device_full", "legacy_serial": "legacy", "legacy_blocking": "legacy", "many_streams": "hardware_queue"}
# Programs in which something is to be found, and what it costs at most: a figure that the report gives elsewhere, or None where no cost is known.
FINDINGS = {
    "legacy_holds": lambda report: legacy_cost(report), "holds_legacy": lambda report: legacy_cost(report),
    "legacy_serial": lambda report: legacy_cost(report), "legacy_blocking": lambda report: legacy_cost(report),
    "device_sync": lambda report: host_cost(report), "synchronous_copies": lambda report: host_cost(report), "pageable_copies": lambda report: host_cost(report),
    "frees": lambda report: host_cost(report, "cuMemFree_v2"), "launch_bound": lambda report: sum(report.idle_ns(0).values()),
    "early_record": None, "never_recorded": None, "wait_for_nothing": lambda report: host_cost(report, "cuStreamWaitEvent"), "many_events": None,
    "many_streams": lambda report: report.sums("serialized", "cause", "lost_ns")["hardware_queue"], "priorities": None, "spinning": None,
    "one_engine": lambda report: sum(row["total_ns"] for row in report["copies"]), "failing": None,
    "host_function": lambda report: report.idle_ns(0)["host_function"],
}


def legacy_cost(report):
    return sum(report.idle_ns(0).values()) + report.sums("serialized", "cause", "lost_ns")["legacy"]


def host_cost(report, *calls):
    """Idle time for the host's sake: in that call, or all of it."""
    return sum(row["idle_ns"] for row in report["idle_host"] if row["device"] == 0 and (not calls or row["call"] in calls))


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
    assert {row["doing"] for row in rows} == {doing}
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


@pytest.mark.parametrize("name", SERIALIZED)
def test_serialized(planted, name):
    told, trace, report = planted(name)
    lost = report.sums("serialized", "cause", "lost_ns")
    assert set(lost) == {SERIALIZED[name]}
    assert max(SHARE * told["cost_ns"], 1) <= lost[SERIALIZED[name]] <= sum(end_of(work) - ns(work["ts"]) for work in works(trace))
    assert not planted(name, "mended")[2]["serialized"]


@pytest.mark.parametrize("name", FINDINGS)
def test_finding(planted, name):
    told, _, report = planted(name)
    found = report.rows("findings", id=told["finding"])
    costs = [row["cost_ns"] for row in found]
    assert found
    assert all(row["title"] and row["evidence"] and row["remedy"] and row["page"] == f"docs/findings.md#{row['id'].lower()}" for row in found)
    if FINDINGS[name]:
        assert 0 < sum(costs) <= FINDINGS[name](report) / SHARE, found  # pairs of streams that lost next to nothing are not listed
    else:
        assert costs == [None] * len(found)


@pytest.mark.parametrize("name", FINDINGS)
def test_twin_has_nothing_to_find(planted, name):
    assert not planted(name, "mended")[2]["findings"]


def test_each_finding_and_program_is_here(root, run_app):
    """`planted` alone lists what there is."""
    rows = [json.loads(line) for line in run_app("planted", shim=False).check().stdout.splitlines()]
    ids = set(re.findall(r"^## (CS\d+)", (root / "docs/findings.md").read_text(encoding="utf-8"), re.M))
    assert {row["finding"] for row in rows if row["finding"]} == ids
    assert {row["name"] for row in rows if row["finding"]} == set(FINDINGS)
    assert {row["name"] for row in rows} == {*HOST, *HELD, *SERIALIZED, *FINDINGS, "own_order"}
