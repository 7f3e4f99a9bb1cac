/*
 * custream.h: CUDA streams, events, graphs and the current stream as objects; hooks; annotations of the timeline.
 *
 * A superset of what cuda.core, CuPy, Warp and PyTorch do with streams. C99 and C++; needs no header of CUDA: CUstream, CUevent, CUgraph, CUgraphExec and
 * CUcontext are `void *` here, and equal the runtime's cudaStream_t, cudaEvent_t, cudaGraph_t and cudaGraphExec_t.
 *
 * Ways to use it: link libcustream.so (pkg-config custream); find the functions with dlsym(RTLD_DEFAULT, ...) in a process that has libcustream_shim.so
 * preloaded; dlopen libcustream.so. In a process with the preload library its functions serve a program that links or finds them; what is made here stands in its
 * timeline, its policies apply, and a stream that anybody made can be wrapped. One that was opened keeps objects of its own, and hands on hooks and annotations.
 *
 * Everywhere:
 *  - Functions return a status. Outputs are written on CUSTREAM_SUCCESS only, unless it says otherwise. NULL where an object or output is needed is
 *    CUSTREAM_INVALID_VALUE; what was closed is CUSTREAM_CLOSED; CUDA's own error is CUSTREAM_DRIVER, with its code in custream_last_driver_error.
 *  - Any thread may call any function with any object. An object is valid while somebody holds a reference; using one after the last is released
 *    is the caller's fault, as with free.
 *  - `device` is the number that CUDA gives it; -1 is the current one: that of the thread's current context, and device 0 where there is none.
 *  - Where no context is current, or one that has ended (cuDevicePrimaryCtxReset), the device's primary context is made current, as the CUDA runtime does, unless
 *    custream_init said otherwise.
 *  - Streams and events end with their context. The objects remain, to be released; to do anything else with them is the caller's fault.
 *  - Structures that begin with their size grow at their end in later versions, and a program that was compiled against another version works: fields that its structure
 *    lacks have their defaults; one that this library does not know must be 0, its default, or is CUSTREAM_NOT_SUPPORTED; in what a function fills it is 0. What the
 *    library gives to a program (custream_hook_info_t, custream_plugin_api_t) has a field where its size reaches past it.
 *  - Nothing here is called by CUDA except the functions of custream_add_callback and custream_launch_host_func, which must not call CUDA (nor, but for
 *    custream_retain and custream_release, this).
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
    CUSTREAM_NOT_READY = 1,             /* work is under way; no error */
    CUSTREAM_INVALID_VALUE = 2,         /* an argument is NULL, out of range, or an unknown flag */
    CUSTREAM_INVALID_HANDLE = 3,        /* CUDA does not know the handle, or not any more */
    CUSTREAM_CLOSED = 4,                /* the object was closed */
    CUSTREAM_DEVICE_MISMATCH = 5,       /* stream, event and device do not belong together */
    CUSTREAM_PRIORITY_OUT_OF_RANGE = 6, /* with CUSTREAM_PRIORITY_STRICT */
    CUSTREAM_CAPTURE_STATE = 7,         /* it captures already, or not, or the capture is paused, or another's */
    CUSTREAM_CAPTURE_INVALIDATED = 8,   /* the capture was broken by a call that is not permitted in it */
    CUSTREAM_CAPTURE_UNSUPPORTED = 9,   /* the legacy default stream cannot be captured; the call is not permitted in a capture */
    CUSTREAM_TIMING_DISABLED = 10,      /* the event takes no times */
    CUSTREAM_NOT_RECORDED = 11,         /* the event was never recorded */
    CUSTREAM_IPC = 12,                  /* the event is not for other processes, or came from one */
    CUSTREAM_NO_CONTEXT = 13,           /* no context is current, and none was to be made */
    CUSTREAM_NOT_SUPPORTED = 14,        /* by this driver or this version of the library, or without the preload library */
    CUSTREAM_NO_MEMORY = 15,            /* of the host */
    CUSTREAM_DRIVER = 16                /* any other error of CUDA's */
} custream_status_t;

