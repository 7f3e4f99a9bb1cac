"""custream ctl: recording switched on and off, flushes, policies and the state of a process that runs; and what the program must not notice of it."""
import collections
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from tests.apprun import calls_in, read
from tests.cases.conftest import app_environment
from tests.cases.test_window import PROFILER, causes, gaps, launches, until
from tests.gputrace import CUPTI, check_works, end_of, works
from tests.perfetto import assert_clean
from tests.remote import BUILD, Remote, ctl

QUIET = {"CUSTREAM_TRACE": "off"}


def threads_of(pid):
    names = collections.Counter()
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/comm", encoding="utf-8") as file:
            names[file.read().strip()] += 1
    return names


def address_of(pid):
    return f"\0custream/{os.readlink(f'/proc/{pid}/ns/pid')}/{pid}"


def say(pid, packet, close=False):
    """What the process answers to a packet that the command would not send."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
        peer.settimeout(30)
        peer.connect(address_of(pid))
        if packet is not None:
            peer.send(packet)
        return b"" if close else peer.recv(1 << 16)


# ---- On and off ----

@pytest.mark.parametrize("gpu", ["cupti", "events", "off"])
def test_off_and_on(tmp_path, trace_processor, gpu):
    with Remote(tmp_path, {"CUSTREAM_GPU": gpu}) as program:
        program.do("create 1", "launch 1 2")
        assert program.ctl("off") == f"off: {program.trace}"
        assert calls_in(read(program.trace))["cuLaunchKernel"] == 2, "what was recorded is in the file"
        program.do("launch 1 30", "all")
        assert program.status()["recording"] == "off (custream ctl off)" and program.ctl("off") == f"off: {program.trace}"
        assert program.ctl("on") == f"on: {program.trace}" == program.ctl("on") and program.status()["recording"] == "on"
        program.do("launch 1 3", "all")
    trace = program.load()
    assert calls_in(trace)["cuLaunchKernel"] == 5 and calls_in(trace)["cuCtxSynchronize"] == 1 and causes(trace) == ["custream ctl off"]
    assert [(w["opened_by"], w.get("cause")) for w in trace.totals["windows"]["last"]] == [("the start", "custream ctl off"), ("custream ctl on", None)]
    if gpu != "off":
        assert len(works(trace, "kernel")) == 5 and trace.totals["gpu"]["without_call"] == 0
    if gpu == "cupti":
        check_works(trace)
    trace_processor.load(program.trace)
    assert_clean(trace_processor)


def test_beats_the_window_until_the_other_is_said(tmp_path):
    with Remote(tmp_path, PROFILER) as program:
        program.do("create 1", "launch 1")
        assert program.ctl("on") == f"on: {program.trace}"
        program.do("launch 1", "profiler start", "launch 1", "profiler stop", "launch 1")
        program.ctl("off")
        program.do("profiler start", "launch 1", "profiler stop")
        program.ctl("on")
        program.do("launch 1")
    trace = program.load()
    assert calls_in(trace)["cuLaunchKernel"] == 4 and calls_in(trace)["cuProfilerStart"] == 1 and causes(trace) == ["before cuProfilerStart", "custream ctl off"]


def test_delay_is_over_before_it_is(tmp_path):
    with Remote(tmp_path, {"CUSTREAM_WINDOW": "delay=1000"}) as program:
        program.do("create 1", "launch 1 2")
        program.ctl("on")
        program.do("launch 1 3")
    assert calls_in(program.load())["cuLaunchKernel"] == 3


def test_objects_are_as_they_are_after_off(tmp_path):
    """A handle that is another stream, a thread in another context, an event recorded anew."""
    with Remote(tmp_path, CUPTI) as program:
        first = program.do("create 1")
        program.do("event 1", "on 1 context set 0", "launch 1", "on 1 launch own", "record 1 1")
        program.ctl("off")
        program.do("destroy 1")
        second = program.do("create 1")
        program.do("on 1 context new 1", "create 2", "record 1 2")
        program.ctl("on")
        program.do("launch 1", "launch 2", "on 1 launch own", "wait 2 1", "all")
    trace = program.load()
    assert first == second, "the simulated driver did not give the handle out again: this shows nothing"
    assert not [f for f in trace.flows("cs_dep") if f.start["name"] == "cuEventRecord"]
    found = {w["args"]["correlation"]: w["args"]["context"] for w in check_works(trace)}
    lanes = [(e["args"].get("cs.device", 0), e["args"]["cs.stream"], found[e["args"]["correlation"]]) for e in launches(trace)]
    assert len(lanes) == 5 and len({lane[:2] for lane in lanes}) == 5 and [lane[2] for lane in lanes] == [1, 1, 1, 1, 2]
    ended = [e["args"]["destroyed"] for e in trace.pairs if e["cat"] == "cs_stream" and (e["pid"], e["tid"]) == lanes[0][:2]]
    assert ended == [True]


# ---- A process that records nothing ----

def test_begins_a_file_where_tracing_was_off(tmp_path):
    with Remote(tmp_path, QUIET | {"CUSTREAM_CTL": "on"} | CUPTI) as program:
        program.do("create 1", "push early", "launch 1 7")
        status = program.status()
        assert (status["recording"], status["trace"], status["streams"]) == ("off (CUSTREAM_TRACE=off)", "none", "1")
        assert ctl(program.pid, "flush") == (1, "", f"custream ctl: process {program.pid}: nothing was recorded, so there is no file")
        path = tmp_path / f"custream-remote-{program.pid}.json"
        assert program.ctl("on") == f"on: {path}"
        program.do("launch 1 3", "pop", "all")
        assert program.ctl("flush") == str(path)
    assert program.end().rc == 0 and not program.said() and not program.trace.exists()
    trace = read(path)
    check_works(trace)
    assert calls_in(trace)["cuLaunchKernel"] == 3 and causes(trace) == ["CUSTREAM_TRACE=off"]
    assert [e["name"] for e in trace.slices if e["cat"] == "user_annotation"] + [s[0] for s in trace.spans()] == ["early"]


@pytest.mark.parametrize("env", [QUIET, QUIET | {"CUSTREAM_CTL": "off"}, {"CUSTREAM_CTL": "off"}, {"CUSTREAM_CTL": "off", "CUSTREAM_WINDOW": "profiler"}])
def test_does_not_listen(tmp_path, env):
    with Remote(tmp_path, env) as program:
        program.do("create 1", "launch 1")
        assert "custream-ctl" not in threads_of(program.pid)
        if env == QUIET:
            assert set(threads_of(program.pid)) == {"remote"}
        rc, out, err = ctl(program.pid, "status")
        assert (rc, out) == (2, "") and err == (f"custream ctl: process {program.pid} does not listen: it has called no CUDA yet, or CUSTREAM_CTL or "
                                                "CUSTREAM_TRACE=off keeps it from that")


def test_no_cuda_no_thread(tmp_path):
    process = subprocess.Popen(["sleep", "30"], env=app_environment(BUILD, tmp_path / "t.json", True, {"CUSTREAM_CTL": "on"}))
    try:
        until(lambda: any("libcustream_shim" in line for line in open(f"/proc/{process.pid}/maps", encoding="utf-8")))
        assert len(os.listdir(f"/proc/{process.pid}/task")) == 1
        rc, _, err = ctl(process.pid, "status")
        assert rc == 2 and "it has called no CUDA yet" in err
    finally:
        process.kill()
        process.wait()


def test_policy_alone_listens(tmp_path):
    with Remote(tmp_path, QUIET | {"CUSTREAM_PRIORITY": "0:-1"}) as program:
        program.do("create 1")
        assert program.status()["policy"] == "priorities" and program.status()["recording"] == "off (CUSTREAM_TRACE=off)"
    assert program.end().rc == 0 and list(tmp_path.iterdir()) == []


# ---- flush, status ----

def test_flush_brings_the_file_up_to_date(tmp_path):
    with Remote(tmp_path, CUPTI) as program:
        program.do("create 1", "launch 1 5", "all")
        assert program.ctl("flush") == str(program.trace)
        trace = read(program.trace)
        assert calls_in(trace)["cuLaunchKernel"] == 5 == len(works(trace)) and trace.totals["complete"] is False
        assert program.status() == {"recording": "on", "trace": str(program.trace), "recorded": str(trace.totals["recorded"]), "lost": "0", "streams": "1",
                                    "policy": "none", "gpu": "cupti"}
    program.load()


# ---- policy ----

def lives(trace):
    return {e["args"]["handle"]: e for e in trace.pairs if e["cat"] == "cs_stream" and e["args"]["origin"] == "created"}


def test_policy_for_streams_that_are_made_from_now_on(tmp_path, trace_processor):
    policy = tmp_path / "policy.json"
    policy.write_text('{\n "rules": [{"match": {"library": "remote"},\n   "set": {"priority": -3, "name": "late"}}]\n}\n')
    with Remote(tmp_path) as program:
        (before,) = program.do("create 1")
        assert program.ctl("policy", policy) == "in force for streams that are made from now on"
        (after,) = program.do("create 2")
        assert program.status()["policy"] == '{"rules":[{"match":{"library":"remote"},"set":{"priority":-3,"name":"late"}}]}'
        assert program.ctl("policy", "-", text="{}") == "in force for streams that are made from now on" and program.status()["policy"] == "none"
        (last,) = program.do("create 3")
    trace = program.load()
    shown = lives(trace)
    assert [shown[handle]["args"]["priority"] for handle in (before, after, last)] == [0, -3, 0] and "late" in shown[after]["name"]
    told = [e for e in trace.events if e.get("cat") == "cs_policy"]
    assert [(e["ph"], e["name"]) for e in told] == [("i", "policy")] * 2 and json.loads(told[0]["args"]["policy"])["rules"][0]["set"]["priority"] == -3
    assert shown[before]["ts"] < told[0]["ts"] < shown[after]["ts"] < told[1]["ts"] < shown[last]["ts"]
    trace_processor.load(program.trace)
    assert_clean(trace_processor)
    assert trace_processor.value("SELECT count(*) FROM slice WHERE category = 'cs_policy'") == 2


@pytest.mark.parametrize("text, part", [
    ("{", "not JSON"), ("", "is empty"), ('{"priority": 7}', "priority"), ('{"nonsense": 1}', "nonsense"), ('{"trace": "x.json"}', "cannot change in a running process"),
    ("{\0}", "not text"), ("{" + " " * (200 << 10) + "}", "longer than 127 KiB"),
])
def test_bad_policy_is_not_even_sent(tmp_path, text, part):
    with Remote(tmp_path) as program:
        program.do("create 1")
        rc, out, err = ctl(program.pid, "policy", "-", text=text)
        assert (rc, out, err.count("\n")) == (2, "", 0) and err.startswith("custream ctl: ") and part in err
    assert not [e for e in program.load().events if e.get("cat") == "cs_policy"]


def test_process_refuses_what_its_environment_beats(tmp_path):
    with Remote(tmp_path, {"CUSTREAM_PRIORITY": "0:-1"}) as program:
        program.do("create 1")
        rc, out, err = ctl(program.pid, "policy", "-", text='{"priority": "0:-4"}')
        assert (rc, out) == (1, "") and "CUSTREAM_PRIORITY=0:-1" in err and err.startswith(f"custream ctl: process {program.pid}: policy: priority")


# ---- Wrong usage, and processes that can't be asked ----

@pytest.mark.parametrize("words, line", [
    ((), "which process, and what? 'custream help ctl' says more"), ((1,), "which process, and what? 'custream help ctl' says more"),
    (("x", "on"), "'x' is no process id"), (("1x", "on"), "'1x' is no process id"), ((0, "on"), "'0' is no process id"), (("-5", "on"), "'-5' is no process id"),
    ((99999999999, "on"), "'99999999999' is no process id"), ((1, "fluhs"), "'fluhs' is nothing that can be asked; did you mean flush?"),
    ((1, "of"), "'of' is nothing that can be asked; did you mean off?"), ((1, "ON"), "'ON' is written on"),
    ((1, "restart"), "'restart' is nothing that can be asked: on, off, flush, status or policy FILE"), ((1, "on", "now"), "on takes nothing more"),
    ((1, "policy"), "policy takes one FILE (- is standard input)"), ((1, "policy", "/nonexistent.json"), "/nonexistent.json: No such file or directory"),
    ((1, "policy", "/"), "/: Is a directory"),
])
def test_wrong_usage(words, line):
    assert ctl(*words) == (2, "", f"custream ctl: {line}")


def test_help():
    rc, out, err = ctl("--help")
    assert rc == 0 and not err and out == subprocess.run([BUILD / "custream", "help", "ctl"], capture_output=True, text=True, check=True).stdout.rstrip("\n")
    assert all(f"\n  {word} " in out for word in ("on", "off", "flush", "status", "policy"))


def test_processes_that_can_not_be_asked(tmp_path):
    ended = subprocess.Popen(["true"])
    until(lambda: open(f"/proc/{ended.pid}/stat", encoding="utf-8").read().split(") ")[1][0] == "Z")
    assert ctl(ended.pid, "on") == (2, "", f"custream ctl: process {ended.pid} has ended")
    ended.wait()
    assert ctl(ended.pid, "on") == (2, "", f"custream ctl: no process {ended.pid}")
    assert ctl(os.getpid(), "on") == (2, "", f"custream ctl: process {os.getpid()} does not run under custream")


def test_stopped_process_is_left_as_it_is(tmp_path):
    """It is told so, and when the process goes on nothing is done that nobody waits for any more."""
    with Remote(tmp_path) as program:
        program.do("create 1", "launch 1 2")
        os.kill(program.pid, signal.SIGSTOP)
        try:
            assert ctl(program.pid, "off") == (2, "", f"custream ctl: process {program.pid} is stopped; nothing was done")
        finally:
            os.kill(program.pid, signal.SIGCONT)
        assert program.status()["recording"] == "on"
        program.do("launch 1 3")
    assert calls_in(program.load())["cuLaunchKernel"] == 5


def test_process_is_killed_while_it_is_asked(tmp_path):
    with Remote(tmp_path) as program:
        program.do("create 1")
        os.kill(program.pid, signal.SIGSTOP)
        asked = subprocess.Popen([BUILD / "custream", "ctl", str(program.pid), "status"], stderr=subprocess.PIPE, text=True)
        until(lambda: b"socket:" in b" ".join(os.fsencode(os.readlink(f"/proc/{asked.pid}/fd/{fd}")) for fd in os.listdir(f"/proc/{asked.pid}/fd")))
        os.kill(program.pid, signal.SIGKILL)
        _, err = asked.communicate(timeout=30)
        program.process.wait()
    assert asked.returncode == 2 and (f"process {program.pid} ended before it answered" in err or f"process {program.pid} is stopped" in err)


def test_process_ends_while_somebody_is_connected(tmp_path):
    """Who says nothing keeps nobody: neither others, nor the end of the process."""
    with Remote(tmp_path) as program:
        program.do("create 1", "launch 1 2")
        peers = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(5)]
        for peer in peers:
            peer.connect(address_of(program.pid))
        assert program.status()["recording"] == "on"
        trace = program.load()
        assert trace.totals["complete"] is True and calls_in(trace)["cuLaunchKernel"] == 2
        for peer in peers:
            assert peer.recv(10) == b""
            peer.close()


def test_garbage_is_answered(tmp_path):
    with Remote(tmp_path) as program:
        program.do("create 1")
        assert say(program.pid, b"nonsense") == b"error nonsense is nothing that this version knows\n"
        assert say(program.pid, b"\xff\x00\x01\n") == b"error \xff is nothing that this version knows\n"
        assert say(program.pid, b"\x1b[31m") == b"error ?[31m is nothing that this version knows\n"
        assert say(program.pid, b"o" * 5000).startswith(b"error ooooo") and say(program.pid, b"policy") == b"error policy: no JSON\n"
        assert say(program.pid, b"policy " + b"x" * (150 << 10)) == b"error the request is too long\n"
        say(program.pid, b"off", close=True)
        say(program.pid, None, close=True)
        assert program.status()["recording"] in ("on", "off (custream ctl off)")
    program.load()


def test_many_at_once(tmp_path):
    with Remote(tmp_path, CUPTI) as program:
        program.do("create 1", "launch 1 2")
        asked = [subprocess.Popen([BUILD / "custream", "ctl", str(program.pid), ("on", "off", "flush", "status")[n % 4]], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True) for n in range(60)]
        answers = [(one.communicate(timeout=60), one.returncode) for one in asked]
        assert {rc for _, rc in answers} == {0} and not [err for (_, err), _ in answers if err]
        program.ctl("on")
        program.do("launch 1 3", "all")
    trace = program.load()
    check_works(trace)
    assert calls_in(trace)["cuLaunchKernel"] == 5


# ---- What the program must not notice ----

def test_descriptors_are_none_of_the_programs(tmp_path):
    """Closing all descriptors leaves the listener as it is, no number of the program's is touched, and none is there that it did not open but the trace's."""
    with Remote(tmp_path) as program:
        program.do("create 1", "launch 1 2")
        kinds = collections.Counter(os.readlink(f"/proc/{program.pid}/fd/{fd}").split(":")[0] for fd in os.listdir(f"/proc/{program.pid}/fd"))
        assert kinds["socket"] == 0 and kinds[str(program.trace)] == 1
        program.do("close")
        for word in ("status", "off", "on", "flush", "status"):
            program.ctl(word)
        program.do("launch 1 3")
        assert program.do("intact") == ["300"]
        program.ctl("flush")
    trace = program.load()
    assert calls_in(trace)["cuLaunchKernel"] == 5
    assert all(path.read_text() == "mine\n" for path in tmp_path.glob("own-*.txt"))


def test_keeps_no_file_of_the_programs_open(tmp_path):
    """Who reads from the program's output sees its end as soon as the program has closed it."""
    script = tmp_path / "closes.py"
    script.write_text("import ctypes, os, sys, time\n"
                      "d = ctypes.CDLL('libcuda.so.1'); d.cuInit(0); c = ctypes.c_void_p(); assert d.cuDevicePrimaryCtxRetain(ctypes.byref(c), 0) == 0\n"
                      "sys.stdin.readline(); os.close(1); time.sleep(600)\n")
    process = subprocess.Popen([sys.executable, script], env=app_environment(BUILD, tmp_path / "t.json", True, {}), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        until(lambda: threads_of(process.pid)["custream-ctl"] == 1)
        assert ctl(process.pid, "status")[0] == 0
        process.stdin.write(b"\n")
        process.stdin.flush()
        assert process.stdout.read() == b""
        assert ctl(process.pid, "status")[0] == 0
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def test_fork(tmp_path):
    """The child is another process: its own listener once it calls CUDA, and the parent's is not kept alive by it."""
    with Remote(tmp_path) as program:
        program.do("create 0", "launch 0 2")
        program.ctl("off")
        (child,) = program.do("fork 600000")
        try:
            until(lambda: ctl(child, "status")[0] == 0)
            assert ctl(child, "status")[1].startswith("recording: on; trace: " + str(program.trace).replace(".json", f"-{child}.json"))
            assert program.status()["recording"] == "off (custream ctl off)"
            assert ctl(child, "off")[0] == 0 and program.ctl("on") == f"on: {program.trace}"
            program.do("launch 0 3")
            program.end()
            assert ctl(program.pid, "status")[0] == 2 and ctl(child, "status")[0] == 0
        finally:
            os.kill(int(child), signal.SIGKILL)
    assert program.rc == 0 and calls_in(read(program.trace))["cuLaunchKernel"] == 5


def test_exec(tmp_path):
    """The program that takes the process over has a listener of its own, under the same number, and is not off."""
    with Remote(tmp_path) as program:
        program.do("create 1", "launch 1 2")
        program.ctl("off")
        assert program.do("exec") == ["exec"] and program._answer() == [str(program.pid)]
        assert program.status()["recording"] == "on" and program.status()["streams"] == "0"
        program.do("create 1", "launch 1 3")
    program.end()
    assert program.rc == 0
    assert sorted(calls_in(read(path))["cuLaunchKernel"] for path in tmp_path.glob("remote*.json")) == [2, 3]


def test_signals_stay_the_programs(tmp_path):
    """The thread blocks all of them, and one that is sent to the process is the program's to die of."""
    with Remote(tmp_path) as program:
        program.do("create 1")
        (task,) = (t for t in os.listdir(f"/proc/{program.pid}/task") if open(f"/proc/{program.pid}/task/{t}/comm", encoding="utf-8").read() == "custream-ctl\n")
        status = dict(line.split(":\t", 1) for line in open(f"/proc/{program.pid}/task/{task}/status", encoding="utf-8") if ":\t" in line)
        blockable = ((1 << 64) - 1) & ~(1 << (signal.SIGKILL - 1) | 1 << (signal.SIGSTOP - 1) | 1 << 31 | 1 << 32)  # the last two are the C library's own
        assert int(status["SigBlk"], 16) & blockable == blockable
        os.kill(program.pid, signal.SIGTERM)
        assert program.process.wait(30) == -signal.SIGTERM


# ---- Users and namespaces; as root, which can be others ----

def as_nobody():
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)


