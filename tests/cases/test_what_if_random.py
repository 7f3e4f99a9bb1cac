"""Random programs whose time is known with and without one thing: `--what-if` must say the same. The scheduler here knows CUDA's order by itself.

Kernels have no shape that the trace tells, so any two may run at once ("unknown fits", the high figure).
"""
import dataclasses
import json
import os
import random

import pytest

from tests.handmade import custream
from tests.tracestory import LEGACY, MAIN, Story

CALL, WAY, BEHIND, BACK = 2, 3, 1.5, 4  # us: a call; from its begin to its work's; behind other work; from the end of what the host waits for to its return
PROGRAMS, BATCH = int(os.environ.get("WHAT_IF_PROGRAMS", "200")), 20
FIRST = 0


@dataclasses.dataclass
class Op:
    thread: int
    kind: str           # kernel, record, wait, sync, event_sync, device_sync, host_function, own_code
    stream: int = 0
    event: int = 0
    us: float = 0       # of a kernel, a host function or own code
    name: str = "k"


def program(rng):
    """One thread or two, which share no stream: their order against each other does not matter, but for events."""
    threads, streams = rng.choice([1, 1, 2]), [LEGACY, 13, 14, 15, 16]
    legacy = threads == 1 and rng.random() < 0.4
    ops = [Op(thread, "kernel", stream=15 - thread % 2 * 2 if threads == 1 else 14 + thread, us=20) for thread in range(threads)]
    recorded = []
    for _ in range(rng.randint(10, 60)):
        thread = rng.randrange(threads)
        mine = [s for s in streams if (s != LEGACY or (legacy and thread == 0)) and (threads == 1 or s == LEGACY or s % 2 == thread)]
        kind = rng.choices(["kernel", "record", "wait", "sync", "event_sync", "device_sync", "host_function", "own_code", "copy"], [12, 4, 4, 1, 1, 1, 1, 2, 2])[0]
        op = Op(thread, kind, stream=rng.choice(mine), us=rng.choice([5, 20, 100, 400]), name=rng.choice(["short", "long"]))
        if kind == "own_code":
            if [o for o in ops if o.thread == thread][-1].kind == "own_code":
                continue  # two are one
            op.us = rng.choice([50, 300, 1000])
        if kind == "record":
            op.event = len(recorded) + 1
            recorded.append(op.event)
        if threads > 1 and kind in ("wait", "event_sync", "device_sync", "own_code", "copy"):
            continue  # the list's order is that of each thread, not of time; and own code may be a wait for the other thread
        if kind in ("wait", "event_sync"):
            if not recorded:
                continue
            op.event = rng.choice(recorded)
        ops.append(op)
    return ops


def run(ops, blocking, without="", scale=1.0):
    """When everything happens. `without`: events, legacy, device (cuCtxSynchronize), own_code, host_functions. The rows of a Story, and how long it takes."""
    clock, tail, event, legacy_tail, blocking_tail, rows, last = {}, {}, {}, 0.0, 0.0, [], 0.0
    took = {t: sum(op.us for op in ops if op.kind == "kernel" and op.thread == t) for t in {op.thread for op in ops}}
    counts = {t: 5 * us >= max(took.values()) for t, us in took.items()}  # the others may only keep the rest company
    enqueues = {op.thread: i for i, op in enumerate(ops) if op.kind in ("kernel", "copy")}

    def joins(stream):
        return max(tail.get(stream, 0), (blocking_tail if stream == LEGACY else legacy_tail if stream in blocking else 0) if without != "legacy" else 0)

    def ends(stream, at):
        nonlocal legacy_tail, blocking_tail
        tail[stream] = at
        if stream == LEGACY:
            legacy_tail = max(legacy_tail, at)
        elif stream in blocking:
            blocking_tail = max(blocking_tail, at)

    for i, op in enumerate(ops):
        at = clock.get(op.thread, 0.0)
        if op.kind == "own_code":
            clock[op.thread] = at + (0 if without == "own_code" and op.us >= 200 else op.us)
            continue
        back = at + CALL
        if op.kind in ("kernel", "host_function", "copy"):
            length = op.us * (scale if op.kind == "kernel" and op.name == "long" else 1)
            if op.kind == "host_function" and without == "host_functions":
                length = 0
            ready = joins(op.stream)
            began = max(at + WAY, ready + BEHIND if ready else 0)
            ends(op.stream, began + length)
            if op.kind == "copy":  # cuMemcpyDtoH returns when it is done
                back = began + length + BACK
            rows.append((op.kind, op, at, began, length))
            last = max(last, began + length if counts[op.thread] or op.kind == "host_function" else 0)
        elif op.kind == "record":
            event[op.event] = max(joins(op.stream), at + CALL)
            ends(op.stream, joins(op.stream))
            rows.append((op.kind, op, at, 0, 0))
        elif op.kind == "wait":
            if without != "events":
                ends(op.stream, max(tail.get(op.stream, 0), event[op.event]))
            rows.append((op.kind, op, at, 0, 0))
        else:
            until = {"sync": tail.get(op.stream, 0), "event_sync": event.get(op.event, 0), "device_sync": max(tail.values(), default=0)}[op.kind]
            dropped = without == "device" and op.kind == "device_sync" and i < enqueues.get(op.thread, -1)
            if until > at + CALL and not dropped:
                back = until + BACK
            rows.append((op.kind, op, at, back, until))
        clock[op.thread] = back
        last = max(last, back if counts[op.thread] else 0)
    return rows, last