/* "CUSTREAM_NOT_READY"; "CUSTREAM_UNKNOWN" for a number that is none. A static string. */
const char *custream_status_name(custream_status_t status);

/* One line that says what it means. A static string. */
const char *custream_status_string(custream_status_t status);

/* The CUresult of the calling thread's last function here that called CUDA: 0 where that succeeded. Written in any case.
 * Of a callback's CUSTREAM_DRIVER: see custream_add_callback. */
custream_status_t custream_last_driver_error(int *cuda);

/* --- objects --- */

typedef struct custream_s *custream_t;             /* a stream */
typedef struct custream_event_s *custream_event_t; /* an event */
typedef struct custream_graph_s *custream_graph_t; /* a captured graph, and its executable form once it is instantiated */

/* --- library --- */

typedef struct custream_init_options {
    size_t size;          /* sizeof the structure; custream_init_options_init sets it */
    const char *driver;   /* path of libcuda; NULL: the one that is loaded, else libcuda.so.1 */
    int make_context;     /* 1, the default: as above; 0: without a current context functions answer CUSTREAM_NO_CONTEXT, as cuda.core */
} custream_init_options_t;

/* custream_init_options_init(&options) sets all fields to their defaults, in a structure of the size that the caller was compiled with. */
custream_status_t custream_init_options_init_sized(custream_init_options_t *options, size_t size);
#define custream_init_options_init(options) custream_init_options_init_sized(options, sizeof(custream_init_options_t))

/* Finds the driver (cuInit) and reads the environment. Any other function does so by itself, with the defaults; of several calls the first counts, and a
 * later one with other options is CUSTREAM_INVALID_VALUE. options NULL: the defaults. CUSTREAM_NOT_SUPPORTED: there is no driver. */
custream_status_t custream_init(const custream_init_options_t *options);

/* Releases what the library itself holds (pools, cached events, per-device default streams, and a primary context in which nothing else of this library is). Objects
 * that the program holds stay valid, and a context that it has retained stays current. A function called later begins anew. */
custream_status_t custream_shutdown(void);

/* 10000 * major + 100 * minor + patch; and the same as text, a static string. The text is in every version. */
custream_status_t custream_version(int *version);
const char *custream_version_string(void);

/* --- priorities --- */

typedef enum custream_priority_policy {
    CUSTREAM_PRIORITY_CLAMP = 0,      /* to the device's range, as CUDA and CuPy: the default */
    CUSTREAM_PRIORITY_CLAMP_BAND = 1, /* to a narrower range: Warp 0..-1, PyTorch 0..-3 */
    CUSTREAM_PRIORITY_STRICT = 2      /* out of range is CUSTREAM_PRIORITY_OUT_OF_RANGE, as cuda.core */
} custream_priority_policy_t;

/* The range that this process sees: least (numerically the greatest, 0) and greatest (numerically the least), such as 0 and -5. Both 0 where the device
 * has no priorities. cuCtxGetStreamPriorityRange, and the band of custream_set_priority_band. Either output may be NULL. */
custream_status_t custream_priority_range(int device, int *least, int *greatest);

/* What a request would become, without making a stream: CLAMP to the range above, STRICT an error; CLAMP_BAND to the range's part within 0..-1. */
custream_status_t custream_clamp_priority(int device, custream_priority_policy_t policy, int wanted, int *got);

/* Narrows the range of a device for all that is asked of this library: least must be 0, greatest in -1 .. the device's; 0, 0 takes the band away. */
custream_status_t custream_set_priority_band(int device, int least, int greatest);

/* --- streams --- */

enum {
    CUSTREAM_DEFAULT = 0,     /* waits for the legacy default stream, and it for this one (CU_STREAM_DEFAULT) */
    CUSTREAM_NON_BLOCKING = 1 /* does not (CU_STREAM_NON_BLOCKING) */
};

