/*
 * STREAMS=pool and serial, for the thread sanitizer: several threads create, use and destroy
 * streams at once, in one context and in contexts that end. The stub driver knows which streams
 * live and of which context they are.
 */
#include "shim/policy/hooks.h"
#include "shim/policy/policies.h"
#include "tests/unit/driver.h"

enum { THREADS = 4, ROUNDS = 3000, REAL = 512, POOL = 3 };

/* --- the driver --- */

static pthread_mutex_t driver_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    CUcontext context; /* NULL: no stream */
    _Atomic unsigned flags;
} real[REAL];

static int number_of(CUstream stream)
{
    return (int)(((uintptr_t)stream - (uintptr_t)stub_stream(0)) / 0x3d0);
}

static CUresult real_create(CUstream *out, unsigned flags)
{
    int n = 0;
    pthread_mutex_lock(&driver_lock);
    while (real[n].context) n++; /* handles come back */
    REQUIRE(n < REAL);
    real[n].context = stub_current;
    real[n].flags = flags;
    pthread_mutex_unlock(&driver_lock);
    nanosleep(&(struct timespec){0, 20000}, NULL); /* others get on meanwhile */
    return *out = stub_stream(n), CUDA_SUCCESS;
}
static CUresult real_create_with(CUstream *out, unsigned flags, int priority)
{
    return (void)priority, real_create(out, flags);
}

static CUresult real_destroy(CUstream stream)
{
    pthread_mutex_lock(&driver_lock);
    CHECK(real[number_of(stream)].context);
    real[number_of(stream)].context = NULL;
    pthread_mutex_unlock(&driver_lock);
    return CUDA_SUCCESS;
}

static CUcontext context_of(CUstream stream)
{
    pthread_mutex_lock(&driver_lock);
    CUcontext context = real[number_of(stream)].context;
    pthread_mutex_unlock(&driver_lock);
    return context;
}
static CUresult real_context(CUstream stream, CUcontext *out)
{
    return *out = context_of(stream), CUDA_SUCCESS;
}

static void end_context(CUcontext context)
{
    pthread_mutex_lock(&driver_lock);
    for (int i = 0; i < REAL; i++)
        if (real[i].context == context) real[i].context = NULL;
    pthread_mutex_unlock(&driver_lock);
    cs_context_destroyed(cs_context_destroying(context), true);
}

static int living(unsigned flags)
{
    int n = 0;
    for (int i = 0; i < REAL; i++) n += real[i].context && real[i].flags == flags;
    return n;
}

static CUresult real_range(int *least, int *greatest)
{
    return *least = 0, *greatest = -5, CUDA_SUCCESS;
}
static CUresult real_capturing(CUstream stream, CUstreamCaptureStatus *out)
{
    return (void)stream, *out = CU_STREAM_CAPTURE_STATUS_NONE, CUDA_SUCCESS;
}

static void start(enum cs_sharing_kind kind)
{
    static struct cs_policy policy;
    stub_driver();
    cs_real.cuStreamCreate = real_create;
    cs_real.cuStreamCreateWithPriority = real_create_with;
    cs_real.cuStreamDestroy_v2 = real_destroy;
    cs_real.cuStreamGetCtx = real_context;
    cs_real.cuCtxGetStreamPriorityRange = real_range;
    cs_real.cuStreamIsCapturing = real_capturing;
    policy.sharing = (struct cs_sharing){kind, POOL};
    cs_store_rel(&cs_policy_now, &policy);
}

/* --- what the wrappers do --- */

static CUstream create(struct cs_thread *t, unsigned flags)
{
    struct cs_creation c;
    CUstream stream = NULL;
    struct cs_hooked hook;
    cs_hooks_meet(&hook, CS_CALL_cuStreamCreate, CS_KIND_STREAM, false);
    cs_steer_creation(&c, t, CS_CALL_cuStreamCreate, (const void *)&create, flags, 0, NULL, &hook);
    REQUIRE(cs_steer_create(&c, &stream) == CUDA_SUCCESS);
    cs_ref ref = cs_steer_created(&c, stream, cs_ticks());
    CHECK(ref && ref == cs_stream_find(t, stream, false));
    return stream;
}

static CUresult destroy(struct cs_thread *t, CUstream stream)
{
    CUresult answer;
    if (cs_steer_destroys_share(stream, &answer)) return answer;
    cs_ref dying = cs_stream_destroying(t, stream, false);
    answer = cs_real.cuStreamDestroy_v2(stream);
    cs_stream_destroyed(dying, answer == CUDA_SUCCESS, cs_ticks());
    return answer;
}

static struct cs_thread *enter(CUcontext context)
{
    struct cs_thread *t = cs_thread_start();
    stub_current = context;
    cs_context_of(context, 0);
    cs_context_set(t, context);
    return t;
}

