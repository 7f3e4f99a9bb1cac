/*
 * The journal, CUSTREAM_FAKE_JOURNAL: one line for each call of the call table, so that two runs of
 * a program can be compared.
 *
 * A line is written when its call ends, with one write() each. What it says comes from the row
 * (arguments, export.c) and from the bodies: the streams that handles were resolved to, and what
 * stands behind pointers. Numbers stand for handles, threads and events; no address appears.
 */
#define _GNU_SOURCE /* dladdr */
#include "tests/fakecuda/driver/fake.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

/* One call's line while the call is under way; those of one thread are chained. */
struct fake_journal_line {
    const char *symbol;
    const void *caller;
    struct fake_journal_line *outer;
    const struct fake_stream *latest;
    char streams[96], text[400];
};

bool fake_journaling;
static int out = -1;
static int under_way; /* calls whose lines are still to come */

__attribute__((constructor)) static void open_journal(void)
{
    const char *path = getenv("CUSTREAM_FAKE_JOURNAL");

    if (path && *path) out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
    fake_journaling = out >= 0;
}

/* What a call did can be seen before its line is written: a process that ends on seeing it still
 * leaves the line. A call that waits for ever does not hold it. */
__attribute__((destructor)) static void await_lines(void)
{
    for (int ms = 0; ms < 1000 && __atomic_load_n(&under_way, __ATOMIC_ACQUIRE); ms++) usleep(1000);
}

/* Threads are numbered as they appear. */
static unsigned thread_number(void)
{
    static unsigned last;
    struct fake_thread *thread = fake_thread();

    if (!thread->number) thread->number = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
    return thread->number;
}

struct fake_journal_line *fake_journal_begin(const char *symbol, const void *caller)
{
    struct fake_journal_line *line = malloc(sizeof *line);

    if (!line) abort();
    __atomic_add_fetch(&under_way, 1, __ATOMIC_RELAXED);
    *line = (struct fake_journal_line){
        .symbol = symbol, .caller = caller, .outer = fake_thread()->line};
    return fake_thread()->line = line;
}

static void append(char *text, size_t room, const char *format, va_list arguments)
{
    size_t length = strlen(text);
    vsnprintf(text + length, room - length, format, arguments);
}

void fake_journal_add(const char *format, ...)
{
    struct fake_journal_line *line = fake_journaling ? fake_thread()->line : NULL;
    va_list arguments;

    if (!line) return;
    va_start(arguments, format);
    append(line->text, sizeof line->text, format, arguments);
    va_end(arguments);
}

static void add_stream(struct fake_journal_line *line, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    append(line->streams, sizeof line->streams, format, arguments);
    va_end(arguments);
}

void fake_journal_stream(const struct fake_stream *stream)
{
    struct fake_journal_line *line = fake_thread()->line;

    if (!line || line->latest == stream) return; /* bodies that call others look it up again */
    line->latest = stream;
    if (stream->legacy) add_stream(line, " legacy");
    else if (stream->per_thread) add_stream(line, " per-thread:%u", thread_number());
    else add_stream(line, " s%u", stream->ordinal);
    if (stream->context->id != 1) add_stream(line, "@context%llu", stream->context->id);
}

void fake_journal_created(struct fake_stream *stream)
{
    static unsigned last;

    stream->ordinal = ++last;
    if (fake_journaling) fake_journal_stream(stream);
}

void fake_journal_event(const char *label, CUevent handle)
{
    struct fake_event *event;

    FAKE_LOCKED;
    event = fake_event_get(handle);
    if (event) fake_journal_add(" %s=e%u", label, event->id);
    else fake_journal_add(" %s=none", label);
}

void fake_journal_kernel(const char *label, CUfunction handle)
{
    struct fake_function *function;

    FAKE_LOCKED;
    function = fake_function_get(handle);
    fake_journal_add(" %s=%s", label, function ? function->name : "none");
}

/* Who called: the file, and behind it the exported function if the call came from inside of one,
 * else the place in the file. */
static void add_caller(const struct fake_journal_line *line)
{
    const char *file;
    Dl_info info;

    if (!dladdr(line->caller, &info) || !info.dli_fname) return;
    file = strrchr(info.dli_fname, '/');
    fake_journal_add(" by %s", file ? file + 1 : info.dli_fname);
    if (info.dli_sname) fake_journal_add(":%s", info.dli_sname);
    else fake_journal_add("+%lx", (unsigned long)((char *)line->caller - (char *)info.dli_fbase));
}

void fake_journal_end(struct fake_journal_line *line, CUresult result)
{
    char text[sizeof line->streams + sizeof line->text + 128];
    int length;

    fake_journal_add(" -> %d", (int)result);
    add_caller(line);
    fake_thread()->line = line->outer;
    length = snprintf(text, sizeof text, "%u %s%s%s\n", thread_number(), line->symbol,
        *line->streams ? line->streams : " -", line->text);
    free(line);
    if (write(out, text, (size_t)length) != length) fake_journaling = false;
    __atomic_sub_fetch(&under_way, 1, __ATOMIC_RELEASE);
}
