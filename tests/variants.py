"""The test cases in a build folder of another sort, which BUILD_DIR names: `make check-asan` and `make check-tsan` (docs/tests.md)."""
import os
import re

from tests import BUILD, ROOT

SANITIZERS = ("asan", "tsan")
NAME = BUILD.name if BUILD.name in SANITIZERS else ""

# The test's id, where it does not run, and why. The first row that fits counts.
EXCLUDED = [
    (r"test_(calltable|docs|fixtures|install|layers|pages|perfetto_harness|product|wheel|words|worked_examples)\.py", SANITIZERS, "no code of the library or the command runs in it"),
    (r"test_(clients|examples|hta|jupyter|policy_clients|pytest_plugin|terse)\.py", SANITIZERS, "Python programs: what they ask of the library C programs ask too"),
    (r"test_(fakecuda|fuzz)\.py", SANITIZERS, "the simulated GPU alone; programs with sanitizers of their own"),
    (r"test_(perfetto_apps|report_\w+|export|fleet|merge|diff|open|inspect)\.py", SANITIZERS, "the command on traces; make fuzz has its readers under sanitizers"),
    (r"test_(check_\w+|command\w*|recover|tools|policy_file|policy_fuzz)\.py", ("tsan",), "the command, which has one thread; the reader of policies"),
    (r"deeply.bound|moves_without_our_hearing_of_it.(deep|wraps)", SANITIZERS, "the runtime refuses RTLD_DEEPBIND"),
    (r"test_gates\.py|interrupted|stepped|step_by_step", SANITIZERS, "a handler runs at each instruction: it enters the sanitizer's runtime twice"),
    (r"without_a_writer|test_faults\.py|test_memory\.py|one_of_our_threads", SANITIZERS, "a library behind ours knows whom it refuses by the caller, which now is the runtime"),
    (r"few_system_calls_may_be_made", SANITIZERS, "the runtime makes some of its own"),
    (r"program_with_a_sanitizer|thread_sanitizer_(finds|and)", SANITIZERS, "two runtimes in one process"),
    (r"take_little_of_a_small_stack", SANITIZERS, "functions that are looked at have larger frames"),
    (r"vfork_child_is_the_first_of", SANITIZERS, "the runtime says that it does not know the stack of such a child"),
    (r"main_leaves|main_alone_is_killed|exit_handler_that_needs_stack|writer-killed-left|real_time_thread_meets", ("tsan",),
     "the runtime has a thread of its own: it lives on when main has left, and is counted"),
    (r"standard_error_is_a_file_at_its_limit", ("tsan",), "the runtime writes there too"),
    (r"rows_life-26_many", ("tsan",), "many objects take longer than the program's alarm"),
    (r"chosen_before_we_are_bound", SANITIZERS, "the loader calls the library before the runtime is there"),
    (r"test_in_a_constructor|first_calls_with_options.policy", SANITIZERS, "the library is initialised before all others (-z initfirst), when the loader opens none"),
    (r"run_as_installed|keeps_what_is_preloaded|leaves_our_place|library_beside_the_shim", SANITIZERS, "libraries that were copied, or named otherwise, without libreport.so beside them"),
    (r"test_(soak|growth)\.py|little_address_space|no_more_memory|what_a_core_and_a_child|memory_stays|bounded_(in_)?memory", SANITIZERS, "memory of the process, of which the runtime has its own"),
]


def set_up(folder):
    """For all that the tests start. Reports go to a file of this worker's, whatever the program does with its standard error."""
    reports = folder / "reports"
    os.environ["SANITIZER_REPORTS"] = str(reports)
    os.environ["TSAN_OPTIONS"] = f"die_after_fork=0:suppressions={ROOT / 'tests/sanitized/tsan.supp'}"  # a child of several threads may begin threads
    return reports


def taken(reports):
    """The reports that have come since."""
    text = reports.read_text(errors="replace") if reports.exists() else ""
    reports.unlink(missing_ok=True)
    return text


def excluded(test):
    """Why it does not run; None: it does."""
    return next((why for pattern, names, why in EXCLUDED if NAME in names and re.search(pattern, test)), None)
