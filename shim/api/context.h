/* Devices and contexts. */
#ifndef CS_API_CONTEXT_H
#define CS_API_CONTEXT_H

#include "shim/api/driver.h"

struct api_scope {
    bool pushed;
};

/* Makes a context of the device current until api_leave: the one that is, where it is the device's, else the primary one. -1: any. *device gets its number. */
status api_enter(int *device, struct api_scope *scope);
status api_enter_primary(int device, struct api_scope *scope);
void api_leave(struct api_scope *scope);
status api_current_device(int *device); /* without making a context: 0 where there is none */
status api_device_check(int device);    /* CUSTREAM_INVALID_VALUE unless there is such a one, or it is -1 */
void api_contexts_release(void);

/* The context that something was made in. A reset ends a primary one and what is in it, and leaves its handle to the next: so CUDA's number for it is kept too. */
struct api_home {
    CUcontext context;
    cs_u64 id; /* 0: the driver gives none */
};
void api_home_now(struct api_home *home);         /* the current context */
bool api_home_lives(const struct api_home *home); /* false: CUDA has ended what was made there, and may not be asked about it */
bool api_home_is(const struct api_home *home, const struct api_home *other);

#endif
