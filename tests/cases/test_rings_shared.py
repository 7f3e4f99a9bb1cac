"""The file of rings beside those of others: whose it is, and how much all of them take (docs/recover.md)."""
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from tests.cases.conftest import app_environment
from tests.cases.test_recover import run_all
from tests.cases.test_rings import ALL, begin, environment, folder, has_begun, kill, metadata, only_ring, rows_of  # noqa: F401, a fixture
from tests.handmade import COMMAND

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")

# A container of 65536 users; argv[1] is the one in it who becomes argv[2:].
CONTAINER = """
import ctypes, os, signal, sys
user, (ready, told), (go, gone) = int(sys.argv[1]), os.pipe(), os.pipe()
parent = os.fork()
if not parent:
    os.read(ready, 1)
    for kind in "ug":
        with open(f"/proc/{os.getppid()}/{kind}id_map", "w") as file: file.write("0 100000 65536\\n")
    os.write(gone, b"x")
    os._exit(0)
assert not ctypes.CDLL(None).unshare(0x10000000)
os.write(told, b"x")
os.read(go, 1)
os.waitpid(parent, 0)
os.setgroups([])
os.setresgid(user, user, user)
os.setresuid(user, user, user)
os.execv(sys.argv[2], sys.argv[2:])
"""


def in_container(user):
    return [sys.executable, "-c", CONTAINER, str(user)]


@AS_ROOT
@pytest.mark.parametrize("user", [1000, 65534])
def test_a_user_of_a_container(build, folder, user):
    """Also one who has the number that the kernel shows for all whom the container does not have: his files are his."""
    rings, trace = folder / "rings", folder / "t.json"
    rings.mkdir(0o700)
    for path in (folder, rings):
        os.chown(path, 100000 + user, 100000 + user)

    def killed(run):
        process = begin(build, folder, trace.name, rings, "paced", threads=2, run=[*in_container(user), *run], LD_PRELOAD="None")
        has_begun(folder, 2)
        said = kill(process)
        (folder / "counts").unlink()
        return said
    for _ in range(2):  # the second takes the place of the first
        assert "ended by SIGKILL" + ALL in killed([COMMAND, "run", "--"])
        assert rows_of(trace)["totals"]["ended_by"] == "SIGKILL" and not list(rings.iterdir())
    for _ in range(2):  # those of the first serve nobody
        killed(["/usr/bin/env", f"LD_PRELOAD={build / 'libcustream_shim.so'}"])
        assert len(list(rings.iterdir())) == 1
    assert subprocess.run([*in_container(user), COMMAND, "recover", "--in-place", trace], capture_output=True, text=True, timeout=100, check=False).returncode == 0
    assert rows_of(trace)["totals"]["recovered"] and not list(rings.iterdir())
