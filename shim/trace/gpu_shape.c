/*
 * How kernels were launched, as the file tells it. A kernel is launched the same way over and over: its slice says how only where the slice before of that name on
 * the GPU, in the same file, says something else.
 *
 * What was said last stands in a table by the hash of name and GPU. Where two of them have one place, the later one drives the other out, which is then said again.
 */
#include <string.h>

#include "shim/base/memory.h"
#include "shim/trace/demangle.h"
#include "shim/trace/gpu_shown.h"
#include "shim/trace/lanes.h"

enum { SHAPES = 1 << 12 };
CS_TABLE_AT(TRACE, shapes_shown, cs_gpu_shown.shapes, SHAPES);

static struct cs_shape_shown *shown_of(cs_u64 key) { return &cs_gpu_shown.shapes[(key * 0x9e3779b97f4a7c15) >> 52]; }
_Static_assert(SHAPES == 1 << (64 - 52), "as many as the hash has values");

static bool is_same(const struct cs_shape_shown *shown, cs_u64 key, cs_u32 device, const struct cs_gpu_work *w)
{
    return shown->key == key && shown->device == device && shown->file == cs_lanes_file() && !memcmp(shown->grid, w->kernel.grid, sizeof shown->grid) &&
           !memcmp(shown->block, w->kernel.block, sizeof shown->block) && shown->registers == w->kernel.registers &&
           shown->shared == w->kernel.shared_static + w->kernel.shared_dynamic && shown->local == w->kernel.local;
}

bool cs_gpu_shape_shown(const struct cs_gpu_work *w, cs_u32 device)
{
    const cs_u64 key = cs_kernel_key(w->kernel.name);
    struct cs_shape_shown *shown = shown_of(key + device);
    if (CS_LIKELY(is_same(shown, key, device, w))) return !w->by_events;
    *shown = (struct cs_shape_shown){.key = key, .device = device, .file = cs_lanes_file(), .registers = w->kernel.registers,
                                     .shared = w->kernel.shared_static + w->kernel.shared_dynamic, .local = w->kernel.local};
    memcpy(shown->grid, w->kernel.grid, sizeof shown->grid);
    memcpy(shown->block, w->kernel.block, sizeof shown->block);
    return false;
}

void cs_gpu_shapes_forget(void) { cs_memory_forget(cs_gpu_shown.shapes, SHAPES * sizeof *cs_gpu_shown.shapes); }
