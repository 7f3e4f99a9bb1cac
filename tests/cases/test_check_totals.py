"""Rule 12 of `custream check`, the trailer's totals against the rows, each of them right and wrong; and what it says of a trace that is not whole."""
import re

import pytest

from tests.handmade import (GOOD, GPU, HEADER, HOST, TRAILER, assert_breach, bound, changed, check, copy_rows, cut_by_key, cut_by_note, good_trace, lane, line_of, meta, render,
                            slice_, good_trailer)
from tests.trace import LOSSES

NO_ARROW = {"launch": {"bind_id": None, "flow_out": None}, "kernel": {"bind_id": None, "flow_in": None}}
NOT_ENDED = "the process had not ended when the trailer was written"


def assert_totals(tmp_path, rows, trailer, words, header=HEADER):
    assert_breach(tmp_path, render(rows, header=header, trailer=trailer), len(header) + 1 + len(rows), 12, words)


@pytest.mark.parametrize("totals, gpu, words", [
    ({"recorded": 4}, {}, "totals.recorded is 4, and there are 3 rows"),
    ({"recorded": None}, {}, "no totals.recorded"),
    ({"gpu": None}, {}, "no totals.gpu, and there are 2 kernel slices"),
    ({}, {"kernels": 7}, "totals.gpu.kernels is 7, and there are 2 kernel slices"),
    ({}, {"kernels": 1}, "totals.gpu.kernels is 1, and there are 2 kernel slices"),
    ({}, {"kernels": None}, "no totals.gpu.kernels"),
    ({}, {"copies": 2}, "totals.gpu.copies is 2, and there are 1 gpu_memcpy slices"),
    ({}, {"memsets": 0}, "totals.gpu.memsets is 0, and there are 1 gpu_memset slices"),
    ({}, {"graphs": 1}, "totals.gpu.graphs is 1, and there are 0 gpu_graph slices"),
    ({}, {"ranges": 1}, "totals.gpu.ranges is 1, and there are 0 gpu_range slices"),
    ({}, {"overhead": 1}, "totals.gpu.overhead is 1, and there are 0 overhead slices"),
    ({}, {"without_call": 2}, "totals.gpu.without_call is 2, and there are 3 pieces"),
    ({}, {"lost": 8}, "totals.gpu.lost is 8, and the cs_loss slices have 0 pieces"),
    ({"not_written": {"calls": 8, "gpu_work": 0}}, {}, "totals.not_written.calls is 8, and totals.lost_records 7"),
    ({"not_written": {"calls": 1, "gpu_work": 1}}, {}, "the cs_loss slices have 0 pieces of GPU work, of which 1 are not_written"),
    ({}, {"launches_without_kernel": 1}, "totals.gpu.launches_without_kernel is 1, and there are 0 launches without work"),
    ({}, {"launches_without_kernel": None}, "no totals.gpu.launches_without_kernel"),
    ({"part": 1, "recorded_in_all_parts": 3, "lost_in_all_parts": 7}, {}, "totals.part is 1, and the header's 0"),
])
def test_totals_that_are_not_the_rows(tmp_path, totals, gpu, words):
    assert_totals(tmp_path, GOOD, good_trailer(totals, gpu), words)


@pytest.mark.parametrize("changes, words", [
    ({"runtime": None}, "totals.recorded is 3, and there are 2 rows"),
    ({"kernel 2": None}, "totals.gpu.kernels is 2, and there are 1 kernel"),
    ({"memset": {"args": {"stream": 13, "correlation": 91}}}, "without_call is 3, and there are 2"),
    (NO_ARROW, "0 arrows lead to GPU work, and 1 pieces"),
    ({"launch": {"args": {"correlation": 90, "cs.stream": 13}}}, "1 pieces of GPU work have a correlation that no call has"),
    ({"delay": slice_("cs_policy", "delay", HOST, 4250, 70, 1)}, "there are 4 rows"),
    ({"callback": slice_("cs_callback", "host function", HOST, 4250, 70, 1)}, "there are 4 rows"),
    ({"mark": {"ph": "i", "s": "t", "cat": "user_annotation", "name": "m", "pid": HOST, "tid": 4250, "ts": 70}}, "there are 4 rows"),
])
def test_rows_that_are_not_the_totals(tmp_path, changes, words):
    assert_totals(tmp_path, changed(**changes), TRAILER, words)


