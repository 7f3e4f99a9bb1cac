"""Each finding in a trace that was made to have it, with the gain that its twin shows, where the program is mended; and not in that twin."""
import json
import re

import pytest

from tests.handmade import custream
from tests.tracestory import LEGACY, MAIN, Story

MS = 1000  # microseconds


def legacy(mended):
    """A short kernel on the legacy stream between two long ones on others: b waits for a, 8 ms of it for nothing, and the short one 40 us."""
    story = Story()
    a, b = story.stream(13, blocking=not mended), story.stream(14, blocking=not mended)
    story.stream(LEGACY)
    story.kernel(a, 2, 10, 10 * MS, "a")
    if mended:
        story.kernel(LEGACY, 4, 11, 40, "short")
        story.kernel(b, 8, 12, 8 * MS, "b")
    else:
        end = story.kernel(LEGACY, 4, 10 + 10 * MS, 40, "short")
        story.kernel(b, 8, end, 8 * MS, "b")
    return story, [(("CS101", "stream 7"), True), (("CS102", "GPU 0"), True)]


def loop(mended, wait, work):
    """Six rounds: 1 ms of work, a wait that ends 20 us later, 475 us of own code. The GPU is idle for 500 us between two, 5 us of them on the way of the launch."""
    story, at = Story(), 0
    story.stream(13)
    for _ in range(6):
        end = work(story, at, at + 5)
        if mended:
            at += 1000
        else:
            at = wait(story, at, end) + 475
    return story


def synchronisation(mended):
    def work(story, at, began):
        return story.kernel(13, at, began, 1000)

    def wait(story, at, end):
        return story.call("cuCtxSynchronize", at + 3, end + 20 - at - 3)

    return loop(mended, wait, work), [(("CS103", "main 4250"), True)]


def blocking_copies(mended):
    def work(story, at, began):
        if mended:
            return story.copy(13, at, began, 1000, "DtoH")
        return story.copy(13, at, began, 1000, "DtoH", call="cuMemcpyDtoH_v2", took=1025)

    return loop(mended, lambda story, at, end: end + 20, work), [(("CS104", "stream 13"), True)]


def copies_that_are_waited_for(mended):
    """A copy that blocks, and a wait for its stream at once: without one of them the other holds the host as long."""
    def work(story, at, began):
        if mended:
            return story.copy(13, at, began, 1000, "DtoH")
        return story.copy(13, at, began, 1000, "DtoH", call="cuMemcpyDtoH_v2", took=1007)

    def wait(story, at, end):
        return story.call("cuStreamSynchronize", end + 3, 2, **{"cs.stream": 13})

    return loop(mended, wait, work), [(("CS104", "stream 13"), True)]


def pageable(mended):
    """A call copies 400 us long into the driver's own memory, then the copy begins; the next call comes as it ends."""
    story, at = Story(), 0
    story.stream(13)
    for _ in range(6):
        if mended:
            story.copy(13, at, at + 2, 100)
            at += 102
        else:
            at = story.copy(13, at, at + 400, 100, memory="Pageable", took=400)
    return story, [(("CS105", "stream 13"), True)]


def allocations(mended):
    """300 us of cuMemFree between two kernels."""
    story, at = Story(), 0
    story.stream(13)
    for _ in range(6):
        end = story.kernel(13, at, at + 2, 1000)
        if not mended:
            end = story.call("cuMemFree_v2", end, 300, address="0x10")
        at = end
    return story, [(("CS106", "main 4250"), True)]


def launches(mended):
    """Fifty kernels of 5 us, each enqueued when the one before ends and 10 us on its way. Mended: one graph."""
    story = Story()
    story.stream(13)
    if mended:
        story.work("cuGraphLaunch", 13, 0, 10, 250, kind="gpu_graph", name="graph 1", graph=1)
    else:
        for i in range(50):
            story.kernel(13, 15 * i, 15 * i + 10, 5, took=8)
    return story, [(("CS107", "main 4250"), True)]


