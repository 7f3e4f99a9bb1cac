"""Priorities, default streams and rules: what each policy makes of one program that asks for streams in every way (tests/apps/policies.c)."""
import json
import re

import pytest

from tests.apprun import notes_of, said

ASKED = {"plain": (0, 0), "second": (-2, 1), "lowest": (-100, 0), "above": (7, 0), "library": (-1, 1), "thread": (-1, 0), "context": (-1, 0), "named": (0, 0)}
RANGE = (0, -5)


def clamp(priority, greatest=RANGE[1]):
    return max(min(priority, RANGE[0]), greatest)


class Outcome:
    """What the program printed: (priority, flags, result) of each stream, and the range."""

    def __init__(self, run):
        self.run = run.check()
        found = re.findall(r"^(\w+) priority (-?\d+) flags (\d+) result (\d+)$", run.stdout, flags=re.M)
        self.streams = {what: (int(priority), int(flags), int(result)) for what, priority, flags, result in found}
        self.range = tuple(map(int, re.search(r"^range (-?\d+) (-?\d+)$", run.stdout, flags=re.M).groups()))
        self.attribute = int(re.search(r"^attribute (\d+) asked -5$", run.stdout, flags=re.M).group(1))
        assert "launch asked -5 on its stream\n" in run.stdout  # what the program handed over is as it was

    def priorities(self):
        return {what: priority for what, (priority, _, result) in self.streams.items() if not result}

    def lives(self):
        """The streams' lives in the trace, by what the program calls them."""
        by_handle = {handle: what for what, handle in notes_of(self.run.stderr).items() if what != "attribute"}  # which is the second's
        return {by_handle[e["args"]["handle"]]: e["args"] for e in self.run.load().lives if e["args"].get("handle") in by_handle}


@pytest.fixture
def outcome(run_app, build):
    def run(policy=None, *more, **env):
        if policy is not None:
            env["CUSTREAM_POLICY"] = json.dumps(policy)
        return Outcome(run_app(["policies", build / "tests" / "libmaker.so", *more], env=env))

    return run


def test_no_policy_changes_nothing(outcome, run_app, build):
    bare = Outcome(run_app(["policies", build / "tests" / "libmaker.so"], shim=False))
    ours = outcome()
    assert ours.run.stdout == bare.run.stdout and not said(ours.run)
    assert ours.streams == {what: (clamp(priority), flags, 0) for what, (priority, flags) in ASKED.items()} | {"attribute": (-5, 1, 0)}
    for what, args in ours.lives().items():
        assert "rule" not in args and "changed by policy" not in args and "requested flags" not in args, what
        assert what not in ASKED or args["requested priority"] == ASKED[what][0]


@pytest.mark.parametrize("text, change, shown", [
    ("0:-1", lambda p: clamp(p, -1), (0, -1)),
    ("0:-3", lambda p: clamp(p, -3), (0, -3)),
    ("0:-9", clamp, RANGE),  # wider than the device's: the device's
    ("0:0", lambda p: 0, (0, 0)),
    ("set:-3", lambda p: -3, RANGE),
    ("set:-100", lambda p: -5, RANGE),
    ("shift:-1", lambda p: clamp(p - 1), RANGE),
    ("shift:3", lambda p: clamp(p + 3), RANGE),
    ("map:0=-5,-1=0", lambda p: {0: -5, -1: 0}.get(p, clamp(p)), RANGE),
])
def test_priority(outcome, text, change, shown):
    """Streams at creation, the attribute, and what programs are told of the range; asked and given stand in the trace."""
    got = outcome(CUSTREAM_PRIORITY=text)
    assert got.range == shown and got.attribute == 0
    assert got.priorities() == {what: change(priority) for what, (priority, _) in ASKED.items()} | {"attribute": change(-5)}
    assert all(got.streams[what][1] == flags for what, (_, flags) in ASKED.items())
    lives = got.lives()
    for what, (asked, _) in ASKED.items():
        assert (lives[what]["requested priority"], lives[what]["priority"]) == (asked, change(asked)), what
        assert lives[what].get("changed by policy", False) == (change(asked) != asked), what


def test_strict_refuses_what_is_out_of_range(outcome):
    got = outcome(CUSTREAM_PRIORITY="0:-1,strict")
    assert {what for what, (_, _, result) in got.streams.items() if result} == {"second", "lowest", "above"}
    assert {result for _, _, result in got.streams.values()} == {0, 1} and got.attribute == 1  # CUDA_ERROR_INVALID_VALUE
    assert outcome(CUSTREAM_PRIORITY="keep,strict").streams["above"][2] == 1


