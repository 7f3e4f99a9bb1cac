/*
 * What the files of the C API share.
 *
 * Nothing here reaches the driver but by its exported symbols, looked up as any program does: with the preload library in the process that gives its wrappers,
 * so what the API does is recorded, and steered by policy, as the program's own calls are. What only the preload library can tell is asked through link.h.
 *
 * Objects come from lists of blocks that are never unmapped, and begin with a mark: a reference that was released, or a pointer that is none, is noticed
 * wherever that memory can be read at all. One lock (CS_RANK_API) guards all references, the table of handles and the lists; it is never held across a
 * call into CUDA or into the program.
 */
#ifndef CS_API_API_H
#define CS_API_API_H

#include "shim/calls/cuda_api.h"

#include "custream.h"
#include "shim/base/compiler.h"
#include "shim/base/lock.h"

typedef custream_status_t status;

/* --- the driver (driver.c) --- */

struct api_driver {
#define NEEDED(name) __typeof__(&name) name;
#define WANTED(name) __typeof__(&name) name;
#include "shim/api/driver.def"
#undef NEEDED
#undef WANTED
};
extern struct api_driver api_driver;

status api_ready(void);                    /* custream_init with the defaults, where nobody has called it */
bool api_makes_contexts(void);
bool api_forked(void);
status api_init(const custream_init_options_t *options);

/* The answer of a call of the driver: kept as the thread's last one. */
status api_result(CUresult result);
#define CUDA(name, ...) api_result(api_driver.name(__VA_ARGS__))
/* The same of what ends an object: one that has gone already, with its context or with the driver, has ended. */
#define CUDA_ENDS(name, ...) api_ended(api_driver.name(__VA_ARGS__))
status api_ended(CUresult result);

/* A function's first statement, and how errors pass on. */
#define TRY(expression)                                                                                                                              \
    do {                                                                                                                                             \
        status tried_ = (expression);                                                                                                                \
        if (tried_ != CUSTREAM_SUCCESS) return tried_;                                                                                               \
    } while (0)
#define CHECK(condition, otherwise)                                                                                                                  \
    do {                                                                                                                                             \
        if (!(condition)) return otherwise;                                                                                                          \
    } while (0)
#define NEED(pointer) CHECK(pointer, CUSTREAM_INVALID_VALUE)

/* --- structures that begin with their size (sized.c) --- */

/* The caller's into one of ours, which has the defaults; NULL: those. CUSTREAM_NOT_SUPPORTED: it sets a field that this version does not know. */
status api_take(void *to, const void *from);
/* One of ours into the caller's, of whose size as much as there is, and 0 in the rest; _set: into one that has no size yet. */
status api_give(void *to, const void *from);
status api_set(void *to, size_t size, const void *from);
status api_size_check(const void *structure);
extern const custream_init_options_t api_init_defaults;
extern const custream_options_t api_stream_defaults;
extern const custream_event_options_t api_event_defaults;

/* --- devices and contexts (context.c) --- */

struct api_scope {
    bool pushed;
};

/* Makes a context of the device current until api_leave: the one that is, where it is the device's, else the primary one. -1: any. *device gets its number. */
status api_enter(int *device, struct api_scope *scope);
status api_enter_of(custream_t stream, struct api_scope *scope); /* the stream's own context; of a default stream any */
status api_enter_primary(int device, struct api_scope *scope);
void api_leave(struct api_scope *scope);
status api_current_device(int *device);    /* without making a context: 0 where there is none */
status api_device_check(int device);       /* CUSTREAM_INVALID_VALUE unless there is such a one, or it is -1 */
void api_contexts_release(void);
enum { API_DEVICES = 64 };

/* The context that something was made in. A reset ends a primary one and what is in it, and leaves its handle to the next: so CUDA's number for it is kept too. */
struct api_home {
    CUcontext context;
    cs_u64 id; /* 0: the driver gives none */
};
void api_home_now(struct api_home *home);         /* the current context */
bool api_home_lives(const struct api_home *home); /* false: CUDA has ended what was made there, and may not be asked about it */
bool api_home_is(const struct api_home *home, const struct api_home *other);

