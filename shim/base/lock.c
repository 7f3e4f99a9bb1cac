#include "shim/base/lock.h"

#include "shim/base/log.h"

static CS_TLS cs_u32 held; /* bit r: this thread holds a lock of rank r */

void cs_lock_take(struct cs_lock *lock)
{
    if (held >> lock->rank) cs_log_once(CS_LOG_ERROR, "lock %s taken out of order (held ranks %#x)", lock->name, held);
    pthread_mutex_lock(&lock->mutex);
    held |= 1u << lock->rank;
}

void cs_lock_drop(struct cs_lock *lock)
{
    held &= ~(1u << lock->rank);
    pthread_mutex_unlock(&lock->mutex);
}

void cs_lock_forget(struct cs_lock *lock)
{
    lock->mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    held &= ~(1u << lock->rank);
}