RULES = [
    ({"library": "libmaker*"}, {"library"}),
    ({"library": "policies"}, set(ASKED) - {"library"}),
    ({"library": "libmak?r.so", "priority": -1}, {"library"}),
    ({"thread": "worker-*"}, {"thread"}),
    ({"call": "cuStreamCreate"}, {"plain"}),
    ({"call": "cuStreamCreate*"}, set(ASKED)),
    ({"nonblocking": True}, {"second", "library"}),
    ({"nonblocking": False, "priority": 0}, {"plain", "named"}),
    ({"priority": -100}, {"lowest"}),
    ({"context": "created"}, {"context"}),
    ({"context": "primary"}, set(ASKED) - {"context"}),
    ({"device": 1}, {"context"}),
    ({"device": 0, "priority": 7}, {"above"}),
    ({"nth": 1}, {"plain"}),
    ({"nth": 3}, {"lowest"}),
    ({"nth": 2, "nonblocking": True}, {"library"}),
    ({"library": "none*"}, set()),
]


@pytest.mark.parametrize("match, matched", RULES, ids=[json.dumps(match) for match, _ in RULES])
def test_what_a_rule_matches(outcome, match, matched):
    got = outcome({"rules": [{"match": match, "set": {"priority": -4}}]}, CUSTREAM_FAKE_DEVICES="2")
    expected = {what: -4 if what in matched else clamp(priority) for what, (priority, _) in ASKED.items()}
    assert {what: got.priorities()[what] for what in ASKED} == expected
    assert got.streams["attribute"][0] == (-4 if "second" in matched else -5)  # what a rule has set stays
    lives = got.lives()
    assert {what for what in ASKED if lives[what].get("rule") == "rules[0]"} == matched
    assert {what for what in ASKED if "rule" in lives[what]} == matched


def test_the_first_rule_wins(outcome):
    got = outcome({"rules": [{"match": {"thread": "worker*"}, "set": {"priority": -2}}, {"match": {"priority": -1}, "set": {"priority": -3}},
                             {"match": {"nonblocking": False}, "set": {"priority": -4}}]})
    rules = {what: args.get("rule") for what, args in got.lives().items() if what in ASKED}
    assert rules == {"plain": "rules[2]", "second": None, "lowest": "rules[2]", "above": "rules[2]", "library": "rules[1]", "thread": "rules[0]",
                     "context": "rules[1]", "named": "rules[2]"}
    assert (got.priorities()["thread"], got.priorities()["library"], got.priorities()["context"]) == (-2, -3, -3)


def test_nth_counts_also_what_another_rule_took(outcome):
    got = outcome({"rules": [{"match": {"nonblocking": False, "nth": n}, "set": {"priority": -n}} for n in (1, 2, 3)]})
    rules = {what: args["rule"] for what, args in got.lives().items() if "rule" in args}
    assert rules == {"plain": "rules[0]", "lowest": "rules[1]", "above": "rules[2]"}


def test_the_first_rule_wins_over_one_that_counts(outcome):
    got = outcome({"rules": [{"match": {"call": "cuStreamCreate"}, "set": {"name": "first"}}, {"match": {"nonblocking": False, "nth": 1}, "set": {"name": "counts"}}]})
    assert {what for what, args in got.lives().items() if args.get("rule") == "rules[0]"} >= {"plain"}
    assert not [args for args in got.lives().values() if args.get("rule") == "rules[1]"]


def test_a_rule_beats_the_option(outcome):
    got = outcome({"priority": "0:-2", "rules": [{"match": {"library": "libmaker*"}, "set": {"priority": -2}}]})
    assert got.priorities()["library"] == -2 and got.priorities()["lowest"] == -2 and got.range == (0, -2)


def test_blocking_or_not(outcome):
    got = outcome({"rules": [{"match": {"call": "cuStreamCreate"}, "set": {"nonblocking": True}}, {"match": {"library": "libmaker*"}, "set": {"nonblocking": False}}]})
    flags = {what: got.streams[what][1] for what in ASKED}
    assert flags == {what: asked for what, (_, asked) in ASKED.items()} | {"plain": 1, "library": 0}
    lives = got.lives()
    assert (lives["plain"]["flags"], lives["plain"]["requested flags"]) == ("non-blocking", "blocking")
    assert (lives["library"]["flags"], lives["library"]["requested flags"]) == ("blocking", "non-blocking")


