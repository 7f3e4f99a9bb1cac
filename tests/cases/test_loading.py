"""Libraries whose tables look unusual: each program does what it does alone."""
import pytest

from tests.apprun import both, calls_in, said


@pytest.fixture
def loading(build):
    return build / "tests" / "loading"


def used(run, times, result=0):
    assert run.check().stdout == f"results {result}\n" * times and not said(run)


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
