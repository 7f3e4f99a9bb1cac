"""Programs of tests/apps run with and without the shim, and what they say of themselves: the calls that they made, and notes on standard error."""
import collections
import functools
import json
import subprocess

from tests import BUILD
from tests.trace import Trace


@functools.lru_cache
def wrapped_calls():
    """The names that the call table wraps, siblings included."""
    lines = subprocess.run([BUILD / "tests" / "dump_calls"], check=True, capture_output=True, text=True).stdout.splitlines()
    names = set()
    for row in map(json.loads, lines):
        if "name" in row:
            names.add(row["name"])
            if row["sibling"] != "ONE":
                names.add(f"{row['name']}_{row['sibling'].lower()}")
    return names


def calls_of(stdout):
    """What app_report() printed: how often each wrapped call was made."""
    counts = collections.Counter()
    for line in stdout.splitlines():
        words = line.split()
        if len(words) == 3 and words[0] == "calls" and words[1] in wrapped_calls():
            counts[words[1]] += int(words[2])
    return counts


def notes_of(stderr):
    """The note lines of standard error, the last of each key."""
    return {words[1]: words[2] for words in (line.split(None, 2) for line in stderr.splitlines()) if len(words) == 3 and words[0] == "note"}


def said(run):
    """What the shim itself said: its lines of standard error."""
    return [line for line in run.stderr.splitlines() if line.startswith("custream:")]


def read(path):
    """The trace of a file that `custream check` finds good."""
    return Trace(path)


def calls_in(trace):
    """Host slices by name, our own (callbacks, losses) left out."""
    return trace.count(cat="cuda_driver")


def both(run_app, argv, **options):
    """Runs the program without and with the shim: both must do the same, and with it a good trace must come. Returns (run, trace)."""
    env = options.pop("env", {})
    bare = run_app(argv, shim=False, env=env, **options)
    run = run_app(argv, env=env, **options)
    assert (run.rc, run.stdout) == (bare.rc, bare.stdout), "\n".join(
        f"--- {which}: rc {one.rc}\n{one.stdout}--- stderr\n{one.stderr}" for which, one in (("without the shim", bare), ("with it", run)))
    assert not bare.trace.exists()
    return run, read(run.trace)


def faithful(run_app, argv, **options):
    """both(), for a program that ends well: the trace must have every call that it made, and the shim has nothing to say."""
    run, trace = both(run_app, argv, **options)
    run.check()
    assert trace.verdict == "ok"
    assert calls_in(trace) == calls_of(run.stdout)
    assert not said(run), run.stderr
    return run, trace
