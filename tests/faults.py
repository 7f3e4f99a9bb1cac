"""System calls, allocations and calls of the driver and of CUPTI that fail once, for the library alone: the tables, one run, and what must hold after it.

`make faults` runs all of them and prints a table. tests/cases/test_faults.py runs a fixed sample.
"""
import argparse
import collections
import dataclasses
import errno
import functools
import gzip
import itertools
import multiprocessing
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from tests import BUILD, ROOT
from tests.streamscript import wrapper_code
from tests.trace import Trace, check_file

RULES = '{"rules": [{"match": {"library": "*"}, "set": {"name": "a stream", "priority": -1}}]}'
# By mode: the program, and the options.
MODES = {
    "timeline": ("demo", {}),
    "events": ("demo", {"CUSTREAM_GPU": "events"}),
    "nodes": ("demo", {"CUSTREAM_GRAPH": "node", "CUSTREAM_RUNTIME": "cupti"}),
    "gz": ("demo", {"CUSTREAM_TRACE": "trace.json.gz"}),
    "rotate": ("demo", {"CUSTREAM_TRACE_MAX": "1M,rotate"}),
    "audit": ("demo", {"CUSTREAM_DEFAULT_STREAM": "audit"}),
    "per-thread": ("demo", {"CUSTREAM_DEFAULT_STREAM": "per-thread", "CUSTREAM_DEFAULT_HANDLES": "all"}),
    "pool": ("demo", {"CUSTREAM_STREAMS": "pool:2", "CUSTREAM_JITTER": "seed=1,us=2,percent=5"}),
    "serial": ("demo", {"CUSTREAM_STREAMS": "serial"}),
    "rules": ("demo", {"CUSTREAM_POLICY": RULES}),
    "policy alone": ("demo", {"CUSTREAM_TRACE": "off", "CUSTREAM_PRIORITY": "0:-1"}),
    "window": ("demo", {"CUSTREAM_WINDOW": "duration=100"}),
    "plug-in": ("demo", {"CUSTREAM_PLUGIN": "nowhere/plugin.so:"}),
    "nvtx": ("nvtx storm", {}),
    "runtime": ("runtime", {}),
    "callbacks": ("callbacks", {}),
}
# Here too. "run": under `custream run`.
MORE = {
    "pftrace": ("demo", {"CUSTREAM_TRACE": "trace.pftrace"}),
    "parts": ("burst 1 14000", {"CUSTREAM_TRACE_MAX": "1M,rotate:2", "CUSTREAM_GPU": "off"}),  # GPU times would only make it slower
    "reach": ("reach", {}),
    "reach gz": ("reach", {"CUSTREAM_TRACE": "trace.json.gz", "CUSTREAM_GPU": "events"}),
    "run": ("demo", {}),
    "host jitter": ("demo", {"CUSTREAM_JITTER": "seed=1,percent=100,us=1,at=host", "CUSTREAM_TRACE": "trace-%h.json"}),
    "link": ("demo", {"CUSTREAM_TRACE": "link.json"}),  # a symbolic link to trace.json
    # What only some programs, options or rooms have the library call.
    "asked": ("reach asked", {}),
    "asked events": ("reach asked", {"CUSTREAM_GPU": "events"}),
    "nameless": ("reach asked", {"CUSTREAM_FAKE_FAIL": "@cuFuncGetName=999"}),
    "adopt": ("adopt context", {}),
    "carrier": ("serial callbacks", {"CUSTREAM_STREAMS": "serial"}),
    "sync": ("reach both", {"CUSTREAM_STREAMS": "sync"}),
    "jitter": ("reach both", {"CUSTREAM_JITTER": "seed=1,percent=100,us=300"}),
    "policy file": ("demo", {"CUSTREAM_POLICY": "rules"}),
    "two CUPTIs": ("profiled other ./libcupti-other.so", {"CUSTREAM_FAKE_CUPTI_FILE": "libcupti.so.13"}),
    "CUPTI refuses": ("demo", {"CUSTREAM_FAKE_CUPTI": "cuptiActivityRegisterCallbacks:999"}),
    "main killed": ("attacks_process killed", {}),
    "memfd": ("demo", {}),
    "limit": ("demo", {}),
}
# What runs the program there. Without a /dev/shm the rings are in a memfd; with no room for a file, standard error's too, a line of the library raises SIGXFSZ.
RUN = [str(BUILD / "custream"), "run", "-o", "{trace}", "--"]
AROUND = {
    "run": RUN,
    "memfd": ["/usr/bin/unshare", "-rm", "/bin/sh", "-c", 'mount -t tmpfs -o ro,size=4k none /dev/shm; exec "$@"', "sh", *RUN],
    "limit": ["/bin/sh", "-c", 'ulimit -S -f 0; exec "$@" 2>stderr', "sh"],
}


