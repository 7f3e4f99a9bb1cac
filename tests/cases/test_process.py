"""Processes: how they end, fork, replace themselves, race and share a path, and what must stay as the program left it."""
import collections
import os
import re
import shutil
import signal
import socket
import subprocess

import pytest

from tests.apprun import both, calls_in, calls_of, faithful, notes_of, read, said
from tests.gputrace import works


def traces_beside(run):
    """Every trace of the run: the one that was asked for and those with something put in before the extension."""
    return sorted(run.trace.parent.glob(run.trace.name.replace(".json", "*.json")))


def others_beside(run):
    return [path for path in traces_beside(run) if path != run.trace]


def launches(trace):
    return calls_in(trace)["cuLaunchKernel"]


# ---- Ends ----

@pytest.mark.parametrize("how, rc, made", [
    ("return", 5, 100), ("exit", 5, 100), ("_exit", 5, 100), ("_Exit", 5, 100), ("quick_exit", 5, 100), ("atexit", 5, 101), ("handler", 12, 100),
    ("thread-exit", 6, 101), ("thread-_exit", 6, 101), ("destructors", 5, 140)])
def test_every_end_keeps_every_call(run_app, how, rc, made):
    run, trace = both(run_app, ["ending", how])
    assert run.rc == rc and launches(trace) == made
    assert trace.totals["complete"] is True and trace.totals["lost_records"] == 0 and not said(run)


def test_main_returns_while_threads_run(run_app):
    run, trace = both(run_app, ["ending", "running"])
    assert run.rc == 5 and launches(trace) > 100 and trace.totals["complete"] is True and len({e["tid"] for e in trace.host(cat="cuda_driver")}) == 4


@pytest.mark.parametrize("how, ending", [("abort", signal.SIGABRT), ("kill", signal.SIGKILL), ("segv", signal.SIGSEGV)])
def test_killed(run_app, how, ending):
    """The file is valid as of the last flush, at most a second ago, and says that it is not complete."""
    run, trace = both(run_app, ["ending", how])
    assert run.rc == -ending and 100 <= launches(trace) <= 110 and trace.totals["complete"] is False
    assert trace.totals["recorded"] == sum(calls_in(trace).values())


def test_end_without_libc(run_app):
    """A raw exit_group is out of any library's sight: what was flushed is valid."""
    run, trace = both(run_app, ["ending", "syscall"])
    assert run.rc == 5 and launches(trace) <= 100


# ---- fork, vfork, spawn, exec ----

@pytest.mark.parametrize("how", ["idle", "exit", "vfork", "vfork-exec", "system"])
def test_child_that_does_not_call_cuda(run_app, how):
    run, trace = faithful(run_app, ["forks", how])
    assert "child exited 1 status 11" in run.stdout or "system 11" in run.stdout
    assert launches(trace) == 100 and trace.totals["complete"] is True and not others_beside(run)


@pytest.mark.parametrize("how", ["calls", "calls-exit"])
def test_child_that_calls_cuda(run_app, how):
    """A forked child gets the driver's answers, and a trace of its own that has its calls and none of its parent's."""
    run, trace = both(run_app, ["forks", how])
    run.check()
    notes = notes_of(run.stderr)
    assert run.stdout.startswith("cuStreamSynchronize 3\ncuInit 3\ncuLaunchKernel 3\n")
    assert launches(trace) == 100 and trace.totals["complete"] is True and {e["pid"] for e in trace.host()} == {int(notes["parent"])}
    assert calls_in(trace) == calls_of(run.stdout)
    (path,) = others_beside(run)
    assert path.name == run.trace.name.replace(".json", f"-{notes['child']}.json")
    child = read(path)
    assert calls_in(child) == {"cuStreamSynchronize": 1, "cuLaunchKernel": 1} and {e["pid"] for e in child.host()} == {int(notes["child"])}
    assert {e["args"]["cs.result"] for e in child.host(cat="cuda_driver")} == {"CUDA_ERROR_NOT_INITIALIZED"} and not works(child)
    assert child.totals["complete"] is True and child.totals["recorded"] == 2


