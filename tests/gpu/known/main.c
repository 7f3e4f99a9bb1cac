/*
 * known [driver or runtime]: what it does, and a line of JSON for each piece of it. See known.h.
 *
 * The ring of kernels runs twice: as programs do it, and with an event on each side of every
 * kernel, which tells its length. The two have the same kernels in the same order, so the measured
 * lengths stand for both. A gate, a long kernel that all streams wait for, stands before each: when
 * it ends, everything else has been enqueued, and no kernel's events have the host's pauses between
 * them.
 *
 * A preloaded libcupti_client.so is told when the work begins and ends.
 */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "known.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    STREAMS = 4,
    ROUNDS = 5,
    RING = STREAMS * ROUNDS,
    NODES = 5,
    LAUNCHES = 4,
    OPS = 128,
    CAUSES = 8,
    GATE_US = 20000,
    MEBI = 1 << 20
};
enum { LEGACY = -1, PER_THREAD = -2 };

static struct op {
    enum { KERNEL, COPY, SET, GRAPH } kind;
    int stream; /* index, LEGACY or PER_THREAD */
    int after[CAUSES], causes;
    int which, twin; /* kernel; twin: the one of the other pass, -1 */
    unsigned us, value;
    int timed;
    double ms;
    enum known_way way;
    const char *memory;
    size_t bytes;
} ops[OPS];
static int op_count;
static known_event begins[OPS], ends[OPS];

static known_stream streams[STREAMS];
static const int priorities[STREAMS] = {0, -2, -5, 0}, nonblocking[STREAMS] = {1, 1, 1, 0};
static int last[STREAMS + 2]; /* op of each stream, -1 none; behind the created ones the legacy and
                                 the per-thread stream */

static known_stream handle(int stream)
{
    return stream == LEGACY       ? KNOWN_LEGACY
           : stream == PER_THREAD ? KNOWN_PER_THREAD
                                  : streams[stream];
}
static int *last_on(int stream) { return &last[stream >= 0 ? stream : STREAMS - 1 - stream]; }

static void comes_after(struct op *op, int cause)
{
    for (int i = 0; i < op->causes; i++)
        if (op->after[i] == cause) return;
    if (cause >= 0 && op->causes < CAUSES) op->after[op->causes++] = cause;
}

static struct op *op_new(int kind, int stream)
{
    struct op *op = &ops[op_count++];
    *op = (struct op){.stream = stream, .twin = -1};
    op->kind = kind;
    comes_after(op, *last_on(stream));
    *last_on(stream) = (int)(op - ops);
    return op;
}

static int number(const struct op *op) { return (int)(op - ops); }
static unsigned grid(const struct op *op) { return (unsigned)number(op) + 1; }

static int kernel(int which, int stream, unsigned us, int timed)
{
    struct op *op = op_new(KERNEL, stream);
    op->which = which;
    op->us = us;
    op->timed = timed;
    if (timed) known_record(begins[number(op)] = known_event_create(1), handle(stream));
    known_launch(which, grid(op), us, handle(stream));
    if (timed) known_record(ends[number(op)] = known_event_create(1), handle(stream));
    return number(op);
}

/* `stream` goes on when the last op on `on` has ended. */
static int join(int stream, int on)
{
    known_event event = known_event_create(0);
    known_record(event, handle(on));
    known_wait(handle(stream), event);
    return *last_on(on);
}

static int pass(int timed)
{
    int gate = kernel(0, 0, GATE_US, timed), before[STREAMS] = {gate, gate, gate, gate},
        now[STREAMS];
    for (int s = 1; s < STREAMS; s++) join(s, 0);
    for (int round = 0; round < ROUNDS; round++) {
        for (int s = 0; s < STREAMS; s++) {
            now[s] =
                kernel((round + s) % 2, s, 300 + 50 * (unsigned)((round * STREAMS + s) % 7), timed);
            comes_after(&ops[now[s]], round ? before[(s + STREAMS - 1) % STREAMS] : gate);
        }
        for (int s = 0; s < STREAMS; s++) before[s] = now[s], join((s + 1) % STREAMS, s);
    }
    for (int s = 1; s < STREAMS; s++) join(0, s);
    int end = kernel(1, 0, 300, timed);
    for (int s = 1; s < STREAMS; s++) comes_after(&ops[end], before[s]);
    known_sync_all();
    return gate;
}

static void measure(int plain, int timed)
{
    for (int i = 0; i < RING + 2; i++) {
        ops[timed + i].ms = ops[plain + i].ms =
            known_elapsed_ms(begins[timed + i], ends[timed + i]);
        ops[timed + i].twin = plain + i;
        ops[plain + i].twin = timed + i;
    }
}

static struct op *moves(int kind, int stream, size_t bytes)
{
    struct op *op = op_new(kind, stream);
    op->bytes = bytes + 256 * (size_t)grid(op);
    return op;
}

static void copy(enum known_way way, const char *memory, int stream, void *to, const void *from)
{
    struct op *op = moves(COPY, stream, 4 * MEBI);
    op->way = way;
    op->memory = memory;
    known_copy(way, to, from, op->bytes, handle(stream));
}

static void copy_and_wait(enum known_way way, void *to, const void *from)
{
    struct op *op = moves(COPY, LEGACY, MEBI);
    op->way = way;
    op->memory = "Pageable";
    known_copy_and_wait(way, to, from, op->bytes);
}