typedef struct custream_options {
    size_t size;                /* sizeof the structure; custream_options_init sets it */
    int device;                 /* -1 */
    unsigned flags;             /* CUSTREAM_NON_BLOCKING, as cuda.core and PyTorch; CuPy and Warp: CUSTREAM_DEFAULT */
    int priority;               /* 0, the least */
    custream_priority_policy_t priority_policy; /* CUSTREAM_PRIORITY_CLAMP */
    int band_least, band_greatest; /* of CLAMP_BAND: 0, -1 */
    int pooled;                 /* 0; 1: custream_create_from_pool with these, for which flags must be CUSTREAM_NON_BLOCKING and name NULL */
    const char *name;           /* NULL; copied */
} custream_options_t;

/* custream_options_init(&options), as above. */
custream_status_t custream_options_init_sized(custream_options_t *options, size_t size);
#define custream_options_init(options) custream_options_init_sized(options, sizeof(custream_options_t))

/* A stream of its own on the device's current, else primary, context. options NULL: the defaults. The caller has one reference; the last one destroys the
 * stream (cuStreamDestroy: its work is still done). cuStreamCreateWithPriority. */
custream_status_t custream_create(custream_t *stream, const custream_options_t *options);

enum { CUSTREAM_POOL_SIZE = 32 };

/* The next of the device's 32 non-blocking streams of a priority, made at the first request and never destroyed, in turns: the 33rd is the first again. They are in
 * the device's primary context whichever is current, as PyTorch's; a reset ends them, and the next request makes new ones.
 * The priority is clamped to 0..-3, as PyTorch does. avoid_capturing: streams that capture are passed over; CUSTREAM_CAPTURE_STATE where all do.
 * The caller has a reference, as of any other. */
custream_status_t custream_create_from_pool(custream_t *stream, int device, int priority, int avoid_capturing);

/* An object for a CUstream that somebody else made and destroys. The same handle gives the same object while one lives (an owned stream's: its owner), and
 * then release is called at once. device -1: asked of CUDA. release(owner), if not NULL, is called once, by whoever closes the object or gives the last reference back, on
 * that thread (where that was a function that CUDA called: on another one).
 * Handles NULL, 1 and 2 give the default streams. Another device than the stream's is CUSTREAM_DEVICE_MISMATCH. A handle that is gone is the caller's
 * fault: CUDA does not check handles of streams. (The preload library notices where it saw the end.) */
custream_status_t custream_wrap(custream_t *stream, void *handle, int device, void (*release)(void *owner), void *owner);

/* The last reference of an owned stream destroys it, and answers what CUDA says of that (a hook may refuse it); the reference is gone in any case. */
custream_status_t custream_retain(custream_t stream);
custream_status_t custream_release(custream_t stream);

/* Ends the use of a stream now: an owned one is destroyed (with CUDA's answer, as by custream_release), a wrapped one let go (release is called). Idempotent. Other functions then answer CUSTREAM_CLOSED,
 * but for custream_release, _retain, _close, _compare, _equal, _hash, _format and _get_id; a closed stream that was current is so no more. A call that another thread is making with it
 * meanwhile may be answered CUSTREAM_INVALID_HANDLE. Default streams and those of a pool cannot be closed: CUSTREAM_INVALID_VALUE. */
custream_status_t custream_close(custream_t stream);

/* The default streams, one object each for ever; their references are counted and mean nothing. Handles 1 (CU_STREAM_LEGACY) and 2 (CU_STREAM_PER_THREAD):
 * which stream that is depends on the context and the thread that use it. */
custream_status_t custream_legacy_default(custream_t *stream);
custream_status_t custream_per_thread_default(custream_t *stream);

typedef enum custream_default_mode {
    CUSTREAM_DEFAULT_LEGACY = 0,
    CUSTREAM_DEFAULT_PER_THREAD = 1,
    CUSTREAM_DEFAULT_DEVICE = 2 /* a blocking stream of this library's for each device, in its primary context, as Warp's; after a reset a new one */
} custream_default_mode_t;

/* What custream_default and the initial current stream are. At first legacy; per-thread where CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM or
 * CUPY_CUDA_PER_THREAD_DEFAULT_STREAM is a number other than 0. It changes nothing of what CUDA does with handle 0: that is CUSTREAM_DEFAULT_STREAM. */
custream_status_t custream_set_default_mode(custream_default_mode_t mode);
custream_status_t custream_get_default_mode(custream_default_mode_t *mode);
custream_status_t custream_default(int device, custream_t *stream);

