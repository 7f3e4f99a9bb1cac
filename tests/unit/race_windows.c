/* A window that a thread of the program closes while `custream ctl` brings policies: both tell the
 * writer of it (process/window.c), one at a time. */
#include "shim/process/ctl_answer.c"
#include "shim/process/window.c"

#include <pthread.h>

#include "tests/unit/check.h"

enum { ROUNDS = 300 };

static void opened(cs_u64 ticks) { (void)ticks; }
const struct cs_process_steps cs_process_steps = {.window_opened = opened};
void cs_gpu_is_ready(void) {}

static _Atomic bool brought, closed_last;

static void *closes(void *unused)
{
    while (!brought) {
        atomic_fetch_or(&cs_mode, CS_MODE_RECORD);
        cs_window_profiler(false);
    }
    closed_last = true;
    return unused;
}

static void *brings(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        char request[] = "policy {\"priority\": \"0:-1\"}", line[1024];
        cs_ctl_answer(request, line, sizeof line);
        CHECK(!strncmp(line, "ok ", 3));
    }
    brought = true;
    return unused;
}

TEST(a_policy_and_the_programs_window)
{
    pthread_t threads[2];
    setenv("CUSTREAM_WINDOW", "profiler", 1);
    cs_store(&cs_mode, CS_MODE_WATCH);
    cs_options_read();
    CHECK(!cs_window_begin());
    pthread_create(&threads[0], NULL, closes, NULL);
    pthread_create(&threads[1], NULL, brings, NULL);
    while (!closed_last) cs_windows_collect(false);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
}
