"""Processes that limit themselves, shut themselves in, or end in ways that few programs do: with the shim as without."""
import os
import resource
import signal
import subprocess

import pytest

from tests.apprun import calls_in, notes_of, read, said
from tests.cases.conftest import app_environment
from tests.remote import ctl, until


def both(run_app, how, **given):
    alone, run = run_app(["attacks_process", how], shim=False), run_app(["attacks_process", how], **{"timeout": 30, **given})
    assert (run.rc, run.stdout) == (alone.rc, alone.stdout), run.stderr
    return run


# ---- the end ----

def test_a_thread_that_works_on_with_one_descriptor(run_app):
    """The library can't look which threads live any more, and takes none for dead."""
    run = both(run_app, "few-files")
    assert run.rc == 7 and calls_in(read(run.trace))["cuLaunchKernel"] == 15


def test_a_signal_handler_ends_the_process_in_a_driver_call(run_app, build):
    """The call may hold what the profiler waits for. Nobody waits for that twice, or as long as at another end."""
    env = {"CUSTREAM_CUPTI": build / "tests/libstuck_cupti.so", "SLOW_CUPTI_MS": 0}
    run = run_app(["attacks_process", "in-a-call"], env=env, timeout=8)  # it took ten seconds
    trace = read(run.trace)
    assert run.rc == 7 and trace.totals["complete"] is True and calls_in(trace)["cuLaunchKernel"] == 3


def test_main_leaves_by_the_bare_system_call(run_app):
    """Its status is the process's."""
    run = both(run_app, "raw-exit")
    assert run.rc == 7 and read(run.trace).totals["complete"] is True


def test_main_alone_is_killed(run_app):
    """By a filter that kills threads, not processes. It was the only one of the program's: the process has died of that."""
    run = both(run_app, "killed")
    assert run.rc == -signal.SIGSYS and calls_in(read(run.trace))["cuLaunchKernel"] == 3


@pytest.mark.parametrize("env", [{}, {"CUSTREAM_FULL": "block", "CUSTREAM_BUFFER": "4K"}], ids=["drop", "block"])
@pytest.mark.parametrize("how", ["writer-killed", "writer-killed-left"])
def test_the_writer_alone_is_killed(run_app, how, env):
    """By a filter that kills threads, not processes. Nobody waits for it, neither for room nor for the end, and the process ends with its last thread."""
    run = both(run_app, how, env=env, timeout=9)  # the end alone took ten seconds
    assert run.rc == (5 if how == "writer-killed" else 0) and "still here" in run.stdout and ("at exit" in run.stdout) == (how != "writer-killed")
    assert read(run.trace).totals["complete"] is False


def test_an_exit_handler_that_needs_stack(run_app):
    """It runs on a thread with as much stack as the program's have."""
    run = both(run_app, "large-frame")
    assert run.rc == 0 and "at exit" in run.stdout and read(run.trace).totals["complete"] is True


@pytest.mark.parametrize("env", [{}, {"CUSTREAM_PRIORITY": "shift:-1"}], ids=["default", "policy"])
@pytest.mark.parametrize("how", ["cuda", "thread"])
def test_main_leaves_where_neither_is_allowed(run_app, build, how, env):
    """No thread has descriptors of its own, and yet the process ends with its last thread."""
    program = [build / "tests" / "without", "close_range", "unshare", "--", build / "tests" / "main_leaves", how]
    alone, run = run_app(program, shim=False), run_app(program, env=env, timeout=20)
    assert (run.rc, run.stdout) == (alone.rc, alone.stdout) and "at exit" in run.stdout


# ---- limits ----

def test_no_file_may_be_opened(run_app):
    """A filter kills the process for any open: the library opens none as long as nothing new comes."""
    run = both(run_app, "shut-in")
    assert run.rc == 5 and calls_in(read(run.trace))["cuLaunchKernel"] == 15


@pytest.mark.parametrize("gpu", ["auto", "events", "off"])
def test_few_system_calls_may_be_made(run_app, gpu):
    """A filter that binds the library's threads too kills the process for any call that the documentation does not name."""
    run = both(run_app, "few-calls", env={"CUSTREAM_GPU": gpu})
    assert run.rc == 5 and calls_in(read(run.trace))["cuLaunchKernel"] == 15 and read(run.trace).totals["complete"] is True


