/*
 * custream.h: CUDA streams, events, graphs and the current stream as objects; hooks;
 * annotations of the timeline. docs/custream-h.md is the guide. docs/api.md has a row for each
 * function: what it gives and who owns that, its threads, its calls of CUDA, its answers.
 *
 * It does what cuda.core, CuPy, Warp and PyTorch do with streams, and more. It is C99 and C++.
 * It needs no CUDA header: CUstream, CUevent, CUgraph, CUgraphExec and CUcontext are `void *`
 * here. They equal the runtime's cudaStream_t, cudaEvent_t, cudaGraph_t and cudaGraphExec_t.
 *
 * There are three ways to use it. Link libcustream.so (pkg-config custream). Or find the
 * functions with dlsym(RTLD_DEFAULT, ...) in a process that has libcustream_shim.so preloaded.
 * Or dlopen libcustream.so. If the preload library is in the process, its functions serve a
 * program that links or finds them: the objects made here are in its timeline, its policies
 * apply, and a stream of anybody can be wrapped. A libcustream.so that was opened keeps its own
 * objects, and passes hooks and annotations on.
 *
 * Everywhere:
 *  - Functions return a status. Outputs are written only on CUSTREAM_SUCCESS, unless the
 *    comment says otherwise. NULL for a required object or output is CUSTREAM_INVALID_VALUE. A
 *    closed object is CUSTREAM_CLOSED. An error of CUDA is CUSTREAM_DRIVER;
 *    custream_last_driver_error has its code.
 *  - Any thread may call any function with any object. An object is valid while somebody holds
 *    a reference. Using it after the last release is an error of the caller, as with free.
 *  - `device` is CUDA's device number. -1 is the current device: that of the thread's current
 *    context, or device 0 without one.
 *  - If no context is current, or the current one has ended (cuDevicePrimaryCtxReset), the
 *    device's primary context is made current, as in the CUDA runtime. custream_init can switch
 *    this off.
 *  - Streams and events end with their context. Their objects remain, and must be released. Any
 *    other use of them is an error of the caller.
 *  - Structures that begin with their size may grow at the end in later versions. Programs that
 *    were compiled against another version keep working. A field that the program's structure
 *    lacks has its default. A field that this library does not know must be 0, its default, or
 *    the call answers CUSTREAM_NOT_SUPPORTED. In a structure that a function fills, such a
 *    field is 0. A structure that the library gives to a program (custream_hook_info_t,
 *    custream_plugin_api_t) has a field if its size reaches past it.
 *  - CUDA calls only the functions given to custream_add_callback and
 *    custream_launch_host_func. They must not call CUDA. Of this library they may call only
 *    custream_retain and custream_release.
 */
#ifndef CUSTREAM_H
#define CUSTREAM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- status --- */

typedef enum custream_status {
    CUSTREAM_SUCCESS = 0,
    CUSTREAM_NOT_READY = 1,             /* work is not done yet; no error */
    CUSTREAM_INVALID_VALUE = 2,         /* an argument is NULL, out of range, or an unknown flag */
    CUSTREAM_INVALID_HANDLE = 3,        /* CUDA does not know the handle, or no longer */
    CUSTREAM_CLOSED = 4,                /* the object was closed */
    CUSTREAM_DEVICE_MISMATCH = 5,       /* stream, event and device do not belong together */
    CUSTREAM_PRIORITY_OUT_OF_RANGE = 6, /* with CUSTREAM_PRIORITY_STRICT */
    CUSTREAM_CAPTURE_STATE = 7,         /* already capturing, not capturing, paused, or another's capture */
    CUSTREAM_CAPTURE_INVALIDATED = 8,   /* a call that is not permitted broke the capture */
    CUSTREAM_CAPTURE_UNSUPPORTED = 9,   /* not permitted in a capture, or the legacy default stream */
    CUSTREAM_TIMING_DISABLED = 10,      /* the event takes no times */
    CUSTREAM_NOT_RECORDED = 11,         /* the event was never recorded */
    CUSTREAM_IPC = 12,                  /* the event is not for other processes, or came from one */
    CUSTREAM_NO_CONTEXT = 13,           /* no context is current, and none may be made */
    CUSTREAM_NOT_SUPPORTED = 14,        /* not by this driver or library, or without the preload library */
    CUSTREAM_NO_MEMORY = 15,            /* of the host */
    CUSTREAM_DRIVER = 16                /* any other error of CUDA */
} custream_status_t;

