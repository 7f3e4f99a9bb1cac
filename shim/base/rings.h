/*
 * The file of rings: shared memory that outlives the process, with all that was recorded and is not in the trace yet (docs/recover.md).
 *
 * The library maps it; `custream recover` and the watcher of `custream run` read the file when the process is dead. Both are of one version: `made_by` says so.
 * Its memory is asked for before it is touched, since a write beyond what a file system has is SIGBUS.
 *
 * A kill may come between any two stores, and what was stored before is there. So what belongs together hangs on one word, stored last.
 */
#ifndef CS_BASE_RINGS_H
#define CS_BASE_RINGS_H

#include "shim/base/ring.h"

enum { CS_RINGS_THREADS = 256, CS_RINGS_STREAMS = 1 << 12, CS_RINGS_PAGE = 4096, CS_RINGS_FIRST = 16 << 10, CS_RINGS_STAYS = 1 << 20, CS_RINGS_BUFFER = 512 << 10, CS_RINGS_FIRST_BUFFER = 64 << 10, CS_RINGS_NAMES = 1 << 20, CS_RINGS_PATH = 512 };
/* PAGE: the smallest that a system has. FIRST: so much of a ring has memory as a thread begins, or a page if that is more. STAYS: so much a busy thread is given at least, and the state keeps at most for the next thread. */
#define CS_RINGS_MAGIC   "custream rings\n"
#define CS_RINGS_FOLDER  "/dev/shm"
#define CS_RINGS_NAME    "custream-rings-" /* then the pid, "-", and a number at random */
#define CS_RINGS_MADE_BY CUSTREAM_VERSION_STRING " layout 2"

/* Which file the trace is, and where its events end: what stands behind that is the trailer, or half a write. */
struct cs_rings_trace {
    cs_u64 device, inode, end;
    cs_u64 next_device, next_inode, next_end; /* the part that is about to take its place (out/part.c); 0: none is */
    cs_u64 ended;                             /* nothing more belongs into it */
};

/* A thread: a page, and its ring behind that. The page begins with the ring's own state. */
struct cs_rings_layout {
    cs_u32 tid, index, comm, lost, lost_begin, lost_end; /* where they stand in the page */
};

/* A text with a number, one behind the other. */
struct cs_rings_name {
    cs_u32 name, length; /* length: without the NUL */
    char text[];
};

struct cs_rings {
    char magic[16], made_by[48]; /* magic: stored last, when all else is there */
    cs_u64 bytes, base_ns;       /* base_ns: the trace's baseTimeNanoseconds */
    cs_u32 pid, shown_pid;       /* shown_pid: in the trace */
    cs_u32 most, calls;          /* threads that there is room for; CS_CALL_COUNT */
    cs_u64 buffer_at, names_at, threads_at, ring_bytes;
    struct cs_rings_layout layout;
    char path[4096];             /* of the trace as it began */
    _Atomic cs_u32 threads;      /* that have been given room */
    _Atomic cs_u32 unkept;       /* threads whose records are elsewhere, all or some */
    _Atomic cs_u64 names_end;    /* of the texts */

    /* The last point of the scale of times, and how many nanoseconds a tick has from there on; clock_now: which entry is in force. */
    struct cs_rings_clock {
        cs_u64 ticks, ns;
        double rate;
    } clock[2];
    _Atomic cs_u32 clock_now;
    cs_u32 page;       /* the system's, with which all parts begin; 0: CS_RINGS_PAGE. In what was padding, as the next */
    cs_u64 names_mean; /* where `path` means what it does here (base/rings.c); 0: not known. In what was padding: who has an older library finds the rest as it was */

    /* The writer's word: how full the buffer is (24 bits), how many records have been told (32 bits), which entry of `trace` is in force (the lowest bit of the rest). */
    _Alignas(CS_CACHE_LINE) _Atomic cs_u64 word;
    struct cs_rings_trace trace[2];
    /* The record that is being told: its thread's index, its place in the ring, and how many had been told before. */
    _Atomic cs_u64 hand_thread, hand_place, hand_told;

