#define _GNU_SOURCE
#include "shim/base/over.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/base/worker.h"

enum { TEXT = 1024 };

static _Atomic int main_status;

int cs_process_main_status(void) { return cs_load(&main_status); }

/* What a profiler makes on our GPU thread has its name, unless it takes another one; and is there for our sake. */
static bool is_ours(int tid, const char *name) { return cs_worker_is(tid) || !strcmp(name, CS_WORKER_GPU_NAME); }

int cs_process_number(void)
{
    char link[32] = "";
    return readlink("/proc/self", link, sizeof link - 1) > 0 ? atoi(link) : 0;
}

static int open_stat(int tid)
{
    char file[64];
    snprintf(file, sizeof file, "/proc/self/task/%d/stat", tid);
    return open(file, O_RDONLY | O_CLOEXEC);
}

/* A thread's name, its state and what it has left with. False: it can't be read, and `gone` tells whether that is so because the thread is there no more. */
static bool look_at(int fd, char text[TEXT], char **name, char *state, int *status, bool *gone)
{
    ssize_t n = fd >= 0 ? pread(fd, text, TEXT - 1, 0) : -1;
    *gone = n < 0 && (errno == ENOENT || errno == ESRCH);
    text[n > 0 ? n : 0] = 0;
    char *end = strrchr(text, ')'), *last = strrchr(text, ' ');
    *name = strchr(text, '(');
    if (!*name || !end || strlen(end) < 3) return false;
    ++*name;
    *end = 0;
    *state = end[2];
    *status = atoi(last); /* the last field */
    return true;
}

/* Whether it may be a living thread of the program's. One that has ended is there no more; the process's first one stays, as a zombie, while others live. */
static bool is_theirs(int tid)
{
    char text[TEXT], *name, state;
    int fd = open_stat(tid), status;
    bool gone, seen = look_at(fd, text, &name, &state, &status, &gone);
    if (fd >= 0) close(fd);
    if (!seen) return !gone; /* no descriptor is left, or no memory */
    return state != 'Z' && state != 'X' && !is_ours(tid, name);
}

static bool only_ours_live(void)
{
    DIR *threads = opendir("/proc/self/task");
    bool others = !threads;
    for (struct dirent *one; !others && (one = readdir(threads));) {
        const int tid = atoi(one->d_name);
        others = tid > 0 && is_theirs(tid);
    }
    if (threads) closedir(threads);
    return !others;
}

static bool main_has_left(int fd)
{
    char text[TEXT], *name, state;
    int status;
    bool gone;
    if (!look_at(fd, text, &name, &state, &status, &gone) || (state != 'Z' && state != 'X')) return false;
    cs_store(&main_status, status);
    return true;
}

static int main_stat = -1; /* the writer's; stays open, so that a program that shuts itself in later sees no more than a read */

static bool is_over(void)
{
    if (main_stat < 0) main_stat = open_stat(cs_process_number());
    return main_has_left(main_stat) && only_ours_live();
}

/* Without a descriptor: whether main is a zombie, which has no folder. */
static bool main_has_no_folder(void)
{
    char file[64], folder[8];
    snprintf(file, sizeof file, "/proc/self/task/%d", cs_process_number());
    if (access(file, F_OK)) return false;
    strcat(file, "/cwd");
    return readlink(file, folder, sizeof folder) < 0 && errno == ENOENT;
}

/* And whether there are no more threads than it and ours. */
static bool only_ours_are_counted(void)
{
    struct stat tasks;
    return !stat("/proc/self/task", &tasks) && tasks.st_nlink == 2 + 1 + (nlink_t)cs_workers_living();
}

/* main has left, so a descriptor for a moment does little harm: it says with what status. Where the writer was killed there may be threads of a profiler's,
 * which are not counted. */
static bool is_over_by_count(void)
{
    const bool killed = cs_workers_killed();
    if (!main_has_no_folder() || !(killed || only_ours_are_counted())) return false;
    const int fd = open_stat(cs_process_number());
    const bool left = main_has_left(fd);
    if (fd >= 0) close(fd);
    return !killed || (left && only_ours_live());
}

bool cs_process_is_over(bool apart)
{
    static int times[2]; /* the writer's, and the watching thread's */
    int *const of = &times[apart];
    *of = (apart ? is_over() : is_over_by_count()) ? *of + 1 : 0;
    return *of > 1;
}

void cs_over_after_fork_in_child(void) { main_stat = -1; } /* a number in the table of the parent's writer */
