#include "shim/base/lock.h"

#include "shim/base/log.h"

/* Bit r: this thread holds a lock of rank r, or is about to: from before it has it until it has given it back, so that a signal handler can tell. */
static CS_TLS _Atomic cs_u32 held;

static void now_held(cs_u32 ranks)
{
    cs_store(&held, ranks);
    atomic_signal_fence(memory_order_seq_cst);
}

void cs_lock_take(struct cs_lock *lock)
{
    const cs_u32 before = cs_load(&held);
    if (before >> lock->rank) cs_log_once(CS_LOG_ERROR, "lock %s taken out of order (held ranks %#x)", lock->name, before);
    now_held(before | 1u << lock->rank);
    pthread_mutex_lock(&lock->mutex);
}

void cs_lock_drop(struct cs_lock *lock)
{
    pthread_mutex_unlock(&lock->mutex);
    atomic_signal_fence(memory_order_seq_cst);
    now_held(cs_load(&held) & ~(1u << lock->rank));
}

bool cs_lock_interrupted(const struct cs_lock *lock) { return cs_load(&held) >> lock->rank & 1; }
bool cs_locks_interrupted(void) { return cs_load(&held); }

void cs_lock_forget(struct cs_lock *lock)
{
    lock->mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    now_held(cs_load(&held) & ~(1u << lock->rank));
}
