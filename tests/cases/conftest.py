"""Fixtures of the test cases: the build, programs run on the simulated GPU with and without the shim, traces as data, Perfetto."""
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def root():
    """The top of the source tree."""
    return ROOT


@pytest.fixture(scope="session")
def build():
    """The build folder. What a test needs from it is built by `make` before pytest starts."""
    return ROOT / "build"


@pytest.fixture(scope="session")
def cuda_include():
    """The folder with the cuda.h that the build uses."""
    printed = subprocess.run(["make", "-s", "--no-print-directory", "print-cuda-include"], cwd=ROOT, capture_output=True, text=True, check=True)
    return ROOT / printed.stdout.strip()