/* The name, such as "CUSTREAM_NOT_READY"; of an unknown number "CUSTREAM_UNKNOWN". Static. */
const char *custream_status_name(custream_status_t status);

/* One line that explains the status. A static string. */
const char *custream_status_string(custream_status_t status);

/* The CUresult of the last function of this library on the calling thread that called CUDA. 0 if
 * that call succeeded. *cuda is always written. For the status CUSTREAM_DRIVER in a callback, see
 * custream_add_callback. */
custream_status_t custream_last_driver_error(int *cuda);

/* --- objects --- */

typedef struct custream_s *custream_t;             /* a stream */
typedef struct custream_event_s *custream_event_t; /* an event */
typedef struct custream_graph_s *custream_graph_t; /* a captured graph and its executable form */

/* --- library --- */

typedef struct custream_init_options {
    size_t size;          /* sizeof the structure; custream_init_options_init sets it */
    const char *driver;   /* path of libcuda; NULL: the loaded one, else libcuda.so.1 */
    int make_context;     /* 1, the default: as above; 0: no context is CUSTREAM_NO_CONTEXT, as in cuda.core */
} custream_init_options_t;

/* custream_init_options_init(&options) sets all fields to their defaults. The size is that of the
 * structure with which the caller was compiled. */
custream_status_t custream_init_options_init_sized(custream_init_options_t *options, size_t size);
#define custream_init_options_init(options) custream_init_options_init_sized(options, sizeof(custream_init_options_t))

/* Finds the driver (cuInit) and reads the environment. Every other function does this by itself,
 * with the defaults. The first call counts: a later call with other options is
 * CUSTREAM_INVALID_VALUE. options NULL: the defaults. CUSTREAM_NOT_SUPPORTED: no driver. */
custream_status_t custream_init(const custream_init_options_t *options);

/* Releases what the library itself holds: pools, cached events, default streams of devices, and a
 * primary context that contains nothing else of this library. Objects of the program stay valid. A
 * context that the program has retained stays current. A later call begins anew. */
custream_status_t custream_shutdown(void);

/* The version as 10000 * major + 100 * minor + patch, and as text, which is a static string. */
custream_status_t custream_version(int *version);
const char *custream_version_string(void);

/* --- priorities --- */

typedef enum custream_priority_policy {
    CUSTREAM_PRIORITY_CLAMP = 0,      /* to the device's range, as CUDA and CuPy do: the default */
    CUSTREAM_PRIORITY_CLAMP_BAND = 1, /* to a narrower range: Warp 0..-1, PyTorch 0..-3 */
    CUSTREAM_PRIORITY_STRICT = 2      /* out of range: CUSTREAM_PRIORITY_OUT_OF_RANGE, as cuda.core */
} custream_priority_policy_t;

/* The range of priorities that this process sees. least is the lowest priority and numerically the
 * largest (0). greatest is the highest priority and numerically the smallest (such as -5). Both are
 * 0 if the device has no priorities. It is the range of cuCtxGetStreamPriorityRange, narrowed by
 * custream_set_priority_band. Either output may be NULL. */
custream_status_t custream_priority_range(int device, int *least, int *greatest);

/* The priority that a request would get, without making a stream. CLAMP uses the range of
 * custream_priority_range. STRICT answers an error. CLAMP_BAND uses its part within 0..-1. */
custream_status_t custream_clamp_priority(int device, custream_priority_policy_t policy,
                                          int wanted, int *got);

/* Narrows the range of a device for all requests to this library. least must be 0. greatest must be
 * between -1 and the device's greatest. 0, 0 removes the band. */
custream_status_t custream_set_priority_band(int device, int least, int greatest);

/* --- streams --- */

enum {
    CUSTREAM_DEFAULT = 0,     /* blocking: ordered with the legacy default stream (CU_STREAM_DEFAULT) */
    CUSTREAM_NON_BLOCKING = 1 /* not ordered with it (CU_STREAM_NON_BLOCKING) */
};

typedef struct custream_options {
    size_t size;                /* sizeof the structure; custream_options_init sets it */
    int device;                 /* -1 */
    unsigned flags;             /* CUSTREAM_NON_BLOCKING (cuda.core, PyTorch); CuPy, Warp: the other */
    int priority;               /* 0, the least */
    custream_priority_policy_t priority_policy; /* CUSTREAM_PRIORITY_CLAMP */
    int band_least, band_greatest; /* of CLAMP_BAND: 0, -1 */
    int pooled;                 /* 0; 1: from the pool; needs CUSTREAM_NON_BLOCKING, no name */
    const char *name;           /* NULL; copied */
} custream_options_t;

