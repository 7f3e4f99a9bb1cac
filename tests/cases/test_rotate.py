"""CUSTREAM_TRACE_MAX=SIZE,rotate: a trace in parts. Each stands alone, nothing is lost between them, the disk stays bounded, and nobody else's file is touched."""
import collections
import gzip
import os
import re
import signal
import subprocess
import time

import pytest

from tests.apprun import calls_in, calls_of, notes_of, read, said
from tests.cases.conftest import app_environment
from tests.perfetto import assert_clean
from tests.trace import cut, tid_of

MIB = 1 << 20
BLOCK = {"CUSTREAM_FULL": "block", "CUSTREAM_GPU": "off"}  # parts are counted in calls of the host; with GPU times: test_parts_with_gpu_times


def numbered(path):
    """The ended parts at a path: number to file."""
    stem = path.name.split(".json")[0]
    found = {re.fullmatch(re.escape(stem) + r"\.(\d+)" + re.escape(path.name[len(stem):]), p.name): p for p in path.parent.iterdir()}
    return {int(match[1]): p for match, p in found.items() if match}


def parts_of(path):
    """The traces of all parts that are there, the newest, which is at the path, last; each is checked."""
    ended = numbered(path)
    traces = [read(ended[number]) for number in sorted(ended)] + [read(path)]
    assert [trace.json["part"] for trace in traces] == [*sorted(ended), traces[-1].json["part"]] == [trace.totals["part"] for trace in traces]
    return traces


def calls_of_parts(traces):
    return sum((calls_in(trace) for trace in traces), collections.Counter())


def rotated(run_app, how, count, size="1M,rotate:9999", **env):
    run = run_app(["parts", how, count], env=BLOCK | {"CUSTREAM_TRACE_MAX": size} | env).check()
    return run, parts_of(run.trace)


def whole(run, traces):
    """Every call of the program is in one of the parts, and what they say of themselves fits together."""
    assert calls_of_parts(traces) == calls_of(run.stdout)
    assert [trace.json["part"] for trace in traces] == list(range(1, len(traces) + 1))
    assert [trace.totals["continues"] for trace in traces] == [True] * (len(traces) - 1) + [False]
    assert all(trace.totals["complete"] and not trace.totals["lost_records"] and not trace.totals["parts_deleted"] for trace in traces)
    kernels = [len([e for e in trace.slices if e.get("cat") == "kernel"]) for trace in traces]
    assert [trace.totals["gpu"]["kernels"] for trace in traces if "gpu" in trace.totals] == (kernels if "gpu" in traces[0].totals else [])
    last = traces[-1].totals
    assert last["recorded_in_all_parts"] == sum(trace.totals["recorded"] for trace in traces) and last["lost_in_all_parts"] == 0
    assert len({trace.json["baseTimeNanoseconds"] for trace in traces}) == 1
    assert [("leaked_streams" in trace.totals) for trace in traces] == [False] * (len(traces) - 1) + [True]


# ---- What is in the parts ----

@pytest.fixture(scope="module")
def all_parts(build, tmp_path_factory):
    """A run of several parts, read once for the tests that look into it: (stdout, notes, traces)."""
    path = tmp_path_factory.mktemp("parts") / "trace.json"
    done = subprocess.run([build / "tests/parts", "all", "6000"], env=app_environment(build, path, True, BLOCK | {"CUSTREAM_TRACE_MAX": "1M,rotate:9999"}),
                          capture_output=True, text=True, check=True, timeout=60)
    assert not [line for line in done.stderr.splitlines() if line.startswith("custream:")]
    return done.stdout, notes_of(done.stderr), parts_of(path)


def test_nothing_is_lost_between_parts(run_app):
    run, traces = rotated(run_app, "all", 6000)
    assert len(traces) >= 6 and not said(run)
    whole(run, traces)
    sizes = [trace.size for trace in traces]
    assert max(sizes) <= MIB and min(sizes[:-1]) > MIB - 128 * 1024


