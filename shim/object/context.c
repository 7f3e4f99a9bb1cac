#include "shim/object/context.h"

#include "shim/base/keep.h"
#include "shim/base/realdl.h"
#include "shim/calls/real.h"
#include "shim/object/event.h"
#include "shim/object/kernel.h"
#include "shim/object/stream.h"

enum { CONTEXTS = 1 << 12, DEVICES = 64 };

struct cs_pool cs_contexts;
CS_READ_MOSTLY _Atomic cs_u32 cs_context_epoch;
static struct cs_map handles;

bool cs_contexts_init(void) { return cs_pool_init(&cs_contexts, sizeof(struct cs_context), CONTEXTS) && cs_map_init(&handles, 13); }

/* Filled by the first thread that meets a device, on that thread: the writer calls nothing of CUDA. */
static struct {
    _Atomic int state; /* 0 unknown, 1 being filled, 2 there */
    char name[128];
    int facts[CS_DEVICE_FACTS];
} devices[DEVICES];

/* What the driver calls each fact, and what Kineto does (those of the trace that it has not are named in its manner). */
static const struct {
    CUdevice_attribute attribute;
    const char *name;
} facts[CS_DEVICE_FACTS] = {
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, "numSms"},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, "computeMajor"},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, "computeMinor"},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, "maxThreadsPerMultiprocessor"},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, "maxBlocksPerMultiprocessor"},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, "regsPerMultiprocessor"},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, "sharedMemPerMultiprocessor"},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, "asyncEngineCount"},
};

static void device_meet(int device)
{
    int unknown = 0;
    if (device < 0 || device >= DEVICES || cs_load_acq(&devices[device].state)) return;
    if (!atomic_compare_exchange_strong(&devices[device].state, &unknown, 1)) return;
    if (cs_real.cuDeviceGetName) cs_real.cuDeviceGetName(devices[device].name, sizeof devices[device].name, device);
    for (int fact = 0; cs_real.cuDeviceGetAttribute && fact < CS_DEVICE_FACTS; fact++)
        cs_real.cuDeviceGetAttribute(&devices[device].facts[fact], facts[fact].attribute, device);
    cs_store_rel(&devices[device].state, 2);
}

static bool is_met(int device) { return device >= 0 && device < DEVICES && cs_load_acq(&devices[device].state) == 2; }
const char *cs_device_name(int device) { return is_met(device) ? devices[device].name : ""; }
int cs_device_fact(int device, int fact, const char **name) { return *name = facts[fact].name, is_met(device) ? devices[device].facts[fact] : 0; }

bool cs_device_is_simulated(void)
{
    struct cs_image driver;
    return cs_image_find("libcuda.so.1", &driver) && cs_image_symbol(&driver, "custream_fakecuda_version");
}

static int current_device(void)
{
    CUdevice device = 0;
    if (!cs_real.cuCtxGetDevice || cs_real.cuCtxGetDevice(&device) != CUDA_SUCCESS) return 0;
    return device;
}

cs_ref cs_context_of(CUcontext handle, int device)
{
    CS_KEEP_ERRNO;
    if (!handle) return 0;
    struct cs_map_slot *slot = cs_map_slot(&handles, (uintptr_t)handle, true);
    if (!slot) return 0;
    cs_u64 value = cs_load_acq(&slot->value);
    if (value && !(value & CS_MAP_DEAD)) return (cs_ref)value;
    struct cs_context *context = cs_pool_new(&cs_contexts);
    if (!context) return 0;
    if (device < 0) device = current_device();
    cs_store(&context->handle, handle);
    cs_store(&context->device, device);
    device_meet(device);
    if (!atomic_compare_exchange_strong(&slot->value, &value, cs_load(&context->object.ref))) { /* another thread met it first */
        cs_pool_release(&cs_contexts, &context->object);
        return (cs_ref)value;
    }
    return cs_load(&context->object.ref);
}

void cs_context_set(struct cs_thread *thread, CUcontext handle)
{
    struct cs_map_slot *slot = cs_map_slot(&handles, (uintptr_t)handle, false);
    cs_u64 value = slot ? cs_load_acq(&slot->value) : 0;
    thread->context = (cs_ref)value;
    thread->context_known = value && !(value & CS_MAP_DEAD); /* setting NULL pops: what lies below is asked for at the next need */
    thread->context_epoch = cs_load_acq(&cs_context_epoch);
    thread->default_stream[0] = thread->default_stream[1] = 0;
    thread->default_mode = 0;
}

void cs_context_forget(struct cs_thread *thread)
{
    thread->context_known = 0;
    thread->default_stream[0] = thread->default_stream[1] = 0;
    thread->default_mode = 0;
}

