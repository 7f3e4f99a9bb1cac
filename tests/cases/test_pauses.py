"""Pauses of threads whose clocks the trace has: who computes, who waits, and who waits for whom. Times are microseconds."""
import json

import pytest

from tests.handmade import custream
from tests.tracestory import MAIN, Story

OTHER = MAIN + 10


def ids(tables):
    return {row["id"]: row for row in tables["findings"]}


def what_if(tmp_path, story, words):
    path = tmp_path / "story.json"
    path.write_text(story.text(), encoding="utf-8")
    row, = json.loads(custream("report", "--json", f"--what-if={words}", path).stdout)["tables"]["what_if"]
    return row


def alone(share, clock=True):
    """Twelve kernels of 1 ms, 1.5 ms apart; the thread is on a processor for this share of the time between two calls."""
    story, end, cpu = Story(), 0, 0
    story.stream(13)
    for i in range(12):
        end = story.kernel(13, 1500 * i, max(1500 * i + 5, end), 1000, args={"cpu_us": cpu} if clock else {})
        cpu += 2 + round(share * 1498)
    return story


@pytest.mark.parametrize("share, found, said", [
    (1, "CS117", "on a processor for 16.48 ms of that"), (0.7, "CS117", "on a processor for 11.54 ms of that"),
    (0.3, "CS126", "on a processor for 4.939 ms of that"), (0, "CS126", "on a processor for 0 ns of that")])
def test_computing_and_waiting(tmp_path, share, found, said):
    tables = alone(share).report(tmp_path)
    rows = ids(tables)
    assert found in rows and not rows.keys() & ({"CS117", "CS126"} - {found})
    assert said in rows[found]["evidence"], rows[found]["evidence"]


def test_without_clocks_nothing_is_said_of_them(tmp_path):
    rows = ids(alone(1, clock=False).report(tmp_path))
    assert "CS117" in rows and "CS126" not in rows and "processor" not in rows["CS117"]["evidence"]


@pytest.mark.parametrize("share, words", [(1, "own code=0"), (0, "no waits outside CUDA")])
def test_each_is_taken_away_by_its_own_words(tmp_path, share, words):
    both = {w: what_if(tmp_path, alone(share), w)["gain_high_ns"] for w in ("own code=0", "no waits outside CUDA")}
    assert both.pop(words) >= 11 * 495_000 and list(both.values()) == [0]


def test_calls_that_may_have_slept_leave_a_range(tmp_path):
    """Before each pause of 1.5 ms a wait of 150 us, which no reading parts from it: 1300 us used may be 1150 to 1300 of the pause."""
    story, at = Story(), 0
    story.stream(13)
    for i in range(12):
        end = story.kernel(13, at, at + 2, 100, args={"cpu_us": 1302 * i})
        at = story.call("cuStreamSynchronize", at + 2, 150, **{"cs.stream": 13}) + 1500
        assert end < at
    evidence = ids(story.report(tmp_path))["CS117"]["evidence"]
    assert "on a processor for 12.65 ms to 14.30 ms of that" in evidence, evidence


def loader(clock):
    """One thread decodes twice for 1 ms, and copies each half; then another one, which has waited, launches a kernel of 1 ms."""
    story, at, other, end = Story(), 0, 0, 0
    story.stream(13), story.stream(14)
    for i in range(12):
        for half in range(2):
            cpu = {"cpu_us": 1002 * (2 * i + half)} if clock else {}
            story.copy(13, at, at + 5, 50, args=cpu)
            at += 1002
        other = at - 1000 + 20
        end = story.kernel(14, other, max(other + 5, end), 1000, thread=OTHER, args={"cpu_us": 12 * i} if clock else {})
    return story


def test_who_waits_for_a_thread_that_computes(tmp_path):
    """The other thread's pauses are the loader's: they are no wait for anything outside CUDA, and without the loader's own code there are none."""
    assert what_if(tmp_path, loader(True), "no waits outside CUDA")["gain_high_ns"] == 0
    row = what_if(tmp_path, loader(True), "own code=0")
    assert row["recorded_ns"] - row["gain_high_ns"] <= 12 * 1_030_000 + 10_000, "the kernels are left"
    assert row["unexplained_ns"] == 0


def heartbeat(busy):
    """A thread computes for 1.5 ms before each kernel, or waits. Another one makes a call 20 us before each launch."""
    story, end = Story(), 0
    story.stream(13), story.stream(14)
    for i in range(12):
        at = 1500 * i
        if i < 11:
            story.call("cuStreamQuery", at + 1480, thread=OTHER, **{"cs.stream": 14, "cpu_us": 12 * i})
        end = story.kernel(13, at, max(at + 5, end), 1000, args={"cpu_us": (1500 if busy else 12) * i})
    return story


def test_who_computes_waits_for_nobody(tmp_path):
    assert "CS125" not in ids(heartbeat(busy=True).report(tmp_path))
    assert "CS125" in ids(heartbeat(busy=False).report(tmp_path)), "who waits may"


def test_a_pause_without_a_reading_is_unexplained(tmp_path):
    story = alone(1)
    calls = [row for row in story.rows if row["cat"] == "cuda_driver"]
    assert what_if(tmp_path, story, "own code=0")["unexplained_ns"] == 0
    del calls[5]["args"]["cpu_us"]
    assert what_if(tmp_path, story, "own code=0")["unexplained_ns"] == 1_498_000
