/*
 * What the programs of tests/api share: a table of tests, one for a row of the table of stream
 * APIs, and the simulated GPU.
 *
 * ROW(36, "title") { ... } is the test of row 36; ROW(36_nested, "...") another one of the same
 * row, ROW_WITH(..., "NAME=value NAME=value") one whose process has these settings. Row 0 is what
 * belongs to no row. A program without an argument runs all its tests, each in a process of its
 * own; with "36" or "36_nested" that one, with "list" it names them.
 */
#ifndef TESTS_API_ROWS_H
#define TESTS_API_ROWS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <cuda.h>
#include <custream.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/patience.h"

#define UNUSED __attribute__((unused))
#ifdef API_DLOPEN
#include "dynamic.h"
#endif

/* ---- The table ---- */

struct row {
    const char *id, *title, *settings;
    void (*run)(void);
    struct row *next;
};
extern struct row *rows;
void row_add(struct row *row);

#define ROW(id, title) ROW_WITH(id, title, "")
#define ROW_SIMULATED(id, title) ROW(id, title) /* asks CUDA about handles that are gone, or for what a real GPU has: simulated alone */
#define ROW_WITH(id, title, settings) \
    static void row_##id(void); \
    __attribute__((constructor)) static void row_add_##id(void) { \
        static struct row row = {#id, title, settings, row_##id, NULL}; \
        row_add(&row); \
    } \
    static void row_##id(void)

/* ---- Assertions: each failure prints where it is, and the program's status tells. ---- */

extern int failures; /* of the whole program; checks may fail on any thread */
#define FAILED() __atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED)

#define CHECK(condition) \
    do { \
        if (condition) break; \
        fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
        FAILED(); \
    } while (0)