def trigger_comes(path, says):
    """One of another user, if that can be; then one that may be read."""
    for owner in [4711, os.geteuid()][bool(os.geteuid()):]:
        (beside := path.with_name("beside")).write_text("start=1\nduration=1s\n")
        os.chown(beside, owner, -1)
        beside.rename(path)
        until(lambda: says("its time is over" if owner == os.geteuid() else "it belongs to another user"))


@pytest.mark.parametrize("what, env", [("thread", {}), ("rotate", {"CUSTREAM_TRACE_MAX": "1M,rotate:9"}), ("full", {"CUSTREAM_TRACE_MAX": "1M"}),
                                       ("growth", {"CUSTREAM_GPU": "cupti", "CUSTREAM_FAKE_DEPTH": 0}),
                                       ("trigger", {"CUSTREAM_TRIGGER": "trigger"}), ("metrics", {"CUSTREAM_METRICS": "m.prom"})], ids=lambda value: value if isinstance(value, str) else "")
def test_few_system_calls_at_late_events(build, tmp_path, what, env):
    """The same, with those that the documentation names for what comes after the filter."""
    env = app_environment(build, tmp_path / "t.json", True, {"CUSTREAM_GPU": "off", "CUSTREAM_FULL": "block", "CUSTREAM_LOG": "info", **env})  # a filter for what CUPTI needs is the program's matter
    err, metrics = tmp_path / "err", tmp_path / "m.prom"
    with open(err, "wb") as stderr, subprocess.Popen([build / "tests/attacks_process", f"few-calls-{what}"], env=env, cwd=tmp_path, stdin=subprocess.PIPE,
                                                     stdout=subprocess.PIPE, stderr=stderr, text=True) as process:
        assert process.stdout.readline() == "shut in\n"
        if what == "trigger":
            trigger_comes(tmp_path / "trigger", lambda text: process.poll() is not None or text in err.read_text())
        elif what == "metrics":
            first = metrics.stat().st_ino
            until(lambda: process.poll() is not None or metrics.stat().st_ino != first)
        assert process.communicate("\n", timeout=60)[0].splitlines()[-1:] == ["still here"] and process.returncode == 5, err.read_text()
    assert what != "full" or "CUSTREAM_TRACE_MAX" in err.read_text()
    assert what == "full" or read(tmp_path / "t.json").totals["complete"] is True
    assert what != "rotate" or len(list(tmp_path.glob("t.*.json"))) > 1