/* --- what a stream is --- */

custream_status_t custream_get_handle(custream_t stream, void **handle);  /* CUstream */
custream_status_t custream_get_id(custream_t stream, uint64_t *id);       /* of the object; never used again in the process */
custream_status_t custream_get_device(custream_t stream, int *device);    /* of a default stream: the current one */
custream_status_t custream_get_context(custream_t stream, void **context); /* CUcontext; cuStreamGetCtx */
custream_status_t custream_get_flags(custream_t stream, unsigned *flags); /* cuStreamGetFlags. CUSTREAM_CAPTURE_UNSUPPORTED of one that captured when it was wrapped, while it does: CUDA's question would break the capture */
custream_status_t custream_is_nonblocking(custream_t stream, int *nonblocking);
custream_status_t custream_is_owned(custream_t stream, int *owned);       /* 1: the last reference destroys it */
custream_status_t custream_get_priority(custream_t stream, int *priority); /* that it has; cuStreamGetPriority */
custream_status_t custream_get_requested_priority(custream_t stream, int *priority); /* that was asked for; of a wrapped one as far as is known, else that it has */

/* A name for the timeline, copied; NULL or "" takes it away. get: at most size bytes with the 0 at the end; the full length without it in *length, which may
 * be NULL. Size 0 asks for the length alone. */
custream_status_t custream_set_name(custream_t stream, const char *name);
custream_status_t custream_get_name(custream_t stream, char *name, size_t size, size_t *length);

/* One line: "custream 3: stream 0x5581… on device 0, non-blocking, priority -1, \"name\"". As custream_get_name. Of a closed stream too. */
custream_status_t custream_format(custream_t stream, char *text, size_t size, size_t *length);

/* The pair of Python's __cuda_stream__ protocol: version 0 and the handle. Either output may be NULL. */
custream_status_t custream_protocol(custream_t stream, int *version, uintptr_t *handle);

/* By device, then handle: *order is -1, 0 or 1. Total, and the same for the life of both. Under CUSTREAM_STREAMS=pool:N streams that share are equal. Events are equal where
 * they are the same object. */
custream_status_t custream_compare(custream_t a, custream_t b, int *order);
int custream_equal(custream_t a, custream_t b); /* 1: the same device and handle; NULL equals NULL alone */
uint64_t custream_hash(custream_t stream);      /* equal streams, equal hashes; 0 of NULL */

/* --- the current stream --- */

enum {
    CUSTREAM_SCOPE_THREAD = 0,  /* of the calling thread, as CuPy and PyTorch: the default */
    CUSTREAM_SCOPE_PROCESS = 1, /* of all threads that have set none of their own, as Warp */
    CUSTREAM_SYNC = 2,          /* the new one waits for what is on the old */
    CUSTREAM_SWITCH_DEVICE = 4, /* makes the stream's device current as well, as PyTorch */
    CUSTREAM_CHECK_DEVICE = 8,  /* a stream of another device than the current one is CUSTREAM_DEVICE_MISMATCH, as CuPy and Warp */
    CUSTREAM_SYNC_EXIT = 16     /* of custream_pop: the one that becomes current waits for the one that was */
};

/* Of each thread and device; custream_default where none was set. A reference of the caller's. */
custream_status_t custream_current(int device, custream_t *stream);

/* Makes it current on its device (a default stream: on the current device). The thread holds a reference. */
custream_status_t custream_set_current(custream_t stream, unsigned flags);

/* The same until the matching pop, which restores stream, and device where push switched it, also after custream_set_current in between. To the thread.
 * pop without push is CUSTREAM_INVALID_VALUE. Flags of pop: CUSTREAM_SYNC_EXIT; for a stream that was closed meanwhile nothing waits. Any other error of pop tells that the
 * order, or the device, could not be had; it has popped all the same. */
custream_status_t custream_push(custream_t stream, unsigned flags);
custream_status_t custream_pop(unsigned flags);

/* --- order and completion --- */

/* CUSTREAM_SUCCESS: all work is done; CUSTREAM_NOT_READY. CUSTREAM_CAPTURE_UNSUPPORTED in a capture, which goes on. cuStreamQuery. */
custream_status_t custream_query(custream_t stream);

