"""A disk that takes long, or hangs: what the end of a program waits for, and that nothing is lost meanwhile."""
import os
import pathlib
import signal
import subprocess

import pytest

from tests.apprun import read, said
from tests.cases.test_process import launches, traces_beside
from tests.cases.test_watch import BY, begin, ended_by
from tests.remote import until

SLOW_DISK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
static _Atomic int writes; /* of the trace: the first has its head alone */
static int number_of(const char *name) { return getenv(name) ? atoi(getenv(name)) : 0; }
static void disk(void)
{
    const int n = ++writes;
    usleep(1000 * (unsigned)number_of("EACH_MS"));
    if (n == 2) usleep(1000 * (unsigned)number_of("SECOND_MS"));
    if (n == 1 || !getenv("HANGS")) return;
    close(creat(getenv("HANGS"), 0600));
    for (;;) pause();
}
long syscall(long number, ...)
{
    long of[6];
    va_list args;
    va_start(args, number);
    for (int i = 0; i < 6; i++) of[i] = va_arg(args, long);
    va_end(args);
    if (number == SYS_pwritev) disk();
    return ((long (*)(long, ...))dlsym(RTLD_NEXT, "syscall"))(number, of[0], of[1], of[2], of[3], of[4], of[5]);
}
"""
FULL = {"CUSTREAM_FULL": "block", "CUSTREAM_GPU": "off"}  # the calls alone fill the file


@pytest.fixture
def disk(tmp_path):
    """A library in whose process each write of the trace goes by it."""
    subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", tmp_path / "disk.so"], input=SLOW_DISK, text=True, check=True)
    return tmp_path / "disk.so"


# Each takes longer than the 10 s that the end once had.
@pytest.mark.parametrize("argv, env", [(["burst", 4, 45000], {"EACH_MS": 180}), (["burst", 1, 1000], {"SECOND_MS": 12000})], ids=["many writes", "one write"])
def test_a_disk_that_takes_long_gets_all(build, run_app, disk, argv, env):
    run = run_app(argv, shim=f"{build}/libcustream_shim.so:{disk}", env=FULL | env).check()
    assert not said(run) and launches(read(run.trace)) == argv[1] * argv[2]


def test_an_exec_waits_for_a_disk_that_takes_long(build, run_app, disk):
    run = run_app(["again", 1], shim=f"{build}/libcustream_shim.so:{disk}", env={"SECOND_MS": 12000}).check()
    assert sorted(launches(read(path)) for path in traces_beside(run)) == [10, 11] and not said(run)


def test_a_signal_ends_the_wait_for_a_disk_that_hangs(build, disk, tmp_path):
    """The program has returned from main, and Ctrl-C ends it at once. The watcher has its calls."""
    env = {"HANGS": str(tmp_path / "hangs"), "LD_PRELOAD": str(disk), "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0"}
    run = begin(build, tmp_path, "ending", "return", options=["-o", "t.json"], env=env)
    until((tmp_path / "hangs").exists)
    until(lambda: pathlib.Path(f"/proc/{run.pid}/syscall").read_text().split()[0] == {"x86_64": "202", "aarch64": "98"}[os.uname().machine])  # it waits: futex
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=60)
    assert run.returncode == -signal.SIGINT and ended_by(tmp_path / "t.json") == ("SIGINT", BY.format("SIGINT")), err
    assert launches(read(tmp_path / "t.json")) == 100 and BY.format("SIGINT") in err


@pytest.mark.timeout(300)
def test_a_disk_that_hangs_costs_a_minute(build, disk, tmp_path):
    """Then the program ends as without the library, and is told. The watcher has its calls."""
    env = {"HANGS": str(tmp_path / "hangs"), "LD_PRELOAD": str(disk), "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0"}
    run = begin(build, tmp_path, "ending", "exit", options=["-o", "t.json"], env=env)
    _, err = run.communicate(timeout=120)
    assert run.returncode == 5 and f"custream: warning: the trace {tmp_path}/t.json has no end: nothing of it could be written for 60 s" in err, err
    assert launches(read(tmp_path / "t.json")) == 100 and "all calls up to then are there" in err, err
