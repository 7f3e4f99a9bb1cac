"""How `custream report` takes its orders and prints: text, JSON, CSV, and conditions. What tables say is the business of other cases."""
import csv
import fcntl
import gzip
import io
import os
import pty
import re
import struct
import subprocess
import termios
import unicodedata

import pytest

from tests import BUILD
from tests.handmade import COMMAND, GOOD, HEADER, custream, launches, render
from tests.trace import parse

SAMPLE = "known-h200.json.gz"  # three pieces of work on the default stream


@pytest.fixture(scope="module")
def sample(request):
    return request.config.rootpath.parent / "traces" / SAMPLE


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(render(GOOD))
    return path


@pytest.fixture
def printed(build):
    """A report made by hand, with values that are hard to print: printed("text", 80) is what the printer made of it."""
    def run(form, columns=100, *more):
        done = subprocess.run([build / "tests/unit/asan/tool_report", form, str(columns), *more], capture_output=True, check=True, timeout=60)
        return done.stdout.decode("utf-8")
    return run


def columns_of(line):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


# --- text ---

TEXT = '''app (process 4242) ran for 12.35 ms; its steady part took 9.877 ms: 12 steps of about 823.0 us.
In that time GPU 0 computed for 50.6 % (5.000 ms), only copied or set memory for 10.1 % (1.000 ms)
and did nothing for 39.2 % (3.877 ms).
What costs most: Work on the default stream holds other streams back (stream 7 (default)). Mending
that wins 1.205 ms to 3.205 ms, up to 26.0 % of the run, 267.0 us of each step.
Missing from the trace: the file is truncated.

What to change, the most expensive first
Gains do not add up.

CS101  Work on the default stream holds other streams back
       Gains: 1.205 ms to 3.205 ms, up to 26.0 % of the run, 267.0 us of each step (12 times)
       Where: stream 7 (default)
       Seen: The kernel "k" on stream 13 was ready and waited for Memcpy HtoD on the legacy default
       stream, which nothing else asked for.
       To do: Name a stream in the copy, or run with CUSTREAM_DEFAULT_STREAM=per-thread.
       More: custream explain CS101

and 1 more: --csv has all

Where to look next
  custream explain CS101  # what that is, and how to mend it
  custream report --critical-path t.json  # what the run's time went to
  custream report --what-if='no legacy' t.json  # what a change gains
  custream open t.json  # the timeline, in a browser

The run
214 calls on 1 thread, 203 pieces of GPU work on 3 streams (1 more without work); GPU times from
cupti.
GPU 0 (NVIDIA H200) had work for 61.2 % of 10.00 ms, on 1.37 streams at once.
GPU 1 did no work.

Idle

GPU  why                             share
  0  the host had not enqueued it   80.0 %
  1  another GPU                   100.0 %
  0  a wait for an event             6.0 %
  0  too little to say               4.0 %

Idle host

GPU  thread       it was     call               share
  0  main 4250    own code                     20.0 %
  0  main 4250    blocked    cuCtxSynchronize  20.0 %
  0  loader 4251  in a call  cuMemAlloc_v2     20.0 %
  0  x            y                            20.0 %

Kernels
The time of a kernel is from its begin to its end on the GPU.

kernel                                               times     total    fills    bytes          rate
void at::native::vector…array<char*, 1ul>>(int)  1,234,567  1.000 ms  100.0 %  4.0 KiB  3350.50 GB/s
q"uote, and 中文                                      1.50    999 ns   <0.1 %   1023 B     0.00 GB/s
bad \ufffd\ufffd[31m\ufffd\ufffdUTF-8                                        0   150.0 s    0.0 %  1.5 KiB             -
                                                         -         -        -        -             -
and 1 more: --csv has all
'''


def test_text(printed):
    assert printed("text") == TEXT


@pytest.mark.parametrize("columns", [72, 80, 100, 150, 250])
def test_text_fits(printed, columns):
    text = printed("text", columns)
    assert max(columns_of(line) for line in text.splitlines()) <= columns
    assert "1,234,567" in text and "3350.50 GB/s" in text  # numbers are whole in any width
    assert ("…" in text) == (columns < 170)
    assert not re.search(r" $", text, flags=re.M)


