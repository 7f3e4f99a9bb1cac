"""Memory of a program that runs for long: what is kept of what has ended. `make soak` runs it and draws docs/images/soak-*.svg.

tests/apps/soak.c makes the calls. This asks it by `custream ctl` meanwhile, and reads its memory, threads and descriptors from /proc once a second.
tests/cases/test_soak.py runs short forms.
"""
import argparse
import dataclasses
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from tests import BUILD
from tests.cases.conftest import app_environment
from tests.cases.test_ctl import say

OWN_THREADS = re.compile("custream")  # have descriptors of their own
PARTS = 4  # files of 8 MiB that stay

# What `custream ctl` asks for, one after the other, about ten a second. No pool: two threads that capture would share a stream, which CUDA refuses.
POLICIES = [{}, {"priority": "0:-1"}, {"default_stream": "per-thread"}, {"streams": "serial"}, {"streams": "sync"}, {"jitter": "seed=1,us=5,percent=5"},
            {"rules": [{"match": {"library": "soak", "nth": n}, "set": {"name": f"number {n}", "priority": -2}} for n in range(1, 20)]}]
NOT_ALL = b"error not all of the trace could be written within 10 s"  # of a flush, on a slow machine
ASKED = [b"off", b"on", b"status", b"flush", *(b"policy " + json.dumps(policy).encode() for policy in POLICIES), b"record"]


@dataclasses.dataclass
class Sample:
    """The process at one moment."""
    seconds: float
    calls: int
    what: str
    anon: int      # KiB of memory that is its alone: in no file, or in that of its rings
    heap: int      # of it, what the C library's malloc has in [heap]
    threads: int
    files: int     # descriptors: the program's, and those of the library's threads
    disk: int      # KiB of traces


def anon_of(pid):
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(re.search(rf"^{what}: +(\d+) kB", text, re.M)[1]) for what in ("Anonymous", "Pss_Shmem"))


def heap_of(pid):
    found = re.search(r"\[heap\]\n(?:.*\n)*?Anonymous: +(\d+) kB", pathlib.Path(f"/proc/{pid}/smaps").read_text())
    return int(found[1]) if found else 0


def threads_and_files(pid):
    """Threads and descriptors. Threads that are on their way out are left out: they have no descriptors to list any more."""
    threads, files = 0, len(os.listdir(f"/proc/{pid}/fd"))
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            own = OWN_THREADS.match((task / "comm").read_text())
            files += len(os.listdir(task / "fd")) if own else 0
            threads += 1
        except OSError:
            continue
    return threads, files


def size_of(folder):
    """Of the traces in it, while parts come and go."""
    size = 0
    for path in pathlib.Path(folder).glob("soak*"):
        try:
            size += path.stat().st_size
        except FileNotFoundError:
            continue
    return size


class Soak:
    """The program, with the library or without, and its samples. Leaving the block ends it: `rc`, `stderr`."""

    def __init__(self, folder, argv, shim=True, env=None):
        self.folder, self.samples, self.rc, self.stderr = pathlib.Path(folder), [], None, ""
        env = {"CUSTREAM_TRACE_MAX": f"8M,rotate:{PARTS}", "CUSTREAM_QUIET": "on"} | (env or {})
        self._errors = tempfile.TemporaryFile(mode="w+", errors="replace")
        self.process = subprocess.Popen([BUILD / "tests/soak", *map(str, argv)], env=app_environment(BUILD, self.folder / "soak.json", shim, env), cwd=folder,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors)
        self.began = time.monotonic()

    def sample(self):
        """Waits for the program to say how far it is, and looks at it. None: it has ended."""
        words = self.process.stdout.readline().split()
        if not words:
            return None
        try:
            pid = self.process.pid
            threads, files = threads_and_files(pid)
            disk = size_of(self.folder) >> 10
            self.samples.append(Sample(time.monotonic() - self.began, int(words[1]), words[2].decode(), anon_of(pid), heap_of(pid), threads, files, disk))
        except OSError:
            return None  # it is ending
        return self.samples[-1]

    def go_on(self):
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, where):
        if kind:
            self.process.kill()
        self.process.stdin.close()
        try:
            self.rc = self.process.wait(60)
        finally:
            self.process.kill()
        self._errors.seek(0)
        self.stderr = self._errors.read()


