/*
 * Calls of the CUDA runtime, told by CUPTI: there is no symbol to stand in front of where the runtime is linked into the program.
 *
 * From when a call of the runtime is called back, the work that it enqueues has its number and the driver's call in it has no record (measured,
 * tests/fakecuda/test/cupti_modes.h), and that stays so. The number comes with the callback, so our record of the call has it. CUPTI knows one subscriber in a
 * process: where another client wants to be it, it is, and there are no names until it has left.
 */
#include <pthread.h>
#include <string.h>

#include "shim/base/clock.h"
#include "shim/base/log.h"
#include "shim/gpu/cupti.h"

enum { CALLS = CS_CUPTI_CALLS, UNTOLD = 4096 };

static cs_u16 call_of[CALLS]; /* by CUPTI's numbers; 0: a call without a row in our table */
static _Atomic(CUpti_SubscriberHandle) subscriber;
static _Atomic int claims;     /* other clients that are it, or are about to be */
static _Atomic bool unclaimed; /* the last of them has left since we looked */
static _Atomic bool beginning; /* we are about to be: who begins sees a claim, or who claims sees this, and waits */
static bool began;             /* once: numbers are the runtime's from then on */

/* --- names --- */

/* "cudaLaunchKernel_ptsz_v7000" is cudaLaunchKernel_ptsz. "cudaLaunchHostFunc_v2_v13020" is a row, and "cudaStreamGetCaptureInfo_v2_ptsz_v11030" one without _v2. */
static cs_u16 call_named(struct cs_cupti_names *ours, const char *name)
{
    char symbol[128];
    const char *version = NULL;
    for (const char *at = strstr(name, "_v"); at; at = strstr(at + 1, "_v")) version = at;
    const size_t length = version ? (size_t)(version - name) : strlen(name), base = cs_cupti_unversioned(name);
    if (length >= sizeof symbol) return 0;
    memcpy(symbol, name, length);
    symbol[length] = 0;
    unsigned call = cs_cupti_name_find(ours, 0, symbol, length);
    if (call || base == length) return (cs_u16)call;
    const char *sibling = strstr(symbol + base, "_pt") ?: symbol + length;
    memmove(symbol + base, sibling, strlen(sibling) + 1);
    return (cs_u16)cs_cupti_name_find(ours, 0, symbol, strlen(symbol));
}

static bool read_names(void)
{
    static bool any;
    struct cs_cupti_names ours = {0};
    for (unsigned call = CS_CALL_COUNT; !any && call < CS_RUNTIME_END; call++) cs_cupti_name_put(&ours, call, cs_runtime_name(call), strlen(cs_runtime_name(call)));
    for (cs_u32 id = 1; !any && id < CALLS; id++) {
        const char *name = NULL;
        if (cs_cupti()->cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, id, &name) == CUPTI_SUCCESS && name) call_of[id] = call_named(&ours, name);
    }
    for (cs_u32 id = 1; !any && id < CALLS; id++) any = call_of[id];
    return any;
}

/*
 * --- numbers of calls that are not recorded: their work is to be known as such ---
 *
 * Any thread writes, the writer reads; when all places are full the oldest go. A thread that is held up while it writes keeps its place: whoever comes round to
 * it meanwhile loses a number, and nobody else's waits for either.
 */

static struct untold {
    _Atomic bool busy;
    _Atomic cs_u64 number; /* of all that there were, from 1; 0: being written */
    _Atomic cs_u64 ticks;
    _Atomic cs_u32 thread, correlation;
    cs_u64 taken; /* the last number that the reader has had */
} untold[UNTOLD];
static _Atomic cs_u64 untold_count;

static void note(cs_u32 correlation)
{
    const cs_u64 number = cs_add(&untold_count, 1u) + 1;
    struct untold *u = &untold[number % UNTOLD];
    if (atomic_exchange(&u->busy, true)) return;
    if (cs_load(&u->number) < number) {
        cs_store(&u->number, 0);
        atomic_thread_fence(memory_order_release);
        cs_store(&u->ticks, cs_ticks());
        cs_store(&u->thread, (cs_u32)(uintptr_t)pthread_self());
        cs_store(&u->correlation, correlation);
        cs_store_rel(&u->number, number);
    }
    cs_store_rel(&u->busy, false);
}

/* Where the number stands there, and nobody has written meanwhile. */
static bool read_untold(const struct untold *u, cs_u64 number, struct cs_gpu_call *call)
{
    if (cs_load_acq(&u->number) != number) return false;
    const cs_u64 ticks = cs_load(&u->ticks);
    *call = (struct cs_gpu_call){ticks, ticks, cs_load(&u->thread), cs_load(&u->correlation)};
    atomic_thread_fence(memory_order_acquire);
    return cs_load(&u->number) == number;
}

