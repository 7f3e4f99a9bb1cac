"""What a question does to a capture: asked between two memsets that a stream captures.

    capture_questions.py

A line for each question whose answer is not 0 or after which the capture is broken: flags of the stream, mode, question, its answer, that of the second
memset, of the capture's end.
"""
from cuda.bindings import driver

LEGACY = driver.CUstream(1)


def ok(answer):
    error, *values = answer
    assert int(error) == 0, error
    return values[0] if len(values) == 1 else values


def main():
    ok(driver.cuInit(0))
    context = ok(driver.cuDevicePrimaryCtxRetain(ok(driver.cuDeviceGet(0))))
    ok(driver.cuCtxSetCurrent(context))
    memory, event = ok(driver.cuMemAlloc(64)), ok(driver.cuEventCreate(0))
    questions = {
        "cuStreamGetFlags": driver.cuStreamGetFlags, "cuStreamGetId": driver.cuStreamGetId, "cuStreamGetPriority": driver.cuStreamGetPriority,
        "cuStreamGetCtx": driver.cuStreamGetCtx, "cuStreamIsCapturing of the legacy stream": lambda _: driver.cuStreamIsCapturing(LEGACY),
        "cuCtxGetId": lambda _: driver.cuCtxGetId(context), "cuCtxGetDevice": lambda _: driver.cuCtxGetDevice(),
        "cuCtxPushCurrent": lambda _: (driver.cuCtxPushCurrent(context)[0], driver.cuCtxPopCurrent()),
        "cuCtxGetStreamPriorityRange": lambda _: driver.cuCtxGetStreamPriorityRange(), "cuDevicePrimaryCtxGetState": lambda _: driver.cuDevicePrimaryCtxGetState(0),
        "cuDevicePrimaryCtxRetain": lambda _: driver.cuDevicePrimaryCtxRetain(0), "cuStreamCreateWithPriority": lambda _: driver.cuStreamCreateWithPriority(1, 0),
        "cuEventCreate": lambda _: driver.cuEventCreate(0), "cuEventQuery": lambda _: driver.cuEventQuery(event),
    }
    for flags in (0, 1):
        for mode in (0, 1, 2):
            for name, ask in questions.items():
                stream = ok(driver.cuStreamCreate(flags))
                ok(driver.cuStreamBeginCapture(stream, driver.CUstreamCaptureMode(mode)))
                ok(driver.cuMemsetD8Async(memory, 1, 16, stream))
                answers = [int(a[0]) for a in (ask(stream), driver.cuMemsetD8Async(memory, 2, 16, stream), driver.cuStreamEndCapture(stream))]
                if any(answers):
                    print(flags, mode, f"{name}:", *answers)


if __name__ == "__main__":
    main()
