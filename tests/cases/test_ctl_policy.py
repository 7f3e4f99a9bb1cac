"""custream ctl PID policy: another policy in a process that runs, what it is in force for, and what is refused."""
import collections
import json

import pytest

from tests.apprun import calls_in
from tests.cases.test_jitter import draw
from tests.cases.test_window import launches
from tests.gputrace import CUPTI, check_works
from tests.perfetto import assert_clean
from tests.remote import Remote, ctl

FOR_NEW_STREAMS = "in force for streams that are made from now on"
AT_ONCE = "; waits and delays, for all"


def replace(program, policy):
    """Another policy for the program; what it answered."""
    return program.ctl("policy", "-", text=json.dumps(policy))


def asked_of_driver(counts):
    return collections.Counter({name: int(n) for name, n in (line.split() for line in counts.read_text().splitlines())})


def lives(trace):
    return {e["args"]["handle"]: e for e in trace.lives if e["cat"] == "cs_stream" and e["args"]["origin"] == "created"}


# ---- What it is in force for ----

def test_policy_for_streams_that_are_made_from_now_on(tmp_path, trace_processor):
    policy = tmp_path / "policy.json"
    policy.write_text('{\n "rules": [{"match": {"library": "remote"},\n   "set": {"priority": -3, "name": "late"}}]\n}\n')
    with Remote(tmp_path) as program:
        (before,) = program.do("create 1")
        assert program.ctl("policy", policy) == FOR_NEW_STREAMS
        (after,) = program.do("create 2")
        assert program.status()["policy"] == '{"rules":[{"match":{"library":"remote"},"set":{"priority":-3,"name":"late"}}]}'
        assert program.ctl("policy", "-", text="{}") == FOR_NEW_STREAMS and program.status()["policy"] == "none"
        (last,) = program.do("create 3")
    trace = program.load()
    shown = lives(trace)
    assert [shown[handle]["args"]["priority"] for handle in (before, after, last)] == [0, -3, 0] and "late" in shown[after]["name"]
    told = [e for e in trace.events if e.get("cat") == "cs_policy"]
    assert [(e["ph"], e["name"]) for e in told] == [("i", "policy")] * 2 and json.loads(told[0]["args"]["policy"])["rules"][0]["set"]["priority"] == -3
    assert shown[before]["ts"] < told[0]["ts"] < shown[after]["ts"] < told[1]["ts"] < shown[last]["ts"]
    trace_processor.load(program.trace)
    assert_clean(trace_processor)
    assert trace_processor.value("SELECT count(*) FROM slice WHERE category = 'cs_policy'") == 2


def test_pool_for_streams_that_are_made_from_now_on(tmp_path):
    """A stream that was there before is in no pool. One of a pool stays in it once the policy has gone, and is given back share by share."""
    counts = tmp_path / "counts"
    with Remote(tmp_path, {"CUSTREAM_FAKE_COUNTS": counts}) as program:
        (before,) = program.do("create 1")
        assert replace(program, {"streams": "pool:2"}) == FOR_NEW_STREAMS
        a, b, *more = (program.do(f"create {n}")[0] for n in range(2, 7))
        assert replace(program, {}) == FOR_NEW_STREAMS
        (after,) = program.do("create 7")
        program.do("destroy 1", "destroy 7", "destroy 2", "destroy 4", "destroy 6", "launch 2", "all")
    trace = program.load()
    assert more == [a, b, a] and len({before, a, b, after}) == 4
    shown = lives(trace)
    assert [(shown[handle]["args"].get("pool place"), shown[handle]["args"].get("shared by")) for handle in (before, a, b, after)] == [
        (None, None), (1, 3), (2, 2), (None, None)]
    real = asked_of_driver(counts)
    assert (real["cuStreamCreate"], real["cuStreamDestroy_v2"], trace.totals["leaked_streams"]) == (4, 2, 2)


