/*
 * Objects: their memory, references, and finding them by handle. They know nothing of CUDA.
 *
 * Objects come from lists of blocks that are never unmapped, and begin with a mark: a reference that was released, or a pointer that is none, is noticed
 * wherever that memory can be read at all. One lock (CS_RANK_API) guards all references, the table of handles and the lists; it is never held across a
 * call into CUDA or into the program.
 */
#ifndef CS_API_OBJECT_H
#define CS_API_OBJECT_H

#include "shim/api/status.h"
#include "shim/base/lock.h"

enum { API_DEVICES = 64, API_SORTS = 6 /* of one kind */ };
enum api_mark { API_STREAM = 0x6d727473, API_EVENT = 0x746e7665, API_GRAPH = 0x68707267, API_FREE = 0x65657266 };

/* Called with an object whose last reference has gone: it is in no list any more. Ends the CUDA side, and gives the memory to api_object_free. */
typedef status api_object_end(void *object);

struct api_object {
    _Atomic cs_u32 mark;
    cs_u32 references; /* the lock's */
    cs_u64 id;         /* counted up over all objects */
    struct api_object *next_of_handle, *next, *previous; /* the lock's: in the table of handles; among all of its kind */
    void *handle;      /* as listed in the table of handles; NULL: it is not */
    int device, counted; /* the second: under which it was counted when it was listed */
    int sort;            /* counted apart from others of its kind: of a stream its enum api_stream_kind, else 0. Does not change once it is listed */
    cs_u32 walkers;      /* the lock's: walks that stand at it */
    api_object_end *end;
    bool stays; /* its own reference cannot be given back. Does not change once it is listed */
    _Atomic bool closed;
    bool listed, linked; /* the lock's. Linked: among all of its kind, where one that is listed no more stays while a walk stands at it */
};

extern struct cs_lock api_lock;

/* With one reference, not yet in any list. NULL: no memory. All of a mark have the same size. */
void *api_object_new(enum api_mark mark, size_t size, api_object_end *end);
void api_object_free(void *object);
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
status api_release(void *object, enum api_mark mark); /* what its end answers, if it was the last reference */
void *api_object_of_id(enum api_mark mark, cs_u64 id); /* referenced; NULL: there is none, or it is closed */
void api_object_counts(enum api_mark mark, int device, cs_u64 *alive, cs_u64 *ever);
cs_u64 api_object_count(enum api_mark mark, int device, int sort); /* of those that live */
bool api_object_any(int device);                                   /* one of any kind lives */

/* All of a kind that are not closed, by id, without those that are made meanwhile. Each is referenced until the next is asked for. The lock is held for a step at
 * a time, whatever ends between two of them. Left without its end, a walk keeps its reference, and nothing else. */
struct api_walk {
    cs_u64 at, until; /* the id of the one that it stands at; the last there was */
    struct api_object *object;
    enum api_mark mark;
};
void api_walk_begin(struct api_walk *walk, enum api_mark mark);
void *api_walk_next(struct api_walk *walk); /* NULL: that was the last */
void api_walk_end(struct api_walk *walk);   /* any time */

#endif
