"""custream ctl: recording switched on and off, flushes and the state of a process that runs; and what the program must not notice of it."""
import collections
import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading

import pytest

from tests.apprun import calls_in, read
from tests.cases.conftest import app_environment
from tests.cases.test_window import PROFILER, causes, gaps, launches, until
from tests.gputrace import CUPTI, check_works, contexts, works
from tests.patience import patience
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
        peer.connect(address_of(pid))  # waits for a place, as the command does; with a time limit of its own it would not
        peer.settimeout(patience(30))
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


def test_switched_while_four_threads_launch(tmp_path, trace_processor):
    """What each of them launches after the answer to `on` is there, and nothing that it launches after the answer to `off`: grids tell which is which."""
    with Remote(tmp_path, CUPTI | {"CUSTREAM_FULL": "block", "CUSTREAM_WINDOW": "delay=1000"}) as program:
        program.do("loop on")
        for n in range(8):
            program.do(f"wave {100 + n} 5")
            program.ctl("on")
            program.do(f"wave {200 + n} 5")
            program.ctl("off")
        program.do("wave 108 5", "loop off")
    trace = program.load()
    check_works(trace)
    assert trace.totals["windows"]["opened"] == 8 and len(gaps(trace)) == 9
    by_grid = collections.defaultdict(collections.Counter)
    for launch in (f for f in trace.flows("ac2g") if f.finish["cat"] == "kernel"):
        by_grid[launch.finish["args"]["grid"][0]][launch.start["tid"]] += 1
    by_grid.pop(1, None)  # of no wave
    assert {grid: sorted(made.values()) for grid, made in by_grid.items()} == {200 + n: [5] * 4 for n in range(8)}
    trace_processor.load(program.trace)
    assert_clean(trace_processor)


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
    check_works(trace)
    found = contexts(trace)
    lanes = [(e["args"].get("cs.device", 0), e["args"]["cs.stream"], found[e["args"]["correlation"]]) for e in launches(trace)]
    assert len(lanes) == 5 and len({lane[:2] for lane in lanes}) == 5 and [lane[2] for lane in lanes] == [1, 1, 1, 1, 2]
    ended = [e["args"]["destroyed"] for e in trace.lives if e["cat"] == "cs_stream" and (e["pid"], e["tid"]) == lanes[0][:2]]
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


def totals_of(live, copy):
    """Of a file that is being written: as it was when two looks at it saw the same."""
    until(lambda: copy.write_bytes(live.read_bytes()) and copy.read_bytes() == live.read_bytes())
    return read(copy).totals


def test_a_trace_that_is_full_ends_recording(tmp_path):
    """At its size limit the file takes no more: calls go through, CUPTI is let go, and nobody can have recording begin anew."""
    with Remote(tmp_path, CUPTI | {"CUSTREAM_TRACE_MAX": "1M", "CUSTREAM_LOG": "error"}) as program:
        program.do("create 1", "launch 1 3")
        assert program.status()["recording"] == "on"
        until(lambda: program.do("launch 1 1000") is None or program.status()["recording"] == "off (the trace is full)")
        rc, _, err = ctl(program.pid, "on")
        assert rc and err.endswith("the trace is full") and program.status()["recording"] == "off (the trace is full)"
        program.ctl("flush")
        before = totals_of(program.trace, tmp_path / "before.json")
        program.do("launch 1 1000", "all")
        program.ctl("flush")
        after = totals_of(program.trace, tmp_path / "after.json")
        assert before["ended"] == after["ended"] == "its size limit (CUSTREAM_TRACE_MAX)" and not after["complete"]
        assert after["not_written"]["calls"] == before["not_written"]["calls"]
    assert program.load().totals["complete"] is False


# ---- Wrong usage, and processes that can't be asked ----

