/*
 * The audit's model of a program: steps in, in the order of time; out come pairs of operations that only the legacy default stream keeps in order.
 *
 * Two systems of vector clocks run side by side: what is ordered before what as it is, and as it would be with per-thread default streams. A component
 * of both is a lane: a stream as it would be, so that what two threads do on the default stream is on two lanes, which in the first system follow each
 * other. Where an operation starts, what the first system knows to come before it and the second does not is an order that the switch would drop. Orders
 * on which operations hang that wait for markers (events, waits) on the default stream are found the same way, where the operation is.
 *
 * An order that is lost and matters is then taken for mended, as its owner would do with an event, so that what follows from it is not told again. One
 * that does not matter, since the two touch different memory, stays lost: an operation behind may depend on it.
 *
 * What the host knows to have ended is ordered before all that it enqueues from then on, whichever thread learnt it.
 *
 * The writer's alone; knows nothing of records, objects or the timeline.
 */
#ifndef CS_AUDIT_AUDIT_MODEL_H
#define CS_AUDIT_AUDIT_MODEL_H

#include "shim/object/names.h"
#include "shim/object/pool.h"

enum { CS_AUDIT_LANES = 1024, CS_AUDIT_CONTEXTS = 1024, CS_AUDIT_HISTORY = 1024 };

/* --- lanes (audit_lane.c) --- */

enum cs_audit_kind {
    CS_AUDIT_CREATED,
    CS_AUDIT_THREAD, /* a thread's default stream: its per-thread stream, and what it does by handle 0 */
    CS_AUDIT_LEGACY, /* the legacy stream, where it is named by its own handle; as it is, all that goes to it */
};

struct cs_audit_lane {
    cs_u64 key[2];   /* tells it from all others */
    enum cs_audit_kind kind;
    bool blocking;   /* waits for the legacy stream, and is waited for */
    cs_u16 context, next; /* next: lane of that context */
    cs_u32 pending;  /* steps that name it and have not been taken */
    cs_u32 number, device; /* of the timeline's lane; 0: none yet */
};

void cs_audit_lanes_begin(void);
cs_u16 cs_audit_context(cs_u64 key);                              /* from 1; 0: too many */
cs_u16 cs_audit_lane(const struct cs_audit_lane *what);           /* from 1, found by its key or made; 0: too many at once */
struct cs_audit_lane *cs_audit_lane_at(cs_u16 lane);
cs_u16 cs_audit_lanes_of(cs_u16 context);                         /* the first; the others by `next` */
cs_u16 cs_audit_legacy_of(cs_u16 context);                        /* 0: not used yet */
cs_u32 cs_audit_lanes_high(void);                                 /* lanes are below this */

/* --- steps --- */

/* Memory that an operation touches, as far as its call tells. */
struct cs_audit_memory {
    cs_u64 write[2], read[2]; /* first byte, and one behind the last; equal: none */
    bool known;
    bool host; /* some may be the host's */
};

struct cs_audit_op {
    cs_u64 seq;      /* from 1 in the order of steps; 0: no work */
    cs_u64 begin;    /* of its call, ticks */
    cs_u64 begin_ns;
    cs_u64 work;     /* id of its struct cs_op; 0 none */
    cs_u64 site;     /* return address; 0 not told */
    struct cs_audit_memory memory;
    cs_u32 tid;
    cs_name kernel;
    cs_u16 call;
    cs_u16 stream;   /* lane of the stream where it goes as it is; 0: it is the host */
};

enum cs_audit_what {
    CS_AUDIT_NOTHING,
    CS_AUDIT_WORK,   /* an operation on a stream */
    CS_AUDIT_RECORD, /* an event is recorded on a stream, or for a whole context */
    CS_AUDIT_WAIT,   /* a stream waits for an event, or all of a context's do */
    CS_AUDIT_HOST,   /* the host knows that an event, a stream or a context is through with what was enqueued before op.begin */
    CS_AUDIT_CAPTURE, CS_AUDIT_CAPTURED, /* a capture begins, ends */
};

struct cs_audit_step {
    cs_u64 at; /* ticks: its place among all steps */
    struct cs_audit_op op;
    enum cs_audit_what what;
    cs_u16 context, lane; /* lane: where it would go; 0: it concerns the whole context, or an event */
    bool weak;            /* HOST of a synchronous copy that may return before its data are there */
    bool asked;           /* HOST that did not wait: the answer says that it is so */
    bool denied;          /* HOST that asked: the answer says that it is not so yet */
    bool copy;            /* HOST of a synchronous copy, which is an operation too */
    cs_ref event;         /* 0 none */
    cs_ref since;         /* HOST that learns the time from this event to `event`; 0 none */
};

void cs_audit_model_begin(void);
void cs_audit_model_lane(cs_u16 lane); /* a new stream has it */
void cs_audit_take(const struct cs_audit_step *step);

/* --- what came of it --- */

enum cs_audit_how { CS_AUDIT_BY_STREAM, CS_AUDIT_BY_EVENT, CS_AUDIT_BY_HOST, CS_AUDIT_BY_COPY, CS_AUDIT_BY_ANSWER, CS_AUDIT_BY_MENDING, CS_AUDIT_HOWS };

