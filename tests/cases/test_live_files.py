"""Which file record, dump, hang and ps read: the one that the process writes, whatever has its name by now, and whatever the folder is called."""
import os
import re
import signal
import subprocess

import pytest

from tests.apprun import calls_in, read
from tests.cases.test_dump import dump
from tests.cases.test_live import IDLE, Record, launches, row_of
from tests.gputrace import CUPTI
from tests.handmade import custream
from tests.remote import BUILD, Remote, until


@pytest.fixture(name="other", scope="module")
def other_trace(tmp_path_factory):
    """A whole trace of another process."""
    with Remote(tmp_path_factory.mktemp("other"), CUPTI) as program:
        program.do("create 1", "launch 1 77", "all")
    return program.trace


def judge(program, tmp_path):
    """After five launches: what each command makes of the process's own file."""
    assert dump("-p", program.pid, "--last=1h", "-o", tmp_path / "d.json")[0] == 0 and launches(tmp_path / "d.json") == 5
    with Record("-p", program.pid, "-o", tmp_path / "r.json") as record:
        program.do("launch 1 3", "all")
    assert (record.rc, record.err) == (0, "") and launches(tmp_path / "r.json") == 3
    hang = custream("hang", "-p", program.pid)
    assert hang.returncode == 0 and "Nothing was running" in hang.stdout


def test_trace_that_was_renamed(tmp_path, other):
    with Remote(tmp_path, CUPTI) as program:
        program.do("create 1", "launch 1 5", "all")
        program.ctl("flush")
        program.trace.rename(tmp_path / "old.json")
        program.trace.write_bytes(other.read_bytes())
        judge(program, tmp_path)
        assert row_of(program.pid)["size"] == (tmp_path / "old.json").stat().st_size != other.stat().st_size
    assert launches(tmp_path / "old.json") == 8 and program.trace.read_bytes() == other.read_bytes()


def test_trace_that_was_removed(tmp_path):
    with Remote(tmp_path, CUPTI) as program:
        program.do("create 1", "launch 1 5", "all")
        program.ctl("flush")
        program.trace.unlink()
        judge(program, tmp_path)


def test_mounts_of_its_own(tmp_path, other):
    """Another folder is at the path of its trace, under the same root."""
    (tmp_path / "out").mkdir(), (tmp_path / "kept").mkdir()
    (tmp_path / "out" / "remote.json").write_bytes(other.read_bytes())
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.xfail("this machine makes no namespaces")
    inside = ["--mount", "sh", "-c", f'mount --bind {tmp_path}/kept {tmp_path}/out && exec "$0"', BUILD / "tests" / "remote"]
    with Remote(tmp_path, CUPTI, inside, trace="out/remote.json", executable="unshare") as program:
        program.do("create 1", "launch 1 5", "all")
        judge(program, tmp_path)
        assert row_of(program.pid)["size"] == (tmp_path / "kept" / "remote.json").stat().st_size
    assert launches(tmp_path / "kept" / "remote.json") == 8


def test_ended_and_another_file_has_the_name(tmp_path, other):
    """Nothing is left by which its own could be found."""
    with Remote(tmp_path, IDLE) as program:
        program.do("create 1")
        with Record("-p", program.pid, "-o", tmp_path / "step.json") as record:
            program.do("launch 1 3", "all")
            program.ctl("flush")
            program.trace.rename(tmp_path / "old.json")
            program.trace.write_bytes(other.read_bytes())
            program.send("return 0")
            record.end(None)
    assert record.rc == 2 and "what has that name is another file" in record.err and not (tmp_path / "step.json").exists()


def is_kept(command, to, trace):
    """A copy stands beside the output, and the trace itself is not open any more."""
    links = {os.readlink(fd.path) for fd in os.scandir(f"/proc/{command}/fd")}
    return str(trace) not in links and any(link.startswith(f"{to.parent}/") and link.endswith("(deleted)") for link in links)


@pytest.mark.parametrize("kept", [True, False], ids=["later", "at once"])
def test_a_later_process_takes_the_trace_over(tmp_path, kept):
    """The same file, by device and inode, has what nobody asked for. What the first one recorded is taken before that, if there is time."""
    to = tmp_path / "to" / "all.json"
    for folder in ("other", "to"):
        (tmp_path / folder).mkdir()
    with Remote(tmp_path / "other", IDLE | CUPTI) as other, Remote(tmp_path, IDLE | CUPTI) as first:
        for program in (first, other):
            program.do("create 1")
        inode = None
        with Record("-p", first.pid, "-p", other.pid, "-o", to) as record:
            first.do("launch 1 5", "all"), other.do("launch 1 3", "all")
            inode = first.trace.stat().st_ino
            if not kept:
                os.kill(record.process.pid, signal.SIGSTOP)
            first.end()
            if kept:
                until(lambda: is_kept(record.process.pid, to, first.trace))
            with Remote(tmp_path, CUPTI) as second:
                second.do("create 1", "launch 1 7", "all")
                second.ctl("flush")
                os.kill(record.process.pid, signal.SIGCONT)
                record.end()
    assert second.trace.stat().st_ino == inode and launches(second.trace) == 7
    assert record.rc == 1 and launches(to) == (8 if kept else 3) and second.pid not in {event["pid"] for event in read(to).events}
    assert f"process {first.pid} (remote) ended after" in record.err
    assert ("what has that name is another file" in record.err) != kept
    calls = sum(calls_in(read(to)).values())
    assert record.out == f"{to}: {calls} calls, {8 if kept else 3} GPU operations, {'nothing lost' if kept else 'not counting what could not be read'}. Open it: custream open {to}"