ALL_MODES = MODES | MORE


# --- what can fail, and how ---

def errnos_in_manual(page):
    """The errnos of the section ERRORS of a page such as "openat.2"."""
    text = gzip.decompress(pathlib.Path(f"/usr/share/man/man{page[-1]}/{page}.gz").read_bytes()).decode()
    if text.startswith(".so "):
        return errnos_in_manual(text.split()[1].split("/")[-1])
    text = "\n".join(line for line in text.splitlines() if not line.startswith('.\\"'))
    found = re.search(r"^\.SH ERRORS\n(.*?)(?=^\.SH )", text, re.M | re.S)
    names = re.findall(r"\bE[A-Z0-9]+\b", found[1] if found else "")
    return {errno.errorcode[getattr(errno, name)] for name in names if hasattr(errno, name)}


@functools.cache
def errno_table():
    """By call: the pages of the manual, and the errnos."""
    lines = (ROOT / "tests/faults.errnos").read_text().splitlines()
    rows = [line.split() for line in lines if not line.startswith("#")]
    return {name: (pages.split(","), errnos) for name, pages, *errnos in rows}


# They cannot fail: the manual says so, or only for arguments that are constants here.
NEVER = {"gettid", "getpid", "getuid", "geteuid", "getegid", "sched_yield", "exit_group", "kill", "execveat"}
FILTERED = ("EPERM", "ENOSYS")  # what a filter of system calls answers


def errnos_of(call):
    pages, errnos = errno_table()[call]
    return errnos + [name for name in FILTERED if pages[0].endswith(".2") and name not in errnos]


@functools.cache
def driver_results():
    """By call of the driver that the library makes for itself: the results that cuda.h documents, as numbers."""
    sources = "".join(path.read_text() for path in ROOT.glob("shim/*/*.c"))
    text = (BUILD / "cuda-headers/13.5/cuda.h").read_text()
    numbers = {name: int(number, 0) for name, number in re.findall(r"^ +(CUDA_ERROR_\w+) += (\w+)", text, re.M)}
    found = {}
    for name in sorted(set(re.findall(r"real\.(cu[A-Z]\w+)", sources))):
        place = re.search(rf"CUresult CUDAAPI {re.sub('_v2$|_ptsz$', '', name)}\(", text)
        comment = text[text.rindex("/**", 0, place.start()):place.start()] if place else ""
        results = re.findall(r"::(CUDA_ERROR_\w+)", comment[comment.find("\\return"):].split("\\sa")[0]) if "\\return" in comment else []
        found[name] = sorted({numbers[result] for result in results} | {999})
    return found


@functools.cache
def cupti_results():
    """By function of CUPTI that the library calls: the results that its headers document, as numbers."""
    text = "".join((BUILD / "cuda-headers/cupti" / name).read_text() for name in ("cupti_result.h", "cupti_activity.h", "cupti_callbacks.h", "cupti_version.h"))
    numbers = {name: int(number, 0) for name, number in re.findall(r"^ +(CUPTI_ERROR_\w+) += (\w+)", text, re.M)}
    found = {}
    for name in re.findall(r"F\((cupti\w+),", (ROOT / "shim/gpu/cupti.h").read_text()):
        place = re.search(rf"CUptiResult CUPTIAPI\s+{name}\s*\(", text)
        comment = text[text.rindex("/**", 0, place.start()):place.start()] if place else ""
        found[name] = sorted({numbers[result] for result in re.findall(r"\\retval (CUPTI_ERROR_\w+)", comment)} | {999})
    return found


# The program's own calls, made by another way: the result is the program's.
INSTEAD = {"cuStreamCreateWithPriority", "cuStreamCreate", "cuStreamDestroy_v2", "cuGreenCtxStreamCreate", "cuStreamSetAttribute", "cuGetProcAddress", "cuGetProcAddress_v2"}

