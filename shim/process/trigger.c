/*
 * CUSTREAM_TRIGGER: a file that says which ranks are to record which seconds, so that all processes of a job record the same ones.
 *
 *     custream trigger, or anybody        writes the file; it is replaced as a whole
 *     cs_trigger_due, the control thread  looks once a second, by one lstat, and reads the file if it is new (base/settings.c knows its lines)
 *     cs_window_hold                      from the start that it names to the end, as `custream record` does
 *     trace/windows.h                     the trace says who opened the window
 *
 * All that is known stands in `now`, the control thread's alone. The newest good file counts: what an older one planned is forgotten. Nothing is read from a file
 * that others could have written. Times are those of CLOCK_REALTIME, which hosts agree on; once a recording has begun, its end is by the monotonic clock.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "shim/base/apart.h"
#include "shim/base/clock.h"
#include "shim/base/environment.h"
#include "shim/base/log.h"
#include "shim/base/options.h"
#include "shim/base/owner.h"
#include "shim/base/plain.h"
#include "shim/base/settings.h"
#include "shim/process/inside.h"

/* LEAD: so long before the start all is made ready. A profiler takes its time to come up, and not the same on all hosts. */
static const cs_u64 LOOK_NS = 1000000000, LEAD_NS = 3000000000;

static struct {
    bool looks, ready, holds; /* at a file; for the recording to come; calls are recorded */
    bool planned;             /* from then to then, ns since 1970 */
    cs_u64 from_ns, until_ns;
    cs_u64 looked_ns, ends_ns; /* monotonic: the last look; when the recording ends */
    struct known {             /* the file that was looked at last */
        dev_t device;
        ino_t inode;
        off_t size;
        struct timespec changed;
    } known;
    bool again;     /* it could not be read, and may be the next time */
    char said[512]; /* what was wrong with it: once is enough */
} now;

/* The newest good file's text, where its policy stands; and one that is being read. */
static char text[CS_TRIGGER_MOST + 1], fresh[CS_TRIGGER_MOST + 1];
static struct cs_trigger trigger;

static const char *path(void) { return cs_option_text(CS_OPTION_TRIGGER); }

bool cs_trigger_wanted(void) { return *path() && !cs_option_is(CS_OPTION_TRACE, "off"); }

static cs_u64 wall_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return (cs_u64)time.tv_sec * 1000000000 + (cs_u64)time.tv_nsec;
}

static void complain(const char *what, const char *which)
{
    char line[sizeof now.said];
    snprintf(line, sizeof line, "%s%s", what, which);
    if (!strcmp(line, now.said)) return;
    strcpy(now.said, line);
    cs_log(CS_LOG_WARN, "CUSTREAM_TRIGGER=%.200s: %s; it is ignored until it changes", path(), line);
}

/* --- recording --- */

static void policy_comes(void)
{
    char error[1024] = "", *end = text + (trigger.policy - text) + trigger.policy_length;
    const char behind = *end;
    *end = 0;
    if (!cs_ctl_policy(trigger.policy, error, sizeof error)) cs_log(CS_LOG_WARN, "CUSTREAM_TRIGGER=%.200s: %s", path(), error);
    *end = behind;
}

static void begin(void)
{
    const char *why;
    now.planned = now.ready = false;
    if (trigger.policy) policy_comes();
    now.holds = cs_window_hold(CS_HELD_BY_TRIGGER, &why);
    if (!now.holds && cs_load_acq(&cs_mode) & CS_MODE_WATCH) cs_log(CS_LOG_WARN, "CUSTREAM_TRIGGER=%.200s: nothing is recorded: %s", path(), why); /* else the process ends */
    const cs_u64 wall = wall_ns(); /* opening takes its time */
    now.ends_ns = cs_monotonic_ns() + (now.until_ns > wall ? now.until_ns - wall : 0);
}

void cs_trigger_end(void)
{
    if (!now.holds) return;
    now.holds = false;
    cs_window_release(CS_HELD_BY_TRIGGER);
    cs_ctl_bring_up_to_date();
}

static void forget_plan(void)
{
    if (now.ready) cs_window_unready();
    now.planned = now.ready = false;
}

/* --- the file --- */

static struct known known_of(const struct stat *file) { return (struct known){file->st_dev, file->st_ino, file->st_size, file->st_mtim}; }

static bool is_known(const struct stat *file)
{
    const struct known k = known_of(file);
    return k.device == now.known.device && k.inode == now.known.inode && k.size == now.known.size && k.changed.tv_sec == now.known.changed.tv_sec &&
           k.changed.tv_nsec == now.known.changed.tv_nsec;
}

static const char ALLOWED[] = "; allowed is a text of at most 64 KiB in a regular file of this user or root that nobody else can write to";