/* Blocks until all work is done. CUSTREAM_CAPTURE_UNSUPPORTED in a capture, which goes on; of a device: where one of this library's streams captures, or a blocking
 * one of anybody's. Of other captures nothing is known: CUDA breaks those that mind the call. cuStreamSynchronize, cuCtxSynchronize. */
custream_status_t custream_synchronize(custream_t stream);
custream_status_t custream_device_synchronize(int device);

enum {
    CUSTREAM_EXTERNAL = 1,             /* in a capture a node of its own, which works across graphs (CU_EVENT_RECORD_EXTERNAL, CU_EVENT_WAIT_EXTERNAL) */
    CUSTREAM_EXTERNAL_IF_CAPTURING = 2 /* the same, and no error outside of a capture */
};

/* cuEventRecordWithFlags. An event of another device than the stream's is CUSTREAM_DEVICE_MISMATCH. */
custream_status_t custream_record(custream_t stream, custream_event_t event, unsigned flags);

struct custream_event_options;
/* Makes an event on the stream's device and records it; the caller has its reference. options NULL: the defaults. */
custream_status_t custream_record_new(custream_t stream, const struct custream_event_options *options, custream_event_t *event);

/* Work enqueued from here on waits for what the event has recorded; nothing where it never was. cuStreamWaitEvent. */
custream_status_t custream_wait_event(custream_t stream, custream_event_t event, unsigned flags);

/* Waits for what is on `other` now, by an event recorded there: `event`, or with NULL other's cached one. A stream does not wait for itself: nothing. */
custream_status_t custream_wait_stream(custream_t stream, custream_t other, custream_event_t event, unsigned flags);

/* The same for a CUstream that is no object here. */
custream_status_t custream_wait_handle(custream_t stream, void *foreign_stream);

/* The event (without times) that wait_stream records on this stream; made at the first need, gone with the stream. A reference of the caller's. Of CUDA's default streams: one
 * for the current device and context, which wait_stream leaves alone. */
custream_status_t custream_cached_event(custream_t stream, custream_event_t *event);

/* --- host functions --- */

/* Calls function(stream, status, arg) on a thread of CUDA's once all earlier work is done; work enqueued later waits for it to return. status: CUSTREAM_SUCCESS or
 * CUSTREAM_DRIVER, with the code in custream_last_driver_error inside of it. The stream is referenced until then. CUSTREAM_CAPTURE_UNSUPPORTED in a
 * capture. cuStreamAddCallback. */
custream_status_t custream_add_callback(custream_t stream, void (*function)(custream_t stream, custream_status_t status, void *arg), void *arg);

/* Calls function(arg) in stream order; not after an error. In a capture a node of the graph. destroy(arg), if not NULL, is called once no call can come any
 * more: after the call, or when the captured graph and its executables are gone; in case of an error never. No other thread may begin or end a capture of the
 * stream meanwhile. cuLaunchHostFunc. */
custream_status_t custream_launch_host_func(custream_t stream, void (*function)(void *arg), void *arg, void (*destroy)(void *arg));

/* --- capture and graphs --- */

typedef enum custream_capture_mode {
    CUSTREAM_CAPTURE_GLOBAL = 0,       /* as PyTorch */
    CUSTREAM_CAPTURE_THREAD_LOCAL = 1, /* as Warp */
    CUSTREAM_CAPTURE_RELAXED = 2       /* as cuda.core and CuPy */
} custream_capture_mode_t;

typedef enum custream_capture_status {
    CUSTREAM_CAPTURE_NONE = 0,
    CUSTREAM_CAPTURE_ACTIVE = 1,
    CUSTREAM_CAPTURE_BROKEN = 2 /* invalidated: end it */
} custream_capture_status_t;

/* cuStreamBeginCapture, cuStreamEndCapture. The legacy default stream: CUSTREAM_CAPTURE_UNSUPPORTED. The caller has the graph's reference. A capture that was
 * broken ends with CUSTREAM_CAPTURE_INVALIDATED and no graph. */
