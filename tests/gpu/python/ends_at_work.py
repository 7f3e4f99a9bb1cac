"""Threads launch kernels while the process ends.

    ends_at_work.py LIBRARY return|_exit      build/gpu/liblauncher.so
"""
import ctypes
import os
import sys
import threading
import time


def main():
    library = ctypes.CDLL(sys.argv[1])
    library.launches.restype = ctypes.c_double

    def launch():
        while library.launches(500) > 0:
            pass

    for _ in range(3):
        threading.Thread(target=launch, daemon=True).start()
    time.sleep(1)
    print("done", flush=True)
    if sys.argv[2] == "_exit":
        os._exit(0)


if __name__ == "__main__":
    main()
