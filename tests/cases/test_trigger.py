"""CUSTREAM_TRIGGER and `custream trigger`: ranks that look at one file record the same seconds. tests/unit/trigger.c has which files are read, and the times."""
import contextlib
import os
import re
import signal
import stat
import time

import pytest

from tests.apprun import calls_in, read
from tests.cases.test_ctl import threads_of
from tests.cases.test_window import causes, gaps, inside
from tests.gputrace import works
from tests.handmade import custream
from tests.perfetto import assert_clean
from tests.remote import Remote, ctl, until

BY = "the trigger (CUSTREAM_TRIGGER)"
WAITS = "nobody has asked for it: CUSTREAM_WINDOW=ctl"


def idle(path, **more):
    return {"CUSTREAM_WINDOW": "ctl", "CUSTREAM_TRIGGER": path, **more}


def put(path, *lines, start=None, duration=1000):
    """By hand: seconds that are under way. It gets its name as a whole."""
    beside = path.with_name(path.name + ".new")
    beside.write_text("".join(f"{line}\n" for line in (f"start={time.time() - 100 if start is None else start:.6f}", f"duration={duration}", *lines)))
    beside.replace(path)


def windows(trace):
    """By the wall clock, seconds."""
    base = trace.json["baseTimeNanoseconds"]
    return [((base + w["from_us"] * 1000) / 1e9, (base + w.get("to_us", 0) * 1000) / 1e9, w["opened_by"]) for w in trace.totals["windows"]["last"]]


def records(program):
    return program.status()["recording"] == "on"


def has_recorded(program):
    """And does so no more. Where it records there may be nobody to see it: that is over by itself."""
    return program.trace.exists() and "opened_by" in program.trace.read_text() and not records(program)


# ---- What is recorded ----

def test_what_the_command_asks_for(tmp_path, trace_processor):
    """The ranks that it names record those seconds, with the policy; another one records nothing, and an idle process has no file before."""
    path, policy = tmp_path / "trigger", tmp_path / "policy.json"
    policy.write_text('{\n  "priority": "set:-3"\n}\n')
    with Remote(tmp_path, idle(path, RANK=3), trace="named.json") as named, Remote(tmp_path, idle(path, RANK=4), trace="other.json") as other:
        for program in (named, other):
            program.do("create 1", "launch 1 2", "all")
        assert not named.trace.exists() and not records(named)
        for seconds in (0.4, 4, 40):  # who has no processor in that time records nothing, and is asked anew
            done = custream("trigger", path, "--in=1.2s", f"--duration={seconds}s", "--ranks=0-3,12", f"--policy={policy}")
            assert done.returncode == 0 and re.fullmatch(rf"{path}: ranks 0-3,12 record from [\d-]+T[\d:.]+Z for {seconds} s\n", done.stdout) and not done.stderr
            over = time.time() + 1.2 + seconds
            until(lambda: named.do("launch 1", "all") is not None and (has_recorded(named) or time.time() > over), 1.2 + seconds + 30)
            if named.status() and named.status() and has_recorded(named):  # asked twice: it has looked at its clock since
                break
        named.do("launch 1 5", "all")
        assert named.status()["policy"] == '{"priority":"set:-3"}' and other.status()["policy"] == "none"
        other.do("launch 1 5")
    assert other.end().rc == 0 and not other.trace.exists() and not other.said()
    trace = named.load()
    ((begun, ended, by),) = windows(trace)
    start = time.strptime(re.search(r"start=([\d:T-]+)", path.read_text())[1], "%Y-%m-%dT%H:%M:%S")
    assert by == BY and begun >= (time.mktime(start) - time.timezone) and ended > begun
    assert [g["args"].get("opened_by") for g in gaps(trace)] == [BY, None] and causes(trace) == [WAITS] * 2
    assert calls_in(trace)["cuLaunchKernel"] == len(works(trace, "kernel")) and all(inside(trace, e) for e in trace.host(cat="cuda_driver"))
    assert [e["args"]["policy"] for e in trace.events if e.get("cat") == "cs_policy"] == ['{"priority":"set:-3"}']
    trace_processor.load(named.trace)
    assert_clean(trace_processor)