/* Sets all fields to their defaults, as custream_init_options_init does. */
custream_status_t custream_options_init_sized(custream_options_t *options, size_t size);
#define custream_options_init(options) custream_options_init_sized(options, sizeof(custream_options_t))

/* Creates a stream in the device's current context, or in its primary context if none is current.
 * options NULL: the defaults. The caller has one reference. The last release destroys the stream
 * (cuStreamDestroy); its work is still done. Uses cuStreamCreateWithPriority. */
custream_status_t custream_create(custream_t *stream, const custream_options_t *options);

enum { CUSTREAM_POOL_SIZE = 32 };

/* Gives the next of the device's 32 non-blocking streams of a priority. The streams are made at the
 * first request and never destroyed. They are given out in turn: the 33rd request gets the first
 * stream again. They are in the device's primary context, whichever context is current, as in
 * PyTorch. A reset ends them, and the next request makes new ones. The priority is clamped to
 * 0..-3, as in PyTorch. With avoid_capturing, streams that capture are skipped; if all of them
 * capture, the answer is CUSTREAM_CAPTURE_STATE. The caller has one reference. */
custream_status_t custream_create_from_pool(custream_t *stream, int device, int priority,
                                            int avoid_capturing);

/* Makes an object for a CUstream that somebody else made and destroys. While an object for a handle
 * exists, the same handle gives the same object (for an owned stream: its owner), and release is
 * called at once. device -1: CUDA is asked. release(owner), if not NULL, is called once, on the
 * thread that closes the object or gives the last reference back. If that happens inside a function
 * that CUDA called, another thread calls release. Handles NULL, 1 and 2 give the default streams. A
 * device other than the stream's is CUSTREAM_DEVICE_MISMATCH. Passing a destroyed handle is an
 * error of the caller: CUDA does not check them. (The preload library does, if it saw the end.) */
custream_status_t custream_wrap(custream_t *stream, void *handle, int device,
                                void (*release)(void *owner), void *owner);

/* Releasing the last reference of an owned stream destroys the stream, and answers what CUDA says
 * of that. A hook may refuse it. The reference is gone in any case. */
custream_status_t custream_retain(custream_t stream);
custream_status_t custream_release(custream_t stream);

/* Ends the use of a stream now. An owned stream is destroyed, with the same answer as
 * custream_release. A wrapped one is let go, and release is called. Closing it again is allowed.
 * Other functions then answer CUSTREAM_CLOSED, except custream_release, _retain, _close, _compare,
 * _equal, _hash, _format and _get_id. A closed stream is no longer current. If another thread is in
 * a call with the stream, that call may answer CUSTREAM_INVALID_HANDLE. Default streams and streams
 * of a pool cannot be closed: CUSTREAM_INVALID_VALUE. */
custream_status_t custream_close(custream_t stream);

/* The default streams. There is one object for each, and it never ends. Its references are counted
 * and have no effect. The handles are 1 (CU_STREAM_LEGACY) and 2 (CU_STREAM_PER_THREAD). Which
 * stream that is depends on the context and the thread that use it. */
custream_status_t custream_legacy_default(custream_t *stream);
custream_status_t custream_per_thread_default(custream_t *stream);

typedef enum custream_default_mode {
    CUSTREAM_DEFAULT_LEGACY = 0,
    CUSTREAM_DEFAULT_PER_THREAD = 1,
    CUSTREAM_DEFAULT_DEVICE = 2 /* one blocking stream per device, as in Warp; new after a reset */
} custream_default_mode_t;

/* Decides what custream_default returns, and what the current stream is at first. The initial mode
 * is legacy. It is per-thread if CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM or
 * CUPY_CUDA_PER_THREAD_DEFAULT_STREAM is a number other than 0. It does not change what CUDA does
 * with handle 0. The option CUSTREAM_DEFAULT_STREAM does that. */
custream_status_t custream_set_default_mode(custream_default_mode_t mode);
custream_status_t custream_get_default_mode(custream_default_mode_t *mode);
custream_status_t custream_default(int device, custream_t *stream);

/* --- what a stream is --- */

custream_status_t custream_get_handle(custream_t stream, void **handle);  /* CUstream */
custream_status_t custream_get_id(custream_t stream, uint64_t *id);       /* of the object; never reused */
custream_status_t custream_get_device(custream_t stream, int *device);    /* default stream: the current one */
custream_status_t custream_get_context(custream_t stream, void **context); /* CUcontext (cuStreamGetCtx) */
/* cuStreamGetFlags. If the stream captured when it was wrapped, the answer is
 * CUSTREAM_CAPTURE_UNSUPPORTED while it captures: asking CUDA would break the capture. */
