"""The pytest plug-in of the wheel, in a pytest of its own: a trace for each test, and tests that the report's rules fail."""
import re
import subprocess
import sys

import pytest

from tests import wheelroot
from tests.cases.conftest import app_environment
from tests.trace import Trace

# Programs reach CUDA through ctypes: nothing else is needed.
CUDA = """
import ctypes
cu = ctypes.CDLL("libcuda.so.1")

def work(count, default=True):
    device, context, memory, stream = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    calls = [cu.cuInit(0), cu.cuDeviceGet(ctypes.byref(device), 0), cu.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), cu.cuCtxSetCurrent(context),
             cu.cuMemAlloc_v2(ctypes.byref(memory), 1 << 20), 0 if default else cu.cuStreamCreate(ctypes.byref(stream), 1)]
    calls += [cu.cuMemsetD8Async(memory, 1, 1 << 20, stream) for _ in range(count)]
    assert not any(calls + [cu.cuCtxSynchronize()])
"""

TESTS = """
import os, pytest
from cudaprogram import work

@pytest.fixture
def prepared():
    work(7)

def test_nothing(): pass
def test_two(prepared): work(2, default=False)
@pytest.mark.custream(fail_if="default_stream_work > 0")
def test_default(): work(3)
@pytest.mark.custream(fail_if="default_stream_work > 0")
def test_own(): work(4, default=False)
@pytest.mark.custream(fail_if=["default_stream_work > 0", "calls > 1"])
def test_without_cuda(): pass
@pytest.mark.parametrize("text", ["a/b ü", "a b ü"])
@pytest.mark.custream
def test_name(text): work(1)
class TestGroup:
    @pytest.mark.custream(fail_if="calls > 0")
    def test_error_of_its_own(self):
        work(1)
        raise KeyError("its own")
def test_preloaded(): assert "libcustream_shim.so" in os.environ["LD_PRELOAD"]
"""


@pytest.fixture(scope="session")
def package(build, tmp_path_factory):
    return wheelroot.unpack(wheelroot.wheel_of(build), tmp_path_factory.mktemp("package"))