/* CHECK_IS(call, expected): shows both numbers. */
#define CHECK_IS(actual, expected) \
    do { \
        long long a_ = (long long)(actual), e_ = (long long)(expected); \
        if (a_ == e_) break; \
        fprintf(stderr, "%s:%d: %s: %lld, not %lld\n", __FILE__, __LINE__, #actual, a_, e_); \
        FAILED(); \
    } while (0)
#define OK(call) CHECK_IS(call, 0)

/* GIVES(custream_close(s), INVALID_VALUE): shows both by name. WORKS: success. */
#define GIVES(call, expected) gives((call), CUSTREAM_##expected, #call, __FILE__, __LINE__)
#define WORKS(call)           gives((call), CUSTREAM_SUCCESS, #call, __FILE__, __LINE__)
UNUSED static void gives(
    custream_status_t got, custream_status_t expected, const char *call, const char *file, int line)
{
    if (got == expected) return;
    fprintf(stderr, "%s:%d: %s: %s, not %s\n", file, line, call, custream_status_name(got),
        custream_status_name(expected));
    FAILED();
}

/* What an output holds before a call that must leave it alone. */
#define UNTOUCHED     ((void *)(uintptr_t)0x5a5a5a50)
#define UNTOUCHED_INT 0x5a5a5a

/* A call that fails and leaves its output alone. */
#define FAILS(call, expected, output) \
    do { \
        (output) = (__typeof__(output))UNTOUCHED; \
        GIVES(call, expected); \
        CHECK((output) == (__typeof__(output))UNTOUCHED); \
    } while (0)
#define FAILS_INT(call, expected, output) \
    do { \
        (output) = UNTOUCHED_INT; \
        GIVES(call, expected); \
        CHECK_IS(output, UNTOUCHED_INT); \
    } while (0)

/* ---- The GPU ---- */

extern CUcontext context;
extern CUfunction empty;

/* The primary context of device 0, current, and a kernel. */
void start(void);
CUfunction kernel_of(const char *name); /* "empty", "sleep_us_500" */

/* The simulated GPU knows a handle that is gone; a real one crashes. */
int simulated(void);
#define GONE(call) \
    do { \
        if (simulated()) CHECK_IS(call, CUDA_ERROR_INVALID_HANDLE); \
    } while (0)

/* A gate: hold() makes a stream's later work wait until open_gate(). One gate at a time, for any
 * number of streams. */
void hold(CUstream stream);
void open_gate(void);

/* The mark is noted once what the stream has been given is done; marks_are("213") tells whether
 * these were all, in this order. */
extern char marks[256];
void mark(CUstream stream, char c);
int marks_are(const char *expected);

void in_thread(void (*function)(void));

/* The function of a callback or host function may be on its way still. Ends by the alarm where it
 * never comes. */
#define AWAIT(condition) \
    do { \
        while (!(condition)) usleep(200); \
    } while (0)

/* ---- Short forms ---- */

UNUSED static int preloaded(void)
{
    const char *list = getenv("LD_PRELOAD");
    return list && strstr(list, "libcustream_shim");
}
/* With functions of a library that the program has opened, which is not the preloaded one. */
UNUSED static int opened(void)
{
#ifdef TESTS_API_DYNAMIC_H
    return !getenv("API_DEFAULT");
#else
    return 0;
#endif
}
/* By the preload library, which then keeps streams and events and has hooks. */
UNUSED static int recorded(void)
{
    const char *trace = getenv("CUSTREAM_TRACE");
    return preloaded() && !(trace && strcmp(trace, "off") == 0);
}

UNUSED static custream_t new_stream(void)
{
    custream_t stream = NULL;
    WORKS(custream_create(&stream, NULL));
    return stream;
}
UNUSED static custream_t stream_with(int device, unsigned flags, int priority)
{
    custream_options_t options;
    custream_t stream = NULL;
    WORKS(custream_options_init(&options));
    options.device = device;
    options.flags = flags;
    options.priority = priority;
    WORKS(custream_create(&stream, &options));
    return stream;
}
UNUSED static CUstream handle_of(custream_t stream)
{
    void *handle = UNTOUCHED;
    WORKS(custream_get_handle(stream, &handle));
    return handle;
}
UNUSED static int device_of(custream_t stream)
{
    int device = UNTOUCHED_INT;
    WORKS(custream_get_device(stream, &device));
    return device;
}
UNUSED static int priority_of(custream_t stream)
{
    int priority = UNTOUCHED_INT;
    WORKS(custream_get_priority(stream, &priority));
    return priority;
}
UNUSED static int nonblocking(custream_t stream)
{
    int answer = UNTOUCHED_INT;
    WORKS(custream_is_nonblocking(stream, &answer));
    return answer;
}
UNUSED static int owned(custream_t stream)
{
    int answer = UNTOUCHED_INT;
    WORKS(custream_is_owned(stream, &answer));
    return answer;
}
/* The current stream, without a reference: for comparing. */
UNUSED static custream_t current_on(int device)
{
    custream_t stream = NULL;
    WORKS(custream_current(device, &stream));
    if (stream) WORKS(custream_release(stream));
    return stream;
}
UNUSED static custream_event_t new_event(void)
{
    custream_event_t event = NULL;
    WORKS(custream_event_create(&event, NULL));
    return event;
}
UNUSED static CUevent event_handle(custream_event_t event)
{
    void *handle = UNTOUCHED;
    WORKS(custream_event_get_handle(event, &handle));
    return handle;
}
UNUSED static CUgraph graph_handle(custream_graph_t graph)
{
    void *handle = UNTOUCHED, *exec;
    WORKS(custream_graph_get_handles(graph, &handle, &exec));
    return handle;
}
UNUSED static int nodes_of(custream_graph_t graph)
{
    size_t count = 99;
    OK(cuGraphGetNodes(graph_handle(graph), NULL, &count));
    return (int)count;
}
UNUSED static int current_device(void)
{
    CUdevice device = -1;
    OK(cuCtxGetDevice(&device));
    return device;
}
UNUSED static int driver_error(void)
{
    int code = UNTOUCHED_INT;
    WORKS(custream_last_driver_error(&code));
    return code;
}
UNUSED static CUcontext primary_of(int device)
{
    CUcontext primary = NULL;
    OK(cuDevicePrimaryCtxRetain(&primary, device));
    return primary;
}
/* Counts in an int: a release, destroy or host function. */
UNUSED static void count_call(void *number)
{
    __atomic_add_fetch((int *)number, 1, __ATOMIC_SEQ_CST);
}
UNUSED static int count_of(int *number) { return __atomic_load_n(number, __ATOMIC_SEQ_CST); }

#endif
