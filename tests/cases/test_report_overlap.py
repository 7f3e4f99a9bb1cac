"""Table "serialized": which streams ran one after the other, why, and how much that cost, in traces that were made so."""
import collections
import json

import pytest

from tests.handmade import custream
from tests.tracestory import LEGACY, Story

MS = 1000  # microseconds
FULL = {"grid": [1024, 1, 1], "block": [1024, 1, 1], "registers per thread": 32, "shared memory": 0}  # more than the GPU's two multiprocessors hold


def pairs(story, tmp_path):
    return [(row["first"], row["second"], row["cause"], row["lost_ns"] / 1000, row["times"]) for row in story.report(tmp_path)["serialized"]]


def two_streams(**of):
    story = Story()
    story.stream(13, **of), story.stream(14, **of)
    return story


def test_event(tmp_path):
    """b waits for a's event for 1 ms; it takes longer, so 1 ms of it could have run beside a."""
    story = two_streams()
    end = story.kernel(13, 0, 10, 1 * MS, "a")
    story.call("cuEventRecord", 3, event=1, **{"cs.stream": 13})
    story.call("cuStreamWaitEvent", 5, event=1, flags="0x0", **{"cs.stream": 14})
    story.kernel(14, 8, end, 3 * MS, "b")
    (row,) = story.report(tmp_path)["serialized"]
    assert (row["first"], row["second"], row["cause"], row["lost_ns"]) == ("stream 13", "stream 14", "event", 1_000_000)
    assert (row["first_work"], row["second_work"], row["times"], row["device"]) == ("a", "b", 1, 0) and row["remedy"]


def test_work_behind_the_late_one_is_late_too(tmp_path):
    """b and two more on its stream begin 3 ms later than they could have, each behind the other: all of them could have run beside a."""
    story = two_streams()
    end = story.kernel(13, 0, 10, 3 * MS, "a")
    story.call("cuEventRecord", 3, event=1, **{"cs.stream": 13})
    story.call("cuStreamWaitEvent", 5, event=1, flags="0x0", **{"cs.stream": 14})
    for at in (8, 11, 14):
        end = story.kernel(14, at, end, 800, "b")
    assert pairs(story, tmp_path) == [("stream 13", "stream 14", "event", 2400, 3)]


def test_streams_that_take_turns_are_counted_once(tmp_path):
    """Work on the legacy stream and a blocking one by turns, 1 ms each: side by side half of it is gained, not all but the first."""
    story, end = Story(), 50
    story.stream(LEGACY), story.stream(13, blocking=True)
    for i in range(3):
        end = story.kernel(LEGACY, 6 * i, end, 1 * MS, "a")
        end = story.kernel(13, 6 * i + 3, end, 1 * MS, "b")
    tables = story.report(tmp_path)
    assert [(row["first"], row["second"], row["lost_ns"]) for row in tables["serialized"]] == [("stream 7", "stream 13", 3_000_000)]
    assert [(row["id"], row["gain_high_ns"]) for row in tables["findings"] if row["id"] in ("CS101", "CS102")] == [
        ("CS101", pytest.approx(3_000_000, rel=0.01)), ("CS102", pytest.approx(3_000_000, rel=0.01))]


def test_copies_in_one_direction(tmp_path):
    story = two_streams()
    story.copy(13, 0, 10, 1 * MS)
    story.copy(14, 3, 10 + 1 * MS, 1 * MS)
    assert pairs(story, tmp_path) == [("stream 13", "stream 14", "copy_engine", 1000, 1)]


def test_a_full_device(tmp_path):
    story = two_streams()
    end = story.kernel(13, 0, 10, 1 * MS, **FULL)
    story.kernel(14, 3, end, 1 * MS, **FULL)
    assert pairs(story, tmp_path) == [("stream 13", "stream 14", "device_full", 1000, 1)]


def test_a_full_device_makes_room_block_by_block(tmp_path):
    """The second kernel begins as the first one's first blocks have ended, 50 us before its last."""
    story = two_streams()
    end = story.kernel(13, 0, 10, 1 * MS, **FULL)
    story.kernel(14, 3, end - 50, 1 * MS, **FULL)
    assert pairs(story, tmp_path) == [("stream 13", "stream 14", "device_full", 950, 1)]


def test_kernels_that_fill_the_device_by_turns(tmp_path):
    """Each begins as the last blocks of the other's drain. Six of a stream could at best run beside six of the other: what moved once moves no other."""
    story, end = two_streams(), 50
    for i in range(12):
        end = story.kernel(13 + i % 2, 3 * i, end - 2, 1 * MS, **FULL)
    found = pairs(story, tmp_path)
    assert {cause for _, _, cause, _, _ in found} == {"device_full"} and sum(lost for *_, lost, _ in found) == pytest.approx(6 * MS, abs=30)


def test_no_reason_in_the_trace(tmp_path):
    story = two_streams()
    story.kernel(14, 3, story.kernel(13, 0, 10, 1 * MS), 1 * MS)
    assert pairs(story, tmp_path) == [("stream 13", "stream 14", "unknown", 1000, 1)]


def test_the_host_waited_for_the_other(tmp_path):
    """The host waits for a and then enqueues b, 2 us later: without the wait b would have been enqueued as long before, and run beside all of a."""
    story = two_streams()
    end = story.kernel(13, 0, 10, 1 * MS, "a")
    at = story.call("cuStreamSynchronize", 7, end - 7, blocked_us=end - 7, **{"cs.stream": 13})
    story.kernel(14, at + 2, at + 7, 2 * MS, "b")
    assert pairs(story, tmp_path) == [("stream 13", "stream 14", "host", 1000, 1)]


