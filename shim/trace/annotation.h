/*
 * What the program says of itself (NVTX): ranges and marks, as records and as events of the timeline.
 *
 * A pushed range is two records of its thread, at push and at pop. The writer keeps the open ones of each thread in a stack, so that their slices
 * enclose the calls made in them to the nanosecond, and writes a slice when the range ends. What cannot nest (ranges of two domains that cross, a range
 * that leaves the callback it began in, one whose push was lost) is written as an async span instead, and so are process ranges, which may overlap.
 */
#ifndef CS_TRACE_ANNOTATION_H
#define CS_TRACE_ANNOTATION_H

#include "shim/object/names.h"
#include "shim/trace/record.h"

enum { CS_RANGES_OPEN = 1024 }; /* that a thread may have open at once; deeper ones are not recorded */

/* A range or mark as the program described it. */
struct cs_annotation {
    cs_name text, domain;
    cs_u32 category, color;
    cs_u64 payload;
    unsigned char payload_type; /* nvtxPayloadType_t */
    bool colored;
    bool nvtx; /* of NVTX, which CUSTREAM_NVTX speaks of; not in the record */
};

/* What a record of one has besides: `id` of the range (a number of the thread's for pushed ones, of the process's for started ones), and the place among the
 * thread's open ranges (push: where it stands, pop: how many places are taken from now on). */
struct cs_annotation_record {
    cs_u32 id;
    cs_u16 place;
};

static inline void cs_annotation_pack(cs_u64 value[CS_VALUES], const struct cs_annotation *what, struct cs_annotation_record more)
{
    value[0] = what->text | (cs_u64)what->domain << 32;
    value[1] = what->category | (cs_u64)what->color << 32;
    value[2] = what->payload;
    value[3] = more.id | (cs_u64)more.place << 32 | (cs_u64)what->payload_type << 48 | (cs_u64)what->colored << 56;
}

static inline struct cs_annotation_record cs_annotation_unpack(const cs_u64 value[CS_VALUES], struct cs_annotation *what)
{
    *what = (struct cs_annotation){(cs_name)value[0],     (cs_name)(value[0] >> 32),          (cs_u32)value[1],    (cs_u32)(value[1] >> 32),
                                   value[2],              (unsigned char)(value[3] >> 48),    value[3] >> 56 & 1, true};
    return (struct cs_annotation_record){(cs_u32)value[3], (cs_u16)(value[3] >> 32)};
}

/* The writer's. */
void cs_annotations_begin(void);                                                      /* a new file */
void cs_annotation_record(const struct cs_thread *thread, const struct cs_record *record); /* one of CS_CALL_RANGE_PUSH and those behind it */
cs_u64 cs_annotation_count(const struct cs_record *record);                           /* how many it adds to what the file has or lacks */
void cs_annotations_crossed(const struct cs_thread *thread, cs_u64 begin_ns);               /* a callback ended: what began in it and is open leaves it */
void cs_annotations_thread_ends(const struct cs_thread *thread, cs_u64 ended);              /* ticks; 0: it is the process that ends */
void cs_annotations_part_ends(cs_u64 now_ns);                                         /* what is open is cut in two: here it ends, */
void cs_annotations_part_begins(cs_u64 now_ns);                                       /* and here it begins anew */
void cs_annotations_end(void);                                                        /* process ranges that are still open */

#endif
