"""The wheel: what it has, that it is for old systems, that it needs the C library alone, and its Python module."""
import contextlib
import gzip
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import urllib.parse
import zipfile

import pytest

from tests import wheelroot
from tests.cases.conftest import app_environment
from tests.patience import patience
from tests.trace import Trace

MODULE = """
import custream, ctypes, threading
assert custream.is_preloaded() is %(preloaded)s
assert custream.trace_path() is None
cu = ctypes.CDLL("libcuda.so.1")
with custream.range("outer"):
    cu.cuInit(0)
    device, context = ctypes.c_int(), ctypes.c_void_p()
    cu.cuDeviceGet(ctypes.byref(device), 0)
    cu.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    again = custream.range("again")
    with again, again:
        cu.cuCtxSetCurrent(context)
    custream.mark("here \\0 \\ud800 ü")

    @custream.range("decorated")
    def decorated(a, b=2):
        "its text"
        cu.cuCtxSynchronize()
        return a + b
    assert decorated(1, b=3) == 4 and decorated.__name__ == "decorated" and decorated.__doc__ == "its text"
    try:
        with custream.range("left by an error"):
            raise KeyError
    except KeyError:
        pass
    for wrong in (lambda: custream.range(3), lambda: custream.mark(None)):
        try:
            wrong()
        except TypeError as error:
            assert "str" in str(error)
        else:
            raise AssertionError
print(custream.stop(), custream.start(), custream.flush(), custream.trace_path(), custream.stats()["streams"])
"""


@pytest.fixture(scope="session")
def wheel(build):
    return wheelroot.wheel_of(build)


@pytest.fixture(scope="session")
def package(wheel, tmp_path_factory):
    """The folder that holds the package and its metadata: on PYTHONPATH it is as good as installed."""
    return wheelroot.unpack(wheel, tmp_path_factory.mktemp("package"))


def python(build, package, trace, *argv, preload=True, env=None):
    child = app_environment(build, trace, None, env or {})
    child["PYTHONPATH"] = str(package)
    words = [sys.executable, *map(str, argv)]
    if preload:
        words = [str(package / "custream/native/custream"), "run", "--", *words]
    return subprocess.run(words, env=child, capture_output=True, text=True, check=False, timeout=60)


def test_is_for_every_python_and_glibc_2_28(build, wheel):
    assert re.fullmatch(r"custream-[\d.]+-py3-none-manylinux_2_28_x86_64\.whl", wheel.name)
    said = subprocess.run([build / "wheel-venv/bin/python", "-m", "auditwheel", "show", wheel], capture_output=True, text=True, check=True).stdout
    tag = re.search(r'platform tag:\s+"manylinux_2_(\d+)_x86_64"', said)
    assert tag and int(tag[1]) <= 28, said


def test_has_what_the_products_need(wheel):
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
    native = {name.rpartition("/")[2] for name in names if name.startswith("custream/native/")} - {""}
    assert {"custream", "custream.h", "libcustream_shim.so", "libcustream_shim_dlsym.so", "libcustream.so.0", "libcjson.so.1", "libz.so.1", "libmicrohttpd.so.12"} <= native
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    carried = {name.rpartition("/")[2] for name in names if name.startswith("custream/native/licenses/")} - {""}
    assert len(carried) >= 3 and any("cjson" in name for name in carried) and any("yyjson" in name for name in carried)


def test_carried_libraries_serve_custream_alone(package):
    """A program that needs libz.so.1 gets its own: ours has another name for the loader."""
    for library in (package / "custream/native").glob("lib[!c]*.so.*"):
        said = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
        assert re.search(r"SONAME.*\[lib\w+-custream\.so", said), library


@pytest.fixture(scope="session")
def aarch64_package(build, tmp_path_factory):
    return wheelroot.unpack(wheelroot.wheel_of(build / "aarch64"), tmp_path_factory.mktemp("aarch64"))


