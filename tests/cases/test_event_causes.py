"""What a wait for an event waits for, where no call says so, and in captures: the programs of tests/apps/event_causes.c."""
import pytest

from tests.apprun import faithful
from tests.report import Report


@pytest.fixture
def run(run_app):
    """run(NAME): the trace of one of the programs, which did the same as without the shim."""
    return lambda name: faithful(run_app, ["event_causes", name])[1]


def waits(trace):
    """Of each wait for an event: on which stream, on which the trace says that it was recorded, and whether it says that this can't be known."""
    return [(e["args"].get("cs.stream"), e["args"].get("recorded on"), "recorded elsewhere" in e["args"]) for e in trace.host()
            if e["name"] in ("cuStreamWaitEvent", "cuEventSynchronize")]


def held(trace):
    """What work waited for: by kernel and stream."""
    return {(e["name"], e["args"]["stream"]): e["args"].get("waited for") for e in trace.gpu(cat="kernel") if "waited_us" in e["args"]}


def captured(trace):
    return [(e["name"], e["args"]["cs.stream"]) for e in trace.host() if "cs.captured" in e["args"]]


def events_blamed(trace):
    """By the report: findings about waits, and what the host waited for at an event."""
    report = Report(trace.path)
    findings = [row["id"] for row in report["findings"] if row["id"] in ("CS108", "CS109")]
    return findings, {row["for"] for row in report["host_waits"] if row["call"] == "cuEventSynchronize"}


def test_a_record_node_is_no_record(run):
    trace = run("node")
    assert waits(trace) == [(14, None, True)]
    assert captured(trace) == [("cuLaunchKernel", 13), ("cuEventRecordWithFlags", 13)]
    assert not trace.flows("cs_dep")
    assert trace.totals["gpu"]["kernels"] == 3


def test_a_fork_by_an_event_that_graphs_record_too(run):
    trace = run("node_and_fork")
    assert waits(trace) == [(14, None, True), (14, 13, False), (13, 14, False)]
    assert captured(trace)[2:] == [("cuEventRecord", 13), ("cuStreamWaitEvent", 14), ("cuLaunchKernel", 14), ("cuEventRecord", 14), ("cuStreamWaitEvent", 13)]
    assert trace.totals["gpu"]["launches_without_kernel"] == 0


def test_an_event_that_a_graph_has_recorded(run):
    trace = run("launched")
    assert waits(trace) == [(15, None, True), (None, None, True)]
    assert held(trace) == {("empty_kernel", 15): "not known"}
    assert not [flow for flow in trace.flows("cs_dep") if flow.start["name"] == "cuEventRecord"]
    assert events_blamed(trace) == ([], {"not known"})


@pytest.mark.parametrize("name", ["added", "params"])
def test_a_graph_made_by_hand(run, name):
    assert waits(run(name)) == [(15, None, True)]


@pytest.mark.parametrize("name, count", [("completion", 4), ("shared", 4)])
def test_nobody_is_accused_of_what_others_record(run, name, count):
    trace = run(name)
    assert waits(trace)[:count] == [(14, None, True)] * count
    assert events_blamed(trace)[0] == []


def test_a_captured_wait_waits_for_no_work(run):
    trace = run("fork_and_join")
    assert held(trace) == {("empty_kernel", 14): "not known"}
    assert not [e for e in trace.gpu(cat="kernel") if "event_wait_ids" in e["args"]]
    causes = {(row["cause"], row["times"]) for row in Report(trace.path)["idle"] if row["cause"] not in ("host", "launch")}
    assert causes <= {("memory_value", 1), ("unknown", 1)}


def test_a_capture_goes_with_its_stream(run):
    trace = run("origin_goes")
    assert captured(trace) == [("cuEventRecord", 13), ("cuStreamWaitEvent", 14), ("cuLaunchKernel", 14)]
    assert [flow.finish["name"] for flow in trace.flows("ac2g")] == ["sleep_us_20000", "empty_kernel"]
    (woken,) = [flow for flow in trace.flows("cs_dep") if flow.finish["name"] == "wake-up"]
    assert woken.start["name"] == "sleep_us_20000"


def test_hundreds_of_streams_in_one_capture(run):
    trace = run("wide")
    assert len(captured(trace)) == 2 + 4 * 300
    assert (trace.totals["gpu"]["kernels"], trace.totals["gpu"]["launches_without_kernel"]) == (300, 0)
