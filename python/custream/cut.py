"""One stretch of a trace as a trace of its own: what ran between the begin and the end of a range.

A process has one trace. pytest and Jupyter want one for each test or cell. Each of these is a range in the process's trace, whose name tells it apart.
"""
import os
import zlib

from custream import _native

OPENERS = {"CUSTREAM_WINDOW", "CUSTREAM_TRIGGER", "CUSTREAM_POLICY"}  # by these nothing may be recorded though CUDA is called
NO_CALL = 1  # custream merge --range ends so


class CannotCut(Exception):
    """Why nobody knows what ran between the begin and the end of a range. That is not the same as no CUDA work."""


def range_name(text):
    """The same text as a range is called by in a trace, whatever is in it and however long it is."""
    shown = _native.text(text).decode()
    return shown if len(shown) <= 400 else f"{shown[:400]}-{zlib.crc32(shown.encode()):08x}"


def mark():
    """What `stretch` wants to know of the time at which the range begins: the process's trace, and its bytes so far."""
    whole = _native.trace_path()
    try:
        return whole, os.path.getsize(whole) if whole else 0
    except OSError:
        return whole, 0


def stretch(name, path, since=(None, 0)):
    """Writes the stretch of the newest range called `name`, which has ended, to `path`. False: no CUDA call was made in it.

    `since`: of mark(), before the range began. What the trace had by then takes no time.
    """
    recorded = _native.control("flush")
    said = _native.about()
    if said and said.recording == "0":
        raise CannotCut(f"recording is off ({said.why_not})")
    whole = said and said.trace
    if not whole:
        if os.environ.get("CUSTREAM_TRACE") == "off":
            raise CannotCut("nothing is recorded (CUSTREAM_TRACE=off)")
        if recorded or (os.environ.get("CUSTREAM_CTL") == "off" and not OPENERS.isdisjoint(os.environ)):
            raise CannotCut("the process cannot be asked for its trace (CUSTREAM_CTL=off)")
        return False
    return write(whole, name, path, since[1] if since[0] == whole else 0)


def write(whole, name, path, begin=0):
    """The same of a trace, which had `begin` bytes when the range began."""
    done = _native.run("merge", f"--range={name}", f"--from-byte={begin}", "-o", path, "--", whole)
    if done.returncode not in (0, NO_CALL):
        raise CannotCut(done.stderr.strip().removeprefix("custream merge: "))
    return done.returncode == 0
