"""How processes begin, live and end: what each way leaves in the trace. The program does what it does alone, and `custream check` finds nothing.

test_process.py has return, exit, _exit, quick_exit, abort, kill, fork, vfork, spawn and exec; test_descriptors.py chroot, and main that leaves by pthread_exit;
test_hostile.py constructors and the unloading of a driver; test_watch.py signals under `custream run`.
"""
import re
import subprocess
import sys

import pytest

from tests.apprun import calls_in, read, said
from tests.cases.conftest import app_environment

WHOLE, UP_TO = "whole", "up to the last flush"
# The way: launches in the trace, and whether it is whole.
WAYS = {
    "plain": (100, WHOLE), "noted": (110, WHOLE), "term": (100, UP_TO), "int": (100, UP_TO), "int-left": (100, WHOLE), "segv-left": (100, WHOLE),
    "abort-left": (100, WHOLE), "segv-back": (110, WHOLE), "threads": (2100, WHOLE), "clone": (110, WHOLE), "setuid": (110, WHOLE), "reset": (100, WHOLE),
    "daemon": (100, WHOLE), "namespace": (100, WHOLE),
}


def launches(path):
    return calls_in(read(path))["cuLaunchKernel"]


@pytest.mark.parametrize("env", [{}, {"CUSTREAM_TRACE": "trace.json.gz"}, {"CUSTREAM_GPU": "events"}], ids=["default", "gz", "events"])
@pytest.mark.parametrize("how", WAYS)
def test_a_way(run_app, tmp_path, how, env):
    most, whole = WAYS[how]
    alone = run_app(["starts", how], shim=False)
    path = tmp_path / env.get("CUSTREAM_TRACE", "trace.json")
    run = run_app(["starts", how], env=env | {"CUSTREAM_TRACE": path})
    assert (run.rc, run.stdout) == (alone.rc, alone.stdout) and not said(run), run.stderr
    trace = read(path)
    assert trace.totals["complete"] is (whole == WHOLE)
    made = calls_in(trace)["cuLaunchKernel"]
    assert made == most if whole == WHOLE else made <= most
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


# ---- Rooms ----

def room(script, *, proc=False):
    """The program in namespaces of its own, behind a line of the shell as their root."""
    return ["/usr/bin/unshare", "-rm", *(["-pf", "--mount-proc"] if proc else []), "/bin/sh", "-c", f'{script}\nexec "$@"', "sh"]


def test_a_vfork_child_is_the_first_of_another_namespace(run_app, build, tmp_path):
    """It has its parent's pid and its parent's memory, and yet its end is not the parent's."""
    enter = room(":", proc=True)
    alone = run_app([*enter, build / "tests/starts", "first"], shim=False)
    run = run_app([*enter, "/usr/bin/env", f"LD_PRELOAD={build / 'libcustream_shim.so'}", build / "tests/starts", "first"], env={"LD_PRELOAD": None})
    assert (run.rc, run.stdout) == (alone.rc, alone.stdout) == (5, "child of 1: 3\nthe end\n") and not said(run)
    assert launches(run.trace) == 110 and read(run.trace).totals["complete"] is True


# By name: the room, and whether a trace can be written there.
ROOMS = {
    "no /dev/shm": (room("mount -t tmpfs -o ro,size=4k none /dev/shm"), True),
    "no /proc": (room("mount -t tmpfs none /proc"), True),
    "a namespace of processes": (room(":", proc=True), True),
    "a folder that is read-only": (room('mount --bind "$FOLDER" "$FOLDER" && mount -o remount,bind,ro "$FOLDER"'), False),
    "no space": (room('mount -t tmpfs -o size=4k none "$FOLDER" && dd if=/dev/zero of="$FOLDER/full" bs=4k count=1 2>/dev/null'), False),
}


@pytest.mark.parametrize("name", ROOMS)
def test_a_room(run_app, build, tmp_path, name):
    enter, written = ROOMS[name]
    folder = tmp_path / "folder"
    folder.mkdir()
    env = {"FOLDER": folder, "LD_PRELOAD": None}
    program = ["/usr/bin/env", f"LD_PRELOAD={build / 'libcustream_shim.so'}", build / "tests/starts", "plain"]
    alone = run_app([*enter, build / "tests/starts", "plain"], shim=False, env=env)
    run = run_app([*enter, *program], env=env, trace=folder / "trace.json")
    assert (run.rc, run.stdout) == (alone.rc, alone.stdout) == (5, "the end\n"), run.stderr
    if written:
        assert launches(run.trace) == 100 and not said(run)
    else:
        assert re.search("cannot write (on to )?the trace", run.stderr) and not run.trace.exists()


# ---- Python's workers ----

WORKERS = """
import ctypes, multiprocessing, os, sys
def work(number):
    cuda = ctypes.CDLL("libcuda.so.1")
    context, stream = ctypes.c_void_p(), ctypes.c_void_p()
    done = [cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)]
    done += [cuda.cuStreamCreate(ctypes.byref(stream), 0) for _ in range(5)]
    sys.stdout.write(f"{number}: {done}\\n"); sys.stdout.flush()
    os._exit(3)
if __name__ == "__main__":
    ways = multiprocessing.get_context(sys.argv[1])
    for number in range(3):
        worker = ways.Process(target=work, args=(number,)); worker.start(); worker.join(); print(worker.exitcode)
"""


@pytest.mark.parametrize("way", ["fork", "spawn", "forkserver"])
def test_workers_that_leave_at_once(build, tmp_path, way):
    """Each has a trace of its own, with all its calls. Whoever has made them used no CUDA, and has none."""
    script = tmp_path / "workers.py"
    script.write_text(WORKERS)
    found = []
    for shim in (False, True):
        env = app_environment(build, tmp_path / "t-%p.json", shim, {})
        found.append(subprocess.run([sys.executable, script, way], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True))
    assert found[0].stdout == found[1].stdout and found[0].stdout.count("3\n") == 3 and found[0].stderr == found[1].stderr == ""
    traces = [read(path) for path in tmp_path.glob("t-*.json")]
    assert [(calls_in(trace)["cuStreamCreate"], trace.totals["complete"]) for trace in traces] == [(5, True)] * 3
