"""The test cases in a build folder of another sort, which BUILD_DIR names: `make check-asan`, `make check-tsan` and `make check-aarch64` (docs/tests.md)."""
import os
import re

from tests import BUILD, ROOT

SANITIZERS = ("asan", "tsan")
EMULATED = ("qemu",)
EVERY = SANITIZERS + EMULATED
NAME = BUILD.name if BUILD.name in EVERY else ""
LARGE_PAGES = ("large pages",)  # that QEMU_PAGESIZE has programs see
NAMES = {NAME, *LARGE_PAGES * (int(os.environ.get("QEMU_PAGESIZE", "4096")) > 4096)}
if NAME in EMULATED:
    os.environ["PATH"] = f"{BUILD}/bin:{os.environ['PATH']}"  # what a case compiles is for the other machine too

# The test's id, where it does not run, and why. The first row that fits counts.
EXCLUDED = [
    (r"test_(calltable|docs|fixtures|install|layers|pages|perfetto_harness|product|wheel|words|worked_examples)\.py", EVERY, "no code of the library or the command runs in it"),
    (r"test_(clients|examples|hta|jupyter|policy_clients|pytest_plugin|terse)\.py", EVERY, "Python programs: what they ask of the library C programs ask too"),
    (r"test_what_if_random\.py", EVERY, "the library with another clock is linked for the plain build alone"),
    (r"test_(fakecuda|fuzz)\.py", SANITIZERS, "the simulated GPU alone; programs with sanitizers of their own"),
    (r"test_(perfetto_apps|report_\w+|export|fleet|golden|merge|diff|open|inspect)\.py", SANITIZERS, "the command on traces; make fuzz has its readers under sanitizers"),
    (r"test_(check_\w+|command\w*|recover|tools|policy_file|policy_fuzz)\.py", ("tsan",), "the command, which has one thread; the reader of policies"),
    (r"test_(report_\w+|export|fleet|golden|diff|open|inspect|check_\w+|command_options|command_start|policy_file|policy_fuzz)\.py|test_command\.py::test_run_", EMULATED, "the command on files, which is this machine's"),
    (r"test_(fuzz|policy_limits)\.py|\[asan|asan\]|-asan-|tsan|with_a_sanitizer|with_the_address_sanitizer|thread_sanitizer|without_a_limit|trace_max_stops|a_disk_with|a_write_that_fails_though", EMULATED, "programs with a sanitizer in them, whose tables have no place under QEMU"),
    (r"planted_names", EVERY, "the calls are counted by strace, which a leak checker does not work under and QEMU does not have"),
    (r"\[aarch64-|test_on_aarch64", EVERY, "make check has it"),
    (r"is_stamped_twice|alone_stamps|the_driver_the_same_without_a_trace|closed_window_stamps", EMULATED, "a program that has the x86 time-stamp counter kept from it"),
    (r"test_gates\.py|stepped|step_by_step|while_a_record_is_filled", EMULATED, "signals come between any two instructions; under QEMU between blocks of them"),
    (r"main_leaves|by_the_bare_system_call|handler_that_needs_stack|end_of_main", EMULATED, "QEMU has a thread of its own in the process, so ours never find themselves alone"),
    (r"main_alone_is_killed|what_killed_main|writer_alone_is_killed|no_file_may_be_opened|few_system_calls|filter_of_system_calls|refused\b.*seccomp|who_asks_is_not_the_end|where_neither_is_allowed|where_only_\w+_is_refused", EMULATED, "QEMU refuses filters of system calls (seccomp)"),
    (r"::test_forks?\b|works-fork|child_that_calls_cuda|fork_while|forked_child|a_child_of|workers_that_live_on|child_has_|fork_and_exec|a_fork_under|seconds_under_way_are_joined", EMULATED, "QEMU aborts a child of fork that makes a thread, and wipes no memory in it"),
    (r"test_(soak|growth)\.py|a_core_and_a_child|no_more_memory|little_address_space|memory_stays|signals_stay|keeps_no_file|a_memfd_of_the_run|dump_of_nothing|ps_says|ps_of_a_script|ctl_off_ends|process_ends_meanwhile|trace_that_is_full|several_processes_in|test_hang\.py::test_words", EMULATED, "/proc shows QEMU's memory, files, signals and command line"),
    (r"real_library|does_not_tell_which_copy|cupti_on_another_driver|terminal|no_cuda_no|unwritable_folder|full_disk|disk_full|a_sample\[(run|memfd|limit)\]|other_preloads_see|run_in_a_run|who_lives_on|test_no_cuda\b|is_not_the_one_that|script_gives_its_name|nvtx\.py::test_python_package|the_command_starts_the_program|workers_that_leave_at_once", EMULATED, "programs of this machine, such as Python and a shell, have no use for the library"),
    (r"test_ctl\.py::test_exec\b|exec_of_itself|another_program_takes_the_place|compressed_traces_tell", EMULATED, "QEMU has no execveat, and tells another start of the process after an exec"),
    (r"arrows_stay_in_their_part|waits_of_which_nobody_tells|test_client_\w+\[.*profiled_linked|delay_stands|numbers_are_those_of_the_program|calls_between_start_and_stop\[off", EMULATED, "QEMU's counter has steps of 1 us: the case cannot tell which of two calls was first, and compares with another clock"),
    (r"a_limit_leaves|no_memory_costs_no_buffer", EMULATED, "a limit of address space is QEMU's, or none, where the program sets it"),
    (r"test_kernels_at_once", EMULATED, "two streams begin at once, and QEMU may come to look at the second when the first is through"),
    (r"pages_of_a_file_are_given_back", EMULATED, "QEMU's madvise() gives no page of a file back, and says that it has"),
    (r"ended_as_a_file_of_its_own", EMULATED, "the command is this machine's, and cannot load a library for aarch64 that interrupts it"),
    (r"a_vfork_child_is_the_first", EMULATED, "QEMU makes a fork of a vfork, without the parent's memory"),
    (r"threads_that_end_when_they_have_launched|an_event_that_a_graph_has_recorded|cupti_settings-early", EMULATED, "launches take longer than the work that is to be waited for"),
    (r"test_faults\.py::test_a_sample\[reach|small_room_gets_full", EMULATED, "it takes longer than a case may, or begins when it is to be killed"),
    (r"each_thing_refused_once|policy_holds_for_a_thread_without_memory", LARGE_PAGES, "QEMU gives the loader's first heap less than a large page has: of two preloaded libraries it finds one (its openat says EFAULT)"),
    (r"watcher_recovers.SIGSEGV", EMULATED, "QEMU writes a core for minutes"),
    (r"test_odd_program_name|test_a_program_started_through_the_loader|cupti_unknown_failure|a_failure_fails", EMULATED, "the starter shows: the program's file has another name, and QEMU tells of an abort"),
    (r"deeply.bound|moves_without_our_hearing_of_it.(deep|wraps)", SANITIZERS, "the runtime refuses RTLD_DEEPBIND"),
    (r"test_gates\.py|interrupted|stepped|step_by_step", SANITIZERS, "a handler runs at each instruction: it enters the sanitizer's runtime twice"),
    (r"without_a_writer|test_faults\.py|test_memory\.py|one_of_our_threads|killed_between_two_system_calls", SANITIZERS, "a library behind ours knows whom it refuses by the caller, which now is the runtime"),
    (r"few_system_calls_may_be_made|who_asks_is_not_the_end", SANITIZERS, "the runtime makes some of its own"),
    (r"memory_locked_late|memory_of_resting_rings", EVERY, "the sanitizer's mlockall() does nothing, and /proc shows QEMU's memory"),
    (r"is_none_that_was_loaded_with", SANITIZERS, "a copy of the library in another folder does not find the runtime"),
    (r"program_with_a_sanitizer|thread_sanitizer_(finds|and)", SANITIZERS, "two runtimes in one process"),
    (r"take_little_of_a_small_stack", SANITIZERS, "functions that are looked at have larger frames"),
    (r"vfork_child_is_the_first_of", SANITIZERS, "the runtime says that it does not know the stack of such a child"),
    (r"main_leaves|main_alone_is_killed|exit_handler_that_needs_stack|writer-killed-left|real_time_thread_meets", ("tsan",),
     "the runtime has a thread of its own: it lives on when main has left, and is counted"),
    (r"standard_error_is_a_file_at_its_limit", ("tsan",), "the runtime writes there too"),
    (r"filter_of_system_calls\[madvise", ("tsan",), "the runtime refuses to start where madvise is refused"),
    (r"a_preload_in_front_is_destroyed|a_preload_stops_the_clock", ("tsan",), "the library locks and unlocks by name, so that the runtime sees it, also where nobody may be called any more"),
    (r"test_with_the_address_sanitizer", ("tsan",), "two runtimes in one process"),
    (r"while_a_record_is_filled", ("tsan",), "a handler runs at each instruction, also of the runtime: it is not through in two minutes"),
    (r"fork_while_another_thread_records", ("asan",), "the runtime does not hold the lock of its allocator across a fork: a child waits for who is not there"),
    (r"killed_at_any_moment.trace.json.gz", ("tsan",), "it takes longer than a case may"),
    (r"test_runtime(_cupti)?\.py::test_losses", ("tsan",), "calls take longer than the writer takes for them: no ring gets full"),
    (r"graphs_with_copies.windows", ("tsan",), "the window is open for 0.3 s: on a busy machine that is over before the program's first graph"),
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
    return next((why for pattern, names, why in EXCLUDED if NAMES & set(names) and re.search(pattern, test)), None)
