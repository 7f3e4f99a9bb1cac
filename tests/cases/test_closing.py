"""The closing line: what a process says of its trace as it ends, to whom, and in which words."""
import json
import os
import pty
import re
import subprocess

import pytest

from tests.apprun import calls_in, read, said
from tests.handmade import COMMAND, custream
from tests.trace import check_file

GOOD = re.compile(r"custream: (?P<path>.+): (?P<calls>\d+) calls?, (?P<work>\d+) GPU operations?, nothing lost\. Next: custream report (?P<report>.+); custream open (?P<open>.+)")


def run_under(build, tmp_path, *argv, options=(), env=None, cwd=None, check=False, **given):
    """A program of the tests under `custream run`. The lines of custream's on its standard error come back, and all of it."""
    child = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD" and not k.startswith("CUSTREAM_")}
    child["LD_LIBRARY_PATH"] = str(build / "fakecuda")
    argv = [own if (own := build / "tests" / str(argv[0])).exists() else argv[0], *argv[1:]]
    return subprocess.run([COMMAND, "run", *options, "--", *map(str, argv)], env=child | (env or {}), cwd=cwd or tmp_path, text=True, timeout=60,
                          check=check, **({"capture_output": True, "stdin": subprocess.DEVNULL} | given))


def lines(done):
    return [line for line in done.stderr.splitlines() if line.startswith("custream:")]


def only_line(done):
    (line,) = lines(done)
    return line


def on_terminal(build, argv, env, cwd):
    """The program with a terminal as its standard error: what that shows."""
    child = {k: v for k, v in os.environ.items() if not k.startswith("CUSTREAM_")}
    child |= {"LD_LIBRARY_PATH": str(build / "fakecuda"), "LD_PRELOAD": str(build / "libcustream_shim.so")} | env
    ours, theirs = pty.openpty()
    done = subprocess.run([str(a) for a in argv], env=child, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs, timeout=60, check=False)
    os.write(theirs, b"END\n")
    os.close(theirs)
    shown = b""
    while b"END" not in shown:
        shown += os.read(ours, 65536)
    os.close(ours)
    return done.returncode, shown.decode().replace("\r\n", "\n").removesuffix("END\n")


# ---- to whom ----

def test_custream_run_says_what_the_trace_holds(build, tmp_path):
    done = run_under(build, tmp_path, "demo", options=["-o", "t.json"])
    found = GOOD.fullmatch(only_line(done))
    trace = read(tmp_path / "t.json")
    assert found["path"] == found["report"] == found["open"] == "t.json"
    assert int(found["calls"]) == sum(calls_in(trace).values()) == trace.totals["calls"]
    assert int(found["work"]) == sum(trace.totals["gpu"][kind] for kind in ("kernels", "copies", "memsets", "graphs", "ranges")) > 50


def test_a_suite_that_compares_standard_error_sees_nothing_new(run_app):
    """Preloaded by hand, with no terminal."""
    run = run_app(["ending", "exit"])
    assert run.rc == 5 and run.stderr == "" and read(run.trace).verdict == "ok"


def test_preloaded_by_hand_a_terminal_is_told(build, tmp_path):
    rc, shown = on_terminal(build, [build / "tests/ending", "exit"], {"CUSTREAM_TRACE": "t.json"}, tmp_path)
    assert rc == 5 and GOOD.fullmatch(shown.rstrip("\n"))["path"] == "t.json"
    rc, shown = on_terminal(build, [build / "tests/ending", "exit"], {"CUSTREAM_TRACE": "u.json", "CUSTREAM_QUIET": "1"}, tmp_path)
    assert "CUSTREAM_QUIET=1 is not valid" not in shown
    assert (rc, shown) == (5, "") and (tmp_path / "u.json").exists()


def test_a_terminal_that_was_put_away_is_not_told(build, tmp_path):
    """Descriptor 2 is another file, or none, as the program ends."""
    for close in ("exec 2>err.txt", "exec 2>&-", "exec 2>/dev/null"):
        rc, shown = on_terminal(build, ["sh", "-c", f"{close}; exec {build}/tests/ending exit"], {"CUSTREAM_TRACE": "t.json"}, tmp_path)
        assert (rc, shown) == (5, ""), close
    assert (tmp_path / "err.txt").read_text() == ""


