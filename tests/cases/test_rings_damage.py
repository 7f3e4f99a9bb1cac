"""The file of rings when something is wrong with it, or somebody looks at it: `recover` comes to an end, and says what it goes without."""
import os
import random
import re
import shutil
import struct
import subprocess
import sys

import pytest

from tests.cases.test_recover import run_all
from tests.cases.test_rings import begin, folder, has_begun, judge, kill, only_ring, rows_of  # noqa: F401, a fixture
from tests.handmade import COMMAND


# Where the head has them, and a thread's page (shim/base/rings.h, ring.h).
THREADS_AT, RING_BYTES, INDEX_AT, WORD, HAND = 112, 120, 132, 4352, 4472
HEAD, TOLD = 16, 80


def number(good, at, form="Q"):
    return struct.unpack_from("=" + form, good, at)[0]


def unread(good):
    """(index, place of the next record) of the threads whose rings the writer had not read to their ends."""
    pages = [number(good, THREADS_AT) + thread * (4096 + number(good, RING_BYTES)) for thread in range(3)]
    found = [(number(good, page + number(good, INDEX_AT, "I"), "I"), number(good, page + TOLD), number(good, page + HEAD)) for page in pages]
    return [(index, place) for index, place, head in found if index and head > place]


@pytest.fixture(scope="module")
def killed(build, tmp_path_factory):
    """A trace, and its rings, which hold something."""
    tmp_path = tmp_path_factory.mktemp("killed")
    folder = tmp_path / "rings"
    folder.mkdir()
    for _ in range(50):
        process = begin(build, tmp_path, "t.json", folder, "paced", threads=2, CUSTREAM_BUFFER="64K", CUSTREAM_THREAD_CLOCKS="off")  # each record is a row
        has_begun(tmp_path, 2)
        kill(process)
        (tmp_path / "counts").unlink()
        if unread(only_ring(folder).read_bytes()):
            return tmp_path / "t.json", only_ring(folder)
    raise AssertionError("each thread had been read to its end")


def damage(dice, rings, good, places):
    """Some bytes of the file are others."""
    with rings.open("r+b") as file:
        for _ in range(dice.choice([1, 1, 5, 200])):
            place, width = dice.choice(places) + dice.randrange(256), dice.choice([1, 1, 8])
            file.seek(place)
            file.write(dice.choice([dice.randbytes(width), b"\0" * width, b"\xff" * width]))
        if dice.randrange(20) == 0:
            file.truncate(dice.randrange(len(good)))


def test_damaged_rings(killed, tmp_path):
    """Whatever stands in the file: recover comes to an end, and what it makes can be read."""
    trace, rings = killed
    good = rings.read_bytes()
    places = [0, 0, *(at for at in range(0, len(good) - 256, 256) if good[at:at + 256].strip(b"\0"))]
    dice, made = random.Random(1), 0
    for number in range(80):
        damage(dice, rings, good, places)
        (whole := tmp_path / "whole.json").unlink(missing_ok=True)
        done = subprocess.run([COMMAND, "recover", "-o", whole, trace], capture_output=True, text=True, errors="replace", timeout=100, check=False)
        assert done.returncode in (0, 2), (number, done)
        if done.returncode == 0 and whole.exists():
            checked = subprocess.run([COMMAND, "check", whole], capture_output=True, text=True, errors="replace", timeout=100, check=False)
            assert checked.returncode in (0, 1, 2), (number, checked)
            made += checked.returncode == 0
        rings.write_bytes(good)  # recover may have removed it
    assert made > 20


def test_the_record_that_was_being_told(killed, tmp_path):
    """It is told if the writer's word says so, and else not: never twice."""
    trace, rings = killed
    good = rings.read_bytes()

    def rows(hand):
        data = bytearray(good)
        struct.pack_into("=3Q", data, HAND, *hand)
        rings.write_bytes(data)
        whole = tmp_path / "whole.json"
        assert run_all("recover", "-o", whole, trace)[::2] == (0, []) and run_all("check", whole)[0] == 0
        rings.write_bytes(good)
        return rows_of(whole)["totals"]["recovered"]["rows"]
    told = number(good, WORD) >> 24 & 0xffffffff
    for index, place in unread(good):
        assert rows((index, place, told)) - 1 == rows((index, place, told + 1)), "it is in the buffer, or in the file"
        assert rows((index, place, told)) == rows((index, place + 1, told + 1)) == rows((index + 1000, place, told + 1)) == rows((0, 0, 0))