@pytest.fixture
def run_pytest(build, package, tmp_path):
    """run_pytest(tests, *options): pytest on a file of tests, started as a user starts it, in tmp_path."""
    def run(tests, *options, before=(), env=None, found=False):
        (tmp_path / "cudaprogram.py").write_text(CUDA)
        (tmp_path / "test_it.py").write_text(tests)
        child = app_environment(build, tmp_path / "unused.json", None, {})
        del child["CUSTREAM_TRACE"]
        child |= {"PYTHONPATH": f"{package}:{tmp_path}", **(env or {})}
        for name in [n for n in child if n.startswith("PYTEST_")]:
            del child[name]
        plugins = []
        if not found:  # by its name, without the plug-ins that other packages have for every pytest
            child["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
            plugins = ["-p", "custream.pytest_plugin", "-p", "xdist"]
        words = [*before, sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *plugins, *options, "test_it.py"]
        return subprocess.run([str(word) for word in words], cwd=tmp_path, env=child, capture_output=True, text=True, check=False, timeout=90)
    return run


def memsets(path):
    trace = Trace(path)
    assert re.fullmatch(r"ok(, a cut of \d+\.\d{3} s out of a trace)?", trace.verdict)
    return trace.count()["cuMemsetD8Async"], len([row for row in trace.events if row.get("cat") == "gpu_memset"])


@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
def test_a_trace_for_each_test_and_conditions(run_pytest, tmp_path, workers):
    done = run_pytest(TESTS, "--custream", *workers, found=not workers)
    assert done.returncode == 1 and re.search(r"2 failed, 7 passed", done.stdout), done.stdout + done.stderr
    assert "custream report: --fail-if='default_stream_work > 0' holds: default_stream_work is 3\nIts trace: " in done.stdout
    assert "KeyError: 'its own'" in done.stdout and "calls > 0" not in done.stdout.split("short test summary")[0].split("KeyError")[1]
    folder = tmp_path / "custream-traces"
    assert f"custream: 6 traces of tests in {folder}" in done.stdout
    traces = {path.name: memsets(path) for path in folder.glob("test_it.*.json")}
    names = {"test_it.test_two.json": 2, "test_it.test_default.json": 3, "test_it.test_own.json": 4, "test_it.TestGroup.test_error_of_its_own.json": 1}
    both = {name for name in traces if name.startswith("test_it.test_name")}
    assert len(both) == 2 and {name: traces[name] for name in names} == {name: (count, count) for name, count in names.items()}
    assert set(traces) == set(names) | both and all(traces[name] == (1, 1) for name in both)
    assert len(list(folder.glob("process-*.json"))) == (2 if workers else 1)


def test_conditions_that_nobody_judges_are_said(run_pytest, tmp_path):
    done = run_pytest(TESTS.replace("def test_preloaded", "def no_test"))
    assert "1 failed, 7 passed" in done.stdout
    assert "custream: 4 tests have conditions that nobody judged: pytest --custream\n" in done.stdout
    assert not list(tmp_path.glob("custream*"))


def test_without_cuda_there_is_no_trace(run_pytest, tmp_path):
    done = run_pytest("def test_a(): pass\n", "--custream", "--custream-dir=there")
    assert done.returncode == 0 and "custream: no test called CUDA: no trace\n" in done.stdout, done.stdout
    assert list((tmp_path / "there").iterdir()) == []


@pytest.mark.parametrize("name", ["mine.json", "mine.json.gz", "mine.pftrace", "mine.pftrace.gz"])
def test_under_custream_run_the_trace_is_the_user_s(run_pytest, package, tmp_path, name):
    done = run_pytest(TESTS, "--custream", before=[package / "custream/native/custream", "run", "-o", tmp_path / name, "--"])
    assert "2 failed, 7 passed" in done.stdout, done.stdout
    if ".pftrace" in name:
        subprocess.run([package / "custream/native/custream", "convert", tmp_path / name, tmp_path / "whole.json"], check=True)
    assert memsets(tmp_path / ("whole.json" if ".pftrace" in name else name))[0] == 7 + 2 + 3 + 4 + 1 + 1 + 1
    assert memsets(tmp_path / "custream-traces/test_it.test_own.json") == (4, 4)


def test_parts_are_not_cut_and_that_is_said(run_pytest, tmp_path):
    done = run_pytest("from cudaprogram import work\ndef test_a(): work(1)\n", "--custream", env={"CUSTREAM_TRACE_MAX": "1M,rotate"})
    assert done.returncode == 0 and "custream: tests without a trace of their own: " in done.stdout, done.stdout
    assert "rotates: take CUSTREAM_TRACE_MAX without rotate\n" in done.stdout
    assert not list((tmp_path / "custream-traces").glob("test_it*"))


UNJUDGED = """
import ctypes, os, pytest
from cudaprogram import work

@pytest.mark.custream(fail_if="calls > 0")
def test_it(): work(1)
"""


@pytest.mark.parametrize("env, before, why", [
    ({"CUSTREAM_TRACE_MAX": "1M,rotate"}, "", "rotates: take CUSTREAM_TRACE_MAX without rotate"),
    ({"CUSTREAM_CTL": "off"}, "", r"the process cannot be asked for its trace \(CUSTREAM_CTL=off\)"),
    ({"CUSTREAM_TRACE": "off"}, "", r"nothing is recorded \(CUSTREAM_TRACE=off\)"),
    ({}, "    work(1); import custream; custream.stop()\n", r"recording is off \(custream ctl off\)"),
    ({"CUSTREAM_TRACE": "t.json"}, "    work(1); import custream; custream.flush(); open('t.json', 'w').write('nothing')\n", r"recording is off \(the trace is full\)"),
    ({"CUSTREAM_TRACE": "t.pftrace"}, "    work(1); import custream; custream.flush(); os.unlink('t.pftrace')\n", ".*t.pftrace: No such file or directory"),
], ids=["rotates", "ctl", "off", "stopped", "damaged", "deleted"])
def test_conditions_that_cannot_be_judged_fail_the_test(run_pytest, env, before, why):
    fixture = f"@pytest.fixture(autouse=True)\ndef before():\n{before}    yield\n" if before else ""
    done = run_pytest(UNJUDGED + fixture, "--custream", env=env)
    assert done.returncode == 1 and re.search(f"^custream: the conditions of this test cannot be judged: .*{why}$", done.stdout, re.M), done.stdout + done.stderr


@pytest.mark.parametrize("env, body, why", [
    ({"CUSTREAM_WINDOW": "profiler"}, "work(3)", r"recording is off \(before cuProfilerStart\)"),
    ({"CUSTREAM_WINDOW": "ctl"}, "work(3)", r"recording is off \(nobody has asked for it: CUSTREAM_WINDOW=ctl\)"),
    ({"CUSTREAM_WINDOW": "delay=3600"}, "work(3)", r"recording is off \(before the delay was over\)"),
    ({"CUSTREAM_WINDOW": "profiler", "CUSTREAM_CTL": "off"}, "work(3)", r"the process cannot be asked for its trace \(CUSTREAM_CTL=off\)"),
    ({}, "work(1); custream.stop(); work(5); custream.start()", r"recording was off in part of it \(custream ctl off\)"),
    ({}, "work(1); custream.stop(); work(5)", r"recording is off \(custream ctl off\)"),
    ({"CUSTREAM_WINDOW": "ctl"}, "work(1); custream.start(); work(5)", r"recording was off in part of it \(nobody has asked for it: CUSTREAM_WINDOW=ctl\)"),
    ({"CUSTREAM_CTL": "off"}, "work(1); custream.stop(); work(5)", r"the process cannot be asked for its trace \(CUSTREAM_CTL=off\)"),
], ids=["profiler", "ctl", "delay", "unasked", "gap", "end", "begin", "end unasked"])
def test_conditions_of_calls_that_were_not_recorded(run_pytest, env, body, why):
    """Nobody knows whether they hold. Without conditions the test passes, and the last lines say why it has no trace."""
    tests = f"import custream, pytest\nfrom cudaprogram import work\n@pytest.mark.custream(fail_if='calls > 100')\ndef test_a(): {body}\n"
    done = run_pytest(tests, "--custream", env=env)
    assert done.returncode == 1 and re.search(f"^custream: the conditions of this test cannot be judged: .*{why}$", done.stdout, re.M), done.stdout + done.stderr
    done = run_pytest(tests.replace("@pytest.mark.custream(fail_if='calls > 100')", ""), "--custream", env=env)
    assert done.returncode == 0 and re.search(f"^custream: tests without a trace of their own: .*{why}$", done.stdout, re.M), done.stdout + done.stderr
    assert "no test called CUDA" not in done.stdout


@pytest.mark.parametrize("env", [{"CUSTREAM_WINDOW": "ctl"}, {"CUSTREAM_CTL": "off"}], ids=["ctl", "off"])
def test_conditions_of_no_cuda_hold_for_nothing(run_pytest, env):
    """No process that calls no CUDA listens: so it is known that there was nothing."""
    done = run_pytest("import pytest\n@pytest.mark.custream(fail_if='calls > 0')\ndef test_a(): pass\n", "--custream", env=env)
    assert done.returncode == 0 and "custream: no test called CUDA: no trace\n" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["pftrace", "json.gz"])
