/* Streams, events, host functions, capture and graphs. */
#include "tests/fakecuda/cudart/rt.h"

PLAIN(cudaStreamCreate, (cudaStream_t * stream), (stream))
{
    return E(driver.p_cuStreamCreate(stream, CU_STREAM_DEFAULT));
}
PLAIN(cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned flags), (stream, flags))
{
    return E(driver.p_cuStreamCreate(stream, flags));
}
PLAIN(cudaStreamCreateWithPriority, (cudaStream_t * stream, unsigned flags, int priority),
    (stream, flags, priority))
{
    return E(driver.p_cuStreamCreateWithPriority(stream, flags, priority));
}
PLAIN(cudaStreamDestroy, (cudaStream_t stream), (stream))
{
    return E(driver.p_cuStreamDestroy(stream));
}

CALL(cudaStreamSynchronize, _ptsz, (cudaStream_t stream), (stream))
{
    return E(d->p_cuStreamSynchronize(stream));
}
CALL(cudaStreamQuery, _ptsz, (cudaStream_t stream), (stream))
{
    return E(d->p_cuStreamQuery(stream));
}
CALL(cudaStreamWaitEvent, _ptsz, (cudaStream_t stream, cudaEvent_t event, unsigned flags),
    (stream, event, flags))
{
    return E(d->p_cuStreamWaitEvent(stream, event, flags));
}
CALL(cudaStreamGetPriority, _ptsz, (cudaStream_t stream, int *priority), (stream, priority))
{
    return E(d->p_cuStreamGetPriority(stream, priority));
}
CALL(cudaStreamGetFlags, _ptsz, (cudaStream_t stream, unsigned *flags), (stream, flags))
{
    return E(d->p_cuStreamGetFlags(stream, flags));
}
CALL(cudaStreamGetId, _ptsz, (cudaStream_t stream, unsigned long long *id), (stream, id))
{
    return E(d->p_cuStreamGetId(stream, id));
}
CALL(cudaLaunchHostFunc, _ptsz, (cudaStream_t stream, cudaHostFn_t function, void *data),
    (stream, function, data))
{
    return E(d->p_cuLaunchHostFunc(stream, function, data));
}
CALL(cudaStreamAddCallback, _ptsz,
    (cudaStream_t stream, cudaStreamCallback_t callback, void *data, unsigned flags),
    (stream, callback, data, flags))
{
    return E(d->p_cuStreamAddCallback(stream, (CUstreamCallback)callback, data, flags));
}

/* ---- Events ---- */

PLAIN(cudaEventCreate, (cudaEvent_t * event), (event))
{
    return E(driver.p_cuEventCreate(event, CU_EVENT_DEFAULT));
}
PLAIN(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned flags), (event, flags))
{
    return E(driver.p_cuEventCreate(event, flags));
}
PLAIN(cudaEventDestroy, (cudaEvent_t event), (event)) { return E(driver.p_cuEventDestroy(event)); }
PLAIN(cudaEventQuery, (cudaEvent_t event), (event)) { return E(driver.p_cuEventQuery(event)); }
PLAIN(cudaEventSynchronize, (cudaEvent_t event), (event))
{
    return E(driver.p_cuEventSynchronize(event));
}
PLAIN(cudaEventElapsedTime, (float *ms, cudaEvent_t start, cudaEvent_t end), (ms, start, end))
{
    return E(driver.p_cuEventElapsedTime(ms, start, end));
}
CALL(cudaEventRecord, _ptsz, (cudaEvent_t event, cudaStream_t stream), (event, stream))
{
    return E(d->p_cuEventRecord(event, stream));
}
CALL(cudaEventRecordWithFlags, _ptsz, (cudaEvent_t event, cudaStream_t stream, unsigned flags),
    (event, stream, flags))
{
    return E(d->p_cuEventRecordWithFlags(event, stream, flags));
}

/* ---- Capture and graphs ---- */

CALL(cudaStreamBeginCapture, _ptsz, (cudaStream_t stream, enum cudaStreamCaptureMode mode),
    (stream, mode))
{
    return E(d->p_cuStreamBeginCapture(stream, (CUstreamCaptureMode)mode));
}
CALL(cudaStreamEndCapture, _ptsz, (cudaStream_t stream, cudaGraph_t *graph), (stream, graph))
{
    return E(d->p_cuStreamEndCapture(stream, graph));
}
CALL(cudaStreamIsCapturing, _ptsz, (cudaStream_t stream, enum cudaStreamCaptureStatus *status),
    (stream, status))
{
    return E(d->p_cuStreamIsCapturing(stream, (CUstreamCaptureStatus *)status));
}
PLAIN(cudaThreadExchangeStreamCaptureMode, (enum cudaStreamCaptureMode * mode), (mode))
{
    return E(driver.p_cuThreadExchangeStreamCaptureMode((CUstreamCaptureMode *)mode));
}
PLAIN(cudaGraphCreate, (cudaGraph_t * graph, unsigned flags), (graph, flags))
{
    return E(driver.p_cuGraphCreate(graph, flags));
}
PLAIN(cudaGraphDestroy, (cudaGraph_t graph), (graph)) { return E(driver.p_cuGraphDestroy(graph)); }
PLAIN(cudaGraphGetNodes, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count),
    (graph, nodes, count))
{
    return E(driver.p_cuGraphGetNodes(graph, nodes, count));
}
PLAIN(cudaGraphInstantiate, (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags),
    (exec, graph, flags))
{
    return E(driver.p_cuGraphInstantiateWithFlags(exec, graph, flags));
}
PLAIN(cudaGraphInstantiateWithFlags,
    (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags), (exec, graph, flags))
{
    return E(driver.p_cuGraphInstantiateWithFlags(exec, graph, flags));
}
PLAIN(cudaGraphExecDestroy, (cudaGraphExec_t exec), (exec))
{
    return E(driver.p_cuGraphExecDestroy(exec));
}
CALL(cudaGraphLaunch, _ptsz, (cudaGraphExec_t exec, cudaStream_t stream), (exec, stream))
{
    return E(d->p_cuGraphLaunch(exec, stream));
}
CALL(cudaGraphUpload, _ptsz, (cudaGraphExec_t exec, cudaStream_t stream), (exec, stream))
{
    return E(d->p_cuGraphUpload(exec, stream));
}