def story_of(ops, blocking):
    story = Story()
    rows, last = run(ops, blocking)
    for stream in [LEGACY, 13, 14, 15, 16]:
        story.stream(stream, blocking=stream in blocking)
    for kind, op, at, began, length in rows:
        thread = MAIN + 10 * op.thread
        on = {"cs.stream": op.stream, "thread": thread}
        if kind == "kernel":
            story.kernel(op.stream, at, began, length, name=op.name, thread=thread, took=CALL)
        elif kind == "copy":
            story.copy(op.stream, at, began, length, "DtoH", call="cuMemcpyDtoH_v2", took=began + length + BACK - at, thread=thread)
        elif kind == "host_function":
            story.callback(op.stream, at, began, length, thread=thread)
        elif kind == "record":
            story.call("cuEventRecord", at, CALL, event=op.event, **on)
        elif kind == "wait":
            story.call("cuStreamWaitEvent", at, CALL, event=op.event, flags="0x0", **on)
        elif kind == "sync":
            story.call("cuStreamSynchronize", at, began - at, **on)
        elif kind == "event_sync":
            story.call("cuEventSynchronize", at, began - at, thread=thread, event=op.event)
        else:
            story.call("cuCtxSynchronize", at, began - at, thread=thread)
    return story, last


CHANGES = {"no events": {"without": "events"}, "no legacy": {"without": "legacy"}, "no cuCtxSynchronize": {"without": "device"},
           "own code=0": {"without": "own_code"}, "host functions=0": {"without": "host_functions"}, "kernel long=0.5": {"scale": 0.5}}


NEEDS = {"no cuCtxSynchronize": lambda op: op.kind == "device_sync", "kernel long=0.5": lambda op: op.kind == "kernel" and op.name == "long"}


@pytest.mark.parametrize("seed", range(FIRST, FIRST + PROGRAMS, BATCH))
def test_a_change_takes_as_long_as_the_changed_program(tmp_path, seed):
    for number in range(seed, seed + BATCH):
        check(tmp_path / "story.json", random.Random(number), number)


def check(path, rng, number):
    ops = program(rng)
    blocking = {s for s in (13, 14, 15, 16) if rng.random() < 0.5}
    story, last = story_of(ops, blocking)
    path.write_text(story.text(), encoding="utf-8")
    asked = {change: how for change, how in CHANGES.items() if change not in NEEDS or any(map(NEEDS[change], ops))}
    done = custream("report", "--json", *(f"--what-if={change}" for change in asked), path)
    assert done.returncode == 0, (number, done.stderr)
    for row, (change, how) in zip(json.loads(done.stdout)["tables"]["what_if"], asked.items(), strict=True):
        gain = last - run(ops, blocking, **how)[1]
        assert abs(row["replayed_ns"] / 1000 - last) <= 5 + 0.04 * last, (number, change, row, last)
        assert row["gain_low_ns"] / 1000 - 12 - 0.02 * last <= gain <= row["gain_high_ns"] / 1000 + 12 + 0.02 * last, (number, change, row, gain, last)
        assert abs(row["gain_high_ns"] / 1000 - gain) <= 12 + 0.02 * last, (number, change, row["gain_high_ns"] / 1000, gain, last)
