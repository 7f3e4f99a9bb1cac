#include "tools/custream/model/occupancy.h"

#include <math.h>

/* Of a multiprocessor of compute capability 9.0, where the trace does not say: "Technical Specifications per Compute Capability", CUDA Programming Guide. */
enum {
    SM_THREADS = 2048,
    SM_REGISTERS = 65536,
    SM_SHARED = 228 << 10,
    SM_BLOCKS = 32,
    WARP_THREADS = 32,
    WARP_REGISTER_STEP = 256, /* registers are given to a warp in steps of so many */
    BLOCK_SHARED_OWN = 1 << 10, /* that CUDA takes of a multiprocessor's shared memory for each block */
};

static uint64_t at_most(uint64_t limit, uint64_t has, uint64_t takes)
{
    const uint64_t fit = takes ? has / takes : limit;
    return fit < limit ? fit : limit;
}

/* At least 1: the kernel has run. */
static uint64_t blocks_on_sm(const struct device *device, const struct shape *shape)
{
    const uint64_t threads = (uint64_t)shape->block[0] * shape->block[1] * shape->block[2];
    const uint64_t warps = (threads + WARP_THREADS - 1) / WARP_THREADS;
    const uint64_t wanted = (uint64_t)shape->registers * WARP_THREADS;
    const uint64_t per_warp = (wanted + WARP_REGISTER_STEP - 1) / WARP_REGISTER_STEP * WARP_REGISTER_STEP;
    uint64_t blocks = at_most(device->sm_blocks ?: SM_BLOCKS, (device->sm_threads ?: SM_THREADS) / WARP_THREADS, warps);
    blocks = at_most(blocks, device->sm_registers ?: SM_REGISTERS, warps * per_warp);
    blocks = at_most(blocks, device->sm_shared_memory ?: SM_SHARED, (uint64_t)shape->shared_memory + BLOCK_SHARED_OWN);
    return blocks ? blocks : 1;
}

double kernel_fills(const struct run *run, const struct work *work)
{
    const struct device *device = &run->devices[work_device(run, work)];
    if (work->kind != WORK_KERNEL || work->shape == NONE || !device->sms) return NAN;
    const struct shape *shape = &run->shapes[work->shape];
    const double blocks = (double)shape->grid[0] * shape->grid[1] * shape->grid[2];
    if (blocks == 0 || !shape->block[0] || !shape->block[1] || !shape->block[2]) return NAN;
    return blocks / ((double)blocks_on_sm(device, shape) * device->sms);
}