def test_twenty_processes_record_the_same_seconds(tmp_path):
    path = tmp_path / "trigger"
    with contextlib.ExitStack() as stack:
        programs = [stack.enter_context(Remote(tmp_path, idle(path, RANK=rank, CUSTREAM_BUFFER="64K"), trace=f"r{rank}.json")) for rank in range(20)]
        for program in programs:
            program.do("create 1")
        assert custream("trigger", path, "--in=2.5s", "--duration=1000s", "--ranks=0-19").returncode == 0
        second = re.search(r"T\d+:\d+:(\d+\.\d+)Z", path.read_text())[1]
        for program in programs:
            until(lambda: records(program))
        put(path, start=time.time() - 10, duration=1)  # as soon as all record, their time is over
        for program in programs:
            until(lambda: has_recorded(program))
    found = [windows(program.load()) for program in programs]
    assert all(len(one) == 1 and one[0][2] == BY for one in found)
    begun, ended = [one[0][0] for one in found], [one[0][1] for one in found]
    assert all((at - float(second)) % 60 < 30 for at in begun), "one began before its time"
    assert max(begun) < min(ended), (begun, ended)  # a moment at which all recorded


def test_seconds_under_way_are_joined(tmp_path):
    """By a process that starts late, by one that became another program, by a child; each looks for itself."""
    path = tmp_path / "trigger"
    put(path)
    with Remote(tmp_path, idle(path)) as program:
        program.do("create 1")
        assert records(program)
        program.do("launch 1 3", "all")
        (child,) = program.do("fork 600000")
        until(lambda: ctl(child, "status")[1].startswith("recording: on"))
        os.kill(int(child), signal.SIGKILL)
        assert program.do("exec") == ["exec"] and program._answer() == [str(program.pid)]
        program.do("create 1")
        assert records(program)
        program.do("launch 1 4", "all")
    assert program.end().rc == 0 and not program.said()
    counts = [calls_in(read(file))["cuLaunchKernel"] for file in tmp_path.glob("remote*.json") if str(child) not in file.name]
    assert sorted(counts) == [3, 4]


def test_seconds_that_are_over_are_not_recorded(tmp_path):
    path = tmp_path / "trigger"
    put(path, duration=10)
    with Remote(tmp_path, idle(path)) as program:
        program.do("create 1", "launch 1 3", "all")
        assert not records(program)
    assert program.end().rc == 0 and not program.trace.exists() and "its time is over" in program.stderr and not program.said()


def test_ctl_off_ends_it_and_record_goes_beside_it(tmp_path):
    path = tmp_path / "trigger"
    put(path)
    with Remote(tmp_path, idle(path)) as program:
        program.do("create 1")
        assert records(program)
        program.do("launch 1 3")
        assert custream("record", "-p", program.pid, "-d", "50ms").returncode == 0
        assert records(program), "the trigger holds on"
        program.ctl("off")
        assert not records(program)
        program.do("launch 1 9")
    trace = program.load()
    assert calls_in(trace)["cuLaunchKernel"] == 3 and [w[2] for w in windows(trace)] == [BY]


def test_a_process_that_records_goes_on_afterwards(tmp_path):
    path = tmp_path / "trigger"
    put(path, start=time.time() - 100, duration=100.3)
    with Remote(tmp_path, {"CUSTREAM_TRIGGER": path}) as program:
        program.do("create 1", "launch 1 3", "all")
        until(lambda: time.time() > path.stat().st_mtime + 0.5)
        program.do("launch 1 4", "all")
        assert records(program)
    trace = program.load()
    assert calls_in(trace)["cuLaunchKernel"] == 7 and not gaps(trace)


# ---- Who looks ----

def test_where_nobody_can_ask(tmp_path):
    """CUSTREAM_CTL=off closes the socket, and not the file. The window that has not opened is no reason for a warning then."""
    path = tmp_path / "trigger"
    put(path)
    with Remote(tmp_path, idle(path, CUSTREAM_CTL="off")) as program:
        program.do("create 1", "launch 1 3", "all")
        assert ctl(program.pid, "status")[0] == 2 and threads_of(program.pid)["custream-ctl"] == 1
        until(lambda: program.trace.exists())
    assert calls_in(program.load())["cuLaunchKernel"] <= 3