/* --- objects (object.c) --- */

enum api_mark { API_STREAM = 0x6d727473, API_EVENT = 0x746e7665, API_GRAPH = 0x68707267, API_FREE = 0x65657266 };

struct api_object {
    _Atomic cs_u32 mark;
    cs_u32 references; /* the lock's */
    cs_u64 id;         /* counted up over all objects */
    struct api_object *next_of_handle, *next, *previous; /* the lock's: in the table of handles; among all of its kind */
    void *handle;      /* as listed in the table of handles; NULL: it is not */
    int device, counted; /* the second: under which it was counted when it was listed */
    int sort;            /* counted apart from others of its kind: of a stream its enum api_stream_kind, else 0. Does not change once it is listed */
    cs_u32 walkers;      /* the lock's: walks that stand at it */
    _Atomic bool closed;
    bool listed, linked; /* the lock's. Linked: among all of its kind, where one that is listed no more stays while a walk stands at it */
};

extern struct cs_lock api_lock;

/* NULL: no memory. With one reference, not yet in any list. */
void *api_object_new(enum api_mark mark);
/* It can be found from now on. `handle` NULL: by walking only. */
void api_object_list(struct api_object *object, void *handle);
/* Unless another thread was first with that handle: its object then, with a reference for the caller. */
void *api_object_list_once(struct api_object *object, void *handle);
void api_object_has_handle(struct api_object *object, void *handle); /* that came later */
void api_object_unlist(struct api_object *object);
/* The object of a handle, with a reference for the caller, NULL: none, or it is closed. */
void *api_object_find(enum api_mark mark, void *handle);
/* What an argument is: NULL, no object of the kind, closed. */
status api_object_check(const void *object, enum api_mark mark);
status api_object_usable(const void *object, enum api_mark mark); /* and not closed */
status api_retain(void *object, enum api_mark mark);
/* true: that was the last; it is in no list any more, and the caller ends it and gives it to api_object_free. */
bool api_release(void *object);
void api_unretain(void *object); /* of one that stays: takes a reference back, but for its own */
void api_object_free(void *object);
void *api_object_of_id(enum api_mark mark, cs_u64 id); /* referenced; NULL: there is none, or it is closed */
void api_object_counts(enum api_mark mark, int device, cs_u64 *alive, cs_u64 *ever);
cs_u64 api_object_count(enum api_mark mark, int device, int sort); /* of those that live */

#define USABLE_STREAM(stream) TRY(api_stream_usable(stream))
#define USABLE_EVENT(event)   TRY(api_event_usable(event))
#define USABLE_GRAPH(graph)   TRY(api_object_usable(graph, API_GRAPH))

/* --- streams (stream.c) --- */

enum api_stream_kind { API_OWNED, API_WRAPPED, API_POOLED, API_LEGACY, API_PER_THREAD, API_DEVICE_DEFAULT, API_STREAM_KINDS };

/* All streams that are not closed, by id, without those that are made meanwhile. Each is referenced until the next is asked for. The lock is held for a step at
 * a time, whatever ends between two of them. Left without its end, a walk keeps its reference, and nothing else. */
struct api_walk {
    cs_u64 at, until; /* the id of the one that it stands at; the last there was */
    custream_t stream;
};
void api_walk_begin(struct api_walk *walk);
custream_t api_walk_next(struct api_walk *walk); /* NULL: that was the last */
void api_walk_end(struct api_walk *walk);        /* any time */

struct api_paused;

/* A capture that was begun, or taken over, here. Of the per-thread default stream there is one for each thread and context, the thread's alone. */
struct api_capture {
    _Atomic bool on;  /* also while it is paused */
    _Atomic cs_u64 id; /* CUDA's; 0: it was broken before that could be asked for */
    custream_capture_mode_t mode;
    _Atomic(struct api_paused *) paused;
    struct api_home home; /* of a thread's */
    struct api_capture *next;
};