NO_REPLACEMENT = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
static pid_t parent;
__attribute__((constructor)) static void begin(void) { parent = getpid(); }
long syscall(long number, ...)
{
    long of[6];
    va_list args;
    va_start(args, number);
    for (int i = 0; i < 6; i++) of[i] = va_arg(args, long);
    va_end(args);
    if (number == SYS_mmap && of[3] & MAP_FIXED && getpid() != parent) {
        if (getenv("GONE")) munmap((void *)of[0], (size_t)of[1]);
        return errno = ENOMEM, -1;
    }
    return ((long (*)(long, ...))dlsym(RTLD_NEXT, "syscall"))(number, of[0], of[1], of[2], of[3], of[4], of[5]);
}
"""


@pytest.mark.parametrize("env", [{}, {"GONE": "1"}], ids=["there", "gone"])
def test_a_child_that_cannot_have_its_parents_rings_replaced(build, run_app, tmp_path, env):
    """Where the system commits no more memory than it has. The kernel may have taken the old mapping away by then."""
    subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", tmp_path / "none.so"], input=NO_REPLACEMENT, text=True, check=True)
    bare = run_app(["forks", "calls-exit"], shim=False)
    run = run_app(["forks", "calls-exit"], shim=f"{build}/libcustream_shim.so:{tmp_path}/none.so", env=env).check()
    assert run.stdout == bare.stdout and launches(read(run.trace)) == 100 and not others_beside(run)
    (line,) = said(run)
    assert "has no memory, or no thread, for rings of its own in the child of a fork; its calls are not recorded" in line


def test_fork_before_cuda(run_app):
    run, trace = both(run_app, ["forks", "before"])
    run.check()
    first, second = read(traces_beside(run)[0]), read(traces_beside(run)[1])
    assert calls_in(first) == calls_in(second) == calls_of(run.stdout)
    notes = notes_of(run.stderr)
    assert {trace.host()[0]["pid"] for trace in (first, second)} == {int(notes["parent"]), int(notes["child"])}


def test_fork_while_another_thread_records(run_app):
    run, trace = both(run_app, ["forks", "threads"], env={"CUSTREAM_FULL": "block"})
    run.check()
    assert "went wrong" not in run.stdout
    assert launches(trace) == 100 + int(notes_of(run.stderr)["others"]) and trace.totals["complete"] is True
    children = [read(path) for path in others_beside(run)]
    assert len(children) == 20 and all(calls_in(child) == {"cuStreamQuery": 1} for child in children)
    assert not any(child.work_by_call() or [e for e in child.events if e["ph"] in "Csf"] for child in children), "the parent's work is not the child's"


def test_fork_while_objects_end(run_app):
    """What of the parent's had ended and not been given back is nothing to the child."""
    run, trace = both(run_app, ["forks", "ends"])
    run.check()
    assert run.stdout.count("child exited 1 status 0") == 4 and trace.totals["leaked_streams"] == trace.totals["leaked_events"] == 0
    children = [read(path) for path in others_beside(run)]
    assert [calls_in(child) for child in children] == [{"cuStreamQuery": 1}] * 4
    assert not any(child.lanes or child.lives for child in children), "the parent's streams are not the child's"


def test_spawn(run_app):
    """A spawned program that uses CUDA is a process like any other: the second of one path."""
    run, trace = both(run_app, ["forks", "spawn"])
    run.check()
    (path,) = others_beside(run)
    assert path.name == run.trace.name.replace(".json", f"-{notes_of(run.stderr)['child']}.json")
    assert launches(trace) == 100 and launches(read(path)) == 100


@pytest.mark.parametrize("slow", [[], ["slow"], ["at"]], ids=["at-once", "after-a-flush", "execveat"])
def test_exec_of_itself(run_app, slow):
    """The same process id, three programs: three traces, and each has every call that was made before the exec."""
    run, _ = both(run_app, ["again", 2, *slow])
    run.check()
    found = sorted(launches(read(path)) for path in traces_beside(run))
    assert found == [10, 11, 12]


# ---- Paths that several processes share ----

def shell(run_app, script, **options):
    return run_app(["/bin/sh", "-c", script], **options)


def test_two_at_once(run_app, build):
    run = shell(run_app, f"'{build}/tests/burst' 1 2000 200 & echo $!; '{build}/tests/burst' 1 2000 200 & echo $!; wait").check()
    pids = {line for line in run.stdout.splitlines() if line.isdigit()}
    traces = traces_beside(run)
    assert len(traces) == 2 and len(pids) == 2
    (other,) = others_beside(run)
    assert re.fullmatch(re.escape(run.trace.stem) + r"-(\d+)\.json", other.name).group(1) in pids
    assert [launches(read(path)) for path in traces] == [2000, 2000]
    assert {str(read(path).host()[0]["pid"]) for path in traces} == pids and not said(run)


def test_one_after_the_other(run_app, build):
    """Of one run: the preloaded shell is the parent of both."""
    run = shell(run_app, f"'{build}/tests/burst' 1 100; '{build}/tests/burst' 1 200; true").check()
    assert sorted(launches(read(path)) for path in traces_beside(run)) == [100, 200]
    assert launches(run.load()) == 100


