"""Traces of other tools, whose truth is known: three kernels of 10 us in 300 us, launched by process 1000. Either that is what is reported, or a line says what was left out."""
import json

import pytest

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
    "microseconds since 1970": [{**row, "ts": row["ts"] + EPOCH_US} for row in rows()],
    "work beside an annotation": [*rows(), {**kernel(0, 9, 310), "cat": "gpu_user_annotation"}],
}
LEFT_OUT = {
    "no time": ({key: value for key, value in kernel(0, 4).items() if key != "ts"}, "events without a time, or with one that cannot be: 1"),
    "236 years": (kernel(400, 4, 7447680000000000), "events without a time, or with one that cannot be: 1"),
    "no number": (kernel("soon", 4), "events without a time, or with one that cannot be: 1"),
    "nothing": ({}, "events without a phase: 1"),
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


@pytest.mark.parametrize("last", [False, True], ids=["names first", "names last"])
def test_lanes_of_xla(tmp_path, last):
    """Only those of streams have work; names may stand behind it. The last row is empty."""
    run, found, err = reported(put(tmp_path, xla(names=(lambda names, work: work + names) if last else (lambda names, work: names + work))))
    assert (run["calls"], found) == (0, (3, 0, 30000, 300000)) and err.endswith("events without a phase: 1\n")


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_is_left_out_is_said(tmp_path, name):
    row, said = LEFT_OUT[name]
    _, found, err = reported(put(tmp_path, [*rows(), row]))
    assert found == (3, 0, 30000, 300000) and err.endswith(f"left out: {said}\n") and err.count("\n") == 1


@pytest.mark.parametrize("events", [[], [{**row, "ts": row["ts"] + 10**18} for row in rows()], [{"ph": "X", "cat": "toplevel", "name": "f", "pid": 1, "tid": 1, "ts": 1, "dur": 1}]], ids=["none", "far", "other"])
def test_nothing_understood_is_refused(tmp_path, events):
    done = custream("report", put(tmp_path, events))
    assert done.returncode == 2 and not done.stdout and f"neither calls nor GPU work in it that are understood; events: {len(events)}" in done.stderr


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
