"""What is nearly a finding and is none, or is one for another reason than the plainest: the limits of each rule."""
import json

import pytest

from tests.handmade import GPU, HOST, custream, meta, slice_
from tests.tracestory import LEGACY, MAIN, Story

MS = 1000  # microseconds


def one_stream():
    story = Story()
    story.stream(13)
    return story


def findings(story, tmp_path):
    return [(row["id"], row["stream"], row["cost_ns"], row["times"]) for row in story.report(tmp_path)["findings"]]


@pytest.mark.parametrize("syncs, found", [(4, []), (5, [("CS103", "main 4250", 5 * 495_000, 5)])])
def test_few_synchronisations_are_no_loop(tmp_path, syncs, found):
    story, at = one_stream(), 0
    for i in range(syncs + 1):
        end = story.kernel(13, at, at + 5, 1000)
        at = story.call("cuCtxSynchronize", at + 3, end + 20 - at - 3) + 475 if i < syncs else at
    assert findings(story, tmp_path) == found


def test_own_code_that_takes_longer_than_the_wait_would_stay(tmp_path):
    """The host waits 1017 us and then computes for 5 ms: without the wait it would still compute for 5 ms."""
    story, at = one_stream(), 0
    for _ in range(6):
        end = story.kernel(13, at, at + 5, 1000)
        at = story.call("cuCtxSynchronize", at + 3, end + 15 - at - 3) + 5 * MS
    assert findings(story, tmp_path) == [("CS103", "main 4250", 5 * 1_017_000, 5)]


def test_a_wait_for_one_stream_is_not_for_the_device(tmp_path):
    story, at = one_stream(), 0
    for _ in range(6):
        end = story.kernel(13, at, at + 5, 1000)
        at = story.call("cuStreamSynchronize", at + 3, end + 20 - at - 3, **{"cs.stream": 13}) + 475
    assert findings(story, tmp_path) == []


def test_what_costs_little_is_left_out(tmp_path):
    """100 us of cuMemFree beside 30 ms of work: a third of a percent. Beside 15 ms it is two thirds."""
    def frees(work):
        story = one_stream()
        at = story.call("cuMemFree_v2", story.kernel(13, 0, 5, work), 100)
        story.kernel(13, at, at + 2, 10)
        return findings(story, tmp_path)
    assert frees(30 * MS) == []
    assert frees(15 * MS) == [("CS106", "main 4250", 100_000, 1)]


def test_memory_of_a_pool_waits_for_nothing(tmp_path):
    story = one_stream()
    at = story.call("cuMemFreeAsync", story.kernel(13, 0, 5, 1000), 300, **{"cs.stream": 13})
    story.kernel(13, at, at + 2, 1000)
    assert findings(story, tmp_path) == []


@pytest.mark.parametrize("kernels, lasted, apart, found", [(21, 5, 15, 20), (20, 5, 15, 0), (60, 60, 80, 0), (60, 5, 120, 0)],
                         ids=["twenty gaps", "nineteen gaps", "long kernels", "long gaps"])
def test_launches_in_a_row(tmp_path, kernels, lasted, apart, found):
    """A kernel every `apart` us, each enqueued when the one before has ended."""
    story = one_stream()
    for i in range(kernels):
        story.kernel(13, apart * i, apart * (i + 1) - lasted, lasted, took=3)
    assert findings(story, tmp_path) == ([("CS107", "stream 13", 20 * 10_000, 20)] if found else [])


def row_of(story, count, other):
    """Each third piece of work in a row is no kernel."""
    for i in range(count):
        at, began = 15 * i, 15 * i + 10
        if i % 3 < 2:
            story.kernel(13, at, began, 5, took=3)
        elif other == "memset":
            story.work("cuMemsetD8Async", 13, at, began, 5, took=3, kind="gpu_memset", name="Memset (Device)", bytes=4096)
        else:
            story.work(f"cuMemcpy{other}Async_v2", 13, at, began, 5, took=3, kind="gpu_memcpy", name=f"Memcpy {other} (Pinned)", bytes=4096)


