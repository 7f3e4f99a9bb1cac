"""The unit tests in C: each TEST of tests/unit, plain and under the sanitizers; and what their tools leave in files."""
import gzip
import os
import re
import subprocess
import time

import pytest

from tests import variants
from tests.cases.conftest import ROOT
from tests.trace import Trace

SOURCES = sorted((ROOT / "tests/unit").glob("*.c"))
TESTS = {source.stem: found for source in SOURCES if (found := re.findall(r"^TEST\((\w+)\)", source.read_text(encoding="utf-8"), re.M))}
VARIANTS = [(variant, name) for name in TESTS for variant in (["tsan"] if name.startswith("race_") else ["plain", "asan"])]
PRELOAD = "/nonexistent/libcustream_shim.so"  # marks a process as one of the run; the loader says that it is not there, and goes on


def environment(build, **more):
    child = {k: v for k, v in os.environ.items() if not k.startswith("CUSTREAM_") and k not in ("LD_PRELOAD", "RANK", "WORLD_SIZE")}
    return child | {"UNIT_LIBS": str(build / "tests/unit/lib"), "LD_LIBRARY_PATH": str(build / "fakecuda"), "TSAN_OPTIONS": "halt_on_error=1", "UBSAN_OPTIONS": "print_stacktrace=1"} | more


def tool(build, name, *args, variant="asan", **options):
    return subprocess.run([build / "tests/unit" / variant / name, *map(str, args)], capture_output=True, text=True, check=False, timeout=100,
                          **{"env": environment(build)} | options)


def test_there_are_tests_in_every_file():
    assert TESTS.keys() == {source.stem for source in SOURCES if not source.stem.startswith("tool_")}


@pytest.mark.parametrize("variant, name", VARIANTS, ids=["-".join(v) for v in VARIANTS])
def test_unit(build, tmp_path, variant, name):
    """Each TEST of the program, in a process and a folder of its own."""
    if variants.NAME not in variants.EMULATED:
        done = tool(build, name, variant=variant, cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "") and sorted(TESTS[name]) == sorted(path.name for path in tmp_path.iterdir())
        return
    for test in TESTS[name]:  # started anew, since QEMU aborts a child of fork that makes a thread
        if not variants.excluded(f"test_unit[{variant}-{name}-{test}]"):
            (tmp_path / test).mkdir()
            done = tool(build, name, test, variant=variant, cwd=tmp_path / test)
            assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), test


# --- out/path ---

def opened(build, pattern, cwd, **env):
    done = tool(build, "tool_open", pattern, variant="plain", cwd=cwd, env=environment(build, **env))
    return done.stdout.strip()


def is_written(path):
    """tool_open's, and nothing else's."""
    text = path.read_bytes()
    return text.startswith(b'{"schemaVersion":2,') and text.endswith(b"custream 0\"}}\n")


@pytest.mark.parametrize("pattern, expected", [
    ("t.json", r"t\.json"), ("%e.json", r"tool_open\.json"), ("%p.json.gz", r"\d+\.json\.gz"), ("a%%b.json", r"a%b\.json"), ("r%r.json", r"r0\.json"),
    ("%e-%e.json", r"tool_open-tool_open\.json"), ("./x/../y.json", None),
])
def test_pattern(build, tmp_path, pattern, expected):
    got = opened(build, pattern, tmp_path)
    if expected is None:
        assert got == "./x/../y.json: No such file or directory"
    else:
        assert re.fullmatch(expected, got) and is_written(tmp_path / got)


def test_host_and_pid(build, tmp_path):
    process = subprocess.Popen([build / "tests/unit/plain/tool_open", "%h-%p.json"], cwd=tmp_path, stdout=subprocess.PIPE, text=True, env=environment(build))
    assert process.communicate()[0] == f"{os.uname().nodename}-{process.pid}.json\n"


@pytest.mark.parametrize("env, rank", [({"RANK": "3"}, 3), ({"SLURM_PROCID": "5"}, 5), ({"RANK": "2", "SLURM_PROCID": "7"}, 2), ({"RANK": "x"}, 0),
                                       ({"OMPI_COMM_WORLD_RANK": "11"}, 11), ({"PMIX_RANK": "4"}, 4), ({"PMI_RANK": "6"}, 6), ({"RANK": ""}, 0)])