def test_pools_of_two_policies(tmp_path):
    """What a rule of this policy matches shares nothing with what one of the policy before did: that may be left out of the trace."""
    with Remote(tmp_path) as program:
        replace(program, {"streams": "pool:1", "rules": [{"match": {"library": "remote"}, "set": {"name": "quiet", "record": False}}]})
        quiet = [program.do(f"create {n}") for n in (1, 2)]
        replace(program, {"streams": "pool:1", "rules": [{"match": {"library": "remote"}, "set": {"name": "loud"}}]})
        loud = [program.do(f"create {n}") for n in (3, 4)]
        program.do("launch 1 2", "launch 2 3", "launch 3 5", "launch 4 7")
    assert quiet[0] == quiet[1] != loud[0] == loud[1] and calls_in(program.load())["cuLaunchKernel"] == 5 + 7


def test_serial_for_streams_that_are_made_from_now_on(tmp_path):
    """A stream that was there before does its work itself; the carrier goes on for those that were made under the policy."""
    with Remote(tmp_path, CUPTI) as program:
        program.do("create 1", "launch 1")
        assert replace(program, {"streams": "serial"}) == FOR_NEW_STREAMS
        program.do("create 2", "create 3", "launch 1", "launch 2", "launch 3")
        assert replace(program, {}) == FOR_NEW_STREAMS
        program.do("create 4", "launch 1", "launch 2", "launch 3", "launch 4", "all")
    trace = program.load()
    check_works(trace)
    lanes = [trace.streams[e["args"].get("cs.device", 0), e["args"]["cs.stream"]] for e in launches(trace)]
    first, carrier, last = lanes[0], lanes[2], lanes[-1]
    assert lanes == [first, first, carrier, carrier, first, carrier, carrier, last] and len({first, carrier, last}) == 3
    assert "carrier of all streams" in carrier and not any("carrier" in lane for lane in (first, last))


def test_sync_begins_and_ends_at_once(tmp_path):
    """It changes no stream, but what is done on all of them."""
    counts = tmp_path / "counts"
    with Remote(tmp_path, {"CUSTREAM_FAKE_COUNTS": counts}) as program:
        program.do("create 1", "launch 1 7")
        assert replace(program, {"streams": "sync"}) == FOR_NEW_STREAMS + AT_ONCE
        program.do("create 2", "launch 1 2", "launch 2 3", "launch legacy")
        assert replace(program, {}) == FOR_NEW_STREAMS
        program.do("create 3", "launch 1 7", "launch 2 7", "launch 3 7")
    assert calls_in(program.load())["cuLaunchKernel"] == 34 and asked_of_driver(counts)["cuStreamSynchronize"] == 2 + 3 + 1


def test_jitter_begins_and_ends_at_once(tmp_path):
    """Streams that are made from now on count from 1, as they do from the start; those that were there before count as they are first used."""
    with Remote(tmp_path) as program:
        program.do("create 1", "create 2", "launch 1 7")
        assert replace(program, {"jitter": "seed=3,us=60,percent=60,at=host"}) == FOR_NEW_STREAMS + AT_ONCE
        program.do("create 3", "launch 2 20", "launch 3 20", "launch 1 20")
        assert replace(program, {"jitter": "off"}) == FOR_NEW_STREAMS
        program.do("create 4", "launch 1 7", "launch 3 7", "launch 4 7")
    trace = program.load()
    shown = sorted(trace.host("delay"), key=lambda e: e["ts"])
    delays = {lane: [e["args"]["drawn_us"] for e in shown if e["args"]["cs.stream"] == lane] for lane in dict.fromkeys(e["args"]["cs.stream"] for e in shown)}
    second, third, first = ([us for us in (draw(3, 60, 60, who << 1, n, False) for n in range(20)) if us] for who in (1 << 30 | 1, 1, 1 << 30 | 2))
    assert list(delays.values()) == [second, third, first] and second and third and first
    assert calls_in(trace)["cuLaunchKernel"] == 88 and len({e["args"]["cs.stream"] for e in launches(trace)}) == 4


def test_rule_of_a_policy_before(tmp_path):
    """A thread's default stream is decided once, and stays what a rule made of it, whatever rules the next policy has, or none."""
    rule = {"match": {"thread": "remote"}, "set": {"default_stream": "per-thread", "name": "mine", "record": False}}
    with Remote(tmp_path) as program:
        program.do("launch legacy 2")
        replace(program, {"rules": [{"match": {"thread": "nobody"}, "set": {"name": "others"}}, rule]})
        program.do("launch legacy 3")
        replace(program, {"priority": "0:-1"})
        program.do("launch legacy 5")
        replace(program, {"rules": [{"match": {"call": "cuStreamCreate"}, "set": {"name": "theirs"}}]})
        program.do("launch legacy 7")
    trace = program.load()
    assert calls_in(trace)["cuLaunchKernel"] == 2
    (life,) = (e for e in trace.lives if e["cat"] == "cs_stream" and e["args"].get("redirected"))
    assert "mine" in life["name"]


