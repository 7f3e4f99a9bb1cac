#define _GNU_SOURCE
#include "shim/base/log.h"

#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "shim/base/append.h"
#include "shim/base/keep.h"

enum { LINE = 1024, LEFT = 64, APART = 4, PATIENCE_MS = 100 };

static _Atomic int level_max = CS_LOG_WARN;
void (*cs_log_left)(void);

void cs_log_set_level(enum cs_log_level level) { cs_store(&level_max, (int)level); }

/* --- which file stderr is --- */

/* Read-mostly: what constructors touch lies on one page. */
CS_READ_MOSTLY static struct {
    _Atomic int state;
    dev_t device;
    ino_t inode;
} standard_error;
enum { UNKNOWN, LOOKING, KNOWN, ABSENT };

void cs_log_remember(void)
{
    CS_KEEP_ERRNO;
    struct stat st;
    const bool there = !fstat(STDERR_FILENO, &st);
    if (there) standard_error.device = st.st_dev, standard_error.inode = st.st_ino;
    cs_store_rel(&standard_error.state, there ? KNOWN : ABSENT);
}

/* By the constructor, or for a line that comes before it. */
__attribute__((constructor)) static void remember_once(void)
{
    int unknown = UNKNOWN;
    if (atomic_compare_exchange_strong(&standard_error.state, &unknown, LOOKING)) cs_log_remember();
}

static bool is_the_same(void)
{
    struct stat st;
    remember_once();
    if (cs_load_acq(&standard_error.state) != KNOWN || fstat(STDERR_FILENO, &st)) return false;
    return st.st_dev == standard_error.device && st.st_ino == standard_error.inode;
}

static _Atomic bool is_terminal;

static bool is_a_terminal(int fd)
{
    struct termios unused;
    return !ioctl(fd, TCGETS, &unused);
}

bool cs_log_is_terminal(void) { return cs_load(&is_terminal); }

void cs_log_look_for_terminal(void)
{
    CS_KEEP_ERRNO;
    cs_store(&is_terminal, is_the_same() && is_a_terminal(STDERR_FILENO));
}

/* --- writing --- */

/* A pipe that is full, or that nobody reads, gets nothing. */
static bool takes_a_line(void)
{
    struct pollfd one = {.fd = STDERR_FILENO, .events = POLLOUT};
    const int ready = poll(&one, 1, PATIENCE_MS);
    return ready < 0 || (ready > 0 && one.revents == POLLOUT); /* where it can't be told, as far as we know it does */
}

/* Of the signals that a write may raise. SIGTTOU is for a terminal that wants none of the background's; where it is blocked, it takes the line. */
static void take_back(int signal)
{
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, signal);
    sigtimedwait(&one, NULL, &(struct timespec){0, 0});
}

