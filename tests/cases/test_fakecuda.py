"""The simulated GPU keeps CUDA's semantics: its own test programs, run without the shim."""

import os
import re
import shutil
import signal
import subprocess
import sys

import pytest

from tests import BUILD

# program, its arguments, the library's folder, settings
RUNS = [
    ("streams", [], "fakecuda", {}),
    ("capture", [], "fakecuda", {}),
    ("memory", [], "fakecuda", {}),
    ("memory", [], "fakecuda", {"CUSTREAM_FAKE_COPY_NS": "30000"}),
    ("runtime", [], "fakecuda", {}),
    ("runtime", [], "fakecuda", {"CUSTREAM_FAKE_DEVICES": "2"}),
    ("symbols", [], "fakecuda", {}),
    ("symbols", ["12000", "visible"], "fakecuda", {"CUSTREAM_FAKE_DRIVER_VERSION": "12000"}),
    ("symbols", ["12000", "hidden"], "fakecuda12.0", {}),
    ("journal", [], "fakecuda", {}),
    ("contexts", ["contexts"], "fakecuda", {"CUSTREAM_FAKE_DEVICES": "2"}),
    ("contexts", ["reset"], "fakecuda", {}),
    ("contexts", ["fork"], "fakecuda", {}),
    ("contexts", ["failures"], "fakecuda", {"CUSTREAM_FAKE_FAIL": "cuLaunchKernel:3=700,cuStreamCreate*=2"}),
    ("contexts", ["no-device"], "fakecuda", {"CUSTREAM_FAKE_NO_DEVICE": "1"}),
    ("cupti", [], "fakecuda", {}),
    ("cupti", [], "fakecuda", {"CUSTREAM_FAKE_COPY_NS": "30000"}),
    ("cupti_buffers", [], "fakecuda", {}),
    ("cupti_graph", [], "fakecuda", {"CUSTREAM_FAKE_DEVICES": "2"}),
    ("cupti_settings", [], "fakecuda", {}),
    ("cupti_settings", ["zero"], "fakecuda", {"CUSTREAM_FAKE_CUPTI_ZERO": "4"}),
    ("cupti_settings", ["lose"], "fakecuda", {"CUSTREAM_FAKE_CUPTI_LOSE": "8"}),
    ("cupti_settings", ["early"], "fakecuda", {"CUSTREAM_FAKE_CUPTI_EARLY": "500000"}),
    ("cupti_settings", ["late"], "fakecuda", {"CUSTREAM_FAKE_CUPTI_LATE": "500000"}),
    ("cupti_settings", ["shuffle"], "fakecuda", {"CUSTREAM_FAKE_CUPTI_SHUFFLE": "1"}),
    ("cupti_settings", ["overlap"], "fakecuda", {"CUSTREAM_FAKE_CUPTI_OVERLAP": "1"}),
    ("cupti_settings", ["version"], "fakecuda", {"CUSTREAM_FAKE_CUPTI_VERSION": "120050"}),
    ("cupti_settings", ["fail"], "fakecuda", {"CUSTREAM_FAKE_CUPTI": "cuptiActivityEnable:35:3,cuptiSubscribe:39"}),
]


def run(program, arguments=(), library="fakecuda", settings=None):
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD" and not k.startswith("CUSTREAM_")}
    environment.update(settings or {}, LD_LIBRARY_PATH=str(BUILD / library))
    return subprocess.run([BUILD / "tests" / f"fakecuda_{program}", *arguments], env=environment, capture_output=True, text=True, timeout=90)


@pytest.mark.parametrize("program,arguments,library,settings", RUNS, ids=lambda v: "-".join(v) if isinstance(v, list) else None)
def test_semantics(program, arguments, library, settings):
    done = run(program, arguments, library, settings)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("mode", ["early-singles", "late-singles", "singles-come-back", "off-at-the-first-context", "driver-off-before-the-first-context",
                                  "singles-that-are-lost", "runtime-off", "both-after-all-off", "early-driver", "late-driver", "late-runtime",
                                  "late-both", "singles-then-driver", "singles-then-both"])