custream_status_t custream_get_flags(custream_t stream, unsigned *flags);

custream_status_t custream_is_nonblocking(custream_t stream, int *nonblocking);
custream_status_t custream_is_owned(custream_t stream, int *owned);       /* 1: the last release destroys it */

/* The priority that the stream has (cuStreamGetPriority), and the one that was requested. If the
 * request is not known, as for some wrapped streams, both are the same. */
custream_status_t custream_get_priority(custream_t stream, int *priority);
custream_status_t custream_get_requested_priority(custream_t stream, int *priority);

/* A name for the timeline. It is copied. NULL or "" removes it. get writes at most size bytes,
 * including the final 0. *length (may be NULL) is the full length without the 0. Size 0: length only. */
custream_status_t custream_set_name(custream_t stream, const char *name);
custream_status_t custream_get_name(custream_t stream, char *name, size_t size, size_t *length);

/* One line such as "custream 3: stream 0x5581… on device 0, non-blocking, priority -1, \"name\"".
 * Sizes are as in custream_get_name. It also works for a closed stream. */
custream_status_t custream_format(custream_t stream, char *text, size_t size, size_t *length);

/* The values of Python's __cuda_stream__ protocol: version 0 and the handle. Either may be NULL. */
custream_status_t custream_protocol(custream_t stream, int *version, uintptr_t *handle);

/* Compares by device, then by handle: *order is -1, 0 or 1. The order is total, and does not change
 * while both live. With CUSTREAM_STREAMS=pool:N, streams that share are equal. */
custream_status_t custream_compare(custream_t a, custream_t b, int *order);
int custream_equal(custream_t a, custream_t b); /* 1: same device and handle; NULL equals only NULL */
uint64_t custream_hash(custream_t stream);      /* equal streams, equal hashes; 0 of NULL */

/* --- the current stream --- */

enum {
    CUSTREAM_SCOPE_THREAD = 0,  /* of the calling thread, as in CuPy and PyTorch: the default */
    CUSTREAM_SCOPE_PROCESS = 1, /* of all threads that have set none, as in Warp */
    CUSTREAM_SYNC = 2,          /* the new stream waits for what is on the old one */
    CUSTREAM_SWITCH_DEVICE = 4, /* also makes the stream's device current, as in PyTorch */
    CUSTREAM_CHECK_DEVICE = 8,  /* another device is CUSTREAM_DEVICE_MISMATCH, as in CuPy and Warp */
    CUSTREAM_SYNC_EXIT = 16     /* for pop: the stream that becomes current waits for the other */
};

/* The current stream of the calling thread and a device. It is custream_default if none was set.
 * The caller gets a reference. */
custream_status_t custream_current(int device, custream_t *stream);

/* Makes the stream current on its device. A default stream becomes current on the current device.
 * The thread holds a reference. */
custream_status_t custream_set_current(custream_t stream, unsigned flags);

/* Makes the stream current until the matching pop. pop restores the stream of before, and the
 * device if push switched it. It does so even after custream_set_current in between. Both belong to
 * the calling thread. pop without push is CUSTREAM_INVALID_VALUE. pop has one flag,
 * CUSTREAM_SYNC_EXIT. If the stream was closed in the meantime, nothing waits. Any other error of
 * pop means that it could not wait or could not restore the device; it has popped all the same. */
custream_status_t custream_push(custream_t stream, unsigned flags);
custream_status_t custream_pop(unsigned flags);

/* --- order and completion --- */

/* CUSTREAM_SUCCESS: all work is done. CUSTREAM_NOT_READY: it is not. In a capture the answer is
 * CUSTREAM_CAPTURE_UNSUPPORTED, and the capture goes on. Uses cuStreamQuery. */
custream_status_t custream_query(custream_t stream);

/* Blocks until all work is done. In a capture the answer is CUSTREAM_CAPTURE_UNSUPPORTED, and the
 * capture goes on. For a device, this is the answer if one of this library's streams captures, or
 * if anybody's blocking stream does. The library does not know other captures: CUDA breaks those
 * that do not permit the call. Uses cuStreamSynchronize and cuCtxSynchronize. */
custream_status_t custream_synchronize(custream_t stream);
custream_status_t custream_device_synchronize(int device);