static void copies(void)
{
    size_t room = 5 * MEBI;
    char *pinned = known_pinned_memory(room), *pageable = calloc(1, room),
         *a = known_device_memory(room), *b = known_device_memory(room);
    copy(KNOWN_HTOD, "Pinned", 1, a, pinned);
    kernel(0, 1, 200, 0);
    int cause = join(2, 1);
    struct op *set = moves(SET, 2, MEBI);
    comes_after(set, cause);
    set->value = 0x5a;
    known_set(b, 0x5a, set->bytes, handle(2));
    copy(KNOWN_DTOD, "Device", 2, b, a);
    copy(KNOWN_DTOH, "Pinned", 2, pinned, b);
    known_sync_all();
    copy_and_wait(KNOWN_HTOD, a, pageable);
    copy_and_wait(KNOWN_DTOH, pageable, a);
    copy(KNOWN_DTOH, "Pageable", 1, pageable, a);
    copy(KNOWN_HTOD, "Pageable", 1, a, pageable);
    known_sync_all();
}

/* The legacy stream waits for all blocking ones, and they for it. */
static void legacy(void)
{
    int first = kernel(0, 3, 300, 0), middle = kernel(1, LEGACY, 300, 0);
    comes_after(&ops[middle], first);
    comes_after(&ops[kernel(0, 3, 300, 0)], middle);
    known_sync_all();
}

static void *other_thread(void *unused)
{
    (void)unused;
    known_thread();
    kernel(0, PER_THREAD, 300, 0);
    kernel(1, PER_THREAD, 300, 0);
    known_sync_stream(KNOWN_PER_THREAD);
    return NULL;
}

/* A graph of two branches. Its kernels have grids from 101 on. */
static const struct {
    int which, stream, after[2];
    unsigned us;
} nodes[NODES] = {{0, 0, {-1, -1}, 100}, {1, 1, {0, -1}, 150}, {0, 1, {1, -1}, 100},
    {1, 0, {0, -1}, 200}, {0, 0, {2, 3}, 100}};
static unsigned node_grid(int i) { return 101 + (unsigned)i; }

static void graph(void)
{
    known_event fork = known_event_create(0), joined = known_event_create(0);
    known_capture(handle(0));
    for (int i = 0; i < NODES; i++) {
        if (i == 1) known_record(fork, handle(0)), known_wait(handle(1), fork);
        if (i == 4) known_record(joined, handle(1)), known_wait(handle(0), joined);
        known_launch(nodes[i].which, node_grid(i), nodes[i].us, handle(nodes[i].stream));
    }
    known_graph exec = known_captured(handle(0));
    for (int i = 0; i < LAUNCHES; i++) {
        kernel(1, 2, 100, 0);
        op_new(GRAPH, 2);
        known_graph_launch(exec, handle(2));
    }
    kernel(1, 2, 100, 0);
    known_sync_all();
}

static void print(void)
{
    static const char *const kinds[] = {"kernel", "copy", "memset", "graph"}, *const ways[] = {
                                                                                  "HtoD", "DtoH",
                                                                                  "DtoD"};
    for (int s = 0; s < STREAMS; s++)
        printf("{\"what\":\"stream\",\"index\":%d,\"handle\":\"%p\",\"priority\":%d,"
               "\"nonblocking\":%s}\n",
            s, handle(s), priorities[s], nonblocking[s] ? "true" : "false");
    for (int i = 0; i < op_count; i++) {
        const struct op *op = &ops[i];
        printf("{\"what\":\"op\",\"id\":%d,\"kind\":\"%s\",\"stream\":%d,\"after\":[", i,
            kinds[op->kind], op->stream);
        for (int k = 0; k < op->causes; k++) printf("%s%d", k ? "," : "", op->after[k]);
        printf("]");
        if (op->kind == KERNEL)
            printf(",\"name\":\"%s\",\"grid\":%u,\"us\":%u,\"timed\":%s", known_kernel(op->which),
                grid(op), op->us, op->timed ? "true" : "false");
        if (op->ms > 0) printf(",\"ms\":%.6f", op->ms);
        if (op->kind == COPY)
            printf(",\"direction\":\"%s\",\"memory\":\"%s\"", ways[op->way], op->memory);
        if (op->kind == SET) printf(",\"value\":%u", op->value);
        if (op->bytes) printf(",\"bytes\":%zu", op->bytes);
        printf("}\n");
    }
    for (int i = 0; i < NODES; i++) {
        printf("{\"what\":\"node\",\"name\":\"%s\",\"grid\":%u,\"us\":%u,\"launches\":%d,"
               "\"stream\":%d,\"after\":[",
            known_kernel(nodes[i].which), node_grid(i), nodes[i].us, LAUNCHES, nodes[i].stream);
        for (int k = 0; k < 2 && nodes[i].after[k] >= 0; k++)
            printf("%s%u", k ? "," : "", node_grid(nodes[i].after[k]));
        printf("]}\n");
    }
}

static void tell_client(const char *name)
{
    void (*function)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, name);
    if (function) function();
}

int main(void)
{
    pthread_t thread;
    for (int i = 0; i < STREAMS + 2; i++) last[i] = -1;
    known_begin();
    tell_client("cupti_client_start");
    for (int s = 0; s < STREAMS; s++)
        streams[s] = known_stream_create(nonblocking[s], priorities[s]);
    for (int which = 0; which < 2; which++) kernel(which, 0, 100, 0); /* loads them */
    known_sync_all();
    int plain = pass(0), timed = pass(1);
    measure(plain, timed);
    copies();
    legacy();
    pthread_create(&thread, NULL, other_thread, NULL);
    pthread_join(thread, NULL);
    graph();
    tell_client("cupti_client_stop");
    print();
    return 0;
}
