#define _GNU_SOURCE
#include "tools/custream/live/listener.h"

#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/custream/live/cut.h"

enum { PATIENCE_MS = 3000 };

/* --- who it is --- */

static const char *last_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* Words of its command line, each with its NUL, and one more NUL. */
static void command_line(int pid, char *text, size_t room)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    FILE *file = fopen(path, "re");
    const size_t n = file ? fread(text, 1, room - 2, file) : 0;
    if (file) fclose(file);
    text[n] = text[n + 1] = 0;
}

/* The first word behind the program that is no option; "" if there is none. */
static const char *first_argument(const char *line)
{
    for (line += strlen(line) + 1; *line == '-'; line += strlen(line) + 1) continue;
    return last_name(line);
}

static void command_note(struct listener *listener)
{
    char line[4096];
    command_line(listener->peer.pid, line, sizeof line);
    const char *program = listener->answers ? listener->about.program : last_name(line),
               *argument = *line ? first_argument(line) : "";
    char text[sizeof listener->command], *to = listener->command;
    struct glyph glyph;
    snprintf(text, sizeof text, "%.60s%s%.32s", program, *argument ? " " : "", argument);
    for (const char *at = text; (at = glyph_next(at, &glyph)) &&
                                to + glyph.length < listener->command + sizeof listener->command;
        to += glyph.length)
        memcpy(to, glyph.bytes, (size_t)glyph.length);
    *to = 0;
}

bool listener_is_named(const struct listener *listener, const char *name)
{
    char line[4096];
    command_line(listener->peer.pid, line, sizeof line);
    const char *names[] = {listener->answers ? listener->about.program : "", last_name(line),
        *line ? first_argument(line) : ""};
    for (size_t i = 0; i < CS_COUNT(names); i++)
        if (*names[i] && !fnmatch(name, names[i], 0)) return true;
    return false;
}

/* --- all of them --- */

struct listener *listeners_add(struct listeners *listeners, const struct peer *peer)
{
    struct listener *listener = array_zeros(1, sizeof *listener);
    listeners->each = array_room(
        listeners->each, listeners->count, &listeners->capacity, sizeof *listeners->each);
    listeners->each[listeners->count++] = listener;
    listener->peer = *peer;
    command_note(listener);
    return listener;
}

static void listener_ask(void *of, struct peer *found)
{
    struct listener *listener = listeners_add(of, found);
    struct peer *peer = &listener->peer;
    listener->asked = true;
    if (peer_is_stopped(peer->pid))
        snprintf(peer->error, sizeof peer->error, "process %d is stopped", peer->pid);
    else listener->answers = peer_ask(peer, "about");
    if (!listener->answers) peer_close(peer);
}

/* All have been asked: those who say nothing are waited for together. */
static void listeners_hear(struct listeners *listeners)
{
    const long until = peer_clock_ms() + PATIENCE_MS;
    for (size_t i = 0; i < listeners->count; i++) {
        struct listener *listener = listeners->each[i];
        listener->peer.until = until;
        if (listener->answers)
            listener->answers = peer_hear_about(&listener->peer, &listener->about);
        peer_close(&listener->peer);
        command_note(listener);
    }
}

static int by_pid(const void *left, const void *right)
{
    const struct listener *const *a = left, *const *b = right;
    return ((*a)->peer.pid > (*b)->peer.pid) - ((*a)->peer.pid < (*b)->peer.pid);
}

void listeners_find(const char *command, struct listeners *listeners)
{
    *listeners = (struct listeners){0};
    listeners->left_out = peers_each(listener_ask, listeners);
    if (listeners->left_out)
        complain(command,
            "%zu more that listen could not be asked: ulimit -n allows no more open files",
            listeners->left_out);
    listeners_hear(listeners);
    if (listeners->count) qsort(listeners->each, listeners->count, sizeof *listeners->each, by_pid);
}

/* --- asked again --- */

void listener_leave(const char *command, struct listener *listener)
{
    if (!listener->named) complain(command, "%s", listener->peer.error);
    listener->named = true;
    listener->answers = false;
    peer_close(&listener->peer);
}

void listeners_ask(
    const char *command, struct listeners *listeners, const char *request, int patience_ms)
{
    struct peer **each = array_zeros(listeners->count, sizeof *each);
    size_t count = 0;
    for (size_t i = 0; i < listeners->count; i++) {
        struct listener *listener = listeners->each[i];
        struct peer *peer = &listener->peer;
        if ((listener->asked && !listener->answers) || !peer_find(peer, peer->pid)) continue;
        peer->until = peer_clock_ms() + patience_ms;
        each[count++] = peer;
    }
    peers_ask(each, count, request);
    free(each);
    for (size_t i = 0; i < listeners->count; i++) {
        struct listener *listener = listeners->each[i];
        listener->asked = true;
        listener->answers = listener->peer.fd >= 0;
        if (!listener->answers) listener_leave(command, listener);
    }
}

void listeners_bring_up_to_date(const char *command, struct listeners *listeners, const char *none)
{
    enum { ALONE_MS = 20000, TOGETHER_MS = 8000 };
    static char answer[CS_CONTROL_ANSWER];
    const int patience_ms = listeners->count > 1 ? TOGETHER_MS : ALONE_MS;
    for (int about = 0; about < 2; about++) {
        listeners_ask(command, listeners, about ? "about" : "flush", patience_ms);
        for (size_t i = 0; i < listeners->count; i++) {
            struct listener *listener = listeners->each[i];
            if (!listener->answers) continue;
            if (about ? peer_hear_about(&listener->peer, &listener->about)
                      : peer_hear(&listener->peer, answer))
                peer_close(&listener->peer);
            else listener_leave(command, listener);
        }
    }
    for (size_t i = 0; i < listeners->count; i++) {
        struct listener *listener = listeners->each[i];
        if (!listener->answers || *listener->about.trace) continue;
        snprintf(listener->peer.error, sizeof listener->peer.error,
            "process %d (%s) has recorded nothing, so %s; 'custream record' has it record",
            listener->peer.pid, listener->command, none);
        listener_leave(command, listener);
    }
}

void listeners_free(struct listeners *listeners)
{
    for (size_t i = 0; i < listeners->count; i++) free(listeners->each[i]);
    free(listeners->each);
}

/* --- its file --- */

long long listener_file_size(const struct listener *listener)
{
    struct stat about;
    char path[TRACE_ROOM];
    const int fd =
        listener->answers && *listener->about.trace
            ? trace_find(listener->peer.pid, listener->about.trace, &listener->about.file, path)
            : -1;
    const long long size = fd < 0 || fstat(fd, &about) ? -1 : (long long)about.st_size;
    if (fd >= 0) close(fd);
    return size;
}

const char *size_text(char text[SIZE_ROOM], long long bytes)
{
    static const char units[] = "BKMGT";
    double size = (double)bytes;
    size_t unit = 0;
    for (; size >= 1000 && unit < sizeof units - 2; unit++) size /= 1024;
    if (bytes < 0) snprintf(text, SIZE_ROOM, "-");
    else if (!unit) snprintf(text, SIZE_ROOM, "%lld", bytes);
    else snprintf(text, SIZE_ROOM, "%.*f%c", size < 10, size, units[unit]);
    return text;
}
