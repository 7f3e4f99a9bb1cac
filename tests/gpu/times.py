"""GPU times in a trace beside what the program knows of them: running the programs, finding their work, and what the tests report."""
import atexit
import collections
import ctypes
import functools
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile

import observe
import pytest
import warp_small
from programs import BUILD, GPU, HERE, ROOT, Program

sys.path.insert(0, ROOT)
from tests.trace import Trace, stream_of  # noqa: E402

CLIENT = os.path.join(GPU, "libcupti_client.so")
REPORT = "{}.times{}".format(*os.path.splitext(os.environ.get("CUSTREAM_GPU_REPORT", os.path.join(GPU, "report.txt"))))
WORK = ("kernel", "gpu_memcpy", "gpu_memset", "gpu_graph", "gpu_range")

figures = []  # (of what, figure, value, unit), in the order in which they were found


def report(what, figure, value, unit=""):
    """A line of the report, written at once: a run that is cut short leaves what it found."""
    figures.append((what, figure, f"{value:.3f}" if isinstance(value, float) else str(value), unit))
    os.makedirs(os.path.dirname(os.path.abspath(REPORT)), exist_ok=True)
    with open(REPORT, "w", encoding="utf-8") as file:
        file.write("| of | figure | value | unit |\n| --- | --- | --- | --- |\n")
        file.writelines("| " + " | ".join(row) + " |\n" for row in figures)


# --- running ---

@functools.lru_cache(maxsize=None)
def shared_environment():
    """Of every run here: a simulated GPU shall take some time over its work."""
    return {"CUSTREAM_FAKE_COPY_NS": "20000", "CUSTREAM_FAKE_KERNEL_NS": "1000", "CUSTREAM_FAKE_DEVICES": "2"} if observe.SIMULATED else {}


def run(name, command, timeout=60, shim=True, preload=(), **env):
    """Starts a program and waits for it: the run, and the trace's path, None where there is none. `preload`: libraries behind the shim."""
    os.makedirs(observe.TRACES, exist_ok=True)
    libraries = ([observe.SHIM] if shim else []) + list(preload)
    more = dict(shared_environment(), **env)
    if shim:
        more.setdefault("CUSTREAM_TRACE", os.path.join(observe.TRACES, name + ".%p.json"))
    if libraries:
        more["LD_PRELOAD"] = ":".join(libraries)
    done = observe.start(Program(name, command, timeout), **more)
    return done, observe.keep(name + ".%p.json", done.pid, name + ".json") if shim else None


def run_well(name, command, timeout=60, **how):
    """The same for a program that must end well and leave a trace: the run, the trace."""
    done, path = run(name, command, timeout, **how)
    assert done.status == 0, f"{name}: " + done.tail()
    if path is None:
        assert not how.get("shim", True), f"{name}: no trace was written\n" + done.tail()
        return done, None
    return done, Trace(path)


