"""`custream report` must not say more than its trace knows."""
import re

import pytest

from tests.handmade import HOST, custream, slice_, trailer_of
from tests.madetrace import MAIN, Made, by, only, report, report_of

LANE = 134231702


def by_id(tables, number):
    return [row["stream"] for row in tables["findings"] if row["id"] == number]


def with_a_gap(*rows):
    """Two kernels, 1 ms apart, on a thread that calls nothing meanwhile; and rows about that time."""
    made = Made()
    made.stream(13)
    made.launch("a", 10, 20, 80)
    made.launch("b", 1100, 1110, 90)
    made.rows += rows
    return made


MISSING = {
    "outside of a window": slice_("cs_window", "not recorded", HOST, LANE, 200, 800, cause="custream ctl off"),
    "no GPU times": slice_("cs_loss", "no GPU times", HOST, LANE, 200, 800, gpu_work=0, cause="CUPTI ended"),
    "much work lost": slice_("cs_loss", "lost", HOST, LANE, 200, 800, gpu_work=7, cause="CUPTI dropped it"),
}


@pytest.mark.parametrize("row", MISSING.values(), ids=MISSING.keys())
def test_what_was_not_seen_is_no_idle_time_of_the_host(tmp_path, row):
    tables = report(tmp_path, with_a_gap(row))
    idle = by(tables["idle"], "cause")
    assert idle["unknown"]["idle_ns"] == 800_000
    assert idle["host"]["idle_ns"] == 200_000 and sum(cause["idle_ns"] for cause in idle.values()) == 1_010_000
    assert sum(row["idle_ns"] for row in tables["idle_host"]) == 200_000


def test_lost_calls_and_other_losses_do_not_hide_what_the_gpu_did(tmp_path):
    tables = report(tmp_path, with_a_gap(slice_("cs_loss", "no runtime calls", HOST, LANE, 200, 800, gpu_work=0, cause="no CUPTI")))
    assert by(tables["idle"], "cause")["host"]["idle_ns"] == 1_000_000


def test_a_run_with_windows_is_not_whole(tmp_path):
    made = with_a_gap(MISSING["outside of a window"])
    whole = only(report(tmp_path, made.text(trailer_of()))["run"])["whole"]
    assert "800.0 us outside of windows" in whole, whole


def test_a_run_that_lacks_gpu_times_is_not_whole(tmp_path):
    made = with_a_gap(MISSING["no GPU times"])
    whole = only(report(tmp_path, made.text(trailer_of()))["run"])["whole"]
    assert "800.0 us without GPU times" in whole, whole


def test_what_lies_in_one_gap_is_one_time(tmp_path):
    made = with_a_gap()
    for n in range(5):
        made.call("cuCtxSetCurrent", 200 + 100 * n, 10)
    tables = report(tmp_path, made)
    host = by(tables["idle"], "cause")["host"]
    assert (host["times"], host["longest_ns"], host["idle_ns"]) == (1, 1_000_000, 1_000_000)
    doing = by(tables["idle_host"], "doing")
    assert (doing["own code"]["times"], doing["own code"]["longest_ns"]) == (1, 950_000)
    assert (doing["in a call"]["times"], doing["in a call"]["longest_ns"]) == (1, 50_000)


def test_the_outer_one_of_calls_in_each_other_counts(tmp_path):
    """As in other tools' traces, where runtime calls have driver calls in them."""
    made = with_a_gap()
    made.call("cudaMemPoolTrimTo", 90, 900)
    made.call("cuMemPoolTrimTo", 92, 4)
    made.call("cuCtxGetCurrent", 97, 2)
    doing = by(report(tmp_path, made)["idle_host"], "doing")
    assert doing["in a call"]["call"] == "cudaMemPoolTrimTo" and doing["in a call"]["idle_ns"] == 890_000
    assert doing["own code"]["idle_ns"] == 110_000


