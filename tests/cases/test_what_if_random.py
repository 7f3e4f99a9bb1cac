"""Random programs on the simulated GPU's virtual clock. Each is changed in every way that `--what-if` knows, and run again: to the nanosecond it takes
as long as `--what-if` says of the first run. What has been mended is not worth mending again.

The driver has CUDA's order of work. Its latencies are those that the model takes where a trace shows none.
"""
import json
import os
import random
import subprocess

import pytest

from tests import BUILD
from tests.cases.conftest import app_environment
from tests.handmade import custream
from tests.streamscript import text_of

# What the programs do not have, or have for some changes only, since the model does not know it (docs/what-if.md).
LEFT_OUT = """
- Threads that wait for each other, and pauses of 200 us in programs with several threads: who woke whom is a guess ("no locks").
- Threads that share a stream, but for "per-thread", where no two calls begin at one time; events of other threads: in another order it is another program.
- Threads with less than a fifth of the GPU's work of another one, which may only keep it company.
- Queries and waits for values, in a loop or not.
- Host functions on several streams: the driver has one thread for all of them.
- One executable graph on several streams, where launches follow each other; kernels by name inside of graphs, which a trace does not show.
- Kernels that fill the GPU: the last blocks of one leave room for the next, how much is not known.
- Waits for memory that is freed of less than 20 us, which look like the call's own time.
- "host=0" with copies, as two may come at one time, and with events, which are reached at once.
- "no copies", "pinned and ahead": the calls that make more streams; "two at once": no program can ask for it; "own code in range": scripts have no ranges.
"""

SET_UP = {"allocations=0": 10}  # before the program's lines: so many allocations, which take no time, and are drawn 1 ns long each: if nothing else holds the rest, it is so much earlier
PROGRAMS, BATCH = int(os.environ.get("WHAT_IF_PROGRAMS", "200")), 20
FIRST = 0
NEVER, IDLE = "e30", "s30"  # an event that nobody records, and a stream that nobody uses
IN_GRAPH = "c31"            # the cell of kernels that are captured
PAUSE = 200                 # us: own code that takes as long counts as the program's
FREED_WAIT = 300            # us: a free waits for as long at least
LIBRARY = BUILD / "virtual/libcustream_shim.so"


# --- programs: lines of a script (tests/apps/script.c) ---

