"""Pauses of threads whose clocks the trace has: who computes, who waits, and who waits for whom. Times are microseconds."""
import json

import pytest

from tests.handmade import HOST, custream
from tests.tracestory import MAIN, Story

OTHER = MAIN + 10


def ids(tables):
    return {row["id"]: row for row in tables["findings"]}


def what_if(tmp_path, story, words):
    path = tmp_path / "story.json"
    path.write_text(story.text(), encoding="utf-8")
    row, = json.loads(custream("report", "--json", f"--what-if={words}", path).stdout)["tables"]["what_if"]
    return row


def alone(share, clock=True, lasted=1000):
    """Twelve kernels of 1 ms or so, 1.5 ms apart; the thread is on a processor for this share of the time between two calls."""
    story, end, cpu = Story(), 0, 0
    story.stream(13)
    for i in range(12):
        end = story.kernel(13, 1500 * i, max(1500 * i + 5, end), lasted, args={"cpu_us": cpu} if clock else {})
        cpu += 2 + round(share * 1498)
    return story


@pytest.mark.parametrize("share, found, said", [
    (1, {"CS117"}, "16.48 ms"), (0.8, {"CS117"}, "13.18 ms"), (0.7, {"CS117", "CS126"}, "11.54 ms"), (0.3, {"CS117", "CS126"}, "4.939 ms"),
    (0.2, {"CS126"}, "3.300 ms"), (0, {"CS126"}, "0 ns")])
def test_computing_and_waiting(tmp_path, share, found, said):
    rows = ids(alone(share).report(tmp_path))
    assert rows.keys() & {"CS117", "CS126"} == found
    for id_ in found:
        assert f"on a processor for {said} of that" in rows[id_]["evidence"], rows[id_]["evidence"]


def test_what_was_computed_and_what_was_waited_are_priced_apart(tmp_path):
    """Half of 1498 us each: without either, the next launch is 749 us earlier, and its kernel of 1 ms waits for the one before."""
    gains = {words: what_if(tmp_path, alone(0.5, lasted=100), words)["gain_high_ns"] for words in ("own code=0", "no waits outside CUDA")}
    assert all(abs(gain - 11 * 749_000) < 11 * 15_000 for gain in gains.values()), gains


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
    assert what_if(tmp_path, heartbeat(busy=True), "no locks")["gain_high_ns"] == 0
    assert what_if(tmp_path, heartbeat(busy=False), "no locks")["gain_high_ns"] > 0, "who waits may"
    assert not any("CS125" in ids(heartbeat(busy).report(tmp_path)) for busy in (True, False)), "the other one has no work for the GPU: it holds no lock for that"


def test_a_pause_without_a_reading_is_unexplained(tmp_path):
    story = alone(1)
    calls = [row for row in story.rows if row["cat"] == "cuda_driver"]
    assert what_if(tmp_path, story, "own code=0")["unexplained_ns"] == 0
    del calls[5]["args"]["cpu_us"]
    assert what_if(tmp_path, story, "own code=0")["unexplained_ns"] == 1_498_000


def test_a_pause_before_a_loop_that_asks(tmp_path):
    """The thread computes for 1.5 ms, then asks three times whether its kernel is done."""
    story, at = Story(), 0
    story.stream(13)
    for i in range(12):
        at = max(story.kernel(13, at, at + 5, 1000), at + 1500)
        for ask in range(3):
            story.call("cuStreamQuery", at + 10 * ask, 2, **{"cs.stream": 13, **({"cs.result": "CUDA_ERROR_NOT_READY"} if ask < 2 else {}), **({} if ask else {"cpu_us": 1510 * (i + 1)})})
        at += 30
    row = what_if(tmp_path, story, "own code=0")
    assert row["replayed_ns"] >= row["recorded_ns"] - 12 * 10_000 and row["gain_high_ns"] > 11 * 400_000


def closed(at, lasted):
    return {"ph": "X", "cat": "cs_window", "name": "closed", "pid": HOST, "tid": MAIN, "ts": at, "dur": lasted, "args": {"cause": "custream ctl"}}


def in_windows(asleep):
    """Kernels of 2.99 ms one after the other, 18 ms, then 40 ms that lie outside of a window, then 18 ms. The thread sleeps for 3 ms between launches; or launches at once, and the GPU has little to do."""
    story, end = Story(), 0
    story.stream(13)
    for i in range(12):
        at = 3000 * i + (40_000 if i > 5 else 0)
        end = story.kernel(13, at, max(at + 5, end), 2990 if asleep else 100, args={"cpu_us": 12 * i})
    story.rows.append(closed(17_990, 40_000))
    return story


def test_time_that_was_not_recorded_is_nobodys(tmp_path):
    """The GPU was busy before it, so an earlier call gains nothing, and the call behind it does not come earlier either."""
    story = in_windows(asleep=True)
    path = tmp_path / "story.json"
    path.write_text(story.text(), encoding="utf-8")
    tables = json.loads(custream("report", "--json", path).stdout)["tables"]
    row, = tables["computing"]
    assert row["gone_ns"] == 39_995_000 and row["nothing_ns"] < 1_000_000, row
    row = what_if(tmp_path, story, "host=0")
    assert row["unexplained_ns"] >= 40_000_000 and row["gain_high_ns"] < 100_000, row
    assert sum(row["idle_ns"] for row in tables["idle"] if row["cause"] == "unknown") == 39_995_000
    assert sum(row["idle_ns"] for row in tables["idle_host"] if row["doing"] != "unknown") < 200_000