def stale_waits(mended):
    """The event is recorded once, and waited for in each of four rounds."""
    story = Story()
    story.stream(13), story.stream(14)
    for i in range(4):
        at = 1000 * i
        story.kernel(13, at, at + 5, 400)
        if mended or not i:
            story.call("cuEventRecord", at + 3, event=1, **{"cs.stream": 13})
        story.call("cuStreamWaitEvent", at + 6, event=1, flags="0x0", **{"cs.stream": 14})
        story.kernel(14, at + 9, at + 405, 500)
    return story, [(("CS108", "stream 14"), False)]


def unrecorded(mended):
    story = Story()
    story.stream(13), story.stream(14)
    story.kernel(13, 0, 5, 400)
    if mended:
        story.call("cuEventRecord", 3, event=1, **{"cs.stream": 13})
    story.call("cuStreamWaitEvent", 6, event=1, flags="0x0", **{"cs.stream": 14})
    story.kernel(14, 9, 405, 400)
    return story, [(("CS108", "stream 14"), False)]


def idle_waits(mended):
    """A hundred waits of 4 us each for an event of the same stream, between two kernels."""
    story = Story()
    story.stream(13)
    at = story.kernel(13, 0, 5, 1000)
    story.call("cuEventRecord", 3, event=1, **{"cs.stream": 13})
    for _ in range(0 if mended else 100):
        at = story.call("cuStreamWaitEvent", at, 4, event=1, flags="0x0", **{"cs.stream": 13})
    story.kernel(13, at, at + 5, 1000)
    return story, [(("CS109", "stream 13"), True)]


def objects(mended):
    story, at = Story(), 0
    story.stream(13)
    for i in range(150):
        if not mended or not i:
            story.call("cuEventCreate", at, flags="0x2")
        at = story.kernel(13, at + 2, at + 10, 100)
    return story, [(("CS110", "events"), False)]


def hardware_queues(mended):
    """Twelve kernels on as many streams: four begin when the other eight have ended."""
    story = Story()
    for i in range(8 if mended else 12):
        story.kernel(story.stream(13 + i), 2 * i, 50 if i < 8 else 1050, 1000, took=1)
    return story, [(("CS111", "GPU 0"), True)]


def priorities(mended):
    """A priority that the device does not have; and two that never meet."""
    story = Story()
    story.stream(13, **{"priority": -5, "requested priority": -5 if mended else -9}), story.stream(14)
    end = story.kernel(13, 0, 5, 1000)
    story.kernel(14, 3 if mended else end + 100, end + 105, 1000)
    return story, [(("CS112", "stream 13"), False), (("CS112", "GPU 0"), False)]


def spinning(mended):
    story = Story()
    story.stream(13)
    end = story.kernel(13, 0, 5, 1000)
    story.call("cuEventRecord", 3, event=1, **{"cs.stream": 13})
    if mended:
        story.call("cuEventSynchronize", 6, end - 4, event=1, blocked_us=end - 4)
    else:
        for i in range(200):
            story.call("cuEventQuery", 10 + 5 * i, 2, event=1, **({"cs.result": "CUDA_ERROR_NOT_READY"} if i < 199 else {}))
    return story, [(("CS113", "main 4250"), False)]