# What is different after such a fault, and nobody need say so.
ALLOWED = {
    ("system", "flock", errno.EAGAIN): "another process has locked the new file: it is that one's, and stays as it is",
    ("driver", "cuStreamGetPriority", None): "a priority that the driver does not tell is not shown",
    ("driver", "cuCtxGetCurrent", None): "whose default stream the call is on is not known, so its work stands on the lane of the driver's own",
    ("driver", "cuStreamIsCapturing", None): "whether a host function is part of a capture is not known, so it gets no slice of its own",
    ("system", "prctl", None): "the name of a thread is not known",
    ("cupti", "cuptiGetStreamIdEx", None): "the stream's lane is known from its first work that is no graph",
    ("cupti", "cuptiActivityEnable", 14): "graphs are shown node by node where CUPTI does not have them as a whole",
}


# Not made to fail there. Nothing may be written where there is no room for a file: what CUPTI refused could not be told. And a signal mask can always be set:
# without one a thread of the library's has the signal that the file's limit raises, or that is to end the process.
LEFT_OUT = {("limit", "cupti"), ("limit", "driver"), ("limit", "pthread_sigmask"), ("main killed", "pthread_sigmask")}
# A trace without a byte may stay there: the process dies by a signal, or the file cannot be removed and nothing has room.
LEAVES_EMPTY = {"main killed", "limit"}
# What two runs need not have in common. Which parts are kept depends on where they end; where no file has room nothing can be said; `reach asked` switches off
# by a socket that may fail.
UNEVEN = {"parts": None, "limit": None, **dict.fromkeys(("asked", "asked events", "nameless"), ("not recorded", "custream: not recorded"))}


def is_allowed(fault):
    return (fault.kind, fault.call, fault.number) in ALLOWED or (fault.kind, fault.call, None) in ALLOWED


# --- one run ---

@dataclasses.dataclass(frozen=True)
class Fault:
    """The n-th `call` of a kind ("system", "driver" or "cupti") fails once, with a number. A call of None: nothing fails, and calls are counted."""
    mode: str
    kind: str = "system"
    call: str = None
    number: int = 0
    n: int = 0

    def __str__(self):
        number = errno.errorcode[self.number] if self.kind == "system" and self.call else self.number
        return f"{self.mode}: {self.call} {number} at call {self.n}"

    def env(self):
        """What is refused in each run of the mode comes last: of two answers to one call, the first that fails it counts."""
        options = ALL_MODES[self.mode][1]
        driver, cupti = ([options[name]] if name in options else [] for name in ("CUSTREAM_FAKE_FAIL", "CUSTREAM_FAKE_CUPTI"))
        if self.kind == "driver":
            driver.insert(0, f"@{self.call}:{self.n}={self.number}")
        if self.kind == "cupti":
            cupti.append(f"{self.call}:{self.number}:{self.n}!")
        wrappers = ",".join(f"{first:x}-{behind:x}" for first, behind in wrapper_code(BUILD / "libcustream_shim.so")) if driver else ""
        system = f"{self.call}:{self.number}:{self.n}" if self.kind == "system" and self.call else "count"
        return {"CUSTREAM_FAKE_FAIL": ",".join(driver), "CUSTREAM_FAKE_WRAPPERS": wrappers, "CUSTREAM_FAKE_CUPTI": ",".join(cupti), "FAULTS": system}


@dataclasses.dataclass
class Outcome:
    rc: int
    stdout: str
    stderr: str
    content: collections.Counter  # of its traces
    tells: bool    # a trace says that something is missing
    wrong: str     # with a trace; or ""
    made: dict     # system calls, by name
    refused: set   # calls of the driver and of CUPTI

    def others(self):
        """What others than the library said on standard error."""
        return [line for line in self.stderr.splitlines() if not line.startswith(("custream: ", "note "))]

    def said(self):
        return [line for line in self.stderr.splitlines() if line.startswith("custream: ") and "nothing lost" not in line and "audit: safe" not in line]


def readable(path):
    """The trace as JSON: one in Perfetto's own format is converted."""
    if not path.name.endswith(".pftrace"):
        return path
    to = path.with_name("converted.json")
    subprocess.run([BUILD / "custream", "convert", path, to], check=True, capture_output=True)
    check_file(path)
    return to


