"""pytest's part of dev/mutants: notes which code each test reaches, and runs chosen tests again and again in a process that has collected them once."""
import base64
import ctypes
import json
import os
import pathlib
import shutil
import signal
import sys
import time
import zlib

import pytest

LIBC = ctypes.CDLL(None)
KEEP_SIZE_AND_PUNCH_HOLE = 3


class Reach:
    """A line for each test in FOLDER/PROCESS.jsonl: how long it took, whether it passed, and by build id a bit for each address that ran (coverage.c).

    One folder for all tests of the process, emptied before each: what a fixture has started for several tests is seen in each of them.
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


class Server:
    """Reads lists of tests from one descriptor, runs each list in a fork of its own until the first failure, and answers on the other."""

    def __init__(self, read, write):
        self.requests, self.answers = os.fdopen(read), os.fdopen(write, "w")
        self.failed = None

    def pytest_runtest_logreport(self, report):
        if report.failed and not self.failed:
            self.failed = {"failed": report.nodeid, "how": str(report.longrepr).strip().splitlines()[-1][:200] if report.longrepr else ""}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        items = {item.nodeid: item for item in session.items}
        self.answer({"collected": len(items)})
        for line in self.requests:
            chosen = [items[test] for test in json.loads(line) if test in items]
            child = os.fork()
            if child == 0:
                self.run(session, chosen)
            self.answer({"child": child})
            os.waitpid(child, 0)
            try:
                os.killpg(child, signal.SIGKILL)  # what its tests have left behind
            except ProcessLookupError:
                pass
            self.answer({"done": len(chosen)})
        return True

    def run(self, session, chosen):
        os.setsid()
        for item, following in zip(chosen, [*chosen[1:], None]):
            self.answer({"at": item.nodeid})
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.failed:
                self.answer(self.failed)
                break
        try:
            session._setupstate.teardown_exact(None)
        finally:
            sys.stdout.flush()
            os._exit(0)

    def answer(self, what):
        self.answers.write(json.dumps(what) + "\n")
        self.answers.flush()


def pytest_configure(config):
    if "MUTANTS_REACH_OUT" in os.environ and not hasattr(config, "workerinput") and config.getoption("numprocesses", None):
        return  # the process that only hands out tests
    if "MUTANTS_REACH_OUT" in os.environ:
        config.pluginmanager.register(Reach(os.environ["MUTANTS_REACH_OUT"]))
    if "MUTANTS_SERVE" in os.environ:
        config.pluginmanager.register(Server(*map(int, os.environ["MUTANTS_SERVE"].split(","))))
