"""Each call that the library makes for itself fails once: the program does what it does alone, and the trace is good or says what is missing.

This is a fixed sample of what `make faults` runs (tests/faults.py).
"""
import concurrent.futures
import itertools
import re
import subprocess
import zlib

import pytest

from tests import faults
from tests.faults import Fault, judge

SHARE = 90  # of so many faults, one


def sample(mode):
    """The same ones each time, of all kinds."""
    chosen = itertools.chain(faults.system_faults(mode, False), faults.asked_faults(mode))
    return [fault for fault in chosen if zlib.crc32(str(fault).encode()) % SHARE == 0]


@pytest.mark.parametrize("mode", faults.ALL_MODES)
def test_a_sample(mode):
    chosen = sample(mode)
    faults.alone(mode)  # each of them is compared with that
    with concurrent.futures.ThreadPoolExecutor(4) as several:  # the programs of some modes sleep most of their time
        found = several.map(judge, chosen)
    assert not {str(fault): problem for fault, (problem, _) in zip(chosen, found) if problem}


# What was found once, each as the fault that showed it.
@pytest.mark.parametrize("fault", [
    Fault("timeline", "system", "newfstatat", 22, 4), Fault("timeline", "system", "newfstatat", 12, 5), Fault("timeline", "system", "newfstatat", 12, 6)], ids=str)
def test_an_empty_file_does_not_stay(fault):
    assert judge(fault) == ("", True)


def test_what_killed_main_is_the_end_of_the_process():
    """Also where there is no writer, and another thread looks at it."""
    assert faults.alone("main killed").rc == -31
    assert judge(Fault("main killed", "system", "pthread_create", 11, 2)) == ("", True)


@pytest.mark.parametrize("number, lost", [(21, True), (999, True), (12, False)])
def test_a_buffer_that_cupti_cannot_read(number, lost):
    """12 (CUPTI_ERROR_MAX_LIMIT_REACHED) is how a buffer ends. Any other result is a loss, and the trace says so."""
    did = faults.run(Fault("nvtx", "cupti", "cuptiActivityGetNextRecord", number, 1))
    assert did.rc == 0 and not did.wrong and did.tells == lost


def test_the_end_of_main_is_found_though_a_bell_is_lost():
    """Each wake of the library's threads fails once: the process ends with its last thread all the same."""
    alone = faults.alone("reach")
    for n in range(1, 40, 3):
        did = faults.run(Fault("reach", "system", "futex", 14, n), timeout=20)
        assert (did.rc, did.stdout) == (alone.rc, alone.stdout), n


# --- the tables ---

# Functions of the C library that make no system call, or none that says anything by failing.
PURE = re.compile(r"__|_ITM|_r_debug|environ|program_inv|mem|str|stp|wcs|sn?printf|vsn|pthread_(attr|mutex_init|once|self|setspec|detach)|sig(add|empty|fill|is)|dl(addr|error|open)"
                  r"|(closedir|dirfd|exit|fnmatch|free|getauxval|newlocale|uselocale|backtrace|aligned_alloc|rewinddir)$")

# What other preloads are to see, and what nothing calls once a preload in front may be gone (shim/base/direct.c).
SEEN = {"malloc", "calloc", "pthread_create", "pthread_key_create"}
BEGINS = {"getcwd", "gethostname", "opendir", "readdir", "realpath", "sigaction"}


def test_each_function_that_may_fail_has_a_row(build):
    """What the library calls of the C library's is in tests/apps/faults.c, where it can be made to fail, or makes no system call."""
    listed = subprocess.run(["nm", "-D", "--undefined-only", build / "libcustream_shim.so"], check=True, capture_output=True, text=True).stdout
    called = {line.split()[-1].partition("@")[0] for line in listed.splitlines()}
    source = (faults.ROOT / "tests/apps/faults.c").read_text()
    rows = set(re.findall(r"^    FUNCTION\(.*?, (\w+), \(", source, re.M))
    assert {name for name in called if not PURE.match(name)} == rows & called
    assert rows & called == SEEN | BEGINS


def test_each_system_call_has_errnos(root):
    """All calls of base/direct.c have a row, and each row that the manual's pages and errnos are known of."""
    source = (root / "tests/apps/faults.c").read_text()
    numbers = set(re.findall(r"NUMBER\((\w+)\)", source)) - {"name", "number"}
    used = {name for path in root.glob("shim/*/*.c") for name in re.findall(r"\bSYS_(\w+)", path.read_text())}
    assert used <= numbers
    rows = set(re.findall(r"^    FUNCTION\(.*?, (\w+), \(", source, re.M)) | numbers
    assert rows - faults.NEVER == set(faults.errno_table()) - faults.NEVER
    for call in faults.errno_table():
        assert faults.errnos_of(call), call


def test_results_of_driver_and_cupti_are_documented(build):
    driver, cupti = faults.driver_results(), faults.cupti_results()
    assert len(driver) > 25 and sum(len(numbers) > 2 for numbers in driver.values()) > 20
    assert len(cupti) > 15 and all(numbers for numbers in cupti.values())
