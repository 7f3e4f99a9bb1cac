"""The timeline against what the programs did: slices and their arguments, lanes, arrows, callbacks, captures, leaks, and what was lost."""
import collections
import gzip
import re

import pytest

from tests.apprun import both, calls_in, calls_of, faithful, notes_of, read, said
from tests.gputrace import works
from tests.trace import SYNC, kind_of, stream_of



@pytest.fixture(params=["timeline", "timeline_linked"])
def timeline(run_app, request):
    """The program of every kind of call, which reaches the driver by dlsym or directly."""
    return faithful(run_app, request.param)


def lane_of(trace, handle):
    """The lane (device, tid) of the one stream that had this handle."""
    (lane,) = {(e["pid"], e["tid"]) for e in trace.lives if e["args"].get("handle") == handle}
    return lane


def life(trace, lane):
    """The one slice that is the life of a lane's stream."""
    (found,) = [e for e in trace.lives if (e["pid"], e["tid"]) == lane]
    return found


def args_of(trace, name):
    """The arguments of every call of that name, in order of time, without the number that it shares with its work, and without its thread's clock."""
    return [{k: v for k, v in e["args"].items() if k not in ("correlation", "cpu_us", "cpu_end_us")} for e in sorted(trace.host(name), key=lambda e: e["ts"])]


# ---- One program with calls of every kind ----

def test_metadata(timeline):
    _, trace = timeline
    assert trace.metadata["simulated_gpu"] is True and trace.metadata["command_line"].rpartition("/")[2].startswith("timeline")
    assert trace.metadata["tool"].startswith("custream ") and trace.metadata["gpu_time_source"] == "cupti"
    gpu = trace.totals.pop("gpu")
    assert trace.totals == {"recorded": len(trace.host()), "calls": len(trace.host(cat="cuda_driver")), "lost_records": 0, "complete": True, "untracked_objects": 0,
                            "leaked_streams": 0, "leaked_events": 0}
    assert gpu["source"] == "cupti" and gpu["lost"] == gpu["without_call"] == gpu["without_times"] == gpu["launches_without_kernel"] == 0
    assert trace.json["neverDestroyed"] == []
    assert trace.json["deviceProperties"] == [
        {"id": 0, "name": "custream simulated GPU", "numSms": 132, "computeMajor": 9, "computeMinor": 0, "maxThreadsPerMultiprocessor": 2048,
         "maxBlocksPerMultiprocessor": 32, "regsPerMultiprocessor": 65536, "sharedMemPerMultiprocessor": 233472, "asyncEngineCount": 3}]


def test_launch_arguments(timeline):
    run, trace = timeline
    lanes = {key: lane_of(trace, handle)[1] for key, handle in notes_of(run.stderr).items() if handle.startswith("0x")}
    odd = 'odd"\\\x01\t\xe9\ufffd_kernel'
    shaped, strange = args_of(trace, "cuLaunchKernel")[:2]
    assert shaped == {"cs.stream": lanes["plain"], "kernel": "empty_kernel"} and strange == {"cs.stream": lanes["free_running"], "kernel": odd}
    assert args_of(trace, "cuLaunchKernelEx") == [{"cs.stream": lanes["urgent"], "kernel": "empty_kernel"}]
    assert args_of(trace, "cuLaunchCooperativeKernel") == [{"cs.stream": lanes["clamped"], "kernel": "empty_kernel"}]
    shape = {f.start["args"]["correlation"]: (f.start["name"], f.finish) for f in sorted(trace.flows("ac2g"), key=lambda f: f.start["ts"])}
    found = [(call, work["name"], *(work["args"].get(key) for key in ("grid", "block", "shared memory"))) for call, work in shape.values() if work["cat"] == "kernel"]
    assert found[:2] == [("cuLaunchKernel", "empty_kernel", [2, 3, 4], [32, 2, 1], 256), ("cuLaunchKernel", odd, [1, 1, 1], [1, 1, 1], None)]
    assert ("cuLaunchKernelEx", "empty_kernel", [5, 1, 1], [128, 1, 2], 48) in found and ("cuLaunchCooperativeKernel", "empty_kernel", [7, 1, 1], [8, 1, 1], None) in found


