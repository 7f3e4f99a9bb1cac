/*
 * Signals while the shim records: a signal that only the program's thread takes stays pending while
 * that thread blocks it, since no other thread of the process may take it; a timer's signals all
 * arrive on the program's thread.
 */
#include "tests/apps/app.h"

#include <signal.h>
#include <sys/time.h>

static volatile sig_atomic_t handled, elsewhere;
static long main_tid;

static void handler(int unused)
{
    (void)unused;
    handled++;
    if (app_tid() != main_tid) elsewhere++;
}

/* Signal by signal: a sigset_t has room for more than there are, and neither the kernel nor
 * sigemptyset() of newer C libraries writes the rest. */
static int same(const sigset_t *a, const sigset_t *b)
{
    for (int i = 1; i <= SIGRTMAX; i++)
        if (sigismember(a, i) != sigismember(b, i)) return 0;
    return 1;
}

int main(void)
{
    sigset_t usr1, pending, now, before;
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct itimerval timer = {{0, 2000}, {0, 2000}};
    CUstream stream;
    main_tid = app_tid();
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
    app_start(0);
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    printf("mask kept %d\n", same(&before, &now));

    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &usr1, NULL);
    kill(getpid(), SIGUSR1);
    app_sleep_ms(100);
    sigpending(&pending);
    printf("pending %d handled %d\n", sigismember(&pending, SIGUSR1), (int)handled);
    pthread_sigmask(SIG_UNBLOCK, &usr1, NULL);
    printf("handled %d elsewhere %d\n", (int)handled, (int)elsewhere);

    handled = 0;
    setitimer(ITIMER_REAL, &timer, NULL);
    for (int i = 0; handled < 50; i++) {
        OK(cuMemsetD8Async, 0, 0, 0, stream);
        if (i % 50 == 0) app_sleep_ms(1);
    }
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
    printf("timer came, elsewhere %d\n", (int)elsewhere);
    OK(cuStreamDestroy_v2, stream);
    struct sigaction after;
    sigaction(SIGUSR1, NULL, &after);
    printf("handler kept %d\n", after.sa_handler == handler);
    return 0;
}
