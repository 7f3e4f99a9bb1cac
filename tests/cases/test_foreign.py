"""Traces of other tools, whose truth is known: three kernels of 10 us in 300 us, launched by process 1000. Either that is what is reported, or a line says what was left out."""
import json
import zlib

import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

from tests.handmade import custream

EPOCH_US = 1682725898079484


def kernel(ts, n, dur=10, **more):
    return {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": ts, "dur": dur, "args": {"device": 0, "stream": 7, "correlation": n}, **more}


def launch(ts, n):
    return {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1000, "tid": 1000, "ts": ts, "dur": 5, "args": {"correlation": n}}


def rows(dur=10):
    return [launch(0, 1), kernel(10, 1, dur), launch(100, 2), kernel(110, 2, dur), launch(200, 3), kernel(300, 3, dur)]


def is_work(row):
    return row["cat"] == "kernel"


def xla(dur=10, names=lambda names, work: names + work):
    lanes = [{"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/device:GPU:0"}}, {"ph": "M", "pid": 1, "tid": 14, "name": "thread_name", "args": {"name": "Stream #14(Compute)"}},
             {"ph": "M", "pid": 1, "tid": 15, "name": "thread_name", "args": {"name": "XLA Ops"}}]
    work = [{"ph": "X", "pid": 1, "tid": tid, "ts": row["ts"], "dur": dur, "name": "fusion", "args": {"hlo_op": "add"}} for row in rows() if is_work(row) for tid in (14, 15)]
    return names(lanes, work) + [{}]


OLD = {"kernel": "Kernel", "cuda_runtime": "Runtime"}
WELL = {
    "today": rows(),
    "texts as times": [{**row, "ts": str(row["ts"]), "dur": str(row["dur"])} for row in rows()],
    "Kineto before 2022": [{**row, "cat": OLD[row["cat"]]} for row in rows()],
    "a GPU by name": [{**row, "pid": "GPU 0", "tid": "stream 7"} if is_work(row) else row for row in rows()],
    "a GPU by nothing but its name": [{**row, "pid": "GPU 0", "args": {"stream": 7, "correlation": row["args"]["correlation"]}} if is_work(row) else row for row in rows()],
    "numbers as texts": [{**row, "pid": str(row["pid"]), "tid": hex(row["tid"])} for row in rows()],
    "microseconds since 1970": [{**row, "ts": row["ts"] + EPOCH_US} for row in rows()],
    "work beside an annotation": [*rows(), {**kernel(0, 9, 310), "cat": "gpu_user_annotation"}],
}
LEFT_OUT = {
    "no time": ({key: value for key, value in kernel(0, 4).items() if key != "ts"}, "1 event without a usable time is left out"),
    "236 years": (kernel(400, 4, 7447680000000000), "1 event without a usable time is left out"),
    "not a number": (kernel("nan", 4), "1 event without a usable time is left out"),
    "no number": (kernel("soon", 4), "1 event without a usable time is left out"),
    "no phase": ({"name": "k", "ts": 1}, "1 event without a phase is left out"),
}