@pytest.mark.parametrize("source", ["off", "events"])
def test_launch_arguments_where_no_kernel_is_told_of(run_app, source):
    """Then the launch says everything; also of a call that was refused, or in a capture."""
    run, trace = faithful(run_app, "timeline", env={"CUSTREAM_GPU": source})
    lanes = {key: lane_of(trace, handle)[1] for key, handle in notes_of(run.stderr).items() if handle.startswith("0x")}
    shaped, strange = args_of(trace, "cuLaunchKernel")[:2]
    assert shaped == {"cs.stream": lanes["plain"], "kernel": "empty_kernel", "shared memory": 256, "grid": [2, 3, 4], "block": [32, 2, 1]}
    assert (strange["grid"], strange["block"]) == ([1, 1, 1], [1, 1, 1])
    assert args_of(trace, "cuLaunchKernelEx") == [
        {"cs.stream": lanes["urgent"], "kernel": "empty_kernel", "shared memory": 48, "grid": [5, 1, 1], "block": [128, 1, 2]}]
    assert args_of(trace, "cuLaunchCooperativeKernel") == [
        {"cs.stream": lanes["clamped"], "kernel": "empty_kernel", "grid": [7, 1, 1], "block": [8, 1, 1]}]


def test_launches_in_a_capture_say_everything(run_app):
    """They have no kernel of their own. That another thread's stream joined may be known later than its launch."""
    trace = read(run_app(["works", "captures"]).check().trace)
    have = {f.start["args"]["correlation"] for f in trace.flows("ac2g")}
    captures = {e["tid"] for e in trace.host("cuStreamBeginCapture_v2")}
    without = [e for e in trace.host("cuLaunchKernel") if e["args"]["correlation"] not in have and e["tid"] in captures]
    assert without and all("grid" in e["args"] for e in without)


def test_copy_arguments(timeline):
    run, trace = timeline
    plain = lane_of(trace, notes_of(run.stderr)["plain"])[1]

    def shown(name):
        return [(a["cs.stream"], a.get("direction"), a["bytes"]) for a in args_of(trace, name)]
    assert shown("cuMemcpyHtoDAsync_v2") == [(plain, "HtoD", 4096)]
    assert shown("cuMemcpyDtoHAsync_v2") == [(plain, "DtoH", 1000)]
    assert shown("cuMemcpyDtoDAsync_v2") == [(plain, "DtoD", 77)]
    assert shown("cuMemcpyHtoD_v2") == [(7, "HtoD", 123)]
    assert [b for _, _, b in shown("cuMemcpyAsync")] == [55]
    assert [b for _, _, b in shown("cuMemsetD32Async")] == [64]
    assert [(s, b) for s, _, b in shown("cuMemsetD8_v2")] == [(7, 32)]
    assert [a["value"] for a in args_of(trace, "cuMemsetD8Async")] == ["0x7", "0x1", "0x1"]


def test_event_arguments(timeline):
    run, trace = timeline
    plain = lane_of(trace, notes_of(run.stderr)["plain"])[1]
    good = [a for a in args_of(trace, "cuEventRecord") if "cs.result" not in a]
    assert good == [{"cs.stream": plain, "event": 1}, {"cs.stream": plain, "event": 2}]
    (synchronised,), (queried,), (elapsed,) = (args_of(trace, n) for n in ("cuEventSynchronize", "cuEventQuery", "cuEventElapsedTime"))
    assert synchronised == {"event": 2, "recorded on": plain, "blocked_us": synchronised["blocked_us"]}
    assert queried["event"] == 1 and (elapsed["start"], elapsed["end"]) == (1, 2)
    assert [a["event"] for a in args_of(trace, "cuEventDestroy_v2")] == [1, 2]


