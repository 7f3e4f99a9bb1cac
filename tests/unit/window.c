/* Two threads that make their first call at once (process/window.c). The lock is where the second
 * one comes in between. */
#include "shim/base/lock.h"

static void other_comes(void);
#define cs_lock_take(lock) (other_comes(), (cs_lock_take)(lock))
#include "shim/process/window.c"
#undef cs_lock_take

#include <stdlib.h>

#include "tests/unit/check.h"

static void opened(cs_u64 ticks) { (void)ticks; }
const struct cs_process_steps cs_process_steps = {.window_opened = opened};
void cs_gpu_is_ready(void) {}

static bool comes;
static cs_u64 due; /* as the other one's custream-ctl finds it */

static void other_comes(void)
{
    if (!comes) return;
    comes = false;
    cs_window_first_call();
    due = cs_window_due();
}

TEST(times_are_known_to_whoever_has_made_its_first_call)
{
    setenv("CUSTREAM_WINDOW", "delay=1000,duration=1000", 1);
    cs_store(&cs_mode, CS_MODE_WATCH);
    cs_options_read();
    CHECK(!cs_window_begin());
    comes = true;
    cs_window_first_call();
    CHECK(!comes && due <= 1000 * 1000000000ull);
    CHECK(cs_window_due() <= 1000 * 1000000000ull);
}
