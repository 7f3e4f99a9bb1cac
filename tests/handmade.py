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


def cut_by_key(key):
    """The arguments of a range that is not as the program made it: cs.cut says how, whatever cs.note does."""
    return {"cs.note": "its end was lost", "cs.cut": key}


def cut_by_note(key):
    """The same in a trace from before cs.cut."""
    return {"cs.note": {"goes_on": "goes on in the next part", "continued": "began in an earlier part",
                        "continued_goes_on": "began in an earlier part, and goes on in the next"}[key]}


# A good trace by hand. Every row has a name by which the broken ones below say which row they change.

HEADER = [
    '{"schemaVersion":2,"displayTimeUnit":"ns","baseTimeNanoseconds":1760000000000000000,',
    '"distributedInfo": {"rank": 0, "world_size": 1},',
    '"metadata":{"tool":"custream 0.1","gpu_time_source":"cupti","clock_error_ns":120},',
    '"traceEvents":[',
]
GPU_TOTALS = {"source": "cupti", "kernels": 2, "copies": 1, "memsets": 1, "graphs": 0, "ranges": 0, "overhead": 0, "without_call": 0,
              "without_times": 0, "lost": 0, "launches_without_kernel": 0}
TOTALS = {"recorded": 3, "calls": 1, "lost_records": 7, "complete": True, "gpu": GPU_TOTALS, "leaked_streams": 0}


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


def meta(name, pid, tid, value, **args):
    return {"ph": "M", "name": name, "pid": pid, "tid": tid, "args": {"name": value, **args}}


def lane(tid, name):
    """The name of a GPU's lane, as ours say it: with the stream."""
    return meta("thread_name", GPU, tid, name, **{"cs.stream": tid // 100})


def slice_(cat, name, pid, tid, ts, dur, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def flow(ph, id_, pid, tid, ts):
    row = {"ph": ph, "id": id_, "pid": pid, "tid": tid, "ts": ts, "cat": "cs_dep", "name": "cs_dep"}
    return {**row, "bp": "e"} if ph == "f" else row


def bound(call, *works):
    """The slices of a call and of its work, with the arrows from one to the other."""
    number = call["args"]["correlation"]
    return [{**call, "bind_id": number, "flow_out": True}, *({**work, "bind_id": number, "flow_in": True} for work in works)]


HOST, GPU = 4242, 0
WORK, OVERLAP, SYNC = 1300, 1301, 1330  # lanes of stream 13
GOOD = {
    "process": meta("process_name", HOST, HOST, "app"),
    "thread": meta("thread_name", HOST, 4250, "main"),
    "gpu": meta("process_name", GPU, 700, "GPU 0"),
    "stream": lane(WORK, "stream 13 p-5 nb"),
    "overlap": lane(OVERLAP, "stream 13 (overlap 1)"),
    "sync lane": lane(SYNC, "stream 13 (sync)"),
    "runtime": slice_("cuda_runtime", "cudaLaunchKernel", HOST, 4250, 10, 5),
    "launch": {**slice_("cuda_driver", "cuLaunchKernel", HOST, 4250, 10, 3.012, **{"correlation": 91, "cs.stream": 13}), "bind_id": 91, "flow_out": True},
    "s": flow("s", 5, HOST, 4250, 10),
    "kernel": {**slice_("kernel", "k(float*) \u00b5 \U0001f600 \"q\" \\ \x01", GPU, WORK, 14.5, 21.25, device=0, stream=13, correlation=91), "bind_id": 91, "flow_in": True},
    "f": flow("f", 5, GPU, WORK, 14.5),
    "kernel 2": slice_("kernel", "j", GPU, OVERLAP, 20, 100, device=0, stream=13),
    "memcpy": slice_("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", GPU, WORK, 35.75, 0.001, stream=13, bytes=4096),
    "memset": slice_("gpu_memset", "Memset (Device)", GPU, WORK, 40, 1, stream=13),
    "sync": slice_("cuda_sync", "Stream Sync", GPU, SYNC, 41, 2, **{"cs.stream": 13}),
    "wait b": {"ph": "b", "cat": "cuda_event", "name": "wait", "id": 3, "pid": GPU, "tid": WORK, "ts": 42},
    "wait e": {"ph": "e", "cat": "cuda_event", "name": "wait", "id": 3, "pid": GPU, "tid": WORK, "ts": 43},
    "counter": {"ph": "C", "name": "stream 13 depth", "pid": GPU, "tid": WORK, "ts": 44, "args": {"n": 3}},
    "range": slice_("user_annotation", "step", HOST, 4250, 50, 10),
    "loss": slice_("cs_loss", "lost", HOST, 4250, 51, 2, count=7, cause="ring full"),
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
    """GOOD with other rows: None takes one away, a dict changes members (None takes that away), a new name adds a row at the end."""
    return {name: {key: value for key, value in {**GOOD.get(name, {}), **change}.items() if value is not None} for name, change in {**{name: {} for name in GOOD}, **changes}.items() if change is not None}


def launches(count, name="k"):
    """A trace of kernels of 1 us on two streams in turn, one every 3 us, each enqueued 1 us before it begins."""
    rows = {key: GOOD[key] for key in ("process", "thread", "gpu", "stream")}
    rows["other stream"] = lane(1400, "stream 14 <non-blocking>")
    for n in range(count):
        stream = 13 + n % 2
        call = slice_("cuda_driver", "cuLaunchKernel", HOST, 4250, 3 * n, 0.5, **{"correlation": n + 1, "cs.stream": stream})
        kernel = slice_("kernel", name, GPU, 100 * stream, 3 * n + 1, 1, device=0, stream=stream, correlation=n + 1)
        rows[f"call {n}"], rows[f"kernel {n}"] = bound(call, kernel)
    return render(rows, trailer=trailer_of())