/* The reader may go at this very moment, or the file be at its limit: the signal of our write is taken back, and one that was there before is left. */
static void put(const char *line, size_t n)
{
    sigset_t raised, before, pending;
    if (!is_the_same() || !takes_a_line()) return;
    sigemptyset(&raised);
    sigaddset(&raised, SIGPIPE);
    sigaddset(&raised, SIGXFSZ);
    sigaddset(&raised, SIGTTOU);
    if (pthread_sigmask(SIG_BLOCK, &raised, &before)) return;
    sigemptyset(&pending);
    sigpending(&pending);
    if (write(STDERR_FILENO, line, n) < 0) {
        const int signal = errno == EPIPE ? SIGPIPE : errno == EFBIG ? SIGXFSZ : 0;
        if (signal && sigismember(&pending, signal) != 1) take_back(signal);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* --- lines of threads that have no stderr --- */

/* A queue of several writers and one reader at a time, without locks: the slot of place p is free while its turn is p, and full once it is p + 1. Turns are kept
 * less the slot's index, so that zeroes are an empty queue. */
static struct slot {
    _Atomic cs_u32 turn;
    cs_u32 size;
    char line[LINE];
} left[LEFT];
static _Atomic cs_u32 left_in, left_lost;
static _Atomic cs_u32 left_out; /* of whoever relays */
static _Atomic bool relays;
static _Atomic int apart[APART]; /* thread ids */

void cs_log_apart(void)
{
    const int self = (int)syscall(SYS_gettid);
    for (int i = 0, nobody = 0; i < APART; i++, nobody = 0)
        if (atomic_compare_exchange_strong(&apart[i], &nobody, self)) return;
}

static bool is_apart(void)
{
    if (!cs_load(&apart[0])) return false;
    const int self = (int)syscall(SYS_gettid);
    for (int i = 0; i < APART; i++)
        if (cs_load(&apart[i]) == self) return true;
    return false;
}

static cs_u32 turn_of(const struct slot *slot) { return cs_load_acq(&slot->turn) + (cs_u32)(slot - left); }

/* False: the queue is full. Place and slot are read anew together: a slot that is full with place p has the turn that place p + 1 waits for. */
static bool leave(const char *line, size_t n)
{
    struct slot *slot;
    cs_u32 place;
    do {
        place = cs_load(&left_in);
        slot = &left[place % LEFT];
        if ((int)(turn_of(slot) - place) < 0) return false;
    } while (turn_of(slot) != place || !atomic_compare_exchange_weak(&left_in, &place, place + 1));
    memcpy(slot->line, line, n);
    slot->size = (cs_u32)n;
    cs_store_rel(&slot->turn, place + 1 - place % LEFT);
    return true;
}

static void wait_a_little(void) { nanosleep(&(struct timespec){0, 1000000}, NULL); }

/* Whoever prints is given time to. */
static void leave_for_others(const char *line, size_t n)
{
    void (*tell)(void) = cs_log_left;
    bool done = leave(line, n);
    if (tell) tell();
    for (int ms = 0; !done && tell && ms < PATIENCE_MS; ms++) wait_a_little(), done = leave(line, n);
    if (!done) cs_add(&left_lost, 1);
}

void cs_log_relay(void)
{
    CS_KEEP_ERRNO;
    CS_KEEP_UNCANCELLED;
    for (int ms = 0; atomic_exchange(&relays, true); ms++) { /* one after the other, so that lines keep their order and none is half printed at the end */
        if (ms == PATIENCE_MS) return;
        wait_a_little();
    }
    cs_u32 out = cs_load(&left_out);
    for (struct slot *slot; turn_of(slot = &left[out % LEFT]) == out + 1; cs_store(&left_out, ++out)) {
        put(slot->line, slot->size);
        cs_store_rel(&slot->turn, out + LEFT - out % LEFT);
    }
    const cs_u32 lost = atomic_exchange(&left_lost, 0);
    if (lost) cs_log(CS_LOG_WARN, "%u more lines came too fast", lost);
    cs_store_rel(&relays, false);
}

void cs_log_settle(void)
{
    for (int ms = 0; ms < PATIENCE_MS && (turn_of(&left[cs_load(&left_out) % LEFT]) == cs_load(&left_out) + 1 || cs_load(&relays)); ms++) wait_a_little();
}

void cs_log_after_fork_in_child(void)
{
    memset(left, 0, sizeof left);
    cs_store(&left_out, 0);
    cs_store(&left_in, 0);
    cs_store(&left_lost, 0);
    cs_store(&relays, false);
    for (int i = 0; i < APART; i++) cs_store(&apart[i], 0);
}

/* --- lines --- */

static void write_line(const char *head, const char *format, va_list args)
{
    CS_KEEP_ERRNO;
    CS_KEEP_UNCANCELLED;
    char line[LINE];
    size_t n = cs_append(line, sizeof line - 1, 0, "custream: %s: ", head);
    n = cs_append_list(line, sizeof line - 1, n, format, args);
    for (size_t i = 0; i < n; i++) /* values may hold anything: one line stays one line */
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7f) line[i] = '?';
    line[n++] = '\n';
    if (is_apart()) leave_for_others(line, n);
    else put(line, n);
}

void cs_log(enum cs_log_level level, const char *format, ...)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};
    va_list args;
    if ((int)level > cs_load(&level_max)) return;
    va_start(args, format);
    write_line(names[level], format, args);
    va_end(args);
}

void cs_log_report(const char *subject, const char *format, ...)
{
    va_list args;
    if (CS_LOG_WARN > cs_load(&level_max)) return;
    va_start(args, format);
    write_line(subject, format, args);
    va_end(args);
}
