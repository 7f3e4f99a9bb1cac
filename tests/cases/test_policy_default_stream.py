"""CUSTREAM_DEFAULT_STREAM: a program behaves as one that was compiled for that default stream, in every call that there is and in what follows from it."""
import json
import re
import subprocess

import pytest

from tests.streamscript import formless, program_journal, run_script

OTHER = {"per-thread": "legacy", "legacy": "per-thread"}
FORM = {"per-thread": "sibling", "legacy": "base"}

# Calls that the driver refuses here before it looks at the stream would say nothing; there is none.
UNRESOLVED = set()


@pytest.fixture
def every_call(run_app, build, tmp_path):
    """Makes every call that has a sibling, on the default stream, and gives the program's output and the driver's journal."""
    def run(form, target=None):
        journal = tmp_path / f"journal-{form}-{target}"
        done = run_app(["siblings", form], shim=target is not None, env={"CUSTREAM_FAKE_JOURNAL": journal, "CUSTREAM_DEFAULT_STREAM": target}).check()
        return done, program_journal(journal.read_text().splitlines(), build)
    return run


def pairs(build):
    """The calls of the table that have a sibling, with its name."""
    lines = subprocess.run([build / "tests/dump_calls"], check=True, capture_output=True, text=True).stdout.splitlines()
    rows = [json.loads(line) for line in lines[1:]]
    return {row["name"]: f"{row['name']}_{row['sibling'].lower()}" for row in rows if row["sibling"] != "ONE"}


@pytest.mark.parametrize("target", OTHER)
def test_every_call(every_call, build, target):
    """Each call, made through the other form, reaches the driver as the form that was wanted makes it: the symbol, its stream, its values, its result."""
    compiled, wanted = every_call(FORM[target])
    steered, journal = every_call(FORM[OTHER[target]], target)
    assert journal == wanted
    assert steered.stdout == compiled.stdout
    assert not steered.stderr
    symbols = {base: sibling if target == "per-thread" else base for base, sibling in pairs(build).items()}
    assert [line.split()[0] for line in steered.stdout.splitlines()] == list(symbols)  # all of them were made
    stream = "per-thread:1" if target == "per-thread" else "legacy"
    reached = {line.split()[1] for line in journal if stream in line.split()}
    assert set(symbols.values()) - reached == UNRESOLVED


@pytest.mark.parametrize("target", OTHER)
def test_every_call_of_that_form_stays(every_call, target):
    """Through the form that is wanted already nothing changes."""
    compiled, wanted = every_call(FORM[target])
    kept, journal = every_call(FORM[target], target)
    assert (kept.stdout, journal) == (compiled.stdout, wanted)


# --- what follows from it ---