def test_work_that_was_lost(tmp_path):
    """Calls and pieces of GPU work are counted apart; a slice may have one of the two."""
    for args, totals, gpu in [({"count": 7, "gpu_work": 3}, {}, {"lost": 3}), ({"gpu_work": 3}, {"lost_records": 0}, {"lost": 3}),
                              ({"count": 7, "gpu_work": 3}, {"not_written": {"calls": 5, "gpu_work": 2}}, {"lost": 1})]:
        rows = changed(loss={"args": args})
        good_trace(tmp_path, render(rows, trailer=good_trailer(totals, gpu)))
        assert_totals(tmp_path, rows, good_trailer(totals, dict(gpu, lost=gpu["lost"] - 1)), "the cs_loss slices have 3 pieces of GPU work")
    for args in ({"cause": "x"}, {"count": 7, "gpu_work": "3"}, {"count": -1}):
        assert_breach(tmp_path, render(changed(loss={"args": args})), line_of(GOOD, "loss"), 10, "args.gpu_work")


def launches(*made, more=()):
    """Launches on threads and streams, at their times, (correlation, thread, stream, ts, has a kernel): no other call of GOOD makes work."""
    rows = changed(**{**NO_ARROW, "launch": {**NO_ARROW["launch"], "args": {"cs.stream": 13}}, "kernel": {**NO_ARROW["kernel"], "args": {"stream": 13}}})
    rows["lane 17"] = lane(1700, "stream 17")
    for n, tid, stream, ts, worked in made:
        rows[f"c{n}"] = slice_("cuda_driver", "cuLaunchKernel", HOST, tid, ts, 1, **{"correlation": n, "cs.stream": stream})
        if worked:
            kernel = slice_("kernel", "k", GPU, 100 * stream, ts + 200, 1, device=0, stream=stream, correlation=n)
            rows[f"c{n}"], rows[f"k{n}"] = bound(rows[f"c{n}"], kernel)
    return {**rows, **dict(more)}


def lost(key, words):
    return slice_("cs_loss", "lost", HOST, 4250, 51, 2, count=7, cause=words, **({"cs.loss": key} if key else {}))


CAPTURE = slice_("cuda_driver", "cuStreamBeginCapture_v2", HOST, 4250, 90, 1, **{"cs.stream": 13})


@pytest.mark.parametrize("made, more, totals, gpu, least, most", [
    ([(1, 4250, 13, 100, False), (2, 4250, 13, 110, True)], {}, {}, {}, 1, 1),
    ([(1, 4250, 13, 100, False), (3, 4250, 13, 105, False), (2, 4250, 13, 110, True), (4, 4250, 13, 2000, False)], {}, {}, {}, 2, 2),
    ([(1, 4250, 13, 100, False), (2, 4250, 17, 110, True)], {}, {}, {}, 0, 0),
    ([(1, 4250, 13, 100, False)], {}, {}, {}, 0, 0),
    ([(1, 4251, 13, 100, False), (2, 4250, 13, 110, True)], {}, {}, {}, 0, 1),
    ([(1, 4250, 13, 100, False), (2, 4250, 13, 110, True)], {}, {}, {"source": "events"}, 0, 1),
    ([(1, 4250, 13, 100, False), (2, 4250, 13, 110, True)], {}, {}, {"without_times": 1}, 0, 1),
    ([(1, 4250, 13, 100, False), (2, 4250, 13, 110, True)], {"capture": CAPTURE}, {"recorded": 1}, {}, 0, 1),
    ([(1, 4250, 13, 100, False), (2, 4250, 13, 110, True)], {}, {"left_out_by_rule": 3}, {}, 0, 1),
    ([(1, 4250, 13, 100, False), (2 << 18, 4250, 13, 110, True)], {}, {}, {}, 0, 1),
    ([(1, 4250, 13, 100, False), (2, 4250, 13, 110, True)], {"loss": lost("no_lane", "other words")}, {}, {}, 0, 1),
    ([(1, 4250, 13, 100, False), (2, 4250, 13, 110, True)], {"loss": lost(None, LOSSES["no_lane"])}, {}, {}, 0, 1),
    ([(1, 4250, 13, 100, False), (2, 4250, 13, 110, True)], {"loss": lost("full_ring", LOSSES["no_lane"])}, {}, {}, 1, 1),
], ids=["one", "two", "other stream", "nothing behind", "other thread", "events", "no times", "capture", "by rule", "very many",
        "no lane", "no lane, in an older trace", "another key"])
