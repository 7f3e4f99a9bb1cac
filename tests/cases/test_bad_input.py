"""What goes wrong around the shim: paths, disks, drivers, devices, handles, options. Programs get the driver's own answers, stderr one line."""
import os
import re
import subprocess
import sys

import pytest

from tests.apprun import both, calls_in, calls_of, notes_of, read, said


def same(run_app, argv, env=None, trace_env=None, **options):
    """The program does the same with and without the shim; returns the run with it. `trace_env` is for that run alone."""
    bare = run_app(argv, shim=False, env=env, **options)
    run = run_app(argv, env={**(env or {}), **(trace_env or {})}, **options)
    assert (run.rc, run.stdout) == (bare.rc, bare.stdout), f"--- stderr\n{run.stderr}"
    assert [line for line in run.stderr.splitlines() if not line.startswith(("note ", "custream:"))] == [
        line for line in bare.stderr.splitlines() if not line.startswith("note ")]
    return run


# ---- Where the trace cannot go ----

def unwritable(tmp_path):
    folder = tmp_path / "locked"
    folder.mkdir()
    folder.chmod(0o555)
    return folder / "trace.json"


WITHOUT_OVERRIDE = "import ctypes, os, sys; ctypes.CDLL(None).prctl(24, 1, 0, 0, 0); os.execv(sys.argv[1], sys.argv[1:])"  # root may write anywhere