def test_a_name_and_no_record(outcome):
    got = outcome({"rules": [{"match": {"nth": 2}, "set": {"name": "the second", "record": False}}, {"match": {"library": "libmaker*"}, "set": {"name": "made"}}]})
    trace = got.run.load()
    lives = got.lives()
    assert lives["second"]["recorded"] is False and "recorded" not in lives["library"]
    lanes = {args["cs.stream"]: what for what, args in lives.items()}
    calls = [(lanes.get(e["args"].get("cs.stream")), e["name"]) for e in trace.host()]
    assert [name for lane, name in calls if lane == "second"] == ["cuStreamCreateWithPriority"]  # its making is told, what it did is not
    assert ("named", "cuMemsetD8Async") in calls
    names = {life["name"].split(" · ")[-1] for life in trace.lives}
    assert {"the second", "made"} <= names


@pytest.mark.parametrize("source", ["cupti", "events"])
def test_work_of_a_stream_that_is_not_recorded(run_app, source):
    """Four streams, one kernel after the other on each; one of them is left out, its kernels too."""
    policy = json.dumps({"rules": [{"match": {"nth": 2}, "set": {"record": False}}]})
    trace = run_app(["first_calls", "in-turn"], env={"CUSTREAM_GPU": source, "CUSTREAM_POLICY": policy}).check().load()
    assert trace.count()["cuLaunchKernel"] == len(trace.gpu(cat="kernel")) == 15
    assert len({e["tid"] for e in trace.gpu(cat="kernel")}) == 3 and trace.totals["gpu"]["without_call"] == 0


def test_a_rule_for_a_name_that_comes_later(outcome):
    got = outcome({"rules": [{"match": {"name": "comm*"}, "set": {"priority": -5, "record": False}}]})
    assert got.priorities()["named"] == -5 and (got.lives()["named"]["rule"], got.lives()["named"]["priority"]) == ("rules[0]", -5)
    assert got.run.stdout.index("named priority 0") < got.run.stdout.index("named priority -5")
    assert "cuMemsetD8Async" not in [e["name"] for e in got.run.load().host() if e["args"].get("cs.stream") == got.lives()["named"]["cs.stream"]]


NAMED = {"plain", "library", "thread", "context", "named"}
RULES_FOR_NAMES = [
    ({"name": "the *"}, NAMED - {"named"}),
    ({"name": "comm*"}, {"named"}),
    ({"library": "libmaker*"}, {"library"}),
    ({"library": "policies"}, NAMED - {"library"}),
    ({"thread": "worker-*"}, {"thread"}),
    ({"thread": "communic*"}, {"thread"}),
    ({"thread": "commute*"}, set()),
    ({"call": "cuStreamCreate"}, {"plain"}),
    ({"device": 0}, NAMED - {"context"}),
    ({"device": 1}, {"context"}),
    ({"context": "primary"}, NAMED - {"context"}),
    ({"context": "created"}, {"context"}),
    ({"context": "green"}, set()),
    ({"priority": 0}, {"plain", "named"}),
    ({"priority": -1}, {"library", "thread", "context"}),
    ({"nonblocking": True}, {"library"}),
    ({"nonblocking": False}, NAMED - {"library"}),
    ({"nth": 1}, {"plain"}),
    ({"nth": 2, "priority": -1}, {"thread"}),
]


@pytest.mark.parametrize("match, matched", RULES_FOR_NAMES, ids=[json.dumps(match) for match, _ in RULES_FOR_NAMES])
def test_what_a_rule_for_names_matches(outcome, match, matched):
    """Streams that were there when they got their names, on two devices."""
    got = outcome({"rules": [{"match": {"name": "*"} | match, "set": {"priority": -4}}]}, "names", CUSTREAM_FAKE_DEVICES="2")
    assert {what for what in ASKED if got.lives()[what].get("rule") == "rules[0]"} == matched
    assert {what: got.priorities()[what] for what in ASKED} == {what: -4 if what in matched else clamp(priority) for what, (priority, _) in ASKED.items()}


def test_a_thread_by_the_name_that_the_program_gave_it(outcome):
    got = outcome({"rules": [{"match": {"thread": "communic*"}, "set": {"priority": -4}}]}, "names")
    assert {what for what in ASKED if got.lives()[what].get("rule") == "rules[0]"} == {"thread"} and got.priorities()["thread"] == -4


def test_what_no_policy_can_change_is_said_once(outcome):
    old = "custream: warning: cuMemsetD8 has no form for the other default stream; it stays where it is"
    long = "custream: warning: a launch with 33 attributes keeps the priority that it asks for"
    assert not said(outcome(None, "more").run)
    assert said(outcome(None, "more", CUSTREAM_DEFAULT_STREAM="per-thread").run) == [old]
    assert said(outcome(None, "more", CUSTREAM_PRIORITY="set:-3").run) == [long]


# ---- Default streams. The program's work on them: worker-1 asks for handle 0 twice, for each explicit handle, and for the sibling; main for handle 0 twice. ----