static _Atomic int left;
static void *writer(void *unused)
{
    cs_u32 before[2] = {0};
    struct cs_pool *pools[2] = {&cs_streams, &cs_contexts};
    for (bool last = false; !last;) {
        last = !cs_load_acq(&left);
        for (int p = 0; p < 2; p++) {
            cs_u32 now = cs_pool_take_ended(pools[p]);
            for (cs_u32 at = before[p], after; at; at = after) {
                struct cs_object *object = cs_pool_slot(pools[p], at - 1);
                after = object->next;
                cs_pool_release(pools[p], object);
            }
            before[p] = now;
        }
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    return unused;
}

static void run(void *(*program)(void *))
{
    pthread_t threads[THREADS + 1];
    left = THREADS;
    for (int i = 0; i <= THREADS; i++)
        REQUIRE(!pthread_create(
            &threads[i], NULL, i < THREADS ? program : writer, (void *)(intptr_t)i));
    for (int i = 0; i <= THREADS; i++) pthread_join(threads[i], NULL);
}

/* --- one context --- */

static void *one_context(void *me)
{
    unsigned seed = (unsigned)(intptr_t)me + 1;
    CUcontext context = stub_context(0, 1);
    struct cs_thread *t = enter(context);
    CUstream mine[6] = {0};
    for (int i = 0; i < ROUNDS; i++) {
        seed = seed * 1664525 + 1013904223;
        unsigned k = seed >> 16 & 7, flags = k & 1 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT;
        if (k >= 6) continue;
        if (mine[k]) {
            CHECK(context_of(mine[k]) == context); /* nobody has destroyed it meanwhile */
            CHECK_IS(destroy(t, mine[k]), CUDA_SUCCESS);
            mine[k] = NULL;
        } else {
            mine[k] = create(t, flags);
            CHECK(context_of(mine[k]) == context &&
                  cs_load(&real[number_of(mine[k])].flags) == flags);
        }
    }
    for (int k = 0; k < 6; k++)
        if (mine[k]) CHECK_IS(destroy(t, mine[k]), CUDA_SUCCESS);
    cs_add(&left, -1);
    return NULL;
}

TEST(a_pool_of_several_threads_has_so_many_streams)
{
    start(CS_SHARING_POOL);
    run(one_context);
    CHECK_IS(living(CU_STREAM_DEFAULT), POOL);
    CHECK_IS(living(CU_STREAM_NON_BLOCKING), POOL);
    struct cs_thread *t = enter(stub_context(0, 1));
    for (int i = 0; i < REAL; i++) /* all shares are back: one more is refused */
        if (real[i].context) CHECK_IS(destroy(t, stub_stream(i)), CUDA_ERROR_INVALID_HANDLE);
    CHECK_IS(living(CU_STREAM_DEFAULT), POOL);
}

/* --- the first streams of a context, from all threads at once --- */

static pthread_barrier_t meet;

static void *new_context(void *me)
{
    CUcontext context = stub_context(0, 5);
    struct cs_thread *t = enter(context);
    for (int i = 0; i < ROUNDS / 6; i++) {
        const unsigned flags = ((intptr_t)me + i) % 2 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT;
        pthread_barrier_wait(&meet);
        create(t, flags);
        create(t, flags);
        if (pthread_barrier_wait(&meet) == PTHREAD_BARRIER_SERIAL_THREAD) {
            CHECK_IS(living(CU_STREAM_DEFAULT), POOL);
            CHECK_IS(living(CU_STREAM_NON_BLOCKING), POOL);
            end_context(context);
        }
        pthread_barrier_wait(&meet);
        cs_context_of(context, 0);
        cs_context_set(t, context);
    }
    return cs_add(&left, -1), me;
}

TEST(threads_that_meet_in_a_new_context_share_one_pool)
{
    start(CS_SHARING_POOL);
    pthread_barrier_init(&meet, NULL, THREADS);
    run(new_context);
}

/* --- contexts that end --- */

static void *own_contexts(void *me)
{
    CUcontext context = stub_context(0, 10 + (int)(intptr_t)me);
    struct cs_thread *t = enter(context);
    for (int i = 0; i < ROUNDS / 10; i++) {
        CUstream stream[2 * POOL];
        for (int k = 0; k < 2 * POOL; k++) {
            stream[k] = create(t, CU_STREAM_DEFAULT);
            CHECK(context_of(stream[k]) == context);
            CHECK(k < POOL || stream[k] == stream[k - POOL]);
        }
        if (i & 1) CHECK_IS(destroy(t, stream[0]), CUDA_SUCCESS);
        end_context(context);
        cs_context_of(context, 0);
        cs_context_set(t, context);
    }
    cs_add(&left, -1);
    return NULL;
}

TEST(a_pool_ends_with_its_context)
{
    start(CS_SHARING_POOL);
    run(own_contexts);
    CHECK_IS(living(CU_STREAM_DEFAULT), 0);
}

/* --- serial --- */

static void *one_carrier(void *me)
{
    struct cs_thread *t = enter(stub_context(0, 1));
    CUstream first = NULL;
    for (int i = 0; i < ROUNDS / 10; i++) {
        const struct cs_steered launch = {.call = CS_CALL_cuLaunchKernel, .kind = CS_KIND_LAUNCH},
                                asks = {.call = CS_CALL_cuStreamGetId, .kind = CS_KIND_STREAM};
        struct cs_steer steer;
        CUstream own = create(t, CU_STREAM_NON_BLOCKING),
                 carrier = cs_steer_stream(&steer, t, own, &launch);
        CHECK(carrier != own && (!first || carrier == first) && steer.asked == own);
        CHECK(cs_steer_stream(&steer, t, own, &asks) == own);
        CHECK(cs_steer_stream(&steer, t, stub_stream(400), &launch) ==
              stub_stream(400)); /* nobody's */
        first = carrier;
        CHECK_IS(destroy(t, own), CUDA_SUCCESS);
        CHECK(context_of(carrier));
    }
    return cs_add(&left, -1), me;
}

TEST(a_context_has_one_carrier)
{
    start(CS_SHARING_SERIAL);
    run(one_carrier);
    CHECK_IS(living(CU_STREAM_NON_BLOCKING), 0);
    CHECK_IS(living(CU_STREAM_DEFAULT), 1);
    end_context(stub_context(0, 1));
    run(one_carrier); /* in a new one */
    CHECK_IS(living(CU_STREAM_DEFAULT), 1);
}
