/* Whether threads are scarce (base/scarce.h), by files of the kernel's that the test makes: ./proc
 * and ./sys stand for /proc and /sys. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static rlim_t most;
static unsigned who;
static bool container;
static int looked; /* how often all processes were gone through */

static int fake_open(const char *path, int flags) { return open(path + 1, flags); }
static DIR *fake_opendir(const char *path) { return looked++, opendir(path + 1); }
static int fake_getrlimit(int which, struct rlimit *to)
{
    return (void)which, *to = (struct rlimit){most, most}, 0;
}
#include "shim/base/owner.h"
#define cs_owner_is_machines_root(uid) (!(uid) && !container)
#define open            fake_open
#define opendir         fake_opendir
#define getrlimit       fake_getrlimit
#define syscall(number) (who)
#include "shim/base/scarce.c"
#undef open
#undef opendir
#undef getrlimit
#undef syscall
#undef cs_owner_is_machines_root

#include "tests/unit/check.h"

static void put(const char *path, const char *text)
{
    char folders[512], command[600];
    snprintf(folders, sizeof folders, "%s", path);
    *strrchr(folders, '/') = 0;
    snprintf(command, sizeof command, "mkdir -p '%s'", folders);
    REQUIRE(!system(command));
    FILE *file = fopen(path, "w");
    REQUIRE(file && fputs(text, file) >= 0 && !fclose(file));
}

static void put_process(const char *pid, unsigned uid, unsigned threads)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "proc/%s/status", pid);
    snprintf(text, sizeof text,
        "Name:\tx\nUid:\t%u\t0\t0\t0\nFDSize:\t64\nThreads:\t%u\nSigQ:\t0/1\n", uid, threads);
    put(path, text);
}

static void begin(void)
{
    who = 1000, most = RLIM_INFINITY;
    put("proc/loadavg", "0.00 0.01 0.05 1/200 4711\n");
    put("proc/self/cgroup", "0::/a/b\n");
    put_process("1", 0, 100);
    put_process("20", 1000, 30);
    put_process("21", 1000, 5);
}

TEST(a_users_threads)
{
    begin();
    CHECK(!cs_threads_are_scarce() && !looked);
    most = 220; /* whatever the machine has is less */
    CHECK(!cs_threads_are_scarce() && !looked);
    most = 55;
    CHECK(!cs_threads_are_scarce() && looked == 1);
    most = 54;
    CHECK(cs_threads_are_scarce());
    most = 2;
    CHECK(cs_threads_are_scarce());
    who = 0, most = 119;
    CHECK(!cs_threads_are_scarce());
    container = true; /* its root is a user outside */
    CHECK(cs_threads_are_scarce());
    most = 120;
    CHECK(!cs_threads_are_scarce());
}

TEST(a_groups_threads)
{
    begin();
    put("sys/fs/cgroup/a/b/pids.max", "max\n");
    put("sys/fs/cgroup/a/b/pids.current", "7\n");
    CHECK(!cs_threads_are_scarce());
    put("sys/fs/cgroup/a/pids.max", "30\n");
    put("sys/fs/cgroup/a/pids.current", "10\n");
    CHECK(!cs_threads_are_scarce());
    put("sys/fs/cgroup/a/pids.current", "11\n");
    CHECK(cs_threads_are_scarce());
    who = 0;
    CHECK(cs_threads_are_scarce()); /* root's too */
}

TEST(the_group_of_a_container)
{
    begin();
    put("proc/self/cgroup", "0::/\n");
    put("sys/fs/cgroup/pids.max", "12\n");
    put("sys/fs/cgroup/pids.current", "2\n");
    CHECK(cs_threads_are_scarce());
}

TEST(groups_of_version_1)
{
    begin();
    put("proc/self/cgroup", "9:cpu,cpuacct:/x\n8:pids:/job\n");
    put("sys/fs/cgroup/pids/job/pids.max", "40\n");
    put("sys/fs/cgroup/pids/job/pids.current", "20\n");
    CHECK(!cs_threads_are_scarce());
    put("sys/fs/cgroup/pids/job/pids.current", "21\n");
    CHECK(cs_threads_are_scarce());
}

TEST(nothing_is_known)
{
    who = 1000, most = 100;
    CHECK(!cs_threads_are_scarce());
}
