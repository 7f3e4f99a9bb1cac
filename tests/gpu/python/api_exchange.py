"""Streams of a Python library as objects of custream.h, and the other way round.

    api_exchange.py cupy|torch|cuda_core|warp LIBRARY      LIBRARY: the path of libcustream.so, or "-": the process has its functions (preloaded)
"""
import ctypes
import os
import sys


class Custream:
    """The functions as calls that must succeed."""

    def __init__(self, path):
        self._library = ctypes.CDLL(None if path == "-" else path)

    def __getattr__(self, name):
        function = getattr(self._library, "custream_" + name)

        def call(*arguments):
            status = function(*arguments)
            assert status == 0, f"custream_{name} gave {status}"
        call.raw = function
        return call

    def wrap(self, handle):
        stream = ctypes.c_void_p()
        self.__getattr__("wrap")(ctypes.byref(stream), ctypes.c_void_p(handle), -1, None, None)
        return stream

    def new(self):
        stream = ctypes.c_void_p()
        self.create(ctypes.byref(stream), None)
        return stream

    def handle(self, stream):
        handle = ctypes.c_void_p()
        self.get_handle(stream, ctypes.byref(handle))
        return handle.value

    def priority(self, stream):
        value = ctypes.c_int()
        self.get_priority(stream, ctypes.byref(value))
        return value.value


class History(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("library", ctypes.c_char * 64), ("call", ctypes.c_char * 48)] + [
        (name, ctypes.c_uint64) for name in ("launches", "copies", "sets", "records", "waits", "synchronizations", "graph_launches", "others", "bytes_copied")]


class Protocol:
    """An object of custream's that Python's libraries take for a stream."""

    def __init__(self, api, stream):
        self.api, self.stream = api, stream

    def __cuda_stream__(self):
        version, handle = ctypes.c_int(-1), ctypes.c_size_t()
        self.api.protocol(self.stream, ctypes.byref(version), ctypes.byref(handle))
        return version.value, handle.value


def of_cupy(api):
    import cupy
    theirs = cupy.cuda.Stream(non_blocking=True, priority=-2)
    ours = api.new()
    foreign = cupy.cuda.Stream.from_external(Protocol(api, ours)) if hasattr(cupy.cuda.Stream, "from_external") else cupy.cuda.ExternalStream(api.handle(ours))

    def work(stream):
        with stream:
            x = cupy.arange(1 << 20, dtype=cupy.float32)
            return lambda: float((x * 2).sum()) > 0
    return theirs, theirs.ptr, -2, foreign, foreign.ptr, ours, work, lambda s: s.synchronize()


def of_torch(api):
    import torch
    torch.zeros(1, device="cuda")
    theirs = torch.cuda.Stream(priority=-1)
    ours = api.new()
    foreign = torch.cuda.ExternalStream(api.handle(ours))

    def work(stream):
        with torch.cuda.stream(stream):
            x = torch.ones(1 << 20, device="cuda")
            y = x * 2
        return lambda: float(y.sum().item()) == 2 << 20
    return theirs, theirs.cuda_stream, -1, foreign, foreign.cuda_stream, ours, work, lambda s: s.synchronize()


def of_cuda_core(api):
    from cuda.core import Device, StreamOptions
    device = Device(0)
    device.set_current()
    theirs = device.create_stream(options=StreamOptions(priority=-3))
    ours = api.new()
    foreign = device.create_stream(Protocol(api, ours))

    def work(stream):
        event = stream.record()
        event.sync()
        return lambda: event.is_done
    version, handle = theirs.__cuda_stream__()
    assert version == 0 and handle == int(theirs.handle)
    return theirs, handle, -3, foreign, int(foreign.handle), ours, work, lambda s: s.sync()


def of_warp(api):
    import warp as wp
    wp.config.quiet = True
    wp.init()
    device = wp.get_device("cuda:0")
    theirs = wp.Stream(device, priority=-1)
    ours = api.new()
    foreign = wp.Stream(device, cuda_stream=api.handle(ours))

    def work(stream):
        with wp.ScopedStream(stream):
            x = wp.zeros(1 << 16, dtype=wp.float32, device=device)
            y = wp.clone(x)
        return lambda: float(y.numpy().sum()) == 0.0
    return theirs, theirs.cuda_stream, -1, foreign, foreign.cuda_stream, ours, work, wp.synchronize_stream


def main():
    api = Custream(sys.argv[2])
    theirs, handle, priority, foreign, foreign_handle, ours, work, wait = {"cupy": of_cupy, "torch": of_torch, "cuda_core": of_cuda_core, "warp": of_warp}[sys.argv[1]](api)

    wrapped, again = api.wrap(handle), api.wrap(handle)
    assert wrapped.value == again.value and api.handle(wrapped) == handle and api.priority(wrapped) == priority
    owned = ctypes.c_int(1)
    api.is_owned(wrapped, ctypes.byref(owned))
    assert owned.value == 0
    print("their stream is an object of ours")

    right = work(theirs)
    api.synchronize(wrapped)
    assert api.query.raw(wrapped) == 0 and right()
    print("we wait for their work")

    history = History(size=ctypes.sizeof(History))
    if sys.argv[2] == "-" or "libcustream_shim" in os.environ.get("LD_PRELOAD", ""):
        api.trace_flush()
        api.history(wrapped, ctypes.byref(history))
        print(f"history: {history.launches} launches, {history.copies} copies, {history.sets} sets, {history.records} records, {history.synchronizations} waits; made by {history.library.decode()}, {history.call.decode()}")
        assert history.launches + history.records + history.copies + history.sets and history.synchronizations
    else:
        assert api.history.raw(wrapped, ctypes.byref(history)) == 14

    assert foreign_handle == api.handle(ours)
    right = work(foreign)
    wait(foreign)
    assert api.query.raw(ours) == 0 and right()
    print("our stream does their work")

    api.wait_stream(ours, wrapped, None, 0)
    api.wait_handle(wrapped, ctypes.c_void_p(foreign_handle))
    api.synchronize(ours)
    api.synchronize(wrapped)
    print("each waits for the other")
    for stream in (wrapped, again):
        api.release(stream)
    del foreign
    api.release(ours)
    print("done", flush=True)


if __name__ == "__main__":
    main()
