"""Libraries that come, go and come back, that are the driver under another name, or whose tables look unusual: each program does what it does alone."""
import re

import pytest

from tests.apprun import both, calls_in, notes_of, said


@pytest.fixture
def loading(build):
    return build / "tests" / "loading"


def used(run, times, result=0):
    assert run.check().stdout == f"results {result}\n" * times and not said(run)


MODES = {"default": {}, "events": {"CUSTREAM_GPU": "events"}, "off": {"CUSTREAM_GPU": "off"}}  # off: nothing but the library itself keeps the driver


@pytest.mark.parametrize("env", MODES.values(), ids=MODES)
def test_a_driver_that_a_library_brings_again(run_app, loading, env):
    """The library is closed, and its driver with it. When both are back elsewhere, the library is bound to the driver that is there, and its calls are seen."""
    run, trace = both(run_app, [loading / "program", *[f"-{loading / 'libuser.so'}"] * 3], env=env)
    used(run, 3)
    assert calls_in(trace)["cuStreamCreate"] == 3 and notes_of(run.stderr)["stayed"] == "1"


def test_a_driver_that_goes_while_nothing_is_asked(run_app, loading):
    """Nobody of ours needs it: it goes, and the next one is met."""
    run = run_app([loading / "program", *[f"-{loading / 'libuser.so'}"] * 3], env={"CUSTREAM_TRACE": "off"})
    used(run, 3)
    assert len(set(re.findall(r"^note use (\S+)", run.stderr, re.M))) == 3 and "note stayed" not in run.stderr


@pytest.mark.parametrize("argv", [["program", "libemulated.so"], ["linked_emulated"]], ids=["opened", "linked"])
def test_a_driver_of_another_name(run_app, loading, argv):
    """It is called, as alone, and nothing is recorded: no libcuda.so.1 was met."""
    argv = [loading / word for word in argv]
    alone, run = run_app(argv, shim=False), run_app(argv)
    assert (run.rc, run.stdout) == (alone.rc, alone.stdout) == (0, "results 300000\n") and not said(run) and not run.trace.exists()


@pytest.mark.parametrize("argv", [["program", "liblate.so"], ["linked_late"]], ids=["opened", "linked"])
def test_a_library_that_opens_the_driver_when_it_is_called(run_app, loading, argv):
    run, trace = both(run_app, [loading / word for word in argv])
    assert run.check().stdout == "results 0\n" and calls_in(trace)["cuStreamCreate"] == 1


@pytest.mark.parametrize("argv", [["program", "libfar.so"], ["linked_far"]], ids=["opened", "linked"])
def test_a_library_that_lies_below_its_addresses_in_the_file(run_app, loading, argv):
    """What has been added to them is less than nothing."""
    run, trace = both(run_app, [loading / word for word in argv])
    used(run, 1)
    assert calls_in(trace)["cuStreamCreate"] == 1


@pytest.mark.parametrize("env", [{}, {"LOADING_OTHER": "1"}])
def test_a_function_that_is_chosen_before_we_are_bound(run_app, loading, env):
    alone, run = run_app([loading / "linked_chooses"], shim=False, env=env), run_app([loading / "linked_chooses"], env=env)
    assert (run.rc, run.stdout) == (alone.rc, alone.stdout) and alone.rc == 0 and not run.stderr


def test_a_program_with_a_syscall_of_its_own(run_app, loading):
    run, trace = both(run_app, [loading / "own_syscall"])
    assert run.check().stdout == "results 0, calls 0\n" and calls_in(trace)["cuStreamCreate"] == 10 and not said(run)
