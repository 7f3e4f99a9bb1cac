/* custream record: a process records while it is connected to this command, so no longer than this
 * command runs. */
#define _GNU_SOURCE /* ppoll */
#include "tools/custream/live/live.h"
#include "tools/custream/trace/row.h"

#include <poll.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

static const char NAME[] = "custream record";

/* The recording of one process. */
struct recording {
    struct listener *listener;
    struct about begun, ended;
    /* REFUSED: the process does not record; TOLD: `ended` is known; SHUT_IN: the process can answer
     * nobody now */
    enum { ASKED, REFUSED, WAITING, ASKED_TO_END, TOLD, SHUT_IN, GONE } state;
    bool early; /* somebody else ended the recording */
    /* neither the process nor its file says where the recording ends: events may be missing */
    bool partly;
    double seconds;
    unsigned long long image; /* the program that the process ran at the begin: peer_image() */
    /* to: the output; NULL: there is none. kept: a copy of the process's file beside the output,
     * made if the process ends while others still record. */
    const char *to;
    int kept;
};

static volatile sig_atomic_t interrupted;
static void interrupt(int number)
{
    interrupted = number;
    signal(number, SIG_DFL); /* a second signal ends this command at once */
}

static double now(void) { return (double)peer_clock_ms() * 1e-3; }

/* --- recording --- */

/* Reads the answer of a process that has said something or has ended. */
static void hear(struct recording *r, double since)
{
    struct peer *peer = &r->listener->peer;
    if (r->state == ASKED) {
        r->state = peer_hear_about(peer, &r->begun) ? WAITING : REFUSED;
        if (r->state == REFUSED) listener_leave(NAME, r->listener);
        else r->image = peer_image(peer->pid);
        return;
    }
    r->early = r->state == WAITING;
    r->seconds = now() - since;
    r->state = peer_hear_about(peer, &r->ended)     ? TOLD
               : peer_has_shut_itself_in(peer->pid) ? SHUT_IN
                                                    : GONE;
    peer_close(peer);
}

static struct extract extract_now(const struct recording *r)
{
    const bool told = r->state == TOLD;
    struct extract extract =
        extract_of(&r->listener->peer, told ? &r->ended : &r->begun, (int64_t)r->begun.now);
    extract.base = r->begun.base;
    extract.parts = r->begun.parts;
    extract.kept = r->kept;
    if (!told) extract.events_end = 0, extract.until = INT64_MAX;
    return extract;
}

static size_t count_in(const struct recording *all, size_t count, unsigned state)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++) n += all[i].state == state;
    return n;
}

/* Waits until the time `until`, until no process is in `state`, or for Ctrl-C if
 * `interruptible`. */
