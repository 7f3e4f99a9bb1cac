"""NVTX: ranges, marks and names of a program in the timeline, and that nothing of how they get there is left behind."""
import collections
import itertools
import os
import re
import subprocess

import pytest

from tests.apprun import both, calls_in, calls_of, faithful, notes_of, read, said
from tests.gputrace import end_of
from tests.perfetto import assert_clean
from tests.trace import cut

KEEP_ALL = {"CUSTREAM_FULL": "block"}


def ns(us):
    return round(us * 1000)


def ranges(trace, name=None):
    """Slices of pushed ranges, in order of their begin."""
    return sorted(trace.host(name, cat="user_annotation"), key=lambda e: e["ts"])


def marks(trace):
    return [e for e in trace.instants if e["cat"] == "user_annotation"]


def spans(trace, name):
    """Async spans of that name: (begin, end), each the whole event."""
    ends = collections.defaultdict(dict)
    for e in trace.events:
        if e["ph"] in "be" and e["name"] == name:
            assert e["ph"] not in ends[e["id2"]["local"]]
            ends[e["id2"]["local"]][e["ph"]] = e
    return [(e["b"], e.get("e")) for e in ends.values()]


def span(trace, name):
    (found,) = spans(trace, name)
    return found


def path_of(trace, event):
    """The names of the slices that enclose an event of a host thread, the outermost first."""
    at, end = ns(event["ts"]), ns(event["ts"]) + ns(event.get("dur", 0))
    around = [e for e in trace.host() if e["tid"] == event["tid"] and e is not event and ns(e["ts"]) <= at and ns(e["ts"]) + ns(e["dur"]) >= end]
    return [e["name"] for e in sorted(around, key=lambda e: (e["ts"], -e["dur"]))]


def one(events):
    (event,) = events
    return event


def nvtx(run_app, *argv, **options):
    return faithful(run_app, ["nvtx", *argv], **options)


# ---- What a program says, and where it stands ----

def test_ranges_enclose_the_calls_in_them(run_app):
    run, trace = nvtx(run_app, "nested")
    assert [e["name"] for e in ranges(trace)] == ["outer", "inner", "inner", "inner", "empty"]
    launches = sorted(trace.host("cuLaunchKernel"), key=lambda e: e["ts"])
    assert [path_of(trace, e) for e in launches] == [["outer"], *[["outer", "inner"]] * 3, []]
    assert [path_of(trace, e) for e in trace.host("cuStreamSynchronize")] == [["outer", "inner"]] * 3
    assert all(path_of(trace, e) == ["outer"] for e in ranges(trace, "inner")) and path_of(trace, one(ranges(trace, "empty"))) == []
    mark = one(marks(trace))
    assert (mark["name"], mark["s"], mark["cat"]) == ("a mark", "t", "user_annotation") and path_of(trace, mark) == ["outer"]
    assert {e["tid"] for e in ranges(trace)} == {mark["tid"]} == {e["tid"] for e in launches} and all(e["args"] == {} for e in ranges(trace))
    assert trace.totals["recorded"] == len(trace.host()) + 1
    notes = notes_of(run.stderr)
    assert [notes[key] for key in ("outer", "inner", "inner_ends", "outer_ends", "nothing_ends")] == ["0", "1", "1", "0", "-1"]


def test_without_the_shim_nothing_changes(run_app):
    notes = notes_of(run_app(["nvtx", "nested"], shim=False).check().stderr)
    assert notes["variable"] == "(none)" and notes["outer"] == notes["outer_ends"] == "-2"


def test_long_texts(run_app):
    trace = run_app(["nvtx", "longer"]).check().load()
    texts = [e["name"] for e in marks(trace)]
    assert texts[:2] == ["x" * 2047, "y" * 2048] and texts[5:] == ["described", "described"]
    assert texts[2] == texts[4] != texts[3], "texts that differ behind the cut"
    wide = [e["name"] for e in ranges(trace)]
    assert wide[0] != wide[1]
    for name, letter in [(texts[2], "z"), (texts[3], "z"), (wide[0], "w"), (wide[1], "w")]:
        assert re.fullmatch(letter + r"{2028}#[0-9a-f]{16}\.\.\.", name)
    long = "z" * 512
    in_domain, described = marks(trace)[-2:]
    assert (in_domain["args"]["domain"], described["args"]["category name"]) == (long, long)
    assert one(trace.host("cuEventRecord"))["args"]["event name"] == one(trace.lives)["args"]["application name"] == long


