"""libboth_ways.so (tests/gpu/both_ways.c) for scripts: driver calls as programs make them, and as nobody can intercept them."""
import ctypes
import os

_here = os.path.dirname(os.path.abspath(__file__))
_build = os.environ.get("BUILD_DIR", os.path.join(_here, "..", "..", "..", "build"))
QUERY, LAUNCH = 0, 1


class BothWays:
    """A context must be current."""

    def __init__(self):
        self._library = ctypes.CDLL(os.path.join(os.path.abspath(_build), "gpu", "libboth_ways.so"))
        self._library.both_ways_ns.restype = ctypes.c_double
        code = self._library.both_ways_open()
        assert code == 0, f"both_ways_open gave {code}"

    def own_priority(self, handle):
        value = ctypes.c_int()
        code = self._library.both_ways_own_priority(ctypes.c_void_p(handle), ctypes.byref(value))
        return value.value if code == 0 else f"error {code}"

    def own_range(self):
        least, greatest = ctypes.c_int(), ctypes.c_int()
        code = self._library.both_ways_own_range(ctypes.byref(least), ctypes.byref(greatest))
        assert code == 0, f"cuCtxGetStreamPriorityRange gave {code}"
        return [least.value, greatest.value]

    def mark(self, handle, grid):
        """An empty kernel, told from all others by its grid."""
        code = self._library.both_ways_mark(ctypes.c_void_p(handle), ctypes.c_uint(grid))
        assert code == 0, f"the launch gave {code}"

    def ns(self, own, what, handle, count):
        ns = self._library.both_ways_ns(int(own), what, ctypes.c_void_p(handle), count)
        assert ns > 0, "a call was refused"
        return ns
