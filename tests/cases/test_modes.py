"""What calls cost and do by what is on: a policy alone, a window, another policy while threads are in their calls, a fork."""
import json
import re

import pytest

from tests.apprun import both, calls_in
from tests.remote import Remote
from tests.streamscript import program_journal

CALLS = ("launch", "launch_default", "launch_own", "set", "set_default", "record", "wait", "synchronize", "query")
POLICIES = {
    "none": {}, "per-thread": {"default_stream": "per-thread"}, "all handles": {"default_stream": "legacy", "default_handles": "all"}, "priority": {"priority": "0:-1"},
    "pool": {"streams": "pool:2"}, "sync": {"streams": "sync"}, "serial": {"streams": "serial"},
    "rules": {"rules": [{"match": {"library": "stamps"}, "set": {"default_stream": "per-thread", "record": False}}]},
}


def stamps(run_app, env):
    """How often the shim read the clock in ten calls of each kind."""
    run = run_app(["stamps"], env={**env, "CUSTREAM_THREAD_CLOCKS": "off"}).check()  # a busy machine makes pauses
    found = {name: int(n) for name, n in re.findall(r"^(\w+) (\d+)$", run.stdout, re.MULTILINE)}
    assert tuple(found) == CALLS
    return found


def test_a_recorded_call_is_stamped_twice(run_app):
    env = {"CUSTREAM_GPU": "off"}  # marks and the profiler ask for the time too
    assert stamps(run_app, env) == dict.fromkeys(CALLS, 20)


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_alone_stamps_and_records_nothing(run_app, tmp_path, name):
    env = {"CUSTREAM_TRACE": "off", "CUSTREAM_POLICY": json.dumps(POLICIES[name])}
    assert stamps(run_app, env) == dict.fromkeys(CALLS, 0)
    assert not list(tmp_path.glob("*.json*"))


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_asks_the_driver_the_same_without_a_trace(run_app, build, tmp_path, name):
    """Each call, on which stream, and what a policy adds: waits, and events between streams."""
    def asked(**env):
        journal = tmp_path / "journal"
        journal.unlink(missing_ok=True)
        run_app(["stamps"], env={"CUSTREAM_POLICY": json.dumps(POLICIES[name]), "CUSTREAM_FAKE_JOURNAL": journal, **env}).check()
        return program_journal(journal.read_text().splitlines(), build)
    without, recorded = asked(CUSTREAM_TRACE="off"), asked(CUSTREAM_GPU="off")  # marks are put between the work
    assert without == recorded and len(without) > 11 * len(CALLS)


@pytest.mark.parametrize("name", ["none", "per-thread", "rules"])
def test_a_closed_window_stamps_nothing(run_app, name):
    env = {"CUSTREAM_WINDOW": "profiler", "CUSTREAM_POLICY": json.dumps(POLICIES[name])}
    env["CUSTREAM_GPU"] = "off"  # the profiler asks for the time too, and it takes a while until it is let go
    assert stamps(run_app, env) == dict.fromkeys(CALLS, 0)


def launched(journal):
    """Where the launches went, in order."""
    return re.findall(r"^\d+ cuLaunchKernel\S* (legacy|per-thread|s\d+)", journal.read_text(), re.MULTILINE)


def test_a_policy_holds_whether_the_window_is_open_or_closed(tmp_path):
    journal = tmp_path / "journal"
    with Remote(tmp_path, {"CUSTREAM_WINDOW": "profiler", "CUSTREAM_DEFAULT_STREAM": "per-thread", "CUSTREAM_FAKE_JOURNAL": journal}) as program:
        program.do("create 1", "launch legacy 2", "launch 1")
        program.do("profiler start", "launch legacy 3", "launch 1", "profiler stop")
        program.do("launch legacy 4", "launch 1")
        program.do("profiler start", "launch legacy 5", "profiler stop", "launch legacy")
    assert calls_in(program.load())["cuLaunchKernel"] == 3 + 1 + 5
    own, named = "per-thread", "s1"
    assert launched(journal) == [own] * 2 + [named] + [own] * 3 + [named] + [own] * 4 + [named] + [own] * 6


def test_another_policy_in_a_closed_window(tmp_path):
    """Which is in force at once, also for calls that no window sees."""
    journal = tmp_path / "journal"
    with Remote(tmp_path, {"CUSTREAM_WINDOW": "profiler", "CUSTREAM_FAKE_JOURNAL": journal}) as program:
        program.do(*(f"on {thread} context set 0" for thread in (1, 2, 3, 4)), "create 1", "on 1 launch legacy 2", "launch 1")
        program.ctl("policy", "-", text=json.dumps({"default_stream": "per-thread"}))
        program.do("on 2 launch legacy 3", "launch 1", "profiler start", "on 3 launch legacy 5", "profiler stop")
        program.ctl("policy", "-", text=json.dumps({"priority": "0:-1"}))
        program.do("on 2 launch legacy 7", "on 4 launch legacy 2")
    assert calls_in(program.load())["cuLaunchKernel"] == 5
    own = "per-thread"
    assert launched(journal) == ["legacy"] * 2 + ["s1"] + [own] * 3 + ["s1"] + [own] * 5 + [own] * 7 + ["legacy"] * 2


CHANGES = [{"default_stream": "per-thread"}, {"streams": "sync"}, {"rules": [{"match": {"library": "remote"}, "set": {"name": "n"}}]},
           {"jitter": "seed=1,us=5,percent=30,at=host"}, {"streams": "pool:2", "priority": "0:-1"}, {"streams": "serial"}, {}]


UNTIMED = {"CUSTREAM_GPU": "off"}  # the short way itself: without marks


@pytest.mark.parametrize("env", [{}, UNTIMED, {"CUSTREAM_WINDOW": "profiler"}], ids=["timed", "untimed", "window"])
def test_policies_come_and_go_while_threads_are_in_their_calls(tmp_path, env):
    """No call is lost, made twice or refused, and the trace says which policies there were."""
    counts = tmp_path / "counts"
    with Remote(tmp_path, {"CUSTREAM_FAKE_COUNTS": counts, **env}) as program:
        program.do("create 1", "profiler start", "loop on")
        for change in CHANGES * 2:
            program.ctl("policy", "-", text=json.dumps(change))
            program.do("launch legacy 5", "launch 1 5", "create 2", "launch 2 3", "destroy 2", *(["profiler stop", "profiler start"] if "CUSTREAM_WINDOW" in env else []))
        program.do("loop off", "all")
    trace = program.load()
    launches = sum(int(n) for name, n in map(str.split, counts.read_text().splitlines()) if name.startswith("cuLaunchKernel"))
    recorded = sum(n for name, n in calls_in(trace).items() if name.startswith("cuLaunchKernel"))
    assert 14 * 13 < recorded <= launches if "CUSTREAM_WINDOW" in env else recorded == launches
    assert len([e for e in trace.events if e.get("cat") == "cs_policy"]) >= (1 if "CUSTREAM_WINDOW" in env else 14)


@pytest.mark.parametrize("policy", [{"default_stream": "per-thread"}, {"streams": "sync"}, {"jitter": "seed=1,us=5"}], ids=lambda p: next(iter(p)))
@pytest.mark.parametrize("how", ["calls", "calls-exit"])
def test_a_fork_under_a_policy(run_app, how, policy):
    """The child's calls and the parent's later ones get the answers that they get without the library."""
    both(run_app, ["forks", how], env={"CUSTREAM_POLICY": json.dumps(policy)})
