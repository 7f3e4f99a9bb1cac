"""A trace that is read while its process writes, or that a kill has left in the middle of a write: all before the write is read, and nothing is damaged."""
import json
import os
import pathlib
import signal
import subprocess

import pytest

from tests.handmade import COMMAND
from tests.perfetto import assert_clean
from tests.remote import Remote, until

NAMES = ["t.json", "t.json.gz", "t.pftrace"]


def is_stopped(pid):
    return all((task / "stat").read_text().rsplit(")", 1)[1].split()[0] in "tT" for task in pathlib.Path(f"/proc/{pid}/task").iterdir())


def make(folder, name):
    """Three states of a trace: after a flush, after the next, and whole. Two between each two of them, in the middle of the write."""
    states = []
    with Remote(folder, trace=name) as remote:
        def keep():
            remote.ctl("flush")
            os.kill(remote.pid, signal.SIGSTOP)
            until(lambda: is_stopped(remote.pid))
            states.append(remote.trace.read_bytes())
            os.kill(remote.pid, signal.SIGCONT)

        remote.do("create 1", "launch 1 300", "sync 1")
        keep()
        remote.do("launch 1 2500", "sync 1")
        keep()
        remote.do("launch 1 20", "sync 1")
    states.append(remote.trace.read_bytes())
    return states


@pytest.fixture(name="states", scope="module")
def fixture_states(once):
    return {name: once(f"writes-{name}", lambda folder, name=name: make(folder, name)) for name in NAMES}


def same(before, after):
    """How many bytes both begin with."""
    return len(os.path.commonprefix([before, after]))


def middles(before, after):
    """The file in the middle of the write: a bit of it, up to the middle of the old trailer, and beyond it."""
    at = same(before, after)
    return [after[:end] + before[end:] for end in (at + 5, (at + len(before)) // 2, (len(before) + len(after)) // 2) if at < end]


def run(*args, env=None):
    done = subprocess.run([COMMAND, *map(str, args)], capture_output=True, text=True, timeout=100, check=False, env={**os.environ, **(env or {})})
    return done.returncode, done.stdout, done.stderr


def calls(path, to, **env):
    """Launches that are read of it, or of what it becomes meanwhile; and what was said."""
    rc, _, complaints = run("convert", path, to, env=env)
    assert rc == 0, complaints
    return sum(row.get("cat") == "cuda_driver" and row["name"] == "cuLaunchKernel" for row in json.loads(to.read_text())["traceEvents"]), complaints


@pytest.mark.parametrize("name", NAMES)
def test_what_a_kill_in_a_write_has_left(states, tmp_path, name, trace_processor):
    first, second, whole = states[name]
    path, to = tmp_path / name, tmp_path / "rows.json"
    for before, after, least in ((first, second, 300), (second, whole, 2800)):
        for middle in middles(before, after):
            path.write_bytes(middle)
            rc, _, complaints = run("check", path)
            assert rc == 2 and "truncated" in complaints, complaints
            found, complaints = calls(path, to)
            assert least <= found <= 2820 and "truncated" in complaints
            assert run("recover", "--in-place", path)[0] == 0 and run("check", path)[0] == 0
            trace_processor.load(path)
            assert_clean(trace_processor)
            assert calls(path, to) == (found, "")


def changing(build, path, at, states):
    """The environment of a command, for which the file becomes the first of the states before its at-th read, and so on."""
    names = [path.with_name(f"to-{i}") for i in range(len(states))]
    for to, state in zip(names, states, strict=True):
        to.write_bytes(state)
    return {"LD_PRELOAD": str(build / "tests/libchanges.so"), "CHANGES_FILE": str(path), "CHANGES_AT": str(at), "CHANGES_TO": ":".join(map(str, names))}


@pytest.mark.parametrize("name", NAMES)
def test_what_is_read_while_it_is_written(build, states, tmp_path, name):
    """Whatever is written between any two reads: what is read is the file at one moment."""
    first, second, whole = states[name]
    path, to = tmp_path / name, tmp_path / "rows.json"
    for before, after, counts in ((first, second, (300, 2800)), (second, whole, (2800, 2820))):
        half = middles(before, after)
        for begin, *then in ([before, after], *([middle, after] for middle in half), *([before, middle, after] for middle in half), [half[0], half[-1], after]):
            for at in range(1, 7):
                path.write_bytes(begin)
                found, complaints = calls(path, to, **changing(build, path, at, then))
                assert counts[0] <= found <= counts[1] and ("truncated" in complaints or (found in counts and not complaints)), complaints


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("command", [["check"], ["report"], ["diff", "PATH"], ["merge", "-o", "TO.json"], ["convert", "PATH", "TO.pftrace"]],
                         ids=lambda command: command[0])
def test_each_command(build, states, tmp_path, name, command):
    first, second, _ = states[name]
    path = tmp_path / name
    (count := tmp_path / "count").touch()
    words = [str(path) if word == "PATH" else word.replace("TO", str(tmp_path / "to")) for word in command] + ([] if command[0] == "convert" else [str(path)])
    begin, last = middles(first, second)[0], 1
    for at in range(1, 40):
        path.write_bytes(begin)
        count.write_bytes(b"")
        rc, _, complaints = run(*words, env={**changing(build, path, at, [second]), "CHANGES_COUNT": str(count)})
        assert rc == 0 or (rc, command[0]) == (2, "check") and "truncated" in complaints, complaints
        assert not complaints or "truncated" in complaints
        if at > (last := len(count.read_bytes())):
            break
    assert last >= 2