def test_where_calls_were_lost_nobody_knows_what_the_host_did(tmp_path):
    tables = report(tmp_path, with_a_gap(slice_("cs_loss", "lost", HOST, MAIN, 200, 800, count=7, cause="ring full")))
    assert by(tables["idle"], "cause")["host"]["idle_ns"] == 1_000_000
    doing = by(tables["idle_host"], "doing")
    assert {word: row["idle_ns"] for word, row in doing.items()} == {"unknown": 1_000_000}, "the thread made no recorded call in the whole gap"


# --- waits of the host for something else than work ---

def function(began, ended, enqueued, stream=13):
    return slice_("cs_callback", "callback", HOST, 4299, began, ended - began, **{"cs.stream": stream, "delay_us": began - enqueued})


def waits_with(tmp_path, *rows, **sync):
    """A kernel that ends at 50, and a wait from 60 to 200."""
    made = Made()
    made.stream(13)
    made.stream(14)
    made.launch("a", 10, 20, 30)
    made.call("cuEventRecord", 52, 2, event=9, **{"cs.stream": 13})
    made.rows += rows
    made.call("cuEventSynchronize" if "event" in sync else "cuStreamSynchronize", 60, 140, **sync)
    return only(report(tmp_path, made)["host_waits"])["for"]


@pytest.mark.parametrize("rows,sync,expected", [
    ([function(70, 199, 55)], {"cs.stream": 13}, "a host function on stream 13"),
    ([function(70, 199, 51)], {"event": 9}, "a host function on stream 13"),
    ([function(70, 199, 55)], {"event": 9}, "nothing that still ran"),
    ([function(70, 199, 55, 14)], {"cs.stream": 13}, "nothing that still ran"),
    ([function(55, 59, 54)], {"cs.stream": 13}, "nothing that still ran"),
    ([function(190, 300, 55)], {"cs.stream": 13}, "nothing that still ran"),
    ([function(190, 199, 150)], {"cs.stream": 13}, "nothing that still ran"),
    ([slice_("cs_loss", "no GPU times", HOST, LANE, 100, 20, gpu_work=0, cause="CUPTI ended")], {"cs.stream": 13}, "not known"),
    ([slice_("cs_loss", "lost", HOST, LANE, 100, 20, gpu_work=1, cause="CUPTI dropped it")], {"cs.stream": 13}, "not known"),
    ([slice_("cs_loss", "lost", HOST, LANE, 300, 20, gpu_work=1, cause="CUPTI dropped it")], {"cs.stream": 13}, "nothing that still ran"),
], ids=["function", "function before the event", "function behind the event", "of another stream", "before the wait", "after it", "enqueued in it", "no times", "lost", "lost later"])
def test_what_a_wait_was_for_that_no_work_ended(tmp_path, rows, sync, expected):
    assert waits_with(tmp_path, *rows, **sync) == expected


def test_a_wait_for_a_stream_that_waits_for_another_streams_host_function(tmp_path):
    made = Made()
    made.stream(13)
    made.stream(14)
    made.rows.append(function(70, 199, 45, 14))
    made.call("cuEventRecord", 52, 2, event=9, **{"cs.stream": 14})
    made.call("cuStreamWaitEvent", 55, 2, event=9, **{"cs.stream": 13})
    made.call("cuStreamSynchronize", 60, 140, **{"cs.stream": 13})
    assert only(report(tmp_path, made)["host_waits"])["for"] == "a host function on stream 14"


def test_a_wait_for_the_device_is_for_the_work_that_ended_last_though_a_host_function_returned_later(tmp_path):
    made = Made()
    made.stream(13)
    made.stream(14)
    made.launch("a", 10, 20, 50)
    made.launch("b", 14, 20, 130, lane=14)
    made.rows.append(function(70, 190, 30))
    made.call("cuCtxSynchronize", 60, 140)
    assert only(report(tmp_path, made)["host_waits"])["for"] == "b on stream 14"