/* Doubts that keep the audit from saying "safe": the program may depend on each of them, and records do not tell. */
enum cs_audit_doubt {
    CS_AUDIT_DOUBT_MEMORY,    /* an order is lost between operations that name different memory */
    CS_AUDIT_DOUBT_COPY,      /* an order stands only by a synchronous copy that may return early */
    CS_AUDIT_DOUBT_ANSWER,    /* an order stands only because the host asked, and the work was done by then */
    CS_AUDIT_DOUBT_DENIED,    /* the host asked, and the answer was "not ready"; it would have asked about less */
    CS_AUDIT_DOUBT_THREADS,   /* the legacy stream keeps an order, and several threads make calls */
    CS_AUDIT_DOUBT_ELSEWHERE, /* likewise, and events are used where they are not followed */
    CS_AUDIT_DOUBT_TIME,      /* a time between events that stand for more than they would */
    CS_AUDIT_DOUBT_PEER,      /* a copy between contexts waits for both of them */
    CS_AUDIT_DOUBT_REFUSED,   /* a call on the default stream failed because of a capture */
    CS_AUDIT_DOUBTS
};

extern struct cs_audit_sums {
    cs_u64 by_default;             /* steps on the default stream that the switch would send elsewhere */
    bool doubt[CS_AUDIT_DOUBTS];
    bool implied;                  /* the legacy stream orders something */
    bool several;                  /* threads */
    bool elsewhere;                /* an event is used in a graph or by another process */
    cs_u64 ordered[CS_AUDIT_HOWS]; /* implicit waits that would be dropped, but whose order stands anyway; BY_COPY by a copy that may return early, BY_ANSWER by a query */
    cs_u64 hazards, unneeded;      /* those lost that matter, and that do not */
    cs_u64 captured;               /* operations that went into graphs */
    cs_u64 unseen;                 /* steps that could not be followed: too many streams, events forgotten, operations not told of */
    cs_u64 late;                   /* steps that came after later ones had been taken */
    cs_u64 lost;                   /* calls that were not recorded */
    bool ended;                    /* all that was recorded has been taken: nothing comes any more */
} cs_audit_sums;

/* --- between the files of it --- */

/* A clock's component: the number of an operation, and how it is known to come before. */
enum { CS_AUDIT_HOW_BITS = 3 };
static inline cs_u64 cs_audit_seq(cs_u64 stamp) { return stamp >> CS_AUDIT_HOW_BITS; }
static inline enum cs_audit_how cs_audit_how(cs_u64 stamp) { return (enum cs_audit_how)(stamp & (((cs_u64)1 << CS_AUDIT_HOW_BITS) - 1)); }
static inline cs_u64 cs_audit_stamp(cs_u64 seq, enum cs_audit_how how) { return seq << CS_AUDIT_HOW_BITS | (cs_u64)how; }

/* audit_event.c: what an event stands for: both clocks, `n` long, and the work before it; NULL where it was never recorded, or is forgotten. */
struct cs_audit_event {
    cs_ref ref;
    cs_u32 n, class;
    cs_u64 work, capture; /* capture: whose it is; 0 none */
    bool more;            /* as it is, it stands for work for which it would not stand, and for which the host had not waited */
    cs_u64 *clock[2];
};
void cs_audit_events_begin(void);
struct cs_audit_event *cs_audit_event_make(cs_ref event, cs_u32 n); /* clocks empty; NULL: no memory */
const struct cs_audit_event *cs_audit_event_get(cs_ref event);

/* audit_pair.c: one that was found, first and second; `second` is a step of the host's where its stream is 0. */
struct cs_audit_side {
    char name[240], place[240]; /* what it is, where it is called: "" unknown */
    cs_u32 stream, device, tid;
    cs_u16 call;
};
struct cs_audit_pair {
    cs_u64 count, first_ns;
    cs_u64 waited_ns, timed; /* sum of the waits whose time is known, and how many */
    bool same_memory;
    cs_u32 shown;            /* slices in the timeline */
    struct cs_audit_side first, second;
};
void cs_audit_pairs_begin(void);
/* Counts one; NULL: there are too many. */
struct cs_audit_pair *cs_audit_pair(const struct cs_audit_op *first, const struct cs_audit_op *second, bool same_memory);
const struct cs_audit_pair *cs_audit_pair_at(cs_u32 i); /* in the order in which they were found; NULL beyond the last */
cs_u64 cs_audit_pairs_untold(void);                     /* hazards of further pairs */

/* audit_wait.c: an operation and those that it waited for through the default stream alone; `before`: works that it would wait for anyway. */
struct cs_audit_found {
    const struct cs_audit_op *first;
    bool matters;
    struct cs_audit_pair *pair; /* of one that matters; NULL: there are too many */
};
void cs_audit_waits_begin(void);
void cs_audit_wait_note(const struct cs_audit_op *second, const struct cs_audit_found *found, int n, const cs_u64 *before, int m);
void cs_audit_waits_write(bool all);

extern struct cs_audit_times {
    cs_u64 hazards_ns, unneeded_ns; /* time in waits */
    cs_u64 timed, untimed;          /* waits whose time is known, is not */
} cs_audit_times;


/* audit.c: whether there is memory for it; all steps there are, and all waits. */
bool cs_audit_works(void);
void cs_audit_rest(void);
/* audit_report.c: ,"defaultStreamAudit":{...} for the trailer, in at most so many bytes (1 KiB at least); the lines on stderr. */
char *cs_audit_put(char *at, size_t room);
void cs_audit_say(void);

#endif
