/*
 * What of the GPU side stands in the file: lanes that have been announced, values of counters, numbers of arrows. One object, which gpu.c owns and begins.
 *
 * Between the files trace/gpu*.c; others see trace/gpu.h.
 */
#ifndef CS_TRACE_GPU_SHOWN_H
#define CS_TRACE_GPU_SHOWN_H

#include "shim/base/loss.h"
#include "shim/gpu/backend.h"
#include "shim/trace/event.h"
#include "shim/trace/gpu.h"

/* The depth of a stream: a step is written at most every 50 us; the value before it is repeated at its own time, so that no line is drawn where nothing was. */
struct cs_counter_shown {
    cs_u64 value, shown;
    cs_u64 changed_ns, shown_ns;
};

/* Counters of a GPU have one value for each stretch of 200 us, no finer than a screen shows: known when the stretch is over. */
struct cs_peak_shown {
    cs_u64 value; /* now */
    cs_u64 peak;  /* the most in the present stretch */
    cs_u64 shown;
};
struct cs_stretch_shown {
    cs_u64 from_ns;          /* where it begins; 0: none has begun */
    cs_u64 busy_ns, since_ns; /* of it the GPU was at work so long, as is known up to then */
    cs_u32 shown;            /* percent */
    bool busy;               /* since then */
};

/* Of a GPU, since the process began: for metrics (metrics.h). */
struct cs_gpu_sums {
    cs_u64 busy_ns, until_ns; /* it was at work so long, as is known up to then; 0: it has not been at work */
    bool busy;                /* since then */
    bool tells_waits;         /* times are fine enough for: */
    cs_u64 waits_ns[CS_HOLD_WHYS]; /* so long its work waited, by what for */
    cs_u32 streams;           /* that had work in this span */
};

/* Lanes that lie over each other: bit a level. */
struct cs_rows {
    struct cs_row row;
    cs_u32 announced;
};

/* Of a lane: what stands in the file of the one that has its place. */
struct cs_lane_shown {
    cs_u32 serial, file; /* of the lane; in which `work` and `sync` have been announced */
    cs_u32 work, sync;   /* bit a level */
    cs_u32 context;      /* of the last work in that file */
    cs_u32 span;         /* the span of metrics in which its last work was found */
    struct cs_counter_shown depth;
};

/* How a kernel of that name was launched on that GPU, as its last slice says. */
struct cs_shape_shown {
    cs_u64 key; /* of the name; 0: none */
    cs_u32 device, file;
    cs_u32 grid[3], block[3], registers, shared, local;
};

extern struct cs_gpu_shown {
    struct cs_lane_shown *lanes; /* tables, made before the trace begins; stay */
    struct cs_shape_shown *shapes;

    bool loads, depths;       /* whether counters of GPUs, and of streams, are wanted */
    cs_u64 releases;          /* arrows of that kind */
    cs_u64 without_lane;      /* pieces of work */
    cs_u64 lost_ns;           /* when some were lost last */
    cs_u32 span;              /* of metrics, from one time that they are written to the next */
    struct cs_gpu_device_shown {
        bool counters;               /* the lane of its counters is announced */
        bool others;                 /* something other than kernels is under way */
        struct cs_rows waits, peers; /* for all that it does; copies that others do to it or from it */
        struct cs_peak_shown kernels, bytes[CS_LOAD_WAYS];
        struct cs_stretch_shown stretch;
        struct cs_gpu_sums sums;
    } devices[CS_GPU_PIDS];
    struct cs_rows overhead;
    struct cs_rows gaps[CS_GPU_PARTS]; /* one level each */
} cs_gpu_shown;

/* gpu_row.c: where a slice from start to end goes: the tid, with its lane announced. `sync`: on the row of waits. */
cs_u32 cs_gpu_lane_place(struct cs_match_lane *lane, bool sync, cs_u64 *start_ns, cs_u64 end_ns);
cs_u32 cs_gpu_device_place(cs_u32 device, cs_u64 *start_ns, cs_u64 end_ns); /* on the row of waits for all that a device does; 0: there is none */
struct cs_lane_shown *cs_gpu_lane_shown(const struct cs_match_lane *lane);

/* gpu_work.c: one slice of work; false where it is not in the file. */
bool cs_gpu_work_write(struct cs_match_found *found);
struct cs_title cs_gpu_title(const struct cs_gpu_work *work, char text[128]); /* the text may be in there */

/* gpu_shape.c: whether the slice before of that name on that GPU says how the kernel was launched. From here on this one does. */
bool cs_gpu_shape_shown(const struct cs_gpu_work *work, cs_u32 device);
void cs_gpu_shapes_forget(void); /* of another process */

/* gpu_peer.c: a copy between devices, which stands on a stream of its own device, as the other device sees it. */
void cs_gpu_peer_write(const struct cs_match_found *found);

/* gpu_wait.c */
void cs_gpu_released(const struct cs_match_wait *wait, const struct cs_op *op);

/* gpu_count.c */
void cs_gpu_depth_write(const struct cs_match_lane *lane, cs_u64 ns);
void cs_gpu_load_write(cs_u32 device, cs_u64 ns, const struct cs_load *load);
void cs_gpu_counters_end(void); /* nothing comes any more: what has not been written is */
cs_u32 cs_gpu_counter_tid(cs_u32 device); /* the lane of a GPU's own counters, announced */

/* gpu_extra.c */
void cs_gpu_overhead_write(const struct cs_gpu_work *work);
void cs_gpu_pool_write(const struct cs_gpu_pool *pool);
void cs_gpu_lost_write(cs_u64 count, enum cs_loss why);
void cs_gpu_missing_write(bool all);

#endif