def put(folder, events, name="t.json"):
    (path := folder / name).write_text(json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": 1700000000000000000, "traceEvents": events}))
    return path


def reported(path):
    done = custream("report", "--json", path)
    assert done.returncode == 0, done.stderr
    tables = json.loads(done.stdout)["tables"]
    (run,), (device,) = tables["run"], tables["devices"]
    return run, (run["works"], device["device"], device["busy_ns"], device["span_ns"]), done.stderr


@pytest.mark.parametrize("name", WELL)
def test_the_truth_is_reported(tmp_path, name):
    run, found, err = reported(put(tmp_path, WELL[name]))
    assert (run["pid"], run["calls"], found, err) == (1000, 3, (3, 0, 30000, 300000), "")


def test_a_host_with_a_small_pid(tmp_path):
    """Containers have such. No GPU is called after it."""
    events = [{"ph": "M", "name": "process_name", "pid": 26, "tid": 0, "ts": 0, "args": {"name": "python"}}, *({**row, "pid": 0 if is_work(row) else 26} for row in rows())]
    run, found, err = reported(put(tmp_path, events))
    assert (run["program"], run["pid"], run["calls"], found, err) == ("python", 26, 3, (3, 0, 30000, 300000), "")


def test_a_gpu_is_told_from_another_by_its_name(tmp_path):
    """Rows of a host stand between them, and one without any process."""
    def named(n):
        return [{**row, "pid": f"GPU {n}", "args": {"stream": 7, "correlation": row["args"]["correlation"] + n}} if is_work(row) else {**row, "args": {"correlation": row["args"]["correlation"] + n}}
                for row in rows()]
    nobody = {"ph": "i", "s": "g", "name": "mark", "ts": 5}
    done = custream("report", "--json", put(tmp_path, [row for pair in zip(named(10), named(21), [nobody] * 6) for row in pair]))
    devices = json.loads(done.stdout)["tables"]["devices"]
    assert done.returncode == 0 and [(row["device"], row["works"], row["busy_ns"]) for row in devices] == [(10, 3, 30000), (21, 3, 30000)]


@pytest.mark.parametrize("last", [False, True], ids=["names first", "names last"])
def test_lanes_of_xla(tmp_path, last):
    """Only those of streams have work; names may stand behind it. The last row is empty, and no event."""
    run, found, err = reported(put(tmp_path, xla(names=(lambda names, work: work + names) if last else (lambda names, work: names + work))))
    assert (run["calls"], found) == (0, (3, 0, 30000, 300000)) and not err


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_is_left_out_is_said(tmp_path, name):
    row, said = LEFT_OUT[name]
    _, found, err = reported(put(tmp_path, [*rows(), row]))
    assert found == (3, 0, 30000, 300000) and err.endswith(f"{said}\n") and err.count("\n") == 1


@pytest.mark.parametrize("events", [[], [{**row, "ts": row["ts"] + 10**18} for row in rows()], [{"ph": "X", "cat": "toplevel", "name": "f", "pid": 1, "tid": 1, "ts": 1, "dur": 1}]], ids=["none", "far", "other"])
def test_nothing_understood_is_refused(tmp_path, events):
    done = custream("report", put(tmp_path, events))
    assert done.returncode == 2 and not done.stdout and f"no call and no GPU work in it is understood; it has {len(events)} events" in done.stderr


def test_half_a_pair_of_surrogates_is_a_character(tmp_path):
    """Python writes such for bytes that are no UTF-8. The text goes on behind it."""
    path = put(tmp_path, [{**row, "name": "k\ud83d \ude00\ud83d\ude00 \\ud83d"} if is_work(row) else row for row in rows()])
    done = custream("report", "--json", path)
    assert done.returncode == 0 and reported(path)[1] == (3, 0, 30000, 300000)
    assert {row["name"] for row in json.loads(done.stdout)["tables"]["kernels"]} == {"k\ufffd \ufffd\U0001f600 \\ud83d"}


def packets(*more):
    """Three calls of another producer, and these packets."""
    trace = Trace()
    track = trace.packet.add().track_descriptor
    track.uuid, track.thread.pid, track.thread.tid = 11, 1000, 1001
    for at in range(3):
        for kind, ns in ((1, 0), (2, 5000)):
            packet = trace.packet.add(timestamp=at * 100000 + ns)
            packet.track_event.type, packet.track_event.track_uuid = kind, 11
            if kind == 1:
                packet.track_event.name, packet.track_event.categories[:] = "cudaLaunchKernel", ["cuda_runtime"]
    for compressed in more:
        trace.packet.add(compressed_packets=compressed)
    return trace.SerializeToString()


def calls_of(tmp_path, data):
    (path := tmp_path / "t.pftrace").write_bytes(data)
    done = custream("report", "--json", path)
    return done.returncode, json.loads(done.stdout)["tables"]["run"][0]["calls"] if done.stdout else None, done.stderr


def test_packets_of_another_producer(tmp_path):
    """A whole file is whole; compressed packets count like others, and damaged ones are told."""
    assert calls_of(tmp_path, packets()) == (0, 3, "")
    assert calls_of(tmp_path, packets(zlib.compress(packets()))) == (0, 6, "")
    rc, calls, err = calls_of(tmp_path, packets(zlib.compress(packets())[:-9], zlib.compress(packets() * 3000, 0)))
    assert (rc, calls) == (2, None) and "damaged: no packet of Perfetto's format begins at byte" in err


@pytest.mark.parametrize("make", [WELL["texts as times"], WELL["Kineto before 2022"], None], ids=["texts", "old", "xla"])
def test_a_difference_is_seen(tmp_path, make):
    """Each kernel takes four times as long."""
    before = make or xla()
    after = xla(40) if make is None else [{**row, "dur": type(row["dur"])(40)} if "ernel" in row["cat"] else row for row in make]
    done = custream("diff", put(tmp_path, before, "a.json"), put(tmp_path, after, "b.json"))
    assert done.returncode == 0 and "Nothing changed" not in done.stdout and "+90.00 us" in done.stdout


@pytest.mark.parametrize("name", ["microseconds since 1970", "texts as times", "xla"])
def test_any_is_merged(tmp_path, name):
    events = xla() if name == "xla" else WELL[name]
    assert custream("merge", "--align=start", "-o", tmp_path / "m.json", put(tmp_path, events)).returncode == 0
    merged = [row for row in json.loads((tmp_path / "m.json").read_text())["traceEvents"] if row["ph"] == "X"]
    assert len(merged) == len([row for row in events if row.get("ph") == "X"]) and min(row["ts"] for row in merged) == 0
