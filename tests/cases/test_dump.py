"""custream dump: the last seconds of what processes record, out of files that they go on writing."""
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from tests.apprun import calls_in, read
from tests.cases.test_live import IDLE, launches
from tests.gputrace import CUPTI
from tests.handmade import custream
from tests.perfetto import assert_clean
from tests.remote import BUILD, Remote, until


def dump(*words, cwd=None):
    done = subprocess.run([BUILD / "custream", "dump", *map(str, words)], cwd=cwd, capture_output=True, text=True, timeout=100, check=False)
    return done.returncode, done.stdout.rstrip("\n"), done.stderr.rstrip("\n")


def marks(path):
    return [e["name"] for e in read(path).events if e.get("cat") == "user_annotation" and e["ph"] == "i"]


def test_dump_has_what_was_last(tmp_path):
    """All that was called in that time, and nothing from before; the process records on."""
    with Remote(tmp_path, CUPTI) as program:
        program.do("create 1", "launch 1 5", "all")
        until(lambda: seconds_since(read_flushed(program)) > 1.5)
        program.do("launch 1 3", "all")
        to = tmp_path / "last.json"
        assert dump("-p", program.pid, "--last=1h", "-o", tmp_path / "all.json")[0] == 0
        rc, out, err = dump("-p", program.pid, "--last", "1", "-o", to)
        assert (rc, out, err) == (0, f"{to}: the last 1 s of 1 process. Open it: custream open {to}", "")
        assert launches(tmp_path / "all.json") == 8 and launches(to) <= 3 and program.status()["recording"] == "on"
        program.do("launch 1 2")
    assert calls_in(program.load())["cuLaunchKernel"] == 10


def read_flushed(program):
    program.ctl("flush")
    return read(program.trace)


def seconds_since(trace):
    """Since the last launch, by the trace's own last event."""
    import time
    last = max(e["ts"] for e in trace.host("cuLaunchKernel"))
    return time.time() - json.loads(pathlib.Path(trace.path).read_text())["baseTimeNanoseconds"] / 1e9 - last / 1e6


def rows(trace):
    return collections.Counter(e["name"] for e in trace.slices if e["cat"] in ("cuda_driver", "kernel"))


def test_dump_of_parts(tmp_path):
    """Of a flight recorder: what is kept in several parts, and how far that goes back."""
    with Remote(tmp_path, CUPTI | {"CUSTREAM_TRACE_MAX": "1M,rotate:3", "CUSTREAM_FULL": "block"}) as program:
        program.do("create 1")
        until(lambda: program.do("launch 1 500", "all") is None or (tmp_path / "remote.5.json").exists())
        for _ in range(3):
            program.ctl("flush")  # a slow writer (make check-tsan) has more to write, and would take a part away after the dump
        os.mkfifo(tmp_path / "remote.999.json")  # no part of anything; whoever opens it to read waits
        rc, out, err = dump("-p", program.pid, cwd=tmp_path)
        os.unlink(tmp_path / "remote.999.json")
        assert rc == 0 and out == f"custream-dump-{program.pid}.json: the last 10 s of 1 process. Open it: custream open custream-dump-{program.pid}.json"
        assert not err or re.fullmatch(r"custream dump: 10.0 s were asked for; what is kept goes back \d\.\d s \(CUSTREAM_TRACE_MAX\)", err)
        trace = read(tmp_path / f"custream-dump-{program.pid}.json")
        parts = [read(path) for path in tmp_path.glob("remote*.json")]
        assert trace.metadata["cut"]["files"] == 3 == len(parts)
        kept = sum((rows(part) for part in parts), collections.Counter())
        assert rows(trace) == kept and kept.total() > 1000
    assert program.end().rc == 0


@pytest.mark.parametrize("how", ["renamed", "removed"])
def test_dump_of_parts_whose_folder_is_gone(tmp_path, how):
    (tmp_path / "a").mkdir()
    with Remote(tmp_path, CUPTI | {"CUSTREAM_TRACE_MAX": "1M,rotate:20", "CUSTREAM_FULL": "block"}, trace="a/t.json") as program:
        program.do("create 1", "launch 1 3000", "all")
        program.ctl("flush")
        until(lambda: seconds_since(read(tmp_path / "a" / "t.1.json")) > 1.5)
        if how == "renamed":
            (tmp_path / "a").rename(tmp_path / "b")
        else:
            shutil.rmtree(tmp_path / "a")
        rc, _, err = dump("-p", program.pid, "--last=1h", "-o", tmp_path / "d.json")
        assert rc == 0 and (launches(tmp_path / "d.json") == 3000) == (how == "renamed")
        why = "what is kept goes back .* (CUSTREAM_TRACE_MAX)" if how == "renamed" else r"what is found goes back .* \(parts that have ended are not where the trace was\)"
        assert re.fullmatch(rf"custream dump: 3600.0 s were asked for; {why}".replace("(CUSTREAM_TRACE_MAX)", r"\(CUSTREAM_TRACE_MAX\)"), err), err


