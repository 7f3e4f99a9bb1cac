"""Signals at each instruction of the short way of a call, and in the middle of a process's first calls: programs that do what handlers may."""
import pytest

from tests import BUILD
from tests.apprun import calls_in, calls_of, notes_of, said

GPU = {"CUSTREAM_GPU": "off"}  # the short way itself: marks and the profiler are not stepped
SEES = f"{BUILD / 'libcustream_shim.so'}:{BUILD / 'tests/libother_preload.so'}"  # the latter sees the former's system calls


def stepped(run_app, what, call, env=None):
    """The run and its trace: a handler came at each instruction, and nothing went astray."""
    run = run_app(["gates", what, call], shim=SEES if call == "first" else True, env=env or GPU).check()
    assert "astray 0" in run.stdout.splitlines(), run.stderr
    assert int(notes_of(run.stderr)["handled"]) > 50 and not said(run)
    return run, run.load()


@pytest.mark.parametrize("call", ["launch", "create"])
def test_the_stack_can_be_walked(run_app, call):
    """From each instruction to whoever made the call, as a sampling profiler does."""
    run, trace = stepped(run_app, "unwind", call)
    assert calls_in(trace) == calls_of(run.stdout)


@pytest.mark.parametrize("env", [GPU, {"CUSTREAM_GPU": "sample:3"}, {"CUSTREAM_TRACE": "off", "CUSTREAM_DEFAULT_STREAM": "per-thread"}], ids=["short", "sample", "policy"])
def test_a_handler_forks(run_app, env):
    """The child, which has no state of its parent's thread any more, goes on with the call."""
    run = run_app(["gates", "fork", "launch"], env=env).check()
    assert "astray 0" in run.stdout.splitlines(), run.stderr


def test_a_handler_forks_where_a_ring_is_given_memory(run_app):
    run = run_app(["gates", "fork", "many"], env=GPU).check()
    assert "astray 0" in run.stdout.splitlines(), run.stderr


@pytest.mark.parametrize("env", [GPU, {"CUSTREAM_KEEP": "off"}], ids=["kept", "not kept"])
def test_a_handler_forks_in_the_middle_of_a_threads_first_call(run_app, env):
    """The child has only the number of its parent's state, and no ring there."""
    _, trace = stepped(run_app, "fork", "first", env)
    assert trace.totals["complete"] is True


@pytest.mark.parametrize("call", ["launch", "record", "query"])
def test_a_handler_ends_the_thread(run_app, call):
    """Whatever the thread left undone, the next one that has its ring is recorded whole."""
    run, trace = stepped(run_app, "leave", call)
    made, shown = calls_of(run.stdout), calls_in(trace)
    left = sum((made - shown).values())
    assert shown == made - (made - shown) and left <= int(notes_of(run.stderr)["handled"])
    assert shown["cuCtxSetCurrent"] == made["cuCtxSetCurrent"] and trace.totals["lost_records"] == 0


def test_a_handler_launches_while_calls_are_sampled(run_app):
    """Of each N one is still marked, however the two count at once."""
    _, trace = stepped(run_app, "launch", "launch", {"CUSTREAM_GPU": "sample:2"})
    assert abs(len([e for e in trace.gpu() if e["name"] == "quiet_kernel"]) - 100 / 2) <= 1


def test_a_handler_marks_a_new_text_while_one_is_added(run_app):
    """It does not wait for its own thread. At that moment its own text is not kept."""
    run, trace = stepped(run_app, "text", "range")
    marks = [e["name"] for e in trace.events if e["ph"] == "i" and e["name"].startswith("mark ")]
    assert 100 < len(set(marks)) == len(marks) < int(notes_of(run.stderr)["handled"])
    ranges = [name for name in trace.count(cat="user_annotation") if name.startswith("range ")]
    assert set(ranges) == {f"range {n}" for n in range(len(ranges))}


@pytest.mark.parametrize("env", [{}, {"CUSTREAM_WINDOW": "delay=100"}, {"CUSTREAM_TRACE": "off", "CUSTREAM_STREAMS": "pool:2"}], ids=["trace", "window", "policy"])
def test_a_handler_calls_cuda_in_the_middle_of_the_first_call(run_app, env):
    """It waits for no lock that its own thread holds."""
    times = 0
    while True:
        run = run_app(["interrupted", times], shim=SEES, env=env, timeout=20).check()
        assert not [line for line in said(run) if "lock" in line]
        if notes_of(run.stderr)["handled"] == "0":
            break
        times += 1
    assert 3 < times < 40