custream_status_t custream_begin_capture(custream_t stream, custream_capture_mode_t mode);
custream_status_t custream_end_capture(custream_t stream, custream_graph_t *graph);

/* cuStreamGetCaptureInfo. id: of the capture, 0 where there is none; may be NULL. */
custream_status_t custream_capture_status(custream_t stream, custream_capture_status_t *status, uint64_t *id);
custream_status_t custream_is_capturing(custream_t stream, int *capturing); /* also while it is broken */

/* Takes over a capture that somebody else began on the stream, so that custream_end_capture ends it here. CUSTREAM_CAPTURE_STATE where there is none. Paused and resumed it
 * goes on as relaxed. */
custream_status_t custream_adopt_capture(custream_t stream);

/* Takes the stream out of its capture, so that calls on it are executed; resume goes on with the same graph. CUSTREAM_NOT_SUPPORTED before CUDA 12.3
 * (cuStreamBeginCaptureToGraph). Streams that joined must have been joined back. */
custream_status_t custream_pause_capture(custream_t stream);
custream_status_t custream_resume_capture(custream_t stream);

/* Sets the calling thread's mode, gives the one it had. cuThreadExchangeStreamCaptureMode. */
custream_status_t custream_exchange_capture_mode(custream_capture_mode_t *mode);

/* n streams of the same kind that wait for what is on this one; and back: this one waits for all of them, which are closed and released. In a capture they take
 * part in it, and are destroyed when it is over, whoever ends it. in: each one once. */
custream_status_t custream_fork(custream_t stream, int n, custream_t out[]);
custream_status_t custream_join(custream_t stream, int n, custream_t const in[]);

/* Makes it executable; again: nothing. launch and upload do so themselves. cuGraphInstantiateWithFlags, cuGraphLaunch, cuGraphUpload. */
custream_status_t custream_graph_instantiate(custream_graph_t graph);
custream_status_t custream_graph_launch(custream_graph_t graph, custream_t stream); /* stream NULL: the current one */
custream_status_t custream_graph_upload(custream_graph_t graph, custream_t stream);
/* Writes a description for Graphviz to a file. flags as of cuGraphDebugDotPrint, 0: short. */
custream_status_t custream_graph_debug_dot(custream_graph_t graph, const char *path, unsigned flags);
custream_status_t custream_graph_get_handles(custream_graph_t graph, void **graph_handle, void **exec_handle); /* CUgraph, CUgraphExec or NULL */
custream_status_t custream_graph_retain(custream_graph_t graph);
custream_status_t custream_graph_release(custream_graph_t graph);

/* --- events --- */

enum {
    CUSTREAM_EVENT_BLOCKING_SYNC = 1,  /* as of cuEventCreate */
    CUSTREAM_EVENT_DISABLE_TIMING = 2,
    CUSTREAM_EVENT_INTERPROCESS = 4
};

typedef struct custream_event_options {
    size_t size;       /* sizeof the structure; custream_event_options_init sets it */
    int device;        /* -1 */
    int timing;        /* 0, as cuda.core, Warp and PyTorch; CuPy: 1 */
    int blocking_sync; /* 0: waiting burns the processor */
    int interprocess;  /* 0; not together with timing: CUSTREAM_INVALID_VALUE */
    int external;      /* 0; 1: recorded and waited for with CUSTREAM_EXTERNAL_IF_CAPTURING, as PyTorch's */
    int lazy;          /* 0; 1: made at the first record, on that stream's device, as PyTorch's */
    int single_export; /* 0; 1: an interprocess event is recorded once only, as cuda.core's: again is CUSTREAM_IPC */
} custream_event_options_t;

/* custream_event_options_init(&options), as above. */
custream_status_t custream_event_options_init_sized(custream_event_options_t *options, size_t size);
#define custream_event_options_init(options) custream_event_options_init_sized(options, sizeof(custream_event_options_t))

