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

    begun = threading.Semaphore(0)

    def launch():
        while library.launches(500) > 0:
            begun.release()

    for _ in range(3):
        threading.Thread(target=launch, daemon=True).start()
    for _ in range(3):  # the first launches wait for a context, which takes a while on a busy machine
        begun.acquire()
    time.sleep(0.5)
    print("done", flush=True)
    if sys.argv[2] == "_exit":
        os._exit(0)


if __name__ == "__main__":
    main()
