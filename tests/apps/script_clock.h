/* Programs of tests/apps/script.c under the simulated GPU's virtual clock: threads do not take
 * turns, and go on by their own times. */
#include "tests/fakecuda/driver/clock.h"

static const struct fake_clock *virtual_clock; /* NULL: time is real */
static pthread_barrier_t all_joined;

/* The calling thread joins the clock. Before its first call. */
static void clock_join(int thread)
{
    if (!app_driver) app_driver = dlopen("libcuda.so.1", RTLD_NOW);
    const struct fake_clock *(*find)(void) = app_driver ? (const struct fake_clock *(*)(void))dlsym(
                                                              app_driver, "custream_fakecuda_clock")
                                                        : NULL;
    virtual_clock = find ? find() : NULL;
    if (virtual_clock) virtual_clock->join((unsigned)thread);
}

/* Takes so long on the calling thread. */
static void clock_pass(long us)
{
    if (virtual_clock) virtual_clock->spend((uint64_t)us * 1000);
    else nanosleep(&(struct timespec){0, us * 1000}, NULL);
}

static void clock_run(int thread)
{
    pthread_barrier_wait(&all_joined);
    virtual_clock->spend(0);
    use_device(0);
    for (int i = 0; i < line_count; i++)
        if (lines[i].thread == thread) run_line(&lines[i]);
}

static void *clock_thread(void *number)
{
    clock_join((int)(intptr_t)number);
    clock_run((int)(intptr_t)number);
    virtual_clock->leave();
    return NULL;
}

/* The program, from when its cells have been made. Says how long it took. */
static void clock_program(void)
{
    pthread_t threads[THREADS];
    pthread_barrier_init(&all_joined, NULL, (unsigned)thread_count);
    for (int i = 1; i < thread_count; i++) THREAD(&threads[i], clock_thread, (void *)(intptr_t)i);
    clock_run(0);
    virtual_clock->leave();
    for (int i = 1; i < thread_count; i++) pthread_join(threads[i], NULL);
    printf("took %llu\n", (unsigned long long)virtual_clock->finish());
}