def test_off_is_off(tmp_path):
    path = tmp_path / "trigger"
    put(path)
    with Remote(tmp_path, idle(path, CUSTREAM_TRACE="off")) as program:
        program.do("create 1", "launch 1 3")
        assert set(threads_of(program.pid)) == {"remote"}
    assert program.end().rc == 0 and [p.name for p in tmp_path.iterdir()] == ["trigger"]
    assert program.said() == ["custream: warning: CUSTREAM_TRIGGER says what is to be recorded: with CUSTREAM_TRACE=off nothing is"]
    done = custream("run", "--trace=off", "--trigger=file", "true")
    assert done.returncode == 2 and done.stderr == "custream run: CUSTREAM_TRIGGER=file does nothing beside CUSTREAM_TRACE=off: nothing is recorded\n"


@pytest.mark.parametrize("kind, words", [("link", "it is a symbolic link"), ("pipe", "it is no regular file"), ("open", "others can write to it"), ("other", "it belongs to another user"),
                                         ("huge", "it is too large"), ("binary", "it is no text"), ("wrong", "line 2: allowed is duration= with seconds above 0")])
def test_a_wrong_file_is_one_line(tmp_path, kind, words):
    path = tmp_path / "trigger"
    put(path)
    if kind == "link":
        path.rename(tmp_path / "target")
        path.symlink_to("target")
    elif kind == "pipe":
        path.unlink()
        os.mkfifo(path)
    elif kind == "open":
        path.chmod(0o660)
    elif kind == "other":
        os.chown(path, 4711, 4711)
    elif kind == "huge":
        os.truncate(path, 1 << 40)
    elif kind == "binary":
        path.write_bytes(b"start=1\0" + bytes(range(256)))
    else:
        put(path, duration="-1")
    with Remote(tmp_path, idle(path)) as program:
        program.do("create 1", "launch 1 3")
        assert not records(program)
    (line,) = program.said()
    assert program.rc == 0 and line.startswith(f"custream: warning: CUSTREAM_TRIGGER={path}: {words}") and line.endswith("; it is ignored until it changes"), line


# ---- The command ----

def test_the_file_is_one_that_processes_read(tmp_path):
    path = tmp_path / "trigger"
    assert custream("trigger", path, preexec_fn=lambda: os.umask(0)).stdout.startswith(f"{path}: all ranks record from ")
    assert stat.S_IMODE(path.stat().st_mode) == 0o644 and [p.name for p in tmp_path.iterdir()] == ["trigger"]


def refused(*words):
    done = custream("trigger", *words)
    assert done.returncode == 2 and not done.stdout and done.stderr.count("\n") == 1, done
    return done.stderr


def test_does_not_write_over_other_files_and_seconds_to_come(tmp_path):
    path = tmp_path / "file"
    path.write_text('{"name": "my-app"}\n')
    assert "there is another file of that name, which is no trigger" in refused(path) and path.read_text() == '{"name": "my-app"}\n'
    (tmp_path / "link").symlink_to("file")
    assert "no regular file" in refused(tmp_path / "link") and "no regular file" in refused(tmp_path)
    path.write_text("")
    assert custream("trigger", path, "-d", "1ms", "--in=1ms").returncode == 0
    until(lambda: custream("trigger", path, "--in=100").returncode == 0)
    assert re.search(r"the seconds of the last one are over in 10\d\.\d s", refused(path))
    assert "No such file or directory" in refused(tmp_path / "nowhere/file") and sorted(p.name for p in tmp_path.iterdir()) == ["file", "link"]


def test_wrong_words(tmp_path):
    path, policy = tmp_path / "trigger", tmp_path / "policy.json"
    assert "takes one FILE" in refused() and "takes one FILE" in refused(path, "b")
    assert "--in=soon: allowed is a time" in refused(path, "--in=soon") and "--duration=0: allowed" in refused(path, "--duration=0")
    for ranks in ("", "x", "3-1", "1,", "1\nstart=5", ",".join(["1"] * 65)):
        assert "allowed is ranks=all, or at most 64" in refused(path, f"--ranks={ranks}") or ranks == "1\nstart=5"
    for text, words in (('{"priority": "7"}', "priority"), ('{"trace": "x.json"}', "trace"), ("[]", ""), ('{"rules": [{"match": {"thread": "a\nb"}, "set": {"priority": -1}}]}', "")):
        policy.write_text(text)
        assert words in refused(path, f"--policy={policy}")
    assert "No such file" in refused(path, "--policy=nowhere") and not path.exists()
