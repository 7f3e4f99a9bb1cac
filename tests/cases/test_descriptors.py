"""Descriptors, standard error, and the end of a process: what is the program's stays the program's."""
import json
import os
import signal
import subprocess

import pytest

from tests.apprun import calls_in, read, said

NEITHER = ["without", "close_range", "unshare", "--"]


def both_ways(run_app, argv, tmp_path, **given):
    """The program alone and under the shim, each in a folder of its own, prints the same and ends the same."""
    runs = []
    for shim in (False, True):
        folder = tmp_path / f"shim-{shim}"
        folder.mkdir()
        runs.append(run_app(argv, shim=shim, cwd=folder, **given))
    alone, run = runs
    assert (run.rc, run.stdout) == (alone.rc, alone.stdout) and run.rc == 0, run.stderr
    return run, tmp_path / "shim-True"


# ---- descriptors ----

@pytest.mark.parametrize("env", [{}, {"CUSTREAM_GPU": "events"}, {"CUSTREAM_TRACE_MAX": "1M,rotate"}], ids=["default", "events", "rotate"])
def test_no_number_of_the_program_is_taken(run_app, tmp_path, env):
    """The program finds the descriptors that it has alone; a pipe and a lock that it gives up are given up; a record lock that it keeps is kept."""
    run, _ = both_ways(run_app, ["descriptors", "list"], tmp_path, env=env)
    assert calls_in(read(run.trace))["cuLaunchKernel"] == 20 and not said(run)


@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
def test_a_number_that_the_program_reuses(run_app, tmp_path, name):
    """It closes all descriptors and opens a file of its own under every number, while calls are recorded: not a byte of the trace is in that file."""
    run, _ = both_ways(run_app, ["descriptors", "reuse"], tmp_path, trace=tmp_path / name)
    assert "intact 1" in run.stdout and not said(run)
    assert calls_in(read(run.trace))["cuLaunchKernel"] > 100


def test_where_only_unshare_is_refused(run_app, tmp_path, build):
    run = run_app([build / "tests" / "without", "unshare", "--", build / "tests" / "ending", "return"])
    assert run.rc == 5 and not said(run) and calls_in(read(run.trace))["cuLaunchKernel"] == 100


def test_where_only_close_range_is_refused(run_app, tmp_path, build):
    run, _ = both_ways(run_app, [build / "tests" / "without", "close_range", "--", build / "tests" / "descriptors", "list"], tmp_path)
    assert not said(run) and calls_in(read(run.trace))["cuLaunchKernel"] == 20


def test_where_neither_is_allowed(run_app, build):
    """Nothing is recorded, which is said once; the program runs on, and ends."""
    run = run_app([build / "tests" / "without", "close_range", "unshare", "--", build / "tests" / "ending", "return"])
    (line,) = said(run)
    assert run.rc == 5 and "neither close_range nor unshare" in line and "nothing is recorded" in line
    assert list(run.trace.parent.glob("*.json")) == []


def test_policies_where_neither_is_allowed(run_app, build):
    """Priorities are changed all the same."""
    env = {"CUSTREAM_PRIORITY": "set:-2"}
    program = [build / "tests" / "policies", build / "tests" / "libmaker.so"]
    alone, with_trace = run_app(program, shim=False), run_app(program, env=env)
    run = run_app([build / "tests" / "without", "close_range", "unshare", "--", *program], env=env)
    assert alone.stdout != with_trace.stdout
    assert (run.rc, run.stdout) == (with_trace.rc, with_trace.stdout) and not run.trace.exists()


def test_a_pipe_of_standard_error_ends_with_the_program(run_app, build, tmp_path):
    """A daemon that closes its standard error lets go whoever reads the pipe, though calls are recorded on."""
    run = run_app(["chrooted", "stderr"], timeout=20)
    assert run.rc == 0, run.stderr


def test_chroot(run_app, tmp_path):
    """The program changes its root and closes all descriptors: the file goes on, and so do its parts."""
    if os.geteuid():
        pytest.fail("needs root, as in a container")
    run, _ = both_ways(run_app, ["chrooted", "root"], tmp_path)
    assert not said(run) and calls_in(read(run.trace))["cuLaunchKernel"] == 40


