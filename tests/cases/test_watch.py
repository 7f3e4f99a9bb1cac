"""The watcher of `custream run`: what it says and does when processes end, and that the program does not notice it."""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

import pytest

from tests.apprun import calls_in, calls_of, read
from tests.cases.test_closing import GOOD, lines, only_line, run_under
from tests.handmade import COMMAND, NO_CUDA, custream
from tests.remote import ctl, until
from tests.trace import check_file

NOT_THERE = "the file of the trace has another name, was removed, or is in mounts of the program's own"
BY = "incomplete: ended by {}; all calls up to then are there"


def environment(build, **more):
    child = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD" and not k.startswith("CUSTREAM_")}
    return child | {"LD_LIBRARY_PATH": str(build / "fakecuda")} | more


def begin(build, tmp_path, *argv, options=(), env=None, **given):
    """A program of the tests under `custream run`, which goes on while the test does."""
    argv = [own if (own := build / "tests" / str(argv[0])).exists() else argv[0], *argv[1:]]
    return subprocess.Popen([COMMAND, "run", *options, "--", *map(str, argv)], cwd=tmp_path, env=environment(build, **(env or {})), text=True,
                            **({"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | given))


def found_by_check(path):
    """None while the watcher puts the end of the file anew: who reads it meanwhile has the begin of one and the end of the other."""
    try:
        return check_file(path)
    except AssertionError:
        return None


def has_calls(path):
    """Its trace is on the disk, with calls in it."""
    return until(lambda: path.exists() and '"recorded":0' not in (text := subprocess.run(["zcat", "-f", path], capture_output=True, text=True, errors="replace", check=False).stdout)
                 and '"recorded":' in text)


def ended_by(path):
    found = read(path)
    return found.totals.get("ended_by"), found.verdict


def watchers(mark):
    """The process numbers of watchers that were started with the variable MARK of that value."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm") as comm, open(f"/proc/{pid}/environ") as environ:
                if comm.read() == "custream-watch\n" and f"MARK={mark}" in environ.read().split("\0"):
                    found.append(int(pid))
        except OSError:
            pass
    return found


# ---- what ended a process ----

@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT", "SIGHUP", "SIGKILL", "SIGQUIT", "SIGUSR1"])
def test_a_signal_ends_the_program(build, tmp_path, how, name):
    """The file is whole, and tells of it. The shell sees the program's own end."""
    run = begin(build, tmp_path, "burst", 1, 1000, 60000, options=["-o", name])
    has_calls(tmp_path / name)
    run.send_signal(getattr(signal, how))
    _, err = run.communicate(timeout=60)
    assert run.returncode == -getattr(signal, how)
    line = err.splitlines()[-1]
    assert re.fullmatch(rf"custream: {name}: \d+ calls, \d+ GPU operations; {BY.format(how)}\. Next: custream report {name}; custream open {name}", line), err
    assert ended_by(tmp_path / name) == (how, BY.format(how))
    assert read(tmp_path / name).totals["calls"] > 100


@pytest.mark.parametrize("how, by", [("abort", "SIGABRT"), ("kill", "SIGKILL"), ("segv", "SIGSEGV")])
def test_a_program_ends_itself(build, tmp_path, how, by):
    done = run_under(build, tmp_path, "ending", how, options=["-o", "t.json"])
    assert done.returncode == -getattr(signal, by) and f"; {BY.format(by)}." in only_line(done)
    assert ended_by(tmp_path / "t.json")[0] == by


def test_a_program_leaves_by_the_bare_system_call(build, tmp_path):
    done = run_under(build, tmp_path, "ending", "syscall", options=["-o", "t.json"])
    assert done.returncode == 5 and BY.format("exit_group") in only_line(done) and ended_by(tmp_path / "t.json")[0] == "exit_group"


def test_a_program_that_ends_itself_at_a_signal_is_complete(build, tmp_path):
    done = run_under(build, tmp_path, "ending", "handler", options=["-o", "t.json"])
    assert done.returncode == 12 and GOOD.fullmatch(only_line(done)) and ended_by(tmp_path / "t.json") == (None, "ok")


def test_parts(build, tmp_path):
    run = begin(build, tmp_path, "burst", 1, 30000, 60000, options=["-o", "t.json", "--trace-max=1M,rotate:99", "--full=block"])
    until(lambda: sum(path.read_bytes().count(b'"name":"cuLaunchKernel"') for path in tmp_path.glob("t*.json")) == 15001 and ctl(run.pid, "flush")[0] == 0)  # it is at rest
    run.terminate()
    _, err = run.communicate(timeout=60)
    assert ended_by(tmp_path / "t.json")[0] == "SIGTERM" and "; " + BY.format("SIGTERM") in err
    parts = list(tmp_path.glob("t.*.json"))
    assert len(parts) > 1 and {ended_by(path) for path in parts} == {(None, "ok")}


def test_a_full_file(build, tmp_path):
    run = begin(build, tmp_path, "burst", 1, 20000, 60000, options=["-o", "t.json", "--trace-max=1M"])
    until(lambda: (tmp_path / "t.json").exists() and '"ended":"its size limit' in (tmp_path / "t.json").read_text())
    run.terminate()
    _, err = run.communicate(timeout=60)
    by, verdict = ended_by(tmp_path / "t.json")
    assert by == "SIGTERM" and verdict.startswith("ended at its size limit") and verdict.endswith("not written, later ones not counted; ended by SIGTERM") and verdict in err


def test_the_audit_as_far_as_known(build, tmp_path):
    run = begin(build, tmp_path, "burst", 1, 1000, 60000, options=["-o", "t.json", "--default-stream=audit"])
    has_calls(tmp_path / "t.json")
    run.terminate()
    _, err = run.communicate(timeout=60)
    assert err.splitlines()[-2] == "custream: audit: cannot tell for per-thread default streams: the process had not ended when this was written"


def test_another_program_takes_the_place(build, tmp_path):
    """exec: each program's trace is told of, in turn."""
    done = run_under(build, tmp_path, "again", 1, "slow", options=["-o", "t.json"])
    first, second = lines(done)
    assert done.returncode == 0 and "; incomplete: ended by exec. Next: custream report t.json; custream open t.json" in first and GOOD.fullmatch(second)
    assert ended_by(tmp_path / "t.json") == ("exec", "incomplete: ended by exec")


def test_an_exec_beside_others_that_fail(build, tmp_path):
    """Whoever fails says nothing of the thread that does not. Those have the file written too, so the exec may end the writer in the middle of a write: then the file is
    mended, and the line says so. What was called before the exec is there all the same."""
    for name in (f"t{n}.json" for n in range(10)):
        done = run_under(build, tmp_path, "ending", "exec", options=["-o", name])
        by, verdict = ended_by(tmp_path / name)
        assert (done.returncode, by) == (5, "exec") and f"; {verdict}. Next:" in only_line(done)
        assert verdict in ("incomplete: ended by exec", "incomplete: ended by exec; recovered up to the last whole event")
        assert calls_in(read(tmp_path / name))["cuLaunchKernel"] == 100


def test_a_file_that_is_another_one_by_now_is_left_alone(build, tmp_path):
    run = begin(build, tmp_path, "burst", 1, 1000, 60000, options=["-o", "t.json"])
    has_calls(tmp_path / "t.json")
    (tmp_path / "t.json").rename(tmp_path / "mine.json")
    (tmp_path / "t.json").write_bytes(before := (tmp_path / "mine.json").read_bytes())
    run.terminate()
    _, err = run.communicate(timeout=60)
    assert (tmp_path / "t.json").read_bytes() == before and ended_by(tmp_path / "mine.json")[0] is None
    assert f"custream: t.json: ended by SIGTERM; {NOT_THERE}\n" in err


def test_without_run_check_says_how_it_ended_as_far_as_the_file_tells(run_app):
    run = run_app(["ending", "kill"])
    assert run.rc == -signal.SIGKILL and run.stderr == ""
    assert ended_by(run.trace) == (None, "incomplete: the process had not ended when the trailer was written")


def in_mounts_of_its_own(tmp_path, mount):
    """The program has another folder at "out"."""
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.xfail("this machine makes no namespaces")
    for name in ("out", "kept"):
        (tmp_path / name).mkdir()
    return ["unshare", "--mount", "sh", "-c", f'mount {mount} out && exec "$0" "$@"']


APART = "The program has mounts of its own: the file has that name in them"
MOUNTS = pytest.mark.parametrize("mount", ["-t tmpfs none", "--bind kept"])


@MOUNTS
@pytest.mark.parametrize("report", [[], ["--report"]])
def test_a_program_with_mounts_of_its_own_ends(build, tmp_path, mount, report):
    """The line is said, and nobody is sent to a file that is not there."""
    done = run_under(build, tmp_path, *in_mounts_of_its_own(tmp_path, mount), build / "tests/ending", "exit", options=["-o", "out/t.json", *report])
    assert (done.returncode, done.stderr) == (5, f"custream: out/t.json: 104 calls, 100 GPU operations, nothing lost. {APART}\n")
    if "kept" in mount:
        assert read(tmp_path / "kept/t.json").verdict == "ok"


def holds(pid, folder):
    """Whether the process has that folder open, by whatever name."""
    for one in (f"/proc/{pid}/fd/{n}" for n in os.listdir(f"/proc/{pid}/fd")):
        try:
            if os.path.samefile(one, folder):
                return True
        except OSError:
            pass
    return False


@pytest.mark.parametrize("name", ["t.json", "t.json.gz", "t.pftrace"])
def test_a_program_with_mounts_of_its_own_is_killed(build, tmp_path, name):
    """Its file is finished where it is, and another one that has the name outside is left alone."""
    inside = in_mounts_of_its_own(tmp_path, "--bind kept")
    (tmp_path / "out" / name).write_text("mine")
    run = begin(build, tmp_path, *inside, build / "tests/burst", 1, 1000, 60000, options=["--force", "-o", f"out/{name}"], env={"MARK": str(tmp_path)})
    until(lambda: any(holds(pid, tmp_path / "kept") for pid in watchers(tmp_path)))
    until(lambda: (tmp_path / "kept" / name).stat().st_size)
    run.terminate()
    _, err = run.communicate(timeout=60)
    assert run.returncode == -signal.SIGTERM and (tmp_path / "out" / name).read_text() == "mine"
    assert re.fullmatch(rf"custream: out/{name}: \d+ calls?, \d+ GPU operations?; incomplete: ended by SIGTERM.*\. {APART}", err.splitlines()[-1])
    assert "ended by SIGTERM" in check_file(tmp_path / "kept" / name) and os.listdir(tmp_path / "kept") == [name]


def test_mounts_of_its_own_with_the_same_folder(build, tmp_path):
    done = run_under(build, tmp_path, *in_mounts_of_its_own(tmp_path, "-t tmpfs none"), build / "tests/ending", "exit", options=["-o", "t.json"])
    assert GOOD.fullmatch(only_line(done))


def test_a_program_removes_its_trace(build, tmp_path):
    run = begin(build, tmp_path, "burst", 1, 1000, 60000, options=["-o", "t.json"])
    has_calls(tmp_path / "t.json")
    (tmp_path / "t.json").unlink()
    run.terminate()
    _, err = run.communicate(timeout=60)
    assert err.splitlines()[-1] == f"custream: t.json: ended by SIGTERM; {NOT_THERE}"


# ---- several processes ----

def test_many_processes_are_told_in_sum(build, tmp_path):
    """The first eight have a line; of one that has lost something there is always one."""
    script = f"for i in 1 2 3 4 5 6 7 8 9 10; do {build}/tests/ending exit; done; CUSTREAM_BUFFER=64K {build}/tests/burst 4 20000 >&2; exit 3"
    done = run_under(build, tmp_path, "sh", "-c", script, options=["-o", "t-%p.json"])
    said = lines(done)
    assert done.returncode == 3 and all(GOOD.fullmatch(line) for line in said[:8]) and len(said) == 10, "\n".join(said)
    assert "lost records" in said[8] and said[9] == "custream: 2 more traces: 208 calls, 200 GPU operations, nothing lost"


BECOMES = """
import os, subprocess, sys, ctypes
left = int(sys.argv[1])
cuda = ctypes.CDLL("libcuda.so.1")
cuda.cuInit(0)
context = ctypes.c_void_p()
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
if left:
    os.execv(sys.executable, [sys.executable, "-c", sys.argv[2], str(left - 1), sys.argv[2]])
"""


@pytest.mark.parametrize("options", [[], ["--default-stream=audit"]])
def test_a_program_that_becomes_others_many_times(build, tmp_path, options):
    """The first eight have a line; what is still to come of a program is not known as it becomes another."""
    done = run_under(build, tmp_path, sys.executable, "-c", BECOMES, 12, BECOMES, options=["-o", "t.json", *options])
    said = [line for line in lines(done) if not line.startswith("custream: audit: ")]
    assert done.returncode == 0 and len(said) == 9 and len(lines(done)) <= 9 + 9
    assert all("; incomplete: ended by exec. Next: " in line for line in said[:8])
    assert re.fullmatch(r"custream: 5 more traces: \d+ calls, 0 GPU operations; incomplete: 4 ended by exec", said[8])


def test_a_run_in_a_run_is_one_run(build, tmp_path):
    done = run_under(build, tmp_path, COMMAND, "run", build / "tests/ending", "exit", options=["-o", "t.json"])
    assert done.returncode == 5 and GOOD.fullmatch(only_line(done))
    done = run_under(build, tmp_path, COMMAND, "run", "true")
    assert done.stderr == NO_CUDA


def test_who_lives_on_is_finished_without_a_word(build, tmp_path):
    """The program has ended, and so has what it holds open; a child of another session goes on, and is killed."""
    script = f"setsid {build}/tests/burst 1 1000 60000 </dev/null >/dev/null 2>&1 & echo $!; while [ ! -s t.json ]; do sleep 0.1; done"
    done = run_under(build, tmp_path, "sh", "-c", script, options=["-o", "t.json"])
    assert (done.returncode, done.stderr) == (0, "")
    has_calls(tmp_path / "t.json")
    os.kill(int(done.stdout), signal.SIGTERM)
    until(lambda: ended_by(tmp_path / "t.json")[0] == "SIGTERM")


def test_who_lives_on_and_ends_well_speaks_for_itself(build, tmp_path):
    """The program is a shell that ends at once, and its job goes on with the same standard error."""
    done = run_under(build, tmp_path, "sh", "-c", f"{build}/tests/burst 1 1000 1500 >out.txt & while [ ! -s t.json ]; do sleep 0.1; done", options=["-o", "t.json"])
    found = GOOD.fullmatch(only_line(done))
    assert found["path"] == "t.json" and calls_in(read(tmp_path / "t.json")) == calls_of((tmp_path / "out.txt").read_text())


def test_more_processes_than_descriptors(build, tmp_path):
    """The watcher takes as many as it may have; who has to wait is heard when another has gone."""
    script = f"ulimit -n 24; exec {COMMAND} run -o t-%p.json sh -c 'for i in 1 2 3 4 5 6 7 8 9; do {build}/tests/burst 1 100 1500 >/dev/null & done; wait'"
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, env=environment(build), capture_output=True, text=True, timeout=60, check=False)
    files = list(tmp_path.glob("t-*.json"))
    assert done.returncode == 0 and len(files) == 9 and {read(path).verdict for path in files} == {"ok"}
    assert len(lines(done)) == 9


@pytest.mark.parametrize("most", range(6, 26))
def test_few_descriptors(build, tmp_path, most):
    """Either the watcher has enough of them, or there is none: the line is there once."""
    script = f"ulimit -n {most}; exec {COMMAND} run -o t.json {build}/tests/ending exit"
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, env=environment(build), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 5 and GOOD.fullmatch(done.stderr.rstrip("\n"))


# ---- nothing was recorded ----

def test_no_cuda(build, tmp_path):
    for argv in (["true"], ["sh", "-c", "exit 7"], [sys.executable, "-c", "pass"]):
        done = run_under(build, tmp_path, *argv) if "/" in argv[0] else custream("run", *argv, cwd=tmp_path)
        assert done.stderr == NO_CUDA
    for argv in (["--quiet", "true"], ["--trace=off", "true"]):
        assert custream("run", *argv, cwd=tmp_path).stderr == ""
    assert custream("run", "true", cwd=tmp_path, env={"CUSTREAM_QUIET": "1"}).stderr == ""
    done = custream("run", "no-such-program", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (127, "custream run: no-such-program: No such file or directory\n")


def test_a_window_that_never_opened(build, tmp_path):
    """CUDA was called, so that is not what is said."""
    done = run_under(build, tmp_path, "ending", "exit", options=["-o", "t.json", "--window=profiler"])
    (line,) = lines(done)
    assert line.startswith("custream: warning: nothing was recorded: ") and not (tmp_path / "t.json").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_program_that_becomes_another_user(build):
    """Its trace is its own, and the run does not say that there is none."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        becomes = "import os, sys; os.setgroups([]); os.setgid(65534); os.setuid(65534); os.execv(sys.argv[1], sys.argv[1:])"
        for how, words in (("exit", 2), ("kill", 1)):
            done = subprocess.run([COMMAND, "run", "-o", f"{folder}/{how}.json", "--", sys.executable, "-c", becomes, build / "tests/ending", how], cwd="/",
                                  env=environment(build), capture_output=True, text=True, timeout=60, check=False)
            said = lines(done)
            assert len(said) == words and not [line for line in said if "no CUDA" in line], done.stderr
            assert [line for line in said if re.fullmatch(r"custream: process \d+ is another user's and was not watched: 'custream recover' finishes its trace after a kill", line)]
            assert os.stat(f"{folder}/{how}.json").st_uid == 65534


# ---- the report ----

def test_report(build, tmp_path):
    done = run_under(build, tmp_path, "demo", options=["--report", "-o", "t.json"])
    shown = custream("report", "--brief", "t.json", cwd=tmp_path).stdout
    assert "requests answered" in done.stdout and GOOD.fullmatch(only_line(done))
    assert done.stderr.endswith("\n\n" + shown) and "The kernels" not in shown and "ran for" in shown


def test_report_of_a_program_that_was_killed_or_is_not_the_one_that_uses_cuda(build, tmp_path):
    done = run_under(build, tmp_path, "ending", "kill", options=["--report", "-o", "t.json"])
    assert done.returncode == -9 and "Missing from the trace: ended by SIGKILL." in " ".join(done.stderr.split())
    done = run_under(build, tmp_path, "sh", "-c", f"{build}/tests/ending exit; exit 4", options=["--report", "-o", "t.json"])
    assert done.returncode == 4 and "ending (process" in done.stderr
    done = custream("run", "--report", "true", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, NO_CUDA)


def test_reports_of_several_processes(build, tmp_path):
    """One of each trace, of the first eight."""
    def run(count):
        script = f"for i in $(seq {count}); do {build}/tests/ending exit; done; true"
        (where := tmp_path / str(count)).mkdir()
        done = run_under(build, where, "sh", "-c", script, options=["--report", "-o", "t-%p.json"])
        return where, done.stderr, re.findall(r"^custream: report of (t-\d+\.json):$", done.stderr, re.M)
    where, said, reported = run(2)
    assert len(set(reported)) == 2 and {where / name for name in reported} == set(where.glob("t-*.json")) and "another run" not in said
    assert said.endswith("".join(f"\ncustream: report of {name}:\n" + custream("report", "--brief", name, cwd=where).stdout for name in reported))
    _, said, reported = run(10)
    assert len(set(reported)) == 8 and said.endswith("\ncustream: no report of 2 more traces: custream report FILE\n")


def test_report_without_a_trace_is_hopeless(tmp_path):
    done = custream("run", "--report", "--trace=off", "touch", "ran", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "custream run: --report does nothing beside CUSTREAM_TRACE=off: nothing is recorded\n")
    assert not (tmp_path / "ran").exists()


def test_brief_has_no_tables(build, tmp_path):
    run_under(build, tmp_path, "demo", options=["-o", "t.json"])
    whole, brief = (custream("report", *how, "t.json", cwd=tmp_path).stdout for how in ([], ["--brief"]))
    assert whole.startswith(brief) and len(brief) < len(whole)
    for other in ("--json", "--csv", "--section=run"):
        done = custream("report", "--brief", other, "t.json", cwd=tmp_path)
        assert done.returncode == 2 and done.stderr.startswith("custream report: --brief is of the whole text")


# ---- the program does not notice ----

LOOKS = """
import json, os, resource, signal, sys
try:
    child = os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    child = None
found = {"child": child, "used by children": list(resource.getrusage(resource.RUSAGE_CHILDREN)), "pending": [int(s) for s in signal.sigpending()],
         "blocked": [int(s) for s in signal.pthread_sigmask(signal.SIG_BLOCK, [])], "SIGCHLD": str(signal.getsignal(signal.SIGCHLD)),
         "group": os.getpgrp() - os.getpid(), "session": os.getsid(0), "descriptors": sorted(os.listdir("/proc/self/fd")), "parent": os.getppid(),
         "leads": os.getpgrp() == os.getpid(), "pid": os.getpid()}
print(json.dumps(found))
"""


@pytest.mark.parametrize("before", [[], ["sh", "-c", 'trap "" CHLD; exec "$@"', "sh"],
                                    [sys.executable, "-c", "import ctypes, os, sys; ctypes.CDLL(None).prctl(36, 1, 0, 0, 0); os.execvp(sys.argv[1], sys.argv[1:])"],
                                    [sys.executable, "-c", "import os, signal, sys; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD]); os.execvp(sys.argv[1], sys.argv[1:])"]],
                         ids=["plain", "SIGCHLD ignored", "adopts orphans", "SIGCHLD blocked"])
def test_the_program_has_no_child_that_it_did_not_make(build, tmp_path, before):
    runs = []
    for launcher in ([], [COMMAND, "run"]):
        with subprocess.Popen([*before, *launcher, sys.executable, "-c", LOOKS], cwd=tmp_path, env=environment(build), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            out, _ = process.communicate(timeout=60)
            found = json.loads(out)
            assert found.pop("pid") == process.pid and process.returncode == 0
            runs.append(found)
    assert runs[0]["child"] is None
    for run in runs:
        del run["group"]
    assert runs[0] == runs[1]


HAS_CHILDREN = """
import os, sys, time
reading, writing = os.pipe()
for n in range(400):
    if not os.fork():
        os.read(reading, 1)
        os._exit(3)
if not os.fork():
    words = f"/proc/{os.getppid()}/cmdline"
    while b"reading" in open(words, "rb").read(): pass
    for n in range(400):
        os.write(writing, b"x")
        time.sleep(0.0001)
    os._exit(3)
os.execvp(sys.argv[1], sys.argv[1:])
"""
WAITS = """
import os
found = []
try:
    while True:
        found.append(os.wait()[1])
except ChildProcessError:
    print(len(found), set(found))
"""


def test_the_program_has_all_children_that_it_had(build, tmp_path):
    """They end one by one while the watcher is made."""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", HAS_CHILDREN, COMMAND, "run", sys.executable, "-c", WAITS], cwd=tmp_path, env=environment(build),
                              capture_output=True, text=True, timeout=60, check=False)
        assert (done.stdout, done.stderr) == (f"401 {{{3 << 8}}}\n", NO_CUDA)


def test_what_the_watcher_holds(build, tmp_path):
    """Of the program's descriptors its standard error alone; its own session, and no child of the program's."""
    mark = f"holds-{os.getpid()}"
    reading, writing = os.pipe()
    run = begin(build, tmp_path, "/bin/sleep", "60", env={"MARK": mark}, pass_fds=[writing])
    os.close(writing)
    (pid,) = until(lambda: watchers(mark))

    def held():
        return {fd: os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
    until(lambda: sorted(re.sub(r"\d+", "N", what) for fd, what in held().items() if int(fd) > 2) == ["anon_inode:[pidfd]", "socket:[N]"])
    error = os.readlink(f"/proc/self/fd/{run.stderr.fileno()}")
    assert [fd for fd, what in held().items() if what == error] == ["2"] and held()["0"] == held()["1"] == "/dev/null"
    assert os.readlink(f"/proc/{pid}/cwd") == "/"
    assert os.getsid(pid) == pid and os.getpgid(pid) == pid
    with open(f"/proc/{pid}/status") as status:
        assert int(re.search(r"PPid:\t(\d+)", status.read())[1]) != run.pid
    run.kill()
    assert os.read(reading, 1) == b""
    os.close(reading)
    run.communicate(timeout=60)
    until(lambda: not watchers(mark))


def test_a_signal_for_the_whole_group(build, tmp_path):
    """As a terminal's Ctrl-C, and as timeout and batch systems stop a job."""
    run = begin(build, tmp_path, "burst", 1, 1000, 60000, options=["-o", "t.json"], start_new_session=True)
    has_calls(tmp_path / "t.json")
    os.killpg(run.pid, signal.SIGKILL)
    _, err = run.communicate(timeout=60)
    assert run.returncode == -9 and BY.format("SIGKILL") in err and ended_by(tmp_path / "t.json")[0] == "SIGKILL"


def test_the_first_process_of_a_namespace(build, tmp_path):
    """It adopts all orphans, a watcher too: so there is none, and the library speaks itself."""
    done = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", COMMAND, "run", "-o", "t.json", build / "tests/ending", "exit"], cwd=tmp_path,
                          env=environment(build), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 5 and GOOD.fullmatch(only_line(done))


@pytest.mark.parametrize("how", ["SIGKILL", "SIGSTOP"])
def test_a_watcher_that_is_gone_or_stuck(build, tmp_path, how):
    """The program ends all the same, and the library speaks itself."""
    mark = f"gone-{how}-{os.getpid()}"
    run = begin(build, tmp_path, "burst", 1, 1000, 2500, options=["-o", "t.json"], env={"MARK": mark})
    has_calls(tmp_path / "t.json")
    (pid,) = watchers(mark)
    os.kill(pid, getattr(signal, how))
    assert run.wait(timeout=60) == 0
    if how == "SIGSTOP":
        os.kill(pid, signal.SIGKILL)
    out, err = run.communicate(timeout=60)
    assert GOOD.fullmatch(err.splitlines()[-1]) and calls_in(read(tmp_path / "t.json")) == calls_of(out)


def test_a_watcher_that_was_late(build, tmp_path):
    """What the library said in its place it does not say again."""
    mark = f"late-{os.getpid()}"
    run = begin(build, tmp_path, "burst", 1, 1000, 2500, options=["-o", "t.json"], env={"MARK": mark})
    has_calls(tmp_path / "t.json")
    (pid,) = watchers(mark)
    os.kill(pid, signal.SIGSTOP)
    assert run.wait(timeout=60) == 0
    os.kill(pid, signal.SIGCONT)
    until(lambda: not watchers(mark))
    _, err = run.communicate(timeout=60)
    (line,) = [line for line in err.splitlines() if line.startswith("custream:")]
    assert GOOD.fullmatch(line)


def test_standard_error_may_be_missing(build, tmp_path):
    for redirection in ("2>&-", "<&- >&- 2>&-", "2>/dev/full"):
        done = subprocess.run(["sh", "-c", f"{COMMAND} run -o t.json {build}/tests/ending kill {redirection}"], cwd=tmp_path, env=environment(build),
                              capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 128 + 9 and "custream" not in done.stderr
        until(lambda: found_by_check(tmp_path / "t.json") == BY.format("SIGKILL"))
        (tmp_path / "t.json").unlink()