def test_results_that_are_no_success(timeline):
    run, trace = timeline
    failed = {(e["name"], e["args"]["cs.result"]) for e in trace.host() if "cs.result" in e["args"]}
    assert failed == {("cuStreamQuery", "CUDA_ERROR_NOT_READY"), ("cuStreamSynchronize", "CUDA_ERROR_INVALID_HANDLE"),
                      ("cuStreamCreate", "CUDA_ERROR_INVALID_VALUE"), ("cuEventRecord", "CUDA_ERROR_INVALID_HANDLE"),
                      ("cuLaunchKernel", "CUDA_ERROR_INVALID_VALUE")}
    assert sum("cs.result" in e["args"] for e in trace.host()) == 5
    (query,) = trace.host("cuStreamQuery")
    assert query["args"]["cs.stream"] == lane_of(trace, notes_of(run.stderr)["urgent"])[1]
    (bad,) = [e for e in trace.host("cuStreamSynchronize") if "cs.result" in e["args"]]
    assert "cs.stream" not in bad["args"]


def test_sync_calls_say_how_long_they_blocked(timeline):
    _, trace = timeline
    calls = [e for e in trace.host() if "Synchronize" in e["name"]]
    assert len(calls) == 7 and all(e["args"]["blocked_us"] > 0 for e in calls)
    assert all(abs(e["args"]["blocked_us"] - e["dur"]) < 0.002 for e in calls)
    assert not [e for e in trace.host() if "blocked_us" in e["args"] and "Synchronize" not in e["name"]]


def test_threads(timeline):
    run, trace = timeline
    notes = notes_of(run.stderr)
    main, worker = int(notes["main"]), int(notes["worker"])
    assert trace.threads[worker] == "worker" and trace.threads[main] == run.argv[0].rsplit("/", 1)[1][:15]
    calls = collections.Counter((e["tid"], e["name"]) for e in trace.host())
    assert calls[worker, "cuLaunchKernel_ptsz"] == 5 and calls[worker, "cuLaunchKernel"] == 3 and calls[worker, "cuStreamSynchronize_ptsz"] == 1
    assert calls[main, "cuLaunchKernel"] == 13 and {tid for tid, _ in calls} == {main, worker}


def test_order_and_nesting(timeline):
    """On a thread calls follow each other as the program made them; none begins inside another."""
    _, trace = timeline
    by_thread = collections.defaultdict(list)
    for e in trace.host():
        by_thread[e["tid"]].append(e)
    for calls in by_thread.values():
        assert calls == sorted(calls, key=lambda e: e["ts"])
        for one, next_one in zip(calls, calls[1:]):
            assert round(one["ts"] + one["dur"], 3) <= next_one["ts"]
    main = by_thread[min(by_thread, key=lambda tid: by_thread[tid][0]["ts"])]
    names = [e["name"] for e in main]
    assert names.index("cuStreamCreate") < names.index("cuLaunchKernelEx") < names.index("cuMemcpyHtoD_v2") < names.index("cuEventQuery")


def test_lane_names(timeline):
    run, trace = timeline
    notes = notes_of(run.stderr)
    main_comm = run.argv[0].rsplit("/", 1)[1][:15]
    names = collections.Counter(trace.lanes.values())
    expected = {"plain": f" · {main_comm}", "free_running": f" nb · {main_comm}", "urgent": f" p-3 nb · {main_comm}", "clamped": f" p-5 · {main_comm}"}
    for key, rest in expected.items():
        device, tid = lane_of(trace, notes[key])
        assert trace.streams[device, tid] == f"stream {tid}{rest}"
    assert trace.streams[0, 7] == "stream 7 legacy default"
    streams = trace.streams_with_lane
    others = {re.sub(r"^stream \d+", "", n) for stream, n in streams.items() if stream != 7} - set(expected.values())
    assert others == {" per-thread default · worker", f" per-thread default · {main_comm}"}
    assert len(streams) == 7 and max(names.values()) == 1
    assert trace.process_names[0] == "GPU 0 custream simulated GPU"
    order = {e["pid"]: e["args"]["sort_index"] for e in trace.events if e["ph"] == "M" and e["name"] == "process_sort_index"}
    assert sorted(order, key=order.get) == [trace.host()[0]["pid"], 0], "the program stands above its GPU"