enum {
    CUSTREAM_EXTERNAL = 1,             /* in a capture: a node that works across graphs (CU_EVENT_..._EXTERNAL) */
    CUSTREAM_EXTERNAL_IF_CAPTURING = 2 /* the same, without an error outside of a capture */
};

/* Records the event on the stream (cuEventRecordWithFlags). An event of a device other than the
 * stream's is CUSTREAM_DEVICE_MISMATCH. */
custream_status_t custream_record(custream_t stream, custream_event_t event, unsigned flags);

struct custream_event_options;
/* Makes an event on the stream's device and records it. The caller has its reference. options may be NULL. */
custream_status_t custream_record_new(custream_t stream,
                                      const struct custream_event_options *options, custream_event_t *event);

/* Later work on the stream waits for what the event has recorded. It does not wait if the event was
 * never recorded. Uses cuStreamWaitEvent. */
custream_status_t custream_wait_event(custream_t stream, custream_event_t event, unsigned flags);

/* The stream waits for what is on `other` now. An event is recorded there: `event`, or if it is
 * NULL, the cached event of `other`. A stream that waits for itself does nothing. */
custream_status_t custream_wait_stream(custream_t stream, custream_t other,
                                       custream_event_t event, unsigned flags);

/* The same for a CUstream that has no object here. */
custream_status_t custream_wait_handle(custream_t stream, void *foreign_stream);

/* The event, without times, that wait_stream records on this stream. It is made when it is first
 * needed, and ends with the stream. The caller gets a reference. For CUDA's default streams, this
 * is one event for the current device and context. wait_stream does not use that one. */
custream_status_t custream_cached_event(custream_t stream, custream_event_t *event);

/* --- host functions --- */

/* Calls function(stream, status, arg) on a thread of CUDA when all earlier work is done. Later work
 * waits until it returns. status is CUSTREAM_SUCCESS or CUSTREAM_DRIVER; inside the function,
 * custream_last_driver_error has the code. The stream is referenced until then. In a capture:
 * CUSTREAM_CAPTURE_UNSUPPORTED. Uses cuStreamAddCallback. */
custream_status_t custream_add_callback(custream_t stream, void (*function)(custream_t stream,
                                        custream_status_t status, void *arg), void *arg);

/* Calls function(arg) in stream order, but not after an error. In a capture it becomes a node of
 * the graph. destroy(arg), if not NULL, is called once when no call can follow: after the call, or
 * when the captured graph and its executables are gone. After an error it is never called. No other
 * thread may begin or end a capture of the stream during this call. Uses cuLaunchHostFunc. */
custream_status_t custream_launch_host_func(custream_t stream, void (*function)(void *arg),
                                            void *arg, void (*destroy)(void *arg));

/* --- capture and graphs --- */

typedef enum custream_capture_mode {
    CUSTREAM_CAPTURE_GLOBAL = 0,       /* as in PyTorch */
    CUSTREAM_CAPTURE_THREAD_LOCAL = 1, /* as in Warp */
    CUSTREAM_CAPTURE_RELAXED = 2       /* as in cuda.core and CuPy */
} custream_capture_mode_t;

typedef enum custream_capture_status {
    CUSTREAM_CAPTURE_NONE = 0,
    CUSTREAM_CAPTURE_ACTIVE = 1,
    CUSTREAM_CAPTURE_BROKEN = 2 /* invalidated: end it */
} custream_capture_status_t;

/* Begins and ends a capture (cuStreamBeginCapture, cuStreamEndCapture). The legacy default stream:
 * CUSTREAM_CAPTURE_UNSUPPORTED. The caller has the graph's reference. A broken capture ends with
 * CUSTREAM_CAPTURE_INVALIDATED and no graph. */
custream_status_t custream_begin_capture(custream_t stream, custream_capture_mode_t mode);
custream_status_t custream_end_capture(custream_t stream, custream_graph_t *graph);

/* The state of the capture (cuStreamGetCaptureInfo). id (may be NULL): the capture's, or 0. */
custream_status_t custream_capture_status(custream_t stream, custream_capture_status_t *status,
                                          uint64_t *id);
custream_status_t custream_is_capturing(custream_t stream, int *capturing); /* 1 even if broken */

/* Takes over a capture that somebody else began on the stream. custream_end_capture can then end
 * it. Without a capture: CUSTREAM_CAPTURE_STATE. If paused and resumed, it goes on in relaxed mode. */
custream_status_t custream_adopt_capture(custream_t stream);

