"""What cuda.core and cuda.bindings make of priorities, alone and under policies; and what of tests/gpu needs no GPU."""
import json
import os
import struct
import subprocess
import sys

import pytest

from tests.apprun import read, said

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gpu"))
import policy_rules  # noqa: E402
import warp_small  # noqa: E402

LIBRARIES = ["bindings", "cuda_core"]
DEVICE_RANGE = [0, -5]


@pytest.fixture(params=LIBRARIES)
def client(run_app, root, build, request):
    """(the library, a function that runs the script for it with options)."""
    argv = [build / "venv" / "bin" / "python", root / "tests" / "gpu" / "python" / "priorities.py", request.param]
    return request.param, lambda shim=True, **options: run_app(argv, shim=shim, env={f"CUSTREAM_{name}": value for name, value in options.items()}).check()


def created(run):
    """What the trace says of the streams that the library made, in their order."""
    streams = [e for e in read(run.trace).lives if e["args"].get("origin") == "created"]
    return [e["args"] for e in sorted(streams, key=lambda e: e["ts"])]


def of_streams(run):
    return [(row["asked"], row["given"], row["driver"], row["error"]) for row in policy_rules.lines_of(run.stdout, "stream")]


def test_without_a_policy_all_is_as_it_is(client):
    """Range, priorities and exceptions: the same alone, recorded, and with nothing recorded; and as the library documents them."""
    library, start = client
    alone, run, silent = start(shim=False), start(), start(TRACE="off")
    assert run.stdout == silent.stdout == alone.stdout and not said(run) and not said(silent) and not silent.trace.exists()
    assert policy_rules.only(alone.stdout, "range")["driver"] == DEVICE_RANGE
    assert policy_rules.wrong_priorities(library, alone.stdout, alone.stdout, DEVICE_RANGE) == []
    assert [(given, error) for _, given, _, error in of_streams(alone)] == [
        policy_rules.documented(library, asked, *DEVICE_RANGE) for asked, *_ in of_streams(alone)]
    assert not any(stream.get("changed by policy") for stream in created(run))


@pytest.mark.parametrize("policy", ["0:-3", "0:-1", "0:0", "0:-5", "0:-100"])
def test_a_narrowed_range_is_the_device_s(client, once, policy):
    """The library behaves as on a GPU that has no other priorities: what it asks for the range and what it gets agree."""
    library, start = client
    alone = once(f"priorities-{library}", lambda _: start(shim=False).stdout)
    run = start(PRIORITY=policy)
    own_range = policy_rules.narrowed(policy, DEVICE_RANGE)
    assert policy_rules.wrong_priorities(library, run.stdout, alone, own_range) == []
    asked = [p if p is not None else 0 for p, _, _, error in of_streams(run) if error is None]
    streams = created(run)
    assert [s["requested priority"] for s in streams] == asked
    assert [s["priority"] for s in streams] == [policy_rules.clamped(p, *own_range) for p in asked]
    assert not said(run)


@pytest.mark.parametrize("policy, changed", [("set:-2", lambda p: -2), ("shift:-1", lambda p: p - 1), ("map:-1=-4,0=-2", lambda p: {-1: -4, 0: -2}.get(p, p))])
def test_priorities_that_are_changed(client, policy, changed):
    """The driver has what the policy says, and the trace both. cuda.core goes by what it asked for: that it never asks again is its own."""
    library, start = client
    run = start(PRIORITY=policy)
    assert policy_rules.only(run.stdout, "range")["driver"] == DEVICE_RANGE
    made = [(asked or 0, given, driver) for asked, given, driver, error in of_streams(run) if error is None]
    assert len(made) == (9 if library == "bindings" else 6)
    for asked, given, driver in made:
        assert driver == policy_rules.clamped(changed(asked), *DEVICE_RANGE), (asked, driver)
        assert given == (asked if library == "cuda_core" else driver), (asked, given)
    streams = created(run)
    assert [(s["requested priority"], s["priority"]) for s in streams] == [(asked, driver) for asked, _, driver in made]
    assert all(s.get("changed by policy", False) for s in streams if s["requested priority"] != s["priority"] and s["requested priority"] in range(-5, 1))


def test_what_is_out_of_range_is_refused(client):
    """With ,strict the driver's clamping becomes an error; cuda.core refuses by itself what lies out of the range that it is told."""
    library, start = client
    run = start(PRIORITY="0:-3,strict")
    error = "AssertionError" if library == "bindings" else "ValueError"  # of the script, for CUDA_ERROR_INVALID_VALUE
    for asked, given, driver, raised in of_streams(run):
        if asked is None or -3 <= asked <= 0:
            assert (given, driver, raised) == (asked or 0, asked or 0, None)
        else:
            assert (given, driver, raised) == (None, None, error)