def test_launches_without_kernel(tmp_path, made, more, totals, gpu, least, most):
    rows = launches(*made, more=more)
    totals = dict(totals, recorded=3 + len(made) + totals.get("recorded", 0), calls=1 + len(made) + totals.get("recorded", 0))
    worked = sum(has for *_, has in made)
    for n in range(most + 2):
        trailer = good_trailer(totals, {**gpu, "kernels": 2 + worked, "without_call": 4, "launches_without_kernel": n})
        if least <= n <= most:
            good_trace(tmp_path, render(rows, trailer=trailer))
        else:
            bound = least if n < least else most
            assert_totals(tmp_path, rows, trailer, f"totals.gpu.launches_without_kernel is {n}, and there are {bound} launches")


def test_incomplete_may_have_more_launches_and_fewer_arrows(tmp_path):
    """A file that ended between two rows that belong together; and calls that are not in it."""
    rows = changed(kernel=NO_ARROW["kernel"])
    good_trace(tmp_path, render(rows, trailer=good_trailer({"complete": False}, {"launches_without_kernel": 7})), f"incomplete: {NOT_ENDED}")
    assert_totals(tmp_path, rows, good_trailer({"complete": False}, {"launches_without_kernel": 8}), "is 8, and there are 7 launches")
    assert_totals(tmp_path, rows, good_trailer(), "0 arrows lead to GPU work")


PART = HEADER[:1] + ['"part":3,'] + HEADER[1:]
PARTS = {"part": 3, "continues": True, "parts_deleted": 1, "recorded_in_deleted_parts": 4, "recorded_in_all_parts": 9, "calls_in_all_parts": 3, "lost_in_all_parts": 7,
         "gpu_work_without_times_in_all_parts": 5, "gpu_work_without_call_in_all_parts": 3,
         "arrows_between_parts": 1}


def test_parts(tmp_path):
    rows = changed(**{**NO_ARROW, "launch": {**NO_ARROW["launch"], "args": {"cs.stream": 13}}})  # the call of the kernel is in an earlier part
    good_trace(tmp_path, render(rows, header=PART, trailer=good_trailer(PARTS, {"launches_without_kernel": 5})))
    for change, words in [({"part": 2}, "totals.part is 2, and the header's 3"), ({"recorded_in_all_parts": 6}, "in_all_parts is 6"),
                          ({"lost_in_all_parts": 6}, "lost_in_all_parts is 6"), ({"parts_deleted": 3}, "parts_deleted is 3"),
                          ({"arrows_between_parts": 0}, "arrows_between_parts is 0, and 1 pieces")]:
        assert_totals(tmp_path, rows, good_trailer({**PARTS, **change}), words, PART)
    assert_totals(tmp_path, GOOD, good_trailer(), "no totals.part", PART)
    first = HEADER[:1] + ['"part":1,'] + HEADER[1:]
    totals = dict(PARTS, part=1, recorded_in_all_parts=3, calls_in_all_parts=1, gpu_work_without_times_in_all_parts=0, parts_deleted=0)
    good_trace(tmp_path, render(GOOD, header=first, trailer=good_trailer(totals)))
    for change in ({"recorded_in_all_parts": 4}, {"calls_in_all_parts": 2}, {"lost_in_all_parts": 8}):
        assert_totals(tmp_path, GOOD, good_trailer({**totals, **change}), "_in_all_parts is ", first)