def of_children(folder):
    """Traces of the program's children: soak-PID.json."""
    return [path for path in pathlib.Path(folder).iterdir() if re.match(r"soak-\d+", path.name)]


def mix(folder, seconds, shim=True, until=None, pace=2000):
    """The mixture for so long, or until a sample says that it is enough; `ctl` asks ten times a second."""
    asked = itertools.cycle(ASKED)
    with Soak(folder, [0 if until else seconds, pace], shim) as soak:
        while (sample := soak.sample()) and not (until and until(sample)):
            for _ in range(10 if shim and sample.seconds < seconds - 2 else 0):
                assert say(soak.process.pid, next(asked)).startswith((b"ok", NOT_ALL))
            for path in of_children(folder):
                path.unlink()
    return soak


def settled(pid, shim, seconds=20):
    """Waits until the library's writer has seen all that there is, and the process's memory stays as it is."""
    before, end = -1, time.monotonic() + seconds
    for _ in range(3 if shim else 0):
        while (answer := say(pid, b"flush")).startswith(NOT_ALL):
            pass
        assert answer.startswith(b"ok")
    while (now := anon_of(pid)) != before and time.monotonic() < end:
        before = now
        time.sleep(0.5)


def hold(folder, kind, count, rounds, shim=True):
    """So many things at once, and gone again: samples of "gone", then by turns of "there" and "gone"."""
    with Soak(folder, ["hold", kind, count, rounds], shim, {"CUSTREAM_TRACE_MAX": "64M,rotate", "CUSTREAM_FULL": "block"}) as soak:
        while soak.process.stdout.peek(1):
            settled(soak.process.pid, shim)
            soak.sample()
            soak.go_on()
    return soak


def calls(folder, count, threads=2):
    """So many calls that do nothing, as fast as they can be made."""
    with Soak(folder, ["calls", count, threads]) as soak:
        while soak.sample():
            pass
    return soak


def slope(samples):
    """KiB in a million calls: the line of least squares through memory over calls."""
    n, x, y = len(samples), [s.calls / 1e6 for s in samples], [s.anon for s in samples]
    mx, my = sum(x) / n, sum(y) / n
    return sum((a - mx) * (b - my) for a, b in zip(x, y)) / (sum((a - mx) ** 2 for a in x) or 1)


def each(holding, count):
    """Bytes for each thing: what is more when all are there than when none is, in the first round."""
    gone, there, *_ = (sample.anon for sample in holding.samples)
    return (there - gone) * 1024 / count


# --- what must hold ---

WARM_UP = 20e6    # calls, by which all tables have filled up
SPAN = 8e6        # calls that the slope is taken over at least: memory goes up and down by 3 MiB, with what the writer has not read yet
SLOPE = 100       # KiB in a million calls; the simulated GPU takes 30 of them
FILLING = 0.45    # KiB that a call may take while tables fill up
TABLES = 48 << 10  # KiB that they take then


def wrong_with(soak):
    """What is wrong with a run of the mixture, as lines."""
    first, last = soak.samples[len(soak.samples) // 8], soak.samples[-1]
    late = [sample for sample in soak.samples if sample.calls > max(WARM_UP, last.calls / 2)]
    if soak.rc or "custream: " in soak.stderr:
        yield f"it ended with {soak.rc}: {soak.stderr[-1000:]}"
    if late and last.calls - late[0].calls > SPAN and slope(late) > SLOPE:
        yield f"memory grows by {slope(late):.0f} KiB in a million calls"
    if last.anon - first.anon > min(TABLES, FILLING * (last.calls - first.calls)) + 8192:
        yield f"memory has grown from {first.anon} to {last.anon} KiB in {last.calls - first.calls} calls"
    if min(s.files for s in soak.samples[-5:]) > max(s.files for s in soak.samples[:5]):
        yield f"descriptors: {first.files}, then {last.files}"
    if min(s.threads for s in soak.samples[-5:]) > max(s.threads for s in soak.samples[:5]):
        yield f"threads: {first.threads}, then {last.threads}"
    if last.disk > (PARTS + 1) * 8192 + 1024:
        yield f"{last.disk} KiB of traces"


# --- make soak ---

def draw(path, title, curves, x="million CUDA calls"):
    """An SVG of memory. `curves`: (name, [(x, KiB)])."""
    import matplotlib  # takes a second
    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "custream", "path.simplify_threshold": 1.0, "font.size": 9}
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(figsize=(7, 3))
    for name, points in curves:
        axes.plot(*zip(*points), label=name, linewidth=1.2, marker="." if len(points) < 20 else None)
    axes.set(title=title, xlabel=x, ylabel="MiB, anonymous", ylim=(0, None))
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
    pyplot.close(figure)


