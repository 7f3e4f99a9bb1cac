"""custream in Python: ranges in the timeline, and recording switched on and off.

    import custream

    with custream.range("forward"):
        model(batch)

    @custream.range("step")
    def step(): ...

Without the preload library nothing happens and nothing fails: `custream run -- python app.py` makes the difference.
"""
from custream import _native
from custream._native import is_preloaded
from custream._ranges import range  # noqa: A004 - the name that users know it by

__all__ = ["flush", "is_preloaded", "mark", "range", "start", "stats", "stop", "trace_path"]
__version__ = _native.version()


def mark(text):
    """An instant in the timeline, on the calling thread's lane."""
    _native.annotate("mark", text)


def start():
    """Records from now on, as `custream ctl PID on`. False where that cannot be: no preload library, or CUSTREAM_TRACE=off."""
    return _native.control("start")


def stop():
    """Records no more; what was recorded is written. False as start()."""
    return _native.control("stop")


def flush():
    """Writes what was recorded so far, GPU work that has ended too. False as start()."""
    return _native.control("flush")


def trace_path():
    """The path of this process's trace, or None while there is none. Asks the process as `custream ctl` does (CUSTREAM_CTL)."""
    return _native.trace_path()


def stats(device=-1):
    """How many objects of custream.h live and were made: a dict of numbers, all 0 without the preload library. -1 is all devices."""
    return _native.stats(device)


def load_ipython_extension(shell):
    """%load_ext custream"""
    from custream import jupyter

    jupyter.load(shell)