def test_texts_domains_categories_colors(run_app):
    run, trace = nvtx(run_app, "described")
    notes = notes_of(run.stderr)
    assert [notes[key] for key in ("same_domain", "domain_level", "domain_level_2", "other_level")] == ["1", "0", "1", "0"]
    domain = {"domain": 'my "domain"', "category": 4, "category name": "äusserlich"}
    assert [(e["name"], e["args"]) for e in ranges(trace)] == [
        ("colored", {"category": 3, "category name": "input", "color": "0xff880000"}), ("registered", domain), ("registriert é中😀", domain),
        ("in no domain", {}), ("(no text)", {}), ("(no text)", {})]
    assert [(e["name"], e["args"]) for e in marks(trace)] == [("wide é中😀 \ufffd", {"category": 5}), ('odd"\\\x01\té\ufffd', {})]
    assert path_of(trace, one(ranges(trace, "in no domain"))) == ["registered", "registriert é中😀"]


def test_payloads(run_app):
    _, trace = nvtx(run_app, "payloads")
    assert [e["args"].get("payload") for e in marks(trace)] == [
        2**64 - 1, -1, 0.5, 2**32 - 1, -1, 0.25, 0.1, 1e300, -2.5, 0, 3, "NaN", "-Infinity", None]


def test_ranges_of_two_domains_that_cross(run_app):
    """The one that ends first is a span; the other one, and what stands around both, nest."""
    _, trace = nvtx(run_app, "crossing")
    begin, end = span(trace, "first")
    assert [e["name"] for e in ranges(trace)] == ["around", "second", "in second"] and path_of(trace, one(ranges(trace, "second"))) == ["around"]
    second = one(ranges(trace, "second"))
    launches = sorted(trace.host("cuLaunchKernel"), key=lambda e: e["ts"])
    assert [path_of(trace, e) for e in launches] == [["around"], ["around", "second"], ["around", "second"]]
    assert begin["ts"] < launches[0]["ts"] < second["ts"] < launches[1]["ts"] < end["ts"] < launches[2]["ts"] and second["args"] == {"domain": "crossing"}


def test_threads_and_their_names(run_app):
    """A thread without CUDA has a lane too; a name that is given replaces the thread's own, also one that was announced already."""
    run, trace = nvtx(run_app, "threads")
    notes = {key: int(value) for key, value in notes_of(run.stderr).items() if key in ("main", "other")}
    assert {e["name"]: e["tid"] for e in ranges(trace)} == {"main thread": notes["main"], "other thread": notes["other"]}
    assert trace.threads == {notes["main"]: "the trainer", notes["other"]: "the loader"}
    begin, end = span(trace, "handed over")
    assert (begin["tid"], end["tid"]) == (notes["other"], notes["main"]) and end["ts"] - begin["ts"] >= 5000


def test_process_ranges_overlap(run_app):
    run, trace = nvtx(run_app, "process")
    assert notes_of(run.stderr)["ids_differ"] == "1"
    (a, a_end), (b, b_end), (c, c_end), (left, left_end) = (span(trace, name) for name in ("a", "b", "c", "never ended"))
    launch = one(trace.host("cuLaunchKernel"))
    assert a["ts"] < b["ts"] < c["ts"] < launch["ts"] < a_end["ts"] < c_end["ts"] < b_end["ts"] < left["ts"] < left_end["ts"]
    assert b["args"] == {"domain": "processes"} and left_end["args"] == cut("process_ended") and c_end["args"] == {}
    assert len([e for e in trace.events if e["ph"] in "be"]) == 8 and not ranges(trace)