def program(rng):
    """A shape, which says what changes there are, and lines."""
    shape = rng.choices(["one thread", "threads", "one stream for all", "kernels of one stream", "a row of launches"], [10, 6, 1, 1, 1])[0]
    threads = rng.choice([2, 3]) if shape == "threads" else 2 if shape == "one stream for all" else 1
    streams = {t: [f"s{t * 4 + i}" for i in range(1 if shape == "kernels of one stream" else rng.randint(1, 4))] for t in range(threads)}
    flags = rng.choice([[1], [0, 1], [0]])
    lines = [(t, "create", s, rng.choice(flags)) for t in range(threads) for s in streams[t]]
    lines += [(0, "create", IDLE, 1), (0, "event", NEVER, 2), *((0, "event", f"e{i}", 2) for i in range(24)), *((0, "heap", f"m{i}") for i in range(8))]
    graph = []
    if shape in ("one thread", "threads") and rng.random() < 0.3:
        graph = [("g1", rng.choice(streams[0]))]
        lines += [(0, "begin", streams[0][0], 2), *((0, "step", streams[0][0], IN_GRAPH, 1, rng.choice([3, 40])) for _ in range(rng.randint(1, 5))),
                  (0, "end", streams[0][0], "g1"), (0, "instantiate", "g1")]
    lines += [(t, "rest", 1 + t) for t in range(threads)]  # the calls so far take no time
    if shape == "one thread" and rng.random() < 0.6:
        streams[0].append("zero")
    if shape == "one stream for all":
        streams = {t: ["zero"] for t in range(threads)}
    for t in range(threads):
        lines += thread_program(rng, shape, t, streams[t], graph if t == 0 else [])
    busy = [sum(line[5] for line in lines if line[0] == t and line[1] in ("step", "mix")) for t in range(threads)]
    return shape, lines + [(t, "step", streams[t][0], f"c{t}", 1, max(busy) // 4 + 1) for t in range(threads) if busy[t] * 4 < max(busy)]  # else it does not count


KINDS = {"step": 8, "mix": 4, "set": 1, "record": 4, "wait": 4, "sync": 1, "esync": 1, "ctxsync": 1, "pause": 1, "rest": 3, "move": 2, "launch": 2, "unheap": 1}
OF_SHAPE = {
    "one thread": set(KINDS),
    "threads": set(KINDS) - {"ctxsync", "unheap"},
    "one stream for all": {"step", "mix", "set", "record", "wait", "rest"},
    "kernels of one stream": {"step", "mix", "rest"},
    "a row of launches": {"step", "mix", "set", "record", "wait", "rest"},
}


def thread_program(rng, shape, t, streams, graph):
    lines, busy, recorded, heap = [], 0, [], list(range(8))
    kinds = {kind: weight for kind, weight in KINDS.items() if kind == "step" or (kind in OF_SHAPE[shape] and rng.random() < 0.7)}
    alone = shape not in ("threads", "one stream for all")
    for _ in range(rng.randint(4, 50) if shape != "kernels of one stream" else rng.randint(4, 25)):
        kind, stream = rng.choices(list(kinds), list(kinds.values()))[0], rng.choice(streams)
        us = rng.choice([2, 10, 20, 60, 100, 300]) + 2 * rng.randrange(20)
        event = f"e{t * 8 + rng.randrange(8)}"
        waits = kind == "move" and alone and rng.random() < 0.5
        if {"wait": not recorded, "esync": not recorded, "pause": t, "rest": not lines or lines[-1][1] == "rest", "launch": not graph, "unheap": not heap}.get(kind):
            continue
        if kind == "unheap":
            lines.append((t, "step", stream, f"c{t}", 1, us + FREED_WAIT))
        lines.append((t, kind, *{
            "step": lambda: (stream, f"c{t}", 1, us), "mix": lambda: (stream, f"c{t}", f"c{t + 4}", us), "set": lambda: (stream, f"c{t}", 1),
            "record": lambda: (event, stream), "wait": lambda: (stream, rng.choice(recorded)), "esync": lambda: (rng.choice(recorded),),
            "sync": lambda: (stream,), "ctxsync": lambda: (), "pause": lambda: (streams[0], us), "launch": lambda: graph[0],
            "rest": lambda: (us + PAUSE * rng.randrange(2) if alone else us % PAUSE + 2,), "unheap": lambda: (f"m{heap.pop()}",),
            "move": lambda: ("zero" if waits else stream, rng.randrange(2), int(not waits), 8 * rng.choice([64, 8192, 40000]))}[kind]()))
        busy += us if kind in ("step", "mix") else 0
        recorded += [event] if kind == "record" else []
    if shape == "a row of launches":
        lines = [(t, "record", "e0", streams[0]), *lines, *[(t, "step", streams[0], f"c{t}", 1, 10)] * 20]
    lines.append((t, "step", streams[0], f"c{t}", 1, 500 * (not alone) + busy // 4 + 1))  # each thread has its part of the GPU's work
    return [*lines, (t, "sync", streams[0])] if rng.random() < 0.5 else lines


# --- changes: as `--what-if` has them, and as other programs ---

def enqueues_last(lines):
    """By thread, the place of its last line that puts work on the GPU: waits behind that stay."""
    return {line[0]: i for i, line in enumerate(lines) if line[1] in ("step", "mix", "set", "move", "launch")}


def without(*names):
    def change(lines):
        last = enqueues_last(lines)
        return [line for i, line in enumerate(lines) if line[1] not in names or (i > last[line[0]] and "sync" in line[1])]
    return change


def each(how):
    """The program in which each line is what `how` makes of it."""
    def change(lines):
        last = enqueues_last(lines)
        return [line if "sync" in line[1] and i > last[line[0]] else how(*line) for i, line in enumerate(lines)]
    return change


def no_stream_wait(t, kind, *rest):
    return (t, "sync", IDLE) if kind == "sync" else (t, "esync", NEVER) if kind == "esync" else (t, kind, *rest)


def no_blocking(t, kind, *rest):
    """A copy of pinned memory that takes as long: 55 GB/s for 8."""
    return (t, kind, *rest[:2], 1, rest[3] // 8 * 55) if kind == "move" and not rest[2] else (t, kind, *rest)


def no_wait(*line):
    return no_blocking(*((line[0], "sync", IDLE) if line[1] == "ctxsync" else no_stream_wait(*line)))


def own_streams(lines):
    """Each kernel has a stream, as the 26 that were made before."""
    kernels = [i for i, line in enumerate(lines) if line[1] in ("step", "mix")]
    own = [(t, kind, f"s{4 + kernels.index(i)}", *rest[1:]) if i in kernels else (t, "ctxsync") if kind == "sync" else (t, kind, *rest)
           for i, (t, kind, *rest) in enumerate(lines)]
    return [(0, "create", f"s{i + 4}", 1) for i in range(len(kernels))] + own


def as_graph(lines):
    """Launches take less, and own code before them nothing."""
    return [line for line, behind in zip(lines, [*lines[1:], None], strict=True)
            if line[1] != "rest" or line[2] >= PAUSE or behind[1] not in ("step", "mix", "set")]


ALL = ("one thread", "threads")
# change: shapes, what the program must have, the changed program, settings of the clock
CHANGES = {
    "no events": (ALL, None, each(lambda t, kind, *rest: (t, kind, rest[0], NEVER) if kind == "wait" else (t, kind, *rest)), {}),
    "no legacy": (ALL, None, each(lambda t, kind, *rest: (t, kind, rest[0], 1) if kind == "create" else (t, kind, *rest)), {}),
    "no cuStreamWaitEvent": (ALL, "wait", without("wait"), {}),
    "no cuCtxSynchronize": (ALL, "ctxsync", without("ctxsync"), {}),
    "no cuStreamSynchronize": (ALL, "sync", without("sync"), {}),
    "no cuEventSynchronize": (ALL, "esync", without("esync"), {}),
    "no stream waits": (ALL, None, each(no_stream_wait), {}),
    "no waits": (ALL, None, each(no_wait), {}),
    "copies do not block": (ALL, None, each(no_blocking), {}),
    "pinned": (ALL, None, each(lambda t, kind, *rest: (t, kind, *rest[:2], 1, rest[3]) if kind == "move" else (t, kind, *rest)), {}),
    "allocations=0": (ALL, None, without("unheap"), {}),
    "own code=0": (ALL, None, lambda lines: [line for line in lines if line[1] != "rest" or line[2] < PAUSE], {}),
    "host=0": (ALL, None, without("rest"), {"CUSTREAM_FAKE_CALL_NS": "0"}),
    "host functions=0": (ALL, None, each(lambda t, kind, *rest: (t, kind, rest[0], 0) if kind == "pause" else (t, kind, *rest)), {}),
    "kernel mix31=0.5": (ALL, "mix", each(lambda t, kind, *rest: (t, kind, *rest[:3], rest[3] // 2) if kind == "mix" else (t, kind, *rest)), {}),
    "kernel step31=3": (ALL, None, each(lambda t, kind, *rest: (t, kind, *rest[:3], rest[3] * 3) if kind == "step" and rest[1] != IN_GRAPH else (t, kind, *rest)), {}),
    "per-thread": (("one stream for all",), None, lambda lines: [tuple("own" if word == "zero" else word for word in line) for line in lines], {}),
    "side by side": (("kernels of one stream",), None, own_streams, {}),
    "graph": (("a row of launches",), None, as_graph, {"CUSTREAM_FAKE_LAUNCH_NS": "500"}),
}


MENDED = {change for change in CHANGES if change != "host=0" and not change.startswith("kernel")}  # causes that have gone then


def changes_of(shape, lines):
    """By change that the program can have: the changed program, and settings."""
    names = {line[1] for line in lines}
    return {change: (how(lines), clock) for change, (shapes, needs, how, clock) in CHANGES.items()
            if shape in shapes and (needs is None or needs in names) and not (change == "host=0" and names & {"move", "record"})}


def took(folder, lines, clock=None, shim=False):
    """How long the program takes; with the library, it leaves a trace."""
    script, settings = folder / "script", {"CUSTREAM_FAKE_CLOCK": "virtual", "CUSTREAM_FAKE_COPY_ENGINES": "1", "CUSTREAM_KEEP": "off", **(clock or {})}
    script.write_text(text_of(lines, "legacy"))
    done = subprocess.run([BUILD / "tests/script", script], env=app_environment(BUILD, folder / "trace.json", LIBRARY if shim else False, settings),
                          cwd=folder, timeout=60, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return int(done.stdout.split()[-1])


def report(folder, changes):
    done = custream("report", "--json", *(f"--what-if={change}" for change in changes), folder / "trace.json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["tables"]


def check(folder, number, wrong):
    """Returns the changes that were compared."""
    shape, lines = program(random.Random(number))
    length = took(folder, lines, shim=True)
    changes = changes_of(shape, lines)
    rows = report(folder, changes)["what_if"]
    for row, (change, (changed, clock)) in zip(rows, changes.items(), strict=True):
        if row["replayed_ns"] != length or row["recorded_ns"] != length:
            wrong.append((number, "unchanged", length, row["replayed_ns"], row["recorded_ns"]))
        means = took(folder, changed, clock) if changed != lines or clock else length
        if not row["replayed_ns"] - row["gain_low_ns"] == row["replayed_ns"] - row["gain_high_ns"] in (means, means - SET_UP.get(change, 0)):
            wrong.append((number, change, length, means, row["replayed_ns"] - row["gain_low_ns"], row["replayed_ns"] - row["gain_high_ns"]))
    most = max(rows, key=lambda row: row["gain_high_ns"] * (row["change"] in MENDED))
    if most["change"] in MENDED and most["share"] > 0.02:
        check_mended(folder, number, most["change"], changes[most["change"]], wrong)
    return shape, list(changes)


def check_mended(folder, number, change, program_and_clock, wrong):
    """Neither the change nor a finding that it would mend has a price any more."""
    length = took(folder, *program_and_clock, shim=True)
    needs, lines = CHANGES[change][1], program_and_clock[0]
    tables = report(folder, [change] if needs is None or any(line[1] == needs for line in lines) else [])
    prices = [row["gain_high_ns"] for row in tables.get("what_if", []) + [row for row in tables["findings"] if row.get("what_if") == change]]
    if max(prices, default=0) > 0.02 * length:
        wrong.append((number, "mended", change, length, prices))


def test_two_runs_have_the_same_times(tmp_path):
    """They are those that the script asks for."""
    lines = [(0, "create", "s1", 1), (0, "create", "s2", 1), (0, "event", "e1", 2), (0, "step", "s1", "c1", 1, 5), (0, "record", "e1", "s1"),
             (0, "wait", "s2", "e1"), (0, "mix", "s2", "c2", "c3", 20), (0, "rest", 300), (0, "sync", "s2"), (1, "step", "s2", "c4", 1, 7)]  # of another thread, at the begin
    seen = []
    for _ in range(2):
        assert took(tmp_path, lines, shim=True) == 310_000
        rows = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
        seen.append(sorted((row["name"], row["ts"], row["dur"]) for row in rows if row["ph"] == "X" and row["cat"] != "overhead"))
    assert seen[0] == seen[1]
    assert {("step31", 5, 5), ("step31", 5, 7), ("mix31", 13.5, 20), ("cuStreamSynchronize", 308, 2)} <= set(seen[0])


@pytest.mark.parametrize("seed", range(FIRST, FIRST + PROGRAMS, BATCH))
def test_a_change_takes_as_long_as_the_changed_program(tmp_path, seed):
    wrong = []
    for number in range(seed, seed + BATCH):
        check(tmp_path, number, wrong)
    assert not wrong, "\n".join(map(str, wrong))