def test_stream_lives(timeline):
    run, trace = timeline
    notes = notes_of(run.stderr)
    lives = {key: life(trace, lane_of(trace, notes[key])) for key in ("plain", "free_running", "urgent", "clamped")}
    told = ("launches", "copies", "memsets", "event records", "waits", "synchronisations", "graphs", "bytes copied", "destroyed")
    counts = {key: {k: e["args"][k] for k in told if k in e["args"]} for key, e in lives.items()}
    assert counts["plain"] == {
        "launches": 4, "copies": 3, "event records": 2, "synchronisations": 1, "bytes copied": 4096 + 1000 + 77, "destroyed": True}
    assert counts["free_running"] == {"launches": 11, "copies": 1, "bytes copied": 55, "destroyed": True}
    assert counts["urgent"] == {"launches": 1, "memsets": 2, "synchronisations": 2, "destroyed": True}
    assert counts["clamped"] == {"launches": 1, "destroyed": True}
    assert lives["clamped"]["args"]["requested priority"] == -100 and lives["clamped"]["args"]["priority"] == -5
    assert lives["urgent"]["args"]["created by"] == "cuStreamCreateWithPriority" and lives["urgent"]["args"]["thread"] == int(notes["main"])
    for key, e in lives.items():
        lane = e["tid"]
        assert e["args"]["cs.stream"] == lane and e["args"]["origin"] == "created" and e["args"]["library"] == run.argv[0].rsplit("/", 1)[1], key
        used = [h["ts"] for h in trace.host() if h["args"].get("cs.stream") == lane and not h["name"].startswith("cuStreamCreate")]
        assert e["ts"] <= min(used) and max(used) <= round(e["ts"] + e["dur"], 3)
    assert life(trace, (0, 7))["args"]["memsets"] == 2 and life(trace, (0, 7))["args"]["copies"] == 1
    assert all(e["dur"] is not None for e in trace.lives)


# ---- Arrows ----

def test_arrows(run_app):
    run, trace = faithful(run_app, "arrows")
    notes = notes_of(run.stderr)
    main, recorder = int(notes["main"]), int(notes["recorder"])
    expected = [line.split()[1:] for line in run.stdout.splitlines() if line.startswith("arrow ")]
    flows = trace.flows("cs_dep")
    assert sorted((f.finish["name"], str(f.finish["args"]["event"])) for f in flows) == sorted((name, event) for name, event in expected)
    assert len(flows) == 26
    for f in flows:
        assert f.start["name"] in ("cuEventRecord", "cuEventRecordWithFlags", "cuCtxRecordEvent")
        assert f.start["args"]["event"] == f.finish["args"]["event"] and f.start["ts"] < f.finish["ts"]

    across = sorted((f for f in flows if f.finish["args"]["event"] == 3), key=lambda f: f.finish["ts"])
    assert [(f.start["tid"], f.finish["tid"]) for f in across] == [(recorder, main)] * 20
    records = [e for e in trace.host("cuEventRecord") if e["args"]["event"] == 3]
    waits = [e for e in trace.host("cuStreamWaitEvent") if e["args"]["event"] == 3]
    assert [(f.start["ts"], f.finish["ts"]) for f in across] == [(r["ts"], w["ts"]) for r, w in zip(records, waits, strict=True)]

    # Event 1: both first waits come from the first record, the later two from the second.
    first, second = [e["ts"] for e in trace.host("cuEventRecord") if e["args"]["event"] == 1]
    again = sorted((f for f in flows if f.finish["args"]["event"] == 1), key=lambda f: f.finish["ts"])
    assert [f.start["ts"] for f in again] == [first, first, second, second]
    lanes = {key: lane_of(trace, notes[key])[1] for key in "ab"}
    assert {f.finish["args"]["recorded on"] for f in across} == {lanes["b"]} and {f.finish["args"]["cs.stream"] for f in across} == {lanes["a"]}