def test_rank(build, tmp_path, env, rank):
    assert opened(build, "r%r.json", tmp_path, **env) == f"r{rank}.json"


def test_a_directory_is_refused(build, tmp_path):
    (tmp_path / "d.json").mkdir()
    assert opened(build, "d.json", tmp_path) == "d.json: it is a directory"


@pytest.mark.parametrize("name, other", [("t.json", r"t-\d+\.json"), ("t.json.gz", r"t-\d+\.json\.gz"), ("a.json.b/t.json", r"a\.json\.b/t-\d+\.json"),
                                         ("x.json.y.json", r"x\.json\.y-\d+\.json")])
def test_a_file_in_use_is_left_alone(build, tmp_path, name, other):
    (tmp_path / "a.json.b").mkdir()
    holder = subprocess.Popen([build / "tests/unit/plain/tool_open", name, "hold"], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              env=environment(build))
    assert holder.stdout.readline() == f"{name}\n"
    got = opened(build, name, tmp_path)
    holder.communicate("")
    assert re.fullmatch(other, got) and is_written(tmp_path / got) and is_written(tmp_path / name)


def test_processes_of_one_run_do_not_overwrite_each_other(build, tmp_path):
    """The shell has the preload too, so what its children write one after the other belongs to one run."""
    program = build / "tests/unit/plain/tool_open"
    done = subprocess.run(["/bin/sh", "-c", f"{program} t.json; {program} t.json; {program} t.json; true"], cwd=tmp_path, capture_output=True, text=True,
                          check=True, env=environment(build, LD_PRELOAD=PRELOAD))
    first, second, third = done.stdout.split()
    assert first == "t.json" and len({second, third}) == 2 and all(re.fullmatch(r"t-\d+\.json", n) for n in (second, third))
    assert len(list(tmp_path.iterdir())) == 3


def test_a_new_run_takes_the_name_again(build, tmp_path):
    """Also at once after the last one: starts of processes are known to a hundredth of a second only."""
    for _ in range(30):
        assert opened(build, "t.json", tmp_path) == "t.json"
    assert [p.name for p in tmp_path.iterdir()] == ["t.json"]


def test_a_file_of_an_older_run_is_replaced(build, tmp_path):
    opened(build, "t.json", tmp_path)
    with open(tmp_path / "t.json", "a", encoding="utf-8") as file:
        file.write("older and longer")
    time.sleep(0.05)  # the file is older than the process that comes, by more than a tick of the clock in which processes begin
    done = subprocess.run(["/bin/sh", "-c", f"{build}/tests/unit/plain/tool_open t.json; true"], cwd=tmp_path, capture_output=True, text=True, check=True,
                          env=environment(build, LD_PRELOAD=PRELOAD))
    assert done.stdout == "t.json\n" and is_written(tmp_path / "t.json")


# --- out/gzip ---

@pytest.mark.parametrize("variant", ["plain", "asan"])
def test_gzip_members_make_one_file(build, tmp_path, variant):
    done = tool(build, "tool_gzip", tmp_path / "out.gz", tmp_path / "raw", variant=variant)
    assert (done.returncode, done.stderr) == (0, "")
    raw = (tmp_path / "raw").read_bytes()
    assert len(raw) > 3 << 20 and gzip.decompress((tmp_path / "out.gz").read_bytes()) == raw


def test_missing_zlib_is_one_line(build, tmp_path):
    (tmp_path / "libz.so.1").write_text("no library\n")
    done = tool(build, "tool_gzip", tmp_path / "out.gz", tmp_path / "raw", variant="plain", env=environment(build, LD_LIBRARY_PATH=str(tmp_path)))
    assert done.returncode == 3
    assert done.stderr == "custream: error: libz.so.1 is missing, which a trace ending in .gz needs; nothing is recorded\n"


ZLIB = ["deflateInit2_", "deflate", "deflateReset", "deflateSetHeader", "inflateInit2_", "inflate", "inflateEnd"]


@pytest.mark.parametrize("lacking", ZLIB)
def test_a_zlib_that_lacks_a_function_is_none(build, tmp_path, lacking):
    source = "".join(f"int {name}(void) {{ return 0; }}\n" for name in ZLIB if name != lacking)
    subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", tmp_path / "libz.so.1"], input=source, text=True, check=True)
    done = tool(build, "tool_gzip", tmp_path / "out.gz", tmp_path / "raw", variant="plain", env=environment(build, LD_LIBRARY_PATH=str(tmp_path)))
    assert done.returncode == 3 and "libz.so.1 is missing" in done.stderr