def test_what_lies_before_time_that_was_not_recorded_may_gain(tmp_path):
    """Five pauses of 3 ms on both sides of it, each before an idle GPU."""
    gain = what_if(tmp_path, in_windows(asleep=False), "host=0")["gain_high_ns"]
    assert 10 * 2_800_000 < gain < 10 * 3_000_000, gain


def test_a_thread_that_began_in_time_that_was_not_recorded_stays(tmp_path):
    """Another thread's first call comes right behind the window: it is not known what it waited for. Its kernels end 3.2 ms before the run's end."""
    story, end = in_windows(asleep=False), 0
    story.stream(14)
    for i in range(12):
        end = story.kernel(14, 57_995 + 1000 * i, max(end, 58_000 + 1000 * i), 990, name="b", thread=OTHER)
    gain = what_if(tmp_path, story, "host=0")["gain_high_ns"]
    assert 3_100_000 < gain < 3_300_000, gain


WORDS = {"own code": "own code before", "waiting outside CUDA": "waited outside CUDA before", "unknown": "not recorded before"}


@pytest.mark.parametrize("story, doing", [(alone(1), "own code"), (alone(0), "waiting outside CUDA"), (in_windows(asleep=True), "unknown")], ids=["computes", "waits", "not recorded"])
def test_all_answers_say_the_same_of_a_pause(tmp_path, story, doing):
    """The table idle_host, which has its words from the same rows as the lane of `custream open` and `custream export`, and the longest path."""
    path = tmp_path / "story.json"
    path.write_text(story.text(), encoding="utf-8")
    tables = json.loads(custream("report", "--json", path).stdout)["tables"]
    longest = max((row for row in tables["idle_host"] if row["idle_ns"] > 100_000), key=lambda row: row["idle_ns"], default=None)
    assert longest is None or longest["doing"] == doing
    way = json.loads(custream("report", "--json", "--critical-path", path).stdout)["tables"]["critical_path"]
    pauses = [row for row in way if "before" in row["what"] and row["longest_ns"] >= 200_000]
    assert pauses[0]["what"] == WORDS[doing] and (len(pauses) == 1 or doing == "unknown"), way
    assert ("CS117" in ids(tables)) == (doing == "own code") and ("CS126" in ids(tables)) == (doing == "waiting outside CUDA")


def test_one_call_that_is_lost_hides_one_pause_alone(tmp_path):
    story = alone(0)
    story.rows.append({**closed(3200, 100), "cat": "cs_loss", "name": "lost", "args": {"count": 1, "cause": "the thread's ring was full"}})
    path = tmp_path / "story.json"
    path.write_text(story.text(), encoding="utf-8")
    rows = {row["id"]: row for row in json.loads(custream("report", "--json", path).stdout)["tables"]["findings"]}
    assert rows["CS126"]["times"] == 10 and "CS124" not in rows


def test_who_is_woken_did_not_wait_outside(tmp_path):
    """The main thread goes on behind the other thread's calls. Only that one waits for something outside CUDA."""
    rows = heartbeat(busy=False).report(tmp_path)["findings"]
    assert {row["stream"] for row in rows if row["id"] == "CS126"} == {f"thread {OTHER}"}


def test_nobody_waits_for_a_thread_that_computes_beside(tmp_path):
    """The main thread sleeps 5 ms before each kernel. Another one computes all the time, at its own pace: no pause ends where its own code does."""
    story, end = Story(), 0
    story.stream(13)
    for i in range(40):
        end = story.kernel(13, 6000 * i, max(6000 * i + 5, end), 900, args={"cpu_us": 12 * i})
        story.call("cuStreamSynchronize", 6000 * i + 3, end - 6000 * i, **{"cs.stream": 13})
    for i in range(45):
        story.call("cuCtxGetCurrent", 100 + 5300 * i, 2, thread=OTHER, cpu_us=5290 * i)
    rows = story.report(tmp_path)["findings"]
    assert (rows[0]["id"], rows[0]["stream"]) == ("CS126", "main 4250") and "CS117" not in {row["id"] for row in rows}, rows


def test_without_gpu_work_nothing_can_be_won(tmp_path):
    story = Story()
    story.stream(13)
    for i in range(20):
        story.call("cuStreamQuery", 3000 * i, **{"cs.stream": 13, "cpu_us": 12 * i})
        story.call("cuMemAlloc_v2", 3000 * i + 5, 500, bytes=64)
    path = tmp_path / "story.json"
    path.write_text(story.text(), encoding="utf-8")
    done = custream("report", path)
    assert "What costs most" not in done.stdout and "no GPU work to gain from" in " ".join(done.stdout.split()), done.stdout


@pytest.mark.parametrize("second", [0, 300])
def test_a_thread_that_has_the_number_of_an_ended_one(tmp_path, second):
    """Its clock begins anew: nothing is known of the time between the two."""
    story, end = Story(), 0
    story.stream(13)
    for i in range(12):
        end = story.kernel(13, 1500 * i, max(1500 * i + 5, end), 1000, args={"cpu_us": 1500 * i if i < 6 else second + 1500 * (i - 6)})
    row = ids(story.report(tmp_path))["CS117"]
    assert row["times"] == 11 and "on a processor for 14.98 ms of 14.98 ms" in row["evidence"], row["evidence"]
