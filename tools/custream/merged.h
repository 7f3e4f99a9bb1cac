/* Numbers of processes in a merged trace. Each process has GPUs of its own: GPU 1 of the process at
 * place 3 is 1000000301. Host processes keep their pids, which are lower. */
#ifndef CS_TOOLS_MERGED_H
#define CS_TOOLS_MERGED_H

#include <stdint.h>

enum {
    MERGED_GPUS = 1000000000,
    MERGED_GPU_STEP = 100,
    MERGED_OTHERS = MERGED_GPUS / 2 /* the first number for processes without one of their own */
};

static inline uint32_t merged_gpu_pid(uint32_t place, uint32_t ordinal)
{
    return MERGED_GPUS + place * MERGED_GPU_STEP + ordinal;
}
static inline uint32_t merged_gpu_ordinal(uint32_t pid)
{
    return (pid - MERGED_GPUS) % MERGED_GPU_STEP;
}

#endif
