/*
 * Where GPU times come from. A backend supplies what the GPU did between the host's calls; the seam is here, the only one behind it so far is
 * `none`: the timeline holds host calls, and says so in its metadata (gpu_time_source).
 */
#ifndef CS_GPU_BACKEND_H
#define CS_GPU_BACKEND_H

#include "shim/base/compiler.h"

struct cs_gpu_backend {
    const char *name; /* as the trace's metadata has it */
    bool (*start)(void);
    void (*drain)(void); /* the writer's, once a round */
    void (*stop)(void);
};

extern const struct cs_gpu_backend *cs_gpu; /* never NULL; constant after cs_gpu_choose */
void cs_gpu_choose(void);                   /* by CUSTREAM_GPU */

#endif