def test_cupti_beside_the_runtime(mode):
    done = run("cupti_runtime", [mode])
    assert done.returncode == 0 and mode in run("cupti_runtime").stdout.split(), done.stderr


def test_null_stream():
    """What calls on the default stream wait for, as a real GPU does: the same program runs there."""
    done = subprocess.run([BUILD / "tests" / "null_stream", "gates"], env={"LD_LIBRARY_PATH": str(BUILD / "fakecuda")}, capture_output=True, text=True, timeout=90)
    assert done.returncode == 0 and done.stdout.endswith("14 cases, 0 wrong\n"), done.stdout + done.stderr


def test_counts(tmp_path):
    """CUSTREAM_FAKE_COUNTS tells what was called, name by name: what a test compares a trace with."""
    out = tmp_path / "counts"
    assert run("streams", settings={"CUSTREAM_FAKE_COUNTS": str(out)}).returncode == 0
    counts = dict(line.split() for line in out.read_text().splitlines())
    assert int(counts["cuLaunchKernel"]) > 200000
    assert int(counts["cuCtxGetStreamPriorityRange"]) == 1


JOURNAL = """\
1 cuDevicePrimaryCtxRetain - device=0 -> 0
1 cuCtxSetCurrent - -> 0
1 cuModuleGetFunction - -> 0
1 cuModuleGetFunction - -> 0
1 cuMemAlloc_v2 - bytes=4 -> 0
1 cuMemsetD32_v2 legacy bytes=4 value=0 -> 0
1 cuStreamCreate s1 flags=1 -> 0
1 cuStreamCreateWithPriority s2 flags=0 priority=-8 -> 0
1 cuCtxGetStreamPriorityRange - least=0 greatest=-5 -> 0
1 cuStreamGetPriority s2 -> 0
1 cuStreamSetAttribute s1 priority=-2 attribute=8 -> 0
1 cuStreamGetPriority s1 -> 0
1 cuStreamGetAttribute s1 attribute=8 -> 0
1 cuStreamSetAttribute s1 priority=9 attribute=8 -> 0
1 cuStreamGetPriority s1 -> 0
1 cuLaunchKernelEx s1 priority=-3 kernel=empty grid=2 block=4 shared=0 -> 0
1 cuProfilerStart - -> 0
1 cuProfilerStop - -> 0
1 cuStreamBeginCapture_v2 legacy mode=2 -> 900
1 cuStreamBeginCapture_v2_ptsz legacy mode=2 -> 900
1 cuStreamBeginCapture_v2_ptsz per-thread:1 mode=2 -> 0
1 cuModuleGetFunction - -> 0
1 cuLaunchKernel_ptsz per-thread:1 kernel=step31 grid=1 block=1 shared=0 -> 0
1 cuLaunchKernel_ptsz per-thread:1 kernel=step31 grid=1 block=1 shared=0 -> 0
1 cuStreamEndCapture_ptsz per-thread:1 -> 0
1 cuStreamBeginCapture_v2 s2 mode=2 -> 0
1 cuLaunchKernel_ptsz s2 kernel=step31 grid=1 block=1 shared=0 -> 0
1 cuStreamEndCapture s2 -> 0
1 cuGraphKernelNodeGetAttribute - attribute=8 -> 0
1 cuGraphKernelNodeSetAttribute - priority=-1 attribute=8 -> 0
2 cuCtxSetCurrent - -> 0
2 cuEventCreate - flags=2 -> 0
2 cuMemsetD32Async_ptsz per-thread:2 bytes=4 value=5 -> 0
2 cuMemsetD32_v2 legacy bytes=4 value=7 -> 0
2 cuLaunchKernel_ptsz per-thread:2 kernel=step31 grid=1 block=1 shared=0 -> 0
2 cuEventRecord_ptsz per-thread:2 event=e1 -> 0
2 cuStreamWaitEvent s1 event=e1 flags=0 -> 0
2 cuStreamDestroy_v2 s1 -> 0
2 cuEventSynchronize - event=e1 -> 0
2 cuEventDestroy_v2 - event=e1 -> 0
2 cuEventQuery - event=none -> 400
1 cuMemcpyDtoH_v2_ptds per-thread:1 bytes=4 -> 0
1 cuCtxCreate_v2 - flags=0 device=0 -> 0
1 cuStreamSynchronize legacy@context2 -> 0
1 cuStreamQuery s2 -> 0
1 cuCtxDestroy_v2 - -> 0
"""