@pytest.mark.parametrize("how", [["--quiet"], ["--quiet=on"], ["--policy", '{"quiet": "on"}'], {"CUSTREAM_QUIET": "1"}, {"CUSTREAM_QUIET": "on"}], ids=str)
def test_quiet(build, tmp_path, how):
    options, env = (how, {}) if isinstance(how, list) else ([], how)
    done = run_under(build, tmp_path, "ending", "exit", options=["-o", "t.json", *options], env=env)
    assert (done.returncode, done.stderr) == (5, "") and read(tmp_path / "t.json").verdict == "ok"
    assert lines(run_under(build, tmp_path, "ending", "exit", options=["-o", "u.json", "--quiet=off"], env=env if env else {"CUSTREAM_QUIET": "1"}))


def test_without_a_trace_nothing_is_said(build, tmp_path):
    for env in ({"CUSTREAM_TRACE": "off"}, {"CUSTREAM_TRACE": "off", "CUSTREAM_STREAMS": "sync"}):
        done = run_under(build, tmp_path, "ending", "exit", env=env)
        assert (done.returncode, done.stderr) == (5, "")


# ---- ways to end ----

@pytest.mark.parametrize("how", ["return", "exit", "_exit", "_Exit", "quick_exit", "atexit", "handler", "thread-exit", "thread-_exit", "destructors"])
def test_each_way_to_end(build, tmp_path, how):
    done = run_under(build, tmp_path, "ending", how, options=["-o", "t.json"])
    assert done.returncode in (5, 6, 12) and GOOD.fullmatch(only_line(done)), done.stderr
    assert read(tmp_path / "t.json").verdict == "ok"


@pytest.mark.parametrize("kernel_ns", [2000, 100000])
def test_threads_that_launch_to_the_end(build, tmp_path, kernel_ns):
    """A launch whose kernel has not ended when the profiler is asked for the last time, or that comes later, is counted: each has a kernel or is one of those."""
    done = run_under(build, tmp_path, "ending", "running", options=["-o", "t.json"], env={"CUSTREAM_FAKE_KERNEL_NS": str(kernel_ns)})
    assert done.returncode == 5 and read(tmp_path / "t.json").verdict == "ok"
    trace = json.loads((tmp_path / "t.json").read_text())
    without, without_call = trace["totals"]["gpu"]["without_times"], trace["totals"]["gpu"]["without_call"]
    said_of_it = f"{without} GPU operation{'s' * (without != 1)} without times" if without else "nothing lost"
    assert re.fullmatch(rf"custream: t\.json: \d+ calls, \d+ GPU operations, {said_of_it}\. Next: custream report t\.json; custream open t\.json", only_line(done)), done.stderr
    rows = trace["traceEvents"]
    have_kernels = {row["args"].get("correlation") for row in rows if row.get("cat") == "kernel"}
    lacking = [row for row in rows if row.get("name") == "cuLaunchKernel" and row["args"]["correlation"] not in have_kernels]
    assert len(lacking) - without_call <= without <= len(lacking) + 3  # a kernel may stand without its launch; each thread may have had one more, which was not recorded
    assert lacking or kernel_ns < 100000