# ---- Callbacks, captures, graphs ----

def test_callbacks(run_app):
    run, trace = faithful(run_app, "callbacks")
    thread = int(notes_of(run.stderr)["callbacks"])
    slices = [e for e in trace.host("callback", cat="cs_callback")]
    assert len(slices) == 10 and {e["tid"] for e in slices} == {thread}
    assert collections.Counter(e["args"]["enqueued by"] for e in slices) == {
        "cuLaunchHostFunc": 6, "cuStreamAddCallback": 3, "cuLaunchHostFunc_ptsz": 1}
    assert trace.threads[thread] == "callbacks (callbacks)"
    assert {e["args"]["cs.stream"] for e in slices} == {e["tid"] for e in trace.lives if e["args"].get("origin") == "created"}
    (gated,) = [e for e in slices if e["args"]["enqueued by"] == "cuLaunchHostFunc_ptsz"]
    assert gated["args"]["delay_us"] >= 20000  # the program slept that long before it opened the gate
    enqueued = [e for e in trace.host("cuLaunchHostFunc_ptsz")][0]
    assert enqueued["ts"] < gated["ts"]
    # The function that the program gave, not ours, is what the enqueuing calls show.
    assert {e["args"]["function"] for e in slices} == {
        e["args"]["function"] for n in ("cuLaunchHostFunc", "cuLaunchHostFunc_ptsz", "cuStreamAddCallback") for e in trace.host(n)
        if "cs.result" not in e["args"] and e["args"]["function"] != "0x0"} - captured_functions(trace)


def captured_functions(trace):
    """Functions enqueued between a begin and an end of a capture."""
    (begin,), (end,) = trace.host("cuStreamBeginCapture_v2"), trace.host("cuStreamEndCapture")
    return {e["args"]["function"] for e in trace.host("cuLaunchHostFunc") if begin["ts"] < e["ts"] < end["ts"]}


def test_call_inside_a_callback(run_app):
    """A call that a callback makes stands inside the callback's slice, on the driver's thread."""
    run, trace = faithful(run_app, "callbacks")
    (inner,) = trace.host("cuEventQuery")
    assert inner["tid"] == int(notes_of(run.stderr)["callbacks"])
    outer = [e for e in trace.host("callback") if e["ts"] <= inner["ts"] and round(inner["ts"] + inner["dur"], 3) <= round(e["ts"] + e["dur"], 3)]
    assert len(outer) == 1