/* As for streams. cuEventCreate. */
custream_status_t custream_event_create(custream_event_t *event, const custream_event_options_t *options);
/* device -1: the current one. */
custream_status_t custream_event_wrap(custream_event_t *event, void *handle, int device, void (*release)(void *owner), void *owner);
custream_status_t custream_event_retain(custream_event_t event);
custream_status_t custream_event_release(custream_event_t event);
custream_status_t custream_event_close(custream_event_t event);
custream_status_t custream_event_get_handle(custream_event_t event, void **handle); /* CUevent; NULL of a lazy one that is not made yet */
custream_status_t custream_event_get_device(custream_event_t event, int *device);   /* -1 of a lazy or imported one */
custream_status_t custream_event_get_flags(custream_event_t event, unsigned *flags); /* CUSTREAM_EVENT_...; of a wrapped one as far as is known */

/* cuEventQuery: SUCCESS where it was never recorded. Both, and elapsed_ms: CUSTREAM_CAPTURE_UNSUPPORTED where it was last recorded, by a function here, in a capture that
 * goes on; not of one that was begun past this library and never met a function here. */
custream_status_t custream_event_query(custream_event_t event);
custream_status_t custream_event_synchronize(custream_event_t event);

/* Milliseconds from one to the other, some half a microsecond exact. synchronize 1: waits for both, else CUSTREAM_NOT_READY; CUSTREAM_TIMING_DISABLED,
 * CUSTREAM_NOT_RECORDED. cuEventElapsedTime. */
custream_status_t custream_event_elapsed_ms(custream_event_t begin, custream_event_t end, int synchronize, float *ms);

/* custream_record and custream_wait_event from the event's side; stream NULL: the current one. */
custream_status_t custream_event_record(custream_event_t event, custream_t stream);
custream_status_t custream_event_wait(custream_event_t event, custream_t stream);

/* Between processes: 64 bytes (CUipcEventHandle). CUSTREAM_IPC where the event is not for that. */
enum { CUSTREAM_IPC_BYTES = 64 };
custream_status_t custream_event_ipc_export(custream_event_t event, unsigned char handle[CUSTREAM_IPC_BYTES]);
custream_status_t custream_event_ipc_import(custream_event_t *event, const unsigned char handle[CUSTREAM_IPC_BYTES]);

/* --- hooks --- */

typedef enum custream_hook_kind {
    CUSTREAM_HOOK_CREATE = 0,       /* of a stream; before: flags and priority may be changed */
    CUSTREAM_HOOK_DESTROY = 1,      /* of a stream */
    CUSTREAM_HOOK_RECORD = 2,       /* of an event */
    CUSTREAM_HOOK_WAIT = 3,         /* of a stream for an event */
    CUSTREAM_HOOK_ENQUEUE = 4,      /* kernels, copies, sets, memory operations */
    CUSTREAM_HOOK_SYNCHRONIZE = 5,  /* with a stream, an event, a context */
    CUSTREAM_HOOK_CALLBACK = 6,     /* host functions and callbacks being enqueued */
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
    int result;                /* CUresult. Before: 0; any other refuses the call, which then answers it. After: what the program is answered */
    void *stream;              /* CUstream as the program gave it. Before a call that has one it may be changed, but for DESTROY, and for what
                                  custream_launch_host_func calls, which stays. After CREATE: the new one.
                                  NULL, 1 and 2: default streams. NULL too where the call has none */
    void *event;               /* CUevent; NULL where there is none, and before EVENT_CREATE */
    unsigned flags;            /* of CREATE and EVENT_CREATE */
    int priority;              /* of CREATE */
    int per_thread;            /* 1: NULL is the per-thread default stream in this call */
} custream_hook_info_t;

typedef struct custream_hook_s *custream_hook_t;
typedef void custream_hook_fn(custream_hook_info_t *info, void *arg);

/* Has function(info, arg) called before and after each call of the kind that the program makes of CUDA from then on, by whatever way the preload library sees; on
 * the thread that makes it. Several are called in no promised order; one that refuses ends the round, and the after round comes all the same. At most 64. Without
 * the preload library, or once the process has begun to end: CUSTREAM_NOT_SUPPORTED; table full: CUSTREAM_NO_MEMORY. The library that has the function is not unloaded any
 * more, whoever closes it, also after the hook is unregistered. This asks the loader, and takes its lock.
 *
 * In a hook: calls of CUDA go straight to the driver, unrecorded, and meet no hook; so do functions here, of which those that wait (custream_synchronize, _device_synchronize,
 * _event_synchronize) answer CUSTREAM_NOT_SUPPORTED. A hook may register and unregister hooks, itself too; must return, without longjmp, exceptions or pthread_exit; and
 * keeps nothing of info. errno is kept for the program. */
