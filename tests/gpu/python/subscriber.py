"""A library with a CUDA runtime of its own launches before, while and after somebody else has CUPTI's callbacks.

    subscriber.py LIBRARY      build/gpu/liblauncher.so
"""
import ctypes
import sys

COUNT, RUNTIME_API = 500, 2  # launches at a time; CUpti_CallbackDomain
FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p)


def main():
    library = ctypes.CDLL(sys.argv[1])
    library.launches.restype = ctypes.c_double
    told = []

    def launch():
        assert library.launches(COUNT) > 0

    launch()
    cupti = ctypes.CDLL("libcupti.so.13")  # which the process has by now
    function, subscriber = FUNCTION(lambda *_: told.append(1)), ctypes.c_void_p()
    assert cupti.cuptiSubscribe(ctypes.byref(subscriber), function, None) == 0
    assert cupti.cuptiEnableDomain(1, subscriber, RUNTIME_API) == 0
    launch()
    assert cupti.cuptiUnsubscribe(subscriber) == 0 and len(told) >= 2 * COUNT
    assert ctypes.CDLL(None).custream_trace_flush() == 0
    launch()
    print("done")


if __name__ == "__main__":
    main()