def test_a_later_process_takes_the_trace_over_of_one(tmp_path):
    with Remote(tmp_path, IDLE | CUPTI) as first:
        first.do("create 1")
        with Record("-p", first.pid, "-o", tmp_path / "step.json") as record:
            first.do("launch 1 5", "all")
            os.kill(record.process.pid, signal.SIGSTOP)
            first.end()
            with Remote(tmp_path, CUPTI) as second:
                second.do("create 1", "launch 1 7", "all")
                second.ctl("flush")
                os.kill(record.process.pid, signal.SIGCONT)
                record.end(None)
    assert record.rc == 2 and "what has that name is another file" in record.err and not (tmp_path / "step.json").exists() and record.out == ""


@pytest.mark.parametrize("command", ["dump", "hang", "record"])
def test_a_process_that_names_another_one_s_trace(tmp_path, other, command):
    """Device and inode are right. The time base is another process's."""
    from tests.cases.test_live_hostile import Fake, about
    file, to = other.stat(), tmp_path / "t.json"
    with Fake(about(other, base=17, device=file.st_dev, inode=file.st_ino)) as fake:
        done = custream(command, "-p", fake.pid, *{"hang": [], "dump": ["-o", to], "record": ["-d", "10ms", "-o", to]}[command])
    assert done.returncode == 2 and "what has that name is another file" in done.stderr and not to.exists() and done.stdout == "", done


def test_a_process_that_executes_another_program(tmp_path):
    with Remote(tmp_path, IDLE | CUPTI) as program:
        program.do("create 1")
        with Record("-p", program.pid, "-o", tmp_path / "step.json") as record:
            program.do("launch 1 3", "all")
            assert program.do("exec") == ["exec"] and program._answer() == [str(program.pid)]
            record.end(None)
    said = rf"custream record: process {program.pid} \(remote\) executed another program, which ended the recording after \d+\.\d s; its file is {tmp_path}/remote.json"
    assert record.rc == 1 and re.fullmatch(said, record.err) and launches(tmp_path / "step.json") == 3


@pytest.mark.parametrize("how", ["return 0", "kill"])
@pytest.mark.parametrize("before", [0, 4])
def test_calls_of_a_process_that_ends_are_counted(tmp_path, how, before):
    with Remote(tmp_path, IDLE if not before else CUPTI) as program:
        program.do("create 1", *([f"launch 1 {before}", "all", *["mark earlier"] * 50] if before else []))
        with Record("-p", program.pid, "-o", tmp_path / "step.json") as record:
            program.do("launch 1 3", "all")
            if how == "kill":
                program.ctl("flush")
                os.kill(program.pid, signal.SIGKILL)
            else:
                program.send(how)
            record.end(None)
    calls = sum(calls_in(read(tmp_path / "step.json")).values())
    found = re.fullmatch(rf"{tmp_path}/step.json: (\d+) calls, 3 GPU operations, (.*)\. Open it: custream open {tmp_path}/step.json", record.out)
    assert found and int(found[1]) == calls and launches(tmp_path / "step.json") == 3
    assert found[2] == ("nothing lost" if how == "return 0" else "as far as its file goes")


@pytest.mark.parametrize("folder", ["a[bc]", "a?", "a*", "a\\b", "a]["])
def test_parts_in_a_folder_with_such_a_name(tmp_path, folder):
    (tmp_path / folder).mkdir()
    (tmp_path / "ab").mkdir()
    env = CUPTI | {"CUSTREAM_TRACE_MAX": "1M,rotate:20", "CUSTREAM_FULL": "block"}
    with Remote(tmp_path / folder, env) as program:
        program.do("create 1", "launch 1 10000", "all")
        assert dump("-p", program.pid, "--last=1h", "-o", tmp_path / "d.json")[0] == 0
        trace = read(tmp_path / "d.json")
        assert calls_in(trace)["cuLaunchKernel"] == 10000 and trace.metadata["cut"]["files"] > 2