def test_captures_and_graphs(run_app):
    run, trace = faithful(run_app, "capture")
    notes = notes_of(run.stderr)
    a, b = lane_of(trace, notes["a"])[1], lane_of(trace, notes["b"])[1]
    captures = sorted(trace.gpu("capture", cat="cs_stream"), key=lambda e: e["ts"])
    assert all(kind_of(e["tid"]) == SYNC for e in captures)
    assert [(stream_of(e["tid"]), e["args"].get("cs.result")) for e in captures] == [(a, None), (b, None), (a, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED")]
    begins = sorted(trace.host("cuStreamBeginCapture_v2") + trace.host("cuStreamBeginCapture_v2_ptsz"), key=lambda e: e["ts"])
    ends = sorted(trace.host("cuStreamEndCapture"), key=lambda e: e["ts"])
    assert all(set(e["args"]) <= {"cs.stream", "cs.result"} for e in ends)  # when the capture began is told by its slice
    assert [e["args"]["mode"] for e in begins] == ["thread_local", "relaxed", "global"]
    for begin, capture, end in zip(begins, captures, ends, strict=True):
        assert begin["ts"] < capture["ts"] and round(capture["ts"] + capture["dur"], 3) <= end["ts"] + 0.001
    launches = collections.Counter(e["args"]["cs.stream"] for e in trace.host("cuGraphLaunch"))
    assert launches == {a: 7, b: 4}
    assert life(trace, (0, a))["args"]["graphs"] == 7 and life(trace, (0, b))["args"]["graphs"] == 4
    assert len({e["args"]["graph_exec"] for e in trace.host("cuGraphLaunch")}) == 2


# ---- What was never destroyed ----

def test_leaks(run_app):
    run, trace = both(run_app, ["leaks", 3, 4, 5, 6])
    by_library = collections.Counter({"cuStreamCreateWithPriority": 5, "cuEventCreate": 6})
    assert calls_in(trace) == calls_of(run.check().stdout) + by_library
    assert (trace.totals["leaked_streams"], trace.totals["leaked_events"]) == (8, 10)
    found = {(r["object"], r["library"], r["call"]): r["count"] for r in trace.json["neverDestroyed"]}
    assert found == {("stream", "leaks", "cuStreamCreate"): 3, ("event", "leaks", "cuEventCreate"): 4,
                     ("stream", "libmaker.so", "cuStreamCreateWithPriority"): 5, ("event", "libmaker.so", "cuEventCreate"): 6}
    ends = [e["args"]["destroyed"] for e in trace.lives if e["args"]["origin"] == "created"]
    assert collections.Counter(ends) == {True: 3, False: 8}
    libraries = collections.Counter(e["args"]["library"] for e in trace.lives if e["args"]["origin"] == "created")
    assert libraries == {"leaks": 6, "libmaker.so": 5}


@pytest.mark.parametrize("arguments", [[0, 0, 0, 0], [3, 4, 5, 6, "release"]], ids=["nothing", "ended-with-context"])
def test_clean_program_leaks_nothing(run_app, arguments):
    _, trace = both(run_app, ["leaks", *arguments])
    assert (trace.totals["leaked_streams"], trace.totals["leaked_events"], trace.json["neverDestroyed"]) == (0, 0, [])


# ---- Forms of the file ----

def test_gzip(run_app, tmp_path):
    path = tmp_path / "trace.json.gz"
    run = run_app(["burst", 2, 3000], env={"CUSTREAM_TRACE": path}).check()
    assert not run.trace.exists() and path.read_bytes()[:2] == b"\x1f\x8b"
    trace = read(path)
    assert calls_in(trace) == calls_of(run.stdout) and len(gzip.decompress(path.read_bytes())) > path.stat().st_size


def test_off_writes_nothing(run_app, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    bare = run_app(["timeline"], shim=False)
    run = run_app(["timeline"], env={"CUSTREAM_TRACE": "off"}, cwd=empty).check()
    assert run.stdout == bare.stdout and not said(run) and list(empty.iterdir()) == []


def test_default_name(run_app, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    run = run_app(["leaks", 0, 0, 0, 0], env={"CUSTREAM_TRACE": None}, cwd=folder).check()
    (path,) = folder.iterdir()
    assert re.fullmatch(r"custream-leaks-\d+\.json", path.name)
    assert calls_in(read(path)) == calls_of(run.stdout)


# ---- What does not fit ----

def losses(trace):
    return [e for e in trace.host("lost", cat="cs_loss")]


def add_up(run, trace):
    """Recorded and lost calls together are those that the program made, and each launch's kernel is there or lost; the file has exactly the recorded ones.
    Once a file has ended before its program nothing more is recorded, so that there may have been more."""
    made, launches, totals = sum(calls_of(run.stdout).values()), calls_of(run.stdout)["cuLaunchKernel"], trace.totals
    assert totals["lost_records"] == sum(e["args"]["count"] for e in losses(trace))
    assert totals["recorded"] == sum(calls_in(trace).values()) and totals["gpu"]["kernels"] == len(works(trace))
    not_written = totals.get("not_written", {"calls": 0, "gpu_work": 0})
    assert sum(e["args"].get("gpu_work", 0) for e in losses(trace)) == not_written["gpu_work"] and not_written["calls"] <= totals["lost_records"]
    calls, kernels = totals["recorded"] + totals["lost_records"], len(works(trace)) + not_written["gpu_work"]
    assert (calls <= made and kernels <= launches) if "ended" in totals else (calls, kernels) == (made, launches)


def test_block_loses_nothing(run_app):
    run, trace = faithful(run_app, ["burst", 2, 15000], env={"CUSTREAM_FULL": "block", "CUSTREAM_BUFFER": "64K"})
    assert calls_in(trace)["cuLaunchKernel"] == 30000 and trace.totals["lost_records"] == 0 and not losses(trace)


@pytest.mark.parametrize("threads, pause", [(1, 0), (3, 60)], ids=["one-thread", "three-threads-with-pause"])
def test_drop_says_what_it_lost(run_app, threads, pause):
    run, trace = both(run_app, ["burst", threads, 20000, pause], env={"CUSTREAM_FULL": "drop", "CUSTREAM_BUFFER": "64K"})
    add_up(run.check(), trace)
    assert trace.totals["lost_records"] > 0
    for e in losses(trace):
        assert "CUSTREAM_BUFFER" in e["args"]["cause"] and e["dur"] >= 0.001 * e["args"]["count"]  # from the first call to the last
    if pause:  # the gap stands before what came after it: each thread went on recording after its pause
        for e in losses(trace):
            assert e["tid"] in trace.threads
        first = min(losses(trace), key=lambda e: e["ts"])
        assert any(e["tid"] == first["tid"] and e["ts"] >= first["ts"] + first["dur"] for e in trace.host("cuLaunchKernel"))


def test_default_buffer_loses_nothing_in_a_burst(run_app):
    """4 MiB a thread are 65,536 records."""
    faithful(run_app, ["burst", 2, 30000])


@pytest.mark.parametrize("name, limit", [("trace.json", 1 << 20), ("trace.json", 3 << 20), ("trace.json.gz", 1 << 20)])
def test_size_limit(run_app, tmp_path, name, limit):
    """The file stops growing, stays valid, and says how many calls it lacks."""
    path = tmp_path / name
    calls = 30000 if name.endswith("json") else 150000
    run = run_app(["burst", 1, calls], env={"CUSTREAM_TRACE": path, "CUSTREAM_TRACE_MAX": limit, "CUSTREAM_FULL": "block"}).check()
    assert path.stat().st_size <= limit + (64 << 10)
    (line,) = said(run)
    assert "CUSTREAM_TRACE_MAX" in line and str(path) in line
    trace = read(path)
    (cut,) = losses(trace)
    assert "CUSTREAM_TRACE_MAX" in cut["args"]["cause"] and trace.threads[cut["tid"]]
    add_up(run, trace)
    assert calls_in(trace)["cuLaunchKernel"] > 0, "nothing at all was recorded"


def test_largest_file_within_the_limit(run_app, tmp_path):
    """A trace that fits is not cut."""
    path = tmp_path / "trace.json"
    run = run_app(["burst", 1, 1000], env={"CUSTREAM_TRACE": path, "CUSTREAM_TRACE_MAX": "1M"}).check()
    assert path.stat().st_size < 1 << 20
    trace = read(path)
    add_up(run, trace)
    assert not losses(trace) and not said(run)


@pytest.mark.parametrize("said, queues", [(None, 8), ("32", 32), ("1", 1), ("0", 8), ("33", 8), ("many", 8)])
def test_hardware_queues(run_app, said, queues):
    trace = run_app(["demo"], env={"CUDA_DEVICE_MAX_CONNECTIONS": said} if said else {}).check().load()
    assert trace.metadata["max_connections"] == queues


def test_command_line(run_app):
    """Arguments may have any bytes, and be longer than the header has room for."""
    trace = run_app(["demo", 'a "quoted" one', "\udcff\x01\n", "x" * 4000]).check().load()
    said = trace.metadata["command_line"].partition("tests/demo ")[2]
    assert said.startswith('a "quoted" one \ufffd\x01\n xxx') and len(trace.metadata["command_line"].encode()) <= 1023 + 2
