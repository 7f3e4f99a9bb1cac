"""The watcher of `custream run` where it is late: what it says, and what it can know by then."""
import os
import re
import subprocess
import sys

import pytest

from tests.cases.test_closing import GOOD, lines, only_line, run_under
from tests.cases.test_watch import BY

SLOW = """
#define _GNU_SOURCE
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
static void rest(const char *variable)
{
    char name[16] = "";
    const char *ms = getenv(variable);
    if (ms && !prctl(PR_GET_NAME, name) && !strcmp(name, "custream-watch")) usleep(1000 * (unsigned)atoi(ms));
}
ssize_t write(int fd, const void *bytes, size_t n)
{
    rest(fd == 2 ? "LINE_MS" : "ANSWER_MS");
    if (n == 5 && !memcmp(bytes, "speak", 5)) rest("SPEAK_MS");
    return syscall(SYS_write, fd, bytes, n);
}
int poll(struct pollfd *fds, nfds_t n, int timeout)
{
    if (timeout < 0) rest("NEWS_MS");
    return (int)syscall(SYS_poll, fds, n, timeout);
}
"""


def slow_watcher(tmp_path, **ms):
    """The environment in which it rests before each line, answer, or look for news."""
    subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", tmp_path / "slow.so"], input=SLOW, text=True, check=True)
    return {"LD_PRELOAD": str(tmp_path / "slow.so"), "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0"} | {name: str(n) for name, n in ms.items()}


@pytest.mark.parametrize("line_ms, answer_ms", [(3000, 0), (0, 1000), (0, 1500), (0, 2000), (1000, 1000)])
def test_a_watcher_that_is_slow(build, tmp_path, line_ms, answer_ms):
    """It answers, or its line is on its way, when the library loses its patience: one of the two speaks, whichever it is."""
    done = run_under(build, tmp_path, "ending", "exit", options=["-o", "t.json"], env=slow_watcher(tmp_path, LINE_MS=line_ms, ANSWER_MS=answer_ms))
    assert done.returncode == 5 and GOOD.fullmatch(only_line(done)), done.stderr


def test_a_watcher_that_leaves_it_to_a_process_which_is_gone(build, tmp_path):
    """It has said "wait", and lets the library speak. That has lost its patience before it hears so, and has left it to the watcher."""
    done = run_under(build, tmp_path, "ending", "exit", options=["-o", "t.json"], env=slow_watcher(tmp_path, ANSWER_MS=1500, SPEAK_MS=9000))
    assert done.returncode == 5 and GOOD.fullmatch(only_line(done)), done.stderr


def test_a_watcher_that_hears_of_two_programs_at_once(build, tmp_path):
    """The second has taken the first one's place, and ends: they are told of in turn all the same."""
    done = run_under(build, tmp_path, "again", 1, "slow", options=["-o", "t.json"], env=slow_watcher(tmp_path, NEWS_MS=600))
    first, second = lines(done)
    assert "; incomplete: ended by exec. Next: custream report t.json; custream open t.json" in first and GOOD.fullmatch(second)


# ---- how a process ended ----

TELLS_LATER = tuple(map(int, re.match(r"(\d+)\.(\d+)", os.uname().release).groups())) >= (6, 16)  # how a process ended of which its parent has been told


@pytest.mark.parametrize("news_ms", [0, 600])
def test_a_child_is_killed_and_the_program_is_not(build, tmp_path, news_ms):
    """The shell asks at once how its child ended, and the watcher may come to hear of the child only after that."""
    done = run_under(build, tmp_path, "sh", "-c", f"{build}/tests/ending kill; {build}/tests/ending exit", options=["-o", "t-%p.json"], env=slow_watcher(tmp_path, NEWS_MS=news_ms))
    killed, good = sorted(lines(done), key=lambda line: bool(GOOD.fullmatch(line)))  # in whichever order their ends are seen
    assert done.returncode == 5 and GOOD.fullmatch(good)
    assert BY.format("SIGKILL") in killed or (not TELLS_LATER and BY.format("an unknown cause") in killed)


OLDER_KERNEL = """
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
static int hung_up;
static int watches(void)
{
    char name[16] = "";
    return !prctl(PR_GET_NAME, name) && !strcmp(name, "custream-watch");
}
int ioctl(int fd, unsigned long request, void *given) { return watches() ? errno = ENOTTY, -1 : (int)syscall(SYS_ioctl, fd, request, given); }
ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    const ssize_t n = syscall(SYS_recvmsg, fd, message, flags);
    hung_up += !n && watches();
    return n;
}
int close(int fd)
{
    if (hung_up == 1) {
        hung_up++;
        syscall(SYS_close, (int)syscall(SYS_open, getenv("HUNG_UP"), O_CREAT | O_WRONLY, 0600));
        while (access(getenv("ASKED"), F_OK)) usleep(1000);
    }
    return (int)syscall(SYS_close, fd);
}
"""
ASKS_WHEN_IT_HAS_HUNG_UP = """
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:])
while not os.path.exists(os.environ["HUNG_UP"]): pass
print(child.wait(), flush=True)
open(os.environ["ASKED"], "w").close()
"""


def test_an_older_kernel_tells_until_the_parent_has_asked(build, tmp_path):
    """The watcher looks as soon as the child hangs up, which is before its parent can ask."""
    subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", tmp_path / "older.so"], input=OLDER_KERNEL, text=True, check=True)
    env = {"LD_PRELOAD": str(tmp_path / "older.so"), "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0", "HUNG_UP": str(tmp_path / "hung_up"), "ASKED": str(tmp_path / "asked")}
    done = run_under(build, tmp_path, sys.executable, "-c", ASKS_WHEN_IT_HAS_HUNG_UP, build / "tests/ending", "kill", options=["-o", "t.json"], env=env)
    assert done.stdout.splitlines()[-1] == "-9" and BY.format("SIGKILL") in only_line(done), done.stderr
