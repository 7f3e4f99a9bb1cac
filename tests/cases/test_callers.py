"""Who made a call: the program's own place, however the library was compiled. Builds for debugging, sanitizers and coverage turn no call into a jump."""
import json

import pytest

from tests.apprun import read
from tests.cases.test_audit import AUDIT, PLANTED, pairs
from tests.cases.test_policies import L, P, Outcome, default_work, expected_work


@pytest.fixture(params=["O2", "O1", "O0"])
def library(request, build):
    """The product, and those whose wrappers were compiled otherwise (tests/module.mk)."""
    return build / "libcustream_shim.so" if request.param == "O2" else build / "tests" / request.param / "libcustream_shim.so"


@pytest.fixture
def policies(run_app, build, library):
    def run(*rules):
        policy = json.dumps({"rules": [{"match": {"library": name}, "set": change} for name, change in rules]})
        return Outcome(run_app(["policies", build / "tests/libmaker.so"], shim=library, env={"CUSTREAM_POLICY": policy}))
    return run


def test_a_rule_by_library(policies):
    """Streams that are made, and work on default streams: each is the program's or the other library's."""
    made = policies(("libmaker*", {"name": "made"}), ("policies", {"name": "own"})).lives()
    assert made["library"]["rule"] == "rules[0]" and {args["rule"] for what, args in made.items() if what != "library"} == {"rules[1]"}
    assert default_work(policies(("policies", {"default_stream": "per-thread"}))) == expected_work(P, L, P, P, P)
    assert default_work(policies(("libmaker*", {"default_stream": "per-thread"}))) == expected_work(L, L, P, P, L)
    assert default_work(policies(("libcustream*", {"default_stream": "per-thread"}))) == expected_work(L, L, P, P, L)


def test_who_made_a_stream(run_app, build, library):
    """Without a policy: the short way, or a rare call's long one."""
    run = run_app(["policies", build / "tests/libmaker.so"], shim=library).check()
    made = {e["args"].get("library") for e in run.load().lives if e["args"].get("origin") == "created"}
    assert made == {"policies", "libmaker.so"}


def test_events_and_who_left_them(run_app, library):
    """The program has no thread, so that libgcc is not there to look behind a caller that is the library itself."""
    run = run_app(["leaks", 3, 4, 5, 6], shim=library).check()
    left = read(run.trace).json["neverDestroyed"]
    assert {(each["object"], each["library"]) for each in left} == {(kind, name) for kind in ("stream", "event") for name in ("leaks", "libmaker.so")}


def test_places_of_an_audit(run_app, library):
    """Functions of the program, not of the library."""
    run = run_app(["audit_hazards", "planted", 3], shim=library, env=AUDIT).check()
    assert set(pairs(read(run.trace).json["defaultStreamAudit"])) == PLANTED