def test_unwritable_folder(run_app, build, tmp_path):
    path = unwritable(tmp_path)
    argv = [sys.executable, "-c", WITHOUT_OVERRIDE]
    ask = f"import os; print(os.access({str(path.parent)!r}, os.W_OK))"
    probe = subprocess.run([*argv, sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert probe.stdout == "False\n", "the folder can be written to: this shows nothing"
    run = same(run_app, [*argv, build / "tests" / "timeline"], trace_env={"CUSTREAM_TRACE": path})
    (line,) = said(run.check())
    assert str(path) in line and "CUSTREAM_TRACE" in line and os.strerror(13) in line and list(path.parent.iterdir()) == []


@pytest.mark.parametrize("what", ["missing", "folder", "under-a-file", "dangling-link", "too-long"])
def test_path_that_cannot_be(run_app, tmp_path, what):
    path = tmp_path / "nowhere" / "trace.json"
    if what == "folder":
        path = tmp_path / "folder.json"
        path.mkdir()
    elif what == "under-a-file":
        (tmp_path / "file").write_text("mine")
        path = tmp_path / "file" / "trace.json"
    elif what == "dangling-link":
        path = tmp_path / "link.json"
        path.symlink_to(tmp_path / "nowhere" / "target.json")
    elif what == "too-long":
        path = tmp_path / ("x" * 300 + ".json")
    before = sorted(p.name for p in tmp_path.iterdir())
    run = same(run_app, "timeline", trace_env={"CUSTREAM_TRACE": path})
    (line,) = said(run.check())
    assert str(path)[:200] in line and "CUSTREAM_TRACE" in line and "nothing is recorded" in line
    assert sorted(p.name for p in tmp_path.iterdir()) == before
    if what == "folder":
        assert "directory" in line and list(path.iterdir()) == []


def limited(build, limit_kib, *program):
    """The program with a limit on the size of files, whose signal is ignored: writes beyond it fail as on a full disk."""
    return ["/bin/sh", "-c", f"trap '' XFSZ; ulimit -f {limit_kib}; exec \"$@\"", "sh", str(build / "tests" / program[0]), *map(str, program[1:])]


def test_full_disk(run_app, build):
    """The trace ends where the disk is full, is valid, and says how many calls it lacks."""
    argv = limited(build, 2048, "burst", 1, 60000, 800)  # 512-byte blocks: 1 MiB
    run = same(run_app, argv, env={"CUSTREAM_FULL": "block"})
    (line,) = said(run.check())
    assert str(run.trace) in line
    assert run.trace.stat().st_size <= 2048 * 1024
    trace = read(run.trace)
    (cut,) = trace.host("lost", cat="cs_loss")
    assert trace.totals["lost_records"] == cut["args"]["count"] > 0
    assert trace.totals["recorded"] == sum(calls_in(trace).values()) > 0
    made = calls_of(run.stdout)
    assert trace.totals["not_written"] == {"calls": cut["args"]["count"], "gpu_work": cut["args"]["gpu_work"]}
    assert trace.totals["recorded"] + trace.totals["lost_records"] <= sum(made.values())


def test_disk_full_from_the_start(run_app, build):
    """Not even the head of the trace can be written: the program runs, one line says so."""
    run = same(run_app, limited(build, 0, "timeline"))
    (line,) = said(run.check())
    assert str(run.trace) in line and (not run.trace.exists() or run.trace.stat().st_size == 0)


# ---- Drivers and devices ----

def test_no_driver(run_app, tmp_path):
    """Without libcuda the program fails as it always did, and the shim has nothing to say."""
    env = {"LD_LIBRARY_PATH": tmp_path}
    run = same(run_app, "timeline", env=env)
    assert (run.rc, run.stdout, run.stderr) == (3, "no driver\n", "") and not run.trace.exists()
    linked = run_app("timeline_linked", env=env)
    bare = run_app("timeline_linked", env=env, shim=False)
    assert linked.rc == bare.rc == 127 and linked.stderr == bare.stderr and "libcuda.so.1" in bare.stderr


@pytest.mark.parametrize("program", ["stubborn", "timeline", "timeline_linked"])
def test_no_device(run_app, program):
    run = same(run_app, program, env={"CUSTREAM_FAKE_NO_DEVICE": 1})
    assert not said(run)
    if program == "stubborn":
        assert "cuInit 100\n" in run.stdout and "cuStreamCreate 3\n" in run.stdout
        trace = read(run.trace)
        assert calls_in(trace) == calls_of(run.stdout)
        assert {e["args"]["cs.result"] for e in trace.host("cuStreamCreate")} == {"CUDA_ERROR_NOT_INITIALIZED"}
        assert trace.gpus == set() and trace.json["deviceProperties"] == []


def test_older_driver(run_app, build):
    """A driver of CUDA 12.0: what it has is recorded, what it lacks is missing as without the shim."""
    env = {"LD_LIBRARY_PATH": build / "fakecuda12.0"}
    run, trace = both(run_app, "stubborn", env=env)
    assert calls_in(trace) == calls_of(run.check().stdout) and not said(run)
    kernels = {e["args"].get("kernel") for e in trace.host("cuLaunchKernel")}
    assert kernels == {"empty_kernel"}  # learnt from cuModuleGetFunction: cuFuncGetName came with 12.3
    lacking = same(run_app, "arrows", env=env)
    assert (lacking.rc, lacking.stdout.splitlines()[-1]) == (4, "no cuCtxWaitEvent")


def test_older_version_number(run_app):
    run, trace = both(run_app, "stubborn", env={"CUSTREAM_FAKE_DRIVER_VERSION": 12000})
    assert calls_in(trace) == calls_of(run.check().stdout)


# ---- Handles and arguments that no driver takes ----

@pytest.mark.parametrize("env", [{}, {"CUSTREAM_DEFAULT_STREAM": "legacy"}], ids=["recorded", "policy"])
def test_bad_calls(run_app, env):
    """Each of some hundred and fifty calls gets the driver's own answer, also where a policy looks at its stream; the trace has the refused ones."""
    run, trace = both(run_app, "badcalls", env=env)
    answers = [line.split() for line in run.check().stdout.splitlines()]
    refused = sorted(name for name, *rest in answers if len(rest) == 1 and rest[0] != "0" and name in set(calls_in(trace)))
    assert len(refused) > 100 and run.stdout.endswith("outputs untouched 1\n") and not said(run)
    assert sorted(e["name"] for e in trace.host() if "cs.result" in e["args"]) == refused
    assert {e["args"]["origin"] for e in trace.lives if "origin" in e["args"]} <= {"legacy default", "per-thread default"}


FAILING = [
    "cuInit=999", "cuDevicePrimaryCtxRetain=2", "cuCtxSetCurrent=201", "cuCtxCreate_v2=2", "cuCtxPopCurrent_v2=201", "cuModuleLoadData=200",
    "cuModuleGetFunction=500", "cuStreamCreate=2", "cuStreamCreateWithPriority=2", "cuStreamCreate*=999", "cuEventCreate=2", "cuMemAlloc_v2=2",
    "cuLaunchKernel=700", "cuLaunchKernel:2=719", "cuMemcpyHtoDAsync_v2=1", "cuMemcpyDtoH_v2:2=700", "cuMemsetD8Async=400", "cuEventRecord=400",
    "cuEventRecord:2=999", "cuStreamWaitEvent=400", "cuEventSynchronize=700", "cuLaunchHostFunc=400", "cuLaunchHostFunc:2=2",
    "cuStreamAddCallback=801", "cuStreamSynchronize=700", "cuStreamBeginCapture_v2=900", "cuStreamEndCapture=901", "cuGraphInstantiateWithFlags=2",
    "cuGraphLaunch=999", "cuCtxSynchronize=719", "cuStreamDestroy_v2=400", "cuEventDestroy_v2=400", "cuCtxDestroy_v2=201",
    "cuDevicePrimaryCtxRelease_v2=201", "cuModuleUnload=1", "cuDeviceGetName=999,cuDeviceGetAttribute=999", "cuStreamGetCtx=999",
    "cuStreamGetPriority=999", "cuCtxGetCurrent=999", "cuCtxGetDevice=999", "cuStreamIsCapturing=999", "cuFuncGetName=999", "cuGetErrorName=999",
    "cu*=4"]


@pytest.mark.parametrize("rule", FAILING)
def test_failures_on_demand(run_app, rule):
    """Whatever the driver refuses, to the program or to the shim itself, the program gets the driver's answers and its calls are all there."""
    run, trace = both(run_app, "stubborn", env={"CUSTREAM_FAKE_FAIL": rule})
    assert calls_in(trace) == calls_of(run.check().stdout) and not said(run)
    name, code = re.match(r"([^:=]+)(?::\d+)?=(\d+)", rule).groups()
    answered = [line for line in run.stdout.splitlines() if line == f"{name} {code}"]
    shown = [e for e in trace.host(name) if "cs.result" in e["args"]]
    if name in calls_in(trace):
        assert shown and len(shown) >= len(answered), "the rule did nothing"


# ---- Options ----

BAD_OPTIONS = [
    ("CUSTREAM_FULL", "sometimes"), ("CUSTREAM_FULL", "DROP"), ("CUSTREAM_BUFFER", "1"), ("CUSTREAM_BUFFER", "-1"), ("CUSTREAM_BUFFER", "4Mx"),
    ("CUSTREAM_BUFFER", "99999999999999999999999"), ("CUSTREAM_BUFFER", "2G"), ("CUSTREAM_TRACE_MAX", "10"), ("CUSTREAM_TRACE_MAX", "lots"),
    ("CUSTREAM_TRACE_MAX", "1e9"), ("CUSTREAM_GPU", "on"), ("CUSTREAM_LOG", "loud"), ("CUSTREAM_TRCE", "x.json"), ("CUSTREAM_NOTHING_LIKE_IT", "1")]


@pytest.mark.parametrize("name, value", BAD_OPTIONS)
def test_bad_option(run_app, name, value):
    """One line with the variable, the value and what is allowed; the program runs on, recorded with that option's default."""
    run, trace = both(run_app, ["burst", 1, 100], env={name: value})
    (line,) = said(run)
    assert name in line and calls_in(trace) == calls_of(run.check().stdout)
    if name in trace.metadata["options"]:
        assert value[:100] in line and "allowed" in line and trace.metadata["options"][name] != value
    elif name == "CUSTREAM_TRCE":
        assert "CUSTREAM_TRACE" in line


@pytest.mark.parametrize("value", ["trace", "trace.txt", "%x.json", "trace.json.", "off.json/", "OFF"])
def test_bad_path_option(run_app, tmp_path, value):
    """A path that is no trace's name is refused: the trace goes where it goes by default."""
    folder = tmp_path / "here"
    folder.mkdir()
    run = run_app(["burst", 1, 100], env={"CUSTREAM_TRACE": value}, cwd=folder).check()
    (line,) = said(run)
    assert f"CUSTREAM_TRACE={value} " in line
    (path,) = folder.iterdir()
    assert re.fullmatch(r"custream-burst-\d+\.json", path.name) and calls_in(read(path)) == calls_of(run.stdout)


def test_several_bad_options_are_a_line_each(run_app):
    run, _ = both(run_app, ["burst", 1, 10], env={"CUSTREAM_FULL": "x", "CUSTREAM_BUFFER": "y", "CUSTREAM_LOG": "z"})
    assert len(said(run)) == 3 and len({line.split("=")[0] for line in said(run)}) == 3


@pytest.mark.parametrize("name, value", [
    ("CUSTREAM_FULL", ""), ("CUSTREAM_BUFFER", ""), ("CUSTREAM_BUFFER", "64k"), ("CUSTREAM_TRACE_MAX", "1048576"), ("CUSTREAM_GPU", "off"),  # a value among others
    ("CUSTREAM_LOG", "error"), ("CUSTREAM_FAKE_DEVICES", "1")])
def test_good_options_are_silent(run_app, name, value):
    run, trace = both(run_app, ["burst", 1, 100], env={name: value})
    assert not said(run) and calls_in(trace) == calls_of(run.check().stdout)


def test_errors_only(run_app, tmp_path):
    """CUSTREAM_LOG=error keeps warnings back, not errors."""
    quiet, _ = both(run_app, ["burst", 1, 10], env={"CUSTREAM_LOG": "error", "CUSTREAM_TRCE": "1"})
    assert not said(quiet)
    loud = run_app(["burst", 1, 10], env={"CUSTREAM_LOG": "error", "CUSTREAM_TRACE": tmp_path / "nowhere" / "t.json"}).check()
    assert len(said(loud)) == 1 and notes_of(loud.stderr) == {}
