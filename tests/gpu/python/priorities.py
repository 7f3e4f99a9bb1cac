"""What a library makes of the priorities that its streams are asked to have.

    priorities.py bindings|cuda_core|cupy|torch|warp

Prints JSON lines: the range as the driver's query gives it (and the library's own, where it has one), then for each request what the library says that the
stream has and what the driver says, or the type of the exception. No addresses: the same in every run.
"""
import ctypes
import json
import sys

REQUESTS = (100, 1, 0, -1, -3, -4, -5, -100, None)


class Driver:
    """The driver's own words, asked as programs ask."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")

    def must(self, name, *arguments):
        code = getattr(self.cuda, name)(*arguments)
        assert code == 0, f"{name} gave {code}"

    def enter(self):
        """A context for this thread, where the library has left it without one."""
        context, device = ctypes.c_void_p(), ctypes.c_int()
        self.must("cuInit", 0)
        self.must("cuCtxGetCurrent", ctypes.byref(context))
        if not context.value:
            self.must("cuDeviceGet", ctypes.byref(device), 0)
            self.must("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
            self.must("cuCtxSetCurrent", context)

    def range(self):
        least, greatest = ctypes.c_int(), ctypes.c_int()
        self.must("cuCtxGetStreamPriorityRange", ctypes.byref(least), ctypes.byref(greatest))
        return [least.value, greatest.value]

    def priority(self, handle):
        value = ctypes.c_int()
        self.must("cuStreamGetPriority", ctypes.c_void_p(handle), ctypes.byref(value))
        return value.value


# Each gives (a function that makes a stream of a priority and returns it, what it says of itself, its handle; the library's own range or None).

def bindings():
    from cuda.bindings import driver

    def ok(answer):
        error, *values = answer
        assert int(error) == 0, error
        return values[0] if len(values) == 1 else values

    ok(driver.cuInit(0))
    ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(ok(driver.cuDeviceGet(0))))))

    def create(priority):
        flags = driver.CUstream_flags.CU_STREAM_NON_BLOCKING
        stream = ok(driver.cuStreamCreate(flags)) if priority is None else ok(driver.cuStreamCreateWithPriority(flags, priority))
        return stream, ok(driver.cuStreamGetPriority(stream)), int(stream)
    return create, ok(driver.cuCtxGetStreamPriorityRange())


def cuda_core():
    try:
        import cuda.core as core
        assert core.Device
    except (ImportError, AttributeError):
        import cuda.core.experimental as core
    device = core.Device()
    device.set_current()

    def create(priority):
        stream = device.create_stream(options=core.StreamOptions(priority=priority))
        return stream, stream.priority, int(stream.handle)
    return create, None


def cupy():
    import cupy as cp
    cp.cuda.Device(0).use()

    def create(priority):
        stream = cp.cuda.Stream(non_blocking=True, priority=priority)
        return stream, stream.priority, stream.ptr
    return create, None


def torch():
    import torch as th
    th.cuda.init()
    th.empty(1, device="cuda")

    def create(priority):
        stream = th.cuda.Stream(priority=priority)
        return stream, stream.priority, stream.cuda_stream
    return create, th.cuda.Stream.priority_range()


def warp():
    import warp as wp
    wp.config.quiet = True
    wp.init()

    def create(priority):
        stream = wp.Stream("cuda:0", priority=priority)
        return stream, stream.priority, stream.cuda_stream
    return create, None


def say(**line):
    print(json.dumps(line), flush=True)


def main():
    create, own = {"bindings": bindings, "cuda_core": cuda_core, "cupy": cupy, "torch": torch, "warp": warp}[sys.argv[1]]()
    driver = Driver()
    driver.enter()
    say(what="range", driver=driver.range(), library=None if own is None else list(own))
    kept = []
    for asked in REQUESTS:
        try:
            stream, given, handle = create(asked)
        except Exception as error:  # the type alone: messages differ
            say(what="stream", asked=asked, given=None, driver=None, error=type(error).__name__)
            continue
        kept.append(stream)  # a handle that is given up would come again
        say(what="stream", asked=asked, given=given, driver=driver.priority(handle), error=None)


if __name__ == "__main__":
    main()
