/*
 * The control thread, "custream-ctl": answers `custream ctl` (CUSTREAM_CTL), opens and closes windows of time, and looks at the trigger's file (trigger.c).
 *
 * It is apart from the program's descriptors (base/apart.h), so that its sockets have no number in the program and no child inherits them. What it has to say it
 * answers. It blocks in poll alone, holds no lock there, and ends with the process. Where the program has shut itself in (base/filters.h), nobody is answered any
 * more: the calls that this takes may be the process's end. Then it sleeps where it would have waited for somebody.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "shim/base/aide.h"
#include "shim/base/apart.h"
#include "shim/base/clock.h"
#include "shim/base/control.h"
#include "shim/base/filters.h"
#include "shim/base/keep.h"
#include "shim/base/log.h"
#include "shim/base/memory.h"
#include "shim/base/options.h"
#include "shim/base/owner.h"
#include "shim/base/plain.h"
#include "shim/base/worker.h"
#include "shim/process/inside.h"

/* CROWDED_MS: how long a client may say nothing where there is no place for another one. */
enum { CLIENTS = 32, PATIENCE_MS = 2000, CROWDED_MS = 100, LOOK_MS = 500 };

static struct cs_worker worker;
static _Atomic bool begun;
static bool listens;
static const char *_Atomic why_deaf; /* it does not listen, though it should */

/* --- the thread's socket --- */

