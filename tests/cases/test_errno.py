"""errno after each call of the driver's is what that call has left there, whatever the library does around it: all calls of the table, by mode.

Each call of the simulated driver changes errno in a way of its own (CUSTREAM_FAKE_ERRNO), also where the library makes it for itself. Programs say what they
find behind each of their calls.
"""
import json
import re
import subprocess

import pytest

BEFORE = 77  # what programs have in errno when they make a call
CREATE, CREATE_WITH, DESTROY = "cuStreamCreate", "cuStreamCreateWithPriority", "cuStreamDestroy_v2"

RULES = json.dumps({"rules": [
    {"match": {"library": "libmaker*"}, "set": {"name": "of a library"}},
    {"match": {"thread": "worker*"}, "set": {"priority": -2}},
    {"match": {"name": "*"}, "set": {"priority": -3, "name": "named"}},
    {"match": {"context": "primary", "nth": 1}, "set": {"nonblocking": True}},
    {"match": {"context": "primary"}, "set": {"default_stream": "legacy"}}]})

# By mode: its options, and where something else is left: the call that was made instead, or nothing where none was made.
MODES = {
    "plain": ({}, set()),
    "events": ({"CUSTREAM_GPU": "events"}, set()),
    "runtime": ({"CUSTREAM_GPU": "cupti", "CUSTREAM_RUNTIME": "cupti"}, set()),
    "trace off": ({"CUSTREAM_TRACE": "off"}, set()),
    "window": ({"CUSTREAM_WINDOW": "profiler"}, set()),
    "gz": ({"CUSTREAM_TRACE": "t.json.gz"}, set()),
    "full": ({"CUSTREAM_BUFFER": "64K", "CUSTREAM_FULL": "block"}, set()),
    "per-thread": ({"CUSTREAM_DEFAULT_STREAM": "per-thread"}, set()),
    "legacy": ({"CUSTREAM_DEFAULT_STREAM": "legacy", "CUSTREAM_DEFAULT_HANDLES": "all"}, set()),
    "audit": ({"CUSTREAM_DEFAULT_STREAM": "audit"}, set()),
    "priority": ({"CUSTREAM_PRIORITY": "shift:-1"}, {(CREATE, CREATE_WITH)}),
    "strict": ({"CUSTREAM_PRIORITY": "0:-2,strict"}, {(CREATE_WITH, None), ("cuStreamSetAttribute", None)}),
    "pool": ({"CUSTREAM_STREAMS": "pool:2"}, {(CREATE, None), (CREATE_WITH, None), (DESTROY, None)}),
    "serial": ({"CUSTREAM_STREAMS": "serial"}, set()),
    "sync": ({"CUSTREAM_STREAMS": "sync"}, set()),
    "jitter on the host": ({"CUSTREAM_JITTER": "seed=1,percent=100,us=1,at=host"}, set()),
    "jitter on the stream": ({"CUSTREAM_JITTER": "seed=1,percent=100,us=1,at=stream,on=copy"}, set()),
    "rules": ({"CUSTREAM_POLICY": RULES}, set()),
}
PROGRAMS = [["siblings", "base"], ["siblings", "sibling"], ["policies", "libmaker.so", "names", "more"], ["capture"], ["contexts"], ["reuse"], ["badcalls"]]


def number(symbol):
    """What the call leaves where it alone was made, as fake_left_in_errno() has it (tests/fakecuda/left.h)."""
    value = BEFORE
    for character in symbol.split("_pt")[0]:
        value = (value * 31 + ord(character)) & 0xFFFFFFFF
    return 1000 + value % 100000000


@pytest.fixture(scope="module")
def calls(build):
    """By number, the calls of the table."""
    lines = subprocess.run([build / "tests/dump_calls"], check=True, capture_output=True, text=True).stdout.splitlines()
    found = {number(row["name"]): row["name"] for row in map(json.loads, lines[1:])}
    assert len(found) == len(lines) - 1
    return found | {BEFORE: None}


@pytest.mark.parametrize("mode", MODES)
def test_errno_is_the_calls_own(run_app, build, calls, mode):
    options, expected = MODES[mode]
    found, made = set(), 0
    for program, *arguments in PROGRAMS:
        arguments = [str(build / "tests" / argument) if argument.endswith(".so") else argument for argument in arguments]
        run = run_app([program, *arguments], env={"CUSTREAM_GPU": "auto", "CUSTREAM_FAKE_ERRNO": 1, **options}).check()
        for symbol, left in re.findall(r"^note errno (\w+) (\d+)$", run.stderr, re.M):
            made += 1
            if number(symbol) != int(left):
                found.add((symbol, calls.get(int(left), left)))
    assert found == expected
    assert made > 700