/* pause takes the stream out of its capture, so that calls on it are executed. resume continues
 * with the same graph. Before CUDA 12.3 both are CUSTREAM_NOT_SUPPORTED
 * (no cuStreamBeginCaptureToGraph). Streams that joined the capture must have been joined back. */
custream_status_t custream_pause_capture(custream_t stream);
custream_status_t custream_resume_capture(custream_t stream);

/* Sets the calling thread's capture mode and gives back the former one. Uses
 * cuThreadExchangeStreamCaptureMode. */
custream_status_t custream_exchange_capture_mode(custream_capture_mode_t *mode);

/* fork makes n streams of the same kind that wait for what is on this stream. join makes this
 * stream wait for all of them, then closes and releases them. In a capture they take part in it.
 * They are destroyed when the capture is over, whoever ends it. No stream may be in `in` twice. */
custream_status_t custream_fork(custream_t stream, int n, custream_t out[]);
custream_status_t custream_join(custream_t stream, int n, custream_t const in[]);

/* instantiate makes the graph executable; a second call does nothing. launch and upload call it if
 * necessary. Uses cuGraphInstantiateWithFlags, cuGraphLaunch and cuGraphUpload. */
custream_status_t custream_graph_instantiate(custream_graph_t graph);
custream_status_t custream_graph_launch(custream_graph_t graph, custream_t stream); /* NULL: current */
custream_status_t custream_graph_upload(custream_graph_t graph, custream_t stream);
/* Writes a description for Graphviz to a file. flags: cuGraphDebugDotPrint's; 0 is short. */
custream_status_t custream_graph_debug_dot(custream_graph_t graph, const char *path, unsigned flags);
/* CUgraph, and CUgraphExec or NULL. */
custream_status_t custream_graph_get_handles(custream_graph_t graph, void **graph_handle,
                                             void **exec_handle);
custream_status_t custream_graph_retain(custream_graph_t graph);
custream_status_t custream_graph_release(custream_graph_t graph);

/* --- events --- */

enum {
    CUSTREAM_EVENT_BLOCKING_SYNC = 1,  /* as for cuEventCreate */
    CUSTREAM_EVENT_DISABLE_TIMING = 2,
    CUSTREAM_EVENT_INTERPROCESS = 4
};

typedef struct custream_event_options {
    size_t size;       /* sizeof the structure; custream_event_options_init sets it */
    int device;        /* -1 */
    int timing;        /* 0, as in cuda.core, Warp and PyTorch; CuPy: 1 */
    int blocking_sync; /* 0: waiting uses a processor core */
    int interprocess;  /* 0; together with timing: CUSTREAM_INVALID_VALUE */
    int external;      /* 0; 1: uses CUSTREAM_EXTERNAL_IF_CAPTURING, as in PyTorch */
    int lazy;          /* 0; 1: made at the first record, on its device, as in PyTorch */
    int single_export; /* 0; 1: a second record is CUSTREAM_IPC, as in cuda.core (interprocess) */
} custream_event_options_t;

/* Sets all fields to their defaults, as custream_init_options_init does. */
custream_status_t custream_event_options_init_sized(custream_event_options_t *options, size_t size);
#define custream_event_options_init(options) custream_event_options_init_sized(options, sizeof(custream_event_options_t))

/* The functions below work as those for streams. create uses cuEventCreate. */
custream_status_t custream_event_create(custream_event_t *event,
                                        const custream_event_options_t *options);
/* device -1: the current device. */
custream_status_t custream_event_wrap(custream_event_t *event, void *handle, int device,
                                      void (*release)(void *owner), void *owner);
custream_status_t custream_event_retain(custream_event_t event);
custream_status_t custream_event_release(custream_event_t event);
custream_status_t custream_event_close(custream_event_t event);
custream_status_t custream_event_get_handle(custream_event_t event, void **handle); /* CUevent; NULL if not made yet */
custream_status_t custream_event_get_device(custream_event_t event, int *device);   /* -1: lazy or imported */
custream_status_t custream_event_get_flags(custream_event_t event, unsigned *flags); /* CUSTREAM_EVENT_..., as far as known */

/* query is CUSTREAM_SUCCESS if the event was never recorded (cuEventQuery). query, synchronize and
 * elapsed_ms answer CUSTREAM_CAPTURE_UNSUPPORTED if a function of this library last recorded the
 * event in a capture that goes on. They do not know a capture that was begun without this library
 * and met no function of it. */
custream_status_t custream_event_query(custream_event_t event);
custream_status_t custream_event_synchronize(custream_event_t event);