SCENARIOS = {
    # The legacy stream cannot be captured, each thread's own can.
    "capture": """
        0 begin zero 2
        0 capturing zero
        0 step zero c0 3 0
        0 set zero c1 4
        0 info zero
        0 end zero g1
        0 instantiate g1
        0 upload g1 zero
        0 launch g1 zero
        0 launch g1 zero
        0 sync zero""",
    # What may not be done meanwhile: another stream's capture forbids the legacy stream, not the thread's own.
    "work beside a capture": """
        0 create s1 0
        0 begin s1 2
        0 step zero c0 3 0
        0 setd c1 4
        0 poll zero
        0 end s1 g1
        0 step zero c0 5 0""",
    "capture that forks": """
        0 create s1 1
        0 event e1 2
        0 event e2 2
        0 begin zero 1
        0 record e1 zero
        0 wait s1 e1
        0 step s1 c1 2 0
        0 record e2 s1
        0 wait zero e2
        0 mix zero c0 c1 0
        0 end zero g1
        0 instantiatex g1 zero
        0 launch g1 s1
        0 sync s1""",
    "capture by two threads": """
        0 begin zero 1
        1 begin zero 1
        0 step zero c0 1 0
        1 step zero c1 1 0
        1 end zero g1
        0 end zero g2
        0 instantiate g1
        0 instantiate g2
        0 launch g1 zero
        1 launch g2 zero""",
    # Implicit order: the legacy stream's with blocking streams, in both directions; a thread's own with the legacy stream alone.
    "behind a blocking stream": """
        0 create s1 0
        0 hold s1 h0
        0 step s1 c0 1 0
        0 step zero c1 2 0
        0 query zero
        1 step zero c2 2 0
        1 query zero
        0 release h0
        0 sync s1
        0 sync zero
        1 sync zero""",
    "before a blocking stream": """
        0 create s1 0
        0 hold zero h0
        0 set zero c0 1
        0 step s1 c1 2 0
        1 step zero c2 2 0
        0 poll s1
        0 query zero
        0 release h0
        0 sync zero
        0 sync s1
        1 sync zero""",
    "beside streams without order": """
        0 create s1 1
        0 hold s1 h0
        0 step s1 c0 1 0
        0 step zero c1 2 0
        0 query zero
        0 read c1
        0 release h0
        0 sync s1""",
    "the legacy stream and a thread's own": """
        0 hold legacy h0
        0 step zero c0 1 0
        1 step own c1 1 0
        1 query own
        0 release h0
        1 sync own
        0 hold own h1
        0 step legacy c2 1 0
        1 query legacy
        0 release h1
        0 sync legacy
        0 sync zero""",
    "copies that the host waits for": """
        0 step zero c0 1 2000
        0 read c0
        1 upd c1 5
        0 step zero c1 1 2000
        0 sync zero
        1 read c1
        0 copyd c2 c1
        0 setd c3 9
        0 sync zero
        1 read c2""",
    "callbacks": """
        0 create s1 0
        0 host zero c0 1
        0 callback zero c0 2
        1 callback zero c1 3
        1 callback own c1 4
        0 callback s1 c2 5
        0 ctxsync
        0 callback legacy c2 6
        0 ctxsync
        0 begin own 2
        0 callback own c3 7
        0 end own g1""",
    "events": """
        0 create s1 1
        0 event e1 0
        0 event e2 2
        0 hold zero h0
        0 step zero c0 1 0
        0 record e1 zero
        0 equery e1
        0 release h0
        0 wait s1 e1
        0 mix s1 c1 c0 0
        0 recordx e2 s1 0
        0 wait zero e2
        0 step zero c1 1 0
        1 wait zero e2
        1 record e2 zero
        1 esync e2
        0 sync zero
        0 query s1""",
    "events between processes": """
        0 event e1 6
        0 ipc e1
        0 record e1 zero
        0 wait zero e1
        0 esync e1
        0 edestroy e1
        0 record e1 zero""",
    "memory in order": """
        0 create s1 1
        0 event e1 2
        0 alloc zero m1
        0 set zero m1 7
        0 copy zero c0 m1
        0 record e1 zero
        0 wait s1 e1
        0 copy s1 c1 m1
        0 record e1 s1
        0 wait zero e1
        0 free zero m1
        0 sync zero
        1 alloc zero m2
        1 setd m2 8
        1 copyd c2 m2
        1 free zero m2
        1 sync zero""",
    "green contexts": """
        0 green s1 1 -2
        0 step s1 c0 1 2000
        0 step zero c1 1 0
        0 context zero
        0 context s1
        0 priority s1
        0 event e1 2
        0 record e1 s1
        0 wait zero e1
        0 mix zero c1 c0 0
        0 sync zero""",
    "what a stream is": """
        0 flags zero
        0 priority zero
        0 getprio zero
        0 setprio zero -3
        0 priority zero
        1 priority zero
        0 priority own
        0 priority legacy
        0 id zero
        1 id zero
        0 context zero
        0 destroy zero""",
    "launches by configuration": """
        0 stepx zero c0 1 0 -2
        1 stepx zero c0 2 0 0
        0 value zero c1 5
        0 up zero c2 6
        0 down zero h0 c2
        0 sync zero""",
}


