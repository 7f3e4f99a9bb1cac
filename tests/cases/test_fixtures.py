"""The fixtures that the other cases lean on: a strict reader of traces, and a clean way to start programs."""
import gzip
import json

import pytest

from tests.trace import Trace

EVENTS = [
    {"ph": "M", "name": "process_name", "pid": 4242, "tid": 4242, "args": {"name": "app"}},
    {"ph": "M", "name": "thread_name", "pid": 4242, "tid": 4250, "args": {"name": "worker"}},
    {"ph": "M", "name": "process_name", "pid": 0, "tid": 7, "args": {"name": "GPU 0 NVIDIA H200"}},
    {"ph": "M", "name": "thread_name", "pid": 0, "tid": 13, "args": {"name": "stream 13 prio -5"}},
    {"ph": "X", "cat": "cuda_driver", "name": "cuLaunchKernel", "pid": 4242, "tid": 4250, "ts": 1.0, "dur": 2.5, "args": {"correlation": 1}},
    {"ph": "X", "cat": "cuda_driver", "name": "cuInner", "pid": 4242, "tid": 4250, "ts": 1.5, "dur": 1.0, "args": {}},
    {"ph": "s", "id": 1, "pid": 4242, "tid": 4250, "ts": 1.0, "cat": "cs_dep", "name": "cs_dep"},
    {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 13, "ts": 4.0, "dur": 9.0, "args": {"stream": 13}},
    {"ph": "f", "bp": "e", "id": 1, "pid": 0, "tid": 13, "ts": 4.0, "cat": "cs_dep", "name": "cs_dep"},
    {"ph": "b", "cat": "wait", "name": "wait", "id": 5, "pid": 0, "tid": 13, "ts": 2.0},
    {"ph": "e", "cat": "wait", "name": "wait", "id": 5, "pid": 0, "tid": 13, "ts": 4.0},
    {"ph": "C", "name": "stream 13 depth", "pid": 0, "tid": 13, "ts": 2.0, "args": {"n": 1}},
]
FILE = {"metadata": {"tool": "custream"}, "traceEvents": EVENTS, "totals": {"recorded": 2, "lost_records": 0}}


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lambda data: gzip.compress(data[:50]) + gzip.compress(data[50:])],
                         ids=["json", "gz", "gz-members"])
def test_views_of_a_trace(load_trace, tmp_path, pack):
    path = tmp_path / "trace"
    path.write_bytes(pack(json.dumps(FILE).encode()))
    trace = load_trace(path, judged=False)
    assert (trace.metadata["tool"], trace.totals["recorded"]) == ("custream", 2)
    assert trace.gpus == {0} and trace.lanes == {(0, 13): "stream 13 prio -5"} and trace.threads == {4250: "worker"}
    assert [e["name"] for e in trace.host()] == ["cuLaunchKernel", "cuInner"] and trace.count() == {"cuLaunchKernel": 1, "cuInner": 1}
    assert [e["name"] for e in trace.gpu(cat="kernel")] == ["k"] and trace.host("k") == []
    (flow,) = trace.flows("cs_dep")
    assert (flow.id, flow.start["name"], flow.finish["name"]) == (1, "cuLaunchKernel", "k")
    covering = {ts: trace.slice_at({"pid": 0, "tid": 13, "ts": ts}) for ts in (0.4, 1.0, 4.0, 13.0, 14.0, 31.0)}
    assert {ts: e and e["name"] for ts, e in covering.items()} == {0.4: None, 1.0: None, 4.0: "k", 13.0: "k", 14.0: None, 31.0: None}
    assert trace.spans("wait") == [("wait", 5, 2.0, 4.0)] and trace.counters("stream 13 depth") == [(2.0, {"n": 1})]


@pytest.mark.parametrize("data", [b'{"a": NaN}', b'{"a": 1, "a": 2}', b'{"a": "\xff"}', b'{"a": "\x01"}', b'{"a": 1}]', b'{"a": 1'])
def test_reader_is_strict(tmp_path, data):
    path = tmp_path / "trace.json"
    path.write_bytes(data)
    with pytest.raises((ValueError, AssertionError)):
        Trace(path, judged=False)


def test_flow_with_one_end_is_an_error(load_trace, tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": [e for e in EVENTS if e["ph"] != "f"]}), encoding="utf-8")
    with pytest.raises(AssertionError, match="one end only"):
        load_trace(path, judged=False).flows()


def test_run_app_sets_what_it_says(run_app, monkeypatch, build):
    """The child sees the simulated GPU and a trace path of its own; of custream's variables around pytest it sees none."""
    monkeypatch.setenv("CUSTREAM_PRIORITY", "0:-1")
    script = 'echo "$LD_LIBRARY_PATH|$CUSTREAM_TRACE|$CUSTREAM_PRIORITY|$LD_PRELOAD|$EXTRA"; echo error >&2; exit 3'
    first = run_app(["/bin/sh", "-c", script], shim=False, env={"EXTRA": 1})
    assert (first.rc, first.stderr) == (3, "error\n")
    assert first.stdout == f"{build / 'fakecuda'}|{first.trace}|||1\n"
    second = run_app(["/bin/sh", "-c", script], shim=False, env={"CUSTREAM_TRACE": None})
    assert second.trace != first.trace and second.stdout == f"{build / 'fakecuda'}||||\n"
    with pytest.raises(AssertionError, match="ended with 3"):
        first.check()