/* Milliseconds from one event to the other, accurate to about half a microsecond. With synchronize
 * 1 it waits for both, else it may answer CUSTREAM_NOT_READY. Other errors:
 * CUSTREAM_TIMING_DISABLED, CUSTREAM_NOT_RECORDED. Uses cuEventElapsedTime. */
custream_status_t custream_event_elapsed_ms(custream_event_t begin, custream_event_t end,
                                            int synchronize, float *ms);

/* custream_record and custream_wait_event with the event first. stream NULL: the current stream. */
custream_status_t custream_event_record(custream_event_t event, custream_t stream);
custream_status_t custream_event_wait(custream_event_t event, custream_t stream);

/* Passes an event to another process, as 64 bytes (CUipcEventHandle). CUSTREAM_IPC: not made so. */
enum { CUSTREAM_IPC_BYTES = 64 };
custream_status_t custream_event_ipc_export(custream_event_t event,
                                            unsigned char handle[CUSTREAM_IPC_BYTES]);
custream_status_t custream_event_ipc_import(custream_event_t *event,
                                            const unsigned char handle[CUSTREAM_IPC_BYTES]);

/* --- hooks --- */

typedef enum custream_hook_kind {
    CUSTREAM_HOOK_CREATE = 0,       /* of a stream; flags and priority may be changed before the call */
    CUSTREAM_HOOK_DESTROY = 1,      /* of a stream */
    CUSTREAM_HOOK_RECORD = 2,       /* of an event */
    CUSTREAM_HOOK_WAIT = 3,         /* of a stream for an event */
    CUSTREAM_HOOK_ENQUEUE = 4,      /* kernels, copies, sets, memory operations */
    CUSTREAM_HOOK_SYNCHRONIZE = 5,  /* on a stream, an event or a context */
    CUSTREAM_HOOK_CALLBACK = 6,     /* when host functions and callbacks are enqueued */
    CUSTREAM_HOOK_CAPTURE = 7,      /* begin and end */
    CUSTREAM_HOOK_GRAPH_LAUNCH = 8,
    CUSTREAM_HOOK_EVENT_CREATE = 9,
    CUSTREAM_HOOK_EVENT_DESTROY = 10,
    CUSTREAM_HOOK_KINDS = 11
} custream_hook_kind_t;

typedef struct custream_hook_info {
    size_t size;               /* sizeof the structure of the library */
    custream_hook_kind_t kind;
    int after;                 /* 0: before the call of CUDA, 1: after it */
    const char *call;          /* "cuLaunchKernel"; a static string */
    int result;                /* CUresult. Before: 0; another value refuses the call, which
                                  then answers it. After: the program's answer */
    void *stream;              /* CUstream as the program gave it. Before the call it may be
                                  changed, except for DESTROY and for the call of
                                  custream_launch_host_func. After CREATE: the new one. NULL, 1
                                  and 2: default streams. NULL also if the call has none */
    void *event;               /* CUevent; NULL if there is none, and before EVENT_CREATE */
    unsigned flags;            /* of CREATE and EVENT_CREATE */
    int priority;              /* of CREATE */
    int per_thread;            /* 1: NULL is the per-thread default stream in this call */
} custream_hook_info_t;

typedef struct custream_hook_s *custream_hook_t;
typedef void custream_hook_fn(custream_hook_info_t *info, void *arg);

/* From now on, calls function(info, arg) before and after each CUDA call of this kind that the
 * program makes. It is called on the thread that makes the call, for every route that the preload
 * library sees. Several hooks are called in no promised order. A hook that refuses ends the round
 * before the call; the round after the call still happens. At most 64 hooks: more is
 * CUSTREAM_NO_MEMORY. Without the preload library, or when the process has begun to end:
 * CUSTREAM_NOT_SUPPORTED. The library that contains the function is not unloaded any more, whoever
 * closes it, even after the hook is unregistered. Registering calls the loader and takes its lock.
 *
 * In a hook, calls of CUDA go straight to the driver: they are not recorded and meet no hook. The
 * same holds for functions of this library. Those that wait (custream_synchronize,
 * _device_synchronize, _event_synchronize) answer CUSTREAM_NOT_SUPPORTED there. A hook may register
 * and unregister hooks, also itself. It must return, without longjmp, exceptions or pthread_exit.
 * It must not keep info. errno is kept for the program. */
custream_status_t custream_register_hook(custream_hook_kind_t kind, custream_hook_fn *function,
                                         void *arg, custream_hook_t *hook);