@pytest.fixture
def scenario(build, tmp_path):
    def run(name, api, target=None, **env):
        program = [line.split() for line in SCENARIOS[name].strip().splitlines()]
        if target:
            env["CUSTREAM_DEFAULT_STREAM"] = target
        return run_script(build, tmp_path, program, api, bool(target), env).check()
    return run


@pytest.mark.parametrize("trace", [True, False], ids=["recorded", "off"])
@pytest.mark.parametrize("target", OTHER)
@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(scenario, name, target, trace):
    """Printed are the same results, values, cells and arguments of callbacks; the driver got the same calls for the same streams."""
    compiled = scenario(name, target)
    steered = scenario(name, OTHER[target], target, **({} if trace else {"CUSTREAM_TRACE": "off"}))
    assert steered.stdout == compiled.stdout
    assert formless(steered.journal) == formless(compiled.journal)
    assert not steered.stderr


def test_scenarios_tell_the_two_apart(scenario):
    """What the cases above compare differs between the two in what matters: capture, implicit order, whose stream it is."""
    found = {api: {name: scenario(name, api).values() for name in SCENARIOS} for api in OTHER}

    def both(name, line):
        return found["legacy"][name][line], found["per-thread"][name][line]
    assert both("capture", 2) == ("begin 900", "begin 0")
    assert both("work beside a capture", 5) == ("setd 906", "setd 0")
    assert both("work beside a capture", 7) == ("end 901", "end 0 0")
    assert both("behind a blocking stream", 6) == both("behind a blocking stream", 8) == ("query 600", "query 0")
    assert both("before a blocking stream", 8) == ("query 600", "query 600")
    assert both("the legacy stream and a thread's own", 10) == ("query 600", "query 600")
    assert both("what a stream is", 7) == ("priority 0 -3", "priority 0 0")
    assert both("capture by two threads", 3) == ("begin 900", "begin 0")


@pytest.mark.parametrize("written, target", [("legacy", "per-thread"), ("own", "legacy")])
def test_explicit_handles_stay(build, tmp_path, written, target):
    """Whoever writes CU_STREAM_LEGACY or CU_STREAM_PER_THREAD gets it, unless DEFAULT_HANDLES=all."""
    program = [(0, "step", written, "c0", 1, 0), (0, "host", written, "c0", 2), (1, "record", "e31", written), (0, "sync", written)]
    stream = {"legacy": "legacy", "per-thread": r"per-thread:\d"}
    for env, went in (({}, OTHER[target]), ({"CUSTREAM_DEFAULT_HANDLES": "zero"}, OTHER[target]), ({"CUSTREAM_DEFAULT_HANDLES": "all"}, target)):
        ran = run_script(build, tmp_path, program, OTHER[target], True, {"CUSTREAM_DEFAULT_STREAM": target, **env}).check()
        lines = [line for line in ran.journal if re.search("LaunchKernel|HostFunc|EventRecord|StreamSynchronize", line)]
        assert len(lines) == 4 and all(re.fullmatch(stream[went], line.split()[2]) for line in lines), lines


def test_a_callback_in_a_capture_is_refused_there(build, tmp_path):
    """Also where another explicit handle was written: the capture is on the thread's own stream, and so is the refusal."""
    program = [(0, "begin", "legacy", 2), (0, "callback", "legacy", "c0", 1), (0, "end", "legacy", "g1")]
    ran = run_script(build, tmp_path, program, "legacy", True, {"CUSTREAM_DEFAULT_STREAM": "per-thread", "CUSTREAM_DEFAULT_HANDLES": "all"}).check()
    compiled = run_script(build, tmp_path, [tuple("own" if word == "legacy" else word for word in line) for line in program], "per-thread").check()
    assert ran.values() == compiled.values()
