"""The file of rings (docs/recover.md): a kill at any moment loses no call that had returned.

The program (tests/apps/counts.c) counts in shared memory the calls that have returned. KILLS is how often each form is killed: `make kills`.
"""
import contextlib
import fcntl
import gzip
import json
import os
import pathlib
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import time

import pytest

from tests.cases.conftest import app_environment
from tests.cases.test_recover import recovered, run_all
from tests.cases.test_starts import room
from tests.remote import ctl, until
from tests.handmade import COMMAND
from tests.remote import read_of
from tests.trace import Trace

KILLS = int(os.environ.get("KILLS", "2"))
FORMS = {"json": ("t.json", {}), "json.gz": ("t.json.gz", {}), "pftrace": ("t.pftrace", {}), "pftrace.gz": ("t.pftrace.gz", {}),
         "rotate": ("t.json", {"CUSTREAM_TRACE_MAX": "1M,rotate:9999"}), "gpu": ("t.json", {"CUSTREAM_GPU": "auto"})}
HOST = {"CUSTREAM_GPU": "off", "CUSTREAM_BUFFER": "256K"}  # more calls in less time
ALL = "; all calls up to then are there"


@pytest.fixture
def folder(tmp_path):
    """Where rings are: a folder of the test's own, in /dev/shm as by default."""
    path = pathlib.Path("/dev/shm") / f"test-{os.getpid()}-{tmp_path.name}"
    path.mkdir()
    yield path
    shutil.rmtree(path)


def environment(build, tmp_path, name, folder, **more):
    env = app_environment(build, tmp_path / name, True, {"CUSTREAM_FULL": "block", "CUSTREAM_KEEP": folder, **HOST, **more})
    return {key: value for key, value in env.items() if value != "None"}


def numbers(path):
    """How many threads have begun, and how many calls have returned."""
    data = path.read_bytes() if path.exists() else b""
    begun, *returned = struct.unpack(f"{len(data) // 8}q", data) if data else (0, 0)
    return begun, sum(returned)


def begin(build, tmp_path, name, folder, *words, threads=4, run=(), **env):
    return subprocess.Popen([*run, build / "tests/counts", tmp_path / "counts", str(threads), *words], cwd=tmp_path, stdin=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True, env=environment(build, tmp_path, name, folder, **env))


def has_begun(tmp_path, threads=4, name="counts"):
    until(lambda: numbers(tmp_path / name)[0] >= threads)


def kill(process):
    process.kill()
    return process.communicate(timeout=60)[1]


def text_of(path):
    """The trace as JSON, from any form."""
    if "pftrace" in path.name:
        plain = path.with_name(path.name + ".json")
        assert run_all("convert", path, plain)[::2] == (0, [])
        path = plain
    data = path.read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def rows_of(path):
    return json.loads(text_of(path))


def calls_of(paths):
    """The counted calls that are in the traces, and those that they say are lost. Not read as JSON, which would take long."""
    texts = [text_of(path) for path in paths]
    found = sum(text.count(b'"name":"' + name) for text in texts for name in (b"cuEventRecord", b"cuLaunchKernel"))
    return found, sum(int(re.findall(rb'"lost_records":(\d+)', text)[-1]) for text in texts)


def recover(path):
    """What can be had of the file and its rings."""
    status, said, complaints = run_all("recover", path)
    assert (status, complaints) == (0, []), complaints
    stem, ending = re.fullmatch(r"(.*?)(\.json|\.pftrace)(\.gz)?", path.name).group(1), path.name[path.name.index("."):]
    whole = path.with_name(f"{stem}.recovered{ending}")
    return whole if whole.exists() else path


