/*
 * Mutexes with a rank. A thread takes them in rising rank only, and holds none across a call into CUDA or into the application; both are checked
 * at run time, and a breach is said on stderr, never by ending the process. docs/locks.md lists them.
 */
#ifndef CS_BASE_LOCK_H
#define CS_BASE_LOCK_H

#include <pthread.h>

#include "shim/base/compiler.h"

enum cs_lock_rank {
    CS_RANK_API,    /* api/: references, handles, pools */
    CS_RANK_WINDOW, /* process/window.c: whether calls are recorded */
    CS_RANK_GPU,    /* gpu/gpu.c: start of the GPU thread */
    CS_RANK_WRITER, /* trace/writer.c: start and stop of the writer thread */
    CS_RANK_SHARE,  /* gpu/share.c: what another client of CUPTI asked for */
    CS_RANK_NAMES,  /* object/names.c: adding a name */
};

struct cs_lock {
    pthread_mutex_t mutex;
    enum cs_lock_rank rank;
    const char *name;
};
#define CS_LOCK_INIT(rank_, name_) {PTHREAD_MUTEX_INITIALIZER, rank_, name_}

void cs_lock_take(struct cs_lock *lock);
void cs_lock_drop(struct cs_lock *lock);

/* This thread holds the lock, or some lock, where nothing of ours would ask for it: a signal handler of the program's has come in between, and must not wait
 * for what only the code under it can give back. */
bool cs_lock_interrupted(const struct cs_lock *lock);
bool cs_locks_interrupted(void);

void cs_lock_forget(struct cs_lock *lock); /* in the child of a fork: nobody holds it */

#endif