def test_journal(tmp_path):
    """CUSTREAM_FAKE_JOURNAL tells what each call was about, without addresses, and who made it."""
    out = tmp_path / "journal"
    assert run("journal", settings={"CUSTREAM_FAKE_JOURNAL": str(out)}).returncode == 0
    lines = out.read_text().splitlines()
    assert [line.partition(" by ")[0] for line in lines] == JOURNAL.splitlines()
    assert {line.partition(" by ")[2].partition("+")[0] for line in lines} == {"fakecuda_journal"}


def symbols(path):
    lines = subprocess.run(["nm", "-D", "--defined-only", path], check=True, capture_output=True, text=True).stdout.splitlines()
    return {line.split()[-1].split("@")[0] for line in lines}


def test_exports():
    """All that cuda.h declares, the marker and the door for CUPTI, nothing else; libc alone is needed."""
    names = symbols(BUILD / "fakecuda" / "libcuda.so.1")
    declared = {line.split()[3] for line in (BUILD / "fakecuda" / "versions.txt").read_text().splitlines()}
    assert declared <= names
    assert names - declared == {"custream_fakecuda_version", "custream_fakecuda_clock", "custream_fakecuda_trace", "custream_fakecuda_runtime_enter", "custream_fakecuda_runtime_leave"}
    needed = subprocess.run(["readelf", "-d", BUILD / "fakecuda" / "libcuda.so.1"], check=True, capture_output=True, text=True).stdout
    assert [line.split("[")[1] for line in needed.splitlines() if "(NEEDED)" in line] == ["libc.so.6]"]


def test_calls_of_its_own_stay_inside():
    """No exported cu* symbol is reached through the procedure linkage table, so a preload that exports them does not catch the driver's own calls."""
    out = subprocess.run(["readelf", "-rW", BUILD / "fakecuda" / "libcuda.so.1"], check=True, capture_output=True, text=True).stdout
    assert [line for line in out.splitlines() if " cu" in line] == []


@pytest.mark.parametrize("text", ["cuptiActivityEnabel:35", "cuptiActivityEnable", "cuptiActivityEnable:x", "cuptiActivityEnable:35:0"])
def test_cupti_unknown_failure(text):
    """An error on demand that can never come ends the program, in one line."""
    done = run("cupti_settings", settings={"CUSTREAM_FAKE_CUPTI": text})
    assert done.returncode == -signal.SIGABRT
    assert done.stderr == f"custream simulated CUPTI: CUSTREAM_FAKE_CUPTI: cannot use '{text}'\n"


def test_cupti_on_another_driver(tmp_path):
    """Beside a driver that is not the simulated one it says that it is not initialised. Any library serves as that driver."""
    shutil.copy(BUILD / "fakecuda" / "broken" / "libcupti.so.13", tmp_path / "libcuda.so.1")
    script = f"import ctypes; print(ctypes.CDLL('{BUILD}/fakecuda/libcupti.so.13').cuptiActivityEnable(10))"
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    assert subprocess.run([sys.executable, "-c", script], env=environment, check=True, capture_output=True, text=True).stdout == "15\n"


def test_cupti_products():
    """One has all functions of the activity and callback APIs, the other has none; both are of that name."""
    declared = set()
    for part in ("activity", "callbacks", "result", "version"):
        declared |= set(re.findall(r"^CUptiResult CUPTIAPI (\w+) *\(", (BUILD / "cuda-headers" / "cupti" / f"cupti_{part}.h").read_text(), re.MULTILINE))
    assert len(declared) > 50
    assert symbols(BUILD / "fakecuda" / "libcupti.so.13") == declared
    assert symbols(BUILD / "fakecuda" / "broken" / "libcupti.so.13") == set()
    for folder in ("fakecuda", "fakecuda/broken"):
        path = BUILD / folder / "libcupti.so.13"
        assert "[libcupti.so.13]" in subprocess.run(["readelf", "-d", path], check=True, capture_output=True, text=True).stdout