# ---- standard error ----

def test_a_data_file_that_has_become_descriptor_2(run_app, tmp_path):
    """What is to be said is not said there."""
    run, folder = both_ways(run_app, ["descriptors", "reopened"], tmp_path, env={"CUSTREAM_TRACE_MAX": "1M", "CUSTREAM_DEFAULT_STREAM": "audit"})
    assert (folder / "data.bin").read_text() == "data\n" and "holds 5" in run.stdout


def test_nobody_reads_standard_error(build, tmp_path):
    """The first line of ours goes to a pipe that is closed: SIGPIPE would end the program."""
    program = build / "tests" / "ending"
    env = dict(os.environ, LD_LIBRARY_PATH=str(build / "fakecuda"), LD_PRELOAD=str(build / "libcustream_shim.so"), CUSTREAM_BUFFER="bogus",
               CUSTREAM_TRACE=str(tmp_path / "t.json"))
    reads, writes = os.pipe()
    os.close(reads)
    done = subprocess.run([program, "return"], env=env, stderr=writes, stdout=subprocess.PIPE, timeout=60, check=False,
                          preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL))
    os.close(writes)
    assert done.returncode == 5
    read(tmp_path / "t.json")


def test_what_the_writer_says_is_printed_at_once(build, tmp_path):
    """It has no standard error of its own, and the program lives on when the line comes."""
    env = dict(os.environ, LD_LIBRARY_PATH=str(build / "fakecuda"), LD_PRELOAD=str(build / "libcustream_shim.so"), CUSTREAM_TRACE=str(tmp_path / "t.json"),
               CUSTREAM_TRACE_MAX="1M")
    with subprocess.Popen([build / "tests" / "burst", "1", "20000", "60000"], env=env, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        line = process.stderr.readline()
        alive = process.poll() is None
        process.kill()
    assert alive and "reached CUSTREAM_TRACE_MAX=1M" in line


# ---- the end ----

@pytest.mark.parametrize("env", [{}, {"CUSTREAM_GPU": "events"}, {"CUSTREAM_GPU": "off"},  # without the GPU thread
                                 {"CUSTREAM_TRACE": "off", "CUSTREAM_PRIORITY": "shift:-1"}, {"CUSTREAM_TRACE": "/nonexistent/t.json"}, {"CUSTREAM_CTL": "off"}],
                         ids=["default", "events", "no-gpu-times", "policy-alone", "no-file", "no-ctl"])
@pytest.mark.parametrize("how", ["cuda", "thread"])
def test_main_leaves_by_pthread_exit(run_app, how, env):
    """The process ends with its last thread, and prints what stdio held."""
    alone, run = run_app(["main_leaves", how], shim=False), run_app(["main_leaves", how], env=env, timeout=20)
    assert (run.rc, run.stdout) == (alone.rc, alone.stdout) and "at exit" in run.stdout
    if "CUSTREAM_TRACE" not in env:
        trace = read(run.trace)
        assert trace.totals["complete"] is True and calls_in(trace)["cuLaunchKernel"] == (100 if how == "thread" else 50)


def test_a_signal_after_main_has_left(build, tmp_path, run_app):
    """A thread of the program sleeps on: the process lives, and a SIGTERM ends it."""
    env = dict(os.environ, LD_LIBRARY_PATH=str(build / "fakecuda"), LD_PRELOAD=str(build / "libcustream_shim.so"), CUSTREAM_TRACE=str(tmp_path / "t.json"))
    with subprocess.Popen([build / "tests" / "main_leaves", "sleep"], env=env, stdout=subprocess.PIPE) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1.2)
        process.terminate()
        assert process.wait(20) == -signal.SIGTERM
    assert json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("env", [{"CUSTREAM_CTL": "on"}, {"CUSTREAM_TRACE_MAX": "1M,rotate"}], ids=["ctl", "rotate"])
def test_a_program_with_functions_of_its_own_for_files(run_app, env):
    """They never see our files, whose numbers mean others in the program."""
    alone, run = run_app("own_files", shim=False).check(), run_app("own_files", env=env).check()
    assert run.stdout == alone.stdout and "strangers 0" in run.stdout and not said(run)