def test_text_in_colour(printed):
    colored = printed("text", 100, "color")
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == TEXT
    assert "\x1b[1;33mCS101\x1b[0m" in colored and colored.count("\x1b[0m") == len(re.findall(r"\x1b\[[1-9]", colored))
    assert "\x1b" not in printed("text")


def test_titles_take_more_lines_where_there_is_little_room(printed):
    assert printed("text", 60, "run") == (
        "\nThe run\n\n"
        "                  GPU                      GPU\n"
        "program  process  times   ran for  calls  work  threads  streams  unused  whole\n"
        "app        4,242  cupti  12.35 ms    214   203        1        3       1  the …ted\n")


def test_text_of_sections(printed):
    text = printed("text", 200, "devices", "run")
    assert text.index("Devices") < text.index("The run") and "Kernels" not in text and "CS101" not in text


def test_first_lines_of_a_trace(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(launches(6))
    assert custream("report", path, env={"COLUMNS": "80"}).stdout.startswith('''\
app (process 4242) ran for 17.00 us; its GPU work, from its first call on, took
17.00 us.
In that time GPU 0 computed for 35.3 % (6.000 us) and did nothing for 64.7 %
(11.00 us).
What costs most: the GPU waits for the host (GPU 0). Mending that wins 11.12 us
to 12.50 us, up to 73.5 % of the run.

What to change
A gain is how much shorter the run is when it is played again with the change.
Gains do not add up: two findings may gain the same time.

CS124  the GPU waits for the host
''')


def test_without_gpu_times_few_rules_can_judge(run_app, tmp_path):
    """Those are named. So "nothing found" is no praise of the program."""
    path = run_app(["demo"], env={"CUSTREAM_GPU": "off"}).check().trace  # it is about that
    said = "Without GPU times only CS113 and CS115 could be judged, and CS108 and CS110 in part: they found nothing to change. The tables say the rest."
    text = custream("report", path).stdout
    assert said in text.replace("\n", " ") and "No rule found" not in text
    custream("report", "--html", tmp_path / "r.html", path)
    assert f"<h2>{said}</h2>" in (tmp_path / "r.html").read_text(encoding="utf-8")
    works = run_app(["demo"]).check().trace
    assert "Without GPU times" not in custream("report", works).stdout


def on_terminal(args, columns, **env):
    """What the command prints on a terminal of that width: standard output and standard error together."""
    leader, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    child = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")} | {"TERM": "xterm", **env}
    process = subprocess.Popen([COMMAND, *map(str, args)], stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal, env=child)
    os.close(terminal)
    data = b""
    try:
        while chunk := os.read(leader, 65536):
            data += chunk
    except OSError:
        pass  # what reading gives once nobody has the terminal open
    os.close(leader)
    assert process.wait(timeout=60) == 0, data
    return data.decode().replace("\r\n", "\n")


def test_terminal(sample):
    order = ["report", sample]
    told = on_terminal(order, 70)
    assert "\rreading " in told and told.index("100 %") < told.index("\r\x1b[K")
    report = told.split("\r\x1b[K")[1]
    assert "\x1b[1m" in report
    plain = re.sub(r"\x1b\[[0-9;]*m", "", report)
    assert 100 > max(map(columns_of, plain.splitlines())) >= 70  # as wide as the terminal, where a table fits
    for args, env in ((["--no-color"], {}), ([], {"NO_COLOR": "1"}), ([], {"TERM": "dumb"})):
        assert on_terminal([*order, *args], 70, **env).split("\r\x1b[K")[1] == plain
    assert on_terminal(order, 70, NO_COLOR="").split("\r\x1b[K")[1] == report


def test_text_elsewhere(sample):
    """No terminal: neither colours nor progress, and the width is told by COLUMNS."""
    done = custream("report", sample, env={"COLUMNS": "70"})
    assert done.returncode == 0 and done.stderr == "" and "\x1b" not in done.stdout
    assert on_terminal(["report", "--no-color", sample], 70).split("\r\x1b[K")[1] == done.stdout
    assert custream("report", sample, env={"COLUMNS": "nonsense"}).stdout == custream("report", sample, env={"COLUMNS": "100"}).stdout


# --- JSON and CSV ---

def tables_of_csv(text):
    """The tables of CSV: key to (columns, rows). A table without rows has no key: such are under their columns."""
    tables, columns = {}, None
    for fields in csv.reader(io.StringIO(text, newline=""), strict=True):
        if fields[0] == "table":
            columns = tuple(fields[1:])
            tables[columns] = (columns, [])
            continue
        tables.pop(columns, None)
        assert len(fields) == len(columns) + 1
        tables.setdefault(fields[0], (columns, []))[1].append(fields[1:])
    return tables


def test_json_of_hard_values(printed):
    report = parse(printed("json").encode())
    assert (report["custream_report"], report["base_ns"]) == (1, 1760000000000000001)
    kernels = report["tables"]["kernels"]
    assert [row["name"] for row in kernels[1:4]] == ['q"uote, and 中文', "bad \ufffd\x1b[31m\r\nUTF-8", ""]
    assert kernels[0] == {"name": kernels[0]["name"], "times": 1234567, "total_ns": 999960, "fills": 1, "bytes": 4096, "rate": 3350.5, "nothing": None}
    assert kernels[2]["rate"] is None and kernels[3]["times"] is None and kernels[1]["times"] == 1.5
    assert len(kernels) == 5 and report["tables"]["empty"] == []


def test_csv_has_what_json_has(printed):
    text = printed("csv")
    assert all(line.endswith("\r\n") for line in text.replace("[31m\r\nUTF", "").splitlines(keepends=True))
    tables = tables_of_csv(text)
    for key, rows in parse(printed("json").encode())["tables"].items():
        if not rows:
            assert ("key",) in tables
            continue
        columns, fields = tables[key]
        assert columns == tuple(rows[0])
        for row, read in zip(rows, fields, strict=True):
            assert [("" if value is None else str(value)) for value in row.values()] == read


def test_json_of_a_trace(trace):
    done = custream("report", "--json", trace)
    report = parse(done.stdout.encode())
    assert (done.returncode, done.stderr) == (0, "")
    assert list(report) == ["custream_report", "tool", "files", "base_ns", "tables"]
    assert report["tool"].startswith("custream ") and report["files"] == [str(trace)] and report["base_ns"] == 1760000000000000000
    for rows in report["tables"].values():
        assert all(list(row) == list(rows[0]) for row in rows)
        assert all(value is None or isinstance(value, (int, float, str)) for row in rows for value in row.values())


def test_forms_go_where_they_are_told(trace, tmp_path):
    files = [tmp_path / name for name in ("r.json", "r.csv", "r.html")]
    done = custream("report", f"--json={files[0]}", f"--csv={files[1]}", f"--html={files[2]}", trace)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout == custream("report", trace).stdout
    assert files[0].read_text() == custream("report", "--json", trace).stdout
    assert files[1].read_bytes().decode() == subprocess.run([COMMAND, "report", "--csv", trace], capture_output=True, check=True).stdout.decode()
    assert files[2].read_text() == custream("report", "--html=-", trace).stdout
    done = custream("report", "--json", f"--csv={files[1]}", trace)
    assert parse(done.stdout.encode())


def test_files_are_whole_if_nobody_reads_the_text(sample, tmp_path):
    """As with `| head`."""
    path = tmp_path / "r.json"
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([COMMAND, "report", f"--json={path}", sample], stdout=writing, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(writing)
    assert done.returncode != 0 and parse(path.read_bytes())


# --- what is wrong ---

def refused(*args, words=()):
    """Exit status 2, nothing on standard output, and one line that has these words."""
    done = custream("report", *args)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.startswith("custream report: ") and done.stderr.count("\n") == 1, done.stderr
    for word in words:
        assert word in done.stderr, done.stderr


def test_usage(trace, tmp_path):
    refused(words=["which file?"])
    refused("--nonsense", trace, words=["nonsense"])
    refused("--html", words=["html"])
    refused("--json=", trace, words=["--json="])
    refused("--json", "--csv", trace, words=["--json", "--csv", "standard output"])
    refused(f"--json={tmp_path}/x", f"--csv={tmp_path}/x", trace, words=["/x"])
    refused(f"--json={trace}", trace, words=["the trace itself"])
    refused("--section=nonsense", trace, words=["nonsense", "metrics"])
    refused("--json", "--section=metrics", trace, words=["--section"])
    assert trace.read_text() == render(GOOD)
    for args in (["report", "--help"], ["help", "report"]):
        done = custream(*args)
        assert done.returncode == 0 and done.stdout.startswith("usage: custream report") and done.stderr == ""


def test_output_that_cannot_be_written(trace, tmp_path):
    for path in (tmp_path / "missing" / "r.json", tmp_path, "/dev/full"):
        done = custream("report", f"--json={path}", trace)
        assert done.returncode == 2 and f"{path}: cannot be written: " in done.stderr and done.stderr.count("\n") == 1
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([COMMAND, "report", "--json", trace], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert done.returncode == 2 and done.stderr.count("\n") == 1


NO_TRACES = {"empty": b"", "text": b"hello\n", "json": b'{"a": 1}\n', "binary": bytes(range(256)), "gzip": gzip.compress(b"hello")}


@pytest.mark.parametrize("name", NO_TRACES)
def test_no_trace(tmp_path, name):
    path = tmp_path / "no.json"
    path.write_bytes(NO_TRACES[name])
    refused(path, words=[f"{path}: "])


def test_file_that_is_not_there(trace, tmp_path):
    refused(trace, tmp_path / "missing.json", words=["missing.json: "])


def test_files_of_different_runs(trace, tmp_path):
    other = tmp_path / "other.json"
    other.write_text(render(GOOD, header=[line.replace("1760000000000000000", "1760000000000000001") for line in HEADER]))
    refused(trace, other, words=[str(other)])


def test_parts_of_one_run(trace, tmp_path):
    part = tmp_path / "t.1.json"
    part.write_text(launches(3).replace('"schemaVersion":2,', '"schemaVersion":2,"part":1,'))
    trace.write_text(launches(5).replace('"schemaVersion":2,', '"schemaVersion":2,"part":2,'))
    report = parse(custream("report", "--json", part, trace).stdout.encode())
    assert report["files"] == [str(part), str(trace)] and report["tables"]["kernels"][0]["times"] == 8


def test_truncated(tmp_path):
    """What was read is reported, and that it is not all."""
    path = tmp_path / "cut.json"
    text = render(GOOD)
    path.write_text(text[:text.index('"Memset (Device)"')])
    done = custream("report", "--json", path)
    assert done.returncode == 0 and done.stderr.count("\n") == 1 and f"{path}: truncated" in done.stderr
    assert parse(done.stdout.encode())["tables"]["metrics"]


# --- conditions ---

HOLDS = ["default_stream_work > 0", "default_stream_work>0", " default_stream_work  >=  3 ", "default_stream_work == 3", "default_stream_work != 4",
         "default_stream_work < 3.5", "default_stream_work <= 3"]
HOLDS_NOT = ["default_stream_work > 3", "default_stream_work != 3", "default_stream_work < 3", "finding CS116"]
UNREADABLE = {  # each with what the line must say
    "": "no metric ''", "nonsense > 1": "default_stream_work, calls(NAME), idle_host", "idle_nonsense > 20%": "idle_hardware_queue", "finding": "CS101", "finding 101": "CS101",
    "finding CS101 > 3": "CS101", "finding CS999": "CS101, CS102", "gpu_idle": ">=", "gpu_idle 20%": ">=", "gpu_idle =": ">=", "gpu_idle > ": "20%", "gpu_idle > x": "20%", "gpu_idle > 20": "20%",
    "gpu_idle > +5%": "sign", "gpu_idle > -5%": "sign", "gpu_idle > 5%%": "20%", "gpu_idle > 5 minutes": "5ms", "gpu_idle > nan": "20%", "wall_ns > 5": "5ms",
    "wall_ns > 5%": "5ms", "kernels > 5%": "a count", "kernels > 5ms": "a count", "default_stream_work_and_a_name_that_is_much_too_long > 1": "no metric",
}


@pytest.mark.parametrize("condition", HOLDS)
def test_condition_holds(sample, condition):
    done = custream("report", f"--fail-if={condition}", "--json", sample)
    assert done.returncode == 3 and parse(done.stdout.encode())
    assert done.stderr == f"custream report: --fail-if='{condition}' holds: default_stream_work is 3\n"


@pytest.mark.parametrize("condition", HOLDS_NOT)
def test_condition_does_not_hold(sample, condition):
    done = custream("report", f"--fail-if={condition}", "--section=metrics", sample)
    assert (done.returncode, done.stderr) == (0, "")


# Of six kernels of 1 us, each 2 us after the one before.
OF_LAUNCHES = {"gpu_idle > 60%": "62.5 %", "gpu_idle == 0.625": "62.5 %", "gpu_idle > 5us": "10.00 us", "gpu_busy < 0.007 ms": "6.000 us", "gpu_busy_ns == 6us": "6.000 us",
               "gpu_span_ns >= 16000 ns": "16.00 us", "wall_ns > 0.00001s": "17.00 us", "idle_host > 20%": "31.2 %", "kernels == 6": "6", "calls >= 6": "6"}
NOT_OF_LAUNCHES = ["gpu_idle > 5ms", "gpu_idle > 0.63", "lost > 0", "copies > 0", "default_stream_work > 0", "idle_legacy > 0%", "idle_unknown > 0 ns"]


def test_conditions_of_each_unit(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(launches(6))
    done = custream("report", *(f"--fail-if={condition}" for condition in [*OF_LAUNCHES, *NOT_OF_LAUNCHES]), "--json", path)
    assert done.returncode == 3
    assert done.stderr.splitlines() == [f"custream report: --fail-if='{condition}' holds: {condition.split()[0]} is {value}" for condition, value in OF_LAUNCHES.items()]


@pytest.mark.parametrize("condition", UNREADABLE)
def test_unreadable_condition(tmp_path, condition):
    """It is judged before any file is read."""
    refused(f"--fail-if={condition}", tmp_path / "missing.json", words=[f"--fail-if='{condition}': ", UNREADABLE[condition]])


def test_several_conditions(sample):
    done = custream("report", *(f"--fail-if={condition}" for condition in HOLDS[:2] + HOLDS_NOT), sample)
    assert done.returncode == 3 and done.stderr.count("\n") == 2


def test_what_is_not_known_is_not_good(tmp_path):
    """A trace without GPU work has no share of idle time."""
    path = tmp_path / "t.json"
    path.write_text(render({name: GOOD[name] for name in ("process", "thread", "launch")}))
    done = custream("report", "--fail-if=gpu_idle > 20%", "--section=metrics", path)
    assert done.returncode == 3 and done.stderr == "custream report: --fail-if='gpu_idle > 20%' holds: gpu_idle is not known of this run\n"


# --- docs/report.md ---

def documented(root):
    """Table to its columns, of the page: the first table of each section. And what stands in the first column of any of its tables."""
    page = (root / "docs/report.md").read_text()
    row = re.compile(r"^\| (?:\*\*)?`([^`]+)`(?:\*\*)? \|", flags=re.M)
    sections = re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", page, flags=re.M | re.S)
    return {key: row.findall(text[text.index("| --- |"):].split("\n\n")[0]) for key, text in sections}, set(row.findall(page))


def test_the_page_has_every_table_and_column(root, sample):
    tables, _ = documented(root)
    printed_tables = tables_of_csv(custream("report", "--csv", "--critical-path", "--what-if=graph", sample).stdout)
    for key, (columns, _) in printed_tables.items():
        assert list(columns) in ([tables[key]] if isinstance(key, str) else list(tables.values())), key
    plain = list(parse(custream("report", "--json", sample).stdout.encode())["tables"])
    assert list(tables) == [*plain, "critical_path", "what_if"]


def test_the_page_has_every_metric_cause_and_option(root, sample):
    _, first = documented(root)
    for row in parse(custream("report", "--json", sample).stdout.encode())["tables"]["metrics"]:
        assert row["key"] in first or row["key"].removeprefix("idle_") in first, row
    options = set(re.findall(r"^  (--[\w-]+)", custream("help", "report").stdout, flags=re.M))
    assert options and options == {re.match(r"--[\w-]+", name)[0] for name in first if name.startswith("--")}
    manual = (BUILD / "pages/custream.1").read_text()
    assert all(f"Fl -{option[2:]}" in manual for option in options)
