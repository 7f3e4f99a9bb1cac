"""Listeners that are not what they seem: other users' processes that lie, say nothing or send what a terminal obeys. docs/security.md."""
import contextlib
import os
import subprocess
import sys

import pytest

from tests.handmade import custream
from tests.patience import patience
from tests.remote import BUILD


FAKE = r"""
import os, socket, sys
answer, only, uid = sys.argv[1:]
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
if int(uid):
    os.setuid(int(uid))
s.bind("\0custream/%s/%d" % (os.readlink("/proc/self/ns/pid"), os.getpid()))
s.listen(64)
print(os.getpid(), flush=True)
kept = []  # of those who are told nothing
while True:
    one = s.accept()[0]
    request = one.recv(1 << 18)
    if request and answer and only in ("", request.decode()):
        one.send(os.fsencode(answer))
        one.close()
    kept.append(one)
"""


class Fake:
    """A process that listens as one of ours does, and answers what it likes: nothing, the same to all, or to one request alone."""

    def __init__(self, answer, only="", uid=0):
        self.process = subprocess.Popen([sys.executable, "-c", FAKE, answer, only, str(uid)], stdout=subprocess.PIPE, text=True)
        self.pid = int(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def about(trace, now=1, **more):
    """What a process says that names this file as its trace."""
    more = "".join(f"\t{name}={value}" for name, value in more.items())
    return f"ok\tpid=1\trank=-1\trecording=1\trecorded=5\tevents_end=9\tnow={now}\tparts=0\tprogram=x\tgpu=g\ttrace={trace}{more}\n"


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


ALONE = r"""
import contextlib, json, os, pathlib, subprocess, sys, time
sys.path.insert(0, sys.argv[1])
from tests.cases.test_live import Record, launches
from tests.cases.test_live_hostile import Fake, about, answered
from tests.cases.test_dump import dump
from tests.gputrace import CUPTI
from tests.handmade import custream
from tests.remote import BUILD, Remote
folder = pathlib.Path(sys.argv[2])
with contextlib.ExitStack() as stack:
    program = stack.enter_context(Remote(folder, CUPTI))
    program.do("create 1", "launch 1 5", "all")
    fake = lambda *words, **options: stack.enter_context(Fake(*words, **options))
"""


def alone(root, folder, script):
    """The script runs beside a program that records, where nobody else listens."""
    if subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode:
        pytest.xfail("this machine makes no namespaces")
    lines = ALONE + "".join(f"    {line}\n" for line in script.splitlines()) + "print('good')\n"
    done = subprocess.run(["unshare", "--net", sys.executable, "-c", lines, root, folder], capture_output=True, text=True, timeout=patience(100), check=False)
    assert (done.returncode, done.stdout) == (0, "good\n"), done.stderr


BESIDE = r"""
liar = fake(about("/dev/zero"))
silent = [fake("") for _ in range(8)]
half = [fake(about("/dev/zero"), "about") for _ in range(24)]  # one by one they would take a quarter of an hour
listed = custream("ps").stdout
assert all(str(one.pid) in listed for one in [program, liar, *silent]), listed
rc, out, err = dump("--all", "--last=1h", "-o", folder / "d.json")
assert rc == 1 and launches(folder / "d.json") == 5 and f"process {liar.pid}: its trace is not at /dev/zero" in err, (rc, out, err)
assert all(err.count(f"process {one.pid} does not answer") == 1 for one in silent + half), err
record = custream("record", "--all", "-d", "10ms", "-o", folder / "r.json")
assert record.returncode == 1 and launches(folder / "r.json") == 0
assert all(record.stderr.count(f"process {one.pid} does not answer") == 1 for one in silent + half), record.stderr
"""


def test_others_do_not_spoil_all(root, tmp_path):
    """Listeners that never answer, or only once, or name a file that is none: what the others recorded is there, and a line says who is missing."""
    alone(root, tmp_path, BESIDE)


FILES = r"""
(folder / "garbage.json").write_text("garbage\n" * 1000)
(folder / "packed.json.gz").write_bytes(b"\x1f\x8b\x08" + bytes(1000))
head = '{"schemaVersion":1,"displayTimeUnit":"ns","baseTimeNanoseconds":%d,"metadata":{"tool":"custream 1"},"traceEvents":[\n'
row = '{"ph":"X","name":"n","cat":"c","pid":99,"tid":1,"ts":1.000,"dur":1.000%s}\n]}\n'
now = time.time_ns()
(folder / "early.json").write_text(head % 1 + row % "")
(folder / "ids.json").write_text(head % now + row % ',"args":{"correlation":1099511627775}')
(folder / "long.json").write_text(head % now + row % "" * 2)
names = ["garbage.json", "packed.json.gz", "early.json", "ids.json", "long.json"]
for name in (*names, "remote.json"):
    os.chmod(folder / name, 0o644)
before, after = [], []
for name in names:
    after.append(fake(about(folder / name, now)))
twin = fake(about(program.trace, now))
rc, out, err = dump("--all", "--last=1h", "-o", folder / "d.json")
lines = [line for line in err.splitlines() if "left out" in line]
assert rc == 1 and launches(folder / "d.json") == 5 and "1 process." in out, (rc, out, err)
for one, name in zip(after, names):
    (line,) = [line for line in lines if f"process {one.pid}: its trace {folder / name} is left out: " in line]
same = [line for line in lines if f"process {twin.pid}: its trace {program.trace} is left out: the same trace" in line or
        f"process {program.pid}: its trace {program.trace} is left out: the same trace" in line]
assert len(same) == 1 and len(lines) == len(names) + 1, err
record = custream("record", "--all", "-d", "10ms", "-o", folder / "r.json")
assert record.returncode == 1 and launches(folder / "r.json") == 0, record.stderr
assert custream("check", folder / "d.json").returncode == 0
"""


def test_a_file_of_anything_does_not_spoil_all(root, tmp_path):
    """Who listens may name any file as its trace: damaged ones, one of another year, one with all ids, another process's. Each is one line, and left out."""
    alone(root, tmp_path, FILES)


HOLES = r"""
program.ctl("flush")
text = program.trace.read_bytes()
liars = []
for name in ("garbage.json", "holes.json", "holes.json.gz"):
    (folder / name).write_bytes(text if "holes" in name else bytes(1))
    os.truncate(folder / name, 1 << 36)
    os.chown(folder / name, 65534, 65534)
    liars.append(fake(about(folder / name, time.time_ns(), device=0), uid=65534))
def few(*words):
    return subprocess.run(["prlimit", "--fsize=20000000", BUILD / "custream", *map(str, words)], capture_output=True, text=True, check=False)
for words in (["dump", "--all", "--last=1h", "-o", folder / "d.json"], ["record", "--all", "-d", "1ms", "-o", folder / "r.json"], ["hang", "--all"], ["hang", "--all", "--whole"]):
    done = few(*words)
    assert done.returncode == 1, (words, done)
    for one, name in zip(liars, ("garbage.json", "holes.json", "holes.json.gz")):
        assert f"process {one.pid}: its trace {folder / name}" in done.stderr or f"{folder / name}: " in done.stderr, (words, done)
assert launches(folder / "d.json") == 5
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root reaches others' processes")
def test_a_file_of_holes_is_not_copied(root, tmp_path):
    """64 GiB that take no room, behind a trace's beginning or nothing. No file of ours grows beyond 20 MB."""
    alone(root, tmp_path, HOLES)


CROWD = r"""
crowd = [fake(about("/dev/zero")) for _ in range(30)]
def with_files(limit, *words):
    return subprocess.run(["prlimit", f"--nofile={limit}", BUILD / "custream", *map(str, words)], capture_output=True, text=True, check=False)
done = with_files("30:4096", "ps", "--json")
assert (done.returncode, done.stderr) == (0, "") and len(json.loads(done.stdout)["processes"]) == 31, done
done = with_files("30:30", "ps", "--json")
listed = len(json.loads(done.stdout)["processes"])
left = f"custream ps: {31 - listed} more that listen could not be asked: ulimit -n allows no more open files\n"
assert 0 < listed < 31 and (done.returncode, done.stderr) == (1, left), done
done = with_files("19:19", "ps")
assert (done.returncode, done.stdout) == (1, "") and done.stderr == left.replace(str(31 - listed), "31"), done
for words in (["record", "--all", "-d", "1ms"], ["dump", "--all", "-o", folder / "d.json"], ["hang", "--all"]):
    done = with_files("30:30", *words)
    assert done.returncode in (1, 2) and f"{31 - listed} more that listen could not be asked" in done.stderr, done
"""


def test_more_processes_than_descriptors(root, tmp_path):
    """The limit is raised as far as it goes. Who is left out then is counted."""
    alone(root, tmp_path, CROWD)


def answered(words, answer):
    """The command on a terminal of its own, which types the answer where it is asked; its exit status, and all that the terminal showed."""
    leader, terminal = os.openpty()
    process = subprocess.Popen([BUILD / "custream", *map(str, words)], stdin=terminal, stdout=terminal, stderr=terminal)
    os.close(terminal)
    shown = ""
    with contextlib.suppress(OSError), os.fdopen(leader, "rb+", buffering=0) as screen:
        while more := screen.read(4096):
            shown += more.decode()
            if answer and "[y/N] " in shown:
                screen.write(answer.encode())
                answer = ""
    return process.wait(patience(60)), shown


ASKS = r"""
fake(about("/dev/zero"), uid=65534)
fake(about("/dev/zero"), uid=4711)
fake(about("/dev/zero"), uid=4711)
users = ["user root: 1 process", "user nobody: 1 process", "user 4711: 2 processes"]
for words in (["record", "-d", "10ms"], ["dump", "--last=1h"], ["hang"]):
    name, to = words[0], [] if words[0] == "hang" else ["-o", folder / f"{words[0]}.json"]
    said = [f"custream {name}: {user}" for user in users]
    for answer, goes_on in (("n\n", False), ("\n", False), ("\x04", False), ("yes\n", True)):
        rc, shown = answered([*words, "--all", *to], answer)
        assert rc == (1 if goes_on else 2) and all(line in shown for line in said) and "Go on? [y/N]" in shown, (rc, shown)
        assert ("nothing was done" in shown) != goes_on and (not to or to[1].exists() == goes_on), shown
    rc, shown = answered([*words, "--all", "--yes", *to], "")
    assert rc == 1 and all(line in shown for line in said) and "[y/N]" not in shown, (rc, shown)
    done = custream(*words, "--all", *to)
    assert done.returncode == 1 and all(line in done.stderr for line in said) and "[y/N]" not in done.stderr, done.stderr
    for more in (["--program=remote"], ["-p", program.pid]):
        rc, shown = answered([*words, *more, *to], "")
        assert rc == 0 and "user " not in shown, (rc, shown)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root reaches others' processes")
def test_root_is_asked_before_others_are_touched(root, tmp_path):
    """record, dump and hang of processes that were not named one by one: whose they are, and a question on a terminal. --yes answers it beforehand."""
    alone(root, tmp_path, ASKS)
