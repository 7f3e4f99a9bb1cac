"""Formats of traces: what says which one a file has, which of them the command reads, and what is unknown of an older one."""
import gzip
import json
import re
import subprocess

import pytest

from tests import BUILD
from tests.handmade import GOOD, HEADER, check, custream, good_trailer, render
from tests.tracestory import Story

VERSION, NEWEST = "0.2.0", 2
UNKNOWN = "what had no room in a table (unknown in format 1)"
TOO_NEW = f"its format is {NEWEST + 1}, and custream {VERSION} reads formats 1 to {NEWEST}: a newer custream reads it"

# Each command that reads traces, and how it is given one. OUT: a file that it may write.
READERS = {"check": ["check", "TRACE"], "report": ["report", "TRACE"], "diff": ["diff", "TRACE", "OTHER"], "merge": ["merge", "-o", "OUT", "TRACE"],
           "convert": ["convert", "TRACE", "OUT"], "export": ["export", "--batches", "TRACE"], "recover": ["recover", "-o", "OUT", "TRACE"],
           "open": ["open", "--print-url", "TRACE"]}
OTHERS = {"run", "fleet", "inspect", "ps", "record", "trigger", "dump", "hang", "ctl", "options", "help", "explain", "version"}  # `fleet`: of tables; live ones read by `merge`


def good(launches=3):
    """A trace of which nothing is missing."""
    story = Story()
    story.stream(13)
    for n in range(launches):
        story.kernel(13, 10 * n, 10 * n + 3, 5)
    return story.text()


def run(command, path, folder):
    """The command with this trace; what it may write has the same form."""
    other, out = folder / "other.json", folder / f"out.{path.name.split('.', 1)[1].removeprefix('indented.')}"
    other.write_text(good(2))
    words = [{"TRACE": path, "OUT": out, "OTHER": other}.get(word, word) for word in READERS[command]]
    return subprocess.run([BUILD / "custream", *map(str, words)], capture_output=True, timeout=60, check=False), out


def as_format(text, number):
    assert text.count('"schemaVersion":') == 1
    return re.sub(r'"schemaVersion":\d+', f'"schemaVersion":{number}', text)


@pytest.fixture(name="of_format", params=["json", "json.gz", "pftrace", "pftrace.gz", "indented.json"])
def _of_format(tmp_path, request):
    """A file of that number, in each form."""
    def make(number):
        text = as_format(good(), number)
        path = tmp_path / f"t{number}.{request.param}"
        if request.param == "indented.json":
            path.write_text(json.dumps(json.loads(text), indent=1))
        elif request.param.startswith("json"):
            path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
        else:
            (source := tmp_path / "source.json").write_text(as_format(text, NEWEST))
            assert custream("convert", source, made := tmp_path / "made.pftrace").returncode == 0
            data = made.read_bytes().replace(b'"schemaVersion":%d' % NEWEST, b'"schemaVersion":%d' % number)
            path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
        return path
    return make


def test_each_command_is_here():
    listed = set(re.findall(r"^  (\w+) ", custream("help").stdout, flags=re.M))
    assert listed == set(READERS) | OTHERS


@pytest.mark.parametrize("command", READERS)
def test_a_trace_that_is_too_new(tmp_path, of_format, command):
    path = of_format(NEWEST + 1)
    done, out = run(command, path, tmp_path)
    assert done.returncode == 2 and done.stderr.decode() == f"custream {command}: {path}: {TOO_NEW}\n" and not out.exists()