def content_of(paths):
    """What the traces of one run have together, as (what, how much); and whether one says that something is missing."""
    found, missing = collections.Counter(), False
    for trace in map(Trace, map(readable, paths)):
        gpu = trace.totals.get("gpu", {})
        # Threads overtake each other: left out are the numbers of streams, more lanes of one stream, delays, and who first needed the callbacks' thread.
        names = [re.sub(r"^stream \d+", "stream", name) for name in trace.thread_names.values() if not re.search(r"\(callbacks\)|\(overlap|profiler overhead", name)]
        found.update(trace.count() + collections.Counter(e["cat"] for e in trace.gpu()) + collections.Counter(names))
        del found["delay"]
        found["GPU times from " + gpu.get("source", "nowhere")] += 1
        missing |= bool(gpu.get("cause") or gpu.get("lost") or trace.totals["lost_records"] or trace.totals.get("no_memory_for"))
        missing |= not trace.totals["complete"] or any(e.get("cat") == "cs_loss" for e in trace.slices)
    return found, missing


def prepare(folder, program, options):
    """What the program or its options name."""
    if options.get("CUSTREAM_POLICY") == "rules":
        (folder / "rules").write_text(RULES)
    if "libcupti-other.so" in program:
        shutil.copy(BUILD / "fakecuda/libcupti.so.13", folder / "libcupti-other.so")


def run(fault, shim=True, timeout=60):
    """Runs the mode's program with that fault, in a folder of its own, and reads the traces."""
    program, options = ALL_MODES[fault.mode]
    argv = program.split()
    argv[0] = str(BUILD / "tests" / argv[0])
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        name = options.get("CUSTREAM_TRACE", "trace.json")
        trace = name if name == "off" else f"{folder}/{name}"
        env = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD" and not key.startswith("CUSTREAM_")}
        env |= {"LD_LIBRARY_PATH": str(BUILD / "fakecuda"), "CUSTREAM_GPU": "auto", "CUSTREAM_CTL": "on"} | options | {"CUSTREAM_TRACE": trace}
        if shim:
            env |= fault.env() | {"LD_PRELOAD": f"{BUILD}/libcustream_shim.so:{BUILD}/tests/libfaults.so"}
            argv = [word.format(trace=trace) for word in AROUND.get(fault.mode, [])] + argv
        if shim and "run" in argv:
            env["LD_PRELOAD"] = f"{BUILD}/tests/libfaults.so"
        if name == "link.json":
            pathlib.Path(trace).symlink_to("trace.json")
        prepare(pathlib.Path(folder), program, options)
        try:
            done = subprocess.run(argv, env=env, cwd=folder, timeout=timeout, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False)
        except subprocess.TimeoutExpired as late:
            return Outcome(None, str(late.stdout), str(late.stderr), None, False, "it hangs", {}, set())
        content, tells, wrong = None, False, ""
        try:
            files = sorted(path for path in pathlib.Path(folder).iterdir() if re.search(r"\.(json|json\.gz|pftrace)$", path.name) and not path.is_symlink())
            content, tells = content_of([path for path in files if path.stat().st_size])
            if fault.mode not in LEAVES_EMPTY and not all(path.stat().st_size for path in files):
                wrong = "an empty file stays"
        except Exception as problem:  # whatever it is, it is told with its fault
            wrong = f"{problem!r}"[:1500]
        stderr = done.stderr + "".join(path.read_text(errors="replace") for path in pathlib.Path(folder).glob("stderr"))
        made = {name: int(count) for name, count in re.findall(r"^note made (\w+) (\d+)$", stderr, re.M)}
        return Outcome(done.returncode, done.stdout, stderr, content, tells, wrong, made, set(re.findall(r"^note refused (\w+)$", stderr, re.M)))


@functools.cache
def alone(mode):
    return run(Fault(mode), shim=False)


@functools.cache
def whole(mode):
    return run(Fault(mode))


def judge(fault):
    """What is wrong after that fault, or "": and whether it came to the fault at all."""
    bare, good, did = alone(fault.mode), whole(fault.mode), run(fault)
    met = fault.kind == "system" or fault.call in did.refused
    if (did.rc, did.stdout) != (bare.rc, bare.stdout):
        return f"the program ended with {did.rc} instead of {bare.rc}, or printed something else: {did.wrong} {did.stdout[-300:]} {did.stderr[-600:]}", met
    if did.others() != bare.others():
        return f"standard error has {did.others()}", met
    if is_allowed(fault):
        return "", met
    if did.wrong:
        return did.wrong, met
    more, less = did.content - good.content, good.content - did.content
    uneven = UNEVEN.get(fault.mode, ())
    if uneven is not None and (more | less).keys() - set(uneven) and not did.said() and not did.tells:
        return f"the trace differs and nobody says so: more {dict(more)}, less {dict(less)}", met
    return "", met