@pytest.mark.parametrize("ahead, found", [(0, 0), (1, 20), (2, 0)], ids=["no host is late", "every other time", "two of three times"])
def test_a_kernel_that_waited_for_the_one_before_ends_no_row_and_costs_nothing(tmp_path, ahead, found):
    """Late for a kernel, the host is ahead for the next ones, which begin 2 us after the one before. 0: always. Of 40 gaps 20, then 13, are launches."""
    story, at, end = one_stream(), 0, 0
    for i in range(41):
        late = ahead and i % (ahead + 1) == 0
        at = end if late else at + 3
        end = story.kernel(13, at, max(at, end) + (10 if late else 2), 5 if late else 15, took=2)
    assert findings(story, tmp_path) == ([("CS107", "stream 13", found * 10_000, found)] if found else [])


@pytest.mark.parametrize("count, other, found", [(31, "memset", 30), (31, "DtoD", 30), (31, "HtoD", 0), (31, "DtoH", 0), (28, "memset", 0)],
                         ids=["memsets", "copies on the GPU", "copies to it", "copies from it", "nineteen kernels"])
def test_what_a_graph_has_beside_kernels_ends_no_row(tmp_path, count, other, found):
    story = one_stream()
    row_of(story, count, other)
    rows = [row for row in story.report(tmp_path)["findings"] if row["id"] == "CS107"]
    assert [(row["cost_ns"], row["times"]) for row in rows] == ([(found * 10_000, found)] if found else [])
    assert all(row["evidence"].startswith("kernels, memsets and copies on the GPU, of 5.000 us, with 10.00 us of idle time before each") for row in rows)


def test_launches_between_waits_are_no_stretch(tmp_path):
    """Short kernels, but the host waits for each."""
    story, at = one_stream(), 0
    for _ in range(50):
        end = story.kernel(13, at, at + 5, 10, took=3)
        at = story.call("cuStreamSynchronize", at + 3, end + 4 - at - 3, **{"cs.stream": 13})
    assert findings(story, tmp_path) == []


def test_a_synchronous_copy_of_pageable_memory_is_both(tmp_path):
    story, at = one_stream(), 0
    for _ in range(6):
        end = story.copy(13, at, at + 5, 1000, "DtoH", call="cuMemcpyDtoH_v2", took=1025, memory="Pageable")
        at = end + 20 + 475
    assert findings(story, tmp_path) == [("CS104", "stream 13", 5 * 495_000, 5), ("CS105", "stream 13", 5 * (495_000 + 5_000), 5)][::-1]


def test_how_long_pageable_copies_themselves_took_is_evidence_and_no_cost(tmp_path):
    story, at = one_stream(), 0
    story.stream(14)
    for _ in range(6):
        end = story.copy(13, at, at + 400, 150, memory="Pageable", took=400)
        story.copy(13, at + 410, end, 30)
        at = story.copy(14, at + 420, end + 30, 70, memory="Pageable", took=2)
    copies, = [row for row in story.report(tmp_path)["findings"] if row["stream"] == "stream 13"]
    assert (copies["id"], copies["cost_ns"]) == ("CS105", 5 * 400_000)
    assert copies["evidence"].endswith("; the copies themselves took 900.0 us, and pinned memory makes them shorter too")  # six of 150 us


@pytest.mark.parametrize("times, found", [(3, []), (4, [("CS108", "stream 14", None, 3)])])
def test_waits_again_for_one_record(tmp_path, times, found):
    """The first wait is what the record is for."""
    story = Story()
    story.stream(13), story.stream(14)
    story.call("cuEventRecord", 3, event=1, **{"cs.stream": 13})
    for i in range(times):
        story.kernel(13, 100 * i + 10, 100 * i + 20, 50)
        story.call("cuStreamWaitEvent", 100 * i + 15, event=1, **{"cs.stream": 14})
        story.kernel(14, 100 * i + 18, 100 * i + 70, 20)
    assert findings(story, tmp_path) == found


def test_waits_again_for_a_record_with_nothing_behind_it(tmp_path):
    """There is nothing that they could have missed. They order nothing, and cost the 2 us that each takes of idle time, but for the first."""
    story = Story()
    story.stream(13), story.stream(14)
    story.kernel(13, 0, 5, 50)
    story.call("cuEventRecord", 3, event=1, **{"cs.stream": 13})
    for i in range(6):
        story.call("cuStreamWaitEvent", 100 * i + 15, event=1, **{"cs.stream": 14})
        story.kernel(14, 100 * i + 18, 100 * i + 70, 20)
    assert findings(story, tmp_path) == [("CS109", "stream 14", 5 * 2_000, 5)]


