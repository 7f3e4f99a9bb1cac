"""The simulated GPU keeps CUDA's semantics: its own test programs, run without the shim."""

import os
import subprocess
from pathlib import Path

import pytest

BUILD = Path(__file__).resolve().parents[2] / "build"

# program, its arguments, the library's folder, settings
RUNS = [
    ("streams", [], "fakecuda", {}),
    ("capture", [], "fakecuda", {}),
    ("memory", [], "fakecuda", {}),
    ("runtime", [], "fakecuda", {}),
    ("runtime", [], "fakecuda", {"CUSTREAM_FAKE_DEVICES": "2"}),
    ("symbols", [], "fakecuda", {}),
    ("symbols", ["12000", "visible"], "fakecuda", {"CUSTREAM_FAKE_DRIVER_VERSION": "12000"}),
    ("symbols", ["12000", "hidden"], "fakecuda12.0", {}),
    ("contexts", ["contexts"], "fakecuda", {"CUSTREAM_FAKE_DEVICES": "2"}),
    ("contexts", ["fork"], "fakecuda", {}),
    ("contexts", ["failures"], "fakecuda", {"CUSTREAM_FAKE_FAIL": "cuLaunchKernel:3=700,cuStreamCreate*=2"}),
    ("contexts", ["no-device"], "fakecuda", {"CUSTREAM_FAKE_NO_DEVICE": "1"}),
]


def run(program, arguments=(), library="fakecuda", settings=None):
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD" and not k.startswith("CUSTREAM_")}
    environment.update(settings or {}, LD_LIBRARY_PATH=str(BUILD / library))
    return subprocess.run([BUILD / "tests" / f"fakecuda_{program}", *arguments], env=environment, capture_output=True, text=True, timeout=90)


@pytest.mark.parametrize("program,arguments,library,settings", RUNS, ids=lambda v: "-".join(v) if isinstance(v, list) else None)
def test_semantics(program, arguments, library, settings):
    done = run(program, arguments, library, settings)
    assert done.returncode == 0, done.stderr


def test_counts(tmp_path):
    """CUSTREAM_FAKE_COUNTS tells what was called, name by name: what a test compares a trace with."""
    out = tmp_path / "counts"
    assert run("streams", settings={"CUSTREAM_FAKE_COUNTS": str(out)}).returncode == 0
    counts = dict(line.split() for line in out.read_text().splitlines())
    assert int(counts["cuLaunchKernel"]) > 200000
    assert int(counts["cuCtxGetStreamPriorityRange"]) == 1


def symbols(path):
    lines = subprocess.run(["nm", "-D", "--defined-only", path], check=True, capture_output=True, text=True).stdout.splitlines()
    return {line.split()[-1].split("@")[0] for line in lines}


def test_exports():
    """All that cuda.h declares and the marker, nothing else; libc alone is needed."""
    names = symbols(BUILD / "fakecuda" / "libcuda.so.1")
    declared = {line.split()[3] for line in (BUILD / "fakecuda" / "versions.txt").read_text().splitlines()}
    assert declared <= names
    assert names - declared == {"custream_fakecuda_version"}
    needed = subprocess.run(["readelf", "-d", BUILD / "fakecuda" / "libcuda.so.1"], check=True, capture_output=True, text=True).stdout
    assert [line.split("[")[1] for line in needed.splitlines() if "(NEEDED)" in line] == ["libc.so.6]"]


def test_calls_of_its_own_stay_inside():
    """No exported cu* symbol is reached through the procedure linkage table, so a preload that exports them does not catch the driver's own calls."""
    out = subprocess.run(["readelf", "-rW", BUILD / "fakecuda" / "libcuda.so.1"], check=True, capture_output=True, text=True).stdout
    assert [line for line in out.splitlines() if " cu" in line] == []
