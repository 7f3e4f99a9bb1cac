"""The nvtx package around calls of cuda.bindings: its extension modules are loaded with dlopen, and each has its own copy of NVTX."""

import threading

import nvtx
from cuda.bindings import driver


def ok(answer):
    error, *values = answer if isinstance(answer, tuple) else (answer,)
    assert error == driver.CUresult.CUDA_SUCCESS, error
    return values[0] if len(values) == 1 else values


@nvtx.annotate("set", domain="work", category="memory", color="green")
def fill(memory, stream):
    ok(driver.cuMemsetD8Async(memory, 7, 4096, stream))


def other():
    with nvtx.annotate("other thread"):
        pass


ok(driver.cuInit(0))
ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(ok(driver.cuDeviceGet(0))))))
with nvtx.annotate("everything", payload=42):
    stream = ok(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_DEFAULT))
    memory = ok(driver.cuMemAlloc(4096))
    for _ in range(5):
        fill(memory, stream)
    span = nvtx.start_range("span", domain="work")
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    nvtx.end_range(span)
    nvtx.mark("half way", payload=0.5)
    ok(driver.cuStreamSynchronize(stream))
ok(driver.cuMemFree(memory))
ok(driver.cuStreamDestroy(stream))
print("ok")