/* NULL: it may be read. */
static const char *unfit(const struct stat *file)
{
    if (!S_ISREG(file->st_mode)) return S_ISLNK(file->st_mode) ? "it is a symbolic link" : "it is no regular file";
    if (!cs_owner_is_us_or_root(file->st_uid) && !cs_name_is_ours(AT_FDCWD, path(), file)) return "it belongs to another user";
    if (file->st_mode & (S_IWGRP | S_IWOTH)) return "others can write to it (its mode)";
    return file->st_size > CS_TRIGGER_MOST ? "it is too large" : NULL;
}

/* The whole file as a text, by its length; -1: it can't be, which was said. */
static ssize_t read_it(void)
{
    struct stat file;
    ssize_t n = 0, got = 1;
    const int fd = cs_apart_keep(open(path(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    const char *why = fd < 0 || fstat(fd, &file) ? cs_plain_error(errno) : unfit(&file); /* the name may be another file's by now */
    while (!why && got > 0 && n < (ssize_t)sizeof fresh) {
        got = read(fd, fresh + n, sizeof fresh - (size_t)n);
        n += got > 0 ? got : 0;
        if (got < 0 && errno == EINTR) got = 1;
        else if (got < 0) why = cs_plain_error(errno);
    }
    if (fd >= 0) close(fd);
    if (!why && n == sizeof fresh) why = "it is too large";
    if (!why && memchr(fresh, 0, (size_t)n)) why = "it is no text";
    if (!why) return now.known = known_of(&file), fresh[n] = 0, n;
    complain(why, ALLOWED);
    return -1;
}

static void take(void)
{
    int line;
    struct cs_trigger asked;
    if (!fresh[strspn(fresh, " \t\r\n")] || !strcmp(fresh, text)) return; /* nothing is asked for yet; or what has been done */
    const char *allowed = cs_trigger_read(fresh, &asked, &line);
    if (allowed) {
        char where[64] = "allowed is ";
        if (line) snprintf(where, sizeof where, "line %d: allowed is ", line);
        complain(where, allowed);
        return;
    }
    *now.said = 0;
    strcpy(text, fresh);
    cs_trigger_read(text, &trigger, &line);
    forget_plan();
    const cs_u64 wall = wall_ns();
    now.from_ns = trigger.start_ns;
    now.until_ns = trigger.start_ns + trigger.duration_ns;
    const bool over = wall >= now.until_ns, named = cs_trigger_names(&trigger, cs_process_rank(&(int){0}));
    if (over) cs_log(CS_LOG_INFO, "CUSTREAM_TRIGGER=%.200s: its time is over", path());
    now.planned = named && !over;
    if (now.holds && now.planned && wall >= now.from_ns) now.planned = false, now.ends_ns = cs_monotonic_ns() + (now.until_ns - wall);
    else if (now.holds) cs_trigger_end();
}

static void look(void)
{
    struct stat file;
    if (lstat(path(), &file)) {
        now.known = (struct known){0};
        if (errno != ENOENT) complain(cs_plain_error(errno), "");
        return;
    }
    const bool same = is_known(&file);
    if (same && !now.again) return;
    if (!same) *now.said = 0;
    now.known = known_of(&file);
    const char *why = unfit(&file);
    if (why) complain(why, ALLOWED); /* not even opened: that may do something */
    now.again = !why && read_it() < 0;
    if (!why && !now.again) take();
}

/* --- the control thread's --- */

void cs_trigger_begin(bool apart)
{
    now.looks = cs_trigger_wanted() && apart;
    if (cs_trigger_wanted() && !apart)
        cs_log(CS_LOG_WARN, "CUSTREAM_TRIGGER=%.200s: the system allows neither close_range nor unshare (%s), so nobody looks at it", path(), cs_plain_error(errno));
}

static cs_u64 until(cs_u64 then, cs_u64 when) { return then > when ? then - when : 0; }

cs_u64 cs_trigger_due(void)
{
    cs_u64 mono = cs_monotonic_ns();
    if (!now.looks) return UINT64_MAX;
    if (!now.looked_ns || mono - now.looked_ns >= LOOK_NS) look(), now.looked_ns = mono;
    if (now.holds && cs_monotonic_ns() >= now.ends_ns) cs_trigger_end();
    cs_u64 wall = wall_ns();
    if (now.planned && wall >= now.until_ns) forget_plan(); /* it was never in time: stopped, or its clock was set */
    if (now.planned && !now.ready && wall + LEAD_NS >= now.from_ns) now.ready = true, cs_window_ready();
    if (now.planned && wall_ns() >= now.from_ns) begin();
    mono = cs_monotonic_ns(), wall = wall_ns();
    cs_u64 due = until(now.looked_ns + LOOK_NS, mono), other = UINT64_MAX;
    if (now.holds) other = until(now.ends_ns, mono);
    else if (now.planned) other = until(now.from_ns, wall);
    return other < due ? other : due;
}

void cs_trigger_after_fork_in_child(void)
{
    memset(&now, 0, sizeof now);
    *text = 0;
}
