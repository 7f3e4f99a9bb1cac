"""custream ps and custream record: processes that run are found, asked to record for a while, and what they recorded is written."""
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys

import pytest

from tests.apprun import calls_in, read
from tests.cases.test_ctl import threads_of, threads_stopped
from tests.cases.test_window import causes
from tests.gputrace import CUPTI, works
from tests.handmade import custream
from tests.remote import BUILD, Remote, ctl, until

IDLE = {"CUSTREAM_WINDOW": "ctl"}
WAITS = "off (nobody has asked for it: CUSTREAM_WINDOW=ctl)"


class Record:
    """custream record, which has asked all processes once it is made. Leaving the block ends it by Ctrl-C, where it has no duration or is not over."""

    BEGUN = re.compile(r"custream record: \d+ process(?:es record| records); Ctrl-C ends it")

    def __init__(self, *words):
        terminal, errors = os.openpty()  # where it says that it records
        self.process = subprocess.Popen([BUILD / "custream", "record", *map(str, words)], stdout=subprocess.PIPE, stderr=errors, text=True)
        os.close(errors)
        self._terminal = os.fdopen(terminal, encoding="utf-8", errors="replace")
        self.rc = self.out = None
        self._errors = []
        for line in self._lines():
            if self.BEGUN.fullmatch(line):
                break
            self._errors.append(line)

    def _lines(self):
        try:
            while line := self._terminal.readline():
                yield line.rstrip("\n")
        except OSError:  # nobody writes there any more
            return

    @property
    def err(self):
        return "\n".join(self._errors)

    def end(self, number=signal.SIGINT):
        if self.rc is None:
            if number and self.process.poll() is None:
                self.process.send_signal(number)
            self._errors += self._lines()
            out, _ = self.process.communicate(timeout=60)
            self._terminal.close()
            self.rc, self.out = self.process.returncode, out.rstrip("\n")
        return self

    def __enter__(self):
        return self

    def __exit__(self, kind, error, where):
        self.end(signal.SIGKILL if kind else signal.SIGINT)


def shown(path, calls, works_, rest=""):
    return f"{path}: {calls} calls, {works_} GPU operation{'' if works_ == 1 else 's'}, nothing lost.{rest} Open it: custream open {path}"


def launches(path):
    return calls_in(read(path))["cuLaunchKernel"]


# ---- ps ----

def row_of(pid):
    result = custream("ps", "--json")
    assert (result.returncode, result.stderr) == (0, "")
    found = json.loads(result.stdout)
    assert (found["custream_ps"], list(found)) == (1, ["custream_ps", "tool", "processes"])
    assert [row["pid"] for row in found["processes"]] == sorted(row["pid"] for row in found["processes"])
    return next((row for row in found["processes"] if row["pid"] == pid), None)


def test_ps_says_what_each_process_does(tmp_path):
    with Remote(tmp_path, {"RANK": "3", "WORLD_SIZE": "4"}) as program:
        program.do("create 1", "launch 1 5", "all")
        program.ctl("flush")
        row = row_of(program.pid)
        assert row == {"pid": program.pid, "rank": 3, "program": "remote", "command": "remote", "recording": True, "why_not": None, "file": str(program.trace),
                       "size": program.trace.stat().st_size, "calls": int(program.status()["recorded"]), "lost": 0, "gpu_operations": 5, "streams": 1,
                       "gpu_times": "cupti"} and row["calls"] > 5
        program.ctl("off")
        assert (row_of(program.pid)["recording"], row_of(program.pid)["why_not"]) == (False, "custream ctl off")
        text = custream("ps").stdout.splitlines()
        assert text[0].split() == ["PID", "RANK", "PROGRAM", "RECORDING", "CALLS", "SIZE", "FILE"]
        (line,) = (line for line in text if line.split()[0] == str(program.pid))
        assert re.fullmatch(rf" *{program.pid} +3  remote +off \(custream ctl off\) +{row['calls']} +\S+  {re.escape(str(program.trace))}", line)
    assert row_of(program.pid) is None


