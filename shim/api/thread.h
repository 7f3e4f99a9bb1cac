/* What the library keeps of a thread. Each part has an owner further up, who empties it when the thread ends. */
#ifndef CS_API_THREAD_H
#define CS_API_THREAD_H

#include "shim/api/object.h"
#include "shim/calls/cuda_api.h"

struct api_thread {
    CUresult last;                                  /* that CUDA answered (driver.c) */
    struct api_current *current;                    /* by device (current.c) */
    struct api_pushed *pushed;
    void (*currents_end)(struct api_thread *thread); /* NULL: there is nothing to end */
    struct api_capture *captures;                   /* of its default streams (capture.c) */
    void (*captures_end)(struct api_thread *thread);
};
struct api_thread *api_thread(void); /* NULL: no memory */

extern CS_TLS unsigned char api_thread_cudas; /* host functions that CUDA has called on this thread: there CUDA may not be called */

#endif