def test_names_of_streams_and_events(run_app):
    run, trace = nvtx(run_app, "names")
    notes = notes_of(run.stderr)
    names = {e["args"].get("handle"): (trace.streams[e["pid"], e["tid"]], e["args"]["application name"]) for e in trace.lives}
    assert names[notes["early_stream"]] == ("stream 13 nb · copies", "copies")
    assert names[notes["late_stream"]] == ("stream 14 p-2 · läte", "läte")  # by the time it was named, its lane had been announced
    assert names[None] == ("stream 7 legacy default · the default", "the default")
    assert one(trace.host("cuEventRecord"))["args"]["event name"] == "barrier"


@pytest.mark.parametrize("how", ["", "_exit", "running"])
def test_ranges_open_at_the_end(run_app, how):
    """They end there, and say so; the thread that is over ended its own before."""
    run, trace = both(run_app, ["nvtx", "open", how])
    run.check()
    found = {e["name"]: e["args"] for e in ranges(trace)}
    expected = {"open in a thread": cut("thread_ended"), "open outer": cut("process_ended"), "open inner": cut("process_ended")}
    assert found == expected | ({"open in a waiting thread": cut("process_ended")} if how == "running" else {})
    _, end = span(trace, "open process range")
    assert end["args"] == cut("process_ended")
    outer, inner = one(ranges(trace, "open outer")), one(ranges(trace, "open inner"))
    assert path_of(trace, inner) == ["open outer"] and max(end_of(e) for e in trace.host(cat="cuda_driver")) < end_of(outer) <= end_of(one(trace.lives))
    assert one(ranges(trace, "open in a thread"))["ts"] < outer["ts"] and trace.totals["complete"] is True


def test_killed_with_ranges_open(run_app):
    """What was not over is not there, and the file is good."""
    run, trace = both(run_app, ["nvtx", "open", "kill"])
    assert run.rc == -9 and trace.totals["complete"] is False
    assert [e["name"] for e in ranges(trace)] == ["open in a thread"] and span(trace, "open process range")[1] is None


def test_callbacks(run_app):
    """On the driver's thread: a range inside of a callback nests in it, one from a callback to the next does not."""
    _, trace = nvtx(run_app, "callbacks")
    inside = ranges(trace, "in a callback")
    assert len(inside) == 5 and all(path_of(trace, e) == ["callback"] for e in inside) and len(ranges(trace)) == 5
    across = spans(trace, "across callbacks")
    assert len(across) == 3 and "cs.cut" in across[2][0]["args"] and "cs.cut" not in across[1][0]["args"]


# ---- Before CUDA, without CUDA, after a fork ----

def test_ranges_from_before_the_first_call(run_app):
    run, trace = nvtx(run_app, "before")
    outer, inner = ranges(trace)
    assert (outer["name"], inner["name"]) == ("open before", "open before too") and outer["ts"] == 0 and path_of(trace, inner) == ["open before"]
    assert [e["args"] for e in (outer, inner)] == [cut("began_before_trace")] * 2
    launches = sorted(trace.host("cuLaunchKernel"), key=lambda e: e["ts"])
    assert [path_of(trace, e) for e in launches] == [["open before", "open before too"], ["open before"]]
    assert not marks(trace) and not [e for e in trace.events if e["ph"] in "be"]
    assert (notes_of(run.stderr)["first"], notes_of(run.stderr)["second"]) == ("0", "1")


@pytest.mark.parametrize("how", ["never", "looks"])
def test_no_cuda_no_file(run_app, how):
    """Ranges alone write nothing, also when the driver has been looked up."""
    run = run_app(["nvtx", how]).check()
    assert notes_of(run.stderr)["variable"].endswith("libcustream_shim.so") and not run.trace.exists() and not said(run)


def test_fork(run_app):
    """The child has the range that was open, and its own; the parent's goes on."""
    run, trace = both(run_app, ["nvtx", "fork"])
    run.check()
    child = read(run.trace.with_name(run.trace.name.replace(".json", f"-{notes_of(run.stderr)['child']}.json")))
    assert [e["name"] for e in ranges(trace)] == ["around the fork"] and one(ranges(trace))["args"] == {}
    around, inside = ranges(child)
    assert (around["name"], inside["name"]) == ("around the fork", "in the child")
    assert around["args"] == cut("process_ended") and inside["args"] == {}
    assert path_of(child, one(child.host("cuStreamQuery"))) == ["around the fork", "in the child"]