def test_ps_of_an_idle_process(tmp_path):
    with Remote(tmp_path, IDLE) as program:
        program.do("create 1", "launch 1 5", "all")
        row = row_of(program.pid)
        assert (row["rank"], row["recording"], row["why_not"], row["file"], row["size"], row["calls"]) == (None, False, WAITS[5:-1], None, None, 0)


def test_ps_of_a_stopped_process(tmp_path):
    """It is listed, without waiting for it."""
    with Remote(tmp_path) as program:
        program.do("create 1")
        os.kill(program.pid, signal.SIGSTOP)
        until(lambda: threads_stopped(program.pid))
        try:
            row = row_of(program.pid)
            assert row["recording"] is None and row["file"] is None and row["why_not"] == f"process {program.pid} is stopped"
            assert f"not known (process {program.pid} is stopped)" in custream("ps").stdout
        finally:
            os.kill(program.pid, signal.SIGCONT)


def test_ps_of_a_script(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("import ctypes, sys\nd = ctypes.CDLL('libcuda.so.1'); d.cuInit(0); c = ctypes.c_void_p(); d.cuDevicePrimaryCtxRetain(ctypes.byref(c), 0)\n"
                      "print('there', flush=True)\nsys.stdin.readline()\n")
    from tests.cases.conftest import app_environment
    with subprocess.Popen([sys.executable, "-u", script, "--steps"], env=app_environment(BUILD, tmp_path / "t.json", True, IDLE), stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"there\n"
        assert row_of(process.pid)["command"] == f"{os.path.basename(os.path.realpath(sys.executable))} train.py"
        assert Record("--program", "train.p?", "-d", "0.2").end(None).rc == 0
        process.communicate(b"\n")
    assert (tmp_path / "t.json").exists()


def test_ps_takes_nothing_but_json():
    result = custream("ps", "all")
    assert (result.returncode, result.stdout, result.stderr) == (2, "", "custream ps: takes nothing but --json\n")


def test_names_that_are_no_process_of_ours(tmp_path):
    """A socket with such a name that another process has, and garbage, are passed by."""
    import socket
    with Remote(tmp_path) as program:
        program.do("create 1")
        names = [f"\0custream/{os.readlink('/proc/self/ns/pid')}/1", "\0custream/", "\0custream/x/99999999", "\0custream/" + "x" * 90]
        sockets = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in names]
        for one, name in zip(sockets, names):
            one.bind(name)
            one.listen()
        rows = json.loads(custream("ps", "--json").stdout)["processes"]
        assert os.getpid() not in {row["pid"] for row in rows} and 1 not in {row["pid"] for row in rows} and row_of(program.pid)
        for one in sockets:
            one.close()


PS_AS = """if 1:
    import os, sys
    command = os.open(sys.argv[1], os.O_RDONLY)
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    os.execve(command, ["custream", "ps", "--json"], {})
"""


def test_other_users_processes_are_not_listed(tmp_path):
    """As root, which can be another; as anybody else it shows that the user's own are."""
    with Remote(tmp_path) as program:
        program.do("create 1")
        assert row_of(program.pid)
        if os.geteuid() == 0:
            done = subprocess.run([sys.executable, "-c", PS_AS, BUILD / "custream"], capture_output=True, text=True, timeout=60, check=True)
            assert json.loads(done.stdout)["processes"] == []
        assert program.status()["recording"] == "on"


# ---- An idle process ----

def test_idle_until_asked(tmp_path):
    """No file, no thread that calls CUPTI, no line at the end."""
    with Remote(tmp_path, IDLE) as program:
        program.do("create 1", "launch 1 5", "all")
        assert program.status() == {"recording": WAITS, "trace": "none", "recorded": "0", "lost": "0", "streams": "1", "policy": "none", "gpu": "none"}
        assert set(threads_of(program.pid)) == {"remote", "custream", "custream-ctl", "custream-aide"}
    assert program.end().rc == 0 and not program.said() and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("own, to", [("remote.json", "step.json"), ("remote.json.gz", "step.json"), ("remote.json", "step.json.gz")])
def test_first_recording_is_a_trace_by_itself(tmp_path, own, to):
    with Remote(tmp_path, IDLE | CUPTI, trace=own) as program:
        program.do("create 1", "launch 1 5", "all")
        with Record("-p", program.pid, "-o", tmp_path / to) as record:
            program.do("launch 1 3", "all")
        assert (record.rc, record.err) == (0, "") and record.out == shown(tmp_path / to, 5, 3)
        assert program.status()["recording"] == WAITS
        program.do("launch 1 7", "all")
    program.load()
    for path in (tmp_path / to, tmp_path / own):
        trace = read(path)
        assert calls_in(trace)["cuLaunchKernel"] == 3 == len(works(trace)) and "merged" not in trace.metadata
        (window,) = trace.totals["windows"]["last"]
        assert window["opened_by"] == "custream record" and window["cause"] == WAITS[5:-1]
    assert custream("report", tmp_path / to).returncode == 0


def test_later_recordings_are_cut_out(tmp_path):
    with Remote(tmp_path, IDLE | CUPTI) as program:
        program.do("create 1")
        for n in (3, 4, 5):
            with Record("-p", program.pid, "-o", tmp_path / f"step{n}.json") as record:
                program.do(f"launch 1 {n}", "all")
            assert record.rc == 0 and record.out.startswith(f"{tmp_path}/step{n}.json: "), record.err
        assert [launches(tmp_path / f"step{n}.json") for n in (3, 4, 5)] == [3, 4, 5]
    assert calls_in(program.load())["cuLaunchKernel"] == 12


def test_without_a_file_of_its_own_the_process_says_where(tmp_path):
    with Remote(tmp_path, IDLE) as program:
        program.do("create 1")
        with Record(f"--pid={program.pid}") as record:
            program.do("launch 1 3", "all")
        assert (record.rc, record.err, record.out) == (0, "", shown(program.trace, 5, 3))


def test_where_tracing_is_off(tmp_path):
    with Remote(tmp_path, {"CUSTREAM_TRACE": "off", "CUSTREAM_CTL": "on"}) as program:
        program.do("create 1")
        with Record("-p", program.pid) as record:
            program.do("launch 1 3", "all")
        assert record.out == shown(tmp_path / f"custream-remote-{program.pid}.json", 5, 3)


def test_duration_is_over_by_itself(tmp_path):
    with Remote(tmp_path, IDLE) as program:
        program.do("create 1")
        record = Record("-p", program.pid, "-d", "300ms").end(None)
        assert record.rc == 0 and record.out.startswith(str(program.trace)) and program.status()["recording"] == WAITS


FROZEN = """
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec *time) { (void)clock; return *time = (struct timespec){1577836800, 0}, 0; }
"""


def test_duration_is_over_though_the_clock_stands_still(tmp_path):
    """As of a command under libfaketime with a fixed date. So is the patience with a process that does not answer."""
    (tmp_path / "frozen.c").write_text(FROZEN)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", tmp_path / "frozen.so", tmp_path / "frozen.c"], check=True)
    frozen = ["env", f"LD_PRELOAD={tmp_path}/frozen.so", BUILD / "custream"]
    with Remote(tmp_path, IDLE) as program:
        program.do("create 1")
        done = subprocess.run([*frozen, "record", "-p", str(program.pid), "-d", "300ms"], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0 and done.stdout.startswith(str(program.trace)), done
        os.kill(program.pid, signal.SIGSTOP)
        until(lambda: threads_stopped(program.pid))
        done = subprocess.run([*frozen, "dump", "-p", str(program.pid), "-o", tmp_path / "d.json"], capture_output=True, text=True, timeout=60, check=False)
        os.kill(program.pid, signal.SIGCONT)
        assert (done.returncode, done.stderr) == (2, f"custream dump: process {program.pid} is stopped; nothing was done\n")


# ---- A process that records ----

def test_open_window_stays_open(tmp_path):
    with Remote(tmp_path, CUPTI) as program:
        program.do("create 1", "launch 1 5", "all")
        with Record("-p", program.pid, "-o", tmp_path / "step.json") as record:
            program.do("launch 1 3", "all")
        assert record.rc == 0 and program.status()["recording"] == "on"
        program.do("launch 1 4", "all")
        with Record("-p", program.pid) as again:
            program.do("launch 1 2", "all")
        assert again.out == shown(program.trace, 4, 2, " It goes on recording.")
    assert launches(tmp_path / "step.json") == 3
    trace = program.load()
    assert calls_in(trace)["cuLaunchKernel"] == 14 and causes(trace) == []


def test_profiler_window(tmp_path):
    """Outside of it recording ends with the command; inside it goes on until cuProfilerStop."""
    with Remote(tmp_path, {"CUSTREAM_WINDOW": "profiler"}) as program:
        program.do("create 1")
        with Record("-p", program.pid):
            program.do("launch 1 3")
        program.do("launch 1 5", "profiler start")
        with Record("-p", program.pid) as record:
            pass
        assert "It goes on recording." in record.out
        program.do("launch 1 2", "profiler stop", "launch 1 9")
    assert calls_in(program.load())["cuLaunchKernel"] == 5


def test_after_ctl_off_it_is_off_again(tmp_path):
    with Remote(tmp_path) as program:
        program.do("create 1", "launch 1")
        program.ctl("off")
        with Record("-p", program.pid):
            program.do("launch 1 3")
        assert program.status()["recording"] == "off (custream ctl off)"


def test_ctl_off_ends_it(tmp_path):
    with Remote(tmp_path, IDLE) as program:
        program.do("create 1")
        with Record("-p", program.pid, "-d", "1h") as record:
            program.do("launch 1 3", "all")
            program.ctl("off")
            record.end(None)
        assert record.rc == 1 and record.out == shown(program.trace, 5, 3)
        assert re.fullmatch(rf"custream record: process {program.pid} \(remote\): custream ctl off ended it after \d+\.\d s", record.err)
        assert program.status()["recording"] == "off (custream ctl off)"


# ---- Several at once ----

def test_two_at_once(tmp_path):
    """The process records until the last of them ends; each file has the time of its own command."""
    with Remote(tmp_path, IDLE | CUPTI) as program:
        program.do("create 1")
        with Record("-p", program.pid, "-o", tmp_path / "long.json") as longer:
            program.do("launch 1 1", "all")
            with Record("-p", program.pid, "-o", tmp_path / "short.json") as shorter:
                program.do("launch 1 10", "all")
            assert shorter.rc == 0 and "nothing lost" in shorter.out and program.status()["recording"] == "on"
            program.do("launch 1 100", "all")
        assert longer.rc == 0 and program.status()["recording"] == WAITS
        program.do("launch 1 1000", "all")
    assert launches(tmp_path / "long.json") == 111 == calls_in(program.load())["cuLaunchKernel"]
    assert launches(tmp_path / "short.json") == 10


def test_killed_command_ends_the_recording(tmp_path):
    with Remote(tmp_path, IDLE) as program:
        program.do("create 1")
        with Record("-p", program.pid) as record:
            program.do("launch 1 3", "all")
            record.end(signal.SIGKILL)
        until(lambda: program.status()["recording"] == WAITS)
        assert launches(program.trace) == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_ends_it_well(tmp_path, number):
    with Remote(tmp_path, IDLE) as program:
        program.do("create 1")
        with Record("-p", program.pid, "-d", "1h", "-o", tmp_path / "step.json") as record:
            program.do("launch 1 3", "all")
            record.end(number)
        assert (record.rc, record.err, record.out) == (0, "", shown(tmp_path / "step.json", 5, 3)) and launches(tmp_path / "step.json") == 3


@pytest.mark.parametrize("how", ["return 0", "leave 3", "kill"])
def test_process_ends_meanwhile(tmp_path, how):
    with Remote(tmp_path, IDLE) as program:
        program.do("create 1")
        with Record("-p", program.pid, "-o", tmp_path / "step.json") as record:
            program.do("launch 1 3", "all")
            if how == "kill":
                program.ctl("flush")
                os.kill(program.pid, signal.SIGKILL)
            else:
                program.send(how)
            record.end(None)
    assert record.rc == 1
    assert re.match(rf"custream record: process {program.pid} \(remote\) ended after \d+\.\d s; its file is {program.trace}$", record.err)
    assert launches(tmp_path / "step.json") == 3 == launches(program.trace)


def test_fork(tmp_path):
    """The child is a process of its own: idle until it is asked, and the parent's recording is none of its."""
    with Remote(tmp_path, IDLE) as program:
        program.do("create 0")
        with Record("-p", program.pid) as record:
            program.do("launch 0 2")
            (child,) = program.do("fork 600000")
            try:
                until(lambda: row_of(int(child)))
                assert (row_of(int(child))["why_not"], row_of(int(child))["calls"], row_of(int(child))["file"]) == (WAITS[5:-1], 0, None)
                record.end()
                of_child = Record("-p", child, "-d", "0.2").end(None)
                own = str(program.trace).replace(".json", f"-{child}.json")
                assert of_child.rc == 0 and of_child.out.startswith(own + ": ") and program.status()["recording"] == WAITS
            finally:
                os.kill(int(child), signal.SIGKILL)
        assert record.rc == 0
    assert calls_in(program.load())["cuLaunchKernel"] == 2


def test_several_processes_in_one_timeline(tmp_path):
    """Chosen by a name that no other test has."""
    name = f"live{random.randrange(10 ** 6)}"
    shutil.copy(BUILD / "tests" / "remote", tmp_path / name)
    with Remote(tmp_path, IDLE | {"RANK": "0", "WORLD_SIZE": "2"}, trace="r0.json", executable=tmp_path / name) as one, \
            Remote(tmp_path, IDLE | {"RANK": "1", "WORLD_SIZE": "2"}, trace="r1.json", executable=tmp_path / name) as two:
        one.do("create 1"), two.do("create 1")
        with Record(f"--program={name[:-2]}??", "-o", tmp_path / "all.json") as record:
            one.do("launch 1 3", "all"), two.do("launch 1 4", "all")
        assert (record.rc, record.err) == (0, "") and record.out == shown(tmp_path / "all.json", 11, 7)
        trace = read(tmp_path / "all.json")
        assert calls_in(trace)["cuLaunchKernel"] == 7 and {file["rank"] for file in trace.metadata["merged"]["files"]} == {0, 1}
        assert {file["file"] for file in trace.metadata["merged"]["files"]} == {str(tmp_path / "r0.json"), str(tmp_path / "r1.json")}
        with Record("--program", name) as record:
            two.do("launch 1 2", "all")
        assert [line.split(": ")[:2] for line in record.out.splitlines()] == [[f"{p.pid} ({name})", str(p.trace)] for p in sorted((one, two), key=lambda p: p.pid)]


def test_by_rank(tmp_path):
    rank = random.randrange(10 ** 6, 10 ** 9)
    with Remote(tmp_path, IDLE | {"RANK": str(rank)}) as program, Remote(tmp_path, IDLE | {"RANK": str(rank + 1)}, trace="other.json") as other:
        program.do("create 1"), other.do("create 1")
        with Record(f"--rank={rank}") as record:
            program.do("launch 1 3")
        assert record.rc == 0 and record.out.startswith(str(program.trace)) and not (tmp_path / "other.json").exists()


ALL = """
import sys
sys.path.insert(0, sys.argv[1])
from tests.cases.test_live import IDLE, Record
from tests.handmade import custream
from tests.remote import Remote, until
result = custream("record", "--all", "-d", "1")
assert (result.returncode, result.stderr) == (2, "custream record: no process of yours listens; one does once it calls CUDA under 'custream run'\\n"), result
assert custream("ps").stderr.startswith("custream ps: no process of yours listens") and custream("ps").stdout == ""
with Remote(sys.argv[2], IDLE, trace="1.json") as one, Remote(sys.argv[2], IDLE, trace="2.json") as two:
    one.do("create 1"), two.do("create 1")
    with Record("--all") as record:
        pass
    assert record.rc == 0 and len(record.out.splitlines()) == 2, (record.out, record.err)
print("good")
"""


def test_all_of_them(root, tmp_path):
    """In a network of their own, where there are no others."""
    if subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode:
        pytest.xfail("this machine makes no namespaces")
    done = subprocess.run(["unshare", "--net", sys.executable, "-c", ALL, root, tmp_path], capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stdout) == (0, "good\n"), done.stderr


def test_one_of_two_refuses(tmp_path):
    with Remote(tmp_path, IDLE) as program, Remote(tmp_path, IDLE | {"CUSTREAM_TRACE": tmp_path / "nowhere/t.json", "CUSTREAM_LOG": "error"}) as bad:
        program.do("create 1"), bad.do("create 1")
        with Record("-p", program.pid, "-p", bad.pid, "-p", program.pid) as record:
            program.do("launch 1 3", "all")
        assert (record.rc, record.err) == (1, f"custream record: process {bad.pid}: the trace could not be opened") and record.out == shown(program.trace, 5, 3)
        alone = Record("-p", bad.pid, "-d", "1").end(None)
        assert (alone.rc, alone.out, alone.err) == (2, "", f"custream record: process {bad.pid}: the trace could not be opened")


# ---- Files ----

def test_parts(tmp_path):
    """What went into several parts is in one file."""
    with Remote(tmp_path, CUPTI | {"CUSTREAM_TRACE_MAX": "1M,rotate:20", "CUSTREAM_FULL": "block"}) as program:
        program.do("create 1", "launch 1 3000", "all")
        with Record("-p", program.pid, "-o", tmp_path / "step.json.gz") as record:
            program.do("launch 1 10000", "all")
        assert record.rc == 0, record.err
        program.do("launch 1 3000", "all")
        trace = read(tmp_path / "step.json.gz")
        assert calls_in(trace)["cuLaunchKernel"] == 10000 and trace.metadata["cut"]["files"] > 2
    assert program.end().rc == 0


def test_trace_that_is_full(tmp_path):
    with Remote(tmp_path, IDLE | {"CUSTREAM_TRACE_MAX": "1M", "CUSTREAM_LOG": "error"}) as program:
        program.do("create 1")
        with Record("-p", program.pid) as record:
            until(lambda: program.do("launch 1 1000") is None or program.status()["recording"] == "off (the trace is full)")
        assert record.err == (f"custream record: process {program.pid} (remote): its trace is full, so recording ended before; "
                              "CUSTREAM_TRACE_MAX with rotate goes on")
        again = Record("-p", program.pid, "-d", "1").end(None)
        assert (again.rc, again.err) == (2, f"custream record: process {program.pid}: the trace is full")


def test_output_that_can_not_be_is_told_before(tmp_path):
    other = tmp_path / "other.json"
    other.write_text('{"not": "ours"}')
    with Remote(tmp_path, IDLE) as program:
        program.do("create 1")
        for to, why in [(tmp_path / "nowhere/x.json", "No such file or directory"), (other, "the file is no trace; allowed is a new file, an empty one or an earlier trace"), (tmp_path / "x.txt", "allowed is a path ending in"),
                        (tmp_path / "d.json", "directory")]:
            (tmp_path / "d.json").mkdir(exist_ok=True)
            record = Record("-p", program.pid, "-d", "1", "-o", to).end(None)
            assert record.rc == 2 and not record.out and record.err.startswith(f"custream record: -o {to}: ") and why in record.err, record.err
        assert program.status()["trace"] == "none" and other.read_text() == '{"not": "ours"}' and not (tmp_path / "x.txt").exists()


def test_output_is_not_the_process_own_file(tmp_path):
    with Remote(tmp_path) as program:
        program.do("create 1", "launch 1")
        program.ctl("flush")
        with Record("-p", program.pid, "-o", program.trace) as record:
            program.do("launch 1 3")
        assert record.rc == 2 and record.err == f"custream record: -o {program.trace}: the process itself writes to {program.trace}; name another file"
    assert calls_in(program.load())["cuLaunchKernel"] == 4


# ---- Wrong usage ----

@pytest.mark.parametrize("words, line", [
    ((), "which process? -p PID, --all, --rank=N or --program=NAME; 'custream ps' lists them"),
    (("-p", "x"), "'x' is no process id"), (("-p", "0"), "'0' is no process id"), (("--rank=-1",), "--rank=-1: allowed is a number from 0 on"),
    (("--all", "--rank=1"), "-p, --all, --rank and --program: one of them"),
    (("--all", "-d", "0"), "--duration=0: allowed is a time above 0 in seconds, or with ms, s, m, h: 5s, 500ms"),
    (("--all", "-d", "5x"), "--duration=5x: allowed is a time above 0 in seconds, or with ms, s, m, h: 5s, 500ms"),
    (("1234",), "'1234' is no option; a process is named by -p PID"), (("--durations=5",), 'there is no option "--durations"; did you mean "--duration"?'),
    (("--program=nobody-has-this-name",), None), (("-p", "4194305"), "no process 4194305"),
])
def test_wrong_usage(words, line):
    result = custream("record", *words)
    assert (result.returncode, result.stdout) == (2, "") and result.stderr.count("\n") == 1
    assert result.stderr == f"custream record: {line}\n" if line else "listens" in result.stderr


def test_idle_that_nobody_can_ask(tmp_path):
    """A command line that makes no sense is not started; by hand it is a line."""
    result = custream("run", "--window=ctl", "--ctl=off", "true")
    assert (result.returncode, result.stderr) == (2, "custream run: CUSTREAM_WINDOW=ctl does nothing beside CUSTREAM_CTL=off: nobody can ask the process to record\n")
    with Remote(tmp_path, IDLE | {"CUSTREAM_CTL": "off"}) as program:
        program.do("create 1")
    assert program.said() == ["custream: warning: CUSTREAM_CTL=off beside CUSTREAM_WINDOW=ctl: nobody can ask, so nothing is recorded"]


def test_process_that_does_not_listen():
    result = custream("record", "-p", os.getpid(), "-d", "1")
    assert (result.returncode, result.stderr) == (2, f"custream record: process {os.getpid()} does not run under custream\n")
    assert ctl(os.getpid(), "on")[2] == f"custream ctl: process {os.getpid()} does not run under custream"


# ---- The documents ----

def test_the_document_has_every_member_of_ps(root, tmp_path):
    page = (root / "docs/command.md").read_text(encoding="utf-8").split("## ps: ")[1].split("\n## ")[0]
    with Remote(tmp_path) as program:
        program.do("create 1")
        members = [*json.loads(custream("ps", "--json").stdout), *row_of(program.pid)]
        assert re.findall(r"^\| `(\w+)` \|", page.split("`--json` writes")[1], flags=re.M) == members


@pytest.mark.parametrize("command", ["record", "dump"])
def test_the_document_has_every_option(root, command):
    page = (root / "docs/command.md").read_text(encoding="utf-8").split(f"## {command}: ")[1].split("\n## ")[0]
    flags = set(re.findall(r"(--[a-z]+)", "".join(re.findall(r"^  .*?  ", custream("help", command).stdout, flags=re.M))))
    assert len(flags) == 7 and all(f"{flag}" in page for flag in flags)
