/*
 * CUPTI's records in our form.
 */
#include <string.h>

#include "shim/gpu/cupti.h"

/* A record that an older CUPTI writes is the beginning of the newer form, as far as we read it. */
#define SAME(old, new, field) _Static_assert(offsetof(old, field) == offsetof(new, field), #old " and " #new " differ in " #field)
SAME(CUpti_ActivityKernel8, CUpti_ActivityKernel10, start);
SAME(CUpti_ActivityKernel8, CUpti_ActivityKernel10, correlationId);
SAME(CUpti_ActivityKernel8, CUpti_ActivityKernel10, name);
SAME(CUpti_ActivityKernel8, CUpti_ActivityKernel10, graphId);
SAME(CUpti_ActivityMemcpy5, CUpti_ActivityMemcpy6, start);
SAME(CUpti_ActivityMemcpy5, CUpti_ActivityMemcpy6, graphId);
SAME(CUpti_ActivityMemcpyPtoP3, CUpti_ActivityMemcpyPtoP4, start);
SAME(CUpti_ActivityMemcpyPtoP3, CUpti_ActivityMemcpyPtoP4, graphId);
SAME(CUpti_ActivityMemset3, CUpti_ActivityMemset4, start);
SAME(CUpti_ActivityMemset3, CUpti_ActivityMemset4, graphId);
SAME(CUpti_ActivityGraphTrace, CUpti_ActivityGraphTrace2, streamId);
SAME(CUpti_ActivityOverhead, CUpti_ActivityOverhead3, end);
SAME(CUpti_ActivityMemoryPool2, CUpti_ActivityMemoryPool3, utilizedSize);

/* The driver shares one text among all records of a kernel, so its address usually tells the name. */
static cs_name name_of(const char *text)
{
    enum { KNOWN = 4096 };
    static struct {
        const char *text;
        cs_name name;
    } known[KNOWN];
    if (!text) return 0;
    size_t i = (uintptr_t)text * 0x9e3779b97f4a7c15u >> 52;
    if (known[i].text != text || strcmp(cs_name_text(known[i].name), text)) {
        known[i].text = text;
        known[i].name = cs_name_add(text);
    }
    return known[i].name;
}

/* What records of work have in common. */
#define WORK(what, r)                                                                                                                               \
    .kind = (what), .start = (r)->start, .end = (r)->end, .device = (r)->deviceId, .context = (r)->contextId, .stream = (r)->streamId,               \
    .correlation = (r)->correlationId, .graph = (r)->graphId

/* There are very many of them: one is made where it is kept. An initializer would clear what it does not name, in a way that is slow to begin. */
static void kernel(const CUpti_ActivityKernel10 *k, const struct cs_gpu_sink *to)
{
    struct cs_gpu_work own, *slot = to->slot ? to->slot() : NULL, *work = slot ? slot : &own;
    work->kind = CS_GPU_KERNEL;
    work->by_events = false;
    work->start = k->start;
    work->end = k->end;
    work->device = k->deviceId;
    work->context = k->contextId;
    work->stream = k->streamId;
    work->correlation = k->correlationId;
    work->vstream = 0;
    work->graph = k->graphId;
    work->node = k->graphNodeId;
    work->error = 0;
    work->kernel.name = name_of(k->name);
    work->kernel.grid[0] = (cs_u32)k->gridX, work->kernel.grid[1] = (cs_u32)k->gridY, work->kernel.grid[2] = (cs_u32)k->gridZ;
    work->kernel.block[0] = (cs_u32)k->blockX, work->kernel.block[1] = (cs_u32)k->blockY, work->kernel.block[2] = (cs_u32)k->blockZ;
    work->kernel.registers = k->registersPerThread;
    work->kernel.shared_static = (cs_u32)k->staticSharedMemory;
    work->kernel.shared_dynamic = (cs_u32)k->dynamicSharedMemory;
    work->kernel.local = k->localMemoryPerThread;
    to->work(work);
}

static void copy(const CUpti_ActivityMemcpy6 *c, const struct cs_gpu_sink *to)
{
    struct cs_gpu_work work = {
        WORK(CS_GPU_COPY, c), .node = c->graphNodeId,
        .copy = {.bytes = c->bytes, .direction = c->copyKind, .from = c->srcKind, .to = c->dstKind, .async = c->flags & CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC}};
    to->work(&work);
}

static void peer_copy(const CUpti_ActivityMemcpyPtoP4 *c, const struct cs_gpu_sink *to)
{
    struct cs_gpu_work work = {
        WORK(CS_GPU_COPY, c), .node = c->graphNodeId,
        .copy = {.bytes = c->bytes, .direction = c->copyKind, .from = c->srcKind, .to = c->dstKind, .async = c->flags & CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC,
                 .peer = true, .from_device = c->srcDeviceId, .to_device = c->dstDeviceId}};
    to->work(&work);
}

static void set(const CUpti_ActivityMemset4 *s, const struct cs_gpu_sink *to)
{
    struct cs_gpu_work work = {
        WORK(CS_GPU_SET, s), .node = s->graphNodeId, .set = {.bytes = s->bytes, .value = s->value, .memory = (unsigned char)s->memoryKind}};
    to->work(&work);
}

static void graph(const CUpti_ActivityGraphTrace2 *g, const struct cs_gpu_sink *to)
{
    struct cs_gpu_work work = {WORK(CS_GPU_GRAPH, g)};
    to->work(&work);
}

static void overhead(const CUpti_ActivityOverhead3 *o, const struct cs_gpu_sink *to)
{
    struct cs_gpu_work work = {.kind = CS_GPU_OVERHEAD, .start = o->start, .end = o->end, .overhead = {.what = (cs_u32)o->overheadKind}};
    to->work(&work);
}

static void pool(const CUpti_ActivityMemoryPool3 *p, const struct cs_gpu_sink *to)
{
    struct cs_gpu_pool state = {.at = p->timestamp, .address = p->address, .size = p->size, .used = p->utilizedSize, .device = p->deviceId};
    to->pool(&state);
}

void cs_cupti_record(const CUpti_Activity *record, const struct cs_gpu_sink *to)
{
    const CUpti_ActivityAPI *api = (const CUpti_ActivityAPI *)record;
    switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: kernel((const CUpti_ActivityKernel10 *)record, to); break;
    case CUPTI_ACTIVITY_KIND_MEMCPY: copy((const CUpti_ActivityMemcpy6 *)record, to); break;
    case CUPTI_ACTIVITY_KIND_MEMCPY2: peer_copy((const CUpti_ActivityMemcpyPtoP4 *)record, to); break;
    case CUPTI_ACTIVITY_KIND_MEMSET: set((const CUpti_ActivityMemset4 *)record, to); break;
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE: graph((const CUpti_ActivityGraphTrace2 *)record, to); break;
    case CUPTI_ACTIVITY_KIND_OVERHEAD: overhead((const CUpti_ActivityOverhead3 *)record, to); break;
    case CUPTI_ACTIVITY_KIND_MEMORY_POOL: pool((const CUpti_ActivityMemoryPool3 *)record, to); break;
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_RUNTIME:
        if (cs_cupti_may_enqueue(api)) to->call(&(struct cs_gpu_call){api->start, api->end, api->threadId, api->correlationId});
        break;
    default: break; /* another client's */
    }
}