def test_ranges_of_a_handler_while_a_thread_tells_of_its_own(run_app):
    """A thread's first call tells of its open ranges: each once, whatever a handler does meanwhile."""
    run, trace = both(run_app, ["nvtx_signals", "handlers"], env=KEEP_ALL)
    run.check()
    own = [e["name"] for e in ranges(trace) if e["name"] != "of the handler"]
    assert own == ["around", "within", "behind"]
    assert path_of(trace, one(trace.host("cuStreamQuery")))[:2] == ["around", "within"]
    notes = notes_of(run.stderr)
    assert [notes[key] for key in ("popped", "popped_last", "pushed")] == ["1", "0", "0"] and int(notes["handled"]) > 100


def test_a_handler_ends_a_range_while_its_thread_tells_of_it(run_app):
    """The range in its place is told of as well: none begins that nobody has told of."""
    run, trace = both(run_app, ["nvtx_signals", "handlers", "swap"], env=KEEP_ALL)
    assert int(notes_of(run.check().stderr)["handled"]) > 100
    assert [e["name"] for e in ranges(trace) if e["name"] not in ("of the handler", "within")] == ["around", "behind"]
    assert not [e for e in ranges(trace) if e["args"].get("cs.cut") == "begin_lost"]


@pytest.mark.parametrize("what", ["pushes", "pops"])
def test_a_handler_at_one_instruction(run_app, what):
    """On an alternate stack, while the thread's stack of ranges is made, or while the ranges in it are told: no range is lost by it, and none of those behind."""
    run = run_app(["nvtx_signals", "once", what], env=KEEP_ALL).check()
    notes = notes_of(run.stderr)
    assert int(notes["threads"]) > 20 and notes["wrong"] == "0"
    names = [e["name"] for e in ranges(run.load())]
    assert names.count("behind") == int(notes["threads"])
    assert not [e for e in ranges(run.load()) if e["name"] == "behind" and e["args"]]


# ---- The way in ----

def test_children_see_nothing_of_it(run_app):
    """Neither in the environment of a child nor in our own; a child without the preload has no tool."""
    assert run_app(["nvtx", "environment"]).check().stdout == "0\n0\n"
    run = run_app(["/bin/sh", "-c", 'echo "[$NVTX_INJECTION64_PATH]"; LD_PRELOAD= "$0" nested 2>&1', run_app(["nvtx", "never"]).argv[0]])
    assert run.stdout.startswith("[]\n") and notes_of(run.stdout)["variable"] == "(none)" and notes_of(run.stdout)["outer"] == "-2"
    assert not run.trace.exists()


def test_somebody_elses_tool_has_precedence(run_app, tmp_path):
    env = {"NVTX_INJECTION64_PATH": tmp_path / "libnobody.so", "CUSTREAM_LOG": "info"}
    run, trace = both(run_app, ["nvtx", "nested"], env=env)
    assert notes_of(run.stderr)["variable"] == str(tmp_path / "libnobody.so") and notes_of(run.stderr)["outer"] == "-2"
    assert not ranges(trace) and calls_in(trace) == calls_of(run.stdout)
    assert str(tmp_path / "libnobody.so") in one(said(run)) and "custream: info: " in one(said(run))
    assert not said(run_app(["nvtx", "nested"], env={**env, "CUSTREAM_LOG": None}))
    assert not [line for line in said(run_app(["nvtx", "nested"], env={"CUSTREAM_LOG": "info"})) if "NVTX" in line]


def test_the_variable_may_name_us(run_app, build):
    run = run_app(["nvtx", "nested"], env={"NVTX_INJECTION64_PATH": build / "libcustream_shim.so", "CUSTREAM_LOG": "info"}).check()
    assert len(ranges(read(run.trace))) == 5 and not [line for line in said(run) if "NVTX" in line]