def test_compressed_parts(run_app, tmp_path):
    path = tmp_path / "t.json.gz"
    run = run_app(["parts", "all", 60000], env=BLOCK | {"CUSTREAM_TRACE_MAX": "1M,rotate:9999", "CUSTREAM_TRACE": path}).check()
    traces = parts_of(path)
    assert len(traces) >= 4 and sorted(p.name for p in tmp_path.iterdir()) == sorted(["t.json.gz", *(f"t.{n}.json.gz" for n in range(1, len(traces)))])
    whole(run, traces)
    sizes = [p.stat().st_size for p in numbered(path).values()]
    assert max(sizes) <= MIB and min(sizes) > MIB // 2


def test_parts_with_gpu_times(run_app):
    """Work on the GPU comes later than its call, in the next part too; then its arrow is counted instead. Parts that much work fills end in time."""
    run, traces = rotated(run_app, "all", 5000, CUSTREAM_GPU="cupti", CUSTREAM_FAKE_KERNEL_NS=1000)
    assert len(traces) >= 5 and not said(run) and max(trace.size for trace in traces) <= MIB
    whole(run, traces)
    launched = calls_of(run.stdout)["cuLaunchKernel"]
    kernels = sum(len(trace.gpu(cat="kernel")) for trace in traces)
    assert traces[-1].metadata["gpu_time_source"] == "cupti" and kernels == launched
    arrows = sum(len(trace.flows("ac2g")) for trace in traces)
    between = sum(trace.totals["arrows_between_parts"] for trace in traces)
    assert launched - between <= arrows <= launched


def test_lanes_and_lives(all_parts):
    """A stream has its lane in each part from its first one on, and its life ends in one where it begins in the next."""
    _, notes, traces = all_parts
    for key in ("a", "b", "idle"):
        found = [[e for e in trace.lives if e["args"].get("handle") == notes[key] and e["args"]["origin"] == "created"] for trace in traces]
        (lane,) = {(e["pid"], e["tid"]) for e in found[-2]}
        lives = [e for trace in traces for e in trace.lives if (e["pid"], e["tid"]) == lane]
        there = [any((e["pid"], e["tid"]) == lane for e in trace.lives) for trace in traces]
        assert there == sorted(there) and sum(there) == len(lives) > 3, "in no part, then in each once"
        assert [e["args"].get("continued", False) for e in lives] == [False] + [True] * (len(lives) - 1)
        assert [e["args"].get("continues", False) for e in lives] == [True] * (len(lives) - 1) + [False] and lives[-1]["args"]["destroyed"] is True
        for before, after in zip(lives, lives[1:]):
            assert abs(before["ts"] + before["dur"] - after["ts"]) < 0.1, "but for the nanoseconds that marks of one moment stand apart"
    assert all(life["dur"] is not None for trace in traces for life in trace.lives)


def test_work_of_a_stream_adds_up(all_parts):
    stdout, notes, traces = all_parts
    (lane,) = {e["tid"] for trace in traces for e in trace.lives if e["args"].get("handle") == notes["a"] and e["args"].get("created by") == "cuStreamCreate"}
    lives = [e for trace in traces for e in trace.lives if e["tid"] == lane]
    assert sum(e["args"].get("event records", 0) for e in lives) == calls_of(stdout)["cuEventRecord"]
    assert len([e for e in lives if e["args"].get("event records")]) > 1


def test_names_are_in_every_part(all_parts):
    _, notes, traces = all_parts
    main = int(notes["main"])
    for trace in traces:
        assert {e["tid"] for e in trace.host()} <= set(trace.threads) and trace.process_names[trace.host()[0]["pid"]] == "parts"
        assert trace.threads.get(main, "parts") == "parts" and "GPU 0" in trace.process_names[0]
        assert {(e["pid"], tid_of(e["args"]["stream"])) for e in trace.gpu() if "stream" in e["args"]} <= set(trace.lanes)
    assert sum(main in trace.threads for trace in traces) > 1


