#include "shim/trace/runtime.h"

#include <string.h>

#include "shim/base/clock.h"
#include "shim/trace/lanes.h"
#include "shim/out/output.h"
#include "shim/trace/totals.h"

/* Not before the slice that the call follows, and not after one that it holds: those in it were moved so that none begins before the lane was filled up to.
 * Where they are in the part of the trace before, what is left of the call begins with this part. A gap that ended in the call, and began in others whose
 * records are lost, stays outside. */
static cs_u64 begin_of(const struct cs_thread_row *row, const struct cs_record *r)
{
    const cs_u64 first = r->value[0];
    cs_u64 begin = cs_clock_ns(r->begin);
    if (row->place - first < CS_FILLED && begin < row->filled_ns[first % CS_FILLED]) begin = row->filled_ns[first % CS_FILLED];
    if (begin < row->part_first_ns) begin = row->part_first_ns;
    if (row->loss_begin_ns && row->loss_begin_ns < begin && begin < row->loss_end_ns) begin = row->loss_end_ns;
    return begin;
}

cs_u64 cs_runtime_slice(const struct cs_thread *thread, const struct cs_record *r)
{
    struct cs_thread_row *row = cs_thread_row(thread);
    cs_u64 begin = begin_of(row, r), end = cs_clock_ns(r->end);
    if (end < row->last_end_ns) end = row->last_end_ns;
    if (end <= begin) end = begin + 1;
    row->last_end_ns = end;
    const char *name = cs_runtime_name(r->call);
    name += strspn(name, "_"); /* __cudaLaunchKernel is what everybody calls cudaLaunchKernel */
    struct cs_draft e = cs_slice(cs_draft(), "cuda_runtime", cs_title(name), cs_host_lane(thread->tid), begin, end);
    if (r->result != cudaSuccess) e = cs_arg_int(e, "cs.result", r->result);
    cs_commit_record(cs_args_end(e));
    if (cs_output_full()) { /* making room for it ended the file */
        cs_totals_cut(1, begin, end);
        return end;
    }
    cs_totals_gathered(begin, end);
    cs_totals.sum.recorded++;
    return end;
}
