"""The file of rings beside those of others: whose it is, and how much all of them take (docs/recover.md)."""
import os
import re
import subprocess
import sys
import time

import pytest

from tests.cases.test_rings import ALL, begin, environment, folder, has_begun, kill, metadata, rows_of  # noqa: F401, a fixture
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


# ---- how much all take ----

def in_a_room(build, tmp_path, size, count, body, **env):
    """The numbers that a loop's `body` prints, for i from 1 to `count`, where /dev/shm has that size. `program THREADS WAY` is tests/apps/counts.c with a trace and counts of its own."""
    script = f"mount -t tmpfs -o size={size} none /dev/shm; traces() {{ until [ $(ls $FOLDER | grep -c '^[0-9]*.json$') = $1 ]; do sleep 0.01; done; }}; " \
             f'for i in $(seq {count}); do {body}; wait; :'
    script = 'program() { CUSTREAM_TRACE="$FOLDER/$i.json" exec $COUNTS "$FOLDER/count$i" "$@"; }; ' + script
    counts = f"/usr/bin/env LD_PRELOAD={build / 'libcustream_shim.so'} {build / 'tests/counts'}"
    env = environment(build, tmp_path, "t.json", "auto", FOLDER=tmp_path, COUNTS=counts, LD_PRELOAD="None", **env)
    done = subprocess.run(["/usr/bin/unshare", "-rm", "/bin/bash", "-c", script], env=env, capture_output=True, text=True, timeout=200, check=False)
    return [int(line) for line in done.stdout.split()]


def test_many_processes_share_one_tenth(build, tmp_path):
    """Of a small /dev/shm, however many begin at once, the program has what it has without the library."""
    sizes = in_a_room(build, tmp_path, "64m", 12, 'program 4 paced & done; traces 12; stat -c %s /dev/shm/custream-rings-*; kill -9 $(jobs -p)', CUSTREAM_BUFFER="64K")
    assert sizes and sum(sizes) <= (64 << 20) // 10, sizes


def test_those_of_dead_processes_are_in_the_tenth(build, tmp_path):
    """However often the program crashes and is started anew, each time with a trace of its own."""
    blocks = in_a_room(build, tmp_path, "64m", 12, 'program 4 paced & traces $i; kill -9 $!; wait $! 2>/dev/null; done; stat -c %b /dev/shm/custream-rings-*', CUSTREAM_BUFFER="64K")
    assert blocks and sum(blocks) * 512 <= (64 << 20) // 10, blocks


def test_who_comes_later_has_room(build, tmp_path):
    """Sixteen processes, each with a thread."""
    (there,) = in_a_room(build, tmp_path, "1g", 16, 'program 1 paced & traces $i; done; ls /dev/shm | wc -l; kill -9 $(jobs -p)', CUSTREAM_BUFFER="4M")
    assert there == 16


def test_a_small_room_has_some_threads(build, tmp_path):
    """Rings are kept for four of a program whose rings are small."""
    sizes = in_a_room(build, tmp_path, "64m", 1, 'program 4 paced & traces 1; stat -c %s /dev/shm/custream-rings-*; kill -9 $!; done', CUSTREAM_BUFFER="256K")
    assert sizes and sizes[0] >= 4 * (256 << 10) + (3 << 19), sizes


def test_beside_many_names(build, tmp_path):
    """Of others. Those of the user's that came before them are seen."""
    sizes = in_a_room(build, tmp_path, "64m", 8, 'program 1 paced & traces $i; [ $i != 4 ] || (cd /dev/shm && seq 3000 | xargs touch); done; '
                      'stat -c %s /dev/shm/custream-rings-*; kill -9 $(jobs -p)', CUSTREAM_BUFFER="64K")
    assert sizes and sum(sizes) <= (64 << 20) // 10, sizes


def test_planted_names_are_not_all_read(build, folder, tmp_path, run_app):
    """Anybody may make names. What is counted is how many of them the system hands to a process that starts. It cannot know what is behind the last one it reads."""
    for number in range(20000):
        (folder / f"custream-rings-{number}-2").symlink_to("nowhere")
    argv = ["/usr/bin/strace", "-f", "-qq", "-e", "trace=getdents64", "-o", tmp_path / "calls", "/usr/bin/env", f"LD_PRELOAD={build / 'libcustream_shim.so'}", build / "tests/demo"]
    run = run_app(argv, env={"CUSTREAM_KEEP": folder, "LD_PRELOAD": None}).check()
    assert metadata(run.trace) == "not kept: the folder of CUSTREAM_KEEP has too many names"
    handed_out = sum(int(n) for n in re.findall(r"/\* (\d+) entries \*/", (tmp_path / "calls").read_text()))
    assert 1 << 14 <= handed_out < 20000


def test_much_that_dead_processes_left(folder, run_app):
    """Each process looks at some of it, so that its start does not take the longer the more there is."""
    for number in range(150):
        path = folder / f"custream-rings-{number}-1"
        path.touch()
        path.chmod(0o1600)
        os.utime(path, (time.time() - 100000,) * 2)
    left = [150]
    while left[-1] and len(left) < 9:
        run_app(["demo"], env={"CUSTREAM_KEEP": folder}).check()
        left.append(len(list(folder.iterdir())))
    assert left == [150, 150 - 2 * 64, 0]