@pytest.mark.parametrize("unknown", ["cuIpcOpenEventHandle", "cuGraphAddEventRecordNode", "cuGraphAddNode_v2"])
def test_an_event_that_others_may_have_recorded(tmp_path, unknown):
    story = one_stream()
    story.call(unknown, 0)
    story.call("cuStreamWaitEvent", 6, event=1, **{"cs.stream": 13})
    story.kernel(13, 9, 15, 400)
    assert findings(story, tmp_path) == []


def test_an_event_that_may_have_been_recorded_in_another_window(tmp_path):
    story = one_stream()
    story.call("cuStreamWaitEvent", 6, event=1, **{"cs.stream": 13})
    story.kernel(13, 9, 15, 400)
    assert [row[0] for row in findings(story, tmp_path)] == ["CS108"]
    story.rows.append({"ph": "X", "cat": "cs_loss", "name": "lost", "pid": 4242, "tid": 4250, "ts": 2, "dur": 1, "args": {"count": 3, "cause": "ring full"}})
    story.totals["lost_records"] = 3
    assert findings(story, tmp_path) == []


@pytest.mark.parametrize("queries, every, found", [(99, 5, []), (100, 5, 1), (100, 1001, []), (100, 990, 1)])
def test_queries(tmp_path, queries, every, found):
    """So many queries of one event, one in so many microseconds."""
    story = one_stream()
    story.kernel(13, 0, 5, queries * every)
    for i in range(queries):
        story.call("cuEventQuery", 10 + every * i, 1, event=1, **{"cs.result": "CUDA_ERROR_NOT_READY"})
    assert findings(story, tmp_path) == ([("CS113", "main 4250", None, 1)] if found else [])


def test_queries_of_two_things_by_turns_are_no_loop(tmp_path):
    story = one_stream()
    story.kernel(13, 0, 5, 2000)
    for i in range(300):
        story.call("cuEventQuery", 10 + 5 * i, 1, event=1 + i % 2, **{"cs.result": "CUDA_ERROR_NOT_READY"})
    assert findings(story, tmp_path) == []


@pytest.mark.parametrize("call, result, found", [("cuEventElapsedTime", "CUDA_ERROR_NOT_READY", 0), ("cuStreamSynchronize", "CUDA_ERROR_NOT_READY", 1),
                                                 ("cuModuleUnload", "CUDA_ERROR_DEINITIALIZED", 0), ("cuEventQuery", "CUDA_ERROR_LAUNCH_FAILED", 1)])
def test_results(tmp_path, call, result, found):
    story = one_stream()
    story.kernel(13, 0, 5, 2000)
    story.call(call, 10, **{"cs.result": result})
    assert findings(story, tmp_path) == [("CS115", call, None, 1)] * found