def judge(tmp_path, name, whole, threads, full="block"):
    """All calls that had returned are there, and none twice: each thread may have had one more, whose return it had not counted yet."""
    assert run_all("check", whole)[::2] == (0, []), run_all("check", whole)
    parts = [path for path in tmp_path.glob("t.*.json*") if re.fullmatch(r"t\.\d+\.json(\.gz)?", path.name)]
    found, lost = calls_of([whole, *parts])
    returned = numbers(tmp_path / "counts")[1]
    assert returned <= found + lost <= returned + threads + (lost if full == "drop" else 0), (found, lost, returned)
    assert full == "drop" or not lost


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("form", FORMS)
def test_kills_at_full_speed(build, tmp_path, folder, form):
    name, env = FORMS[form]
    dice = random.Random(form)
    for _number in range(KILLS):
        threads, way = dice.choice([1, 4]), dice.choice([["paced"], ["short"], [], []])
        process = begin(build, tmp_path, name, folder, *way, threads=threads, **env)
        has_begun(tmp_path, threads)
        time.sleep(dice.uniform(0, 0.05))
        kill(process)
        whole = recover(tmp_path / name)
        judge(tmp_path, name, whole, threads)
        assert not list(folder.iterdir()), "what has served is removed"
        for path in tmp_path.iterdir():
            if path.is_file():
                path.unlink()


