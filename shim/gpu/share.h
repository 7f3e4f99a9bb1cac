/*
 * Sharing CUPTI with another client in the process (PyTorch's profiler, JAX's): CUPTI knows one receiver of records, so it is us, and we serve the other.
 *
 * CUPTI gets our buffers only. What the other client asked for, and no other kind, is copied into buffers that it is asked for, and given back to it when
 * full and whenever it flushes, with times in the clock that it chose. What it disables goes on while we need it; what we have that would change
 * its records (whole graphs instead of their nodes) stops while it listens. Without a backend of ours its calls go straight through, and we only
 * remember that it is there.
 *
 * The functions stand for CUPTI's of the same name and return what it would. Any thread of the application; no lock is held across a call into CUPTI or the client.
 */
#ifndef CS_GPU_SHARE_H
#define CS_GPU_SHARE_H

#include "shim/gpu/cupti.h"

#define CS_SHARED_FUNCTIONS(F)                                                                                                                       \
    F(cuptiActivityRegisterCallbacks, (CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete), (request, complete))       \
    F(cuptiActivityEnable, (CUpti_ActivityKind kind), (kind))                                                                                          \
    F(cuptiActivityDisable, (CUpti_ActivityKind kind), (kind))                                                                                         \
    F(cuptiActivityEnableDriverApi, (CUpti_CallbackId id, uint8_t enable), (id, enable))                                                               \
    F(cuptiActivityEnableRuntimeApi, (CUpti_CallbackId id, uint8_t enable), (id, enable))                                                              \
    F(cuptiActivityFlushAll, (uint32_t flag), (flag))                                                                                                  \
    F(cuptiActivityFlushPeriod, (uint32_t ms), (ms))                                                                                                   \
    F(cuptiActivityRegisterTimestampCallback, (CUpti_TimestampCallbackFunc clock), (clock))                                                            \
    F(cuptiGetTimestamp, (uint64_t *now), (now))                                                                                                       \
    F(cuptiActivityGetNumDroppedRecords, (CUcontext context, uint32_t stream, size_t *dropped), (context, stream, dropped))                            \
    F(cuptiSubscribe, (CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback, void *data), (subscriber, callback, data))                     \
    F(cuptiSubscribe_v2, (CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback, void *data, CUpti_SubscriberParams *parameters),             \
      (subscriber, callback, data, parameters))                                                                                                        \
    F(cuptiUnsubscribe, (CUpti_SubscriberHandle subscriber), (subscriber))                                                                             \
    F(cuptiEnableCallback, (uint32_t enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain, CUpti_CallbackId id),                      \
      (enable, subscriber, domain, id))                                                                                                                \
    F(cuptiEnableDomain, (uint32_t enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain), (enable, subscriber, domain))              \
    F(cuptiEnableAllDomains, (uint32_t enable, CUpti_SubscriberHandle subscriber), (enable, subscriber))                                               \
    F(cuptiFinalize, (void), ())

#define DECLARED(name, parameters, arguments) CUptiResult cs_share_##name parameters;
CS_SHARED_FUNCTIONS(DECLARED)
#undef DECLARED

/* CUPTI's own function of that name in the copy that this process shares with us; NULL where none is loaded. */
void *cs_share_real(const char *name);

/* That, for a call that goes straight through. */
#define CS_CUPTI_REAL(name) ((__typeof__(&name))cs_share_real(#name))
#define CS_CUPTI_THROUGH(name, ...)                                                                                                                  \
    do {                                                                                                                                             \
        __typeof__(&name) real_ = CS_CUPTI_REAL(name);                                                                                               \
        return real_ ? real_(__VA_ARGS__) : CUPTI_ERROR_NOT_INITIALIZED;                                                                             \
    } while (0)

/* --- the backend's side --- */

bool cs_share_begin(void); /* the backend takes the records from here on; false while another client has them */
void cs_share_end(void);
bool cs_share_has_records(void); /* between the two */
bool cs_share_subscribed(void);  /* another client has callbacks, which CUPTI's end would be the end of */
bool cs_share_called_back(void); /* of runtime calls, or had: the driver's calls in those have no records */
void cs_share_finalized(void);   /* that has been done, and all is forgotten */
void cs_share_unsubscribe(void); /* the other client's end of CUPTI, which ours is not */
bool cs_share_serves(void);                                   /* another client listens, and gets its records from us */
bool cs_share_wants(CUpti_ActivityKind kind);                 /* the other client does */
bool cs_share_wants_nodes(void);                              /* the other client wants the work of graphs, not whole graphs */
void cs_share_completed(const uint8_t *buffer, size_t valid); /* one of our buffers, before we read it ourselves */
void cs_share_dropped(size_t records);
void cs_share_after_fork_in_child(void);

#endif
