"""Running a program with and without the shim, and reading what the shim and CUPTI each saw."""
import collections
import difflib
import glob
import json
import os
import re
import subprocess
import sysconfig
import time
from dataclasses import dataclass, field

from programs import BUILD, GPU, ROOT

TRACES = os.path.join(GPU, "traces")
SHIM = os.path.join(BUILD, "libcustream_shim.so")
COUNT = os.path.join(GPU, "libcupti_count.so")
SIMULATED = os.environ.get("CUSTREAM_GPU_SIMULATED", "") not in ("", "0")


def toolkit_library(name):
    """A library of the CUDA toolkit, of the wheels beside this Python first: it is theirs that the frameworks load."""
    site = sysconfig.get_paths()["purelib"]
    places = [os.path.join(site, "nvidia", "*", "lib"), os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "lib64"),
              "/usr/local/cuda/lib64", "/usr/local/cuda/extras/CUPTI/lib64", "/usr/local/cuda/targets/*/lib"]
    for place in places:
        found = sorted(glob.glob(os.path.join(place, name)))
        if found:
            return found[-1]
    return None


def environment(program, **more):
    """The caller's environment without ours, so that a shell that has the shim configured does not change the test."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("CUSTREAM_", "CUPTI_COUNT_")) and k != "LD_PRELOAD"}
    # What the caller may choose for the run with the shim: the source of GPU times.
    if "CUSTREAM_GPU" in os.environ:
        env["CUSTREAM_GPU"] = os.environ["CUSTREAM_GPU"]
    paths = [env.get("LD_LIBRARY_PATH", "")]
    if "-shared" in program.name:
        cudart = toolkit_library("libcudart.so.13")
        paths.insert(0, os.path.dirname(cudart) if cudart else "")
    if SIMULATED:
        paths.insert(0, os.path.join(BUILD, "fakecuda"))
    # libcjson, which reads policy files, where the machine has none.
    if os.path.exists(os.path.join(BUILD, "carry", "libcjson.so.1")):
        paths.append(os.path.join(BUILD, "carry"))
    env["LD_LIBRARY_PATH"] = ":".join(p for p in paths if p)
    env["PYTHONHASHSEED"] = "0"
    env["BUILD_DIR"] = BUILD
    env.update(program.env)
    env.update(more)
    return env


@dataclass
class Run:
    status: int
    stdout: str
    stderr: str
    seconds: float
    pid: int

    def tail(self):
        return f"exit status {self.status}, {self.seconds:.1f} s\n--- stdout\n{self.stdout[-1500:]}\n--- stderr\n{self.stderr[-3000:]}"


def differing_lines(before, after, n=40):
    """The lines in which two outputs differ, for a failure's message."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "alone", "with the shim", lineterm="", n=2)
    return "\n".join(list(lines)[:n])


def start(program, **more):
    begin = time.monotonic()
    process = subprocess.Popen(program.command, env=environment(program, **more), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, errors="replace")
    try:
        out, err = process.communicate(timeout=program.timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        err += f"\nkilled after {program.timeout} s"
    return Run(process.returncode, out, err, time.monotonic() - begin, process.pid)


def keep(pattern, pid, name):
    """The file that the process itself wrote, under a name that does not change from run to run; None if it wrote none."""
    path = os.path.join(TRACES, pattern.replace("%p", str(pid)))
    if not os.path.exists(path):
        return None
    to = os.path.join(TRACES, name)
    os.replace(path, to)
    return to


def plain(program):
    return start(program)


def with_shim(program):
    """The run and the path of its trace."""
    run = start(program, LD_PRELOAD=SHIM, CUSTREAM_TRACE=os.path.join(TRACES, program.name + ".%p.json"))
    return run, keep(program.name + ".%p.json", run.pid, program.name + ".json")


def with_cupti(program):
    """The run, the path of its trace, the path of CUPTI's counts. Without GPU times: the shim's own use of CUPTI would stand in the way."""
    env = {"LD_PRELOAD": SHIM + ":" + COUNT, "CUSTREAM_GPU": "off", "CUSTREAM_TRACE": os.path.join(TRACES, program.name + ".counted.%p.json"),
           "CUPTI_COUNT_OUT": os.path.join(TRACES, program.name + ".cupti.%p.json")}
    cupti = os.environ.get("CUPTI_COUNT_LIB") or toolkit_library("libcupti.so.1[2-9]")
    if cupti:
        env["CUPTI_COUNT_LIB"] = cupti
    run = start(program, **env)
    return (run, keep(program.name + ".counted.%p.json", run.pid, program.name + ".counted.json"),
            keep(program.name + ".cupti.%p.json", run.pid, program.name + ".cupti.json"))


# The answers of a driver that has not started or has ended; a code without a name is shown as its number.
OUTSIDE = ("CUDA_ERROR_NOT_INITIALIZED", "CUDA_ERROR_DEINITIALIZED", 3, 4)


@dataclass
class Trace:
    calls: collections.Counter = field(default_factory=collections.Counter)  # host slices by exact symbol
    outside: collections.Counter = field(default_factory=collections.Counter)  # of these, answered before the driver's start or after its end
    lost: int = 0
    recorded: int = 0
    events: int = 0


def read_trace(path):
    with open(path, encoding="utf-8") as file:
        whole = json.load(file)
    trace = Trace(lost=whole["totals"]["lost_records"], recorded=whole["totals"].get("recorded", 0), events=len(whole["traceEvents"]))
    for event in whole["traceEvents"]:
        if event.get("ph") == "X" and event.get("cat") == "cuda_driver":
            trace.calls[event["name"]] += 1
            if event["args"].get("cs.result") in OUTSIDE:
                trace.outside[event["name"]] += 1
        if event.get("cat") == "cs_loss":
            trace.lost = max(trace.lost, 1)
    return trace


def table_calls():
    """Every symbol that the call table wraps, with the siblings; read from the table's text, so that nothing must be built for it."""
    symbols = []
    for path in sorted(glob.glob(os.path.join(ROOT, "shim", "calls", "table", "*.def"))):
        with open(path, encoding="utf-8") as file:
            for name, sibling in re.findall(r"^CALL\((\w+),\s*(\w+),", file.read(), re.MULTILINE):
                symbols.append(name)
                if sibling in ("PTDS", "PTSZ"):
                    symbols.append(f"{name}_{sibling.lower()}")
    return symbols


@dataclass
class Difference:
    call: str
    ours: int
    outside: int
    cupti: int
    nested: int


def compare(trace, counts_path):
    """Every call of the table on which the trace and CUPTI differ; CUPTI's total over the table; how many calls more the shim made itself.

    Before cuInit and once libcuda's own end has run (cudart unloads its kernels after that) the driver answers without telling CUPTI, so those calls
    are in the trace alone; their answer says which they are.
    """
    with open(counts_path, encoding="utf-8") as file:
        counts = json.load(file)
    table = table_calls()
    differences = []
    for call in table:
        ours, cupti = trace.calls[call], counts["calls"].get(call, 0)
        if ours - trace.outside[call] != cupti:
            differences.append(Difference(call, ours, trace.outside[call], cupti, counts["nested"].get(call, 0)))
    # A name in the trace that the table does not have would go uncompared.
    differences += [Difference(call, n, 0, counts["calls"].get(call, 0), 0) for call, n in trace.calls.items() if call not in set(table)]
    return differences, sum(counts["calls"].get(call, 0) for call in table), sum(counts["own"].values())
