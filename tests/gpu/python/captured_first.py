"""A capture is the first thing that happens on a thread's default stream, and on one that was made before; nothing that looks on may break it.

    captured_first.py
"""
import threading

from cuda.bindings import driver


def ok(answer):
    error, *values = answer
    assert int(error) == 0, error
    return values[0] if len(values) == 1 else values


def captures(stream, memory):
    ok(driver.cuStreamBeginCapture(stream, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL))
    for value in (1, 2):
        ok(driver.cuMemsetD8Async(memory, value, 16, stream))
    graph = ok(driver.cuStreamEndCapture(stream))
    _, count = ok(driver.cuGraphGetNodes(graph))
    return count


def main():
    ok(driver.cuInit(0))
    context = ok(driver.cuDevicePrimaryCtxRetain(ok(driver.cuDeviceGet(0))))
    ok(driver.cuCtxSetCurrent(context))
    memory, counts = ok(driver.cuMemAlloc(64)), []

    def thread():
        ok(driver.cuCtxSetCurrent(context))
        counts.append(captures(driver.CUstream(2), memory))

    counts.append(captures(driver.CUstream(2), memory))
    worker = threading.Thread(target=thread)
    worker.start()
    worker.join()
    counts.append(captures(ok(driver.cuStreamCreate(0)), memory))
    print("nodes", *counts)


if __name__ == "__main__":
    main()