@pytest.mark.parametrize("option", ["CUSTREAM_TRACE", "CUSTREAM_NVTX"])
def test_off(run_app, option):
    run = run_app(["nvtx", "nested"], env={option: "off"}).check()
    assert notes_of(run.stderr)["variable"] == "(none)" and notes_of(run.stderr)["outer"] == "-2" and not said(run)
    assert run.trace.exists() == (option == "CUSTREAM_NVTX") and not (run.trace.exists() and ranges(read(run.trace)))


def test_off_by_a_policy_file(run_app):
    """The file is read at the first CUDA call, when NVTX has its tool already."""
    run = run_app(["nvtx", "process"], env={"CUSTREAM_POLICY": '{"nvtx": "off"}'}).check()
    trace = read(run.trace)
    assert not ranges(trace) and not marks(trace) and not [e for e in trace.events if e["ph"] in "be"]
    assert len(trace.host("cuLaunchKernel")) == calls_of(run.stdout)["cuLaunchKernel"]


def test_a_library_that_asks_for_a_tool_goes_on_as_without_one(run_app):
    """XLA keeps its ranges itself only if its domain has no tool; its profiles read what it keeps."""
    alone = run_app(["nvtx", "one_stack"], shim=False).check()
    run = run_app(["nvtx", "one_stack"]).check()
    assert run.stdout == alone.stdout and "ranges kept: 3" in alone.stdout
    assert notes_of(run.stderr)["domains"] == "0 0 1" and not ranges(read(run.trace))


def test_all_takes_what_such_a_library_tells(run_app):
    run = run_app(["nvtx", "one_stack"], env={"CUSTREAM_NVTX": "all"}).check()
    assert "ranges kept: 0" in run.stdout and not said(run)
    assert [e["args"]["domain"] for e in ranges(read(run.trace), "of the library")] == ["TSL"] * 3


def test_all_in_a_policy_file_may_be_too_late(run_app):
    run = run_app(["nvtx", "one_stack"], env={"CUSTREAM_POLICY": '{"nvtx": "all"}'}).check()
    assert "CUSTREAM_NVTX=all" in one(said(run)) and len(ranges(read(run.trace))) == 3


def test_a_module_has_a_copy_of_nvtx_of_its_own(run_app, build):
    run, trace = nvtx(run_app, "module", build / "tests" / "libnvtx_module.so")
    assert [(e["name"], path_of(trace, e)) for e in ranges(trace)] == [("of the program", []), ("of the module", ["of the program"])] * 2
    assert notes_of(run.stderr)["module"] == "1"


def test_python_package(run_app, root, build):
    run, trace = both(run_app, [build / "venv/bin/python", root / "tests/apps/clients/nvtx_ranges.py"])
    assert run.check().stdout == "ok\n" and not said(run)
    assert collections.Counter(e["name"] for e in ranges(trace)) == {"everything": 1, "set": 5, "other thread": 1}
    assert [path_of(trace, e) for e in trace.host("cuMemsetD8Async")] == [["everything", "set"]] * 5
    assert one(ranges(trace, "everything"))["args"]["payload"] == 42 and one(marks(trace))["args"]["payload"] == 0.5
    described = ranges(trace, "set")[0]["args"]
    assert (described["domain"], described["category name"]) == ("work", "memory")
    begin, end = span(trace, "span")
    assert begin["ts"] < one(ranges(trace, "other thread"))["ts"] < end["ts"] and one(ranges(trace, "other thread"))["tid"] != begin["tid"]


# ---- A great many ----

def test_deep(run_app):
    """1,024 levels are recorded; the answers stay right beyond them."""
    run, trace = nvtx(run_app, "deep", 1000)
    assert len(ranges(trace)) == 1000 == len(path_of(trace, one(trace.host("cuLaunchKernel"))))
    assert "no_room" not in trace.totals
    run, trace = both(run_app, ["nvtx", "deep", 1500])
    assert "wrong_level" not in notes_of(run.stderr)
    assert len(ranges(trace)) == 1024 and "1024" in one(said(run))
    assert trace.totals["no_room"] == {"ranges": 476} and trace.totals["lost_records"] == 0 and trace.verdict == "incomplete"


