"""`custream diff`: what it says of two runs that differ in one thing, and that it says nothing of runs that do not."""
import csv
import io
import json
import re
import subprocess

import pytest

from tests.handmade import COMMAND, custream
from tests.tracestory import MAIN, Story

BASE = "1760000000000000000"
STEPS = 10
LISTS = ("changed", "follows", "perhaps", "findings")


def story(kernel=100, kernels=1, copy=50, pause=20, waits=0, stream=13, more=None):
    """Steps of kernels and a copy on one stream, with a pause of the host behind each, or a wait for nothing before it. Microseconds."""
    told, at = Story(), 10
    told.stream(stream)
    for _ in range(STEPS):
        end = at + 10
        for _ in range(kernels):
            end = told.kernel(stream, at, end, kernel, name="work")
            at += 3
        end = told.copy(stream, at, end, copy)
        end = told.kernel(stream, at + 3, end, 30, name="other")
        at = told.call("cuStreamSynchronize", at + 6, end + 2 - (at + 6), **{"cs.stream": stream})
        if waits:
            at = told.call("cuCtxSynchronize", at, waits)
        at += pause
    if more:
        more(told, at)
    return told


@pytest.fixture
def write(tmp_path):
    """write(story, run=1) is the file of a run; files of one number are parts of one run."""
    def to(told, run=1, name=None, part=0):
        path = tmp_path / (name or f"{len(list(tmp_path.iterdir()))}.json")
        text = told if isinstance(told, str) else told.text()
        text = text.replace('"schemaVersion":2,', f'"schemaVersion":2,"part":{part},') if part else text
        path.write_text(text.replace(BASE, str(int(BASE) + run)), encoding="utf-8")
        return path
    return to


def diff(before, after, *options):
    """The tables, by key, and the exit status's complaints are none. Each side is a path or a list of them."""
    listed = [side if isinstance(side, list) else [side] for side in (before, after)]
    done = custream("diff", "--json", *options, *listed[0], "--after", *listed[1])
    assert (done.returncode, done.stderr) == (0, ""), (done.returncode, done.stderr)
    return json.loads(done.stdout)["tables"]


def fails(told, at):
    told.call("cuStreamBeginCapture_v2", at, **{"cs.stream": 13, "cs.result": "CUDA_ERROR_ILLEGAL_STATE"})


def names(rows):
    return [(row["what"], row["name"]) for row in rows]


def only(rows):
    (row,) = rows
    return row


# --- what is different ---

def test_equal_runs(write):
    tables = diff(write(story()), write(story(), run=2))
    assert [tables[key] for key in LISTS] == [[], [], [], []]
    assert "\nNothing changed.\n" in custream("diff", write(story()), write(story(), run=2)).stdout


def test_longer_kernel(write):
    tables = diff(write(story()), write(story(kernel=150)))
    row = only(tables["changed"])
    assert (row["what"], row["name"], row["device"], row["state"]) == ("kernel", "work", 0, "")
    assert (row["before_ns"], row["after_ns"], row["change_ns"], row["change"]) == (1000000, 1500000, 500000, 0.5)
    assert (row["before_times"], row["after_times"], row["before_mean_ns"], row["after_mean_ns"]) == (STEPS, STEPS, 100000, 150000)
    assert names(tables["follows"]) == [("stream", "stream 13")]
    assert {what for what, _ in names(tables["perhaps"])} == {"wait", "call"} and tables["findings"] == []


def test_kernel_that_runs_more_often(write):
    row = only(diff(write(story()), write(story(kernels=2)))["changed"])
    assert (row["name"], row["change_ns"], row["before_times"], row["after_times"]) == ("work", 1000000, STEPS, 2 * STEPS)
    assert row["before_mean_ns"] == row["after_mean_ns"]


def test_faster_copy(write):
    row = only(diff(write(story()), write(story(copy=20)))["changed"])
    assert (row["what"], row["name"], row["change_ns"]) == ("copy", "HtoD, Pinned -> Device", -300000)