def test_dump_while_it_records(tmp_path):
    """Files that are written all the time, and parts that go away: what is taken is whole. The writer gets along, also where it is slow (make check-tsan)."""
    with Remote(tmp_path, CUPTI | {"CUSTREAM_TRACE_MAX": "1M,rotate:4", "CUSTREAM_FULL": "block"}) as program:
        program.do("create 1", "loop on 3")
        for n in range(4):
            rc, _, err = dump("-p", program.pid, "-l", "300ms", "-o", tmp_path / f"{n}.json.gz")
            assert rc == 0, err
            assert len(read(tmp_path / f"{n}.json.gz").events) > 0
        program.do("loop off")
    assert program.end().rc == 0


def test_dump_of_nothing(tmp_path):
    with Remote(tmp_path, IDLE) as program:
        program.do("create 1")
        rc, out, err = dump("-p", program.pid, "-o", tmp_path / "x.json")
        assert (rc, out) == (2, "") and err == (f"custream dump: process {program.pid} (remote) has recorded nothing, so there is nothing to dump; "
                                                "'custream record' has it record")
        assert not (tmp_path / "x.json").exists()


@pytest.mark.parametrize("words, line", [
    ((), "which process? -p PID, --all, --rank=N or --program=NAME; 'custream ps' lists them"), (("--all", "--last=no"), "--last=no: allowed is a time above 0 in seconds, "
     "or with ms, s, m, h: 5s, 500ms"), (("-p", "1", "5s"), "'5s' is no option; a process is named by -p PID"),
    (("--all", "-o", "x"), "-o x: allowed is a path ending in .json, .json.gz, .pftrace or .pftrace.gz"),
])
def test_dump_wrong_usage(words, line):
    assert dump(*words) == (2, "", f"custream dump: {line}")


# ---- the file is a trace like any other, and says that it is a cut ----

@pytest.fixture
def dumped(tmp_path):
    """The last second of a process, of which more is in its trace."""
    with Remote(tmp_path, CUPTI) as program:
        program.do("create 1", "launch 1 40", "all")
        until(lambda: seconds_since(read_flushed(program)) > 1.2)
        program.do("launch 1 7", "all")
        to = tmp_path / "cut.json"
        assert dump("-p", program.pid, "--last=1", "-o", to)[0] == 0
    return to, program


def test_a_cut_is_checked_and_reported(dumped):
    to, program = dumped
    cut, whole = read(to), program.load()
    assert cut.gpus == whole.gpus and cut.process_names == whole.process_names and cut.metadata["gpu_time_source"] == whole.metadata["gpu_time_source"]
    assert 0 < cut.metadata["cut"]["seconds"] <= 1.2 and cut.json["baseTimeNanoseconds"] == whole.json["baseTimeNanoseconds"]
    made = len(cut.gpu(cat="kernel"))
    assert 7 <= made < 47
    said = custream("check", to)
    assert re.fullmatch(rf"{to}: ok, a cut of \d\.\d{{3}} s out of a trace: events \d+, .*, lost records 0\n", said.stdout) and said.returncode == 0, said
    seconds = said.stdout.split("cut of ")[1].split(" ")[0]
    done = custream("report", "--json", to)
    assert done.returncode == 0 and done.stderr == f"custream report: {to}: a cut of {seconds} s out of a trace; the report's totals are those of the cut\n"
    (run,) = json.loads(done.stdout)["tables"]["run"]
    assert run["whole"].startswith(f"a cut of {seconds} s out of a trace: all totals are those of the cut") and run["works"] == len([e for e in cut.gpu() if "correlation" in e["args"]])
    assert "cut of" in custream("report", to).stdout


def test_a_cut_is_compared_and_merged(dumped, tmp_path):
    to, program = dumped
    done = custream("diff", to, program.trace)
    assert done.returncode in (0, 1) and f"{to}: a cut of " in done.stderr, done
    run = Remote(tmp_path, CUPTI | {"CUSTREAM_TRACE": str(tmp_path / "other.json")})
    with run as other:
        other.do("create 1", "launch 1 3", "all")
    merged = custream("merge", "-o", tmp_path / "m.json", to, tmp_path / "other.json")
    assert merged.returncode == 0 and "2 processes" in merged.stdout, merged
    assert len(read(tmp_path / "m.json").slices) == len(read(to).slices) + len(read(tmp_path / "other.json").slices)


def test_perfetto_opens_a_cut(dumped, trace_processor):
    to, _ = dumped
    trace_processor.load(to)
    assert_clean(trace_processor)
    assert trace_processor.value("SELECT count(*) FROM slice WHERE category = 'kernel'") == len(read(to).gpu(cat="kernel"))


def test_a_trace_is_no_cut(dumped):
    _, program = dumped
    assert "a cut" not in custream("check", program.trace).stdout and custream("report", program.trace).stderr == ""