@functools.lru_cache(maxsize=None)
def unpacked_warp():
    """A folder for PYTHONPATH with Warp from build/warp (make gpu-warp), for as long as the tests run; None where that is not there."""
    packed = os.path.join(BUILD, "warp")
    if not os.path.exists(os.path.join(packed, "warp", "bin", "warp.so.xz")):
        return None
    folder = tempfile.mkdtemp(prefix="custream-warp-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    warp_small.unpack(packed, folder)
    return folder


def program(name):
    return os.path.join(GPU, name)


def lines_of(text):
    """The lines of JSON of a program's output."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


# --- a trace ---

def work_of(trace, *categories):
    """The GPU's slices of these categories, all kinds of work where none is named, by their begin."""
    return sorted((e for e in trace.slices if e.get("cat") in (categories or WORK)), key=lambda e: e["ts"])


def end(e):
    return e["ts"] + e["dur"]


def error_us(e):
    """How far off a slice's times may be by its own word: those of events are."""
    return e["args"].get("cs.error_us", 0.0)


def wall_ns(trace, us):
    return trace.json["baseTimeNanoseconds"] + round(us * 1000)


def begin_ns(trace, e):
    """Where the work began by the profiler's word, on the wall clock: the slice may have been moved to the begin of its call."""
    raw = e["args"].get("cs.raw_start_ns")
    return wall_ns(trace, e["ts"]) if raw is None else trace.json["baseTimeNanoseconds"] + raw


def lane_of(e):
    """The stream's lane, also of a slice on an extra one."""
    return stream_of(e["tid"])


def arrows(trace):
    """The host's slice that an arrow leads from to each piece of work, by the identity of the work's slice."""
    return {id(flow.finish): flow.start for flow in trace.flows("ac2g")}


def stream_lanes(trace):
    """The lane of each stream that the program created, by the handle."""
    return {life["args"]["handle"]: life["args"]["cs.stream"] for life in trace.lives if life["args"]["origin"] == "created"}


def gpu_totals(trace):
    return trace.totals["gpu"]


def losses(trace):
    """What the trace says is missing: the causes, of slices and in its trailer."""
    found = [e["args"].get("cause", "") for e in trace.slices if e.get("cat") == "cs_loss"]
    return found + [cause for cause in [gpu_totals(trace).get("cause")] if cause]


def assert_whole(trace):
    """Nothing was lost, on the host's side and on the GPU's."""
    gpu = gpu_totals(trace)
    assert trace.totals["lost_records"] == 0 and gpu["lost"] == 0, trace.totals
    assert gpu["without_call"] == 0, f"{gpu['without_call']} pieces of work without their call"
    assert gpu["launches_without_kernel"] == 0, f"{gpu['launches_without_kernel']} launches without their kernel"


def assert_checked_file(path):
    """`custream check` finds nothing."""
    done, _ = run("check", [os.path.join(BUILD, "custream"), "check", str(path)], shim=False)
    assert done.status == 0, done.tail()


def assert_checked(trace):
    assert_checked_file(trace.path)


# --- names ---

@functools.lru_cache(maxsize=None)
def demangled(name):
    """As the C++ library has it; the name itself where it is none of C++'s."""
    if not name.startswith("_Z"):
        return name
    try:
        library = ctypes.CDLL("libstdc++.so.6")
    except OSError:
        return name
    library.__cxa_demangle.restype = ctypes.c_void_p
    status = ctypes.c_int()
    text = library.__cxa_demangle(name.encode(), None, None, ctypes.byref(status))
    return ctypes.string_at(text).decode() if text and status.value == 0 else name


def plain_name(name):
    """A kernel's name without what differs between demanglers, and no longer than any of them keeps."""
    return demangled(name).replace(" ", "")[:900]


def by_name(names):
    return collections.Counter(plain_name(name) for name in names)


def differing(a, b, most=15):
    """The names whose counts differ, for a failure's message."""
    keys = sorted((k for k in set(a) | set(b) if a[k] != b[k]), key=str)
    return "\n".join(f"  {a[k]} / {b[k]}  {str(k)[:200]}" for k in keys[:most]) + (f"\n  and {len(keys) - most} more" if len(keys) > most else "")


# --- what a test needs ---

def gpu_count():
    """Asked of a process of its own: this one shall not hold a context."""
    if observe.SIMULATED:
        return 2
    ask = "import ctypes; c = ctypes.CDLL('libcuda.so.1'); n = ctypes.c_int(); print(0 if c.cuInit(0) or c.cuDeviceGetCount(ctypes.byref(n)) else n.value)"
    done = subprocess.run([sys.executable, "-c", ask], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return int(done.stdout) if done.returncode == 0 else 0


GPUS = gpu_count()
gpu_only = pytest.mark.skipif(not GPUS, reason="no GPU here")
real_only = pytest.mark.skipif(observe.SIMULATED, reason="needs a real GPU")


def needs(*modules):
    missing = [m for m in modules if importlib.util.find_spec(m) is None]
    return pytest.mark.skipif(bool(missing), reason="not installed: " + ", ".join(missing))


def script(name, *arguments):
    return [sys.executable, os.path.join(HERE, "python", name + ".py"), *arguments]
