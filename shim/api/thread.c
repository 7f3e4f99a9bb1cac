#include "shim/api/thread.h"

#include <pthread.h>
#include <stdlib.h>

CS_TLS unsigned char api_thread_cudas;

static CS_TLS struct api_thread *self;
static pthread_key_t at_exit;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_key;

static void thread_ends(void *thread)
{
    struct api_thread *ending = thread;
    if (ending->currents_end) ending->currents_end(ending);
    if (ending->captures_end) ending->captures_end(ending);
    self = NULL;
    free(thread);
}

static void make_key(void) { has_key = !pthread_key_create(&at_exit, thread_ends); }

struct api_thread *api_thread(void)
{
    if (self) return self;
    pthread_once(&once, make_key);
    self = calloc(1, sizeof *self);
    if (self && has_key) pthread_setspecific(at_exit, self);
    return self;
}
