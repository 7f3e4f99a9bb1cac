/*
 * What a GPU did, in the form that every backend gives and the timeline takes: numbers, times in our clock, names interned.
 */
#ifndef CS_GPU_WORK_H
#define CS_GPU_WORK_H

#include "shim/base/loss.h"
#include "shim/calls/calls.h"
#include "shim/object/names.h"
#include "shim/object/pool.h"

enum cs_gpu_kind {
    CS_GPU_KERNEL, CS_GPU_COPY, CS_GPU_SET,
    CS_GPU_GRAPH,    /* a whole graph launch */
    CS_GPU_RANGE,    /* of several calls, between two events */
    CS_GPU_OVERHEAD, /* the profiler's own, on a host thread or a device */
    CS_GPU_KINDS,
    CS_GPU_NONE = CS_GPU_KINDS
};

/* What the work of a call is, by its kind. NONE: no profiler gives times for it. */
static inline enum cs_gpu_kind cs_gpu_kind_of(enum cs_kind kind)
{
    static const unsigned char of[CS_KIND_COUNT] = {
#define KIND(name, text, implies, hook, jitter, counts, gpu) CS_GPU_##gpu,
#include "shim/calls/kinds.def"
#undef KIND
    };
    return (enum cs_gpu_kind)of[kind];
}

struct cs_gpu_work {
    enum cs_gpu_kind kind;
    bool by_events;           /* times of events around the call, in which the work ran; else the work's own */
    cs_u64 start, end;        /* ticks */
    cs_u32 device;
    cs_u32 context, stream;   /* the backend's numbers; 0: it has none */
    cs_u32 correlation;       /* the backend's; 0: none */
    cs_ref vstream;           /* where the backend knows it */
    cs_u32 graph;             /* that it belongs to; 0 none */
    cs_u64 node;
    cs_u64 error;             /* ns: how far off those may be */
    union {
        struct {
            cs_name name; /* as the driver has it, mangled */
            cs_u32 grid[3], block[3];
            cs_u32 registers, shared_static, shared_dynamic, local; /* registers and local memory (bytes) a thread; shared memory (bytes) a block */
        } kernel;
        struct {
            cs_u64 bytes;
            unsigned char direction, from, to; /* CUpti_ActivityMemcpyKind, CUpti_ActivityMemoryKind */
            bool async, peer;
            cs_u32 from_device, to_device; /* peer */
        } copy;
        struct {
            cs_u64 bytes;
            cs_u32 value;
            unsigned char memory; /* CUpti_ActivityMemoryKind */
        } set;
        struct {
            cs_u32 calls;      /* in the range; correlation is the first's */
        } range;
        struct {
            cs_u32 what;       /* CUpti_ActivityOverheadKind */
        } overhead;
    };
};

/* A driver or runtime call as the profiler saw it: what ties a correlation number to one of our records. */
struct cs_gpu_call {
    cs_u64 start, end;  /* ticks; inside our record's for a driver call, around it for a runtime call */
    cs_u32 thread;      /* the low half of pthread_self() */
    cs_u32 correlation;
};

/* A memory pool, at one moment. */
struct cs_gpu_pool {
    cs_u64 at; /* ticks */
    cs_u64 address, size, used;
    cs_u32 device;
};

enum { CS_GPU_AT_ONCE = 1 << 16 };

/* Where a backend puts what it has. The writer's, called from drain() only. */
struct cs_gpu_sink {
    void (*work)(const struct cs_gpu_work *work);
    void (*call)(const struct cs_gpu_call *call);
    void (*pool)(const struct cs_gpu_pool *pool);
    void (*lost)(cs_u64 count, enum cs_loss why); /* records that will never come */
    struct cs_gpu_work *(*slot)(void); /* where the next piece of work may be made, which is then told of there; NULL: nowhere. NULL too where there is none */
    bool (*has_room)(void); /* for a buffer of CS_GPU_AT_ONCE records; what is told of without room may be shown without its call */
};

#endif