cs_ref cs_context_current(struct cs_thread *thread)
{
    CS_KEEP_ERRNO;
    cs_u32 epoch = cs_load_acq(&cs_context_epoch);
    if (CS_LIKELY(thread->context_known && thread->context_epoch == epoch)) return thread->context;
    CUcontext handle = NULL;
    if (!cs_real.cuCtxGetCurrent || cs_real.cuCtxGetCurrent(&handle) != CUDA_SUCCESS) return 0;
    thread->context = cs_context_of(handle, -1);
    thread->context_known = 1;
    thread->context_epoch = epoch;
    thread->default_stream[0] = thread->default_stream[1] = 0;
    thread->default_mode = 0;
    return thread->context;
}

static struct cs_map_slot *slot_of(struct cs_context *context) { return cs_map_slot(&handles, (uintptr_t)cs_load(&context->handle), false); }

static void ends(struct cs_context *context)
{
    cs_streams_end_with(cs_load(&context->object.ref));
    cs_events_end_with(cs_load(&context->object.ref));
    cs_kernels_unloaded(); /* its modules go with it */
    cs_add(&cs_context_epoch, 1);
    cs_pool_end(&cs_contexts, &context->object);
}

cs_ref cs_context_destroying(CUcontext handle)
{
    struct cs_map_slot *slot = cs_map_slot(&handles, (uintptr_t)handle, false);
    cs_u64 value = slot ? cs_load_acq(&slot->value) : 0;
    while (value && !(value & CS_MAP_DEAD) && !atomic_compare_exchange_weak(&slot->value, &value, value | CS_MAP_DEAD)) {}
    return (cs_ref)value;
}

void cs_context_destroyed(cs_ref ref, bool done)
{
    struct cs_context *context = cs_pool_get(&cs_contexts, ref);
    struct cs_map_slot *slot = context ? slot_of(context) : NULL;
    cs_u64 alive = ref, dead = ref | CS_MAP_DEAD;
    if (done && context && !cs_load_acq(&context->object.ended)) ends(context);
    if (!done && slot) atomic_compare_exchange_strong(&slot->value, &dead, alive);
    /* Of two destroys at once the refused one may have taken the mark off. */
    if (slot && cs_load_acq(&context->object.ended)) atomic_compare_exchange_strong(&slot->value, &alive, ref | CS_MAP_DEAD);
    if (done) cs_add(&cs_context_epoch, 1);
}

/* A primary one's handle stays what it is. */
static void primary_ends(struct cs_context *context)
{
    struct cs_map_slot *slot = slot_of(context);
    cs_u64 value = cs_load(&context->object.ref);
    if (slot && atomic_compare_exchange_strong(&slot->value, &value, value | CS_MAP_DEAD)) ends(context);
}

void cs_context_made(CUcontext handle)
{
    struct cs_context *context = cs_pool_get(&cs_contexts, cs_context_of(handle, -1));
    if (context) cs_store(&context->made, true);
}

void cs_context_end_unsure(CUcontext handle)
{
    struct cs_map_slot *slot = cs_map_slot(&handles, (uintptr_t)handle, false);
    struct cs_context *context = slot ? cs_pool_get(&cs_contexts, (cs_ref)cs_load_acq(&slot->value)) : NULL;
    if (context) cs_store(&context->made, false);
}

void cs_context_is_primary(CUcontext handle, int device)
{
    struct cs_context *context = cs_pool_get(&cs_contexts, cs_context_of(handle, device));
    if (context) cs_store(&context->made, true), cs_store_rel(&context->primary, true);
}

void cs_context_primary_ended(int device)
{
    cs_u32 high = cs_load_acq(&cs_contexts.high);
    for (cs_u32 i = 0; i < high && i < cs_contexts.capacity; i++) {
        struct cs_context *context = (struct cs_context *)cs_pool_slot(&cs_contexts, i);
        cs_ref ref = cs_load_acq(&context->object.ref);
        if (!ref || !cs_load_acq(&context->primary) || cs_load(&context->object.ended) || cs_load(&context->device) != device) continue;
        if (cs_load(&context->object.ref) == ref) primary_ends(context);
    }
    cs_add(&cs_context_epoch, 1);
}

void cs_context_primaries_ended(void)
{
    cs_u32 high = cs_load_acq(&cs_contexts.high);
    for (cs_u32 i = 0; i < high && i < cs_contexts.capacity; i++) {
        const struct cs_context *context = (const struct cs_context *)cs_pool_slot(&cs_contexts, i);
        if (!cs_load_acq(&context->object.ref) || !cs_load_acq(&context->primary) || cs_load(&context->object.ended)) continue;
        const int device = cs_load(&context->device);
        if (!cs_context_primary_active(device)) cs_context_primary_ended(device);
    }
}

bool cs_context_primary_active(int device)
{
    CS_KEEP_ERRNO;
    unsigned flags;
    int active = 1;
    return !cs_real.cuDevicePrimaryCtxGetState || cs_real.cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS || active;
}