def test_deep_where_nothing_is_recorded(run_app):
    """Of the ranges without a place, those count that are open while something is recorded: not the 200 that end before the window, nor where no range is shown."""
    trace = run_app(["nvtx", "deep_before", 1500], env={"CUSTREAM_WINDOW": "profiler"}).check().load()
    assert trace.totals["no_room"] == {"ranges": 276}
    trace = run_app(["nvtx", "deep", 1500], env={"CUSTREAM_POLICY": '{"nvtx": "off"}'}).check().load()
    assert not ranges(trace) and "no_room" not in trace.totals


@pytest.mark.parametrize("n, given_up", [(16384, 0), (17000, 616)])
def test_more_process_ranges_than_have_a_place(run_app, n, given_up):
    """The oldest, which the program leaves open, make room: each has an end, and what says that it is not its own."""
    trace = run_app(["nvtx", "open_many", n], env=KEEP_ALL).check().load()
    cuts = collections.Counter(end["args"].get("cs.cut") for name in ("stays", "ends") for begin, end in spans(trace, name))
    assert cuts == collections.Counter({None: 100, "process_ended": 16284, "end_unknown": given_up})
    assert trace.totals.get("no_room", {}).get("range_ends", 0) == given_up and {end["args"].get("cs.cut") for _, end in spans(trace, "ends")} == {None}
    assert trace.verdict == ("incomplete" if given_up else "ok")


def test_more_texts_than_are_kept(run_app):
    """Names have an end; then ranges share one that says so, and what the rest of the trace needs names for still has them."""
    run, trace = nvtx(run_app, "many", 100000, "different", env=KEEP_ALL)
    counts = collections.Counter(e["name"] for e in ranges(trace))
    shared = counts.pop("(more names than custream keeps)")
    assert shared + len(counts) == 100000 and set(counts.values()) == {1} and 40000 < len(counts) < 60000
    assert trace.totals["lost_records"] == 0 and calls_in(trace)["cuLaunchKernel"] == 100
    assert {e["args"]["kernel"] for e in trace.host("cuLaunchKernel")} == {"empty_kernel"}


def test_a_span_is_in_the_file_whole_or_not_at_all(run_app):
    """Wherever CUSTREAM_TRACE_MAX ends the file: both ends of a span are, and they are counted, or neither."""
    for limit in range(1 << 20, (1 << 20) + 800, 50):
        _, trace = both(run_app, ["nvtx", "spans", 8000], env={"CUSTREAM_TRACE_MAX": limit, "CUSTREAM_FULL": "block"})
        begun, ended = ([e["id2"]["local"] for e in trace.events if e["ph"] == phase] for phase in "be")
        assert begun == ended and trace.totals["recorded"] == len(begun) + len(ranges(trace)) + len(trace.host(cat="cuda_driver")) and trace.host(cat="cs_loss")


@pytest.mark.parametrize("full", ["drop", "block"])
@pytest.mark.parametrize("limit", ["1G", "1M"])
def test_storm(run_app, full, limit):
    """Two domains in every order, on three threads, with a ring that is always full: what is there nests (custream check), what is not is counted."""
    run, trace = both(run_app, ["nvtx", "storm", 40000], env={"CUSTREAM_BUFFER": "64K", "CUSTREAM_FULL": full, "CUSTREAM_TRACE_MAX": limit})
    run.check()
    shown = len(trace.host()) - len(trace.host(cat="cs_loss")) + len(marks(trace)) + len([e for e in trace.events if e["ph"] == "b"])
    assert trace.totals["recorded"] == shown
    if limit == "1G":
        assert (trace.totals["lost_records"] > 0) == (full == "drop")
        assert all(e["args"].get("cs.cut") not in ("thread_ended", "process_ended") for e in ranges(trace)) or full == "drop"
    else:
        assert trace.totals["lost_records"] > 0 and (full == "drop" or trace.totals["complete"] is False)
    if full == "block" and limit == "1G":
        assert not [e for e in trace.events if {"cs.note", "cs.cut"} & set(e.get("args", {}))]
        assert calls_in(trace) == calls_of(run.stdout) and len(spans(trace, "storm span")) > 1000
        tid = trace.host()[0]["tid"]
        assert all(a < b for a, b in itertools.pairwise(e["ts"] for e in ranges(trace) if e["tid"] == tid))


