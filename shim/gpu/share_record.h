/*
 * Records for another client of CUPTI: copies of ours, with their times in its clock.
 */
#ifndef CS_GPU_SHARE_RECORD_H
#define CS_GPU_SHARE_RECORD_H

#include "shim/gpu/cupti.h"

/* From our ticks to a client's clock: a line through the moment at which it was chosen and the newest. */
struct cs_scale {
    CUpti_TimestampCallbackFunc clock; /* NULL: CUPTI's own, the time of day */
    bool same;                         /* it is our own counter */
    cs_u64 ticks, theirs;
    double rate;
};
cs_u64 cs_client_now(CUpti_TimestampCallbackFunc clock);
void cs_scale_begin(struct cs_scale *scale, CUpti_TimestampCallbackFunc clock);
void cs_scale_extend(struct cs_scale *scale);

cs_u64 cs_shared_begin(const CUpti_Activity *record); /* ticks; 0 for a record without times */
void cs_shared_convert(CUpti_Activity *record, const struct cs_scale *scale);

#endif
