/* Ids of the driver's objects, and what this CUPTI says of itself. */
#include "tests/fakecuda/cupti/fake_cupti.h"

CUptiResult CUPTIAPI cuptiGetVersion(uint32_t *version)
{
    ENTER(cuptiGetVersion);
    if (!version) return CUPTI_ERROR_INVALID_PARAMETER;
    *version = (uint32_t)cupti_settings.version;
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetContextId(CUcontext context, uint32_t *id)
{
    uint32_t device;

    ENTER(cuptiGetContextId);
    if (!id) return CUPTI_ERROR_INVALID_PARAMETER;
    if (!cupti_driver()) return CUPTI_ERROR_NOT_INITIALIZED;
    return !context || cupti_driver()->context_id(context, id, &device)
               ? CUPTI_ERROR_INVALID_CONTEXT
               : CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetDeviceId(CUcontext context, uint32_t *device)
{
    uint32_t id;

    ENTER(cuptiGetDeviceId);
    if (!device) return CUPTI_ERROR_INVALID_PARAMETER;
    if (!cupti_driver()) return CUPTI_ERROR_NOT_INITIALIZED;
    return cupti_driver()->context_id(context, &id, device) ? CUPTI_ERROR_INVALID_DEVICE
                                                            : CUPTI_SUCCESS;
}

static CUptiResult stream_id(CUcontext context, CUstream stream, bool per_thread, uint32_t *id)
{
    if (!id) return CUPTI_ERROR_INVALID_PARAMETER;
    if (!cupti_driver()) return CUPTI_ERROR_NOT_INITIALIZED;
    return cupti_driver()->stream_id(context, stream, per_thread, id) ? CUPTI_ERROR_INVALID_STREAM
                                                                      : CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiGetStreamId(CUcontext context, CUstream stream, uint32_t *id)
{
    ENTER(cuptiGetStreamId);
    return stream_id(context, stream, false, id);
}
CUptiResult CUPTIAPI cuptiGetStreamIdEx(
    CUcontext context, CUstream stream, uint8_t per_thread, uint32_t *id)
{
    ENTER(cuptiGetStreamIdEx);
    return stream_id(context, stream, per_thread != 0, id);
}

#define GRAPH_ID(function, type, ask, id_type) \
    CUptiResult CUPTIAPI function(type object, id_type *id) { \
        ENTER(function); \
        if (!object || !id) return CUPTI_ERROR_INVALID_PARAMETER; \
        if (!cupti_driver()) return CUPTI_ERROR_NOT_INITIALIZED; \
        return cupti_driver()->ask(object, id) ? CUPTI_ERROR_INVALID_PARAMETER : CUPTI_SUCCESS; \
    }
GRAPH_ID(cuptiGetGraphId, CUgraph, graph_id, uint32_t)
GRAPH_ID(cuptiGetGraphExecId, CUgraphExec, exec_id, uint32_t)
GRAPH_ID(cuptiGetGraphNodeId, CUgraphNode, node_id, uint64_t)

CUptiResult CUPTIAPI cuptiGetLastError(void)
{
    ENTER(cuptiGetLastError);
    return CUPTI_SUCCESS; /* errors are returned; none is kept */
}

CUptiResult CUPTIAPI cuptiDeviceSupported(CUdevice device, int *support)
{
    ENTER(cuptiDeviceSupported);
    (void)device;
    if (!support) return CUPTI_ERROR_INVALID_PARAMETER;
    *support = 1;
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiDeviceVirtualizationMode(
    CUdevice device, CUpti_DeviceVirtualizationMode *mode)
{
    ENTER(cuptiDeviceVirtualizationMode);
    (void)device;
    if (!mode) return CUPTI_ERROR_INVALID_PARAMETER;
    *mode = CUPTI_DEVICE_VIRTUALIZATION_MODE_NONE;
    return CUPTI_SUCCESS;
}

/* The rest of the headers, so that whoever looks a function up finds it. */
#define UNSUPPORTED(function, parameters, ...) \
    CUptiResult CUPTIAPI function parameters { \
        ENTER(function); \
        (void)__VA_ARGS__; \
        return CUPTI_ERROR_NOT_SUPPORTED; \
    }
UNSUPPORTED(
    cuptiActivityEnableContext, (CUcontext context, CUpti_ActivityKind kind), context, (void)kind)
UNSUPPORTED(
    cuptiActivityDisableContext, (CUcontext context, CUpti_ActivityKind kind), context, (void)kind)
UNSUPPORTED(cuptiActivityConfigureUnifiedMemoryCounter,
    (CUpti_ActivityUnifiedMemoryCounterConfig * config, uint32_t count), config, (void)count)
UNSUPPORTED(cuptiActivityConfigurePCSampling,
    (CUcontext context, CUpti_ActivityPCSamplingConfig *config), context, (void)config)
UNSUPPORTED(cuptiGetAutoBoostState, (CUcontext context, CUpti_ActivityAutoBoostState *state),
    context, (void)state)
UNSUPPORTED(cuptiComputeCapabilitySupported, (int major, int minor, int *support), major,
    (void)minor, (void)support)