@pytest.mark.parametrize("window", ["all", "ctl"])
def test_who_asks_is_not_the_end_of_a_program_that_has_shut_itself_in(build, tmp_path, window):
    """Its filter kills it for what an answer takes. Before that it is recorded for somebody, who hears that this is over."""
    custream, part = build / "custream", tmp_path / "part.json"
    env = app_environment(build, tmp_path / "t.json", True, {"CUSTREAM_WINDOW": window})
    with subprocess.Popen([build / "tests" / "attacks_process", "few-calls-asked"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        say, hear = (lambda: (process.stdin.write("\n"), process.stdin.flush())), process.stdout.readline
        assert hear() == "open\n"
        with subprocess.Popen([custream, "record", "-p", str(process.pid), "-o", part], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as record:
            until(lambda: "recording: on" in ctl(process.pid, "status")[1])
            say()
            assert hear() == "worked\n"
            say()
            assert hear() == "shut in\n"
            rc, _, err = ctl(process.pid, "status")
            assert rc == 2 and "or a seccomp filter of its own" in err, err
            told = record.communicate(timeout=30)
            say()
        assert hear() == "still here\n" and process.wait() == 5
    assert record.returncode == 1 and "has installed a seccomp filter, which ended the recording" in told[1], told
    assert calls_in(read(tmp_path / "t.json"))["cuLaunchKernel"] == (27 if window == "all" else 12)
    assert window == "all" or calls_in(read(part))["cuLaunchKernel"] == 12


def test_standard_error_is_a_file_at_its_limit(build, tmp_path):
    """Our line raises no SIGXFSZ."""
    env = dict(os.environ, LD_LIBRARY_PATH=str(build / "fakecuda"), LD_PRELOAD=str(build / "libcustream_shim.so"), CUSTREAM_BUFFER="bogus",
               CUSTREAM_TRACE=str(tmp_path / "t.json"))
    with open(tmp_path / "err.txt", "wb") as err:
        done = subprocess.run([build / "tests" / "ending", "return"], env=env, stderr=err, stdout=subprocess.DEVNULL, timeout=60, check=False,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
    assert done.returncode == 5 and not (tmp_path / "err.txt").stat().st_size


@pytest.mark.parametrize("gpu", ["events", "off"])
def test_no_more_memory(run_app, gpu):
    """A kernel whose name finds no place is still in the trace, with a name that says what it is."""
    run = both(run_app, "no-memory", env={"CUSTREAM_GPU": gpu})
    trace = read(run.trace)
    assert run.rc == 5 and calls_in(trace)["cuLaunchKernel"] == 3
    assert [event["name"] for event in trace.events if event.get("cat") == "kernel"] == (["kernel"] * 3 if gpu == "events" else [])


@pytest.mark.parametrize("rings", ["auto", "off", "memfd"])
def test_what_a_core_and_a_child_have_of_the_tables(run_app, build, rings):
    """Hundreds of megabytes that are hardly touched: a core has none of them, and a fork copies none of what only the parent's writer needs."""
    alone = notes_of(run_app(["attacks_process", "mappings"], shim=False).stderr)
    if rings == "memfd":
        script = 'mount -t tmpfs -o ro,size=4k none /dev/shm; exec "$@"'
        run = run_app(["/usr/bin/unshare", "-rm", "/bin/sh", "-c", script, "sh", build / "custream", "run", "--", build / "tests/attacks_process", "mappings"], shim=False)
    else:
        run = run_app(["attacks_process", "mappings"], env={"CUSTREAM_KEEP": rings})
    notes = {name: int(kb) - int(alone[name]) for name, kb in notes_of(run.stderr).items()}
    assert run.rc == 5 and calls_in(read(run.trace))["cuLaunchKernel"] == 20003
    assert notes["parent-core"] < 32 << 10 and notes["child-core"] < 32 << 10, notes
    assert notes["parent-there"] > 10 << 10 and notes["child-there"] < notes["parent-there"] / 2, notes


def test_a_real_time_thread_meets_the_driver(run_app):
    """The library's threads take longer than such a thread's neighbours may wait: they have no priority of that kind."""
    run = both(run_app, "real-time")
    assert run.rc == 5 and run.stdout == "real-time threads besides main: 0\n"


# ---- the file ----

def test_somebody_empties_the_file(run_app):
    """What was in it is gone: no file is left, rather than one with a hole, which nothing reads. That is said once."""
    run = both(run_app, "cut")
    assert run.rc == 5 and not run.trace.exists()
    assert [line.split(": ", 2)[2] for line in said(run)] == [f"somebody has cut the trace {run.trace} short; it ends here"]


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_somebody_makes_the_file_longer(run_app, tmp_path, name):
    """What is behind the trace is taken off again."""
    run = both(run_app, "grow", trace=tmp_path / name)
    assert run.rc == 5 and not said(run) and calls_in(read(run.trace))["cuLaunchKernel"] == 15


# ---- cancellation ----

@pytest.mark.parametrize("env", [{"CUSTREAM_BUFFER": "bogus"}, {"CUSTREAM_POLICY": "policy.json"}], ids=["line", "policy"])
def test_a_thread_that_is_cancelled_when_it_meets_the_driver(run_app, tmp_path, env):
    """What the library does then is no cancellation point: neither ends the call, nor leaves others waiting."""
    (tmp_path / "policy.json").write_text("{}", encoding="utf-8")
    run = both(run_app, "cancelled", env=env, cwd=tmp_path)
    assert run.rc == 5 and "its call returned: 1" in run.stdout and len(said(run)) == ("CUSTREAM_BUFFER" in env)


# ---- namespaces, and no more threads ----

def test_main_leaves_where_proc_is_another_namespaces(build, tmp_path):
    """Its threads have other numbers there."""
    env = dict(os.environ, LD_LIBRARY_PATH=str(build / "fakecuda"), LD_PRELOAD=str(build / "libcustream_shim.so"), CUSTREAM_TRACE=str(tmp_path / "t.json"))
    program = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", build / "tests" / "main_leaves", "thread"]
    done = subprocess.run(program, env=env, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 0 and "at exit" in done.stdout, done.stderr
    assert read(tmp_path / "t.json").totals["complete"] is True


def test_main_leaves_where_only_one_thread_more_can_be_made(run_app):
    """The thread that prints is there, and the writer is not."""
    run = both(run_app, "one-thread")
    assert run.rc == 0 and "at exit" in run.stdout and any("nothing is recorded" in line for line in said(run))
