"""Memory in the program's process does not grow with what comes and goes there. docs/architecture.md has the table of what is kept."""
import json
import re

import pytest

from tests.cases.test_ctl import say
from tests.remote import Remote

# What the first call costs, and how much an equal batch may add from the third on, in KiB. Calls are kept in tables that fill up to their bound: 256 bytes each.
FIRST = 10000
THINGS = {"threads": 160, "streams": 600, "events": 600, "graphs": 300}


def resident(run):
    return [int(kib) for kib in re.findall(r"note rss_kib (\d+)", run.stderr)]


@pytest.mark.parametrize("kind", THINGS)
def test_equal_batches(run_app, kind):
    idle = resident(run_app(["grows", "waits", 1, 3]).check())
    kib = resident(run_app(["grows", kind, THINGS[kind], 8]).check())
    growth = [later - before for before, later in zip(kib[1:], kib[2:])]
    assert min(growth) <= 100 + THINGS[kind] // 4, f"grows with each batch: {kib}"  # one may meet a busy writer, and so more threads' states at once
    assert kib[-1] - idle[-1] <= FIRST, "takes much more than nothing does"


# ---- Policies by custream ctl ----

def resident_of(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1])


def policy(number):
    return {"rules": [{"match": {"library": f"lib{number}_{i}.so"}, "set": {"priority": -1, "name": f"of rule {i}"}} for i in range(100)]}


def test_policies_that_come_again(tmp_path):
    """Two policies of 100 rules, in turn. Each is kept once: 20 KiB."""
    with Remote(tmp_path) as program:
        program.do("create 1", "launch 1 2")
        kib = []
        for _ in range(3):
            for number in range(80):
                assert say(program.pid, b"policy " + json.dumps(policy(number % 2)).encode()).startswith(b"ok in force")
            kib.append(resident_of(program.pid))
        assert kib[2] - kib[1] <= 300
        assert kib[2] - kib[0] <= 600


def test_policies_that_differ_have_a_bound(tmp_path):
    """4 MiB are kept, here some 45 policies. Another one is refused, and the one in force stays. Those that were in force can be so again."""
    def large(number):
        return b"policy " + json.dumps({"rules": [{"match": {"library": f"lib{number}_{i}.so"}, "set": {"name": "n" * 250}} for i in range(256)]}).encode()
    with Remote(tmp_path) as program:
        program.do("create 1", "launch 1 2")
        answers = [say(program.pid, large(number)) for number in range(90)]
        refused = [answer for answer in answers if not answer.startswith(b"ok in force")]
        assert 30 < len(refused) < 60 and refused == [refused[0]] * len(refused) == answers[-len(refused):]
        assert refused[0].startswith(b"error policy: too many different ones were in force")
        assert say(program.pid, large(89 - len(refused))).startswith(b"ok in force") and say(program.pid, large(0)).startswith(b"ok in force")
        assert "lib0_0" in program.status()["policy"]
        assert say(program.pid, large(89)) == refused[0] and "lib0_0" in program.status()["policy"]
        assert say(program.pid, b"policy {}").startswith(b"ok in force")


def test_a_policy_that_comes_again_counts_anew(tmp_path):
    """The first stream that is made under it is its first one: also the second time that it is in force, and with the same rule in another policy between."""
    first = {"rules": [{"match": {"library": "remote", "nth": 1}, "set": {"name": "first"}}]}
    other = {"rules": [{"match": {"library": "remote", "nth": 1}, "set": {"name": "other"}}]}
    with Remote(tmp_path) as program:
        for stream, given in enumerate((first, other, first, first), 1):
            assert say(program.pid, b"policy " + json.dumps(given).encode()).startswith(b"ok in force")
            program.do(f"create {2 * stream}", f"launch {2 * stream} 1", f"create {2 * stream + 1}", f"launch {2 * stream + 1} 1")
    names = [life["name"].partition(" · ")[2] for life in sorted(program.load().lives, key=lambda life: life["ts"])]
    assert names == ["first", "remote", "other", "remote", "first", "remote", "first", "remote"]
