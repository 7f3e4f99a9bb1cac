"""Listeners that are not what they seem: other users' processes that lie, say nothing or send what a terminal obeys. docs/security.md."""
import subprocess
import sys

import pytest

from tests.handmade import custream


FAKE = r"""
import contextlib, os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind("\0custream/%s/%d" % (os.readlink("/proc/self/ns/pid"), os.getpid()))
s.listen(64)
print(os.getpid(), flush=True)
kept = []  # of one that says nothing
while True:
    one = s.accept()[0]
    with one if sys.argv[1] else contextlib.nullcontext():
        if one.recv(1 << 18) and sys.argv[1]:
            one.send(os.fsencode(sys.argv[1]))
    kept = [] if sys.argv[1] else kept + [one]
"""


class Fake:
    """A process that listens as one of ours does, and answers what it likes."""

    def __init__(self, answer):
        self.process = subprocess.Popen([sys.executable, "-c", FAKE, answer], stdout=subprocess.PIPE, text=True)
        self.pid = int(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def test_what_a_process_says_has_no_control_characters():
    """Its answers and its command line reach a terminal: escape sequences, C1 controls, marks that turn the direction."""
    evil = "\x1b]0;owned\x07\x9b31m\u202e\r"
    fields = f"ok\tpid=1\trank=-1\trecording=0\tfull=0\trecorded=5\tevents_end=9\tnow=1\tparts=0\tprogram=x{evil}\tgpu=g{evil}\twhy_not=w{evil}\ttrace=/tmp/{evil}x.json\n"
    for answer in (fields, f"ok {evil}", f"error {evil}", evil):
        with Fake(answer) as fake:
            said = [custream(*words) for words in (["ps"], ["ctl", fake.pid, "status"], ["hang", "-p", fake.pid], ["dump", "-p", fake.pid, "-o", "/tmp/no.json"],
                                                   ["record", "-p", fake.pid, "-d", "1ms"])]
        for one in said:
            text = one.stdout + one.stderr
            assert text and not set(text) & set("\x1b\x07\x9b\u202e\r\x7f"), text
        assert str(fake.pid) in said[0].stdout


BESIDE = r"""
import contextlib, pathlib, subprocess, sys, time
sys.path.insert(0, sys.argv[1])
from tests.cases.test_live import launches
from tests.cases.test_live_hostile import Fake
from tests.cases.test_dump import dump
from tests.handmade import custream
from tests.remote import Remote
folder = pathlib.Path(sys.argv[2])
with contextlib.ExitStack() as stack:
    program = stack.enter_context(Remote(folder, {"CUSTREAM_GPU": "off"}))  # what listeners do is asked
    program.do("create 1", "launch 1 5")
    lies = "ok\tpid=1\trank=-1\trecording=1\trecorded=5\tevents_end=9\tnow=1\tparts=0\tprogram=x\tgpu=g\ttrace=/dev/zero\n"
    liar = stack.enter_context(Fake(lies))
    silent = [stack.enter_context(Fake("")) for _ in range(8)]
    listed = custream("ps").stdout
    assert all(str(one.pid) in listed for one in [program, liar, *silent]), listed
    rc, out, err = dump("--all", "--last=1h", "-o", folder / "d.json")
    assert rc == 1 and launches(folder / "d.json") == 5 and f"process {liar.pid}: its trace is not at /dev/zero" in err, (rc, out, err)
    assert all(f"process {one.pid} does not answer" in err for one in silent), err
    rc = subprocess.run([custream.__globals__["COMMAND"], "record", "--all", "-d", "10ms", "-o", folder / "r.json"], capture_output=True, check=False).returncode
    assert rc == 1 and launches(folder / "r.json") == 0
print("good")
"""


def test_others_do_not_spoil_all(root, tmp_path):
    """Listeners that never answer, or name a file that is none: what the others recorded is there, and a line says who is missing."""
    if subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode:
        pytest.xfail("this machine makes no namespaces")
    done = subprocess.run(["unshare", "--net", sys.executable, "-c", BESIDE, root, tmp_path], capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stdout) == (0, "good\n"), done.stderr