def test_a_rule_for_the_library(client, once):
    """By the file name of the extension module that makes the streams, as the trace has it."""
    library, start = client
    (name,) = {stream["library"] for stream in created(start())}
    rules = [{"match": {"library": "libnccl*"}, "set": {"priority": -5}}, {"match": {"library": name[:8] + "*", "nonblocking": True}, "set": {"priority": -4}}]
    run = start(POLICY=json.dumps({"rules": rules}))
    made = [driver for _, _, driver, error in of_streams(run) if error is None]
    assert made and set(made) == {-4}
    assert {stream["rule"] for stream in created(run)} == {"rules[1]"}
    elsewhere = start(POLICY=json.dumps({"rules": rules[:1]}))
    assert elsewhere.stdout == once(f"priorities-{library}", lambda _: start(shim=False).stdout) and not any("rule" in stream for stream in created(elsewhere))


# --- what the tests on a real GPU go by ---

def test_rules_of_libraries():
    table = {"bindings": {100: 0, 1: 0, 0: 0, -3: -3, -5: -5, -100: -5, None: 0}, "cuda_core": {100: "ValueError", 0: 0, -5: -5, -6: "ValueError", None: 0},
             "cupy": {100: 0, -3: -3, -100: -5, None: 0}, "torch": {100: 0, -1: -1, -3: -3, -4: -3, -100: -3, None: "TypeError"},
             "warp": {1: 0, 0: 0, -1: -1, -2: -1, -100: -1, None: "TypeError"}}
    for library, expected in table.items():
        got = {asked: policy_rules.documented(library, asked, *DEVICE_RANGE) for asked in expected}
        assert {asked: given if error is None else error for asked, (given, error) in got.items()} == expected, library
    assert policy_rules.documented("torch", -3, 0, -1) == (-1, None) and policy_rules.documented("warp", -3, 0, 0) == (0, None)
    assert policy_rules.narrowed("0:-3", [0, -5]) == [0, -3] and policy_rules.narrowed("0:-3", [0, -2]) == [0, -2]


def test_mistakes_in_priorities_are_named():
    alone = '{"what": "range", "driver": [0, -5]}\n{"what": "stream", "asked": -5, "given": -5, "driver": -5, "error": null}\n'
    assert policy_rules.wrong_priorities("cupy", alone, alone, [0, -5]) == []
    wrong = policy_rules.wrong_priorities("cupy", alone, alone, [0, -3])
    assert len(wrong) == 3 and "range is [0, -5]" in wrong[0] and "not (-3, None)" in wrong[1] and "out of the range" in wrong[2]
    other = alone.replace('"driver": -5, "error"', '"driver": -4, "error"')
    assert "the driver -4" in policy_rules.wrong_priorities("cupy", other, alone, [0, -5])[0]


def test_figures_of_programs():
    text = 'noise\n{"what": "round", "one_ms": 51.0, "all_ms": 60.0}\n{"what": "round", "one_ms": 50.0, "all_ms": 61.0}\n{"what": "result", "right": true}\n'
    assert policy_rules.best_round(text) == (50.0, 60.0) and policy_rules.right(text) and len(policy_rules.lines_of(text)) == 3


def test_code_for_other_gpus_becomes_zeros():
    """A library with a container of code for three GPUs: all but the kept one's is zero, and nothing else has changed."""
    def entry(kind, capability, code):
        return struct.pack("<HHIQIIHHI32x", kind, 0x101, 64, len(code), 0, 0, 0, 0, capability) + code
    parts = [entry(2, 80, b"a" * 24), entry(2, 90, b"b" * 16), entry(1, 90, b"c" * 8)]
    assert all(len(part) > 64 for part in parts)
    body = b"".join(parts)
    library = b"head" + struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body + b"tail"
    assert [(kind, capability) for kind, capability, _, _ in warp_small.entries(library)] == [(2, 80), (2, 90), (1, 90)]
    assert warp_small.smaller(library) == library.replace(b"a" * 24, bytes(24)).replace(b"c" * 8, bytes(8))


def test_gpu_tests_can_be_collected(root, build):
    """On this machine, as far as it goes: every file of tests/gpu imports what it needs, and the scripts for real GPUs are whole."""
    env = dict({k: v for k, v in os.environ.items() if not k.startswith("CUSTREAM_")}, CUSTREAM_GPU_SIMULATED="1", PYTHONDONTWRITEBYTECODE="1")
    command = [build / "venv" / "bin" / "python", "-m", "pytest", "-q", "--collect-only", "tests/gpu"]
    done = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "test_gpu_policy.py::test_priorities[torch]" in done.stdout, done.stdout + done.stderr
    for script in (root / "tests" / "gpu" / "python").glob("*.py"):
        compile(script.read_text(), str(script), "exec")
    subprocess.run(["bash", "-n", root / "tests" / "gpu" / "collect.sh"], check=True)