    struct cs_rings_stream {
        _Atomic cs_u32 ref;
        cs_u32 lane, device, unused;
    } streams[CS_RINGS_STREAMS]; /* by the low bits of the reference */
};

static inline cs_u64 cs_rings_page(const struct cs_rings *rings) { return rings->page ?: CS_RINGS_PAGE; }
static inline cs_u64 cs_rings_head(cs_u64 page) { return (sizeof(struct cs_rings) + page - 1) & ~(page - 1); }
static inline cs_u64 cs_rings_used(cs_u64 word) { return word & 0xffffff; }
static inline cs_u32 cs_rings_told(cs_u64 word) { return (cs_u32)(word >> 24); }
static inline unsigned cs_rings_entry(cs_u64 word) { return word >> 56 & 1; }

/* --- the library's side --- */

CS_HIDDEN extern struct cs_rings *_Atomic cs_rings; /* NULL: there is none */

/* A child that nobody tells of itself (a bare clone) writes into no memory that it shares with us: its calls go straight on. Before the rest. */
void cs_rings_allow(void);

/* Makes it, unless there is one. The writer thread's, which has descriptors of its own: the file stays open and locked (base/rings_lock.h). */
struct cs_rings_plan {
    cs_u64 ring_bytes, base_ns;
    cs_u32 calls;
    struct cs_rings_layout layout;
};
bool cs_rings_begin(const struct cs_rings_plan *plan);
const char *cs_rings_where(void); /* its path, "memfd", or "not kept: CAUSE" */
int cs_rings_memfd(void);         /* for the watcher; -1: it is none */

/* All is in the trace, or the process becomes another program: it goes, and what is mapped stays. */
void cs_rings_end(void);

/* The mapping is the parent's. What the child still has pointers to is memory of its own from here on. False: the system refuses that, which has been said. */
bool cs_rings_after_fork_in_child(void);

/* A thread's page, zeroed, with room for the first slots of its ring; NULL: it is not kept. On the thread itself. */
void *cs_rings_thread(void);
bool cs_rings_has(const void *at); /* it lies in the file */
cs_u64 cs_rings_first(void);       /* bytes: of such a ring, so much has memory as a thread begins */
void cs_rings_unkept(void);        /* a thread that does not */

/* What rows need. Any thread; a stream before its reference is in a record. One thread at a time: names. */
void cs_rings_stream(cs_u32 ref, cs_u32 lane, cs_u32 device);
void cs_rings_name(cs_u32 name, const char *text, size_t length);

/* --- the writer's: nothing where there is none --- */

void cs_rings_clock(cs_u64 ticks, cs_u64 ns, double rate);
void cs_rings_shown_pid(cs_u32 pid);
char *cs_rings_buffer(void);                           /* CS_RINGS_BUFFER bytes, of which CS_RINGS_FIRST_BUFFER are there; NULL: there is none */
size_t cs_rings_buffer_grow(size_t to);                /* how many are there now: fewer than `to` if the system has no memory */
/* So much of the buffer is events; `tells`: the record in hand is among them. */
CS_HOT void cs_rings_fill(size_t used, bool tells)
{
    struct cs_rings *rings = cs_load(&cs_rings);
    if (!rings) return;
    const cs_u64 word = cs_load(&rings->word);
    cs_store_rel(&rings->word, (word & (cs_u64)0xff << 56) | (cs_u64)(cs_u32)(cs_rings_told(word) + tells) << 24 | used);
}

void cs_rings_flushed(const struct cs_rings_trace *trace, size_t used); /* this is the trace from here on, and so much of the buffer is not in it */
void cs_rings_path(const char *path);
CS_HOT void cs_rings_take(struct cs_rings *rings, cs_u64 thread, cs_u64 place)
{
    cs_store_rel(&rings->hand_told, cs_rings_told(cs_load(&rings->word)));
    cs_store_rel(&rings->hand_place, place);
    cs_store_rel(&rings->hand_thread, thread);
}

#endif