@pytest.mark.timeout(3600)
def test_kills_of_a_ring_that_is_full(build, tmp_path, folder):
    """What a full ring lost is told."""
    dice = random.Random("drop")
    for _number in range(KILLS):
        process = begin(build, tmp_path, "t.json", folder, CUSTREAM_FULL="drop", CUSTREAM_BUFFER="64K")
        has_begun(tmp_path)
        time.sleep(dice.uniform(0, 0.05))
        kill(process)
        whole = recover(tmp_path / "t.json")
        judge(tmp_path, "t.json", whole, 4, "drop")
        assert rows_of(whole)["totals"]["lost_records"]
        (tmp_path / "counts").unlink()


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("form", FORMS)
def test_kills_under_run(build, tmp_path, folder, form):
    """The watcher does it, and says so."""
    name, env = FORMS[form]
    dice = random.Random(form)
    for _number in range(max(1, KILLS // 2)):
        process = begin(build, tmp_path, name, folder, run=[COMMAND, "run", "--"], LD_PRELOAD="None", **env)
        has_begun(tmp_path)
        time.sleep(dice.uniform(0, 0.05))
        err = kill(process)
        assert "ended by SIGKILL" + ALL in err, err
        judge(tmp_path, name, tmp_path / name, 4)
        assert not list(folder.iterdir())
        for path in tmp_path.iterdir():
            if path.is_file():
                path.unlink()


BETWEEN = [("renameat2", 1), ("renameat2", 3), ("linkat", 2), ("openat", 40), ("pwritev", 30), ("write", 2), ("write", 3), ("close", 12)]


@pytest.mark.parametrize("name, call, n", [("t.json", *at) for at in BETWEEN] + [("t.json.gz", *at) for at in BETWEEN[:2]])
def test_killed_between_two_system_calls(build, tmp_path, folder, name, call, n):
    """Parts change: at each moment the watcher finds the file that the process wrote last."""
    faults = {"LD_PRELOAD": build / "tests/libfaults.so", "FAULTS": f"{call}:-1:{n}"}
    process = begin(build, tmp_path, name, folder, run=[COMMAND, "run", "--"], CUSTREAM_TRACE_MAX="1M,rotate:9999", **faults)
    _, err = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL and "ended by SIGKILL" + ALL in err, err
    judge(tmp_path, name, tmp_path / name, 4)
    assert not list(folder.iterdir())


def test_who_reads_while_it_is_mended(build, tmp_path, folder):
    """Has the file as the process left it, to the end: the whole one is another."""
    for _ in range(20):
        process = begin(build, tmp_path, "t.json", folder, run=[COMMAND, "run", "--"], LD_PRELOAD="None")
        has_begun(tmp_path)
        until(lambda: (tmp_path / "t.json").exists() and (tmp_path / "t.json").stat().st_size)
        with open(tmp_path / "t.json", "rb") as reader:
            assert "ended by SIGKILL" + ALL in kill(process)
            torn = reader.read()
        judge(tmp_path, "t.json", tmp_path / "t.json", 4)
        (tmp_path / "counts").unlink()
        recovered_ = rows_of(tmp_path / "t.json")["totals"]["recovered"]
        if recovered_["rows"] or recovered_["cut_bytes"]:
            break
    assert b"ended_by" not in torn
    assert b"ended_by" in (tmp_path / "t.json").read_bytes() and not list(tmp_path.glob("*.part"))


# ---- where the rings are ----

def metadata(path):
    return rows_of(path)["metadata"]["rings"]


# By name: what /dev/shm is, and what the trace says of it.
ROOMS = {
    "as it is": (":", r"/dev/shm/custream-rings-.*"),
    "read-only": ("mount -t tmpfs -o ro,size=4k none /dev/shm", r"not kept: /dev/shm has no room"),
    "tiny": ("mount -t tmpfs -o size=8m none /dev/shm", r"not kept: /dev/shm has no room"),
    "small": ("mount -t tmpfs -o size=64m none /dev/shm", r"/dev/shm/custream-rings-.*"),
    "full": ("mount -t tmpfs -o size=64m none /dev/shm && head -c 64m /dev/zero > /dev/shm/full 2>/dev/null", r"not kept: /dev/shm has no room"),
    "absent": ('mkdir "$FOLDER/dev" && mount --rbind /dev "$FOLDER/dev" && mount -t tmpfs none /dev && ln -s "$FOLDER"/dev/* /dev/ && rm /dev/shm', r"not kept: /dev/shm has no room"),
    "no tmpfs": ('mount --bind "$FOLDER" /dev/shm', r"not kept: /dev/shm has no room"),
}


@pytest.mark.parametrize("name", ROOMS)
def test_a_room(run_app, build, tmp_path, name):
    script, where = ROOMS[name]
    alone = run_app(["demo"], shim=False).check()
    env = {"FOLDER": tmp_path, "LD_PRELOAD": None}
    run = run_app([*room(script), "/usr/bin/env", f"LD_PRELOAD={build / 'libcustream_shim.so'}", build / "tests/demo"], env=env).check()
    assert run.stdout == alone.stdout and not run.stderr
    assert Trace(run.trace).verdict == "ok" and re.fullmatch(where, metadata(run.trace)), metadata(run.trace)


@pytest.mark.parametrize("way, env", [("paced", {"CUSTREAM_BUFFER": "4M"}), ("short", {"CUSTREAM_BUFFER": "64K"})], ids=["one ring", "many rings"])
def test_a_small_room_gets_full(build, tmp_path, way, env):
    """Others fill it while rings grow: no SIGBUS, and what finds no memory goes on elsewhere. The recovered trace says of how many threads that is so."""
    script = 'mount -t tmpfs -o size=64m none /dev/shm; "$@" & app=$!; until [ -e "$CUSTREAM_TRACE" ]; do kill -0 $app || exit 1; sleep 0.01; done; ' \
             'head -c 70m /dev/zero > /dev/shm/full 2>/dev/null; until [ -e "$FOLDER/all" ]; do kill -0 $app || exit 1; sleep 0.01; done; sleep 0.1; kill -9 $app || exit 1; ' \
             f'wait; {COMMAND} recover "$CUSTREAM_TRACE"; exit 0; :'
    run = ["/usr/bin/unshare", "-rm", "/bin/sh", "-c", script, "sh", "/usr/bin/env", f"LD_PRELOAD={build / 'libcustream_shim.so'}"]
    process = begin(build, tmp_path, "t.json", "auto", way, run=run, threads=4, LD_PRELOAD="None", FOLDER=tmp_path, **env)
    has_begun(tmp_path, 4)
    (tmp_path / "all").touch()
    _, err = process.communicate(timeout=60)
    whole = recovered(tmp_path / "t.json")
    assert process.returncode == 0 and run_all("check", whole)[::2] == (0, []), err
    unkept = rows_of(whole)["totals"]["recovered"].get("threads_not_kept", 0)
    assert unkept >= 3 or way == "short", "the tenth of 64 MB has room for one ring"
    if not unkept:
        judge(tmp_path, "t.json", whole, 4)


@pytest.mark.parametrize("value", ["off", "/nowhere/at all"])
def test_not_kept(run_app, value):
    run = run_app(["demo"], env={"CUSTREAM_KEEP": value}).check()
    assert Trace(run.trace).verdict == "ok" and metadata(run.trace).startswith("not kept: ") and not run.stderr


def test_a_memfd_of_the_run(build, tmp_path):
    """Without a /dev/shm the watcher holds the rings. Its parent asks for the program's end last: only until then an older kernel tells it to others."""
    script = 'mount -t tmpfs -o ro,size=4k none /dev/shm\n"$@" &\nexec sleep 100'
    run = ["/usr/bin/unshare", "-rm", "/bin/sh", "-c", script, "sh", COMMAND, "run", "--"]
    process = begin(build, tmp_path, "t.json", "auto", "paced", run=run, threads=2, LD_PRELOAD="None")
    has_begun(tmp_path, 2)
    words = [str(build / "tests/counts").encode(), str(tmp_path / "counts").encode()]
    (program,) = [int(path.parent.name) for path in pathlib.Path("/proc").glob("[0-9]*/cmdline") if read_of(path).split(b"\0")[:2] == words]
    os.kill(program, signal.SIGKILL)
    until(lambda: b'"ended_by"' in (tmp_path / "t.json").read_bytes())
    process.kill()
    _, err = process.communicate(timeout=60)
    assert "ended by SIGKILL" + ALL in err, err
    assert metadata(tmp_path / "t.json") == "memfd"
    judge(tmp_path, "t.json", tmp_path / "t.json", 2)


def test_a_limit_on_files(build, tmp_path, folder):
    """Rings beyond it would be a signal."""
    process = begin(build, tmp_path, "t.json", folder, "limit", threads=1, CUSTREAM_TRACE_MAX="1M,rotate:99")
    has_begun(tmp_path, 1)
    assert process.poll() is None and not list(folder.iterdir())
    kill(process)


SECCOMP = """
import ctypes, struct, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def deny(*numbers):
    rules = [(0x20, 0, 0, 0)] + [rule for number in numbers for rule in ((0x15, 0, 1, number), (0x06, 0, 0, 0x00050001))] + [(0x06, 0, 0, 0x7fff0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in rules))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(rules), ctypes.addressof(code)))
    assert not libc.prctl(38, 1, 0, 0, 0) and not libc.prctl(22, 2, program)
deny(*map(int, sys.argv[1].split(",")))
os.environ["LD_PRELOAD"] = os.environ.pop("SHIM")
os.execv(sys.argv[2], sys.argv[2:])
"""


@pytest.mark.parametrize("call, number", [("madvise", 28), ("memfd_create", 319), ("ftruncate", 77), ("statfs", 138), ("flock", 73), ("mremap", 25)])
def test_a_filter_of_system_calls(build, tmp_path, run_app, call, number):
    """What may not be done is not done, and nobody is harmed."""
    alone = run_app(["demo"], shim=False).check()
    env = {"LD_PRELOAD": None, "SHIM": build / "libcustream_shim.so"}
    run = run_app(["/usr/bin/python3", "-c", SECCOMP, number, build / "tests/demo"], env=env).check()
    assert run.stdout == alone.stdout
    if run.trace.exists() and run.trace.stat().st_size:
        assert run_all("check", run.trace)[::2] == (0, [])
        assert call in ("memfd_create", "flock") or metadata(run.trace).startswith("not kept"), metadata(run.trace)


# ---- processes ----

def only_ring(folder):
    (found,) = folder.iterdir()
    return found


def test_the_file_is_the_users_alone_and_goes_with_the_process(build, tmp_path, folder, run_app):
    process = begin(build, tmp_path, "t.json", folder, "paced")
    has_begun(tmp_path)
    about = only_ring(folder).stat()
    assert about.st_mode & 0o7777 == 0o600 and about.st_blocks * 512 < 20 << 20, "only what is used takes memory"
    assert run_all("recover", tmp_path / "t.json")[0] == 2  # it lives
    kill(process)
    assert run_app(["demo"], env={"CUSTREAM_KEEP": folder}).check().trace.exists()
    assert len(list(folder.iterdir())) == 1, "the dead process's is kept while its trace stands, and the other has gone"
    recover(tmp_path / "t.json")
    assert not list(folder.iterdir())


@pytest.mark.parametrize("env", [{"CUSTREAM_WINDOW": "ctl"}, {"CUSTREAM_TRACE": "/nowhere/t.json"}, {"CUSTREAM_TRACE": "/nowhere/t.json", "CUSTREAM_PRIORITY": "shift:-1"}],
                         ids=["nobody asked", "no folder", "no folder, a policy"])
def test_the_file_goes_where_there_is_no_trace(run_app, folder, env):
    run = run_app(["demo"], env={"CUSTREAM_KEEP": folder, **env}).check()
    assert not run.trace.exists() and not list(folder.iterdir())


def test_a_process_that_became_another_user(run_app, folder):
    """It may not remove the file, in a folder that is not its own any more. The next process does."""
    run = run_app(["starts", "setuid"], env={"CUSTREAM_KEEP": folder})
    assert run.rc == 5 and Trace(run.trace).verdict == "ok" and len(list(folder.iterdir())) == (not os.geteuid())
    run_app(["demo"], env={"CUSTREAM_KEEP": folder}).check()
    assert not list(folder.iterdir())


def test_what_dead_processes_left(build, tmp_path, folder, run_app):
    """Goes once nobody can want it. What is somebody's stays."""
    for name in ("a.json", "b.json"):
        process = begin(build, tmp_path, name, folder, "paced", threads=1)
        has_begun(tmp_path, 1)
        kill(process)
        (tmp_path / "counts").unlink()
    living = begin(build, tmp_path, "c.json", folder, "paced", threads=1)
    has_begun(tmp_path, 1)
    (folder / "custream-rings-notes").write_text("mine")
    (folder / "custream-rings-link").symlink_to(tmp_path / "a.json")
    (tmp_path / "victim").write_bytes(next(path for path in folder.glob("custream-rings-[0-9]*")).read_bytes()[:200000])
    os.link(tmp_path / "victim", tmp_path / "victim2")
    assert len(list(folder.glob("custream-rings-[0-9]*"))) == 3
    (tmp_path / "a.json").unlink()  # its rings serve nobody
    run_app(["demo"], env={"CUSTREAM_KEEP": folder}).check()
    left = list(folder.glob("custream-rings-[0-9]*"))
    assert len(left) == 2 and (folder / "custream-rings-notes").read_text() == "mine" and (tmp_path / "victim").exists() and (folder / "custream-rings-link").is_symlink()
    for path in left:
        os.utime(path, (time.time() - 100000,) * 2)
    run_app(["demo"], env={"CUSTREAM_KEEP": folder}).check()
    assert len(list(folder.glob("custream-rings-[0-9]*"))) == 1 and living.poll() is None, "a day later; the living one's stays"
    kill(living)


def test_the_rings_of_a_long_run_stay_for_a_day(build, tmp_path, folder, run_app):
    """The time of the file stands still while its process lives. The day begins when another process finds it dead."""
    process = begin(build, tmp_path, "a.json", folder, "paced", threads=1)
    has_begun(tmp_path, 1)
    kill(process)
    for again in (True, False):
        os.utime(only_ring(folder), (time.time() - 100000,) * 2)
        run_app(["demo"], env={"CUSTREAM_KEEP": folder}).check()
        assert len(list(folder.iterdir())) == again


def test_a_trace_that_is_another_by_now(build, tmp_path, folder):
    """Rings belong to one trace, not to whatever has its name."""
    process = begin(build, tmp_path, "t.json", folder, "paced", threads=1)
    has_begun(tmp_path, 1)
    kill(process)
    earlier = only_ring(folder)
    first = earlier.read_bytes()
    (tmp_path / "counts").unlink()
    process = begin(build, tmp_path, "t.json", folder, "paced", threads=1)
    has_begun(tmp_path, 1)
    kill(process)
    second = only_ring(folder)
    assert second != earlier, "the trace of the earlier one was written over"
    second.write_bytes(first)
    status, _, complaints = run_all("recover", tmp_path / "t.json")
    assert status == 0 and (not complaints or "not the file of rings of this trace" in complaints[0])
    assert {*folder.iterdir()} <= {second}


def test_the_lock_stays(build, tmp_path, folder):
    """Nothing that the process does for others takes it away: each descriptor of the file that its writer closes would."""
    other = begin(build, tmp_path, "u.json", folder, "paced", threads=1)
    has_begun(tmp_path, 1)
    kill(other)
    (tmp_path / "u.json").unlink()
    (tmp_path / "counts").unlink()
    process = begin(build, tmp_path, "t.json", folder, "paced", threads=1)
    has_begun(tmp_path, 1)
    with only_ring(folder).open("rb") as file, pytest.raises(BlockingIOError):
        fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    kill(process)
    judge(tmp_path, "t.json", recover(tmp_path / "t.json"), 1)


def test_others_who_have_other_files(build, tmp_path, folder):
    """A container that shares the folder cannot know whether the trace is still wanted: it is not there by that name."""
    process = begin(build, tmp_path, "t.json", folder, "paced", threads=1)
    has_begun(tmp_path, 1)
    kill(process)
    script = f'mount --bind {folder} {folder} && mount -t tmpfs none {tmp_path} && CUSTREAM_TRACE={tmp_path}/t.json LD_PRELOAD={build / "libcustream_shim.so"} {build / "tests/demo"}'
    env = environment(build, tmp_path, "t.json", folder, LD_PRELOAD="None")
    subprocess.run(["/usr/bin/unshare", "-rm", "/bin/sh", "-c", script], env=env, check=True, capture_output=True, timeout=60)
    judge(tmp_path, "t.json", recover(tmp_path / "t.json"), 1)


WORKERS = """
import ctypes, mmap, multiprocessing, sys, threading, time
from multiprocessing import resource_tracker, shared_memory

def works(pids, block):
    shared_memory.SharedMemory(name=block)
    pids.put(multiprocessing.current_process().pid)
    while True: time.sleep(1)

def begin(way, block):
    context = multiprocessing.get_context(way)
    pids = context.Queue()
    for _ in range(2): context.Process(target=works, args=(pids, block.name), daemon=True).start()
    return [pids.get(), pids.get()]

def main(counts, way, when):
    block = shared_memory.SharedMemory(create=True, size=1 << 20)
    pids = begin(way, block) if when == "before" else []
    driver, context, stream, flags = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint()
    first = threading.Thread(target=driver.cuInit, args=(0,))
    first.start()
    first.join()
    assert not driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) and not driver.cuCtxSetCurrent(context) and not driver.cuEventCreate(ctypes.byref(stream), 0)
    if when == "after": pids = begin(way, block)
    block.unlink()
    with open(counts, "w+b") as file:
        file.truncate(16)
        numbers = (ctypes.c_int64 * 2).from_buffer(mmap.mmap(file.fileno(), 16))  # one store each: struct.pack_into() writes zeros first
    numbers[0] = 1
    print(*pids, resource_tracker._resource_tracker._pid, flush=True)
    for number in range(1, 1 << 40):
        assert not driver.cuEventRecord(stream, None)
        numbers[1] = number
        if number % 50 == 0: time.sleep(0.001)

if __name__ == "__main__": main(*sys.argv[1:])
"""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("way", ["fork", "spawn", "forkserver"])
def test_workers_that_live_on(build, tmp_path, folder, way, when):
    """As data loaders have them: children of each sort that outlive the program, with shared memory and a process that keeps track of it."""
    (program := tmp_path / "workers.py").write_text(WORKERS)
    env = environment(build, tmp_path, "t.json", folder)
    process = subprocess.Popen([sys.executable, program, tmp_path / "counts", way, when], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    others = [int(word) for word in process.stdout.readline().split()]
    until(lambda: numbers(tmp_path / "counts")[1] > 500)
    process.kill()
    process.wait(timeout=60)
    try:
        whole = recover(tmp_path / "t.json")
        living = sum(pathlib.Path(f"/proc/{pid}").exists() for pid in others)
    finally:
        for pid in others:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.communicate(timeout=60)
    assert living >= 2
    judge(tmp_path, "t.json", whole, 1)
    assert not list(folder.iterdir())


def test_a_child_of_fork(build, tmp_path, folder):
    """It has a file of its own, and the parent's stays as it is."""
    process = begin(build, tmp_path, "t-%p.json", folder, "fork", threads=1)
    has_begun(tmp_path, 2)
    has_begun(tmp_path, 1, "counts.child")
    (child,) = [int(number) for number in pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
    assert len(list(folder.iterdir())) == 2
    until((tmp_path / f"t-{child}.json").exists)
    os.kill(child, signal.SIGKILL)
    kill(process)
    for pid, counts in ((process.pid, "counts"), (child, "counts.child")):
        whole = recover(tmp_path / f"t-{pid}.json")
        assert run_all("check", whole)[0] == 0
        found, lost = calls_of([whole])
        returned = numbers(tmp_path / counts)[1]
        assert returned <= found <= returned + 1 and not lost
    assert not list(folder.iterdir())


@pytest.mark.parametrize("way", ["clone", "left", "_Fork", "vfork"])
def test_a_child_of_a_bare_clone(build, tmp_path, folder, way):
    """No handler tells of it. It makes calls, and none of them reaches the parent's rings; but for one that borrows its parent's thread."""
    process = begin(build, tmp_path, "t.json", folder, way, threads=2)
    has_begun(tmp_path, 4 if way == "vfork" else 3)
    assert way == "vfork" or numbers(tmp_path / "counts.child") == (1, 2000)
    kill(process)
    judge(tmp_path, "t.json", recover(tmp_path / "t.json"), 2)


def test_a_child_that_lives_on(build, tmp_path, folder):
    """It has the mapping and no lock: whether the process lives is asked of the process."""
    process = begin(build, tmp_path, "t.json", folder, "lives", threads=2)
    has_begun(tmp_path, 3)
    (child,) = map(int, pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split())
    process.kill()
    process.wait(timeout=60)
    try:
        judge(tmp_path, "t.json", recover(tmp_path / "t.json"), 2)
    finally:
        os.kill(child, signal.SIGKILL)
    assert not list(folder.iterdir())


def test_exec(build, tmp_path, folder):
    """What was before is in the trace of before. The program after it has rings of its own."""
    process = begin(build, tmp_path, "t-%e-%p.json", folder, "exec", threads=2)
    has_begun(tmp_path, 3)
    assert len(list(folder.iterdir())) == 1
    kill(process)
    traces = sorted(tmp_path.glob("t-*.json"))
    wholes = [recover(path) for path in traces]
    found, lost = calls_of(wholes)
    returned = numbers(tmp_path / "counts")[1]
    assert returned <= found + (2000 if len(wholes) == 1 else 0) <= returned + 2 and not lost and not list(folder.iterdir())


def test_an_exec_that_fails(build, tmp_path, folder):
    """Its rings are kept no longer, and it records on."""
    process = begin(build, tmp_path, "t.json", folder, "failed", threads=2)
    has_begun(tmp_path, 3)
    assert not list(folder.iterdir())
    until(lambda: ctl(process.pid, "flush")[0] == 0)
    kill(process)
    status, said, complaints = run_all("recover", tmp_path / "t.json")
    assert (status, complaints) == (0, [])
    assert calls_of([recover(tmp_path / "t.json")])[0] > 2000


def test_killed_after_an_exec_that_failed(build, tmp_path, folder):
    """It has become no other program: what ended it was the signal, and calls since may be missing."""
    process = begin(build, tmp_path, "t.json", folder, "failed", threads=2, run=[COMMAND, "run", "--"], LD_PRELOAD="None")
    has_begun(tmp_path, 3)
    err = kill(process)
    assert "ended by SIGKILL, and what came in the last half second may be missing" in err, err
    assert rows_of(tmp_path / "t.json")["totals"]["ended_by"] == "SIGKILL"


def test_with_the_address_sanitizer(build, tmp_path, folder):
    env = environment(build, tmp_path, "t.json", folder, ASAN_OPTIONS="detect_leaks=0:verify_asan_link_order=0")
    process = subprocess.Popen([build / "tests/burst_asan", "2", "100000000"], cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True)
    until(lambda: (tmp_path / "t.json").exists() and (tmp_path / "t.json").stat().st_size > 10000)
    assert process.poll() is None and len(list(folder.iterdir())) == 1
    assert "Sanitizer" not in kill(process)
    whole = recover(tmp_path / "t.json")
    assert run_all("check", whole)[0] == 0 and rows_of(whole)["totals"]["recovered"]["rows"] >= 0