def test_aarch64_wheel_is_the_same_for_another_machine(build, wheel, aarch64_package):
    other = wheelroot.wheel_of(build / "aarch64")
    assert other.name == wheel.name.replace("x86_64", "aarch64")
    with zipfile.ZipFile(wheel) as file, zipfile.ZipFile(other) as file_of_other:
        assert file_of_other.namelist() == file.namelist()
        (tag,) = re.findall(r"(?m)^Tag: (.*)$", file_of_other.read(next(name for name in file_of_other.namelist() if name.endswith("/WHEEL"))).decode())
    assert tag == "py3-none-manylinux_2_28_aarch64"
    native = aarch64_package / "custream/native"
    for path in (native / "custream", *native.glob("*.so*")):
        said = subprocess.run(["readelf", "-hVW", path], capture_output=True, text=True, check=True).stdout
        assert "AArch64" in said
        assert max(tuple(map(int, version.split("."))) for version in re.findall(r"GLIBC_(\d[.\d]*)", said)) <= (2, 28), path


@pytest.mark.parametrize("argv", [["check", "{trace}"], ["report", "{trace}"], ["inspect", "{native}/libcustream_shim.so"], ["options"]], ids=lambda argv: argv[0])
def test_aarch64_command_says_the_same(root, package, aarch64_package, qemu, argv):
    native = aarch64_package / "custream/native"
    trace = root / "traces/demo-h200.json.gz"
    words = [word.format(trace=trace, native=native) for word in argv]
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("CUSTREAM_", "LD_", "QEMU_"))}
    here = subprocess.run([package / "custream/native/custream", *words], env=clean, capture_output=True, text=True, check=True)
    there = subprocess.run([*qemu, native / "custream", *words], env=clean, capture_output=True, text=True, check=False)
    assert (there.returncode, there.stdout, there.stderr) == (0, here.stdout, here.stderr)


@pytest.fixture(scope="session")
def small_root(build, wheel, tmp_path_factory):
    return wheelroot.Root(tmp_path_factory.mktemp("root"), build, wheel)


def test_policies_gz_and_report_where_there_is_libc_alone(small_root):
    policy = json.dumps({"rules": [{"match": {"library": "demo"}, "set": {"name": "ruled"}}]})
    done = small_root.run("/app/demo", LD_PRELOAD="/wheel/custream/native/libcustream_shim.so", CUSTREAM_TRACE="/tmp/t.json.gz", CUSTREAM_POLICY=policy)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    trace = Trace(small_root.folder / "tmp/t.json.gz")
    assert any("ruled" in name for name in map(str, trace.lanes.values())), "the policy was in force"
    command = "/wheel/custream/native/custream"
    started = small_root.run(command, "run", "--policy", policy, "--trace=/tmp/u.json.gz", "/app/demo")
    assert started.returncode == 0 and Trace(small_root.folder / "tmp/u.json.gz").lanes == trace.lanes, started.stderr
    checked = small_root.run(command, "check", "/tmp/t.json.gz")
    assert checked.returncode == 0 and checked.stdout.startswith("/tmp/t.json.gz: ok: "), checked.stderr
    reported = small_root.run(command, "report", "/tmp/t.json.gz")
    assert reported.returncode == 0 and reported.stdout.startswith("demo "), reported.stderr
    inspected = small_root.run(command, "inspect", "/app/demo")
    assert inspected.returncode == 0 and "custream sees" in inspected.stdout, inspected.stderr


def test_run_finds_the_library_where_proc_is_not_there(small_root, monkeypatch):
    monkeypatch.setattr(small_root, "has_proc", False)
    done = small_root.run("/wheel/custream/native/custream", "run", "--quiet", "--trace=/tmp/v.json", "/app/demo",
                          LD_LIBRARY_PATH="/app:/wheel/custream/native")  # the loader needs /proc for $ORIGIN
    assert (done.returncode, done.stderr) == (0, "") and Trace(small_root.folder / "tmp/v.json").lanes


def test_open_where_there_is_libc_alone(root, small_root):
    """The page's server comes with the wheel, and hands the trace out once."""
    sample = root / "traces/demo-h200.json.gz"
    shutil.copy(sample, small_root.folder / "tmp/sample.json.gz")
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with small_root.start("/wheel/custream/native/custream", "open", "--print-url", f"--port={port}", "/tmp/sample.json.gz") as server:
        try:
            url = urllib.parse.urlsplit(urllib.parse.unquote(re.search(r"url=([^&]*)", server.stdout.readline())[1]))
            with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=patience(30))) as connection:
                connection.request("GET", url.path, headers={"Origin": "https://ui.perfetto.dev"})
                answer = connection.getresponse()
                assert answer.status == 200
                shown = json.loads(gzip.decompress(answer.read()))["traceEvents"]
                assert "idle, by cause" in {row["args"]["name"] for row in shown if row["name"] == "thread_name"}
                assert len(shown) > len(json.loads(gzip.decompress(sample.read_bytes()))["traceEvents"])
            assert server.wait(timeout=30) == 0
        finally:
            server.kill()