@pytest.mark.parametrize("cut", [cut_by_key, cut_by_note])
def test_ranges_that_go_over_the_end_of_a_part(tmp_path, cut):
    """A pushed range counts where it ends, a process range where it begins."""
    def span(ph, id_, **args):
        ts = 70 if ph == "b" else 75
        return {"ph": ph, "cat": "user_annotation", "name": "r", "pid": HOST, "tid": 4250, "id2": {"local": id_}, "ts": ts, "args": args}
    begun, on, through, own = cut("continued"), cut("goes_on"), cut("continued_goes_on"), 1 << 40
    rows = dict(GOOD, **{f"x{i}": slice_("user_annotation", "r", HOST, 4250, 80 + i, 1, **args) for i, args in enumerate([begun, on, through, {}])})
    spans = {1: (begun, {}), 2: ({}, on), 3: ({}, {}), own: (begun, {}), own + 1: (on, {}), own + 2: ({}, {})}
    for id_, (begin, end) in spans.items():
        rows[f"b{id_}"] = span("b", id_, **begin)
        rows[f"e{id_}"] = span("e", id_, **end)
    counted = 3 + 2 + 2 + 2  # GOOD; slices; process ranges; ranges that could not nest
    good_trace(tmp_path, render(rows, trailer=good_trailer({"recorded": counted})))
    assert_totals(tmp_path, rows, good_trailer({"recorded": counted + 1}), f"there are {counted} rows")


def test_windows(tmp_path):
    """Two windows, 5 to 60 and 70 to 90 us: nothing is recorded between them and after the second."""
    closed = HOST ^ 1 << 27
    def gap(ts, dur):
        return slice_("cs_window", "not recorded", HOST, closed, ts, dur, cause="x")
    last = [{"from_us": 5, "to_us": 60, "opened_by": "a", "cause": "b"}, {"from_us": 70, "to_us": 90, "opened_by": "a", "cause": "b"}]
    windows = {"opened": 2, "open": False, "cause": "b", "recorded_us": 75, "last": last}
    rows = {"window lane": meta("thread_name", HOST, closed, "custream: not recorded"), **copy_rows(), "gap": gap(60, 10), "rest": gap(90, 30)}
    good_trace(tmp_path, render(rows, trailer=good_trailer({"windows": windows})))
    assert_totals(tmp_path, rows, good_trailer(), "there are 2 cs_window slices, and no totals.windows")
    for change, words in [({"opened": 3}, "opened is 3, and 2 windows"), ({"open": True}, "open is not"), ({"last": [{}, {}]}, "from_us"),
                          ({"recorded_us": 74.5}, "recorded_us is 74.500, and the windows listed have 75.000"),
                          ({"opened": None}, "opened, and a list")]:
        assert_totals(tmp_path, rows, good_trailer({"windows": {k: v for k, v in {**windows, **change}.items() if v is not None}}), words)
    inside = f"line {line_of(rows, 'gap')} lies in a window, from "
    for name, row, words in [("gap", gap(60, 11), inside + "70.000 us"), ("gap", gap(59, 11), inside + "5.000 us"),
                             ("rest", None, "begins where a window ends, at 90.000"), ("gap", gap(61, 9), "begins where a window ends, at 60.000")]:
        bad = {key: row if key == name else one for key, one in rows.items() if row or key != name}
        assert_totals(tmp_path, bad, good_trailer({"windows": windows}), words)
    going = dict(windows, open=True, recorded_us=80, last=[last[0], {"from_us": 70, "opened_by": "a"}])
    rows.pop("rest")
    good_trace(tmp_path, render(rows, trailer=good_trailer({"windows": going})))
    assert_totals(tmp_path, rows, good_trailer({"windows": dict(going, recorded_us=54)}), "recorded_us is 54.000, and the windows listed have 55.000")