def points(soak):
    return [(sample.calls / 1e6, sample.anon / 1024) for sample in soak.samples]


def soak_mix(seconds, out):
    runs = {}
    for name, shim, long in (("with the library", True, seconds), ("the program and the simulated GPU", False, max(10, seconds // 8))):
        with tempfile.TemporaryDirectory(prefix="soak-") as folder:
            runs[name] = mix(folder, long, shim)
    draw(out / "soak.svg", "Everything that comes and goes", [(name, points(run)) for name, run in runs.items()])
    run = runs["with the library"]
    late = [sample for sample in run.samples if sample.calls > run.samples[-1].calls / 2]
    print(f"{run.samples[-1].calls} calls in {run.samples[-1].seconds:.0f} s: {run.samples[-1].anon} KiB, in the second half {slope(late):+.1f} KiB in a million calls, "
          f"between {min(s.anon for s in late)} and {max(s.anon for s in late)} KiB")
    return list(wrong_with(run))


def soak_calls(count, out):
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        run = calls(folder, count)
    draw(out / "soak-calls.svg", "Calls as fast as they can be made, two threads", [("with the library", points(run))])
    half = run.samples[len(run.samples) // 2:]
    print(f"{run.samples[-1].calls} calls in {run.samples[-1].seconds:.0f} s: {run.samples[-1].anon} KiB, in the second half {slope(half) * 1000:+.1f} KiB in 1000 million calls")
    return [f"memory grows by {slope(half):.2f} KiB in a million calls"] if slope(half) > 1 else []


# And by how many MiB rounds may differ: how many buffers of 2 MiB the profiler has filled at once, of 64, depends on how threads overtake each other.
SIZES = (("streams", 50000, 16), ("streams", 100000, 16), ("events", 100000, 16), ("graphs", 10000, 16), ("threads", 64, 128))


def soak_sizes(out):
    curves, wrong = [], []
    for kind, count, differ in SIZES:
        bytes_of = {}
        for shim in (True, False):
            with tempfile.TemporaryDirectory(prefix="soak-") as folder:
                run = hold(folder, kind, count, 3, shim)
            bytes_of[shim] = each(run, count)
            there = [sample.anon for sample in run.samples if sample.what == "there"]
            if run.rc or (shim and there[-1] > there[0] + (differ << 10)):
                wrong.append(f"{count} {kind}: {run.rc}, {there} KiB")
            if shim:
                curves.append((f"{count} {kind}", [(i, sample.anon / 1024) for i, sample in enumerate(run.samples)]))
        print(f"{count} {kind}: {bytes_of[True]:.0f} bytes each, of which the program and the simulated GPU have {bytes_of[False]:.0f}; KiB in three rounds {there_of(curves[-1])}")
    draw(out / "soak-sizes.svg", "So many at once (at 1, 3, 5), and gone again", curves, "")
    return wrong


def there_of(curve):
    return [round(mib * 1024) for _, mib in curve[1][1::2]]


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--seconds", type=int, default=480, help="of the mixture (480); 0: none")
    parser.add_argument("--calls", type=float, default=0, help="also so many calls from two threads, 1e9")
    parser.add_argument("--sizes", action="store_true", help="also so many things at once")
    parser.add_argument("--out", type=pathlib.Path, default=BUILD / "soak", help="folder of the pictures")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    wrong = soak_mix(given.seconds, given.out) if given.seconds else []
    wrong += soak_calls(int(given.calls), given.out) if given.calls else []
    wrong += soak_sizes(given.out) if given.sizes else []
    print("\n".join(wrong) or f"nothing wrong; pictures in {given.out}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
