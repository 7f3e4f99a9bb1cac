"""Each finding in a trace that was made to have it, at the cost that the trace was made with; and nothing in its twin, where the program is mended."""
import re

import pytest

from tests.tracestory import LEGACY, Story

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
    return story, [("CS101", "stream 7", 8 * MS + 40), ("CS102", "GPU 0", 8 * MS + 40)]


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

    return loop(mended, wait, work), [("CS103", "main 4250", 5 * 495)]


def blocking_copies(mended):
    def work(story, at, began):
        if mended:
            return story.copy(13, at, began, 1000, "DtoH")
        return story.copy(13, at, began, 1000, "DtoH", call="cuMemcpyDtoH_v2", took=1025)

    return loop(mended, lambda story, at, end: end + 20, work), [("CS104", "stream 13", 5 * 495)]


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
    return story, [("CS105", "stream 13", 5 * 400)]


def allocations(mended):
    """300 us of cuMemFree between two kernels."""
    story, at = Story(), 0
    story.stream(13)
    for _ in range(6):
        end = story.kernel(13, at, at + 2, 1000)
        if not mended:
            end = story.call("cuMemFree_v2", end, 300, address="0x10")
        at = end
    return story, [("CS106", "main 4250", 5 * 300)]


def launches(mended):
    """Fifty kernels of 5 us, each enqueued when the one before ends and 10 us on its way. Mended: one graph."""
    story = Story()
    story.stream(13)
    if mended:
        story.work("cuGraphLaunch", 13, 0, 10, 250, kind="gpu_graph", name="graph 1", graph=1)
    else:
        for i in range(50):
            story.kernel(13, 15 * i, 15 * i + 10, 5, took=8)
    return story, [("CS107", "stream 13", 49 * 10)]


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
    return story, [("CS108", "stream 14", None)]


def unrecorded(mended):
    story = Story()
    story.stream(13), story.stream(14)
    story.kernel(13, 0, 5, 400)
    if mended:
        story.call("cuEventRecord", 3, event=1, **{"cs.stream": 13})
    story.call("cuStreamWaitEvent", 6, event=1, flags="0x0", **{"cs.stream": 14})
    story.kernel(14, 9, 405, 400)
    return story, [("CS108", "stream 14", None)]


def idle_waits(mended):
    """A hundred waits of 4 us each for an event of the same stream, between two kernels."""
    story = Story()
    story.stream(13)
    at = story.kernel(13, 0, 5, 1000)
    story.call("cuEventRecord", 3, event=1, **{"cs.stream": 13})
    for _ in range(0 if mended else 100):
        at = story.call("cuStreamWaitEvent", at, 4, event=1, flags="0x0", **{"cs.stream": 13})
    story.kernel(13, at, at + 5, 1000)
    return story, [("CS109", "stream 13", 400)]


def objects(mended):
    story, at = Story(), 0
    story.stream(13)
    for i in range(150):
        if not mended or not i:
            story.call("cuEventCreate", at, flags="0x2")
        at = story.kernel(13, at + 2, at + 10, 100)
    return story, [("CS110", "events", 149 * 2)]


def hardware_queues(mended):
    """Twelve kernels on as many streams: four begin when the other eight have ended."""
    story = Story()
    for i in range(8 if mended else 12):
        story.kernel(story.stream(13 + i), 2 * i, 50 if i < 8 else 1050, 1000, took=1)
    return story, [("CS111", "GPU 0", 1000)]


def priorities(mended):
    """A priority that the device does not have; and two that never meet."""
    story = Story()
    story.stream(13, **{"priority": -5, "requested priority": -5 if mended else -9}), story.stream(14)
    end = story.kernel(13, 0, 5, 1000)
    story.kernel(14, 3 if mended else end + 100, end + 105, 1000)
    return story, [("CS112", "stream 13", None), ("CS112", "GPU 0", None)]


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
    return story, [("CS113", "main 4250", None)]


def copy_engines(mended):
    """Four copies on one stream, to the device and back: the second can run beside the first, the fourth beside the third."""
    story = Story()
    story.stream(13), story.stream(14)
    for i in range(4):
        way, stream = ("HtoD", 13) if i % 2 == 0 else ("DtoH", 14 if mended else 13)
        story.copy(stream, 3 * i, 50 + 1000 * (i // 2 if mended else i), 1000, way)
    return story, [("CS114", "stream 13", 2000)]


def failures(mended):
    story = Story()
    story.stream(13)
    story.kernel(13, 0, 5, 1000)
    for at in (10, 20):
        story.call("cuStreamSynchronize", at, 2, **{"cs.stream": 13, "blocked_us": 2}, **({} if mended else {"cs.result": "CUDA_ERROR_ILLEGAL_ADDRESS"}))
    return story, [("CS115", "cuStreamSynchronize", None)]


def host_functions(mended):
    """A host function of 500 us between two kernels."""
    story = Story()
    story.stream(13)
    end = story.kernel(13, 0, 5, 1000)
    if not mended:
        end = story.callback(13, 4, end, 500)
    story.kernel(13, 8, end, 1000)
    return story, [("CS116", "stream 13", 500)]


STORIES = [legacy, synchronisation, blocking_copies, pageable, allocations, launches, stale_waits, unrecorded, idle_waits, objects, hardware_queues, priorities,
           spinning, copy_engines, failures, host_functions]


def found(tables):
    return [(row["id"], row["stream"], None if row["cost_ns"] is None else row["cost_ns"] / 1000) for row in tables["findings"]]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_found_at_its_cost(tmp_path, story):
    told, expected = story(mended=False)
    tables = told.report(tmp_path)
    assert sorted(found(tables), key=str) == sorted(expected, key=str), tables["findings"]
    for row in tables["findings"]:
        assert row["times"] > 0 and row["evidence"] and row["remedy"] and row["title"]
        assert row["page"] == f"docs/findings.md#{row['id'].lower()}"


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_nothing_in_the_mended_twin(tmp_path, story):
    told, _ = story(mended=True)
    assert found(told.report(tmp_path)) == []


def test_every_finding_has_a_story(root):
    ids = {id_ for story in STORIES for id_, _, _ in story(mended=False)[1]}
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
        for word in ("**Found**", "**Not known**", "**Costs**", "**Remedy**"):
            assert word in part, part.splitlines()[0]
