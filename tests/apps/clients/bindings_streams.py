"""cuda.bindings: streams, events, memory, callbacks, capture and kernels at the driver level. Prints the same lines with and without the shim."""

import ctypes

from cuda.bindings import driver


def ok(answer):
    error, *values = answer if isinstance(answer, tuple) else (answer,)
    assert error == driver.CUresult.CUDA_SUCCESS, error
    return values[0] if len(values) == 1 else values


def refused(answer, code):
    error = answer[0] if isinstance(answer, tuple) else answer
    assert error == code, error


ok(driver.cuInit(0))
device = ok(driver.cuDeviceGet(0))
context = ok(driver.cuDevicePrimaryCtxRetain(device))
ok(driver.cuCtxSetCurrent(context))
least, greatest = ok(driver.cuCtxGetStreamPriorityRange())
print("priorities", least >= 0 >= greatest)

blocking = ok(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_DEFAULT))
urgent = ok(driver.cuStreamCreateWithPriority(driver.CUstream_flags.CU_STREAM_NON_BLOCKING, greatest))
print("flags", ok(driver.cuStreamGetFlags(urgent)), ok(driver.cuStreamGetFlags(blocking)))
print("priority kept", ok(driver.cuStreamGetPriority(urgent)) == greatest)

# Bytes go to the device and back, the second stream waiting for the first.
N = 4096
memory = ok(driver.cuMemAlloc(N))
source = ctypes.create_string_buffer(bytes(range(256)) * (N // 256), N)
target = ctypes.create_string_buffer(N)
copied = ok(driver.cuEventCreate(driver.CUevent_flags.CU_EVENT_DEFAULT))
done = ok(driver.cuEventCreate(driver.CUevent_flags.CU_EVENT_DEFAULT))
untimed = ok(driver.cuEventCreate(driver.CUevent_flags.CU_EVENT_DISABLE_TIMING))
ok(driver.cuMemcpyHtoDAsync(memory, ctypes.addressof(source), N, blocking))
ok(driver.cuEventRecord(copied, blocking))
ok(driver.cuStreamWaitEvent(urgent, copied, 0))
ok(driver.cuMemcpyDtoHAsync(ctypes.addressof(target), memory, N, urgent))
ok(driver.cuEventRecord(done, urgent))
ok(driver.cuEventSynchronize(done))
print("bytes", target.raw == source.raw)
print("elapsed", ok(driver.cuEventElapsedTime(copied, done)) >= 0)
ok(driver.cuEventRecord(untimed, urgent))
refused(driver.cuEventElapsedTime(untimed, done), driver.CUresult.CUDA_ERROR_INVALID_HANDLE)

ok(driver.cuMemsetD8Async(memory, 7, N, urgent))
ok(driver.cuStreamSynchronize(urgent))
ok(driver.cuMemcpyDtoH(ctypes.addressof(target), memory, N))
print("set", set(target.raw) == {7})

# A host function runs in stream order.
seen = []
callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda data: seen.append(data))
function = driver.CUhostFn(ctypes.cast(callback, ctypes.c_void_p).value)
ok(driver.cuLaunchHostFunc(urgent, function, 42))
ok(driver.cuStreamSynchronize(urgent))
print("host function", seen)

# A captured set becomes a graph of one node, which runs when it is launched.
ok(driver.cuStreamBeginCapture(urgent, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
ok(driver.cuMemsetD8Async(memory, 9, N, urgent))
graph = ok(driver.cuStreamEndCapture(urgent))
nodes, count = ok(driver.cuGraphGetNodes(graph, 10))
executable = ok(driver.cuGraphInstantiate(graph, 0))
ok(driver.cuMemcpyDtoH(ctypes.addressof(target), memory, N))
before = set(target.raw)
ok(driver.cuGraphLaunch(executable, urgent))
ok(driver.cuStreamSynchronize(urgent))
ok(driver.cuMemcpyDtoH(ctypes.addressof(target), memory, N))
print("graph", count, before, set(target.raw))
ok(driver.cuGraphExecDestroy(executable))
ok(driver.cuGraphDestroy(graph))

for event in (copied, done, untimed):
    ok(driver.cuEventDestroy(event))
for stream in (blocking, urgent):
    ok(driver.cuStreamDestroy(stream))
refused(driver.cuStreamQuery(urgent), driver.CUresult.CUDA_ERROR_INVALID_HANDLE)
ok(driver.cuMemFree(memory))
ok(driver.cuCtxSynchronize())
ok(driver.cuDevicePrimaryCtxRelease(device))
print("ok")
