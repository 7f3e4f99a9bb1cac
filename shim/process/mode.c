/*
 * The mode word: the one that every wrapper reads first.
 */
#include "shim/base/clock.h"
#include "shim/base/memory.h"
#include "shim/base/rings.h"
#include "shim/gpu/mark.h"
#include "shim/policy/hooks.h"
#include "shim/policy/policy.h"
#include "shim/process/inside.h"

/*
 * It has a page to itself, which reads as zero in a child: PASS. So the calls of a child that no handler of pthread_atfork tells us of (a bare clone) go straight on,
 * and it stores nothing into rings that it shares with its parent (base/rings.h). What the mode is stands in `kept`, from which the child of a fork has it back.
 */
static union {
    _Atomic unsigned word;
    char page[CS_PAGE_MOST];
} cs_mode_page __attribute__((aligned(CS_PAGE_MOST), used)) = {CS_MODE_COLD};
__asm__(".globl cs_mode\n\t.hidden cs_mode\n\t.set cs_mode, cs_mode_page"); /* a sanitizer would take an alias for a variable of its own, with nothing behind it */

static _Atomic unsigned kept = CS_MODE_COLD;
static bool guarded;
static _Atomic bool ever;
static _Atomic unsigned asked; /* hooks that have gone while somebody was at it */

unsigned cs_mode_of_policy(unsigned reach)
{
    return (reach & CS_REACH_OBJECTS ? CS_MODE_OBJECTS : 0) | (reach & CS_REACH_DEFAULTS ? CS_MODE_DEFAULTS : 0) | (reach & CS_REACH_CALLS ? CS_MODE_CALLS : 0);
}

bool cs_mode_ever_steered(void) { return cs_load(&ever); }

void cs_mode_guard(void)
{
    guarded = guarded || cs_memory_wiped_in_child(&cs_mode_page, sizeof cs_mode_page);
    if (guarded) cs_rings_allow();
}

/* Whoever comes last has seen what all have done. */
static void keep(void)
{
    unsigned now;
    do atomic_store(&kept, now = atomic_load(&cs_mode));
    while (atomic_load(&cs_mode) != now);
}

/* Where it has these bits. None is there any more once the process has begun to end. */
static bool change(unsigned there, unsigned off, unsigned on)
{
    unsigned mode = cs_load_acq(&cs_mode);
    do
        if (!(mode & there)) return false;
    while (!atomic_compare_exchange_weak(&cs_mode, &mode, (mode & ~off) | on));
    keep();
    return true;
}

/* Threads that change it at the same time: who comes last has looked after all changes. */
static void marks_change(void)
{
    bool marks;
    do marks = atomic_load(&cs_gpu_marking);
    while (change(CS_MODE_WATCH, CS_MODE_MARKS, marks ? CS_MODE_MARKS : 0) && atomic_load(&cs_gpu_marking) != marks);
}

void cs_mode_begin(bool records, unsigned steers)
{
    if (steers) cs_store(&ever, true);
    cs_store_rel(&cs_mode, CS_MODE_WATCH | steers | (records ? CS_MODE_RECORD : 0) | (cs_clock_is_counter ? CS_MODE_COUNTER : 0));
    keep();
    cs_gpu_marks_change = marks_change;
    marks_change();
}

void cs_mode_end(void)
{
    cs_store_rel(&cs_mode, CS_MODE_PASS);
    keep();
}

static unsigned warm; /* what the mode was before the driver went */

void cs_mode_cool(void)
{
    warm = atomic_exchange(&cs_mode, CS_MODE_COLD);
    keep();
}

void cs_mode_warm_up(void)
{
    cs_store_rel(&cs_mode, warm);
    keep();
}

bool cs_mode_record(void) { return change(CS_MODE_WATCH, 0, CS_MODE_RECORD); }
void cs_mode_rest(void) { change(CS_MODE_WATCH, CS_MODE_RECORD, 0); }

bool cs_mode_steer(unsigned bits)
{
    if (bits) cs_store(&ever, true);
    return change(CS_MODE_WATCH, bits & CS_MODE_HOOKS ? CS_MODE_LEAVING : 0, bits);
}

/* The hooks are looked at between two steps. Who registers one in between has it in the table first and takes LEAVING back then: either it is seen in the table,
 * or the second step finds that the word has changed. One thread at a time; others have it look once more. */
void cs_mode_hook_gone(void)
{
    unsigned known;
    if (atomic_fetch_add(&asked, 1u)) return;
    do {
        known = cs_load(&asked);
        if (change(CS_MODE_HOOKS, 0, CS_MODE_LEAVING)) change(CS_MODE_LEAVING, cs_hooks_any() ? CS_MODE_LEAVING : CS_MODE_LEAVING | CS_MODE_HOOKS, 0);
    } while (!atomic_compare_exchange_strong(&asked, &known, 0u));
}

void cs_mode_after_fork_in_child(void)
{
    if (guarded) cs_store_rel(&cs_mode, cs_load(&kept));
    cs_store(&asked, 0u);
    change(CS_MODE_WATCH, CS_MODE_LEAVING, 0);
}
