"""What `custream report` says of the run behind its findings: the time before a GPU's first work."""
import pytest

from tests.handmade import HOST, custream, slice_
from tests.madetrace import MAIN, WORKER, Made, cells, only, report

BEFORE = ("before_ns", "before_call", "before_call_times", "before_call_ns", "before_no_call_ns")


def began_late():
    """A trace of 1 ms, whose first work begins after 800 us: calls on two threads from 0 to 100 and 300 to 420, and the launch from 795 to 798."""
    made = Made()
    made.stream(13)
    made.call("cuCtxGetDevice", 0, 100)
    made.call("cuMemFree_v2", 300, 70)
    made.call("cuCtxGetDevice", 310, 10, WORKER)
    made.call("cuMemFree_v2", 350, 70, WORKER)
    made.launch("k", 795, 800, 200, took=3)
    return made


def head(tmp_path, made):
    (tmp_path / "t.json").write_text(made.text(), encoding="utf-8")
    return custream("report", tmp_path / "t.json", env={"COLUMNS": "2000"}).stdout.split("\nThe run\n")[1].split("\n\n")[0]


def test_time_before_the_first_work(tmp_path):
    device = only(report(tmp_path, began_late())["devices"])
    assert cells(device, *BEFORE) == (800_000, "cuMemFree_v2", 2, 140_000, 577_000)


def test_a_call_that_the_first_work_began_in(tmp_path):
    made = Made()
    made.stream(13)
    made.launch("k", 10, 30, 50, took=100)
    device = only(report(tmp_path, made)["devices"])
    assert cells(device, *BEFORE) == (20_000, "cuLaunchKernel", 1, 20_000, 0)


def test_each_device_has_its_own_first_work(tmp_path):
    made = began_late()
    made.stream(17, device=1)
    made.ran("other", 900, 10, lane=17, device=1)
    assert [device["before_ns"] for device in report(tmp_path, made)["devices"]] == [800_000, 900_000]


@pytest.mark.parametrize("cat, name, about, known", [
    ("cs_loss", "lost", {"count": 3, "gpu_work": 0, "cause": "ring full"}, (800_000, None)),
    ("cs_loss", "lost", {"count": 0, "gpu_work": 1, "cause": "ring full"}, (None, 577_000)),
    ("cs_loss", "no GPU times", {"gpu_work": 0, "cause": "CUPTI was not there yet"}, (None, 577_000)),
    ("cs_window", "not recorded", {"cause": "cuProfilerStop"}, (None, None)),
], ids=["calls are lost", "work is lost", "no GPU times", "a closed window"])
def test_what_is_not_in_the_trace_is_not_told(tmp_path, cat, name, about, known):
    made = began_late()
    made.rows.append(slice_(cat, name, HOST, MAIN, 500, 10, **about))
    assert cells(only(report(tmp_path, made)["devices"]), "before_ns", "before_no_call_ns") == known
    assert ("began its first work" in head(tmp_path, made)) == (known[0] is not None)


def test_a_loss_after_the_first_work_hides_nothing(tmp_path):
    made = began_late()
    made.rows.append(slice_("cs_loss", "lost", HOST, MAIN, 900, 10, count=1, gpu_work=1, cause="ring full"))
    assert cells(only(report(tmp_path, made)["devices"]), "before_ns", "before_no_call_ns") == (800_000, 577_000)


def test_the_head_says_that_nothing_was_called(tmp_path):
    assert ("GPU 0 (H200) began its first work 800.0 us after the trace began; for 577.0 us of that no thread was in a call that is recorded. "
            "From then on it had work for 100.0 % of 200.0 us, on 1.00 streams at once.") in head(tmp_path, began_late())


def test_the_head_says_which_call_took_it(tmp_path):
    made = began_late()
    made.call("cuMemFree_v2", 430, 300)
    assert "began its first work 800.0 us after the trace began; 440.0 us of that went to cuMemFree_v2 (3 times). From then on" in head(tmp_path, made)


def test_the_head_blames_no_call_that_took_less_than_half(tmp_path):
    made = began_late()
    made.call("cuCtxSetCurrent", 430, 300)
    assert "began its first work 800.0 us after the trace began. From then on" in head(tmp_path, made)


@pytest.mark.parametrize("lasts, told", [(7205, False), (7195, True)])
def test_the_head_says_it_from_a_tenth_of_the_run_on(tmp_path, lasts, told):
    made = began_late()
    made.ran("long", 800, lasts)
    assert ("began its first work" in head(tmp_path, made)) == told


@pytest.mark.parametrize("name, shown", [
    ("k" * 96, "k" * 96),
    ("void f<" + 80 * "x" + "tail, of a template>(int)", "void f<" + 57 * "x" + "…" + "tail, of a template>(int)"[1:]),
    (63 * "a" + "é" + 40 * "b" + "é" + 23 * "c", 63 * "a" + "é…" + 23 * "c"),
], ids=["as it is", "its middle is left out", "no character is cut"])
def test_a_long_name_in_a_sentence(tmp_path, name, shown):
    made = Made()
    made.stream(13)
    made.launch("first", 0, 4, 10)
    made.launch(name, 100, 104, 10)
    tables = report(tmp_path, made)
    assert max(tables["idle"], key=lambda row: row["idle_ns"])["example"] == f"at 0.000014 s, before {shown} on stream 13"
    assert name in {row["name"] for row in tables["kernels"]}
