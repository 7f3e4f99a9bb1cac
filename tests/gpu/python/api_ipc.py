"""An interprocess event of custream.h between two processes.

    api_ipc.py LIBRARY             makes one, records it, and has a second process wait for it
    api_ipc.py LIBRARY HANDLE      the second: imports it
"""
import ctypes
import subprocess
import sys


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t)] + [(name, ctypes.c_int) for name in ("device", "timing", "blocking_sync", "interprocess", "external", "lazy", "single_export")]


def main():
    api = ctypes.CDLL(sys.argv[1])

    def must(name, *arguments):
        status = getattr(api, "custream_" + name)(*arguments)
        assert status == 0, f"custream_{name} gave {status}"

    stream, event, handle = ctypes.c_void_p(), ctypes.c_void_p(), (ctypes.c_ubyte * 64)()
    must("create", ctypes.byref(stream), None)
    if len(sys.argv) == 3:
        handle[:] = bytes.fromhex(sys.argv[2])
        must("event_ipc_import", ctypes.byref(event), handle)
        must("wait_event", stream, event, 0)
        must("synchronize", stream)
        must("event_synchronize", event)
        assert api.custream_event_query(event) == 0
        assert api.custream_event_ipc_export(event, handle) == 12, "one that came from another process is not exported"
        must("event_release", event)
        print("imported", flush=True)
        return
    options = Options()
    must("event_options_init_sized", ctypes.byref(options), ctypes.c_size_t(ctypes.sizeof(options)))
    options.interprocess = 1
    must("event_create", ctypes.byref(event), ctypes.byref(options))
    must("record", stream, event, 0)
    must("event_ipc_export", event, handle)
    done = subprocess.run([sys.executable, __file__, sys.argv[1], bytes(handle).hex()], stdout=subprocess.PIPE, text=True, timeout=60, check=True)
    assert done.stdout == "imported\n", done.stdout
    must("event_release", event)
    print("done", flush=True)


if __name__ == "__main__":
    main()