def test_name_that_somebody_took(tmp_path):
    """A listener that is not the process itself is told nothing; the process does without, and says so."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as taken:
        def take():  # in the child, before it becomes the program: the name has its process id
            own = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            own.bind(address_of(os.getpid()))
            own.listen()
            socket.send_fds(right, [b"x"], [own.fileno()])
        left, right = socket.socketpair()
        process = subprocess.Popen([BUILD / "tests" / "remote"], env=app_environment(BUILD, tmp_path / "t.json", True, {"CUSTREAM_CTL": "on"}), preexec_fn=take,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, pass_fds=[right.fileno()])
        _, (listener,), _, _ = socket.recv_fds(left, 1, 1)
        assert process.stdout.readline() == f"ok {process.pid}\n"
        _, err = process.communicate("", timeout=30)
        assert process.returncode == 0 and err == "custream: warning: custream ctl can't reach this process: its socket's name is taken\n"
        os.close(listener)
        left.close()
        right.close()
        taken.close()


def test_pid_namespace(tmp_path):
    """A process that knows itself by another number, as in a container: asked by the number that it has outside."""
    if subprocess.run(["unshare", "--pid", "--fork", "true"], capture_output=True, check=False).returncode:
        pytest.xfail("this machine makes no namespaces")
    process = subprocess.Popen(["unshare", "--pid", "--fork", "--mount-proc", BUILD / "tests" / "remote"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                               env=app_environment(BUILD, tmp_path / "t.json", True, {}))
    try:
        assert process.stdout.readline() == "ok 1\n"
        with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="utf-8") as file:
            pid = int(file.read())
        rc, out, err = ctl(pid, "status")
        assert (rc, err) == (0, "") and out.startswith("recording: on; trace: ")
        process.stdin.write("create 1\nlaunch 1 2\n")
        process.stdin.flush()
        assert [process.stdout.readline()[:2] for _ in range(2)] == ["ok", "ok"] and ctl(pid, "off")[0] == 0
    finally:
        process.stdin.close()
        process.wait(30)
        process.stdout.close()
    assert calls_in(read(tmp_path / "t.json"))["cuLaunchKernel"] == 2