custream_status_t custream_register_hook(custream_hook_kind_t kind, custream_hook_fn *function, void *arg, custream_hook_t *hook);

/* It is not called any more. CUSTREAM_NOT_READY: some other thread is in it still; that is all the same done. Again: CUSTREAM_INVALID_HANDLE. */
custream_status_t custream_unregister_hook(custream_hook_t hook);

/* --- plug-ins --- */

/* CUSTREAM_PLUGIN names shared objects, with colons between them. Each is opened at the process's first call of CUDA, and custream_plugin_init called with the
 * functions below; one that is missing, lacks that function or returns other than CUSTREAM_SUCCESS is said on stderr and left alone. Never unloaded. */
enum { CUSTREAM_PLUGIN_VERSION = 1 };
typedef struct custream_plugin_api {
    int version;  /* CUSTREAM_PLUGIN_VERSION of the library; later ones only append */
    size_t size;  /* of this structure there */
    custream_status_t (*register_hook)(custream_hook_kind_t kind, custream_hook_fn *function, void *arg, custream_hook_t *hook);
    custream_status_t (*unregister_hook)(custream_hook_t hook);
    custream_status_t (*wrap)(custream_t *stream, void *handle, int device, void (*release)(void *owner), void *owner);
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

/* Ranges and marks of the calling thread in the timeline, as NVTX's; they nest. The text is copied. Without the preload library, or while nothing is recorded:
 * CUSTREAM_SUCCESS, and nothing comes of it. pop without push: CUSTREAM_INVALID_VALUE. */
custream_status_t custream_trace_range_push(const char *text);
custream_status_t custream_trace_range_pop(void);
custream_status_t custream_trace_mark(const char *text);

/* Recording from now on, and not any more, as `custream ctl on` and `off`; flush writes what was recorded. Without the preload library, or where there can be no trace
 * (CUSTREAM_TRACE=off): CUSTREAM_NOT_SUPPORTED. They wait for the file, some milliseconds. */
custream_status_t custream_trace_start(void);
custream_status_t custream_trace_stop(void);
custream_status_t custream_trace_flush(void);

/* --- history --- */

typedef struct custream_history {
    size_t size;               /* set by the caller to sizeof the structure */
    char library[64], call[48]; /* file name of the library that made the stream, and the call of CUDA; "" where it was met later. Cut to fit */
    uint64_t launches, copies, sets, records, waits, synchronizations, graph_launches, others; /* calls on it that were recorded */
    uint64_t bytes_copied;
} custream_history_t;

/* What the preload library has recorded of a stream, whoever made and used it: one of CuPy's, wrapped by its handle, has CuPy's launches. Up to the last half
 * second, after custream_trace_flush all; of a trace that rotates, since its present part began. CUSTREAM_NOT_SUPPORTED without it, or for a stream that it keeps nothing of (default streams too). */
custream_status_t custream_history(custream_t stream, custream_history_t *history);

/* --- statistics --- */

typedef struct custream_stats {
    size_t size;                    /* set by the caller to sizeof the structure */
    uint64_t streams, events, graphs;                   /* objects of this library that live, of the device */
    uint64_t streams_made, events_made, graphs_made;    /* ever */
    uint64_t streams_wrapped;                           /* of those that live */
    uint64_t pooled;                                    /* streams of pools */
} custream_stats_t;

/* device -1: of all devices. What still lives at the end of a program is a leak of its own. */
custream_status_t custream_stats(int device, custream_stats_t *stats);

/* Calls function(stream, arg) for each stream object that is not closed, in the order of their ids, each referenced meanwhile; those that are made during it
 * are left out. Until one returns other than 0. */
custream_status_t custream_foreach(int (*function)(custream_t stream, void *arg), void *arg);

#ifdef __cplusplus
}
#endif

#endif