def test_a_closed_pipe_and_a_closed_descriptor(build, tmp_path):
    reading, writing = os.pipe()
    os.close(reading)
    done = run_under(build, tmp_path, "ending", "exit", options=["-o", "t.json"], capture_output=False, stderr=writing)
    os.close(writing)
    assert done.returncode == 5 and check_file(tmp_path / "t.json") == "ok"
    done = subprocess.run(
        ["sh", "-c", f"exec {COMMAND} run -o u.json {build}/tests/ending exit 2>&-"], cwd=tmp_path, env=dict(os.environ, LD_LIBRARY_PATH=str(build / "fakecuda")),
        capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (5, "") and check_file(tmp_path / "u.json") == "ok"


def test_a_forked_child_that_records_says_so_too(build, tmp_path):
    done = run_under(build, tmp_path, "forks", "fork", options=["-o", "t.json"])
    files = {GOOD.fullmatch(line)["path"] for line in lines(done)}
    assert files == {path.name for path in tmp_path.glob("t*.json")} and "t.json" in files


# ---- what it says ----

def test_parts_count_together(build, tmp_path):
    done = run_under(build, tmp_path, "burst", 1, 6000, 700, options=["-o", "t.json", "--trace-max=1M,rotate:99", "--full=block"])
    found = GOOD.fullmatch(only_line(done))
    parts = [read(path) for path in tmp_path.glob("t*.json")]
    assert len(parts) > 1 and int(found["calls"]) == sum(part.totals["calls"] for part in parts) == read(tmp_path / "t.json").totals["calls_in_all_parts"]


def test_a_folder_is_shown_where_it_is_needed(build, tmp_path):
    (tmp_path / "here").mkdir()
    done = run_under(build, tmp_path, "ending", "exit", options=["-o", "here/t.json"])
    assert GOOD.fullmatch(only_line(done))["path"] == "here/t.json"
    done = run_under(build, tmp_path, "ending", "exit", options=["-o", tmp_path / "t.json.gz"], cwd=tmp_path / "here")
    assert GOOD.fullmatch(only_line(done))["path"] == str(tmp_path / "t.json.gz")


def test_the_advice_can_be_pasted(build, tmp_path):
    done = run_under(build, tmp_path, "ending", "exit", options=["-o", "it's 1 $HOME.json"])
    found = GOOD.fullmatch(only_line(done))
    assert found["path"] == "it's 1 $HOME.json"
    shown = subprocess.run(["sh", "-c", "printf %s " + found["open"]], capture_output=True, text=True, check=True).stdout
    assert shown == found["path"]


def state_of(path):
    """What `custream check` says of the file: first words and last."""
    found = re.fullmatch(rf"{re.escape(str(path))}: (.*): events \d+, .*?, (lost records .*)\n", custream("check", path).stdout)
    return found[1], found[2]


def test_lost_records_in_the_words_of_check(build, tmp_path):
    done = run_under(build, tmp_path, "burst", 4, 20000, options=["-o", "t.json", "--buffer=64K"])
    line = only_line(done)
    _, losses = state_of(tmp_path / "t.json")
    assert losses.split(", ")[0] in line and not losses.startswith("lost records 0") and "nothing lost" not in line


def test_a_size_limit_in_the_words_of_check(build, tmp_path):
    done = run_under(build, tmp_path, "burst", 1, 20000, 700, options=["-o", "t.json", "--trace-max=1M"])
    warning, line = lines(done)
    state, _ = state_of(tmp_path / "t.json")
    assert "reached CUSTREAM_TRACE_MAX" in warning
    assert state.startswith("ended at its size limit") and f"; {state}. Next: " in line


@pytest.mark.parametrize("env", [{"CUSTREAM_GPU": "off"},  # what is said of a trace without GPU times is the subject
                                 {"CUSTREAM_CUPTI": "libnothing.so", "CUSTREAM_GPU": "cupti"}], ids=["off", "no CUPTI"])
def test_no_gpu_times_in_the_words_of_check(build, tmp_path, env):
    done = run_under(build, tmp_path, "ending", "exit", options=["-o", "t.json"], env=env)
    *_, line = lines(done)
    _, losses = state_of(tmp_path / "t.json")
    assert ", no GPU times" in losses and losses.removeprefix("lost records 0") in line and "GPU operation" not in line


def test_check_holds_the_number_of_calls_against_the_rows(build, tmp_path):
    run_under(build, tmp_path, "ending", "exit", options=["-o", "t.json"], check=False)
    text = (tmp_path / "t.json").read_text()
    calls = json.loads(text)["totals"]["calls"]
    (tmp_path / "u.json").write_text(text.replace(f'"calls":{calls},', f'"calls":{calls + 1},'))
    result = custream("check", tmp_path / "u.json")
    assert result.returncode == 1 and f"rule 12: totals.calls is {calls + 1}" in result.stdout


def test_other_lines_do_not_change(run_app):
    """A wrong value is still said by hand."""
    run = run_app(["ending", "exit"], env={"CUSTREAM_QUIET": "maybe"})
    assert said(run) == ["custream: warning: CUSTREAM_QUIET=maybe is not valid: allowed is on|off|1|0; using off"]


# ---- rules that were used for nothing ----

RULES = [{"match": {"library": "libnccl*", "nonblocking": True, "priority": -2, "context": "created"}, "set": {"priority": -5}},
         {"match": {"library": "ending"}, "set": {"name": "x"}},
         {"match": {"thread": 'no"ne', "nth": 2}, "set": {"record": False}},
         {"match": {"library": "nobody"}, "set": {"default_stream": "per-thread"}}]
UNUSED = [{"rule": 0, "match": 'library "libnccl*", nonblocking true, priority -2, context created'}, {"rule": 2, "match": 'thread "no"ne", nth 2'},
          {"rule": 3, "match": 'library "nobody"'}]
UNUSED_LINES = [f"custream: policy: rules[{row['rule']}] was used for no stream ({row['match']})" for row in UNUSED]


def test_rules_that_matched_no_stream(build, tmp_path):
    """Said behind the closing line, and in the trace; those that were used are not."""
    policy = json.dumps({"rules": RULES})
    done = run_under(build, tmp_path, "ending", "exit", options=["-o", "t.json", "--policy", policy])
    closing, *rules = lines(done)
    assert GOOD.fullmatch(closing) and rules == UNUSED_LINES
    assert read(tmp_path / "t.json").json["unusedRules"] == UNUSED
    assert run_under(build, tmp_path, "ending", "exit", options=["-o", "t.json", "--quiet", "--policy", policy]).stderr == ""


def test_rules_without_a_trace_and_by_hand(build, tmp_path):
    policy = json.dumps({"rules": RULES})
    done = run_under(build, tmp_path, "ending", "exit", options=["--trace=off", "--policy", policy])
    assert done.returncode == 5 and lines(done) == UNUSED_LINES
    rc, shown = on_terminal(build, [build / "tests/ending", "exit"], {"CUSTREAM_TRACE": "t.json", "CUSTREAM_POLICY": policy}, tmp_path)
    assert rc == 5 and shown.splitlines()[1:] == UNUSED_LINES


def test_a_rule_that_some_process_of_the_run_used(build, tmp_path):
    policy = json.dumps({"rules": [{"match": {"library": name}, "set": {"name": "x"}} for name in ("ending", "burst", "nobody")]})
    script = f"{build}/tests/ending exit; {build}/tests/burst 1 10 >&2; exit 0"
    *_, last = said_lines = lines(run_under(build, tmp_path, "sh", "-c", script, options=["-o", "t-%p.json", "--policy", policy]))
    assert len(said_lines) == 3 and last == 'custream: policy: rules[2] was used for no stream (library "nobody")'


def test_more_unused_rules_than_there_is_room_for(build, tmp_path):
    """A long condition is cut, and so is a long list: both in the trace, where it stays a list, and behind the closing line."""
    rules = [{"match": {"library": "l" * (150 + n % 60), "thread": "t" * 150 + '"' * 40, "nth": n + 1}, "set": {"record": False}} for n in range(256)]
    whole = [f'library "{rule["match"]["library"]}", thread "{rule["match"]["thread"]}", nth {rule["match"]["nth"]}' for rule in rules]
    (tmp_path / "p.json").write_text(json.dumps({"rules": rules}))
    done = run_under(build, tmp_path, "ending", "exit", options=["-o", "t.json", "--policy", "p.json"])
    unused = read(tmp_path / "t.json").json["unusedRules"]
    assert {len(text) > 399 for text in whole} == {len(text) < 399 for text in whole} == {True, False} and len(unused) > 100
    assert unused == [{"rule": n, "match": whole[n][:399]} for n in range(len(unused))]
    closing, *said_lines = lines(done)
    assert GOOD.fullmatch(closing) and said_lines == [f"custream: policy: rules[{row['rule']}] was used for no stream ({row['match']})" for row in unused]


def test_all_rules_used_leave_nothing_in_the_trace(build, tmp_path):
    rules = [{"match": {"library": "ending"}, "set": {"name": "x"}}]
    run_under(build, tmp_path, "ending", "exit", options=["-o", "t.json", "--policy", json.dumps({"rules": rules})])
    assert "unusedRules" not in read(tmp_path / "t.json").json


def test_by_hand_a_pipe_hears_nothing_of_rules(run_app):
    run = run_app(["ending", "exit"], env={"CUSTREAM_POLICY": json.dumps({"rules": RULES})})
    assert run.rc == 5 and run.stderr == "" and read(run.trace).json["unusedRules"] == UNUSED


# ---- per-thread default streams ----

NOT_AUDITED = ("custream: per-thread default streams: the audit was not asked in this run; CUSTREAM_DEFAULT_STREAM=audit asks it, in a run of its own. "
               "PyTorch training is not safe: autograd's thread relies on the legacy stream")
PER_THREAD_RULE = json.dumps({"rules": [{"match": {"library": "audit_hazards"}, "set": {"default_stream": "per-thread"}}]})


@pytest.mark.parametrize("options", [["--default-stream=per-thread"], ["--policy", json.dumps({"default_stream": "per-thread"})], ["--policy", PER_THREAD_RULE]],
                         ids=["option", "policy", "rule"])
def test_a_run_under_per_thread_streams_says_that_nobody_asked(build, tmp_path, options):
    """Once for the run, behind the closing lines."""
    twice = f"{build}/tests/audit_hazards >&2; {build}/tests/audit_hazards >&2; exit 0"
    *_, first, second, last = lines(run_under(build, tmp_path, "sh", "-c", twice, options=["-o", "t-%p.json", *options]))
    assert GOOD.fullmatch(first) and GOOD.fullmatch(second) and last == NOT_AUDITED


def test_per_thread_streams_without_a_trace_and_after_a_kill(build, tmp_path):
    options = ["--default-stream=per-thread"]
    assert lines(run_under(build, tmp_path, "ending", "exit", options=["--trace=off", *options])) == [NOT_AUDITED]
    warned, told = lines(run_under(build, tmp_path, "ending", "exit", options=["-o", "none.json", "--window=profiler", *options]))
    assert warned.startswith("custream: warning: nothing was recorded: ") and told == NOT_AUDITED
    assert lines(run_under(build, tmp_path, "ending", "kill", options=["-o", "t.json", *options]))[-1] == NOT_AUDITED
    assert run_under(build, tmp_path, "ending", "exit", options=["--quiet", *options]).stderr == ""


@pytest.mark.parametrize("options", [[], ["--default-stream=legacy"], ["--policy", json.dumps({"rules": RULES})]], ids=["none", "legacy", "unused-rule"])
def test_others_are_told_nothing_of_it(build, tmp_path, options):
    done = run_under(build, tmp_path, "ending", "exit", options=["-o", "t.json", *options])
    assert "per-thread default streams" not in done.stderr and "perThreadDefaultStreams" not in read(tmp_path / "t.json").json


# ---- the rank ----

def test_the_default_name_carries_the_rank(build, tmp_path):
    for env, tail in [({"RANK": "3"}, "-r3"), ({"SLURM_PROCID": "12"}, "-r12"), ({}, "")]:
        done = run_under(build, tmp_path, "ending", "exit", env=env)
        name = GOOD.fullmatch(only_line(done))["path"]
        assert re.fullmatch(rf"custream-ending-\d+{tail}\.json", name) and (tmp_path / name).exists()
    done = run_under(build, tmp_path, "ending", "exit", options=["-o", "mine-%p.json"], env={"RANK": "3"})
    assert re.fullmatch(r"mine-\d+\.json", GOOD.fullmatch(only_line(done))["path"])


def test_a_rank_that_nobody_has_set(run_app, tmp_path):
    run = run_app(["ending", "exit"], env={"CUSTREAM_TRACE": "t-%r.json"}, cwd=tmp_path)
    (line,) = said(run)
    assert line.startswith("custream: warning: CUSTREAM_TRACE=t-%r.json: %r is 0, since no launcher has set a rank (RANK, OMPI_COMM_WORLD_RANK, ")
    assert (tmp_path / "t-0.json").exists()
    assert not said(run_app(["ending", "exit"], env={"CUSTREAM_TRACE": "u-%r.json", "RANK": "0"}, cwd=tmp_path))