def test_conditions_are_judged_of_any_format(run_pytest, name):
    done = run_pytest(UNJUDGED, "--custream", env={"CUSTREAM_TRACE": f"t.{name}"})
    assert done.returncode == 1 and "--fail-if='calls > 0' holds" in done.stdout, done.stdout


@pytest.mark.parametrize("name", ["b" * 3000, "\\udcff", "a\\tb"], ids=["long", "surrogate", "tab"])
def test_conditions_are_judged_whatever_a_test_is_called(run_pytest, name):
    tests = UNJUDGED.replace("@pytest.mark.custream", f"@pytest.mark.parametrize('n', [pytest.param(1, id='{name}')])\n@pytest.mark.custream").replace("test_it()", "test_it(n)")
    done = run_pytest(tests, "--custream")
    assert done.returncode == 1 and "--fail-if='calls > 0' holds" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("mark", ["'calls > 0'", "fail_when='calls > 0'", "fail_if=3", "fail_if=[3]"])
def test_a_wrong_mark_is_one_line_before_any_test(run_pytest, mark):
    done = run_pytest(f"import pytest\n@pytest.mark.custream({mark})\ndef test_a(): print('ran')\n")
    assert done.returncode == 4
    assert "ERROR: test_it.py::test_a: @pytest.mark.custream takes fail_if=, a condition or a list of them, and nothing else\n" in done.stdout + done.stderr


def test_a_wrong_condition_fails_the_test_with_the_report_s_line(run_pytest):
    done = run_pytest("import pytest, cudaprogram\n@pytest.mark.custream(fail_if='nonsense > 1')\ndef test_a(): cudaprogram.work(1)\n", "--custream")
    assert done.returncode == 1 and "custream report: --fail-if='nonsense > 1': no metric 'nonsense'; allowed: " in done.stdout


def test_a_folder_that_cannot_be_made_is_one_line(run_pytest, tmp_path):
    (tmp_path / "file").write_text("")
    done = run_pytest(TESTS, "--custream", f"--custream-dir={tmp_path}/file/there")
    assert done.returncode == 4 and f"ERROR: --custream: {tmp_path}/file/there: Not a directory" in done.stderr


def test_other_options_and_the_exit_status_stay(run_pytest, tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --custream --junitxml=out.xml\n")
    done = run_pytest(TESTS, "-k", "own or nothing", "-q", "-s")
    assert done.returncode == 1, "test_error_of_its_own is among them"
    assert "custream-traces/test_it.test_own.json" in (tmp_path / "out.xml").read_text()
