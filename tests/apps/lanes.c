/*
 * lanes THREADS STREAMS USED: so many threads, named "worker N", each with so many streams, and
 * work on the first USED of them.
 *
 * The streams are non-blocking, every other one with a priority. All live until the last thread is
 * through with its work. With LIBMAKER behind it, the path of that library, work comes on a stream
 * that it made as well.
 */
#include "tests/apps/app.h"

enum { THREADS_MOST = 64, STREAMS_MOST = 1024, ROUNDS = 4 };
static pthread_barrier_t through;
static CUfunction sleeps;
static long streams, used;

static void *works(void *number)
{
    static CUstream own[THREADS_MOST][STREAMS_MOST];
    CUstream *const mine = own[(long)number];
    char name[16];
    snprintf(name, sizeof name, "worker %ld", (long)number);
    pthread_setname_np(pthread_self(), name);
    OK(cuCtxSetCurrent, app_context);
    for (long i = 0; i < streams; i++)
        OK(cuStreamCreateWithPriority, &mine[i], CU_STREAM_NON_BLOCKING, i % 2 ? -2 : 0);
    for (int round = 0; round < ROUNDS; round++)
        for (long i = 0; i < used; i++) LAUNCH(sleeps, mine[i]);
    for (long i = 0; i < used; i++) OK(cuStreamSynchronize, mine[i]);
    pthread_barrier_wait(&through);
    for (long i = 0; i < streams; i++) OK(cuStreamDestroy_v2, mine[i]);
    return NULL;
}

static void on_stream_of(const char *library)
{
    void *maker = dlopen(library, RTLD_NOW), *stream = NULL;
    int (*const make_streams)(int count, void **out) =
        maker ? (int (*)(int, void **))dlsym(maker, "make_streams") : NULL;
    if (!make_streams || make_streams(1, &stream)) exit(7);
    LAUNCH(sleeps, stream);
    OK(cuStreamSynchronize, stream);
}

int main(int argc, char **argv)
{
    pthread_t workers[THREADS_MOST];
    const long threads = argc > 1 ? atol(argv[1]) : 0;
    streams = argc > 2 ? atol(argv[2]) : 0;
    used = argc > 3 ? atol(argv[3]) : 0;
    if (threads < 1 || threads > THREADS_MOST || streams < used || streams > STREAMS_MOST) return 2;
    app_start(0);
    sleeps = app_kernel("sleep_us_300");
    pthread_barrier_init(&through, NULL, (unsigned)threads);
    for (long i = 0; i < threads; i++) THREAD(&workers[i], works, (void *)i);
    for (long i = 0; i < threads; i++) pthread_join(workers[i], NULL);
    if (argc > 4) on_stream_of(argv[4]);
    app_report();
    return 0;
}