/* The hook is not called any more. CUSTREAM_NOT_READY: it is unregistered, but another thread is
 * still in it. A second call is CUSTREAM_INVALID_HANDLE. */
custream_status_t custream_unregister_hook(custream_hook_t hook);

/* --- plug-ins --- */

/* CUSTREAM_PLUGIN names shared objects, with colons between them. Each is opened at the process's
 * first call of CUDA, and its custream_plugin_init is called with the functions below. If a plug-in
 * is missing, lacks that function, or does not return CUSTREAM_SUCCESS, one line on stderr says so
 * and it is ignored. Plug-ins are never unloaded. */
enum { CUSTREAM_PLUGIN_VERSION = 1 };
typedef struct custream_plugin_api {
    int version;  /* CUSTREAM_PLUGIN_VERSION of the library; later ones only append */
    size_t size;  /* of this structure there */
    custream_status_t (*register_hook)(custream_hook_kind_t kind, custream_hook_fn *function,
                                       void *arg, custream_hook_t *hook);
    custream_status_t (*unregister_hook)(custream_hook_t hook);
    custream_status_t (*wrap)(custream_t *stream, void *handle, int device,
                              void (*release)(void *owner), void *owner);
    custream_status_t (*release)(custream_t stream);
    custream_status_t (*format)(custream_t stream, char *text, size_t size, size_t *length);
    custream_status_t (*set_name)(custream_t stream, const char *name);
    custream_status_t (*last_driver_error)(int *cuda);
    const char *(*status_name)(custream_status_t status);
    const char *(*version_string)(void);
    custream_status_t (*range_push)(const char *text);
    custream_status_t (*range_pop)(void);
    custream_status_t (*mark)(const char *text);
} custream_plugin_api_t;
typedef custream_status_t custream_plugin_init_fn(const custream_plugin_api_t *api);

/* --- annotations --- */

/* Ranges and marks of the calling thread in the timeline, like those of NVTX. Ranges nest. The text
 * is copied. Without the preload library, or while nothing is recorded, the answer is
 * CUSTREAM_SUCCESS and nothing happens. pop without push: CUSTREAM_INVALID_VALUE. */
custream_status_t custream_trace_range_push(const char *text);
custream_status_t custream_trace_range_pop(void);
custream_status_t custream_trace_mark(const char *text);

/* start and stop switch recording on and off, like `custream ctl on` and `off`; flush writes it
 * to the file. All wait for the file. CUSTREAM_NOT_SUPPORTED: no preload library, or no trace
 * (CUSTREAM_TRACE=off). CUSTREAM_NOT_READY: for a minute the disk took nothing. */
custream_status_t custream_trace_start(void);
custream_status_t custream_trace_stop(void);
custream_status_t custream_trace_flush(void);

/* --- history --- */

typedef struct custream_history {
    size_t size;               /* set by the caller to sizeof the structure */
    char library[64], call[48]; /* the library file and CUDA call that made it; "" if unknown; cut to fit */
    uint64_t launches, copies, sets, records, waits; /* recorded calls on it */
    uint64_t synchronizations, graph_launches, others;
    uint64_t bytes_copied;
} custream_history_t;

/* What the preload library has recorded of a stream, whoever made and used it. A stream of CuPy,
 * wrapped by its handle, has CuPy's launches. The last half second may be missing, but not after
 * custream_trace_flush. If the trace rotates, the numbers begin with the present part.
 * CUSTREAM_NOT_SUPPORTED: no preload library, or it keeps nothing of this (default) stream. */
custream_status_t custream_history(custream_t stream, custream_history_t *history);

/* --- statistics --- */

typedef struct custream_stats {
    size_t size;                    /* set by the caller to sizeof the structure */
    uint64_t streams, events, graphs;                   /* live objects of this library */
    uint64_t streams_made, events_made, graphs_made;    /* all that were ever made */
    uint64_t streams_wrapped;                           /* of the live ones */
    uint64_t pooled;                                    /* streams in pools */
} custream_stats_t;

/* device -1: all devices. An object that still lives at the program's end is a leak of the program. */
custream_status_t custream_stats(int device, custream_stats_t *stats);

/* Calls function(stream, arg) for each stream object that is not closed, in the order of their ids.
 * It holds a reference to each during the call. Streams that are made in the meantime are left out.
 * It ends early if a function returns a value other than 0. */
custream_status_t custream_foreach(int (*function)(custream_t stream, void *arg), void *arg);

#ifdef __cplusplus
}
#endif

#endif