def test_only_as_long_as_the_host_waited(tmp_path):
    """a runs for 1 ms, but the host only waits for the last 400 us of it: b could have been enqueued so much earlier."""
    story = two_streams()
    end = story.kernel(13, 0, 10, 1 * MS, "a")
    at = story.call("cuStreamSynchronize", end - 400, 400, blocked_us=400, **{"cs.stream": 13})
    story.kernel(14, at, at + 5, 2 * MS, "b")
    assert pairs(story, tmp_path) == [("stream 13", "stream 14", "host", 400, 1)]


def test_all_that_was_enqueued_after_the_wait(tmp_path):
    """Three short kernels on the second stream, each enqueued as the one before ends: all of them could have run beside a."""
    story = two_streams()
    end = story.kernel(13, 0, 10, 1 * MS, "a")
    end = story.call("cuStreamSynchronize", 7, end - 7, blocked_us=end - 7, **{"cs.stream": 13})
    for _ in range(3):
        end = story.kernel(14, end, end + 5, 200, "b")
    assert pairs(story, tmp_path) == [("stream 13", "stream 14", "host", 600, 3)]


def test_a_wait_for_the_second_stream_itself_is_not_for_the_first(tmp_path):
    story = two_streams()
    story.kernel(13, 0, 10, 1 * MS)
    end = story.kernel(14, 3, 10, 1 * MS)
    at = story.call("cuStreamSynchronize", 7, end - 7, blocked_us=end - 7, **{"cs.stream": 14})
    story.kernel(14, at, at + 5, 1 * MS)
    assert pairs(story, tmp_path) == []


@pytest.mark.parametrize("pause, times", [(15, 2), (40, 1)])
def test_work_behind_the_late_one_follows_at_once(tmp_path, pause, times):
    """Or it waited for something else. Two on the second stream wait for a, 3 ms; the other comes `pause` us behind the one, and takes 500 us as that does."""
    story = two_streams()
    end = story.kernel(13, 0, 10, 3 * MS, "a")
    story.call("cuEventRecord", 3, event=1, **{"cs.stream": 13})
    story.call("cuStreamWaitEvent", 5, event=1, flags="0x0", **{"cs.stream": 14})
    end = story.kernel(14, 8, end, 500, "b")
    story.kernel(14, 11, end + pause, 500, "c")
    assert pairs(story, tmp_path) == [("stream 13", "stream 14", "event", 500 * times, times)]


def test_work_behind_the_late_one_moves_as_far_as_it_was_enqueued(tmp_path):
    """The second one was enqueued 200 us before it began: it could not have begun earlier than that."""
    story = two_streams()
    end = story.kernel(13, 0, 10, 3 * MS, "a")
    story.call("cuEventRecord", 3, event=1, **{"cs.stream": 13})
    story.call("cuStreamWaitEvent", 5, event=1, flags="0x0", **{"cs.stream": 14})
    end = story.kernel(14, 8, end, 500, "b")
    story.kernel(14, end - 200, end, 500, "c")
    assert pairs(story, tmp_path) == [("stream 13", "stream 14", "event", 500 + 200, 2)]


@pytest.mark.parametrize("late, listed", [(100, False), (2000, True)])
def test_a_pair_that_lost_less_than_one_percent_is_left_out(tmp_path, late, listed):
    """100 ms of work, and b held for so long behind a."""
    story = two_streams()
    end = story.kernel(13, 0, 50, late)
    end = story.kernel(14, 3, end, late)
    story.stream(15)
    story.kernel(15, 6, 50, 100 * MS)
    assert bool(pairs(story, tmp_path)) == listed


def test_streams_that_overlap_are_left_out(tmp_path):
    """The second is late by 1 ms once, and beside the first for the rest of its time."""
    story = two_streams()
    end = story.kernel(13, 0, 10, 1 * MS)
    story.kernel(14, 3, end, 2 * MS)
    story.kernel(13, 6, end, 2 * MS)
    assert pairs(story, tmp_path) == []


def test_the_gpus_own_latency_is_no_loss(tmp_path):
    """Each begins 15 us behind the other: a release takes so long. Nothing else is known to hold it."""
    story, end = two_streams(), 0
    for i in range(20):
        end = story.kernel(13 + i % 2, end - 5 if end else 0, end + 10, 1 * MS)
    assert pairs(story, tmp_path) == []


def test_one_stream_alone(tmp_path):
    story = Story()
    story.stream(13)
    story.kernel(13, 3, story.kernel(13, 0, 10, 1 * MS), 1 * MS)
    assert pairs(story, tmp_path) == []


REAL = ["demo-h200", "known-events-h200", "known-h200", "known-nodes-h200", "torch-streams-h200"]


@pytest.mark.parametrize("name", REAL)
def test_nothing_gains_more_than_the_time_that_it_comes_from(root, name):
    """Traces of a real GPU: a finding gains less than the run took beside its longest kernel; a pair lost no more than either stream was at work."""
    done = custream("report", "--json", root / f"traces/{name}.json.gz")
    tables = json.loads(done.stdout)["tables"]
    longest = max(row["longest_ns"] for row in tables["kernels"])
    for row in tables["findings"]:
        if row["gain_high_ns"] is not None:
            assert 0 <= row["gain_low_ns"] <= row["gain_high_ns"] <= tables["run"][0]["wall_ns"] - longest and row["gain_high_ns"], row
    busy = {row["stream"]: row["busy_ns"] for row in tables["streams"]}
    waited = collections.Counter()
    for row in tables["serialized"]:
        assert 0 < row["lost_ns"] <= busy[row["first"]], row
        waited[row["second"]] += row["lost_ns"]
    assert all(lost <= busy[stream] for stream, lost in waited.items())
