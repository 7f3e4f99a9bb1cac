/*
 * CUPTI, opened at run time: its functions as the backend calls them, and what the files of the backend share.
 *
 * Nothing of CUPTI is linked. Its records are read by the layout that cupti.h of CUDA 13.0 gives them; newer versions of a record only append, which
 * cupti_record.c checks for those that 12.0 had.
 */
#ifndef CS_GPU_CUPTI_H
#define CS_GPU_CUPTI_H

#include "shim/gpu/backend.h" /* first: cuda.h, in the form in which the call table wants it */

#include <cupti_activity.h> /* not cupti.h, which has its own idea of old CUDA structures */
#include <cupti_callbacks.h>
#include <cupti_version.h>

#include "shim/calls/runtime.h"

#define CS_CUPTI_FUNCTIONS(F)                                                                                                                        \
    F(cuptiGetVersion, true) F(cuptiGetResultString, true) F(cuptiActivityRegisterCallbacks, true) F(cuptiActivityEnable, true)                          \
    F(cuptiActivityDisable, true) F(cuptiActivityGetNextRecord, true) F(cuptiActivityFlushAll, true) F(cuptiActivityGetNumDroppedRecords, true)         \
    F(cuptiActivityRegisterTimestampCallback, false) F(cuptiGetStreamIdEx, true) F(cuptiActivityEnableDriverApi, false) F(cuptiGetCallbackName, false)  \
    F(cuptiFinalize, false) F(cuptiActivitySetAttribute, false) F(cuptiGetGraphId, false) F(cuptiGetGraphExecId, false)                                \
    F(cuptiSubscribe, false) F(cuptiUnsubscribe, false) F(cuptiEnableCallback, false)

struct cs_cupti {
#define POINTER(name, required) __typeof__(&name) name;
    CS_CUPTI_FUNCTIONS(POINTER)
#undef POINTER
};
/* Those of the library that was opened last. Any thread's: when another copy is opened, what a thread has stays as it is. */
extern const struct cs_cupti *_Atomic cs_cupti_opened;
CS_HOT const struct cs_cupti *cs_cupti(void) { return cs_load_acq(&cs_cupti_opened); }

/* Finds and opens the library. NULL, or why not. The GPU thread's. */
const char *cs_cupti_open(void);

/* --- what CUPTI is asked for (cupti_asked.c); the GPU thread's --- */

CUptiResult cs_cupti_ask_begin(const char **name); /* and after a pause: from here on there are records. Where it fails, the kind that CUPTI refused */
void cs_cupti_ask_pause(void);                     /* nothing is on, and the backend is at work all the same */
void cs_cupti_ask_again(void);                     /* each round: what others want, or have done, has changed */
void cs_cupti_ask_end(void);

/* Any thread's. */
bool cs_cupti_paused(void);
bool cs_cupti_calls_are_all(void);  /* and not the single ones that enqueue work */
void cs_cupti_wishes_changed(void); /* has the GPU thread look at once, and waits for it, a second at most */

/* Another client's wishes, while the records are ours; on its thread. */
CUptiResult cs_cupti_ask_for_client(CUpti_ActivityKind kind, bool on); /* CUPTI's answer, or ours where it gets what we have */
void cs_cupti_mend(CUpti_ActivityKind kind);                           /* it has enabled that past us: off again where it must not be on */

enum { CS_CUPTI_CALLS = 4096 }; /* more than CUPTI has numbers for calls of the driver or the runtime */

/* --- calls (cupti_calls.c) --- */

void cs_cupti_calls_read(void);           /* the GPU thread's, as the next: which of CUPTI's numbers are calls that enqueue work */
bool cs_cupti_calls_filter(bool on);      /* asks for those of the driver, one by one. False: CUPTI can't */
bool cs_cupti_may_enqueue(const CUpti_ActivityAPI *call); /* the writer's: false where its record says nothing of any work */

size_t cs_cupti_unversioned(const char *name);            /* how long the name of a call is without its version, "_v7000" */

/* Names of our calls by their hashes: each of the thousand names that CUPTI has is looked for among them. `first` and `next` are calls; 0: none. */
struct cs_cupti_names {
    cs_u16 first[1 << 10], next[CS_RUNTIME_END];
    const char *text[CS_RUNTIME_END];
    cs_u16 length[CS_RUNTIME_END];
};
void cs_cupti_name_put(struct cs_cupti_names *names, unsigned call, const char *text, size_t length);
unsigned cs_cupti_name_find(struct cs_cupti_names *names, unsigned after, const char *text, size_t length); /* the next one behind `after`; 0: none */

/* --- calls of the runtime (cupti_runtime.c): whoever makes records of them is told --- */

/* The GPU thread's: asks for the place. False: numbers of calls are the runtime's, from an earlier time, and CUPTI does not tell us of them. */
bool cs_cupti_runtime_begin(bool wanted, bool again);
bool cs_cupti_runtime_began(void);   /* the GPU thread's: it had the place once */
bool cs_cupti_runtime_is_free(void); /* the GPU thread's, once each time: another client has left the place */
bool cs_cupti_runtime_end(void);     /* the GPU thread's, and claim's: for the time being. False: it was not at work */
/* Another client wants CUPTI's one place for a subscriber, on its thread: claimed, it is free when that returns. Given back by so many. */
void cs_cupti_runtime_claim(void);
void cs_cupti_runtime_unclaim(void);
void cs_cupti_runtime_drain(const struct cs_gpu_sink *to); /* the writer's: calls that nobody wanted to hear of, and whose work has their numbers */

/* --- buffers: CUPTI's callbacks on any thread, the rest the writer's --- */

void CUPTIAPI cs_cupti_buffer_requested(uint8_t **buffer, size_t *size, size_t *most);
void CUPTIAPI cs_cupti_buffer_completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);
void cs_cupti_buffers_drain(const struct cs_gpu_sink *to);
bool cs_cupti_buffers_behind(void); /* any thread's */
void cs_cupti_buffers_ready(void); /* has addresses for the first, and makes one ahead of time */

/* One record of a buffer, in our form. */
void cs_cupti_record(const CUpti_Activity *record, const struct cs_gpu_sink *to);

#endif
