"""Fixtures of the test cases: the build, programs run on the simulated GPU with and without the shim, traces as data, Perfetto."""
import contextlib
import dataclasses
import fcntl
import gc
import os
import pathlib
import pickle
import shutil
import signal
import subprocess
import sys

import pytest

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy's threads spin while they wait; programs of the tests have it from here

from tests import BUILD, ROOT, variants  # noqa: E402
from tests.patience import be_patient, patience  # noqa: E402
from tests.perfetto import TraceProcessor  # noqa: E402
from tests.trace import Trace  # noqa: E402

be_patient()

# What starts the tests in the background, such as nohup, may ignore these; a program of the tests would inherit that.
for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
    signal.signal(number, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

# A trace is hundreds of thousands of objects that live together, and no garbage: looking for some among them so often took half of the time to read it.
gc.set_threshold(100_000, 20, 100)


def pytest_collection_finish():
    """Modules and cases live to the end: the garbage collector need not look through them again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def root():
    """The top of the source tree."""
    return ROOT


@pytest.fixture(scope="session")
def build():
    """The build folder. What a test needs from it is built by `make` before pytest starts."""
    return BUILD


@pytest.fixture(scope="session")
def make_install():
    """make_install("PREFIX=..."): runs `make install`. The workers of pytest share one tree, so only one of them runs make in it at a time."""
    def install(*words, env=None):
        with open(ROOT / "Makefile", encoding="utf-8") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            done = subprocess.run(["make", "-s", "install", *words], cwd=ROOT, env={**os.environ, "MAKEFLAGS": "", **(env or {})}, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done
    return install


@pytest.fixture(scope="session")
def once(tmp_path_factory):
    """once(name, make) is what make(folder) returned, which one of the workers called for all of them."""
    def get(name, make):
        base = tmp_path_factory.getbasetemp()
        folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / f"once-{name}"
        folder.mkdir(exist_ok=True)
        with open(folder / "turn", "w", encoding="utf-8") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            if not (folder / "made").exists():
                made = pickle.dumps(make(folder))
                (folder / "made").write_bytes(made)
        return pickle.loads((folder / "made").read_bytes())
    return get


@pytest.fixture(scope="session")
def cuda_include():
    """The folder with the cuda.h that the build uses."""
    printed = subprocess.run(["make", "-s", "--no-print-directory", "print-cuda-include"], cwd=ROOT, capture_output=True, text=True, check=True)
    return ROOT / printed.stdout.strip()


@pytest.fixture(scope="session")
def real_cudart():
    """NVIDIA's libcudart.so.13, from the package that build/venv has."""
    (found,) = pathlib.Path(sys.prefix).glob("lib/python*/site-packages/nvidia/*/lib/libcudart.so.13")
    return found


@pytest.fixture(scope="session")
def aarch64_build(build):
    """The products for aarch64, and the programs that run under qemu: `make other-compilers`."""
    return build / "aarch64"


@pytest.fixture(scope="session")
def qemu():
    """What an aarch64 program is started with."""
    return [shutil.which("qemu-aarch64") or "qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"]


@pytest.fixture(scope="session")
def trace_processor():
    """Perfetto's trace processor, version 52."""
    with TraceProcessor() as processor:
        yield processor


@pytest.fixture
def load_trace():
    """Reads a trace strictly, once `custream check` has found it good: load_trace(path) is a tests.trace.Trace."""
    return Trace


@dataclasses.dataclass
class Run:
    """What a program did. `trace` is where its trace belongs, whether or not it wrote one."""
    argv: list
    rc: int
    stdout: str
    stderr: str
    trace: pathlib.Path

    def check(self):
        """Fails, showing the output, unless the program ended well."""
        assert self.rc == 0, f"{self.argv} ended with {self.rc}\n--- stdout\n{self.stdout}\n--- stderr\n{self.stderr}"
        return self

    def load(self):
        return Trace(self.trace)


def app_environment(build, trace, shim, env):
    """The child's environment: the simulated GPU, the shim if wanted, and nothing of custream's that pytest itself was started with."""
    child = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD" and not k.startswith("CUSTREAM_")}
    child["LD_LIBRARY_PATH"] = str(build / "fakecuda")
    child["CUSTREAM_TRACE"] = str(trace)
    if shim:
        child["LD_PRELOAD"] = str(build / "libcustream_shim.so" if shim is True else shim)
    for name, value in (env or {}).items():
        if value is None:
            child.pop(name, None)
        else:
            child[name] = str(value)
    return child


@pytest.fixture
def run_app(build, tmp_path):
    """Runs a program on the simulated GPU: run_app([name, argument...], shim=True, env={}, timeout=60) is a Run.

    A name without a slash is a program of build/tests. `shim` is True, False or the path of another library to preload; a variable of `env`
    that is None is taken out of the environment. The trace goes to a file of its own in tmp_path, trace-0.json for the first run.
    """
    runs = []

    def run(argv, shim=True, env=None, timeout=60, trace=None, cwd=None):
        argv = [str(a) for a in ([argv] if isinstance(argv, str) else argv)]
        if "/" not in argv[0]:
            argv[0] = str(build / "tests" / argv[0])
        trace = pathlib.Path(trace) if trace else tmp_path / f"trace-{len(runs)}.json"
        done = subprocess.run(argv, env=app_environment(build, trace, shim, env), cwd=cwd or tmp_path, timeout=timeout, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace", check=False)
        runs.append(Run(argv, done.returncode, done.stdout, done.stderr, trace))
        return runs[-1]
    return run


@pytest.fixture(autouse=True)
def no_rings_left(request):
    """What killed processes of a test left in memory goes with the test: its traces stay for a while, so that no process may remove it."""
    of = os.fsencode(request.getfixturevalue("tmp_path")) + b"/" if "tmp_path" in request.fixturenames else None
    yield
    for name in os.listdir("/dev/shm") if of else ():
        if name.startswith("custream-rings-"):
            with contextlib.suppress(OSError), open(f"/dev/shm/{name}", "rb") as file:
                if of in file.read(8192):
                    os.unlink(file.name)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    """The time limit of each test is one for hangs: on a slow machine it is longer."""
    marker = item.get_closest_marker("timeout")
    item.add_marker(pytest.mark.timeout(patience(marker.args[0] if marker else float(item.config.getini("timeout")))), append=False)
    return (yield)


def pytest_collection_modifyitems(config, items):
    left_out = {item for item in items if variants.excluded(item.nodeid)}
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


if variants.NAME in variants.SANITIZERS:
    @pytest.fixture(scope="session")
    def reports(tmp_path_factory):
        return variants.set_up(tmp_path_factory.mktemp("sanitizer"))

    @pytest.fixture(autouse=True)
    def no_reports(reports):
        """Fails a test in which the sanitizer reported something."""
        yield
        text = variants.taken(reports)
        assert not text, text
