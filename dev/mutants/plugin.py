"""pytest's part of dev/mutants: notes which code each test reaches."""
import base64
import ctypes
import json
import os
import pathlib
import shutil
import time
import zlib

import pytest

LIBC = ctypes.CDLL(None)
KEEP_SIZE_AND_PUNCH_HOLE = 3


class Reach:
    """Writes a line for each test into FOLDER/PROCESS.jsonl: how long it took, whether it passed, and by build id which addresses ran (coverage.c).

    The maps of all tests of this process lie in one folder and are cleared before each test. So a program that a fixture keeps running for several tests counts
    for each of them.
    """

    def __init__(self, folder):
        self.out = open(pathlib.Path(folder) / f"{os.getpid()}.jsonl", "a", encoding="utf-8")
        self.maps = pathlib.Path(f"/dev/shm/reach-{os.getpid()}")
        self.maps.mkdir()
        self.maps.chmod(0o777)
        self.passed = True

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item):
        self.harvest()
        self.passed, begin = True, time.monotonic()
        result = yield
        seconds = time.monotonic() - begin
        self.out.write(json.dumps({"test": item.nodeid, "seconds": round(seconds, 3), "passed": self.passed, "hits": self.harvest()}) + "\n")
        self.out.flush()
        return result

    def pytest_runtest_logreport(self, report):
        self.passed &= not report.failed

    def harvest(self):
        hits = {}
        for file in self.maps.iterdir():
            if not file.stat().st_blocks:
                continue
            bits = file.read_bytes().rstrip(b"\0")
            if bits:
                hits[file.name] = base64.b64encode(zlib.compress(bits, 1)).decode()
            fd = os.open(file, os.O_RDWR)
            LIBC.fallocate(fd, KEEP_SIZE_AND_PUNCH_HOLE, ctypes.c_long(0), ctypes.c_long(file.stat().st_size))
            os.close(fd)
        return hits

    def pytest_unconfigure(self):
        shutil.rmtree(self.maps, ignore_errors=True)


def pytest_configure(config):
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):  # not in the process that only gives tests to workers
        config.pluginmanager.register(Reach(os.environ["MUTANTS_REACH_OUT"]))