def test_a_wait_for_an_event_that_was_recorded_into_a_graph_is_not_known(tmp_path):
    made = Made()
    made.stream(13)
    made.call("cuEventRecord", 52, 2, event=9, **{"cs.stream": 13, "cs.captured": 1})
    made.call("cuEventSynchronize", 60, 140, event=9)
    assert only(report(tmp_path, made)["host_waits"])["for"] == "not known"


def test_work_without_a_call_holds_the_work_behind_it(tmp_path):
    made = Made()
    made.stream(13)
    made.ran("lost", 20, 80)
    made.launch("b", 30, 104, 10)
    assert by(report(tmp_path, made)["idle"], "cause")["order"]["idle_ns"] == 4_000


@pytest.mark.parametrize("first, then, flags, unfinished", [(13, 7, "blocking", 0), (7, 13, "blocking", 0), (13, 7, "non-blocking", 1), (7, 13, "non-blocking", 1)])
def test_what_ended_on_one_side_of_the_legacy_default_stream_shows_what_had_ended_on_the_other(tmp_path, first, then, flags, unfinished):
    """The first launch has no kernel, and the process did not end by itself."""
    made = Made()
    made.stream(7, origin="legacy default", name="default", flags="default")
    made.stream(13, flags=flags)
    made.call("cuLaunchKernel", 0, 2, **{"cs.stream": first, "correlation": 90})
    made.launch("k", 5, 10, 20, lane=then)
    tables = report(tmp_path, made.text(trailer=trailer_of({"complete": None})))
    assert len(tables["running_streams"]) == unfinished


# --- no GPU times at all ---

def without_gpu_times(tmp_path):
    made = Made()
    made.call("cuLaunchKernel", 10, 5, **{"cs.stream": 13})
    made.call("cuStreamSynchronize", 20, 500, **{"cs.stream": 13})
    path = tmp_path / "none.json"
    path.write_text(made.text(trailer_of(gpu={"source": "none"})).replace('"gpu_time_source":"cupti"', '"gpu_time_source":"none"'))
    return path


def test_nothing_is_known_of_gpu_work_without_gpu_times(tmp_path):
    path = without_gpu_times(tmp_path)
    tables = report_of(path)
    assert "all GPU work, since no GPU times were taken" in only(tables["run"])["whole"]
    assert only(tables["host_waits"])["for"] == "not known"
    metrics = {row["key"]: row["value"] for row in tables["metrics"]}
    assert [key for key, value in metrics.items() if value is not None] == ["wall_ns", "calls", "lost"]
    text = " ".join(custream("report", path).stdout.split())
    assert text.startswith("app (process 4242) ran for 510.0 us. No GPU times were taken, so nothing is known of what the GPU did.")
    assert "The run 2 calls on 1 thread, 1 stream. " in text
    done = custream("report", "--fail-if", "kernels < 1000000", path)
    assert done.returncode == 3 and "kernels is not known of this run" in done.stderr


def test_the_gain_of_a_finding_is_a_share_of_the_run(tmp_path):
    """Of two GPUs one is late because of the host; the run is not shorter by more than the other one leaves."""
    made = Made()
    for device in (0, 1):
        made.stream(13, device=device)
    for n in range(40):
        at = 1000 * n
        made.launch("k", at, at + 10, 490, device=0)
        made.launch("k", at + 3, at + 13, 700, device=1)
        made.call("cuMemFree_v2", at + 505, 480)
    path = tmp_path / "two.json"
    path.write_text(made.text())
    text = " ".join(custream("report", path).stdout.split())
    share, = re.findall(r"CS106 .*? Gains: about [0-9.]+ ms, ([0-9.]+) % of the run, \S+ us of each step \(\d+ times\)", text)
    assert 20 < float(share) < 32, text  # 300 us of each 1000


# --- losses ---