# ---- Records that are missing, or come in another order ----

@pytest.fixture(scope="module", params=["plain", "asan"])
def pieced(build, tmp_path_factory, request):
    """The trace of tests/unit/tool_ranges.c."""
    path = tmp_path_factory.mktemp("ranges") / "t.json"
    env = {k: v for k, v in os.environ.items() if not k.startswith("CUSTREAM_")}
    subprocess.run([build / "tests/unit" / request.param / "tool_ranges"], env={**env, "CUSTREAM_TRACE": str(path)}, check=True)
    return read(path)


def test_lost_pushes_and_pops(pieced):
    cuts = {e["name"]: e["args"].get("cs.cut") for e in ranges(pieced)}
    assert cuts == {"around": None, "pop lost": "end_lost", "next": None, "pop lost too": "end_lost", "upper": None, "at once": None}
    assert path_of(pieced, one(ranges(pieced, "pop lost too"))) == ["around", "next"] and path_of(pieced, one(ranges(pieced, "next"))) == ["around"]
    assert path_of(pieced, one(ranges(pieced, "upper"))) == path_of(pieced, one(ranges(pieced, "pop lost"))) == ["around"]
    assert span(pieced, "push lost")[0]["args"] == cut("begin_lost") and span(pieced, "lower")[0]["args"] == {}
    assert sorted(map(len, (path_of(pieced, e) for e in ranges(pieced, "at once")))) == [1, 2, 3]


def test_process_ranges_out_of_order(pieced):
    for name in ("in order", "end first"):
        begin, end = span(pieced, name)
        assert begin["ts"] < end["ts"] and (begin["tid"], end["tid"]) == (1001, 1002)
    assert not spans(pieced, "never begun")
    many = spans(pieced, "many")
    assert len(many) == 20000 and all(end for _, end in many)


# ---- Perfetto ----

NESTING = "SELECT s.name AS name, p.name AS parent, s.category AS cat FROM slice s LEFT JOIN slice p ON s.parent_id = p.id " \
          "JOIN thread_track k ON k.id = s.track_id"


@pytest.mark.parametrize("how", ["nested", "described", "crossing", "threads", "process", "names", "open", "callbacks", "before", "storm"])
def test_opens_clean(run_app, trace_processor, how):
    run = run_app(["nvtx", how, 20000], env=KEEP_ALL).check()
    trace = read(run.trace)
    trace_processor.load(run.trace)
    assert_clean(trace_processor)
    on_threads = len(ranges(trace)) + len(marks(trace))
    assert trace_processor.value(f"SELECT count(*) FROM ({NESTING}) WHERE cat = 'user_annotation'") == on_threads
    begun = len([e for e in trace.events if e["ph"] == "b"])
    assert trace_processor.value("SELECT count(*) FROM slice s JOIN process_track k ON k.id = s.track_id WHERE s.category = 'user_annotation'") == begun
    assert trace_processor.value("SELECT count(*) FROM slice WHERE dur < 0") == 0 and on_threads + begun > 0 or how == "names"


def test_nesting_in_perfetto(run_app, trace_processor):
    trace_processor.load(run_app(["nvtx", "nested"]).check().trace)
    found = collections.Counter((r["parent"], r["name"]) for r in trace_processor.query(NESTING) if r["parent"] in ("outer", "inner") or r["name"] == "outer")
    assert found == {(None, "outer"): 1, ("outer", "cuLaunchKernel"): 1, ("outer", "inner"): 3, ("outer", "a mark"): 1, ("inner", "cuLaunchKernel"): 3,
                     ("inner", "cuStreamSynchronize"): 3}


def test_names_in_perfetto(run_app, trace_processor):
    """The last name that a lane is given is the one that is shown."""
    for how, expected in (("names", "stream 14 p-2 · läte"), ("threads", "the trainer")):
        trace_processor.load(run_app(["nvtx", how]).check().trace)
        assert expected in {r["name"] for r in trace_processor.query("SELECT DISTINCT t.name AS name FROM thread t JOIN thread_track USING (utid)")}