def test_the_module_under_custream(build, package, tmp_path):
    done = python(build, package, tmp_path / "t.json", "-c", MODULE % {"preloaded": True})
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"True True True {tmp_path / 't.json'} 0\n"
    trace = Trace(tmp_path / "t.json")
    ranges = [e["name"] for e in trace.events if e.get("cat") == "user_annotation" and e["ph"] == "X"]
    assert sorted(ranges) == ["again", "again", "decorated", "left by an error", "outer"]
    assert [e["name"] for e in trace.events if e.get("cat") == "user_annotation" and e["ph"] == "i"] == ["here ? ? ü"]


def test_the_module_without_custream_is_harmless(build, package, tmp_path):
    done = python(build, package, tmp_path / "t.json", "-c", MODULE % {"preloaded": False}, preload=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "False False False None 0\n", "")
    assert list(tmp_path.iterdir()) == []


def test_the_module_records_in_a_fork_s_child(build, package, tmp_path):
    program = """
import custream, ctypes, os
if os.fork():
    os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
cu = ctypes.CDLL("libcuda.so.1")
with custream.range("child"):
    cu.cuInit(0)
    cu.cuCtxSynchronize()
custream.flush()
print(custream.trace_path())
"""
    done = python(build, package, tmp_path / "t.json", "-c", program)
    assert (done.returncode, done.stdout) == (0, f"{tmp_path / 't.json'}\n"), done.stderr


@pytest.mark.parametrize("kind,body", [("async def", "pass"), ("def", "yield"), ("async def", "yield")])
def test_a_range_does_not_decorate_what_can_be_left(build, package, tmp_path, kind, body):
    done = python(build, package, tmp_path / "t.json", "-c", f"import custream\n@custream.range('a')\n{kind} f():\n {body}", preload=False)
    assert done.returncode == 1 and "TypeError: custream.range: f can be left in the middle" in done.stderr


def test_python_m_custream_is_the_command(build, package, tmp_path):
    for words in (["--version"], ["check", "/nowhere"], ["run", "--trace=t.txt", "true"]):
        of_module = python(build, package, tmp_path, "-m", "custream", *words, preload=False)
        direct = subprocess.run([build / "custream", *words], capture_output=True, text=True, check=False)
        assert (of_module.returncode, of_module.stdout, of_module.stderr) == (direct.returncode, direct.stdout, direct.stderr)
    done = python(build, package, tmp_path / "t.json", "-m", "custream", "run", "--", sys.executable, "-c", "import custream; print(custream.is_preloaded())", preload=False)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def test_a_missing_command_is_one_line(build, package, tmp_path):
    other = tmp_path / "other"
    subprocess.run(["cp", "-r", package, other], check=True)
    (other / "custream/native/custream").unlink()
    done = python(build, other, tmp_path / "t.json", "-m", "custream", "check", preload=False)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "cannot be started: No such file or directory" in done.stderr


def test_installed_by_pip_in_a_clean_venv(build, wheel, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    (site,) = (tmp_path / "venv/lib").glob("python*/site-packages")
    subprocess.run([sys.executable, "-m", "pip", "--python", tmp_path / "venv/bin/python", "install", "--quiet", "--no-index", "--no-deps", wheel],
                   check=True, capture_output=True, env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"})
    env = app_environment(build, tmp_path / "t.json", None, {})
    done = subprocess.run([tmp_path / "venv/bin/custream", "run", "--", build / "tests/demo"], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and Trace(tmp_path / "t.json").verdict == "ok", done.stderr
    assert (site / "custream/native/libcustream_shim.so").exists()
    done = subprocess.run([tmp_path / "venv/bin/python", "-c", "import custream; print(custream.__version__)"], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == (build.parent / "VERSION").read_text()