def test_a_later_run_takes_the_path_again(run_app, build):
    """Runs of their own: the shell between them is not preloaded, and the second one starts well after the first one's end."""
    burst = f"LD_PRELOAD='{build}/libcustream_shim.so' '{build}/tests/burst' 1"
    run = shell(run_app, f"{burst} 100; sleep 0.3; {burst} 200", shim=False).check()
    assert [path.name for path in traces_beside(run)] == [run.trace.name] and launches(read(run.trace)) == 200


def test_names_in_the_path(run_app, tmp_path):
    env = {"CUSTREAM_TRACE": tmp_path / "t-%e-%h-%r-%p-%%.json", "RANK": 3, "WORLD_SIZE": 8, "OMPI_COMM_WORLD_RANK": 5}
    run = run_app(["burst", 1, 50], env=env).check()
    (path,) = tmp_path.glob("t-*")
    match = re.fullmatch(r"t-burst-(.+)-3-(\d+)-%\.json", path.name)
    assert match and match.group(1) == socket.gethostname()
    trace = read(path)
    assert {e["pid"] for e in trace.host()} == {int(match.group(2))} and launches(trace) == 50 and not said(run)
    assert trace.json["distributedInfo"] == {"rank": 3, "world_size": 8} and b'"rank": 3' in path.read_bytes()


@pytest.mark.parametrize("env, job", [({}, None), ({"TORCHELASTIC_RUN_ID": "none"}, None), ({"SLURM_JOB_ID": "4711", "TORCHELASTIC_RUN_ID": "x"}, "4711"),
                                      ({"TORCHELASTIC_RUN_ID": "run \"7\"\n"}, 'run "7"\n'), ({"PBS_JOBID": "j" * 400}, "j" * 256)])
def test_the_place_is_told(run_app, env, job):
    """For who puts the traces of many processes together."""
    metadata = read(run_app(["burst", 1, 50], env=env).check().trace).metadata
    assert metadata["host"] == socket.gethostname() and metadata.get("job") == job


def test_no_cuda_no_file(run_app):
    run = shell(run_app, "echo hello | cat; ls /proc/self/task | wc -l").check()
    assert run.stdout == "hello\n1\n" and run.stderr == "" and not run.trace.exists()


# ---- First calls, several drivers and runtimes ----

@pytest.mark.parametrize("program", ["race", "race_linked"])
def test_threads_race_on_the_first_call(run_app, program):
    for threads in (2, 2, 2, 8, 8, 16):
        run, trace = faithful(run_app, [program, threads])
        assert len({e["tid"] for e in trace.host()}) == threads
        assert collections.Counter(e["args"]["origin"] for e in trace.lives) == {
            "created": threads, "legacy default": 1, "per-thread default": threads}


@pytest.mark.parametrize("gpu", ["auto", "off"])  # off: nothing but the library itself keeps the driver
def test_driver_closed_and_opened_again(run_app, gpu):
    """Once its calls are watched it stays, as it does where CUPTI has opened it too. All of them are seen."""
    run, trace = both(run_app, "reload", env={"CUSTREAM_GPU": gpu})
    assert run.check().stdout.count("0 0 0 0 0 0 version") == 3 and calls_in(trace)["cuStreamCreate"] == 3 and not said(run)


def test_driver_closed_and_opened_again_where_nothing_is_asked(run_app):
    """Closed, gone, and back at another address: the program gets the driver that is there now."""
    run = run_app("reload", env={"CUSTREAM_TRACE": "off"}).check()
    addresses = re.findall(r"^note version (\S+)", run.stderr, re.M)
    assert len(set(addresses)) == 3 and "note stayed" not in run.stderr, "the simulated driver stayed or came back to its place: this shows nothing"
    assert run.stdout.count("0 0 0 0 0 0 version") == 3 and not said(run)


def test_two_copies_of_the_runtime(run_app, build, tmp_path):
    """Each copy keeps its own way to the driver; the calls of both are seen, and named after the program, not after the runtime."""
    original, copy = build / "fakecuda" / "libcudart.so.13", tmp_path / "libcudart_of_somebody.so"
    shutil.copy(original.resolve(), copy)
    run, trace = both(run_app, ["runtimes", original, copy])
    run.check()
    assert run.stdout.count("results 0\n") == 3
    counts = calls_in(trace)
    assert counts["cuStreamCreate"] + counts["cuStreamCreateWithPriority"] == 5
    assert counts["cuMemsetD8Async"] == 12 and counts["cuStreamDestroy_v2"] == 3 and counts["cuStreamSynchronize"] == 3
    libraries = collections.Counter(e["args"]["library"] for e in trace.lives if e["args"].get("origin") == "created")
    assert libraries["runtimes"] == 3 and sum(libraries.values()) == 5  # those of the copy bear its own name: it is not called libcudart.so