void cs_cupti_runtime_drain(const struct cs_gpu_sink *to)
{
    static cs_u64 next = 1; /* all before it have been taken, or are gone */
    const cs_u64 end = cs_load(&untold_count) + 1;
    if (end - next > UNTOLD) next = end - UNTOLD;
    for (cs_u64 number = next; number < end; number++) {
        struct untold *u = &untold[number % UNTOLD];
        struct cs_gpu_call call;
        if (u->taken < number && read_untold(u, number, &call)) {
            u->taken = number;
            to->call(&call);
        }
        if (number == next && u->taken == number) next++;
    }
}

/* --- callbacks --- */

/* On the thread that makes the call. */
static void CUPTIAPI called(void *turn, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data)
{
    const CUpti_CallbackData *call = data;
    const cs_u16 now = (cs_u16)(uintptr_t)turn;
    if (domain != CUPTI_CB_DOMAIN_RUNTIME_API || id >= CALLS || !call_of[id] || !call->correlationData) return;
    if (call->callbackSite == CUPTI_API_ENTER) {
        *call->correlationData = cs_runtime_listener.begins(now);
        if (!*call->correlationData) note(call->correlationId);
    } else if (*call->correlationData) {
        cs_runtime_listener.ends(now, *call->correlationData, call_of[id], call->functionReturnValue ? *(const int *)call->functionReturnValue : 0, call->correlationId);
    }
}

static void next_turn(void)
{
    enum { LAST = 60000 }; /* far from OURS (wrap/runtime.c); a call that lasts for so many of them is told wrongly */
    const cs_u16 turn = cs_load(&cs_runtime_turn);
    cs_store(&cs_runtime_turn, turn < LAST ? (cs_u16)(turn + 1) : (cs_u16)1);
}

static bool begin(void)
{
    CUpti_SubscriberHandle handle = NULL;
    if (!cs_cupti()->cuptiSubscribe || !cs_cupti()->cuptiUnsubscribe || !cs_cupti()->cuptiEnableCallback || !cs_cupti()->cuptiGetCallbackName || !read_names()) return false;
    if (cs_cupti()->cuptiSubscribe(&handle, called, (void *)(uintptr_t)cs_load(&cs_runtime_turn)) != CUPTI_SUCCESS) return false;
    cs_store(&cs_runtime_source, CS_RUNTIME_PROFILER);
    for (cs_u32 id = 1; id < CALLS; id++)
        if (call_of[id]) cs_cupti()->cuptiEnableCallback(1, handle, CUPTI_CB_DOMAIN_RUNTIME_API, id);
    cs_store_rel(&subscriber, handle);
    return true;
}

bool cs_cupti_runtime_begin(bool wanted, bool again)
{
    cs_u64 since;
    atomic_store(&beginning, true);
    const bool begins = wanted && !atomic_load(&claims) && begin();
    atomic_store(&beginning, false);
    if (begins) {
        began = true;
        cs_gpu_set_missing(CS_GPU_RUNTIME_CALLS, NULL);
        if (again) cs_log(CS_LOG_INFO, "the other client has left CUPTI's callbacks: calls of a runtime that is linked into the program are shown again");
    } else if (wanted && !cs_gpu_missing(CS_GPU_RUNTIME_CALLS, &since)) {
        cs_log(CS_LOG_INFO, "CUPTI does not tell of the runtime's calls: it has another subscriber, or is too old");
        cs_gpu_set_missing(CS_GPU_RUNTIME_CALLS, "CUPTI has another subscriber, or is too old to tell of them");
    }
    return !began || cs_load(&subscriber);
}

bool cs_cupti_runtime_began(void) { return began; }
bool cs_cupti_runtime_is_free(void) { return atomic_exchange(&unclaimed, false) && !cs_load(&subscriber); }

bool cs_cupti_runtime_end(void)
{
    CUpti_SubscriberHandle handle = atomic_exchange(&subscriber, NULL);
    if (!handle) return false;
    cs_cupti()->cuptiUnsubscribe(handle);
    next_turn(); /* calls under way have no end */
    cs_store(&cs_runtime_source, CS_RUNTIME_SYMBOLS);
    return true;
}

void cs_cupti_runtime_unclaim(void)
{
    int n = atomic_load(&claims);
    do
        if (!n) return; /* it had not claimed: it found CUPTI's function past ours */
    while (!atomic_compare_exchange_weak(&claims, &n, n - 1));
    if (n > 1) return;
    atomic_store(&unclaimed, true);
    cs_gpu_wake();
}

void cs_cupti_runtime_claim(void)
{
    atomic_fetch_add(&claims, 1);
    if (atomic_load(&beginning)) cs_gpu_flush(1000); /* it has begun when that returns */
    if (cs_load(&cs_runtime_source) != CS_RUNTIME_PROFILER) return;
    cs_gpu_calls_missing(true); /* the driver's have no records any more where they are in the runtime's */
    cs_gpu_flush(1000);
    if (!cs_cupti_runtime_end()) return;
    cs_gpu_set_missing(CS_GPU_RUNTIME_CALLS, "another client subscribes to CUPTI's callbacks");
    cs_log(CS_LOG_INFO, "another client subscribes to CUPTI's callbacks: calls of a runtime that is linked into the program are not shown from here on");
}