static void wait_until(struct recording *all, size_t count, unsigned state, double since,
    double until, bool interruptible, const sigset_t *mask)
{
    struct pollfd *polled = array_zeros(count, sizeof *polled);
    for (;;) {
        for (size_t i = 0; i < count; i++)
            polled[i] = (struct pollfd){.fd = all[i].listener->peer.fd, .events = POLLIN};
        const double left = until - now();
        if (!count_in(all, count, state) || left <= 0 || (interruptible && interrupted)) break;
        const struct timespec time = {(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
        const int got = ppoll(polled, (nfds_t)count, &time, mask);
        for (size_t i = 0; i < count && got > 0; i++) {
            if (!polled[i].revents) continue;
            hear(&all[i], since);
            if (all[i].state != GONE || !all[i].to || !count_in(all, count, WAITING)) continue;
            const struct extract extract = extract_now(&all[i]);
            all[i].kept = extract_keep(&extract, all[i].to);
        }
    }
    free(polled);
}

/* Asks all processes to record. Each process records from its answer on, without waiting for a slow
 * process. */
static void begin(
    struct recording *all, struct listeners *chosen, const char *to, const sigset_t *before)
{
    enum { PATIENCE_S = 20, TOGETHER_S = 3 };
    const double since = now();
    listeners_ask(NAME, chosen, cs_ask_record, TOGETHER_S * 1000);
    for (size_t i = 0; i < chosen->count; i++)
        all[i] = (struct recording){.listener = chosen->each[i],
            .state = chosen->each[i]->answers ? ASKED : REFUSED,
            .to = to};
    wait_until(all, chosen->count, ASKED, since, since + TOGETHER_S, true, before);
    for (size_t i = 0; i < chosen->count; i++)
        if (all[i].state == ASKED && peer_is_stopped(all[i].listener->peer.pid))
            hear(&all[i], since);
    if (!count_in(all, chosen->count, WAITING))
        wait_until(all, chosen->count, ASKED, since, since + PATIENCE_S, true, before);
}

/* Moves the processes that have recorded to the front, and returns how many there are. */
static size_t record(struct recording *all, struct listeners *chosen, const struct choice *choice,
    const sigset_t *before)
{
    /* An answer takes up to twelve seconds: shim/process/ctl_answer.c. */
    enum { PATIENCE_S = 30, TOGETHER_S = 15 };
    begin(all, chosen, choice->to, before);
    const double since = now();
    const size_t recording = count_in(all, chosen->count, WAITING);
    if (recording && isatty(STDERR_FILENO))
        fprintf(stderr, "%s: %zu process%s record%s; Ctrl-C ends it\n", NAME, recording,
            recording == 1 ? "" : "es", recording == 1 ? "s" : "");
    wait_until(all, chosen->count, WAITING, since,
        choice->time ? since + (double)choice->time * 1e-9 : 1e18, true, before);
    size_t count = 0;
    for (size_t i = 0; i < chosen->count; i++) {
        if (all[i].state == ASKED) hear(&all[i], 0); /* too late: fails at once */
        if (all[i].state == REFUSED) continue;
        struct recording *r = &all[count++];
        *r = all[i];
        if (r->state != WAITING) continue;
        r->state = ASKED_TO_END;
        peer_ask(&r->listener->peer, cs_ask_end);
    }
    wait_until(all, count, ASKED_TO_END, since, now() + (count > 1 ? TOGETHER_S : PATIENCE_S),
        false, before);
    return count;
}

/* --- the result --- */

static bool output_write(const char *to, struct recording *all, size_t count, size_t *missing)
{
    struct cut_reach cut = {0};
    struct extract *extracts = array_zeros(count, sizeof *extracts);
    for (size_t i = 0; i < count; i++) extracts[i] = extract_now(&all[i]);
    /* Whether the file has nothing but this recording, and gets nothing more. */
    const bool whole = count == 1 && !all->begun.recorded && !all->begun.parts &&
                       (all->state == GONE || (all->state == TOLD && !all->ended.recording));
    const bool good =
        whole ? copy_write(NAME, to, extracts) : cut_write(NAME, to, extracts, count, &cut);
    *missing = cut.missing;
    for (size_t i = 0; i < count; i++) {
        all[i].partly = all[i].state != TOLD && !extracts[i].complete;
        if (extracts[i].kept > 0) close(extracts[i].kept);
    }
    free(extracts);
    return good;
}

struct counts {
    unsigned long long calls, works, lost;
    /* unknown: some file could not be read; partly: some file may lack events */
    bool unknown, partly;
};

struct counting {
    struct texts texts;
    struct counts counts;
};

static void row_count(void *of, const struct trace_row *row)
{
    struct counting *counting = of;
    const char *cat = text_of(&counting->texts, row_word(row, KEY_CAT));
    if (strcmp(text_of(&counting->texts, row_word(row, KEY_PH)), "X")) return;
    counting->counts.calls += !strcmp(cat, "cuda_driver");
    counting->counts.works +=
        ONE_OF(cat, "kernel", "gpu_memcpy", "gpu_memset", "gpu_graph", "gpu_range");
    if (!strcmp(cat, "cs_loss"))
        counting->counts.lost += (unsigned long long)row_number(row, KEY_COUNT, 0);
}

/* Counts the events of the output: a process that has ended cannot tell its counts any more. */
static struct counts counts_of(const char *to)
{
    struct counting counting = {0};
    char error[256];
    texts_init(&counting.texts);
    counting.counts.unknown =
        trace_read(to, &counting.texts, &(struct trace_sink){.of = &counting, .row = row_count},
            error) != TRACE_WHOLE;
    texts_free(&counting.texts);
    return counting.counts;
}

static void counts_print(const char *path, const struct counts *counts)
{
    text_put(stdout, path);
    printf(": %llu call%s, %llu GPU operation%s, ", counts->calls, counts->calls == 1 ? "" : "s",
        counts->works, counts->works == 1 ? "" : "s");
    if (counts->unknown) fputs("not counting what could not be read", stdout);
    else if (counts->partly) fputs("as far as its file goes", stdout);
    else if (counts->lost) printf("%llu lost", counts->lost);
    else fputs("nothing lost", stdout);
}

/* Whether the process executed another program. Its socket closes at an exec and also when the
 * process ends; only a little later does /proc tell which of the two it was. */
static bool has_executed(const struct recording *r)
{
    enum { TRIES = 100, PAUSE_NS = 10000000 };
    const int pid = r->listener->peer.pid;
    for (int try = 0; try < TRIES && r->image && !peer_ended(pid); try++) {
        const unsigned long long image = peer_image(pid);
        if (image != r->image) return image;
        nanosleep(&(struct timespec){0, PAUSE_NS}, NULL);
    }
    return false;
}

/* Says on stderr what went wrong with a recording. Returns whether all went well. */
static bool notes_print(const struct recording *r, bool cut_short)
{
    char who[160];
    const char *file = r->begun.trace;
    snprintf(who, sizeof who, "process %d (%s)", r->listener->peer.pid, r->listener->command);
    if (r->state == GONE)
        return complained(NAME, "%s %s after %.1f s; its file is %s", who,
            has_executed(r) ? "executed another program, which ended the recording" : "ended",
            r->seconds, file);
    if (r->state == SHUT_IN)
        return complained(NAME,
            "%s has installed a seccomp filter, which ended the recording after %.1f s; its file "
            "is %s",
            who, r->seconds, file);
    if (r->state == ASKED_TO_END)
        return complained(NAME, "%s does not answer; its file is %s", who, file);
    if (r->ended.full)
        return complained(NAME,
            "%s: its trace is full, so recording ended before; CUSTREAM_TRACE_MAX with rotate goes "
            "on",
            who);
    return !r->early || cut_short ||
           complained(NAME, "%s: custream ctl off ended it after %.1f s", who, r->seconds);
}

/* Prints what was recorded. `missing`: how many processes are not in the output. */
static void closing_print(const struct recording *all, size_t count, const char *to, size_t missing)
{
    struct counts sum = {0};
    const bool told = count_in(all, count, TOLD) == count && !missing;
    if (to && !told) sum = counts_of(to);
    for (size_t i = 0; i < count; i++) {
        const struct recording *r = &all[i];
        struct counts own = {0};
        sum.partly |= r->partly;
        struct counts *counts = to ? &sum : &own;
        if (told || (!to && r->state == TOLD)) {
            counts->calls += r->ended.recorded - r->begun.recorded;
            counts->works += r->ended.works - r->begun.works;
            counts->lost += r->ended.lost - r->begun.lost;
        }
        if (to || r->state != TOLD) continue;
        if (count > 1) printf("%d (%s): ", r->listener->peer.pid, r->listener->command);
        counts_print(r->ended.trace, &own);
        printf(".%s Open it: custream open ", r->ended.recording ? " It goes on recording." : "");
        text_put(stdout, r->ended.trace);
        putchar('\n');
    }
    if (!to) return;
    sum.unknown |= missing > 0;
    counts_print(to, &sum);
    printf(". Open it: custream open %s\n", to);
}

/* --- the command --- */

static int record_chosen(const struct choice *choice, struct listeners *chosen)
{
    struct recording *all = array_zeros(chosen->count, sizeof *all);
    /* These signals end the recording, not this command. Only ppoll() lets them in. */
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    sigset_t mask, before;
    sigemptyset(&mask);
    for (size_t i = 0; i < CS_COUNT(ends); i++) {
        sigaddset(&mask, ends[i]);
        if (signal(ends[i], interrupt) == SIG_IGN) signal(ends[i], SIG_IGN);
    }
    sigprocmask(SIG_BLOCK, &mask, &before);
    const size_t count = record(all, chosen, choice, &before);
    bool good = count == chosen->count + chosen->left_out;
    sigprocmask(SIG_SETMASK, &before, NULL);
    for (size_t i = 0; i < count; i++) good &= notes_print(&all[i], interrupted);
    size_t missing = 0;
    const bool written = count && (!choice->to || output_write(choice->to, all, count, &missing));
    if (written) closing_print(all, count, choice->to, missing);
    good &= !missing;
    free(all);
    return !written ? STATUS_UNUSABLE : good ? STATUS_OK : STATUS_BROKEN;
}

int command_record(int argc, char **argv)
{
    struct choice choice = {0}; /* time 0: the processes record until Ctrl-C */
    return choice_run(NAME, &choice, "", argc, argv, record_chosen);
}