def test_dlerror_behind_a_runtime(run_app, build):
    """Finding out who made a stream behind a shared runtime leaves the loader's error where it was."""
    argv = ["runtimes", build / "fakecuda" / "libcudart.so.13"]
    assert notes_of(run_app(argv, shim=False).check().stderr) == {"error_kept_1": "1"}
    assert notes_of(run_app(argv).check().stderr) == {"error_kept_1": "1"}


# ---- What stays as it was ----

def test_signals(run_app):
    run, _ = both(run_app, "signals")
    assert run.check().stdout == "mask kept 1\npending 1 handled 0\nhandled 1 elsewhere 0\ntimer came, elsewhere 0\nhandler kept 1\n"


def test_a_handler_that_calls_cuda_while_a_record_is_filled(run_app):
    """At each instruction of the shim on the way of a host function, a stream callback, a delay and NVTX: no record is written over, none is left empty."""
    run = run_app("stepped", env={"CUSTREAM_GPU": "auto", "CUSTREAM_JITTER": "seed=1,us=1,percent=100,at=stream,on=set",
                                "CUSTREAM_BUFFER": "64K", "CUSTREAM_FULL": "block"}).check()
    trace, made = run.load(), calls_of(run.stdout)
    shown, notes = trace.count(), {key: int(value) for key, value in notes_of(run.stderr).items()}
    within = made["cuEventQuery"] - shown["cuEventQuery"]  # calls out of the middle of a record are made, and not shown
    assert 0 < within < notes["handled"] / 4, (within, notes)
    assert {n: c for n, c in shown.items() if n.startswith("cu")} == dict(made | {"cuEventQuery": shown["cuEventQuery"]})
    assert (shown["callback"], shown["delay"], shown["range"]) == (notes["callbacks"] - 1, notes["rounds"], notes["rounds"])  # one ran without CUDA
    assert [e["name"] for e in trace.events if e["ph"] == "i" and e.get("cat") == "user_annotation"] == ["mark"] * notes["rounds"]
    assert trace.totals["lost_records"] == 0 and trace.totals["complete"] is True


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_errno_and_dlerror(run_app, tmp_path, name):
    bare = run_app("keeps", shim=False).check()
    assert bare.stdout == "errno kept 30 lost 0, dlerror kept 30 lost 0\n"
    run = run_app("keeps", env={"CUSTREAM_TRACE": tmp_path / name})
    assert run.stdout == bare.stdout and run.rc == 0 and not said(run)
    assert calls_in(read(tmp_path / name))["cuStreamCreate"] == 3


def test_errno_and_dlerror_with_tracing_off(run_app):
    run = run_app("keeps", env={"CUSTREAM_TRACE": "off"}).check()
    assert run.stdout == "errno kept 30 lost 0, dlerror kept 30 lost 0\n"


def test_short_lived_threads_keep_their_names(run_app):
    """A thread may end before the writer has looked at it; its name is known all the same."""
    run, trace = both(run_app, ["many", "threads", 5])
    run.check()
    assert {name for tid, name in trace.threads.items()} == {"many"}
    own = [name for (_, tid), name in trace.lanes.items() if "per-thread" in name]
    assert len(own) == 5 and all(name.endswith(" per-thread default · many") for name in own)


# ---- Descriptors ----

def test_closed_standard_output(run_app):
    """The trace must not become the program's standard output."""
    run, trace = both(run_app, ["closes", "std"])
    assert notes_of(run.check().stderr)["written"] == "-1" and launches(trace) == 20


def test_program_closes_all_descriptors(run_app):
    """A program may close descriptors that are not its own and open files in their place: those are never written to."""
    run, trace = both(run_app, ["closes", "all"])
    assert run.check().stdout == "own files intact 16\n"
    assert launches(trace) >= 10 and len(said(run)) <= 1
    assert trace.totals["recorded"] == sum(calls_in(trace).values())


def test_odd_program_name(run_app, build, tmp_path):
    """Quotes, a newline, a backslash, bytes that are no UTF-8: all of it is in the path, the process's name and the thread's."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = os.fsencode(folder) + b"/a \"b\\\n\xff\xc3\xa9%p"
    shutil.copy(build / "tests" / "burst", program)
    run = run_app([os.fsdecode(program), 1, 50], env={"CUSTREAM_TRACE": tmp_path / "t-%e.json"}).check()
    (path,) = tmp_path.glob("t-*")
    assert os.fsencode(path.name) == b"t-" + program.rsplit(b"/", 1)[1] + b".json"
    trace = read(path)
    assert launches(trace) == 50 and 'a "b\\\n\ufffd\xe9%p' in trace.process_names.values() and not said(run)
