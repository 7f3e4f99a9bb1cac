#define _GNU_SOURCE
#include "tools/custream/live/listener.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tools/custream/command.h"
#include "tools/custream/live/find.h"
#include "tools/custream/report/output.h"
#include "tools/custream/report/show.h"

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
    const char *program = listener->answers ? listener->about.program : last_name(line), *argument = *line ? first_argument(line) : "";
    char text[sizeof listener->command], *to = listener->command;
    struct glyph glyph;
    snprintf(text, sizeof text, "%.60s%s%.32s", program, *argument ? " " : "", argument);
    for (const char *at = text; (at = glyph_next(at, &glyph)) && to + glyph.length < listener->command + sizeof listener->command; to += glyph.length)
        memcpy(to, glyph.bytes, (size_t)glyph.length);
    *to = 0;
}

bool listener_is_named(const struct listener *listener, const char *name)
{
    char line[4096];
    command_line(listener->peer.pid, line, sizeof line);
    const char *names[] = {listener->answers ? listener->about.program : "", last_name(line), *line ? first_argument(line) : ""};
    for (size_t i = 0; i < CS_COUNT(names); i++)
        if (*names[i] && !fnmatch(name, names[i], 0)) return true;
    return false;
}

bool listener_is_silent(const char *command, const struct listener *listener)
{
    if (!listener->asked || listener->answers) return false;
    complain(command, "%s", listener->peer.error);
    return true;
}

/* --- all of them --- */

struct listener *listeners_add(struct listeners *listeners, const struct peer *peer)
{
    struct listener *listener = calloc(1, sizeof *listener);
    listeners->each = array_room(listeners->each, listeners->count, &listeners->capacity, sizeof *listeners->each);
    if (!listener) out_of_memory();
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
    if (peer_is_stopped(peer->pid)) snprintf(peer->error, sizeof peer->error, "process %d is stopped", peer->pid);
    else listener->answers = peer_ask(peer, "about");
    if (!listener->answers) peer_close(peer);
}

/* All have been asked: those who say nothing are waited for together. */
static void listeners_hear(struct listeners *listeners)
{
    struct timespec began, now;
    clock_gettime(CLOCK_MONOTONIC, &began);
    for (size_t i = 0; i < listeners->count; i++) {
        struct listener *listener = listeners->each[i];
        clock_gettime(CLOCK_MONOTONIC, &now);
        const long waited = (now.tv_sec - began.tv_sec) * 1000 + (now.tv_nsec - began.tv_nsec) / 1000000;
        if (listener->answers) listener->answers = peer_hear_about(&listener->peer, &listener->about, waited < PATIENCE_MS ? (int)(PATIENCE_MS - waited) : 1);
        peer_close(&listener->peer);
        command_note(listener);
    }
}

static int by_pid(const void *left, const void *right)
{
    const struct listener *const *a = left, *const *b = right;
    return ((*a)->peer.pid > (*b)->peer.pid) - ((*a)->peer.pid < (*b)->peer.pid);
}

void listeners_find(struct listeners *listeners)
{
    *listeners = (struct listeners){0};
    peers_each(listener_ask, listeners);
    listeners_hear(listeners);
    if (listeners->count) qsort(listeners->each, listeners->count, sizeof *listeners->each, by_pid);
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
    const int fd = listener->answers && *listener->about.trace ? trace_find(listener->peer.pid, listener->about.trace, &listener->about.file, path) : -1;
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
