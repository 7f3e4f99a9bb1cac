#include "shim/process/mode.h"

#include "shim/base/clock.h"
#include "shim/gpu/mark.h"
#include "shim/policy/hooks.h"
#include "shim/policy/policy.h"

CS_READ_MOSTLY _Atomic unsigned cs_mode = CS_MODE_COLD;

static _Atomic bool ever;
static _Atomic unsigned asked; /* hooks that have gone while somebody was at it */

unsigned cs_mode_of_policy(unsigned reach)
{
    return (reach & CS_REACH_OBJECTS ? CS_MODE_OBJECTS : 0) | (reach & CS_REACH_DEFAULTS ? CS_MODE_DEFAULTS : 0) | (reach & CS_REACH_CALLS ? CS_MODE_CALLS : 0);
}

void cs_mode_steered(unsigned bits)
{
    if (bits) cs_store(&ever, true);
}

bool cs_mode_ever_steered(void) { return cs_load(&ever); }

bool cs_mode_steer(unsigned bits)
{
    unsigned mode = cs_load_acq(&cs_mode);
    cs_mode_steered(bits);
    do
        if (!(mode & CS_MODE_WATCH)) return false;
    while (!atomic_compare_exchange_weak(&cs_mode, &mode, (mode | bits) & ~(unsigned)(bits & CS_MODE_HOOKS ? CS_MODE_LEAVING : 0)));
    return true;
}

/* The hooks are looked at between two steps. Who registers one in between has it in the table first and takes LEAVING back then: either it is seen in the table,
 * or the second step finds that the word has changed. */
static void leave(void)
{
    unsigned mode = atomic_load(&cs_mode);
    do
        if (!(mode & CS_MODE_HOOKS)) return;
    while (!atomic_compare_exchange_weak(&cs_mode, &mode, mode | CS_MODE_LEAVING));
    const bool stays = cs_hooks_any();
    mode = atomic_load(&cs_mode);
    do
        if (!(mode & CS_MODE_LEAVING)) return;
    while (!atomic_compare_exchange_weak(&cs_mode, &mode, mode & ~(unsigned)(stays ? CS_MODE_LEAVING : CS_MODE_LEAVING | CS_MODE_HOOKS)));
}

/* One thread at a time; others have it look once more. */
void cs_mode_hook_gone(void)
{
    unsigned known;
    if (atomic_fetch_add(&asked, 1u)) return;
    do {
        known = cs_load(&asked);
        leave();
    } while (!atomic_compare_exchange_strong(&asked, &known, 0u));
}

void cs_mode_after_fork_in_child(void)
{
    cs_store(&asked, 0u);
    atomic_fetch_and(&cs_mode, ~(unsigned)CS_MODE_LEAVING);
}

/* Threads that change it at the same time: the last look decides. */
static void marks_change(void)
{
    unsigned mode = atomic_load(&cs_mode), wanted;
    do {
        if (!(mode & CS_MODE_WATCH)) return;
        wanted = atomic_load(&cs_gpu_marking) ? mode | CS_MODE_MARKS : mode & ~(unsigned)CS_MODE_MARKS;
    } while (!atomic_compare_exchange_weak(&cs_mode, &mode, wanted));
}

unsigned cs_mode_to_record(void)
{
    cs_gpu_marks_change = marks_change;
    return (cs_clock_is_counter ? CS_MODE_COUNTER : 0) | (cs_load(&cs_gpu_marking) ? CS_MODE_MARKS : 0);
}