struct custream_s {
    struct api_object object;
    enum api_stream_kind kind;
    CUstream handle;
    struct api_home home; /* of those that are made here; else nowhere: asked for */
    _Atomic unsigned flags; /* where they are known: they cannot be asked for in a capture */
    _Atomic bool flags_known;
    int priority, requested;
    int passed;          /* the priority that CUDA was asked for: a policy's answer to the same again is the same */
    _Atomic cs_u64 link; /* what the preload library knows it as; 0: nothing so far */
    void (*release)(void *);
    void *owner;
    _Atomic(custream_event_t) cached;
    struct api_capture capture;
    char *name;        /* the lock's */
    custream_t next_joined; /* in a list of those that are to end later */
    cs_u64 joined_in;       /* the capture, of one that was joined in it */
};

status api_stream_usable(custream_t stream); /* and what it stands for lives, as far as is known */
cs_u64 api_stream_link(custream_t stream);   /* looked for again where there was none */
bool api_stream_is_default(custream_t stream); /* whose context and device are those that are current */
/* For default streams: a context must be current. */
status api_stream_enter(custream_t stream);
status api_stream_new(custream_t *out, enum api_stream_kind kind, CUstream handle, int device);
status api_stream_make(custream_t *out, enum api_stream_kind kind, int device, unsigned flags, int requested, int priority, const char *name);
status api_stream_destroy(custream_t stream); /* the CUDA side, once */
void api_postponed_end(void);
bool api_thread_is_cudas(void); /* in a host function: CUDA may not be called (host.c) */
status api_clamp(int device, custream_priority_policy_t policy, int least, int greatest, int wanted, int *got);

/* --- current streams (current.c) --- */

struct api_thread {
    CUresult last;
    struct api_capture *captures; /* of its default streams */
    struct api_current *current;  /* by device */
    struct api_pushed *pushed;
};
struct api_thread *api_thread(void); /* NULL: no memory */
custream_t api_current_or(custream_t stream, status *why); /* the stream, or a reference to the current one; to be released if it was NULL */
void api_currents_release(void);
void api_pools_release(void);
void api_defaults_release(void);
status api_default_event(custream_t stream, custream_event_t *event); /* the cached one of CUDA's default streams */

/* --- events (event.c) --- */

struct custream_event_s {
    struct api_object object;
    _Atomic(CUevent) handle; /* NULL: lazy, and not made yet */
    _Atomic cs_u64 link;     /* as of a stream */
    struct api_home home;    /* of those that are made here */
    unsigned flags;
    bool owned, external, lazy, once, imported, flags_known;
    _Atomic bool recorded;
    _Atomic cs_u64 captured, captured_on; /* the capture that it was last recorded in, as far as is known, and the stream object's id; 0: in none */
    void (*release)(void *);
    void *owner;
};
status api_event_usable(custream_event_t event);
status api_event_record(custream_event_t event, custream_t stream, unsigned flags);
status api_event_wait(custream_event_t event, custream_t stream, unsigned flags);

/* --- captures and graphs (capture.c, captured.c, fork.c, graph.c) --- */

struct custream_graph_s {
    struct api_object object;
    CUgraph graph;
    _Atomic(CUgraphExec) exec;
};
status api_graph_new(custream_graph_t *out, CUgraph graph, int device);
void api_capture_drop(struct api_capture *capture); /* all that was to come of it */
void api_captures_drop(struct api_thread *thread);

/* What is captured; asking changes nothing. The id: 0 unless the capture is active. */
status api_capture_info(custream_t stream, CUstreamCaptureStatus *now, cs_u64 *id);
cs_u64 api_capture_id(custream_t stream);
bool api_is_capturing(custream_t stream);
/* Whether asking, or waiting, for the work's end would break a capture that goes on. As far as this library has met it, but for streams. */
bool api_stream_is_captured(custream_t stream);
bool api_event_is_captured(custream_event_t event);
bool api_context_is_captured(int device); /* of the current context, which is the device's */
void api_event_was_recorded(custream_event_t event, custream_t stream, bool external);

/* Streams that were joined in a capture end once it is over, since CUDA would mind before. This looks which ones; not under a lock. */
void api_joined_end(void);
bool api_joined_in(cs_u64 capture, const struct api_home *home); /* is there one? 0, or NULL: any */

#endif
