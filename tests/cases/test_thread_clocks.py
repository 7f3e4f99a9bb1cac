"""Processor time of threads at the edges of pauses and of calls that hold them. The program says what its threads had used before and behind each edge."""
import pytest

from tests.apprun import faithful, notes_of

MS4 = 4000


def edges(run, trace, turn):
    """The calls of one turn's thread by name, and the program's readings around them."""
    (thread,) = {e["tid"] for e in trace.host(name="cuStreamSynchronize")[turn:turn + 1]}
    calls = {e["name"]: e for e in trace.host(cat="cuda_driver") if e["tid"] == thread}
    notes = {key[:-1]: int(value) for key, value in notes_of(run.stderr).items() if key[-1] == str(turn)}
    return calls, notes


@pytest.mark.parametrize("env", [{}, {"CUSTREAM_PRIORITY": "shift:-1"}, {"CUSTREAM_GPU": "events"}], ids=["short", "long", "marks"])
def test_computed_slept_and_waited(run_app, env):
    run, trace = faithful(run_app, ["pauses"], env=env)
    assert run.stdout.count("errno kept") == 2
    for turn in range(2):
        calls, notes = edges(run, trace, turn)
        computed, slept, waited = (calls[name]["args"] for name in ("cuEventRecord", "cuEventQuery", "cuStreamSynchronize"))
        assert notes["computed"] <= computed["cpu_us"] <= notes["slept"] + 1
        assert notes["slept"] <= slept["cpu_us"] <= notes["waited"] + 1
        assert slept["cpu_us"] <= waited["cpu_end_us"] <= notes["waited"] + 1
        used, passed = slept["cpu_us"] - computed["cpu_us"], calls["cuEventQuery"]["ts"] - calls["cuEventRecord"]["ts"]
        assert used <= passed - MS4 + 1, "it slept"
        assert computed["cpu_us"] >= MS4


def test_told_nowhere_else(run_app):
    """Calls that follow each other soon have no clock; the first of a thread has one. A busy machine may make any gap long."""
    _, trace = faithful(run_app, ["pauses"])
    calls = sorted(trace.host(cat="cuda_driver"), key=lambda e: (e["tid"], e["ts"]))
    for before, call in zip([None, *calls], calls, strict=False):
        gap = call["ts"] - before["ts"] - before["dur"] if before and before["tid"] == call["tid"] else None
        if "cpu_us" in call["args"]:
            assert gap is None or gap > 150, call
        else:
            assert gap is not None and gap < 260, call
        assert "cpu_end_us" not in call["args"] or call["dur"] > 150, call


def test_off(run_app):
    _, trace = faithful(run_app, ["pauses"], env={"CUSTREAM_THREAD_CLOCKS": "off"})
    assert not [e for e in trace.host() if {"cpu_us", "cpu_end_us"} & e["args"].keys()]