@pytest.mark.parametrize("words, line", [
    ((), "which process, and what? 'custream help ctl' says more"), ((1,), "which process, and what? 'custream help ctl' says more"),
    (("x", "on"), "'x' is no process id"), (("1x", "on"), "'1x' is no process id"), ((0, "on"), "'0' is no process id"), (("-5", "on"), "'-5' is no process id"),
    ((99999999999, "on"), "'99999999999' is no process id"), ((1, "fluhs"), 'there is no request "fluhs"; did you mean "flush"?'),
    ((1, "of"), 'there is no request "of"; did you mean "off"?'), ((1, "ON"), 'there is no request "ON"; did you mean "on"?'),
    ((1, "restart"), 'there is no request "restart"; \'custream help ctl\' lists them'), ((1, "on", "now"), "on takes nothing more"),
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


def threads_stopped(pid):
    """A stop reaches one thread after the other."""
    states = [stat.read_text().rpartition(")")[2].split()[0] for stat in pathlib.Path(f"/proc/{pid}/task").glob("*/stat")]
    return set(states) == {"T"}


def test_stopped_process_is_left_as_it_is(tmp_path):
    """It is told so, and when the process goes on nothing is done that nobody waits for any more."""
    with Remote(tmp_path) as program:
        program.do("create 1", "launch 1 2")
        os.kill(program.pid, signal.SIGSTOP)
        until(lambda: threads_stopped(program.pid))
        try:
            assert ctl(program.pid, "off") == (2, "", f"custream ctl: process {program.pid} is stopped; nothing was done")
        finally:
            os.kill(program.pid, signal.SIGCONT)
        assert program.status()["recording"] == "on"
        program.do("launch 1 3")
    assert calls_in(program.load())["cuLaunchKernel"] == 5


def has_socket(pid):
    """Descriptors come and go while they are looked at, and the process may."""
    def target(fd):
        try:
            return os.readlink(fd)
        except OSError:
            return ""
    return any(target(fd).startswith("socket:") for fd in pathlib.Path(f"/proc/{pid}/fd").glob("*"))


def test_process_is_killed_while_it_is_asked(tmp_path):
    with Remote(tmp_path) as program:
        program.do("create 1")
        os.kill(program.pid, signal.SIGSTOP)
        until(lambda: threads_stopped(program.pid))
        asked = subprocess.Popen([BUILD / "custream", "ctl", str(program.pid), "status"], stderr=subprocess.PIPE, text=True)
        until(lambda: asked.poll() is not None or has_socket(asked.pid))
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


@pytest.mark.parametrize("how", ["return 0", "leave 3"])
def test_asked_while_it_ends(tmp_path, how):
    """Who asks is answered, or told in a line why not; the program ends as it would, and its file is whole."""
    with Remote(tmp_path, CUPTI) as program:
        program.do("create 1", "loop on")
        answers, begun = ([], []), threading.Barrier(3)

        def ask(mine, words, pid=program.pid):
            for word in words:
                mine.append(ctl(pid, word))
                if len(mine) == 1:
                    begun.wait(60)
        asking = [threading.Thread(target=ask, args=(answers[0], ["off", "on", "flush", "status", "off", "on"])),
                  threading.Thread(target=ask, args=(answers[1], ["status", "flush", "off", "on", "status", "flush"]))]
        for thread in asking:
            thread.start()
        begun.wait(60)
        program.send(how)
        program.end()
        for thread in asking:
            thread.join()
    assert program.rc == int(how[-1]) and not program.said(), program.stderr
    assert [len(mine) for mine in answers] == [6, 6] and {mine[0][0] for mine in answers} == {0}
    for rc, out, err in answers[0] + answers[1]:
        assert (not err and "\n" not in out) if rc == 0 else (rc in (1, 2) and not out and err.startswith("custream ctl: ") and "\n" not in err), (rc, out, err)
    assert read(program.trace).totals["complete"] is True


def check_up_to_the_end(trace):
    """Four threads launch while the process ends: on each one's stream every launch has its kernel, in order, up to a point; behind it are launches alone,
    whose kernels came too late, and at most one kernel alone, which the profiler told of before it told of its call."""
    launches, kernels = collections.defaultdict(list), collections.defaultdict(list)
    for call in trace.host("cuLaunchKernel"):
        launches[call["args"]["cs.stream"]].append(call["args"]["correlation"])
    for work in works(trace):
        kernels[work["args"]["stream"]].append(work["args"].get("correlation"))
    assert len(launches) == 4 and set(kernels) <= set(launches) and sum(map(len, kernels.values())) > 0
    for stream, called in launches.items():
        ran, ended = kernels[stream], kernels[stream][-1:] == [None]
        with_calls = ran[:-1] if ended else ran
        assert with_calls == called[:len(with_calls)]


def test_asked_after_the_last_record(tmp_path):
    """The process is held when all has been written, before it is gone: it begins nothing any more, and says so; the file stays as it is."""
    behind = f"{BUILD / 'libcustream_shim.so'}:{BUILD / 'tests' / 'libother_preload.so'}"
    policy = tmp_path / "policy.json"
    policy.write_text('{"priority": "0:-1"}')
    held = tmp_path / "held"
    with Remote(tmp_path, CUPTI | {"OTHER_HOLDS_EXIT": held}, preload=behind) as program:
        program.do("create 1", "loop on", "wave 1 1")
        program.send("leave 3")
        until(held.exists)
        written = program.trace.read_bytes()
        assert program.status()["recording"] == "off (the process is ending)"
        for words in (["on"], ["policy", policy]) * 2:
            assert ctl(program.pid, *words) == (1, "", f"custream ctl: process {program.pid}: the process is ending")
        assert program.ctl("off") == f"off: {program.trace}" and program.ctl("flush") == str(program.trace)
        assert ctl(program.pid, "on") == (1, "", f"custream ctl: process {program.pid}: the process is ending")
        held.unlink()
    assert program.end().rc == 3 and not program.said() and program.trace.read_bytes() == written
    check_up_to_the_end(read(program.trace))


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

def open_in(pid):
    """What its descriptors are. One may be closed again between the two looks."""
    found = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return found


def test_descriptors_are_none_of_the_programs(tmp_path):
    """Closing all descriptors leaves the listener as it is, no number of the program's is touched, and none is there that it did not open."""
    with Remote(tmp_path) as program:
        program.do("create 1", "launch 1 2")
        kinds = collections.Counter(what.split(":")[0] for what in open_in(program.pid))
        assert kinds["socket"] == kinds[str(program.trace)] == 0
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

ASK_AS = """if 1:
    import os, socket, sys
    uid, pid, name, word, command = int(sys.argv[1]), *sys.argv[2:]
    command = os.open(command, os.O_RDONLY)  # while it may; likewise a C library that is loaded by now
    if uid != os.geteuid():
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
    if name == "command":
        os.execve(command, ["custream", "ctl", pid, word], {})
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
        peer.connect(chr(0) + name)
        try:
            peer.send(word.encode())
        except BrokenPipeError:
            pass  # refused already
        try:
            answer = peer.recv(1 << 16)
        except ConnectionResetError:  # what it sent was not even read
            answer = peer.recv(1 << 16)
        sys.stdout.write(answer.decode())
"""


def ask_as(uid, pid, word, command=False):
    """What another user is told; in a process of its own, which becomes that user once it runs."""
    done = subprocess.run([sys.executable, "-c", ASK_AS, str(uid), str(pid), "command" if command else address_of(pid)[1:], word, BUILD / "custream"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


def hides_processes():
    """Whether /proc shows nobody the processes of others (proc(5), hidepid)."""
    with open("/proc/self/mounts", encoding="utf-8") as mounts:
        options = [line.split()[3].split(",") for line in mounts if line.split()[1] == "/proc"]
    return bool({"hidepid=2", "hidepid=invisible", "hidepid=4", "hidepid=ptraceable"} & set(options[-1]))


def test_other_users_are_refused(tmp_path):
    """As root, which can be others. As anybody else it shows that the user himself is not; who is let in is tests/unit/ctl.c's too."""
    others = [65534, 1] if os.geteuid() == 0 else []
    with Remote(tmp_path) as program:
        program.do("create 1", "launch 1 2")
        program.ctl("flush")  # all is counted
        before = program.status()
        for uid in others:
            for word in ("off", "status", "policy {\"streams\": \"sync\"}"):
                assert ask_as(uid, program.pid, word) == (0, "error this process belongs to another user\n", "")
            said = f"no process {program.pid}" if hides_processes() else f"process {program.pid}: not permitted"
            assert ask_as(uid, program.pid, "off", command=True) == (2, "", f"custream ctl: {said}\n")
        assert program.status() == before
        program.do("launch 1 3")
        assert ask_as(os.geteuid(), program.pid, "off") == (0, f"ok off: {program.trace}\n", "")
        program.do("launch 1 5")
    trace = program.load()
    assert calls_in(trace)["cuLaunchKernel"] == 5 and causes(trace) == ["custream ctl off"]


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