def test_rings_of_another_version(killed, tmp_path):
    trace, rings = killed
    good = rings.read_bytes()
    rings.write_bytes(good.replace(b" layout 2", b" layout 1", 1))
    status, said, complaints = run_all("recover", "-o", tmp_path / "o.json", trace)
    rings.write_bytes(good)
    version = re.search(rb"custream rings\n\0*(\d+\.\d+\.\d+) layout 2", good)[1].decode()
    assert status == 0 and len(complaints) == 1
    assert f"written by custream {version} layout 1, and custream {version} layout 2 reads its own alone" in complaints[0]


def test_rings_of_another_trace(killed, tmp_path):
    trace, rings = killed
    good = rings.read_bytes()
    for damaged in (b"no rings\0" + good[9:], good[:72] + struct.pack("=Q", 1) + good[80:]):
        rings.write_bytes(damaged)
        status, _, complaints = run_all("recover", "-o", tmp_path / "o.json", trace)
        assert status == 0 and len(complaints) == 1 and "is not the file of rings of this trace" in complaints[0]
    rings.write_bytes(good)


def test_why_there_are_none(killed, tmp_path):
    """A trace without its rings is recovered without them, and that is said."""
    trace, rings = killed
    (copy := tmp_path / "copy.json").write_bytes(trace.read_bytes())
    status, said, complaints = run_all("recover", "-o", tmp_path / "o.json", copy)
    assert status == 0 and len(complaints) == 1 and complaints[0].endswith(f"copy.json: without the rings of its process: {rings}: is of another file at that name")
    good = trace.read_bytes()
    with trace.open("r+b") as file:
        file.truncate(good.rindex(b"\n],") - 1)
    status, said, complaints = run_all("recover", "-o", tmp_path / "o.json", trace)
    trace.write_bytes(good)
    assert status == 0 and len(complaints) == 1 and complaints[0].endswith(f"{rings}: the trace is shorter than they say")
    rings.rename(tmp_path / "elsewhere")
    status, said, complaints = run_all("recover", "-o", tmp_path / "o.json", trace)
    (tmp_path / "elsewhere").rename(rings)
    assert (status, complaints) == (0, []) and said[-1] == f"  without the rings of its process: {rings}: No such file or directory"


@pytest.mark.parametrize("held_s, complains", [(0.1, False), (600, True)])
def test_somebody_looks_at_them(killed, tmp_path, held_s, complains):
    """A process that begins has the lock for a moment, to see whether they serve somebody. One that lives has it for good."""
    trace, rings = killed
    (copy := tmp_path / "rings").write_bytes(rings.read_bytes())
    program = f"import fcntl, time; file = open({str(rings)!r}, 'r+b'); fcntl.lockf(file, fcntl.LOCK_EX); print(flush=True); time.sleep({held_s})"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        status, said, complaints = run_all("recover", "-o", tmp_path / "o.json", trace)
        other.kill()
    shutil.copyfile(copy, rings)
    assert status == 0 and len(complaints) == complains and (not complains or complaints[0].endswith(f"{rings}: its process lives")), complaints


def test_planted_names(tmp_path):
    """A trace of somebody else's says where its rings are: nothing is opened, or removed, that is no file of rings."""
    victim = tmp_path / "custream-rings-victim"
    victim.write_text("mine")
    from tests.handmade import GOOD, render
    text = render(GOOD)
    (path := tmp_path / "t.json").write_text(text.replace('"metadata":{', '"metadata":{"rings":"' + str(victim) + '",', 1)[:-200])
    status, said, complaints = run_all("recover", path)
    assert victim.read_text() == "mine" and status == 0, complaints


# ---- putting it together ----

NO_COPY = """#define _GNU_SOURCE
#include <errno.h>
#include <unistd.h>
int memfd_create(const char *name, unsigned flags) { (void)name; (void)flags; errno = ENOMEM; return -1; }
ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at) { (void)fd; (void)bytes; (void)size; (void)at; errno = ENOSPC; return -1; }
ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t at) { (void)fd; (void)bytes; (void)size; (void)at; errno = ENOSPC; return -1; }
"""


@pytest.mark.parametrize("name", ["t.json", "t.pftrace"])
def test_a_trace_is_not_copied_to_be_put_together(build, tmp_path, folder, name):
    """Neither in memory, which a long one has no room in, nor on the disk: but for the result, nothing is written."""
    subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", tmp_path / "none.so"], input=NO_COPY, text=True, check=True)
    process = begin(build, tmp_path, name, folder)
    has_begun(tmp_path)
    kill(process)
    env = {**os.environ, "LD_PRELOAD": str(tmp_path / "none.so"), "TMPDIR": "/proc", "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0"}
    done = subprocess.run([COMMAND, "recover", name], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    judge(tmp_path, name, tmp_path / name.replace("t.", "t.recovered."), 4)
    assert not list(tmp_path.glob(".custream-*")) and not list(folder.iterdir())