@pytest.mark.parametrize("sizes,hidden", [([2] * 300, 300), ([1] * 3, 0), ([1] * 4, 4), ([1, 1, 1, 50], 1), ([2, 2], 2), ([1, 2], 0)])
def test_many_small_losses_are_a_large_one(tmp_path, sizes, hidden):
    """A gap of 75 us behind each of 301 kernels, 50 of which a loss may hide. Few are 1 % of 301 pieces of work."""
    made = Made()
    made.stream(13)
    for n in range(301):
        made.launch("k", 100 * n, 100 * n + 5, 20)
        if n < len(sizes):
            made.rows.append(slice_("cs_loss", "lost", HOST, LANE, 100 * n + 30, 50, gpu_work=sizes[n], cause="CUPTI dropped it"))
    idle = by(report(tmp_path, made)["idle"], "cause")
    assert (idle["unknown"]["idle_ns"] if hidden else 0) == 50_000 * hidden
    assert ("unknown" in idle) == bool(hidden)


def test_a_range_and_a_host_function_are_things_in_the_trace(tmp_path):
    made = with_a_gap(function(1000, 3000, 900))
    assert only(report(tmp_path, made)["run"])["wall_ns"] == 2_990_000
    made.range("all", 2, 5_000)
    assert only(report(tmp_path, made)["run"])["wall_ns"] == 5_000_000


# --- events of graphs ---

def replayed(external):
    """A graph that was captured with a record in it is launched again and again, and another stream waits for the event each time."""
    made = Made()
    for lane in (13, 14):
        made.stream(lane)
    flags = {"flags": "0x1"} if external else {}
    made.call("cuStreamBeginCapture_v2", 1, 1, **{"cs.stream": 13})
    made.call("cuEventRecordWithFlags", 3, 1, event=5, **{"cs.stream": 13}, **flags)
    made.call("cuStreamEndCapture", 5, 1, **{"cs.stream": 13})
    for n in range(10):
        at = 200 * n + 10
        made.launch("g", at, at + 5, 100, cat="gpu_graph", call="cuGraphLaunch")
        made.call("cuStreamWaitEvent", at + 3, 1, event=5, **{"cs.stream": 14})
        made.launch("k", at + 5, at + 108, 50, lane=14)
    return made


def test_a_graph_records_its_event_each_time(tmp_path):
    found = {external: {row["id"] for row in report(tmp_path, replayed(external))["findings"]} for external in (False, True)}
    assert "CS108" in found[False] and "CS108" not in found[True]


def test_a_graph_waits_for_what_is_recorded_before_its_launch(tmp_path):
    """An external wait is captured before the event was recorded at all."""
    made = Made()
    for lane in (13, 14):
        made.stream(lane)
    made.call("cuStreamWaitEvent", 1, 1, event=5, flags="0x1", **{"cs.stream": 13})
    made.launch("k", 10, 15, 5, lane=14)
    made.call("cuEventRecord", 20, 1, event=5, **{"cs.stream": 14})
    made.launch("g", 30, 35, 10, cat="gpu_graph", call="cuGraphLaunch")
    text = made.text(trailer_of({"lost_records": 0}))
    assert not by_id(report(tmp_path, text), "CS108")
    assert by_id(report(tmp_path, text.replace('"flags":"0x1",', "")), "CS108")


# --- priorities ---

def prioritised(call_known=True, **args):
    made = Made()
    made.stream(13, priority=0)
    made.stream(14, priority=-3, **{"requested priority": -9, **args})
    made.launch("k", 10, 15, 5)
    if call_known:
        made.launch("k", 100, 105, 5, lane=14)
    else:
        made.ran("k", 105, 5, 14)
    return made


def test_a_policys_priority_is_no_mistake_of_the_program(tmp_path):
    assert by_id(report(tmp_path, prioritised()), "CS112") == ["GPU 0", "stream 14"]
    assert by_id(report(tmp_path, prioritised(**{"changed by policy": True})), "CS112") == ["GPU 0"]


def test_work_without_its_call_may_have_met_any_other(tmp_path):
    assert by_id(report(tmp_path, prioritised(call_known=False)), "CS112") == ["stream 14"]