# --- which faults ---

MOST = 12  # of the calls of one name in one run. Those that wait are made hundreds of times


def system_faults(mode, cross):
    """Each call once and each errno once; `cross`: each call with each errno."""
    for call, made in sorted(whole(mode).made.items()):
        if call in NEVER or (mode, call) in LEFT_OUT:
            continue
        numbers = [getattr(errno, name) for name in errnos_of(call)]
        places = range(1, min(made, MOST) + 1)
        pairs = itertools.product(numbers, places) if cross else zip(itertools.cycle(numbers), itertools.cycle(places), range(max(len(numbers), len(places))))
        for number, n, *_ in pairs:
            yield Fault(mode, "system", call, number, n)


def asked_faults(mode, most=4):
    """Calls of the driver and of CUPTI: each result at the first call, and one at each later call."""
    for kind, table in (("driver", driver_results()), ("cupti", cupti_results())):
        refused = " ".join(ALL_MODES[mode][1].get(name, "") for name in ("CUSTREAM_FAKE_FAIL", "CUSTREAM_FAKE_CUPTI"))  # in each run
        for call, numbers in table.items():
            if call in INSTEAD or call in refused or (mode, kind) in LEFT_OUT:
                continue
            for number, n in [(number, 1) for number in numbers] + [(numbers[0], n) for n in range(2, most + 1)]:
                yield Fault(mode, kind, call, number, n)


def all_faults(modes, cross):
    for mode in modes:
        yield from system_faults(mode, mode in cross)
        yield from asked_faults(mode)


# --- make faults ---

def check_table():
    """The lines of tests/faults.errnos that are not as the manual is."""
    for call, (pages, errnos) in errno_table().items():
        wanted = set().union(*(errnos_in_manual(page) for page in pages)) if pages != ["-"] else set(errnos)
        if sorted(wanted) != sorted(errnos):
            yield f"{call}: the table has {sorted(errnos)}, the manual {sorted(wanted)}"


def table_of(results):
    """A table of docs/measurements.md: by mode, how many calls failed, and after how many everything was as it must be."""
    yield "| mode | system calls: names, faults | driver: calls, faults | CUPTI: functions, faults | wrong |"
    yield "| --- | --- | --- | --- | --- |"
    for mode in dict.fromkeys(fault.mode for fault, _, _ in results):
        mine = [(fault, wrong) for fault, wrong, met in results if fault.mode == mode and met]
        cells = []
        for kind in ("system", "driver", "cupti"):
            of_kind = [fault for fault, _ in mine if fault.kind == kind]
            cells.append(f"{len({fault.call for fault in of_kind})}, {len(of_kind)}")
        yield f"| {mode} | {' | '.join(cells)} | {sum(bool(wrong) for _, wrong in mine)} |"


def never_met(results):
    """Calls of the tables that no mode makes."""
    met = collections.defaultdict(set)
    for fault, _, was_met in results:
        if was_met:
            met[fault.kind].add(fault.call)
    for kind, names in (("system", set(errno_table()) - NEVER), ("driver", set(driver_results()) - INSTEAD), ("cupti", cupti_results())):
        if missing := sorted(set(names) - met[kind]):
            yield f"{kind}: not made in any mode: {', '.join(missing)}"


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--mode", action="append", choices=ALL_MODES, help="only this mode (default: all)")
    parser.add_argument("--cross", action="append", default=[], choices=ALL_MODES, help="each call with each errno in this mode")
    parser.add_argument("--jobs", type=int, default=2 * os.cpu_count())
    given = parser.parse_args()
    stale = list(check_table())
    results = []
    with multiprocessing.Pool(given.jobs) as pool:
        faults = list(all_faults(given.mode or ALL_MODES, given.cross))
        for fault, (wrong, met) in zip(faults, pool.imap(judge, faults, chunksize=8)):
            results.append((fault, wrong, met))
            if wrong:
                print(f"--- {fault}: {wrong}", file=sys.stderr, flush=True)
    never = [] if given.mode else list(never_met(results))
    print("\n".join([*stale, *table_of(results), *never]))
    return int(bool(stale or never) or any(wrong for _, wrong, _ in results))


if __name__ == "__main__":
    sys.exit(main())
