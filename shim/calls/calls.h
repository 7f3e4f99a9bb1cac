/*
 * What the call table says, as C: an enumerator and a description a symbol.
 *
 * Every row of calls.def and its _ptds or _ptsz sibling is one enum cs_call. Nothing here depends on a driver being present.
 */
#ifndef CS_CALLS_CALLS_H
#define CS_CALLS_CALLS_H

#include "shim/base/compiler.h"
#include "shim/calls/cuda_api.h"
#include "shim/calls/how.h"
#include "shim/calls/words.h"

/* CS_SIBLINGS_x(entry, name, ...) applies entry(symbol, other, per_thread, ...) to the row's symbol and to its sibling's; other is the other one of the
 * two, or the symbol itself. Used by the includers of calls.def that treat siblings like calls of their own, which all of them do. */
#define CS_SIBLINGS_ONE(entry, name, ...)  entry(name, name, 0, __VA_ARGS__)
#define CS_SIBLINGS_PTDS(entry, name, ...) entry(name, name##_ptds, 0, __VA_ARGS__) entry(name##_ptds, name, 1, __VA_ARGS__)
#define CS_SIBLINGS_PTSZ(entry, name, ...) entry(name, name##_ptsz, 0, __VA_ARGS__) entry(name##_ptsz, name, 1, __VA_ARGS__)

enum cs_call {
    CS_CALL_NONE,
#define ENUMERATOR(symbol, ...)  CS_CALL_##symbol,
#define CALL(name, sibling, ...) CS_SIBLINGS_##sibling(ENUMERATOR, name, )
#include "shim/calls/calls.def"
#undef CALL
#undef ENUMERATOR
    /* Rows of the recording's own, in the same numbering so that one field of a record tells what it is. */
    CS_CALL_CALLBACK, /* a host function or stream callback ran */
    CS_CALL_LOSS,     /* calls that found the ring full */
    CS_CALL_DELAY,    /* that a policy put in */
    CS_CALL_CLOCK,    /* the thread's processor time, of the call whose record comes next: trace/thread_clock.h */
    CS_CALL_SITE,     /* where in the program the call was made whose record comes next: audit/audit.h */
    CS_CALL_RANGE_PUSH, CS_CALL_RANGE_POP, CS_CALL_MARK, CS_CALL_RANGE_START, CS_CALL_RANGE_END, /* what the program says of itself: trace/annotation.h */
    CS_CALL_COUNT
};

/* What a kind of call implies, as bits: a column of kinds.def. */
enum cs_implies {
    CS_TIMED = 1,        /* it puts work on a GPU that a profiler gives times for */
    CS_TIMED_LAUNCH = 2, /* likewise, where it launches (CS_HOW_LAUNCHES) */
    CS_WAITED = 4,       /* it puts work on a stream that STREAMS=sync waits for */
    CS_PLACED = 8,       /* an audit of the default stream tells where in the program it is made */
    CS_OFTEN = 32,       /* its wrappers are fast rather than small */
    CS_RARE = 64,        /* its wrappers are small: they know the long way alone */
    CS_OF_STREAM = 128,  /* it asks about a stream, or changes it: it is no work on it */
    CS_BLOCKING = 256,   /* the thread waits in it; while it does, its state says for what */
    CS_NODE = 16,        /* it is work on a stream, and a node where that captures */
};

enum cs_kind {
#define KIND(name, ...) CS_KIND_##name,
#include "shim/calls/kinds.def"
#undef KIND
    CS_KIND_COUNT
};

/* The bits of a kind, where a constant is needed; cs_kind_info has them otherwise. */
enum {
#define KIND(name, text, implies, ...) CS_IMPLIED_BY_##name = implies,
#include "shim/calls/kinds.def"
#undef KIND
};

struct cs_kind_info {
    const char *name; /* "launch" */
    unsigned short implies;
    signed char jitter; /* its place in cs_jitter_kinds; -1 none. Of GRAPH, that of a call which launches */
};
CS_HIDDEN extern const struct cs_kind_info cs_kind_info[CS_KIND_COUNT];

/* How the trace shows a value. */
enum cs_format {
    CS_FORMAT_NONE,
    CS_FORMAT_SIZE, CS_FORMAT_UINT, /* decimal */
    CS_FORMAT_INT,                  /* decimal, signed 32 bits */
    CS_FORMAT_HEX, CS_FORMAT_PTR,   /* "0x..." */
    CS_FORMAT_EVENT,                /* our number of an event */
    CS_FORMAT_KERNEL,               /* name in the low half, dynamic shared memory in the high half */
    CS_FORMAT_GRID,                 /* takes this value and the next two: grid x, y | grid z, block x | block y, z */
    CS_FORMAT_MEMTYPE,              /* CUmemorytype */
    CS_FORMAT_CAPTURE_MODE,         /* CUstreamCaptureMode in the low half, how many share the stream in the high half */
    CS_FORMAT_CAUSE,                /* takes this value and the next: ticks of the event's last record | thread, stream that recorded it */
    CS_FORMAT_CAPTURE,              /* ticks at which the capture began that the call has ended; 0 none */
    CS_FORMAT_GRAPH_IDS,            /* takes this value and the next: the profiler's number of the graph | of its executable; how many nodes */
    CS_FORMAT_FUNCTION,             /* address of a host function */
    CS_FORMAT_CALL,                 /* enum cs_call, by its name */
    CS_FORMAT_DELAYED,              /* 0: the calling thread, 1: the stream */
    CS_FORMAT_RESERVED,             /* flags that must be 0: shown if they are not */
    CS_FORMAT_FIRST_WORDS,          /* from here on: enumerators of cuda.h, one set of words each */
};
#define CS_FORMAT_WORDS(set) (enum cs_format)(CS_FORMAT_FIRST_WORDS + CS_WORDS_##set)

enum { CS_VALUES = 4 };

struct cs_call_info {
    const char *name; /* the symbol */
    enum cs_kind kind;
    unsigned short how; /* enum cs_how: what it is besides */
    bool per_thread; /* a _ptds or _ptsz sibling: handle 0 is the per-thread default stream */
    struct {
        const char *label;
        enum cs_format format;
    } shown[CS_VALUES];
};
CS_HIDDEN extern const struct cs_call_info cs_call_info[CS_CALL_COUNT];

static inline bool cs_call_implies(enum cs_call call, enum cs_implies what) { return cs_kind_info[cs_call_info[call].kind].implies & what; }

/* Whether the call puts work on a GPU that a profiler gives times for: launches, copies, sets and graph launches. */
#define CS_ENQUEUES(implies, how) (((implies) & CS_TIMED) != 0 || ((implies) & CS_TIMED_LAUNCH && (how) & CS_HOW_LAUNCHES))
static inline bool cs_call_enqueues(enum cs_call call) { return CS_ENQUEUES(cs_kind_info[cs_call_info[call].kind].implies, cs_call_info[call].how); }

static inline enum cs_way cs_call_way(enum cs_call call) { return (enum cs_way)(cs_call_info[call].how & CS_HOW_WAY); }
extern const char *const cs_way_name[CS_WAY_COUNT]; /* "HtoD", "Peer"; NULL: the call does not say */

#endif