@pytest.mark.parametrize("leaked, goes, found", [(99, 20, []), (100, 20, [("CS110", "events", None, 100)]), (160, 10, [])])
def test_objects_that_live_as_long_as_the_program(tmp_path, leaked, goes, found):
    """A few do by design, and those of a pool, which is made in a few goes."""
    story = one_stream()
    story.kernel(13, 0, 5, 2000)
    for i in range(goes):
        for j in range(leaked // goes):
            story.call("cuEventCreate", 10 + 50 * i + 2 * j, 1, flags="0x2")
        story.call("cuEventRecord", 55 + 50 * i, event=1 + i, **{"cs.stream": 13})
    story.totals["leaked_events"] = leaked
    story.trailer["neverDestroyed"] = [{"object": "event", "library": "app", "call": "cuEventCreate", "count": leaked}]
    assert findings(story, tmp_path) == found


def test_a_pool_is_made_at_once(tmp_path):
    story = one_stream()
    for i in range(300):
        story.call("cuStreamCreate", 3 * i)
    story.kernel(13, 1000, 1005, 2000)
    assert findings(story, tmp_path) == []


@pytest.mark.parametrize("engines, found", [(1, []), (2, [("CS114", "stream 13", 1_000_000, 1)])])
def test_a_device_with_one_copy_engine(tmp_path, engines, found):
    story = one_stream()
    story.devices = [{"id": GPU, "name": "GPU", "numSms": 2, "asyncEngineCount": engines}]
    story.copy(13, 3, story.copy(13, 0, 10, 1000), 1000, "DtoH")
    assert findings(story, tmp_path) == found


def test_copies_that_overlap_elsewhere(tmp_path):
    """One stream takes turns, but another copies beside it."""
    story = one_stream()
    story.stream(14)
    story.copy(13, 3, story.copy(13, 0, 10, 1000), 1000, "DtoH")
    story.copy(14, 6, 500, 1000, "DtoH")
    assert findings(story, tmp_path) == []


def test_work_on_the_legacy_stream_that_waits_for_a_blocking_one(tmp_path):
    """CS102 blames the blocking stream, although the work that waited is not on it."""
    story = Story()
    story.stream(LEGACY), story.stream(13, blocking=True)
    story.kernel(LEGACY, 3, story.kernel(13, 0, 10, 1 * MS), 2 * MS)
    assert findings(story, tmp_path) == [("CS101", "stream 7", 1_000_000, 1), ("CS102", "stream 13", 1_000_000, 1)]


def test_idle_time_of_the_legacy_stream(tmp_path):
    """A host function on the legacy stream holds the work of a blocking one for 500 us, in which the GPU is idle, and the kernel before it for 999 us."""
    story = Story()
    story.stream(LEGACY), story.stream(13, blocking=True)
    end = story.kernel(LEGACY, 0, 5, 1000)
    end = story.callback(LEGACY, 3, end, 500)
    story.kernel(13, 6, end, 1000)
    rows = findings(story, tmp_path)
    assert [row[:2] for row in rows] == [("CS101", "stream 7"), ("CS102", "stream 13")]
    assert [row[2] for row in rows] == [500_000 + 999_000] * 2


def test_a_host_function_alone_on_the_legacy_stream(tmp_path):
    """No work ever ran there."""
    story = Story()
    story.stream(LEGACY), story.stream(13, blocking=True)
    story.kernel(13, 6, story.callback(LEGACY, 3, story.kernel(13, 0, 5, 1000), 500), 1000)
    assert findings(story, tmp_path) == [("CS101", "stream 7", 500_000, 1), ("CS102", "stream 13", 500_000, 1)]


def test_each_gpu_has_findings_of_its_own(tmp_path):
    """One thread waits for the work of two GPUs by turns, and each is idle while the other works, and after."""
    story, at = Story(), 0
    story.stream(13), story.stream(27, device=1)
    for _ in range(6):
        for stream in (13, 27):
            end = story.kernel(stream, at, at + 5, 1000)
            at = story.callback(stream, at + 3, end, 400)
            story.kernel(stream, end - 900, at, 100)
            at += 100
    rows = findings(story, tmp_path)
    assert {row[:2]: row[2:] for row in rows if row[0] == "CS116"} == {("CS116", f"stream {stream} of GPU {gpu}"): (6 * 400_000, 6)
                                                                      for stream, gpu in ((13, 0), (27, 1))}


def test_the_runtimes_allocations_in_a_trace_of_another_tool(tmp_path):
    """PyTorch's profiler has no driver calls; what it has is cudaMalloc between two kernels."""
    rows = [meta("process_name", HOST, HOST, "python"), meta("thread_name", HOST, MAIN, "main")]
    for i, (name, at, took) in enumerate([("cudaLaunchKernel", 0, 4), ("cudaMalloc", 1010, 300), ("cudaLaunchKernel", 1310, 4)], 1):
        rows.append(slice_("cuda_runtime", name, HOST, MAIN, at, took, correlation=i))
    rows += [slice_("kernel", "k", GPU, 7, began, 1000, device=GPU, stream=7, correlation=i) for began, i in ((10, 1), (1320, 3))]
    path = tmp_path / "other.json"
    path.write_text(json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": 1, "traceEvents": rows}), encoding="utf-8")
    tables = json.loads(custream("report", "--json", path).stdout)["tables"]
    assert [(row["id"], row["cost_ns"], row["times"]) for row in tables["findings"]] == [("CS106", 300_000, 1)]
