"""What comes with the package, and the functions of custream.h that the preload library has in this process."""
import contextlib
import ctypes
import os
import pathlib
import socket
import subprocess
import types

FOLDER = pathlib.Path(__file__).resolve().parent / "native"
COMMAND = FOLDER / "custream"
LIBRARY = FOLDER / "libcustream_shim.so"
SUCCESS = 0


class Given(dict):
    """Options as the command has read them, by their names; None for one that was not given."""
    __getattr__ = dict.get


class Stats(ctypes.Structure):
    """custream_stats_t"""
    _fields_ = [("size", ctypes.c_size_t)] + [(name, ctypes.c_uint64) for name in (
        "streams", "events", "graphs", "streams_made", "events_made", "graphs_made", "streams_wrapped", "pooled")]


class Where(ctypes.Structure):
    """Dl_info"""
    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("symbol", ctypes.c_char_p), ("address", ctypes.c_void_p)]


def bind():
    """The functions by their names here; empty without the preload library. libcustream.so alone, which a program may link, records nothing.

    Annotations take less time than giving the interpreter's lock away and taking it back would. What waits for the file gives it away.
    """
    process, quick, where = ctypes.CDLL(None), ctypes.PyDLL(None), Where()
    if not hasattr(process, "custream_trace_range_push") or not hasattr(process, "dladdr"):
        return {}
    process.dladdr(process.custream_trace_range_push, ctypes.byref(where))
    if not os.path.basename(where.file or b"").startswith(b"libcustream_shim"):
        return {}
    found = {name: getattr(quick, f"custream_trace_{name}") for name in ("range_push", "range_pop", "mark")}
    found |= {name: getattr(process, f"custream_trace_{name}") for name in ("start", "stop", "flush")}
    found["stats"] = process.custream_stats
    for name in ("range_push", "mark"):
        found[name].argtypes = [ctypes.c_char_p]
    found["stats"].argtypes = [ctypes.c_int, ctypes.POINTER(Stats)]
    return found


FUNCTIONS = bind()


def is_preloaded():
    """Whether this process runs under custream."""
    return bool(FUNCTIONS)


def version():
    from importlib import metadata

    try:
        return metadata.version("custream")
    except metadata.PackageNotFoundError:
        return "unknown"


def text(name):
    """As bytes: what cannot be in a C string is replaced."""
    if not isinstance(name, str):
        raise TypeError(f"custream: a range or a mark is named by a str, not {type(name).__name__}")
    return name.encode("utf-8", "replace").replace(b"\0", b"?")


def annotate(function, *words):
    if FUNCTIONS:
        FUNCTIONS[function](*[word if isinstance(word, bytes) else text(word) for word in words])
    elif words and not isinstance(words[0], bytes):
        text(words[0])


def control(function):
    return bool(FUNCTIONS) and FUNCTIONS[function]() == SUCCESS


def stats(device):
    counts = Stats(size=ctypes.sizeof(Stats))
    if FUNCTIONS:
        FUNCTIONS["stats"](device, ctypes.byref(counts))
    return {name: getattr(counts, name) for name, _ in Stats._fields_[1:]}


def run(*words):
    """The command, without the preload library, to its end."""
    env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    return subprocess.run([COMMAND, *words], env=env, capture_output=True, text=True, check=False)


ASK, GOOD, FIELDS = "about", "ok", ("recording", "why_not", "trace")  # words of shim/base/control.def, as dev/check-layers sees to


def about():
    """The FIELDS of the library's own answer, by its socket (shim/base/control.h). None where nobody answers, as before the first CUDA call."""
    if not FUNCTIONS:
        return None
    with contextlib.suppress(OSError, ValueError), socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
        peer.settimeout(20)
        peer.connect(f"\0custream/{os.readlink('/proc/self/ns/pid')}/{os.getpid()}")
        peer.send(ASK.encode())
        said, *fields = peer.recv(8192).decode("utf-8", "surrogateescape").rstrip("\n").split("\t")
        told = dict(field.split("=", 1) for field in fields)
        return types.SimpleNamespace(**{name: told[name] for name in FIELDS}) if said == GOOD else None
    return None


def trace_path():
    said = about()
    return (said and said.trace) or None