def test_rule_that_asks_for_the_library_is_forgotten_with_its_policy(tmp_path):
    """Under such a rule each call is asked anew, so the thread's default stream is decided under the next policy, which has no such rule."""
    with Remote(tmp_path) as program:
        replace(program, {"rules": [{"match": {"library": "remote"}, "set": {"default_stream": "per-thread"}}]})
        program.do("launch legacy 2")
        replace(program, {"priority": "0:-1"})
        program.do("launch legacy 3")
        replace(program, {"default_stream": "per-thread"})
        program.do("launch legacy 5")
    trace = program.load()
    origins = {e["args"]["cs.stream"]: e["args"]["origin"] for e in trace.lives if e["cat"] == "cs_stream"}
    assert [origins[e["args"]["cs.stream"]] for e in launches(trace)] == ["per-thread default"] * 2 + ["legacy default"] * 8


# ---- Refused ----

@pytest.mark.parametrize("text, part", [
    ("{", "not JSON"), ("", "is empty"), ('{"priority": 7}', "priority"), ('{"nonsense": 1}', "nonsense"), ('{"trace": "x.json"}', "cannot change in a running process"),
    ("{\0}", "not text"), ("{" + " " * (200 << 10) + "}", "longer than 127 KiB"),
])
def test_bad_policy_is_not_even_sent(tmp_path, text, part):
    with Remote(tmp_path) as program:
        program.do("create 1")
        rc, out, err = ctl(program.pid, "policy", "-", text=text)
        assert (rc, out, err.count("\n")) == (2, "", 0) and err.startswith("custream ctl: ") and part in err
    assert not [e for e in program.load().events if e.get("cat") == "cs_policy"]


def test_process_refuses_what_its_environment_beats(tmp_path):
    with Remote(tmp_path, {"CUSTREAM_PRIORITY": "0:-1"}) as program:
        program.do("create 1")
        rc, out, err = ctl(program.pid, "policy", "-", text='{"priority": "0:-4"}')
        assert (rc, out) == (1, "") and "CUSTREAM_PRIORITY=0:-1" in err and err.startswith(f"custream ctl: process {program.pid}: policy: priority")


@pytest.mark.parametrize("env, policy, rc, part", [
    ({}, '{"priority": "set:-4", "streams": "pool:0"}', 2, "streams"), ({}, '{"priority": "set:-4", "jitter": "seed"}', 2, "jitter"),
    ({"CUSTREAM_JITTER": "off"}, '{"priority": "set:-4", "jitter": "seed=1"}', 1, "CUSTREAM_JITTER=off"),
    ({"CUSTREAM_STREAMS": "serial"}, '{"priority": "set:-4", "default_stream": "per-thread"}', 1, "contradicts"),
])
def test_bad_policy_changes_nothing(tmp_path, env, policy, rc, part):
    """Whether the command finds out, or the process, which alone knows its environment: one line, and the policy of before is in force."""
    file = tmp_path / "bad.json"
    file.write_text(policy)
    with Remote(tmp_path, env) as program:
        program.do("create 1", "launch 1")
        replace(program, {"priority": "set:-2"})
        before = program.status()
        answer = ctl(program.pid, "policy", file)
        assert answer[:2] == (rc, "") and answer[2].startswith("custream ctl: ") and "\n" not in answer[2] and part in answer[2], answer
        assert program.status() == before and before["policy"] == '{"priority":"set:-2"}'
        (after,) = program.do("create 2")
        program.do("launch 1", "launch 2", "launch legacy")
    trace = program.load()
    assert len([e for e in trace.events if e.get("cat") == "cs_policy"]) == 1
    assert lives(trace)[after]["args"]["priority"] == -2 and not [e for e in trace.lives if e["args"].get("redirected")]
