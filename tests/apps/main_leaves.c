/* main leaves by pthread_exit, as it may; the process ends with its last thread. HOW: cuda, nobody
 * has a thread left; thread, one works on; sleep, one sleeps on, and a signal ends it. What stdio
 * holds is printed by whoever ends the process. */
#include "tests/apps/app.h"

static CUstream stream;

static void *works_on(void *empty)
{
    OK(cuCtxSetCurrent, app_context);
    app_sleep_ms(300);
    for (int i = 0; i < 50; i++) LAUNCH((CUfunction)empty, stream);
    printf("the thread ends\n");
    return NULL;
}

static void *sleeps_on(void *unused)
{
    for (;;) pause();
    return unused;
}

static void at_end(void) { printf("at exit\n"); }

int main(int argc, char **argv)
{
    pthread_t thread;
    const char *how = argc > 1 ? argv[1] : "";
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    atexit(at_end);
    app_start(0);
    CUfunction empty = app_kernel("empty_kernel");
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    for (int i = 0; i < 50; i++) LAUNCH(empty, stream);
    if (!strcmp(how, "thread")) pthread_create(&thread, NULL, works_on, (void *)empty);
    if (!strcmp(how, "sleep")) pthread_create(&thread, NULL, sleeps_on, NULL);
    pthread_exit(NULL);
}