def default_work(got):
    """(thread name, call, origin of the stream) of each piece of work on a default stream."""
    trace = got.run.load()
    origins = {e["args"]["cs.stream"]: e["args"]["origin"] for e in trace.lives if "default" in e["args"].get("origin", "")}
    work = [(trace.threads[e["tid"]], e["name"], origins[e["args"]["cs.stream"]].split()[0]) for e in trace.host() if e["args"].get("cs.stream") in origins]
    return sorted(w for w in work if "Memset" in w[1] or "Launch" in w[1])


def expected_work(worker_zero, worker_legacy, worker_own, worker_sibling, main_zero):
    return sorted([("worker-1", "cuMemsetD8Async", worker_zero), ("worker-1", "cuMemsetD8_v2", worker_zero), ("worker-1", "cuMemsetD8Async", worker_legacy),
                   ("worker-1", "cuMemsetD8Async", worker_own), ("worker-1", "cuMemsetD8Async_ptsz", worker_sibling),
                   ("policies", "cuLaunchKernelEx", main_zero), ("policies", "cuMemsetD8Async", main_zero)])


L, P = "legacy", "per-thread"


@pytest.mark.parametrize("mode, handles, expected", [
    ("keep", "zero", (L, L, P, P, L)),
    ("keep", "all", (L, L, P, P, L)),
    ("per-thread", "zero", (P, L, P, P, P)),
    ("per-thread", "all", (P, P, P, P, P)),
    ("legacy", "zero", (L, L, P, L, L)),
    ("legacy", "all", (L, L, L, L, L)),
])
def test_default_stream(outcome, mode, handles, expected):
    env = {"CUSTREAM_DEFAULT_STREAM": mode}
    if mode != "keep":
        env["CUSTREAM_DEFAULT_HANDLES"] = handles
    got = outcome(**env)
    assert default_work(got) == expected_work(*expected)
    redirected = {e["args"]["origin"].split()[0] for e in got.run.load().lives if e["args"].get("redirected")}
    assert redirected == ({P} if mode == "per-thread" else {L} if mode == "legacy" else set())


def test_default_stream_by_rule(outcome):
    """One thread's default streams alone; the others' stay."""
    got = outcome({"rules": [{"match": {"thread": "worker*"}, "set": {"default_stream": "per-thread", "name": "its own"}}]})
    assert default_work(got) == expected_work(P, L, P, P, L)
    lives = [e["args"] for e in got.run.load().lives if e["args"].get("origin", "").startswith("per-thread")]
    assert [args["rule"] for args in lives] == ["rules[0]"]
    assert default_work(outcome({"default_stream": "per-thread", "rules": [{"match": {"thread": "policies"}, "set": {"default_stream": "keep"}}]})) \
        == expected_work(P, L, P, P, L)


def test_default_stream_by_library(outcome):
    """By who calls: the program's own work moves, and a rule for another library changes nothing."""
    assert default_work(outcome({"rules": [{"match": {"library": "policies"}, "set": {"default_stream": "per-thread"}}]})) == expected_work(P, L, P, P, P)
    assert default_work(outcome({"rules": [{"match": {"library": "libmaker*"}, "set": {"default_stream": "per-thread"}}]})) == expected_work(L, L, P, P, L)


def test_a_default_stream_that_is_not_recorded(outcome):
    """Each of a thread's calls on it, not the first alone; the stream is everybody's, and others' calls stay."""
    got = outcome({"rules": [{"match": {"thread": "policies"}, "set": {"record": False}}]})
    assert default_work(got) == [work for work in expected_work(L, L, P, P, L) if work[0] == "worker-1"]


def test_a_threads_own_default_stream_that_is_not_recorded(outcome):
    """Nobody else's work is on it: its life says so."""
    got = outcome({"rules": [{"match": {"thread": "worker-*"}, "set": {"record": False}}]})
    assert default_work(got) == [work for work in expected_work(L, L, P, P, L) if work[0] != "worker-1"]
    recorded = {e["args"]["origin"]: e["args"].get("recorded", True) for e in got.run.load().lives if "default" in e["args"].get("origin", "")}
    assert recorded == {"legacy default": True, "per-thread default": False}


def test_without_a_trace(run_app, build, tmp_path):
    """A policy needs no timeline."""
    bare = run_app(["policies", build / "tests" / "libmaker.so"], env={"CUSTREAM_TRACE": "off", "CUSTREAM_PRIORITY": "set:-3"}).check()
    assert set(Outcome(bare).priorities().values()) == {-3} and not said(bare) and not list(tmp_path.glob("*.json"))