def copy_engines(mended):
    """Four copies on one stream, to the device and back: the second can run beside the first, the fourth beside the third."""
    story = Story()
    story.stream(13), story.stream(14)
    for i in range(4):
        way, stream = ("HtoD", 13) if i % 2 == 0 else ("DtoH", 14 if mended else 13)
        story.copy(stream, 3 * i, 50 + 1000 * (i // 2 if mended else i), 1000, way)
    return story, [(("CS114", "stream 13"), True)]


def failures(mended):
    story = Story()
    story.stream(13)
    story.kernel(13, 0, 5, 1000)
    for at in (10, 20):
        story.call("cuStreamSynchronize", at, 2, **{"cs.stream": 13, "blocked_us": 2}, **({} if mended else {"cs.result": "CUDA_ERROR_ILLEGAL_ADDRESS"}))
    return story, [(("CS115", "cuStreamSynchronize"), False)]


def host_functions(mended):
    """A host function of 500 us between two kernels."""
    story = Story()
    story.stream(13)
    end = story.kernel(13, 0, 5, 1000)
    if not mended:
        end = story.callback(13, 4, end, 500)
    story.kernel(13, 8, end, 1000)
    return story, [(("CS116", "stream 13"), True)]


SMALL = {"grid": [1, 1, 1], "block": [32, 1, 1], "registers per thread": 16, "shared memory": 0}


def own_code(mended):
    """Twelve kernels of 1 ms; the host needs 1.5 ms of its own code for each."""
    story, end = Story(), 0
    story.stream(13)
    for i in range(12):
        at = 3 * i if mended else 1500 * i
        end = story.kernel(13, at, max(at + 5, end), 1000)
    return story, [(("CS117", "main 4250"), True)]


def shared_stream(mended):
    """Two threads by turns on one stream: each waits until its small kernel has run, behind the other's."""
    story, at, end = Story(), [0, 1], 5
    streams = story.stream(13), story.stream(14) if mended else 13
    for i in range(12):
        t = i % 2
        began = at[t] + 5 if mended else max(at[t] + 5, end)
        end = story.kernel(streams[t], at[t], began, 1000, thread=MAIN + 10 * t, **SMALL)
        at[t] = story.call("cuStreamSynchronize", at[t] + 2, end - at[t], thread=MAIN + 10 * t, **{"cs.stream": streams[t]}) + 2
    return story, [(("CS118", "stream 13"), True), (("CS119", "stream 13"), True)]


def small_kernels(mended):
    story, end = Story(), 10
    for i in range(10):
        stream = story.stream(13 + i) if mended or not i else 13
        end = story.kernel(stream, i, 10 + i if mended else end, 500, took=1, **SMALL)
    return story, [(("CS119", "stream 13"), True)]


def events(mended):
    """Kernels by turns on two streams, each of which waits for the other's."""
    story, end = Story(), 10
    story.stream(13), story.stream(14)
    for i in range(12):
        stream, at = 13 + i % 2, 10 * i
        if not mended and i:
            story.call("cuStreamWaitEvent", at, event=i, flags="0x0", **{"cs.stream": stream})
        end = story.kernel(stream, at + 3, 200 + 1000 * (i // 2) if mended else max(200, end), 1000, **SMALL)
        if not mended:
            story.call("cuEventRecord", at + 6, event=i + 1, **{"cs.stream": stream})
    return story, [(("CS120", "stream 14"), True)]


def stream_waits(mended):
    def wait(story, at, end):
        return story.call("cuStreamSynchronize", at + 3, end + 20 - at - 3, **{"cs.stream": 13})
    return loop(mended, wait, lambda story, at, began: story.kernel(13, at, began, 1000)), [(("CS121", "main 4250"), True)]


def copies_and_kernels(mended):
    """A copy and a kernel on it, six times; mended, the copies run ahead on a stream of their own."""
    story, end = Story(), 10
    story.stream(13), story.stream(14)
    for i in range(6):
        copied = story.copy(14 if mended else 13, 4 * i, 10 + 500 * i if mended else end, 500)
        end = story.kernel(13, 4 * i + 2, max(copied, end), 500)
    return story, [(("CS122", "stream 13"), True)]


def busy(mended):
    """Kernels without a pause; the twin pauses, which is another matter."""
    story, end = Story(), 5
    story.stream(13)
    for i in range(12):
        end = story.kernel(13, 3 * i, end + (500 if mended else 0), 1000)
    return story, [(("CS123", "GPU 0"), False)]


def slow_host(mended):
    """Thirty kernels of 100 us, each of whose calls takes 150 us; less than 200 us of own code lie between them."""
    story, at, end = Story(), 0, 0
    story.stream(13)
    for _ in range(30):
        took = 5 if mended else 150
        end = story.kernel(13, at, max(at + took, end), 100, took=took)
        at += took + (0 if mended else 20)
    return story, [(("CS124", "GPU 0"), True)]


def locks(mended):
    """Two threads by turns under a lock, four rounds each: each launches a kernel of 1 ms on its own stream, and waits for it."""
    story, at, free = Story(), [0, 3], 0
    story.stream(13), story.stream(14)
    for i in range(24):
        t = i % 2
        begins = at[t] if mended else max(at[t], free)
        end = story.kernel(13 + t, begins, begins + 5, 1000, thread=MAIN + 10 * t, **SMALL)
        free = at[t] = story.call("cuStreamSynchronize", begins + 3, end - begins, thread=MAIN + 10 * t, **{"cs.stream": 13 + t}) + 10
    return story, [(("CS125", "main 4250"), True), (("CS121", "main 4250"), True), (("CS121", f"thread {MAIN + 10}"), True)]


def unfair_lock(mended):
    """As `locks`, but the thread that has the lock takes it again each time: the other one waits once, for all of that."""
    story, at = Story(), [0, 3]
    story.stream(13), story.stream(14)
    story.call("cuStreamCreate", 2, 1, thread=MAIN + 10)
    for t in range(2):
        if t and not mended:
            at[1] = at[0] + 20
        for _ in range(20):
            end = story.kernel(13 + t, at[t], at[t] + 5, 1000, thread=MAIN + 10 * t, **SMALL)
            at[t] = story.call("cuStreamSynchronize", at[t] + 3, end - at[t], thread=MAIN + 10 * t, **{"cs.stream": 13 + t}) + 10
    return story, [(("CS125", f"thread {MAIN + 10}"), True)]


def outside(mended):
    """Twelve kernels of 1 ms; before each the thread makes no call for 1.5 ms, and is on a processor for 10 us of that."""
    story, end = Story(), 0
    story.stream(13)
    for i in range(12):
        at = 3 * i if mended else 1500 * i
        end = story.kernel(13, at, max(at + 5, end), 1000, args={"cpu_us": 12 * i})
    return story, [(("CS126", "main 4250"), True)]


def small_copies(mended):
    """24 tensors of 4 KiB are copied one by one, and each call waits; or all at once."""
    story, at = Story(), 0
    story.stream(13)
    if mended:
        at = story.copy(13, 0, 2, 10, took=1)
    for _ in range(0 if mended else 24):
        at = story.copy(13, at, at + 10, 2, memory="Pageable", took=12)
    story.kernel(13, at, at + 2, 100)
    return story, [(("CS127", "stream 13"), True)]


def silence(mended):
    """40 kernels of 100 us, from eight threads by turns. Each begins 3 ms behind the one before: a thread that makes no call computes for so long. So each
    thread makes no call for 24 ms. Another thread's call, 3 ms before, does not end that."""
    story, end, step = Story(), 0, 3 if mended else 3000
    for t in range(8):
        story.stream(13 + t)
    for i in range(40):
        at = step * i + 7 * (i * i % 5)
        end = story.kernel(13 + i % 8, at, max(at + 5, end), 100, thread=MAIN + 10 * (i % 8), args={"cpu_us": 12 * (i // 8)})
    return story, [(("CS128", "all threads"), True)]


def pool(mended):
    """A thread computes 5 ms for each step, gives the step to one of two others, which had waited, and makes a call of its own 75 us later. So the thread that
    launches goes on in the middle of another one's own code, and no call wakes it."""
    story, end, step = Story(), 0, 100 if mended else 5100
    story.stream(13)
    for i in range(30):
        at, launcher = step * i, MAIN + 10 * (1 + i * i % 3 % 2)
        end = story.kernel(13, at, max(at + 5, end), 80, thread=launcher, args={"cpu_us": 12 * i})
        story.call("cuCtxSetCurrent", at + 75, 2, cpu_us=0 if mended else 4990 * i)
    return story, [(("CS117", "main 4250"), True)]


STORIES = [legacy, synchronisation, blocking_copies, copies_that_are_waited_for, pageable, allocations, launches, stale_waits, unrecorded, idle_waits, objects, hardware_queues, priorities,
           spinning, copy_engines, failures, host_functions, own_code, shared_stream, small_kernels, events, stream_waits, copies_and_kernels, busy, slow_host, locks, unfair_lock, outside, small_copies, silence, pool]


# What the trace of a story or its twin shows beside the finding that it is for: time in which the host had not enqueued anything, or a GPU that has always work.
ALSO = {"CS117", "CS119", "CS120", "CS123", "CS124"}


def wall_us(tables):
    return tables["run"][0]["wall_ns"] / 1000


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_found_with_the_gain_of_the_mended_twin(tmp_path, story):
    (told, expected), (mended, _) = story(mended=False), story(mended=True)
    tables, won = told.report(tmp_path), 0
    won = wall_us(tables) - wall_us(mended.report(tmp_path))
    rows = [row for row in tables["findings"] if row["id"] not in ALSO - {id_ for (id_, _), _ in expected}]
    assert sorted((row["id"], row["stream"]) for row in rows) == sorted(name for name, _ in expected), tables["findings"]
    for row, (_, gains) in zip(sorted(rows, key=lambda row: (row["id"], row["stream"])), sorted(expected), strict=True):
        assert row["times"] > 0 and row["evidence"] and row["remedy"] and row["title"]
        assert row["page"] == f"docs/findings.md#{row['id'].lower()}"
        assert (row["gain_high_ns"] is None) == (not gains), row
        if gains:
            assert 0.95 * row["gain_low_ns"] / 1000 <= won <= 1.2 * row["gain_high_ns"] / 1000 and won >= 0.75 * row["gain_high_ns"] / 1000, (row, won)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_not_in_the_mended_twin(tmp_path, story):
    told, expected = story(mended=True)
    assert not {row["id"] for row in told.report(tmp_path)["findings"]} - (ALSO - {id_ for (id_, _), _ in expected})


def test_every_finding_has_a_story(root):
    ids = {id_ for story in STORIES for (id_, _), _ in story(mended=False)[1]}
    assert ids == set(rule_ids(root))


def rule_ids(root):
    return re.findall(r'^    \{"(CS\d+)", ', (root / "tools/custream/report/findings.c").read_text(encoding="utf-8"), re.M)


def test_the_page_has_every_finding(root):
    """One heading an id, in the table's order, with the table's title."""
    rules = re.findall(r'^    \{"(CS\d+)", "([^"]*)"', (root / "tools/custream/report/findings.c").read_text(encoding="utf-8"), re.M)
    page = (root / "docs/findings.md").read_text(encoding="utf-8")
    assert re.findall(r'^## (CS\d+): (.*)$', page, re.M) == rules
    assert [id_ for id_, _ in rules] == [f"CS{101 + i}" for i in range(len(rules))]
    for part in re.split(r"^## ", page, flags=re.M)[1:]:
        for word in ("**Found**", "**Not known**", "**Gain**", "**Remedy**"):
            assert word in part, part.splitlines()[0]


@pytest.mark.parametrize("queues, found", [(None, True), (4, True), (11, True), (12, False), (32, False)])
def test_the_trace_says_how_many_hardware_queues_there_are(tmp_path, queues, found):
    told, _ = hardware_queues(mended=False)
    path = tmp_path / "story.json"
    path.write_text(told.text().replace('"clock_error_ns"', f'"max_connections":{queues},"clock_error_ns"' if queues else '"clock_error_ns"'), encoding="utf-8")
    tables = json.loads(custream("report", "--json", path).stdout)["tables"]
    evidence = [row["evidence"] for row in tables["findings"] if row["id"] == "CS111"]
    assert bool(evidence) == found and all(f"more than {queues or 8} streams" in text for text in evidence)
    assert any(row["cause"] == "hardware_queue" for row in tables["idle"]) <= found
