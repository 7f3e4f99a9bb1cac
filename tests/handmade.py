"""A good trace by hand, for cases that break it, and the command that is to say so."""
import json
import os
import subprocess

from tests import BUILD

COMMAND = BUILD / "custream"
SHIM = BUILD / "libcustream_shim.so"
NO_CUDA = "custream: no CUDA was called: no trace\n"  # what `custream run` says last of a program that uses none


def custream(*args, **kwargs):
    env = {k: v for k, v in os.environ.items() if not k.startswith("CUSTREAM_") and k != "LD_PRELOAD"}
    env.update(kwargs.pop("env", {}))
    return subprocess.run([COMMAND, *map(str, args)], capture_output=True, text=True, timeout=60, env=env, **kwargs)


# A good trace by hand. Every row has a name by which the broken ones below say which row they change.

HEADER = [
    '{"schemaVersion":1,"displayTimeUnit":"ns","baseTimeNanoseconds":1760000000000000000,',
    '"distributedInfo": {"rank": 0, "world_size": 1},',
    '"metadata":{"tool":"custream 0.1","gpu_time_source":"cupti","clock_error_ns":120},',
    '"traceEvents":[',
]
GPU_TOTALS = {"source": "cupti", "kernels": 2, "copies": 1, "memsets": 1, "graphs": 0, "ranges": 0, "overhead": 0, "without_call": 0,
              "without_times": 0, "lost": 0, "launches_without_kernel": 0}
TOTALS = {"recorded": 3, "lost_records": 7, "complete": True, "gpu": GPU_TOTALS, "leaked_streams": 0}


def trailer_of(totals=None, gpu=None, **members):
    """The last line, with other totals than those of GOOD; None takes one away."""
    def kept(members_):
        return {name: value for name, value in members_.items() if value is not None}
    every = kept({**TOTALS, "gpu": kept({**GPU_TOTALS, **(gpu or {})}), **(totals or {})})
    return '],"traceName":"custream",' + json.dumps({"totals": every, **members}, separators=(",", ":"))[1:]


def good_trailer(totals=None, gpu=None, **members):
    """That of GOOD, in which three pieces of work have no call."""
    return trailer_of(totals, {"without_call": 3, **(gpu or {})}, **members)


TRAILER = good_trailer()


def meta(name, pid, tid, value):
    return {"ph": "M", "name": name, "pid": pid, "tid": tid, "args": {"name": value}}