@pytest.mark.parametrize("number", [1, NEWEST])
@pytest.mark.parametrize("command", [name for name in READERS if name != "open"])  # it would wait for a browser
def test_traces_that_are_read(tmp_path, of_format, command, number):
    done, out = run(command, of_format(number), tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    if command in ("merge", "convert", "recover"):
        text = out.read_bytes()
        assert re.search(rb'"schemaVersion": ?%d,' % number, gzip.decompress(text) if out.suffix == ".gz" else text)


def test_a_number_of_another_tool(tmp_path):
    """Kineto's traces have a number of that name too, and it means nothing here."""
    rows = [row for row in json.loads(good())["traceEvents"] if row["ph"] == "X"]
    (path := tmp_path / "t.json").write_text(json.dumps({"schemaVersion": 7, "traceEvents": rows}))
    assert custream("report", path).returncode == 0


def test_what_is_unknown_is_not_0(tmp_path):
    for number, said in ((1, True), (NEWEST, False)):
        (path := tmp_path / "t.json").write_text(as_format(good(), number))
        whole = json.loads(custream("report", "--json", path).stdout)["tables"]["run"][0]["whole"]
        assert whole == (UNKNOWN if said else "yes")
        assert custream("check", path).stdout.endswith("lost records 0" + (f", {UNKNOWN}" if said else "") + "\n")


def test_a_sum_that_only_format_2_has(tmp_path):
    """It may be absent in format 1, and is neither asked for nor made up there."""
    header = HEADER[:1] + ['"part":1,'] + HEADER[1:]
    totals = {"part": 1, "recorded_in_all_parts": 3, "calls_in_all_parts": 1, "lost_in_all_parts": 7, "gpu_work_without_times_in_all_parts": 0}
    text = render(GOOD, header=header, trailer=good_trailer(totals))
    result, _ = check(tmp_path, as_format(text, 1))
    assert result.returncode == 0, result.stdout
    result, _ = check(tmp_path, text)
    assert result.returncode == 1 and "gpu_work_without_call_in_all_parts is -1" in result.stdout
    for number in (1, NEWEST):
        torn, out = tmp_path / "torn.json", tmp_path / f"out{number}.json"
        torn.write_text(as_format(text, number).rsplit('],"traceName"', 1)[0].rstrip())
        done = custream("recover", "-o", out, torn)
        assert done.returncode == 0, done.stderr
        assert ("gpu_work_without_call_in_all_parts" in json.loads(out.read_text())["totals"]) == (number == NEWEST)


def test_a_merged_trace_says_no_more_than_its_files(tmp_path):
    for name, number in (("a", 1), ("b", NEWEST)):
        (tmp_path / name).write_text(as_format(good(), number).replace("1760000000000000000", f"176000000000000000{number}"))
    assert custream("merge", "-o", tmp_path / "m.json", tmp_path / "a", tmp_path / "b").returncode == 0
    assert json.loads((tmp_path / "m.json").read_text())["schemaVersion"] == 1
    assert custream("check", tmp_path / "m.json").stdout.endswith(f", {UNKNOWN}\n")


@pytest.mark.parametrize("ending", ["json", "pftrace"])
def test_what_the_library_writes(run_app, tmp_path, ending):
    """The number, in front of all else. A trace of any format at that path is an earlier trace."""
    path = tmp_path / f"t.{ending}"
    for number in (1, NEWEST, 9):
        head = run_app(["demo"], trace=path).check().trace.read_bytes()
        assert b'{"schemaVersion":%d,"displayTimeUnit":"ns","baseTimeNanoseconds":' % NEWEST in head[:200]
        path.write_bytes(head.replace(b'"schemaVersion":%d' % NEWEST, b'"schemaVersion":%d' % number, 1))
    run_app(["demo"], trace=path).check()


def test_the_version_is_one(root):
    assert (root / "VERSION").read_text() == f"{VERSION}\n" and custream("version").stdout.startswith(f"custream {VERSION}")
    assert f"## {VERSION}" in (root / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["demo", "known", "jax-train", "cupy-filter"])
def test_sample_traces_are_of_format_1(root, name):
    done = custream("check", root / f"traces/{name}-h200.json.gz")
    assert done.returncode == 0 and ": ok: " in done.stdout and done.stdout.endswith(f", {UNKNOWN}\n")
