"""Threads of the shim's own: their stacks, and what goes on where they cannot be made."""
import os

import pytest

from tests.apprun import calls_in, read, said

SHIFT = {"CUSTREAM_PRIORITY": "shift:-1", "CUSTREAM_GPU": "auto"}

NO_AIDE = "custream: error: the system has no memory, or no thread, for the aide, which all threads of the library need; nothing is recorded"


# ---- Stacks ----

@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
@pytest.mark.parametrize("program", ["bigtls", "bigtls_500k"])
def test_static_tls(run_app, tmp_path, program, name):
    """glibc takes it from each thread's stack: one of 512 KiB would have no room for 1 MiB, and too little beside 500 KiB."""
    run = run_app([program], env={**SHIFT, "CUSTREAM_TRACE": tmp_path / name}).check()
    assert run.stdout == "priority -1\n" and not said(run)
    assert calls_in(read(tmp_path / name))["cuLaunchKernel"] == 1


# ---- No threads ----

@pytest.fixture
def without_threads(build, run_app):
    def run(argv, **env):
        return run_app(argv, shim=f"{build / 'libcustream_shim.so'}:{build / 'tests/libno_threads.so'}", env={"CUSTREAM_GPU": "auto", **env}).check()
    return run


@pytest.mark.parametrize("how", [[], ["churn"]], ids=["once", "churn"])
def test_policies_without_a_writer(without_threads, how):
    """What has ended is given back by the writer; without one, when its place is needed."""
    run = without_threads(["bigtls", *how], **SHIFT)
    assert run.stdout == "priority -1\n"
    assert said(run) == [NO_AIDE] and not run.trace.exists()


@pytest.mark.parametrize("options", [
    {"CUSTREAM_STREAMS": "serial"}, {"CUSTREAM_STREAMS": "pool:2"}, {"CUSTREAM_JITTER": "seed=1,percent=50,us=1"}, {"CUSTREAM_DEFAULT_STREAM": "audit"}, {}])
def test_other_options_without_a_writer(without_threads, options):
    run = without_threads(["bigtls"], **options)
    assert run.stdout == "priority 0\n" and not run.trace.exists()
    assert [line for line in said(run) if line.startswith("custream: error")] == [NO_AIDE]


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
@pytest.mark.parametrize("namespace", [[], ["/usr/bin/unshare", "-Ur"]], ids=["user", "root of his namespace"])
def test_the_programs_last_threads_stay_the_programs(build, run_app, namespace):
    """Of a user's twelve. tests/unit/scarce.c has the rule, and control groups."""
    limited = ["/usr/bin/setpriv", "--reuid=61234", "--regid=61234", "--clear-groups", *namespace, "prlimit", "--nproc=12", build / "tests/burst", 8, 100]
    bare = run_app(limited, shim=False).check()
    run = run_app(limited).check()
    assert run.stdout == bare.stdout and not run.trace.exists()
    assert said(run) == ["custream: error: the system has no memory, or no thread, for threads of the library: few are left, which the program may need; nothing is recorded"]


def test_per_thread_default_streams_without_a_writer(run_app, without_threads):
    """Each call of the table is still made through the other form."""
    wanted = run_app(["siblings", "sibling"], shim=False).check()
    assert without_threads(["siblings", "base"], CUSTREAM_DEFAULT_STREAM="per-thread").stdout == wanted.stdout


@pytest.mark.parametrize("env", [{}, {"CUSTREAM_PRIORITY": "shift:-1"}, {"CUSTREAM_WINDOW": "delay=0.05,duration=9"}],
                         ids=["default", "policy", "window"])
@pytest.mark.parametrize("which", ["1", "2", "3", "4", "2+", "3+", "4+"])
def test_main_leaves_where_one_of_our_threads_is_missing(build, run_app, which, env):
    """The process ends with the last thread of the program's, whichever of ours could not be made."""
    run = run_app(["main_leaves", "thread"], shim=f"{build / 'libcustream_shim.so'}:{build / 'tests/libno_threads.so'}",
                  env={"CUSTREAM_GPU": "auto", "NO_THREAD": which, **env}, timeout=20).check()
    assert run.stdout == run_app(["main_leaves", "thread"], shim=False).stdout
    if run.trace.exists():
        assert read(run.trace).totals["complete"] is True