def slice_(cat, name, pid, tid, ts, dur, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def flow(ph, id_, pid, tid, ts, cat="ac2g"):
    row = {"ph": ph, "id": id_, "pid": pid, "tid": tid, "ts": ts, "cat": cat, "name": cat}
    return {**row, "bp": "e"} if ph == "f" else row


HOST, GPU = 4242, 0
SYNC, OVERLAP = 1 << 24, 1 << 26  # how traces of earlier versions number the rows beside a stream's lane
GOOD = {
    "process": meta("process_name", HOST, HOST, "app"),
    "thread": meta("thread_name", HOST, 4250, "main"),
    "gpu": meta("process_name", GPU, 7, "GPU 0"),
    "stream": meta("thread_name", GPU, 13, "stream 13 prio -5 non-blocking"),
    "overlap": meta("thread_name", GPU, 13 + OVERLAP, "stream 13 (overlap 1)"),
    "sync lane": meta("thread_name", GPU, 13 + SYNC, "stream 13 (sync)"),
    "runtime": slice_("cuda_runtime", "cudaLaunchKernel", HOST, 4250, 10, 5),
    "launch": slice_("cuda_driver", "cuLaunchKernel", HOST, 4250, 10, 3.012, **{"correlation": 91, "cs.stream": 13}),
    "s": flow("s", 91, HOST, 4250, 10),
    "kernel": slice_("kernel", "k(float*) \u00b5 \U0001f600 \"q\" \\ \x01", GPU, 13, 14.5, 21.25, device=0, stream=13, correlation=91),
    "f": flow("f", 91, GPU, 13, 14.5),
    "kernel 2": slice_("kernel", "j", GPU, 13 + OVERLAP, 20, 100, device=0, stream=13),
    "memcpy": slice_("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", GPU, 13, 35.75, 0.001, stream=13, bytes=4096),
    "memset": slice_("gpu_memset", "Memset (Device)", GPU, 13, 40, 1, stream=13),
    "sync": slice_("cuda_sync", "Stream Sync", GPU, 13 + SYNC, 41, 2, **{"cs.stream": 13}),
    "wait b": {"ph": "b", "cat": "cuda_event", "name": "wait", "id": 3, "pid": GPU, "tid": 13, "ts": 42},
    "wait e": {"ph": "e", "cat": "cuda_event", "name": "wait", "id": 3, "pid": GPU, "tid": 13, "ts": 43},
    "counter": {"ph": "C", "name": "stream 13 depth", "pid": GPU, "tid": 13, "ts": 44, "args": {"n": 3}},
    "range B": {"ph": "B", "cat": "user_annotation", "name": "step", "pid": HOST, "tid": 4250, "ts": 50, "args": {}},
    "loss": slice_("cs_loss", "lost", HOST, 4250, 51, 2, count=7, cause="ring full"),
    "range E": {"ph": "E", "pid": HOST, "tid": 4250, "ts": 60},
}


def copy_rows():
    return {name: json.loads(json.dumps(row)) for name, row in GOOD.items()}


def render(rows, header=HEADER, trailer=TRAILER):
    """Rows are objects, or text to be taken as it is."""
    texts = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows.values()]
    return "\n".join(header) + "\n" + ",\n".join(texts) + "\n" + trailer + "\n"


def line_of(rows, name):
    return len(HEADER) + 1 + list(rows).index(name)


def check(tmp_path, content, name="t.json"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogateescape"))
    result = custream("check", path)
    return result, path


def assert_breach(tmp_path, content, line, rule, words=""):
    result, path = check(tmp_path, content)
    assert result.stdout.startswith(f"{path}:{line}: rule {rule}: "), result.stdout + result.stderr
    assert words in result.stdout
    assert result.stdout.count("\n") == 1 and result.stderr == ""
    assert result.returncode == 1


def good_trace(tmp_path, content, words=None):
    """It keeps the rules. Three pieces of work in it have no call."""
    result, path = check(tmp_path, content)
    words = words or "incomplete"
    assert result.stdout.startswith(f"{path}: {words}: events ") and (result.returncode, result.stderr) == (0, ""), result.stdout + result.stderr


def changed(**changes):
    """GOOD with other rows: None takes one away, a dict changes members, a new name adds a row at the end."""
    return {name: {**GOOD.get(name, {}), **change} for name, change in {**{name: {} for name in GOOD}, **changes}.items() if change is not None}


def launches(count, name="k"):
    """A trace of kernels of 1 us on two streams in turn, one every 3 us, each enqueued 1 us before it begins."""
    rows = {key: GOOD[key] for key in ("process", "thread", "gpu", "stream")}
    rows["other stream"] = meta("thread_name", GPU, 14, "stream 14 <non-blocking>")
    for n in range(count):
        call = slice_("cuda_driver", "cuLaunchKernel", HOST, 4250, 3 * n, 0.5, **{"correlation": n + 1, "cs.stream": 13 + n % 2})
        kernel = slice_("kernel", name, GPU, 13 + n % 2, 3 * n + 1, 1, device=0, stream=13 + n % 2, correlation=n + 1)
        rows |= {f"call {n}": call, f"s {n}": flow("s", n + 1, HOST, 4250, call["ts"]),
                 f"kernel {n}": kernel, f"f {n}": flow("f", n + 1, GPU, 13 + n % 2, kernel["ts"])}
    return render(rows, trailer=trailer_of())