def test_new_and_gone_kernel(write):
    def another(told, at):
        told.kernel(13, at, at + 5, 700, name="another")
    before, after = write(story()), write(story(more=another))
    assert (only(diff(before, after)["changed"])["state"], only(diff(after, before)["changed"])["state"]) == ("new", "gone")
    row = only(diff(before, after)["changed"])
    assert (row["name"], row["change"], row["before_mean_ns"]) == ("another", None, None)


@pytest.mark.parametrize("parts, did", [({"pause": 90}, "own code"), ({"waits": 70}, "blocked, cuCtxSynchronize")])
def test_idle_time_and_what_the_host_did(write, parts, did):
    """One run a side cannot tell this from chance; four can."""
    tables = diff(write(story()), write(story(**parts)))
    assert tables["changed"] == [] and (tables["perhaps"][0]["what"], tables["perhaps"][0]["name"]) == ("idle", "the host had not enqueued it")
    tables = diff([write(story(), run=run) for run in range(4)], [write(story(**parts), run=run) for run in range(4)])
    row = only(tables["changed"])
    assert (row["what"], row["name"], row["change_ns"]) == ("idle", "the host had not enqueued it", 70000 * (STEPS - 1))
    assert row["mostly"].startswith(f"main, {did} (+") and tables["perhaps"] == []


def test_most_expensive_first(write):
    rows = diff(write(story()), write(story(kernel=150, copy=130)))["changed"]
    assert names(rows) == [("copy", "HtoD, Pinned -> Device"), ("kernel", "work")]


def test_little_is_no_change(write):
    """Less than 1 % of the span, or of one run less than 5 % of the row."""
    span = diff(write(story(copy=5)), write(story(copy=5)))["devices"][0]["before_span_ns"]
    little, more = (share * span / STEPS / 1000 for share in (0.009, 0.012))
    assert diff(write(story(copy=5)), write(story(copy=5 + little)))["changed"] == []
    assert names(diff(write(story(copy=5)), write(story(copy=5 + more)))["changed"]) == [("copy", "HtoD, Pinned -> Device")]
    assert diff(write(story(kernel=1000)), write(story(kernel=1048)))["changed"] == []
    assert names(diff(write(story(kernel=1000)), write(story(kernel=1060)))["changed"]) == [("kernel", "work")]


def test_span_is_busy_and_idle(write):
    device = only(diff(write(story()), write(story(kernel=150, pause=77.123)))["devices"])
    for side in ("before_{}_ns", "after_{}_ns", "{}_change_ns"):
        assert device[side.format("span")] == device[side.format("busy")] + device[side.format("idle")]
    text = " ".join(custream("diff", write(story()), write(story(kernel=150, pause=77.123))).stdout.split())
    numbers = [float(number) for number in re.search(r"GPU 0 .*?: (.*)\.", text[:text.index("What changed")])[1]
               .replace("-> ", "").replace("(", "").replace(")", "").replace(",", "").replace(";", "").split() if re.fullmatch(r"[+-]?\d+\.\d{3}", number)]
    span, busy, idle = numbers[0:3], numbers[3:6], numbers[6:9]
    assert len(numbers) == 9 and all(round(b + i, 3) == s for s, b, i in zip(span, busy, idle))


def test_findings_that_are_new_or_gone(write):
    plain, failing = write(story()), write(story(more=fails))
    assert only(diff(plain, failing)["findings"])["state"] == "new"
    gone = only(diff(failing, plain)["findings"])
    assert (gone["id"], gone["state"], gone["page"]) == ("CS115", "gone", "docs/findings.md#cs115")


# --- what is compared with what ---

def test_numbers_of_threads_and_streams(write):
    text = story(waits=70).text().replace(f'"tid":{MAIN}', '"tid":5555').replace(f'"thread":{MAIN}', '"thread":5555').replace('"pid":4242', '"pid":4343')
    other = text.replace('"tid":13', '"tid":19').replace('"cs.stream":13', '"cs.stream":19').replace('"stream":13', '"stream":19').replace("stream 13", "stream 19")
    tables = diff(write(story(waits=70)), write(other))
    assert other != text and [tables[key] for key in LISTS] == [[], [], [], []]


