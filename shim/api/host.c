/*
 * Host functions in stream order. What is given to CUDA is a block of ours that knows the program's function; who frees it: a callback itself, since it is
 * called once whatever happens; a host function after its call; one that was captured, a user object of the graph, when the last executable has gone.
 */
#include "shim/api/link.h"
#include "shim/api/stream.h"

#include <stdlib.h>

struct callback {
    void (*function)(custream_t, status, void *);
    void *arg;
    custream_t stream;
};

static void CUDA_CB call_back(CUstream handle, CUresult result, void *block)
{
    struct callback *c = block;
    (void)handle;
    status told = api_result(result);
    api_thread_cudas++;
    c->function(c->stream, told == CUSTREAM_SUCCESS ? told : CUSTREAM_DRIVER, c->arg);
    custream_release(c->stream);
    api_thread_cudas--;
    free(c);
}

CS_EXPORT status custream_add_callback(custream_t stream, void (*function)(custream_t stream, custream_status_t status, void *arg), void *arg)
{
    NEED(function);
    USABLE_STREAM(stream);
    TRY(api_ready());
    CHECK(!api_is_capturing(stream->handle), CUSTREAM_CAPTURE_UNSUPPORTED);
    TRY(api_stream_enter(stream));
    struct callback *c = malloc(sizeof *c);
    CHECK(c, CUSTREAM_NO_MEMORY);
    *c = (struct callback){function, arg, stream};
    custream_retain(stream);
    status result = CUDA(cuStreamAddCallback, stream->handle, call_back, c, 0);
    if (result == CUSTREAM_SUCCESS) return CUSTREAM_SUCCESS;
    custream_release(stream);
    free(c);
    return result;
}

struct host_call {
    void (*function)(void *);
    void *arg;
    void (*destroy)(void *);
    bool captured;
};

static void CUDA_CB drop(void *block)
{
    struct host_call *c = block;
    api_thread_cudas++;
    if (c->destroy) c->destroy(c->arg);
    api_thread_cudas--;
    free(c);
}

static void CUDA_CB call_host(void *block)
{
    struct host_call *c = block;
    bool captured = c->captured; /* then another launch may be at the same block */
    api_thread_cudas++;
    c->function(c->arg);
    if (!captured) drop(c);
    api_thread_cudas--;
}

/* The graph that is being captured keeps the block, from before the node is in it. */
static status keep_in_graph(custream_t stream, struct host_call *c, CUuserObject *object)
{
    CUstreamCaptureStatus now;
    CUgraph graph;
    TRY(CUDA(cuStreamGetCaptureInfo_v2, stream->handle, &now, NULL, &graph, NULL, NULL));
    CHECK(now == CU_STREAM_CAPTURE_STATUS_ACTIVE, CUSTREAM_CAPTURE_INVALIDATED);
    TRY(CUDA(cuUserObjectCreate, object, c, drop, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    status result = CUDA(cuGraphRetainUserObject, graph, *object, 1, CU_GRAPH_USER_OBJECT_MOVE);
    if (result != CUSTREAM_SUCCESS) c->destroy = NULL, api_driver.cuUserObjectRelease(*object, 1);
    return result;
}

/* Not on another stream, where a hook would have it: who frees the block depends on whether this one captures. */
static status launch_here(custream_t stream, struct host_call *c)
{
    api_link->stays(true);
    status result = CUDA(cuLaunchHostFunc, stream->handle, call_host, c);
    api_link->stays(false);
    return result;
}

CS_EXPORT status custream_launch_host_func(custream_t stream, void (*function)(void *arg), void *arg, void (*destroy)(void *arg))
{
    CUuserObject object = NULL;
    NEED(function);
    READY_STREAM(stream);
    struct host_call *c = malloc(sizeof *c);
    CHECK(c, CUSTREAM_NO_MEMORY);
    *c = (struct host_call){function, arg, destroy, api_is_capturing(stream->handle)};
    status result = c->captured ? keep_in_graph(stream, c, &object) : CUSTREAM_SUCCESS;
    if (object && result != CUSTREAM_SUCCESS) return result; /* the object's end has freed the block */
    if (result == CUSTREAM_SUCCESS) result = launch_here(stream, c);
    if (result == CUSTREAM_SUCCESS) return CUSTREAM_SUCCESS;
    if (object) c->destroy = NULL; /* the graph has the block, and frees it */
    else free(c);
    return result;
}