# --- limits of the file ---

def limited(build, path, calls, limit="", **env):
    done = tool(build, "tool_timeline", calls, *([limit] if limit else []), env=environment(build, CUSTREAM_TRACE=str(path), **env))
    assert done.returncode == 0, done.stderr
    return Trace(path), done.stderr


def agrees(trace, calls):
    """Every call is in the file or counted as lost, and the gap stands in the timeline."""
    shown = [e for e in trace.events if e.get("cat") == "cuda_driver"]
    gaps = [e for e in trace.events if e.get("cat") == "cs_loss"]
    assert trace.totals["recorded"] + trace.totals["lost_records"] == calls
    assert trace.totals["complete"] is (not gaps)
    assert gaps or trace.totals["leaked_streams"] == 20
    return len(shown), [e["args"]["cause"] for e in gaps]


@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
def test_without_a_limit_all_is_there(build, tmp_path, name):
    trace, said = limited(build, tmp_path / name, 20000)
    assert said == "" and agrees(trace, 20000) == (20000, [])


@pytest.mark.parametrize("name, calls, limit", [("t.json", 40000, 1 << 20), ("t.json", 40000, 3 << 20), ("t.json.gz", 400000, 1 << 20)])
def test_trace_max_stops_the_file_whole(build, tmp_path, name, calls, limit):
    trace, said = limited(build, tmp_path / name, calls, CUSTREAM_TRACE_MAX=str(limit))
    assert said == f"custream: warning: the trace {tmp_path / name} reached CUSTREAM_TRACE_MAX={limit} and ends here\n"
    shown, causes = agrees(trace, calls)
    assert 0 < shown < calls and causes == ["its size limit (CUSTREAM_TRACE_MAX)"]
    assert limit // 2 < (tmp_path / name).stat().st_size < limit + (64 << 10)


@pytest.mark.parametrize("name, limit", [("t.json", 6000), ("t.json", 500000), ("t.json", 1500000), ("t.json", 2000000), ("t.json.gz", 30000)])
def test_a_full_disk_leaves_the_file_whole(build, tmp_path, name, limit):
    full_disk(build, tmp_path / name, limit)


def killed(build, path, limit, how="killed"):
    """After the flush that fails."""
    done = tool(build, "tool_timeline", 40000, limit, how, env=environment(build, CUSTREAM_TRACE=str(path)))
    assert (done.returncode, done.stdout) == (0, "") and "cannot write on" in done.stderr


def test_a_full_disk_and_the_process_is_killed(build, tmp_path):
    """The flush that fails leaves the file whole already."""
    killed(build, tmp_path / "t.json", 500000)
    assert [e["args"]["cause"] for e in Trace(tmp_path / "t.json").events if e.get("cat") == "cs_loss"] == ["the trace could not be written any further"]


def test_a_disk_without_room_for_the_head(build, tmp_path):
    """Nothing is better than a part of it."""
    killed(build, tmp_path / "t.json", 200)
    assert (tmp_path / "t.json").read_bytes() == b""


def test_a_disk_with_room_for_one_trailer_but_not_for_the_next(build, tmp_path):
    """The trailer that tells of the gap is longer than the one that the last good flush left: sizes around that one, and each leaves a whole file."""
    limited(build, tmp_path / "5000.json", 5000)
    size = (tmp_path / "5000.json").stat().st_size
    for more in range(-800, 800, 80):
        full_disk(build, tmp_path / f"{more}.json", size + more)


def test_a_write_that_fails_though_it_was_made(build, tmp_path):
    """As over a network. Neither does the next one go well, so that the trailer of before stays: what has come behind it goes all the same."""
    killed(build, tmp_path / "t.json", 500000, "unsure")
    trace = Trace(tmp_path / "t.json")
    assert 0 < len(trace.host("cuLaunchKernel")) < 40000 and trace.verdict != "ok"


def full_disk(build, path, limit):
    trace, said = limited(build, path, 40000, limit)
    assert said == f"custream: error: cannot write on to the trace {path}: File too large; it ends here\n"
    shown, causes = agrees(trace, 40000)
    assert shown < 40000 and causes == ["the trace could not be written any further"]