def test_arrows_stay_in_their_part(all_parts):
    """Each has both ends in one part, or is counted: those of the event that was recorded at the very beginning."""
    stdout, _, traces = all_parts
    wanted = int(re.search(r"^arrows (\d+)$", stdout, re.M)[1])
    flows = [flow for trace in traces for flow in trace.flows("cs_dep")]
    between = sum(trace.totals["arrows_between_parts"] for trace in traces)
    assert len(flows) + between == wanted and 0 < between < wanted // 10
    assert len({flow.id for flow in flows}) == len(flows)
    assert all(flow.start["name"] == "cuEventRecord" and flow.finish["name"] == "cuStreamWaitEvent" for flow in flows)


def test_ranges_are_cut_in_two(all_parts):
    """A range that lasts longer than a part is in each, with the calls made in it; it is one range in the sums."""
    _, notes, traces = all_parts
    there = [len(trace.host("outer")) for trace in traces]
    assert there == sorted(there) and there[-1] == 1 and sum(there) > 3, "in no part, then in each once"
    traces = traces[-sum(there):]
    outer = [trace.host("outer") for trace in traces]
    for trace, (one,) in zip(traces, outer):
        (inner,) = trace.host("inner")
        assert one["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= one["ts"] + one["dur"] + 0.001
        inside = [e for e in trace.host("cuEventRecord") if e["tid"] == int(notes["main"])]
        assert sum(inner["ts"] <= e["ts"] and e["ts"] + e["dur"] <= inner["ts"] + inner["dur"] + 0.0005 for e in inside) >= len(inside) - 1
    said_of_it = [one["args"] for (one,) in outer]
    assert said_of_it == [cut("goes_on"), *[cut("continued_goes_on")] * (len(outer) - 2), cut("continued")]
    spans = [trace.spans("all of the process") for trace in traces]
    assert all(len(found) == 1 and found[0][3] is not None for found in spans)


def test_ranges_count_once(all_parts):
    _, _, traces = all_parts
    slices = sum(len(trace.host(cat="cuda_driver")) + len(trace.host(cat="cs_callback")) for trace in traces)
    assert sum(trace.totals["recorded"] for trace in traces) == slices + 4


def test_perfetto_reads_each_part(all_parts, trace_processor):
    _, _, traces = all_parts
    for trace in (traces[0], traces[2], traces[-1]):
        trace_processor.load(trace.path)
        assert_clean(trace_processor)
        assert trace_processor.value("SELECT count(*) FROM slice WHERE category = 'cuda_driver'") == len(trace.host(cat="cuda_driver"))
        assert trace_processor.value("SELECT count(*) FROM flow") == len(trace.flows())


# ---- What stays on the disk ----

@pytest.mark.parametrize("value, kept", [("1M,rotate", 2), ("1M,rotate:3", 3)])
def test_the_newest_parts_stay(run_app, tmp_path, value, kept):
    run, traces = rotated(run_app, "all", 6000, size=value)
    assert len(traces) == kept == len(list(tmp_path.iterdir())) and not said(run)
    last = traces[-1].totals
    calls = sum(calls_of(run.stdout).values())
    assert last["parts_deleted"] == traces[-1].json["part"] - kept > 2 and last["continues"] is False
    kept_records = sum(trace.totals["recorded"] for trace in traces)
    assert kept_records + last["recorded_in_deleted_parts"] == last["recorded_in_all_parts"] and last["recorded_in_all_parts"] >= calls
    assert sum(calls_of_parts(traces).values()) < calls  # the work of calls may come long after them, and fill parts of its own


def test_the_disk_stays_bounded(run_app, build, tmp_path):
    """Looked at while the program runs."""
    path = tmp_path / "trace.json"
    env = app_environment(build, path, True, BLOCK | {"CUSTREAM_TRACE_MAX": "1M,rotate:3"})
    most = files = 0
    with subprocess.Popen([build / "tests/parts", "all", "60000"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as program:
        while program.poll() is None:
            sizes = []
            for entry in tmp_path.iterdir():
                try:
                    sizes.append(entry.stat().st_size)
                except FileNotFoundError:  # deleted meanwhile
                    pass
            most, files = max(most, sum(sizes)), max(files, len(sizes))
            time.sleep(0.002)
    assert program.returncode == 0 and files <= 4 and 2 * MIB < most < 4 * MIB  # a new part has its head before the oldest goes
    assert parts_of(path)[-1].totals["parts_deleted"] > 30


def test_memory_stays_flat(run_app):
    """Eight times the calls, the same memory. With a small ring, so that its pages are all in use in both."""
    def resident(count):
        env = BLOCK | {"CUSTREAM_TRACE_MAX": "1M,rotate", "CUSTREAM_BUFFER": "64K"}
        return int(notes_of(run_app(["parts", "all", count], env=env).check().stderr)["resident"])
    assert resident(80000) < resident(10000) + 1024


# ---- Ends and other processes ----

def test_killed_at_its_end(run_app):
    run = run_app(["parts", "kill", 6000], env=BLOCK | {"CUSTREAM_TRACE_MAX": "1M,rotate:9999"})
    assert run.rc == -signal.SIGKILL
    traces = parts_of(run.trace)
    assert len(traces) > 3 and calls_of_parts(traces)["cuEventRecord"] == 6001
    assert traces[-1].totals["complete"] is False and traces[-1].totals["continues"] is False
    assert all(trace.totals["complete"] is True for trace in traces[:-1])


@pytest.mark.parametrize("name, times", [("trace.json", 15), ("trace.json.gz", 8)])
def test_killed_at_any_moment(build, tmp_path, name, times):
    """Parts change many times a second: whenever it is killed, every file is whole and one is at the path. The last write may be torn, as without parts."""
    whole_ones = 0
    for attempt in range(times):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        env = app_environment(build, folder / name, True, BLOCK | {"CUSTREAM_TRACE_MAX": "1M,rotate:3"})
        with subprocess.Popen([build / "tests/parts", "all", "10000000"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as program:
            while program.poll() is None and max(numbered(folder / name), default=0) <= attempt % 3:
                time.sleep(0.001)
            time.sleep(0.0175 * attempt / times)
            program.kill()
        assert (folder / name).exists()
        for path in folder.iterdir():
            assert path.name.startswith("trace.") and path.name.endswith(name[5:])
            done = subprocess.run([build / "custream", "check", path], capture_output=True, text=True, errors="replace", check=False)
            # The next part gets a number's name for a moment, before the two change places: it is whole too, and says that the process had not ended.
            good = done.returncode == 0 and (" ok: " in done.stdout or ": incomplete: the process had not ended " in done.stdout)
            assert good or path.name == name, done.stdout + done.stderr
            whole_ones += good and path.name == name
        assert max(numbered(folder / name)) > attempt % 3
    assert whole_ones > times // 6  # a kill in the middle of a write tears it; how often that is, is the machine's business


def test_a_forked_child_has_parts_of_its_own(run_app, tmp_path):
    run, traces = rotated(run_app, "fork", 6000)
    whole(run, traces)
    own = parts_of(tmp_path / f"{run.trace.stem}-{notes_of(run.stderr)['child']}.json")
    assert calls_of_parts(own) == {"cuStreamQuery": 12000} and [trace.json["part"] for trace in own][:2] == [1, 2]
    assert {e["pid"] for trace in own for e in trace.host()} == {int(notes_of(run.stderr)["child"])} and not said(run)


def test_two_processes_of_one_path(run_app, build, tmp_path):
    script = f"'{build}/tests/parts' all 6000 & echo $!; '{build}/tests/parts' all 6000 & echo $!; wait"
    run = run_app(["/bin/sh", "-c", script], env=BLOCK | {"CUSTREAM_TRACE_MAX": "1M,rotate:9999"}).check()
    pids = {line for line in run.stdout.splitlines() if line.isdigit()}
    (other,) = [p for p in tmp_path.iterdir() if re.fullmatch(re.escape(run.trace.stem) + r"-(\d+)\.json", p.name)]
    assert other.stem.rsplit("-", 1)[1] in pids and not said(run)
    both = [parts_of(run.trace), parts_of(other)]
    assert calls_of_parts(both[0]) == calls_of_parts(both[1]) and calls_of_parts(both[0] + both[1]) == calls_of(run.stdout)
    assert len({e["pid"] for trace in both[0] for e in trace.host()}) == 1


def test_a_program_that_changes_its_folder(run_app, tmp_path):
    run = run_app(["parts", "chdir", 6000], env=BLOCK | {"CUSTREAM_TRACE_MAX": "1M,rotate:9999", "CUSTREAM_TRACE": "t.json"}).check()
    traces = parts_of(tmp_path / "t.json")
    assert len(traces) > 4 and not said(run)
    whole(run, traces)


def test_a_path_that_is_a_link(run_app, tmp_path):
    """The link goes on to lead to the newest part; the others are beside the file."""
    (tmp_path / "far").mkdir()
    (tmp_path / "link.json").symlink_to("far/t.json")
    run = run_app(["parts", "all", 6000], env=BLOCK | {"CUSTREAM_TRACE_MAX": "1M,rotate:3", "CUSTREAM_TRACE": tmp_path / "link.json"}).check()
    assert (tmp_path / "link.json").is_symlink() and len(parts_of(tmp_path / "far/t.json")) == 3 and not said(run)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["far", "link.json"]


# ---- Files of others ----

def test_names_that_are_taken(run_app, tmp_path):
    """A part whose name something else has gets our pid put in, and is deleted in its turn all the same."""
    (tmp_path / "t.1.json").write_text("mine")
    (tmp_path / "t.2.json").mkdir()
    (tmp_path / "t.3.json").symlink_to("nowhere")
    (tmp_path / "t.400.json").write_text("mine too")
    env = BLOCK | {"CUSTREAM_TRACE": tmp_path / "t.json", "CUSTREAM_TRACE_MAX": "1M,rotate:9999"}
    run = run_app(["parts", "all", 6000], env=env).check()
    beside = sorted(p for p in tmp_path.iterdir() if re.fullmatch(r"t\.\d-\d+\.json", p.name))
    assert [p.name[:3] for p in beside] == ["t.1", "t.2", "t.3"] and not said(run)
    rest = [read(p) for n, p in sorted(numbered(tmp_path / "t.json").items()) if 3 < n < 400]
    assert calls_of_parts([read(p) for p in beside] + rest + [read(tmp_path / "t.json")]) == calls_of(run.stdout)
    run_app(["parts", "all", 6000], env=env | {"CUSTREAM_TRACE_MAX": "1M,rotate:2"}).check()
    assert (tmp_path / "t.1.json").read_text() == "mine" and (tmp_path / "t.400.json").read_text() == "mine too"
    assert (tmp_path / "t.2.json").is_dir() and os.readlink(tmp_path / "t.3.json") == "nowhere"
    assert len(list(tmp_path.iterdir())) == 4 + 3 + 2, "three of the first run that have a pid, and two of the second"


@pytest.mark.parametrize("extension", [".json", ".json.gz"])
def test_parts_of_an_earlier_run_go(run_app, tmp_path, extension):
    """As its file is overwritten. What only looks like one of them stays: a copy under another number, a file of somebody else's."""
    path = tmp_path / f"t{extension}"
    gpu = {"CUSTREAM_GPU": "off"}  # how many parts there are must not depend on when GPU times are ready
    env = BLOCK | gpu | {"CUSTREAM_TRACE": path, "CUSTREAM_TRACE_MAX": "1M,rotate:9999"}
    count = 45000 if extension == ".json.gz" else 6000
    run_app(["parts", "all", count], env=env).check()
    assert len(numbered(path)) >= 2
    copy, foreign, other = (tmp_path / f"t.{n}{extension}" for n in (900, 901, "1.x"))
    copy.write_bytes(numbered(path)[1].read_bytes())
    foreign.write_bytes(gzip.compress(b"mine") if extension == ".json.gz" else b'{"schemaVersion":1,"part":901}')
    other.write_bytes(b"mine")
    time.sleep(0.05)  # the files are older than the next process
    run = run_app(["burst", 1, 10], env=env).check()
    assert {p.name for p in tmp_path.iterdir()} == {p.name for p in (path, copy, foreign, other)} and not said(run)
    time.sleep(0.05)  # the files are older than the next process
    run_app(["parts", "all", count], env=env).check()
    assert 900 in numbered(path) and 901 in numbered(path) and 1 in numbered(path)


def test_a_file_that_somebody_puts_at_the_path(run_app, tmp_path):
    """The trace was moved away and another file is there: it stays as it is, the part that was moved is whole, and the next ones are beside it."""
    path = tmp_path / "t.json"
    run = run_app(["parts", "replace", 6000], env=BLOCK | {"CUSTREAM_TRACE": path, "CUSTREAM_TRACE_MAX": "1M,rotate:9999"}).check()
    (line,) = said(run)
    (beside,) = [p for p in tmp_path.iterdir() if re.fullmatch(r"t-\d+\.json", p.name)]
    assert path.read_text() == "mine\n" and str(path) in line and str(beside) in line
    before = [read(p) for _, p in sorted(numbered(path).items())]
    taken = tmp_path / "t.json.taken"
    traces = [*before, read(taken), *parts_of(beside)]
    whole(run, traces)
    assert before and len(traces) > len(before) + 2


def test_files_at_the_path_and_beside_it(run_app, tmp_path):
    """Both stay as they are, and the trace ends with the part that was moved."""
    path = tmp_path / "t.json"
    run = run_app(["parts", "replace-both", 6000], env=BLOCK | {"CUSTREAM_TRACE": path, "CUSTREAM_TRACE_MAX": "1M,rotate:9999"}).check()
    (beside,) = [p for p in tmp_path.iterdir() if re.fullmatch(r"t-\d+\.json", p.name)]
    assert path.read_text() == beside.read_text() == "mine\n"
    (line,) = said(run)
    assert os.strerror(17) in line and "next part" in line
    last = read(tmp_path / "t.json.taken").totals
    assert last["complete"] is False and last["continues"] is False and last["lost_records"] > 0


# ---- When it fails ----

def test_no_next_part(run_app, tmp_path):
    """No file can be opened: the present part says that it ends there, and how many calls it lacks."""
    run = run_app(["parts", "files", 6000], env=BLOCK | {"CUSTREAM_TRACE_MAX": "1M,rotate:9999"}).check()
    (line,) = said(run)
    assert str(run.trace) in line and os.strerror(24) in line and "next part" in line
    traces = parts_of(run.trace)
    last = traces[-1].totals
    assert last["complete"] is False and last["continues"] is False and last["lost_records"] > 0
    (gap,) = [e for e in traces[-1].slices if e["cat"] == "cs_loss"]
    assert gap["args"]["count"] == last["lost_records"] == last["lost_in_all_parts"] and "next part" in gap["args"]["cause"]
    assert sum(calls_of_parts(traces).values()) < sum(calls_of(run.stdout).values())
    assert len(list(tmp_path.iterdir())) == len(traces)


def test_full_disk(run_app, tmp_path):
    """Nothing can be written any more: what is there is whole, nothing half written is left, and the program does not notice."""
    run = run_app(["parts", "full", 6000], env=BLOCK | {"CUSTREAM_TRACE_MAX": "1M,rotate:9999"}).check()
    assert 1 <= len(said(run)) <= 2 and os.strerror(27) in said(run)[0]
    traces = parts_of(run.trace)
    assert 0 < sum(calls_of_parts(traces).values()) < sum(calls_of(run.stdout).values())
    assert len(list(tmp_path.iterdir())) == len(traces)


@pytest.mark.parametrize("value", ["1M,rotat", "1M,rotate:", "1M,rotate:1", "1M,rotate:10000", "1M, rotate", "rotate", ",rotate", "1M,rotate:2,", "1M,ROTATE", "1M,",
                                   "1K,rotate", "1M,rotate:-2", "1M,rotate:2x", "1M,rotate:99999999999999999999"])
def test_bad_values(run_app, build, value):
    """One line with what is allowed, and the default; the command does not start the program."""
    run = run_app(["burst", 1, 10], env={"CUSTREAM_TRACE_MAX": value}).check()
    (line,) = said(run)
    assert f"CUSTREAM_TRACE_MAX={value} " in line and "rotate:PARTS" in line and "using 1G" in line
    assert "part" not in read(run.trace).json
    done = subprocess.run([build / "custream", "run", f"--trace-max={value}", "--", "/bin/true"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "rotate:PARTS" in done.stderr