def test_leaks(tmp_path):
    never = [{"object": kind, "library": "a", "call": "c", "count": n} for kind, n in (("stream", 2), ("event", 1), ("stream", 3))]
    totals = {"leaked_streams": 5, "leaked_events": 1}
    good_trace(tmp_path, render(GOOD, trailer=good_trailer(totals, neverDestroyed=never)))
    for change, words in [({"leaked_streams": 6}, "totals.leaked_streams is 6, and neverDestroyed has 5"), ({"leaked_streams": 4}, "is 4"),
                          ({"leaked_events": 0}, "totals.leaked_events is 0, and neverDestroyed has 1"),
                          ({"leaked_events": None}, "leaked_events is 0")]:
        assert_totals(tmp_path, GOOD, good_trailer({**totals, **change}, neverDestroyed=never), words)
    many = [dict(never[0], count=1) for _ in range(128)]  # a long list may have been cut
    good_trace(tmp_path, render(GOOD, trailer=good_trailer({"leaked_streams": 300, "leaked_events": 0}, neverDestroyed=many)))
    assert_totals(tmp_path, GOOD, good_trailer({"leaked_streams": 127, "leaked_events": 0}, neverDestroyed=many), "is 127")


def test_no_number_of_a_real_trace_may_be_off_by_one(run_app, tmp_path):
    text = run_app(["works", "streams"]).check().load().path.read_text(encoding="utf-8")
    totals = text.index('"totals":{')
    unknown = ("untracked_objects", "without_times")
    numbers = [m for m in re.finditer(r'"(\w+)":(\d+)', text[totals:text.index("},\n\"neverDestroyed")]) if m[1] not in unknown]
    assert {m[1] for m in numbers} == {"recorded", "calls", "lost_records", "kernels", "copies", "memsets", "graphs", "ranges", "overhead", "without_call",
                                       "lost", "launches_without_kernel", "leaked_streams", "leaked_events"}
    for m in numbers:
        result, _ = check(tmp_path, text[:totals + m.start(2)] + str(int(m[2]) + 1) + text[totals + m.end(2):])
        assert result.returncode == 1 and ": rule 1" in result.stdout and f"{m[1]} is {int(m[2]) + 1}, and" in result.stdout, result.stdout


# --- traces that are not whole ---

@pytest.mark.parametrize("totals, said", [
    ({"complete": False}, f"incomplete: {NOT_ENDED}"),
    ({"complete": False, "no_memory_for": ["the GPU thread", "a\nring"]}, "incomplete: no memory for the GPU thread, a?ring"),
    ({"complete": False, "ended": "its size limit", "not_written": {"calls": 5, "gpu_work": 2}},
     "ended at its size limit: 5 calls and 2 pieces of GPU work not written, later ones not counted"),
    ({"complete": False, "ended": "the disk is full", "not_written": {"calls": 0, "gpu_work": 2}, "no_memory_for": ["x"]},
     "ended: the disk is full: 0 calls and 2 pieces of GPU work not written, later ones not counted; no memory for x"),
], ids=["not ended", "no memory", "limit", "cause"])
def test_what_is_not_whole_is_never_ok(tmp_path, totals, said):
    gpu_work = totals.get("not_written", {}).get("gpu_work")
    rows = changed(loss={"args": {"count": 7, "gpu_work": gpu_work}}) if gpu_work else GOOD
    good_trace(tmp_path, render(rows, trailer=good_trailer(totals)), said)


def test_what_had_no_room_is_said(tmp_path):
    result, _ = check(tmp_path, render(GOOD, trailer=good_trailer({"no_room": {"waits": 7}, "untracked_objects": 1})))
    assert ": incomplete: " in result.stdout and ", 1 stream or event not tracked, 7 waits without the work that released them" in result.stdout and result.returncode == 0
