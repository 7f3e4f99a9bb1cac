/*
 * Settings, and errors on demand: CUSTREAM_FAKE_CUPTI="function:code[:n[!]],..." makes a function
 * return a CUptiResult, from its n-th call on, or with "!" at that call alone, which is told as
 * "note refused FUNCTION". The code MUST_NOT ends the process: where the function would do harm. A
 * greater one has the n-th call take as many milliseconds as it is greater.
 *
 * A name that no function has, or a text that cannot be read, ends the process: a test that asks
 * for it would otherwise test nothing.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>

#include "tests/fakecuda/cupti/fake_cupti.h"

#include <stdio.h>
#include <time.h>

extern struct cupti_entry *__start_cupti_entries[], *__stop_cupti_entries[];

struct cupti_settings cupti_settings;

enum { MUST_NOT = 1000 };

CUptiResult cupti_refused(struct cupti_entry *entry)
{
    unsigned long seen = __atomic_add_fetch(&entry->seen, 1, __ATOMIC_RELAXED);
    if (seen >= entry->from && (int)entry->code == MUST_NOT) {
        fprintf(stderr, "custream simulated CUPTI: %s was called, and must not be\n", entry->name);
        abort();
    }
    if ((int)entry->code > MUST_NOT) {
        const long ms = (long)entry->code - MUST_NOT;
        if (seen == entry->from)
            nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
        return CUPTI_SUCCESS;
    }
    if (!entry->once) return seen >= entry->from ? entry->code : CUPTI_SUCCESS;
    if (seen != entry->from) return CUPTI_SUCCESS;
    if (entry->code)
        entry->untold = fprintf(stderr, "note refused %s\n", entry->name) <
                        0; /* a thread may have no standard error */
    return entry->code;
}

__attribute__((destructor)) static void tell_late(void)
{
    for (struct cupti_entry **e = __start_cupti_entries; e < __stop_cupti_entries; e++)
        if ((*e)->untold) fprintf(stderr, "note refused %s\n", (*e)->name);
}

static void refuse(const char *variable, const char *text)
{
    fprintf(stderr, "custream simulated CUPTI: %s: cannot use '%s'\n", variable, text);
    abort();
}

static struct cupti_entry *entry_named(const char *name)
{
    for (struct cupti_entry **e = __start_cupti_entries; e < __stop_cupti_entries; e++)
        if (strcmp((*e)->name, name) == 0) return *e;
    return NULL;
}

static void read_failures(const char *text)
{
    while (text && *text) {
        char name[64];
        unsigned long from = 1;
        int code = 0, length = 0, more = 0;
        struct cupti_entry *entry;

        if (sscanf(text, "%63[^:,]:%d%n", name, &code, &length) < 2 || code <= 0)
            refuse("CUSTREAM_FAKE_CUPTI", text);
        if (text[length] == ':') {
            if (sscanf(text + length, ":%lu%n", &from, &more) < 1 || !from)
                refuse("CUSTREAM_FAKE_CUPTI", text);
            length += more;
        }
        const bool once = text[length] == '!';
        length += once;
        entry = entry_named(name);
        if (!entry || (text[length] && text[length] != ',')) refuse("CUSTREAM_FAKE_CUPTI", text);
        entry->code = (CUptiResult)code;
        entry->from = from;
        entry->once = once;
        text += length;
        if (*text == ',') text++;
    }
}

static long number(const char *variable, long otherwise)
{
    const char *text = getenv(variable);
    char *end;
    long value;

    if (!text || !*text) return otherwise;
    value = strtol(text, &end, 0);
    if (*end || value < 0) refuse(variable, text);
    return value;
}

/* CUSTREAM_FAKE_CUPTI_FILE: of several copies in a process, the file's name of the one whose
 * functions fail. */
static bool is_meant(void)
{
    const char *file = getenv("CUSTREAM_FAKE_CUPTI_FILE"), *slash;
    Dl_info own;
    if (!file || !dladdr((void *)&cupti_settings, &own)) return true;
    slash = strrchr(own.dli_fname, '/');
    return !strcmp(slash ? slash + 1 : own.dli_fname, file);
}

/* The driver goes down when the process ends, in a function that it has registered by atexit: too
 * late to ask for the GPU's records. */
static void go_down(void)
{
    struct cupti_entry *flush = entry_named("cuptiActivityFlushAll");
    flush->from = 1;
    flush->code = (CUptiResult)MUST_NOT;
}

__attribute__((constructor)) static void read_settings(void)
{
    if (number("CUSTREAM_FAKE_CUPTI_DOWN", 0)) atexit(go_down);
    if (is_meant()) read_failures(getenv("CUSTREAM_FAKE_CUPTI"));
    cupti_settings.version = number("CUSTREAM_FAKE_CUPTI_VERSION", CUPTI_API_VERSION);
    cupti_settings.zero = number("CUSTREAM_FAKE_CUPTI_ZERO", 0);
    cupti_settings.lose = number("CUSTREAM_FAKE_CUPTI_LOSE", 0);
    cupti_settings.late = number("CUSTREAM_FAKE_CUPTI_LATE", 0);
    cupti_settings.early = number("CUSTREAM_FAKE_CUPTI_EARLY", 0);
    cupti_settings.shuffle = number("CUSTREAM_FAKE_CUPTI_SHUFFLE", 0) != 0;
    cupti_settings.overlap = number("CUSTREAM_FAKE_CUPTI_OVERLAP", 0) != 0;
}