def test_streams_of_one_name_by_their_first_use(write):
    def two(first, second, lasted):
        told = Story()
        told.stream(min(first, second))
        told.stream(max(first, second))
        end = told.kernel(first, 10, 20, 500)
        told.kernel(second, 15, end, lasted)
        return told
    row = only(diff(write(two(13, 14, 100)), write(two(24, 21, 300)))["follows"])
    assert (row["what"], row["name"], row["before_ns"], row["after_ns"]) == ("stream", "stream 21", 100000, 300000)


def test_parts_are_one_run(write):
    """Wherever they stand among the files of their side."""
    first, other = story(), story()
    runs = diff([write(first, 1, part=1), write(other, 2), write(first, 1, part=2)], [write(first, 3)])["runs"]
    assert [(run["side"], run["run"], run["files"]) for run in runs] == [("before", 1, 2), ("before", 2, 1), ("after", 1, 1)]


# --- several runs ---

def of(write, kernels, **parts):
    return [write(story(kernel=kernel, **parts), run=i + 1) for i, kernel in enumerate(kernels)]


def test_several_runs_give_a_small_change(write):
    row = only(diff(of(write, [1000, 1001, 1002, 1003]), of(write, [1021, 1022, 1023, 1024]))["changed"])
    assert (row["before_ns"], row["before_lowest_ns"], row["before_highest_ns"]) == (10010000, 10000000, 10030000)
    assert (row["after_ns"], row["after_lowest_ns"], row["after_highest_ns"]) == (10220000, 10210000, 10240000)


@pytest.mark.parametrize("before, after", [
    ([1000, 1100, 1200, 1300], [1250, 1350, 1450, 1550]),  # they overlap
    ([1000, 1100, 1200, 1300], [1400, 1450, 1500, 1550]),  # apart by less than runs of a side differ
])
def test_runs_that_differ_as_much_as_the_sides(write, before, after):
    tables = diff(of(write, before), of(write, after))
    assert [row for row in tables["changed"] if row["what"] == "kernel"] == [] and tables["perhaps"] == []


def test_slow_runs_among_others(write):
    """Of six, one on the faster side, and all beyond the middle one on the slower."""
    row = only(diff(of(write, [1000, 1001, 1002, 1003, 1004, 5000]), of(write, [1100, 1101, 1102, 9000, 9000, 9000]))["changed"])
    assert (row["before_ns"], row["after_ns"], row["before_highest_ns"]) == (10020000, 11020000, 50000000)


# --- the command ---

@pytest.mark.parametrize("condition, reason", [
    ("gpu_busy_ns > +5%", "gpu_busy_ns was 1.800 ms and is 2.300 ms (+27.8 %)"),
    ("gpu_span > +0.4ms", None),
    ("gpu_busy_ns > +499us", "gpu_busy_ns was 1.800 ms and is 2.300 ms (+500.0 us)"),
    ("kernels > 19", "kernels is 20"),
    ("kernels >= +0", "kernels was 20 and is 20 (0)"),
    ("gpu_idle > 0.0001", None),
    ("default_stream_work == 0", None),
    ("gpu_idle < -5%", None),
])
def test_condition_holds(write, condition, reason):
    done = custream("diff", "--fail-if", condition, write(story()), write(story(kernel=150)))
    assert done.returncode == 3 and done.stderr.startswith(f"custream diff: --fail-if='{condition}' holds: {reason or ''}"), done.stderr


@pytest.mark.parametrize("condition", ["gpu_busy_ns > +50%", "gpu_busy_ns > +501us", "kernels > +0", "wall < -1%", "finding CS115", "gpu_busy < 1ms"])
def test_condition_does_not_hold(write, condition):
    done = custream("diff", "--fail-if", condition, write(story()), write(story(kernel=150)))
    assert (done.returncode, done.stderr) == (0, "")