static int listening(void)
{
    char name[64] = "";
    struct sockaddr_un address;
    ssize_t n = readlink("/proc/self/ns/pid", name, sizeof name - 1);
    if (n < 0) *name = 0;
    socklen_t length = cs_control_address(&address, getpid(), name);
    int fd = cs_apart_keep(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (fd >= 0 && !bind(fd, (struct sockaddr *)&address, length) && !listen(fd, CLIENTS)) return fd;
    cs_store_rel(&why_deaf, errno == EADDRINUSE ? "its socket's name is taken" : cs_plain_error(errno));
    if (fd >= 0) close(fd);
    return -1;
}

/* --- who asks --- */

static struct client {
    int fd;
    cs_u64 since; /* ns */
    bool holds;   /* calls are recorded for it */
} clients[CLIENTS];
static int client_count;

/* The user whose process this is, and root. */
static bool may_ask(int fd) { return cs_peer_is_us_or_root(fd, NULL); }

/* Whether the program has shut itself in, so that nobody is answered. */
static bool is_shut(void) { return listens && !cs_option_is(CS_OPTION_CTL, "on") && cs_filters_came(); }

static void answer(int fd, const char *text)
{
    if (!is_shut()) send(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void refuse(int fd, const char *why)
{
    char line[64];
    snprintf(line, sizeof line, "%s %s\n", cs_answer_error, why);
    answer(fd, line);
}

static void take_client(int listener)
{
    int fd = cs_apart_keep(accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd < 0) return;
    if (may_ask(fd)) {
        clients[client_count++] = (struct client){fd, cs_monotonic_ns(), false};
        return;
    }
    refuse(fd, "this process belongs to another user");
    close(fd);
}

/* Who has gone without waiting for the answer has been told that nothing was done. */
static bool has_gone(int fd)
{
    struct pollfd one = {.fd = fd, .events = POLLRDHUP};
    return poll(&one, 1, 0) > 0 && one.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

/* `custream record` has said `end`, has gone, or is told that somebody else ended it, or why (`error`). */
static void end_record(struct client *client, const char *error)
{
    static char line[CS_CONTROL_ANSWER];
    client->holds = false;
    cs_ctl_end_record(line, sizeof line);
    if (error) refuse(client->fd, error);
    else answer(client->fd, line);
}

static int holders(void)
{
    int n = 0;
    for (int i = 0; i < client_count; i++) n += clients[i].holds;
    return n;
}

/* Their connections are found closed in the next round. */
static void end_all_records(void)
{
    cs_trigger_end();
    for (int i = 0; i < client_count; i++) {
        if (!clients[i].holds) continue;
        end_record(&clients[i], NULL);
        shutdown(clients[i].fd, SHUT_RDWR);
    }
}

/* Whether the client stays. */
static bool serve(struct client *client)
{
    static char request[CS_CONTROL_REQUEST + 1], line[CS_CONTROL_ANSWER];
    const int fd = client->fd;
    ssize_t n = recv(fd, request, CS_CONTROL_REQUEST, MSG_TRUNC); /* what is left unread breaks the connection before the answer */
    if (client->holds) {
        end_record(client, NULL);
        return false;
    }
    if (n <= 0 || has_gone(fd)) return false;
    if (n > CS_CONTROL_REQUEST) {
        refuse(fd, "the request is too long");
        return false;
    }
    request[n] = 0;
    const enum cs_ctl_then then = cs_ctl_answer(request, line, sizeof line);
    if (then == CS_CTL_ENDS) end_all_records();
    client->holds = then == CS_CTL_HOLDS;
    if (client->holds && holders() > CLIENTS / 2) { /* others must be able to ask */
        end_record(client, "too many record this process at once");
        return false;
    }
    answer(fd, line);
    return client->holds;
}

/* --- the thread --- */

static int timeout_ms(cs_u64 due_ns)
{
    const int look_ms = client_count < CLIENTS ? LOOK_MS : CROWDED_MS;
    if (client_count && due_ns > (cs_u64)look_ms * 1000000) return look_ms;
    if (due_ns == UINT64_MAX) return -1;
    return due_ns / 1000000 < 3600000 ? (int)(due_ns / 1000000) + 1 : 3600000;
}

static void look_after_clients(const struct pollfd *polled)
{
    const cs_u64 patience_ns = (client_count < CLIENTS ? PATIENCE_MS : CROWDED_MS) * 1000000ull;
    for (int i = 0; i < client_count; i++) {
        bool late = !clients[i].holds && cs_monotonic_ns() - clients[i].since > patience_ns;
        bool stays = !polled[i].revents && !late;
        if (!stays) stays = serve(&clients[i]); /* a late one too: it may have asked while another was served */
        if (stays) continue;
        close(clients[i].fd);
        clients[i].fd = -1;
    }
    int kept = 0;
    for (int i = 0; i < client_count; i++)
        if (clients[i].fd >= 0) clients[kept++] = clients[i];
    client_count = kept;
}

/* Nobody asks any more, and what was recorded for somebody ends. */
static void shut(int *listener)
{
    for (int i = 0; i < client_count; i++) {
        if (clients[i].holds) cs_ctl_end_record(NULL, 0);
        close(clients[i].fd);
    }
    client_count = 0;
    if (*listener >= 0) close(*listener);
    *listener = -1;
}

/* False: nobody says anything, or nobody can. */
static bool wait_for_clients(struct pollfd *polled, int ms)
{
    if (polled->fd < 0 && !client_count) return cs_worker_pause(&worker, (ms < 0 ? 3600000 : (cs_u64)ms) * 1000000), false;
    if (poll(polled, 1 + (nfds_t)client_count, ms) >= 0) return true;
    nanosleep(&(struct timespec){0, 10000000}, NULL); /* no memory: not for long, let us hope */
    return false;
}

static void *run(void *unused)
{
    (void)unused;
    prctl(PR_SET_NAME, "custream-ctl");
    int listener = -1;
    client_count = 0;
    const bool apart = (listens || cs_trigger_wanted()) && cs_apart();
    if (listens && !apart) cs_store_rel(&why_deaf, cs_plain_error(errno));
    cs_trigger_begin(apart);
    if (listens && apart) listener = listening(), cs_filters_begin();
    if (listener < 0 && !cs_window_has_time() && !(apart && cs_trigger_wanted())) {
        cs_worker_set(&worker, CS_WORKER_FAILED);
        return NULL;
    }
    cs_worker_move(&worker, CS_WORKER_STARTING, CS_WORKER_RUNNING);
    for (;;) {
        if (is_shut()) shut(&listener); /* what came last may have taken seconds */
        struct pollfd polled[1 + CLIENTS] = {{.fd = client_count < CLIENTS ? listener : -1, .events = POLLIN}};
        for (int i = 0; i < client_count; i++) polled[1 + i] = (struct pollfd){.fd = clients[i].fd, .events = POLLIN};
        const cs_u64 window = cs_window_due(), trigger = cs_trigger_due();
        const bool some = wait_for_clients(polled, timeout_ms(window < trigger ? window : trigger));
        if (is_shut()) shut(&listener);
        else if (some) look_after_clients(polled + 1);
        if (some && listener >= 0 && polled[0].revents & POLLIN) take_client(listener);
    }
}

void cs_ctl_start(void)
{
    if (CS_LIKELY(cs_load(&begun)) || atomic_exchange(&begun, true)) return;
    CS_KEEP_ERRNO;
    bool acts = !cs_option_is(CS_OPTION_TRACE, "off") || cs_mode_ever_steered();
    listens = cs_option_is(CS_OPTION_CTL, "on") || (cs_option_is(CS_OPTION_CTL, "auto") && acts);
    const bool alone = cs_window_has_time() || cs_trigger_wanted(); /* it has something to do where nobody asks */
    if (!listens && cs_option_is(CS_OPTION_WINDOW, "ctl") && acts && !alone) cs_log(CS_LOG_WARN, "CUSTREAM_CTL=off beside CUSTREAM_WINDOW=ctl: nobody can ask, so nothing is recorded");
    if (!listens && !alone) return;
    cs_store(&why_deaf, NULL);
    bool made = cs_aide_start_worker(&worker, run);
    if (!made && cs_trigger_wanted()) cs_refused("CUSTREAM_TRIGGER, which nobody looks at");
    if (!made && cs_window_has_time()) cs_refused("CUSTREAM_WINDOW, which does not open or close by the clock");
    const char *why = made ? cs_load_acq(&why_deaf) : "its thread could not be started";
    if (why) cs_log(cs_option_is(CS_OPTION_CTL, "on") ? CS_LOG_WARN : CS_LOG_INFO, "custream ctl can't reach this process: %s", why);
}

void cs_ctl_after_fork_in_child(void)
{
    cs_store(&begun, false);
    cs_store(&worker.state, CS_WORKER_IDLE);
    cs_trigger_after_fork_in_child();
}
