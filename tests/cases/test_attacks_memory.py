"""Attacks on memory, threads and loaders: programs that are right, and that notice what a library does on their threads."""
import pytest

from tests.apprun import both, faithful, notes_of


@pytest.mark.parametrize("env", [{"CUSTREAM_FULL": "block", "CUSTREAM_BUFFER": "64K"}, {"CUSTREAM_DEFAULT_STREAM": "audit"},
                                 {"CUSTREAM_PRIORITY": "0:-1", "CUSTREAM_LOG": "debug"}], ids=["block", "audit", "log"])
def test_no_thread_is_cancelled_in_a_call(run_app, env):
    """What the library opens, writes and sleeps there is no point where a thread may be cancelled: a driver's call has none in that place."""
    run, _ = both(run_app, ["cancelled"], env=env)
    assert run.check().stdout.startswith("cancelled after all calls\ncancelled 1\n")


@pytest.mark.parametrize("env", [{}, {"CUSTREAM_TRACE": "trace.json.gz", "CUSTREAM_GPU": "events"},
                                 {"CUSTREAM_PLUGIN": "./nothing.so", "CUSTREAM_GPU": "off"}],  # without CUPTI, which would be opened first
                         ids=["cupti", "gz", "plug-in"])
def test_first_call_in_a_callback_of_the_loaders_list(run_app, env):
    """A thread of ours that opens a library holds the loader's lock while it waits for the list's: the program needs the first, and has the second."""
    bare = run_app(["in_list"], shim=False).check()
    assert run_app(["in_list"], env=env, timeout=20).check().stdout == bare.stdout


def test_a_late_policy_in_a_callback_of_the_loaders_list(run_app):
    """What reads a policy is opened by a thread of ours then, which the program cannot let into the loader: it goes on without the policy."""
    bare = run_app(["in_list"], shim=False).check()
    run = run_app(["in_list", '{"streams": "sync"}'], env={"CUSTREAM_GPU": "off"}, timeout=20).check()  # without CUPTI, which would be opened first
    assert run.stdout == bare.stdout and "the policy is not applied" in run.stderr


@pytest.mark.parametrize("env", [{}, {"CUSTREAM_DEFAULT_STREAM": "audit"}], ids=["timeline", "audit"])
def test_locked_memory(run_app, env):
    """Tables that are hardly touched take no memory, in a program that locks all of its own either."""
    bare = run_app(["locked"], shim=False).check()
    run, _ = both(run_app, ["locked"], env=env)
    assert int(notes_of(run.stderr)["kB"]) < int(notes_of(bare.stderr)["kB"]) + 150000


def resident_of(run_app, when, keep, **env):
    run, trace = faithful(run_app, ["locked", when], env={"CUSTREAM_FULL": "block", "CUSTREAM_KEEP": keep, **env})
    assert trace.metadata["rings"].startswith("not kept: CUSTREAM_KEEP=off" if keep == "off" else ("/dev/shm/", "memfd"))
    return int(notes_of(run.stderr)["kB"])


def test_memory_locked_late(run_app):
    """A program that locks all it has after its first call locks what is in use of the file of rings. The rest can be used all the same."""
    assert resident_of(run_app, "late", "auto") < resident_of(run_app, "late", "off") + 20000


def test_memory_of_resting_rings(run_app):
    """16 threads have ended: of each ring of 4 MiB one stays open, and without the file all of it."""
    env = {"CUSTREAM_GPU": "off"}  # the profiler's buffers take memory too, by how fast the threads are
    assert resident_of(run_app, "rested", "auto", **env) < resident_of(run_app, "rested", "off", **env) - 40000