def test_what_was_not_measured_is_not_compared(write):
    """GPU times were off in one of the runs: its kernels are not gone."""
    measured = story()
    calls = [row for row in story().rows if row.get("cat") == "cuda_driver"]
    measured_not = story()
    measured_not.rows = calls
    off = write(measured_not.text().replace('"gpu_time_source":"cupti"', '"gpu_time_source":"none"').replace('"source":"cupti"', '"source":"none"'))
    for sides in ((write(measured), off), (off, write(measured))):
        tables = diff(*sides)
        assert not any(tables[key] for key in ("devices", "changed", "follows", "findings"))
        done = custream("diff", "--fail-if", "kernels > +0", *sides)
        assert done.returncode == 3 and "kernels is not known of the runs" in done.stderr
        said = " ".join(done.stdout.split())
        assert "GPU work is not compared" in said and "all GPU work, since no GPU times were taken" in said


def test_a_change_of_a_count_has_its_sign(write):
    done = custream("diff", "--fail-if", "kernels > +1", write(story()), write(story(kernels=2)))
    assert done.returncode == 3 and done.stderr.rstrip().endswith(f"({STEPS:+})")


def test_a_side_can_be_a_pipe(write, tmp_path):
    """As `custream diff <(zcat a.json.gz) b.json`. Of several files on a side all must be regular ones."""
    first, second = write(story()), write(story(kernel=150), 2)
    command = f'{COMMAND} diff --json <(cat {first}) <(cat {second})'
    piped = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(piped.stdout)["tables"] == diff(first, second)
    done = subprocess.run(["bash", "-c", f"{COMMAND} diff {first} <(cat {second}) --after {second}"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and "no regular file" in done.stderr and done.stderr.count("\n") == 1


def test_condition_on_a_new_finding(write):
    plain, failing = write(story()), write(story(more=fails))
    assert [custream("diff", "--fail-if", "finding CS115", a, b).returncode for a, b in ((plain, failing), (failing, plain), (failing, failing))] == [3, 0, 0]


@pytest.mark.parametrize("args, said", [
    ([], "which files? 'custream help diff' says more"),
    (["a.json"], "one file, where two are compared"),
    (["a.json", "b.json", "c.json"], "3 files, where two are compared: --after stands in front of those of the second side"),
    (["--after", "a.json"], "no file in front of --after: it stands between the files of the two sides"),
    (["a.json", "--after"], "no file behind --after: it stands between the files of the two sides"),
    (["a.json", "none.json"], "none.json: No such file or directory"),
    (["--fail-if", "wall > +5", "a.json", "a.json"], "--fail-if='wall > +5': a change of 'wall_ns' is a number with a unit, as in +5% or +10ms (ns, us, ms, s)"),
    (["--fail-if", "kernels > +5ms", "a.json", "a.json"], "--fail-if='kernels > +5ms': a change of 'kernels' is a number with a unit, as in +5% or +100"),
    (["--json=a.json", "a.json", "a.json"], "a.json: is the trace itself; a report needs a file of its own"),
    (["--html=x", "a.json", "a.json"], "there is no option \"--html\"; 'custream help diff' lists them"),
])
def test_wrong_use(write, tmp_path, args, said):
    write(story(), name="a.json")
    done = custream("diff", *args, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"custream diff: {said}\n")


def test_text(write):
    def run(number, **parts):
        return write(story(**parts), run=number)
    text = custream("diff", run(1), run(2, kernel=150)).stdout
    assert text.startswith("After took 2.600 ms, Before 2.100 ms: 1.24 times as long.\nBefore: app (process 4242).\nAfter: app (process 4242).\nGPU 0 (GPU): ")
    assert re.search(r"\nWhat changed\n\n.*\nkernel  work  \+500\.0 us  1\.000 ms  1\.500 ms +10 +10  100\.0 us  150\.0 us\n\nWhat follows", text, re.S), text
    several = custream("diff", *[run(i) for i in range(4)], "--after", *[run(i, kernel=150) for i in range(4)]).stdout
    assert several.startswith("After took 2.600 ms, Before 2.100 ms: 1.24 times as long.\nBefore: 4 runs of app; times are those of the middle one.\n")
    assert re.search(r"\nkernel  work  \+500\.0 us  (1\.000 ms +){3}1\.500 ms +1\.500 ms +1\.500 ms\n", several), several


def test_truncated_and_partial(write):
    whole = story().text()
    done = custream("diff", write(whole), write(whole[:whole.rindex('{"ph":')]))
    assert done.returncode == 0 and done.stderr.count("truncated, as when") == 1 and "Missing from the trace of run 1 after: the file ends inside an event" in done.stdout


def test_csv_json_and_page_agree(root, write):
    before, after = write(story()), write(story(kernel=150))
    tables = diff(before, after)
    columns = {}
    for line in csv.reader(io.StringIO(custream("diff", "--csv", before, after).stdout)):
        if line[0] == "table":
            header = line[1:]
        else:
            columns[line[0]] = header
    assert columns == {key: list(rows[0]) for key, rows in tables.items() if rows}
    page = (root / "docs/diff.md").read_text(encoding="utf-8")
    row = re.compile(r"^\| (?:\*\*)?`([^`]+)`(?:\*\*)? \|", flags=re.M)
    documented = {key: row.findall(text) for key, text in re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", page, flags=re.M | re.S)}
    assert list(documented) == list(tables)
    for key, found in columns.items():
        assert documented[key if documented[key] else "changed"] == found
    options = set(re.findall(r"^  (--[\w-]+)", custream("help", "diff").stdout, flags=re.M))
    assert options == {re.match(r"--[\w-]+", name)[0] for name in row.findall(page) if name.startswith("--")}


# --- programs ---

PAIRS, RUNS = 20, 12
COPY_NS = 300_000
# What is planted in tests/apps/paces, how many runs a side it takes, and what must be named first. One does for GPU work, whose times are the simulated GPU's own.
# A rest is the machine's time: {} is longer than all that the GPU is idle in any run without it, however busy the machine is.
PLANTED = {
    "kernel": (["kernel=3000"], 1, ("kernel", "sleep_first")),
    "kernels": (["kernels=3"], 1, ("kernel", "sleep_first")),
    "copies": (["copies=10"], 1, ("copy", "HtoD, Pinned -> Device")),
    "pause": (["pause={}"], RUNS, ("idle", "the host had not enqueued it")),
    "wait": (["blocked={}"], RUNS, ("idle", "the host had not enqueued it")),
    "hold": (["hold={}"], RUNS, ("idle", "a host function before it on its stream")),
}


@pytest.fixture
def paces(run_app):
    """The trace of a run."""
    return lambda *parts: run_app(["paces", *parts], env={"CUSTREAM_FAKE_COPY_NS": COPY_NS}).check().trace


def idle_us(trace):
    """How long the GPU has nothing to do between the first and the last of its work."""
    works = sorted((row["ts"], row["ts"] + row["dur"]) for row in json.loads(trace.read_text(encoding="utf-8"))["traceEvents"] if row.get("cat") in ("kernel", "gpu_memcpy"))
    idle, over = 0, works[0][0]
    for begin, end in works:
        idle, over = idle + max(0, begin - over), max(over, end)
    return idle


def planted_runs(paces, parts, length):
    """Pairs of runs by turns. A rest comes twice in a run, at least: so the runs that have it lie further above all others than those differ."""
    rest_us = 13000
    while True:
        runs = [(paces(), paces(*(part.format(rest_us) for part in parts))) for _ in range(PAIRS + length - 1)]
        most = max(idle_us(before) for before, _ in runs)
        if length == 1 or rest_us > most:
            return runs
        rest_us = round(2 * most)


def windows(runs, length):
    """PAIRS times as many runs that follow each other."""
    return [runs[i:i + length] for i in range(PAIRS)]


@pytest.mark.parametrize("name", PLANTED)
def test_planted_change_is_named_first(paces, name):
    parts, length, first = PLANTED[name]
    for pairs in windows(planted_runs(paces, parts, length), length):
        tables = diff([before for before, _ in pairs], [after for _, after in pairs])
        assert names(tables["changed"])[:1] == [first], (tables["changed"], tables["perhaps"])


@pytest.mark.parametrize("length", [1, RUNS])
def test_nothing_is_found_in_equal_runs(paces, length):
    runs = [(paces(), paces()) for _ in range(PAIRS + length - 1)]
    for pairs in windows(runs, length):
        tables = diff([before for before, _ in pairs], [after for _, after in pairs])
        assert [tables[key] for key in ("changed", "follows", "findings")] == [[], [], []]
