"""CUSTREAM_GPU=sample:N: all calls are recorded, and one in N of those that put work on a GPU has GPU times."""
import collections
import json
import os
import re
import signal

import pytest

from tests.apprun import both, calls_in, calls_of, faithful, read, said
from tests.cases.test_audit import audited, kernels as hazards_of
from tests.cases.test_live import Record
from tests.cases.test_events_backend import check_arrows, error_of, works_of
from tests.cases.test_rotate import parts_of
from tests.handmade import custream
from tests.perfetto import assert_clean
from tests.remote import Remote, until
from tests.report import Report
from tests.trace import stream_of


def sample(n, **env):
    return {"CUSTREAM_GPU": f"sample:{n}", **env}


def launches_by_thread(trace):
    """The launches of each thread, in their order."""
    by_thread = collections.defaultdict(list)
    for call in sorted((e for e in trace.host() if e["name"].startswith("cuLaunchKernel")), key=lambda e: e["ts"]):
        by_thread[call["tid"]].append(call)
    return by_thread


def is_timed(call):
    return "correlation" in call["args"]


def kernel_row_of_cut(path):
    """The same where the report says on stderr that the file is a cut."""
    (row,) = json.loads(custream("report", "--json", path).stdout)["tables"]["kernels"]
    return row


def kernel_row(*paths):
    (row,) = Report(*paths)["kernels"]
    return row


# ---- Which calls are timed ----

# 512 samples at most are under way: more would be told as lost on a busy machine.
@pytest.mark.parametrize("n, count", [(10, 100), (3, 60), (50, 250), (2, 1)])
def test_each_thread_has_one_in_n_timed(run_app, trace_processor, n, count):
    """Of every N launches of a thread one, and its first one, so that short threads show something."""
    run, trace = faithful(run_app, ["marks", "threads", 3, count], env=sample(n))
    by_thread = launches_by_thread(trace)
    assert [len(calls) for calls in by_thread.values()] == [3 * count] * 3
    for calls in by_thread.values():
        timed = [i for i, call in enumerate(calls) if is_timed(call)]
        whole, rest = divmod(3 * count, n)
        assert timed[0] == 0 and whole <= len(timed) <= whole + bool(rest)
        assert [i // n for i in timed[:whole]] == list(range(whole)), "one in each N launches"
    assert len(works_of(trace)) == sum(is_timed(call) for calls in by_thread.values() for call in calls)
    check_arrows(trace)
    for work in works_of(trace):
        assert work["args"]["cs.time"] == "events" and work["name"] == "sleep_us_50" and work["cat"] == "kernel"
        assert work["dur"] >= 50 - 2 * error_of(work)
    assert (trace.metadata["gpu_time_source"], trace.metadata["gpu_sample"]) == ("events", n)
    gpu = trace.totals["gpu"]
    assert (gpu["sample"], gpu["kernels"], gpu["lost"], gpu["launches_without_kernel"]) == (n, len(works_of(trace)), 0, 0)
    trace_processor.load(run.trace)
    assert_clean(trace_processor)


def test_a_loop_of_n_launches_has_each_of_them_timed(run_app):
    """The place among N changes. Always the same one would time the same launch of each turn of a loop, and no other."""
    _, trace = faithful(run_app, ["marks", "threads", 1, 300], env=sample(3))
    (calls,) = launches_by_thread(trace).values()
    places = collections.Counter(i % 3 for i, call in enumerate(calls) if is_timed(call))
    assert sum(places.values()) == 300 and all(places[place] > 60 for place in range(3)), places


def test_the_same_program_has_the_same_calls_timed(run_app):
    timed = []
    for _ in range(2):
        _, trace = faithful(run_app, ["marks", "threads", 1, 100], env=sample(7))
        (calls,) = launches_by_thread(trace).values()
        timed.append([i for i, call in enumerate(calls) if is_timed(call)])
    assert timed[0] == timed[1]


def test_one_in_one_is_all(run_app):
    """sample:1 is CUSTREAM_GPU=events by another name."""
    _, trace = faithful(run_app, ["marks", "kinds"], env=sample(1))
    assert "gpu_sample" not in trace.metadata and "sample" not in trace.totals["gpu"]
    assert len(works_of(trace)) == 13


def test_every_launch_is_told_whole(run_app):
    """A launch without GPU times has its kernel, grid and block itself."""
    _, trace = faithful(run_app, ["marks", "kinds"], env=sample(1000))
    launches = [call for calls in launches_by_thread(trace).values() for call in calls if "cs.result" not in call["args"]]
    assert len(works_of(trace)) == 1 and len(launches) == 5
    assert all(call["args"]["kernel"] == "empty_kernel" and len(call["args"]["grid"]) == 3 for call in launches)


def test_times_of_one_kernel_only(run_app):
    """Between two samples of a stream much work is not timed. None of that counts for a sample, also where work piles up behind a gate."""
    _, trace = faithful(run_app, ["marks", "flood", 900], env=sample(10, CUSTREAM_FAKE_KERNEL_NS=1000))
    works = works_of(trace)
    assert 90 <= len(works) <= 92 and {work["cat"] for work in works} == {"kernel"} and not any("calls" in work["args"] for work in works)
    short = sorted(work["dur"] for work in works if work["name"] == "empty_kernel")
    assert short[len(short) // 2] < 100


def test_samples_that_find_no_event(run_app):
    """They have no times and are counted as lost. In no case does one slice stand for two samples, with all that lies between."""
    env = sample(2, CUSTREAM_FAKE_KERNEL_NS=1000, CUSTREAM_FAKE_FAIL="cuEventCreate:300=2")
    run, trace = both(run_app, ["marks", "flood", 900], env=env)
    assert {work["cat"] for work in works_of(trace)} == {"kernel"}
    lost = trace.totals["gpu"]["lost"]
    assert lost > 100 and abs(len(works_of(trace)) + lost - 455) <= 1 and calls_in(trace) == calls_of(run.check().stdout)


# ---- What is done to the program ----

def test_no_more_events_than_for_the_samples(run_app, tmp_path):
    """Two records of events for each sample; the rest are those of the clock."""
    def counted(source):
        counts = tmp_path / source.replace(":", "-")
        run_app(["marks", "threads", 2, 300], env={"CUSTREAM_GPU": source, "CUSTREAM_FAKE_COUNTS": counts}).check()
        return {name: int(n) for name, n in map(str.split, counts.read_text().splitlines())}
    one, all_, none = counted("sample:100"), counted("events"), counted("off")  # without marks
    assert all_["cuEventRecord"] > 1800 and 2 * 18 <= one["cuEventRecord"] < 2 * 18 + 300
    assert one["cuStreamIsCapturing"] <= 18 < all_["cuStreamIsCapturing"]
    assert {name: one[name] for name in none if name.startswith("cuLaunch")} == {name: n for name, n in none.items() if name.startswith("cuLaunch")}


@pytest.mark.parametrize("n", [2, 3])
def test_captures_are_left_alone(run_app, n):
    """No event goes into a capture. The calls of one say so, since nothing else tells them from calls without times."""
    _, trace = both(run_app, ["marks", "captures"], env=sample(n))
    captured = [e for e in trace.host() if "cs.captured" in e["args"]]
    assert captured and not any(is_timed(call) for call in captured)
    began = [e for e in trace.host() if e["name"].startswith("cuStreamBeginCapture")]
    assert len(began) >= 3 and {e["name"] for e in captured} >= {"cuLaunchKernel", "cuMemsetD8Async"}


def test_captured_launches_are_not_counted(run_app):
    run, trace = faithful(run_app, ["marks", "kinds"], env=sample(2))
    row = kernel_row(run.trace)
    assert len([e for e in trace.host() if "cs.captured" in e["args"]]) == 1
    assert (row["name"], row["times"]) == ("empty_kernel", 4)  # five launches, one of them in a capture; others fail


def test_nothing_is_told_that_needs_all_work(run_app):
    """No counters, and no arrow from work to the wait that it released: the work that did may not be timed."""
    _, trace = faithful(run_app, ["marks", "threads", 2, 60], env=sample(5))
    assert not [e for e in trace.events if e["ph"] == "C"] and not [e for e in trace.events if e["name"] == "wake-up"]
    assert not any("waited_us" in work["args"] for work in works_of(trace))
    _, whole = faithful(run_app, ["marks", "threads", 2, 60], env=sample(1))
    assert [e for e in whole.events if e["ph"] == "C"] and [e for e in whole.events if e["name"] == "wake-up"]


def test_an_audit_finds_the_same(run_app):
    """An audit needs no times for what it finds. How long was waited it does not say."""
    argv = ["audit_hazards", "planted", 3]
    _, _, untimed = audited(run_app, argv, env={"CUSTREAM_GPU": "off"})  # what is said without GPU times
    run, trace, found = audited(run_app, argv, env=sample(2))
    assert hazards_of(found) == hazards_of(untimed) and found["verdict"] == untimed["verdict"] == "not safe"
    assert works_of(trace) and any("how long was waited is not known" in line for line in said(run))


# ---- What is written wrongly ----

@pytest.mark.parametrize("value", ["sample:0", "sample:", "sample:-1", "sample:1e9", "sample:1000001", "sample:50 ", "sample", "sample:+5", "sample:5,6", "Sample:5"])
def test_a_value_that_is_none(run_app, tmp_path, value):
    """One line each: from the library, which goes on with the default, and from the command, which starts nothing."""
    run, trace = both(run_app, ["burst", 1, 10], env={"CUSTREAM_GPU": value})
    (line,) = said(run)
    assert f"CUSTREAM_GPU={value} is not valid: allowed is auto, cupti, events, off, or sample:N with N from 1 to 1000000; using auto" in line
    assert trace.metadata["gpu_time_source"] == "cupti"
    done = custream("run", "-o", tmp_path / "t.json", "--gpu", value, "touch", tmp_path / "started")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "sample:N with N from 1 to 1000000" in done.stderr, done.stderr
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize("flags, why", [(["--graph=node"], "only CUPTI has times of single nodes"), (["--runtime=cupti"], "CUPTI is not used"),
                                        (["--counters=streams"], "counters need the times of all work")])
def test_what_does_nothing_beside_a_sample(flags, why):
    done = custream("run", "--gpu=sample:50", *flags, "true")
    assert done.returncode == 2 and re.fullmatch(rf"custream run: CUSTREAM_\w+=\w+ does nothing beside CUSTREAM_GPU=sample:50: {why}\n", done.stderr), done.stderr


# ---- Times at run time: windows, ctl, forks ----

def test_a_policy_that_comes_later(tmp_path):
    """Calls that ask a policy go another way. They are counted as all others are."""
    with Remote(tmp_path, sample(4)) as program:
        for change in ({"default_stream": "per-thread"}, {"streams": "sync"}, {}):
            program.ctl("policy", "-", text=json.dumps(change))
            program.do("launch legacy 40")
        program.do("all")
    trace = program.load()
    (calls,) = [calls for calls in launches_by_thread(trace).values() if len(calls) >= 120]
    timed = [i for i, call in enumerate(calls) if is_timed(call)]
    assert abs(len(timed) - len(calls) // 4) <= 1 and len(works_of(trace)) == len(timed)


def test_ctl_off_and_on(tmp_path):
    """What is not recorded is not marked, and recording goes on with the sample."""
    with Remote(tmp_path, sample(5)) as program:
        program.do("create 1", "launch 1 50")
        program.ctl("off")
        program.do("launch 1 50")
        program.ctl("on")
        until(lambda: "rest" not in program.status()["gpu"])
        program.do("launch 1 50", "all")
    trace = program.load()
    calls = [call for calls in launches_by_thread(trace).values() for call in calls]
    assert len(calls) == 100 and abs(len(works_of(trace)) - 20) <= 2 and trace.totals["gpu"]["lost"] == 0


def test_a_policy_file_asks_for_it(run_app):
    _, trace = both(run_app, ["marks", "threads", 1, 100], env={"CUSTREAM_POLICY": '{"gpu": "sample:10"}'})
    assert trace.metadata["gpu_sample"] == 10 and len(works_of(trace)) == 30


def test_record_for_a_while(tmp_path):
    """custream record writes a cut that says, too, that it is a sample."""
    path = tmp_path / "cut.json"
    with Remote(tmp_path, sample(5, CUSTREAM_WINDOW="ctl")) as program:
        program.do("create 1", "launch 1 50")
        with Record("-p", program.pid, "-o", path) as record:
            program.do("launch 1 100", "all")
    assert record.rc == 0, record.err
    trace = read(path)
    assert calls_in(trace)["cuLaunchKernel"] == 100 and abs(len(works_of(trace)) - 20) <= 1
    assert trace.metadata["gpu_sample"] == trace.totals["gpu"]["sample"] == 5
    assert (kernel_row_of_cut(path)["times"], kernel_row_of_cut(path)["sampled"]) == (100, len(works_of(trace)))


def test_forks(run_app):
    """The child of a process that used CUDA has none, and answers as it would alone."""
    run, trace = both(run_app, ["forks", "calls"], env=sample(3))
    assert trace.metadata["gpu_sample"] == 3 and works_of(trace)


# ---- Files: formats, parts, torn, merged ----

@pytest.mark.parametrize("ending", [".json.gz", ".pftrace", ".pftrace.gz"])
def test_formats(run_app, tmp_path, ending):
    path = tmp_path / f"t{ending}"
    run_app(["marks", "threads", 2, 50], env=sample(10, CUSTREAM_TRACE=path), trace=path).check()
    assert custream("check", path).returncode == 0
    assert Report(path)["run"][0]["sample"] == 10
    assert (kernel_row(path)["times"], kernel_row(path)["sampled"]) == (300, 30)


def test_parts(run_app):
    """Each part says that it is a sample; together they have all launches."""
    run = run_app(["parts", "calls", 20000], env=sample(10, CUSTREAM_FULL="block", CUSTREAM_TRACE_MAX="1M,rotate:9999", CUSTREAM_FAKE_KERNEL_NS=500)).check()
    parts = parts_of(run.trace)
    assert len(parts) > 2 and {part.metadata["gpu_sample"] for part in parts} == {part.totals["gpu"]["sample"] for part in parts} == {10}
    files = sorted(run.trace.parent.glob("trace-0*.json"))
    launched = sum(n for name, n in calls_of(run.stdout).items() if name.startswith("cuLaunchKernel"))
    rows = Report(*files)["kernels"]
    assert sum(row["times"] for row in rows) == launched
    assert abs(sum(row["sampled"] for row in rows) - sum(len([w for w in works_of(part) if w["cat"] == "kernel"]) for part in parts)) == 0


def test_a_torn_file(run_app, tmp_path):
    """The header says it too, so a file without its end is still known to be a sample."""
    run = run_app(["marks", "threads", 2, 200], env=sample(10)).check()
    torn = tmp_path / "torn.json"
    torn.write_bytes(run.trace.read_bytes()[:-3000])
    done = custream("report", torn)
    assert "of one call in 10" in " ".join(done.stdout.split())
    assert custream("recover", torn).returncode == 0
    assert read(tmp_path / "torn.recovered.json").totals["gpu"]["sample"] == 10


def test_merged(run_app, tmp_path):
    files = [run_app(["marks", "threads", 1, 50], env={"CUSTREAM_GPU": source}).check().trace for source in ("sample:10", "auto")]
    done = custream("merge", "-o", tmp_path / "all.json", *files)
    assert done.returncode == 0, done.stderr
    assert [one.get("gpu_sample") for one in json.loads((tmp_path / "all.json").read_text())["metadata"]["merged"]["files"]] == [10, None]


# ---- What is said ----

def test_check_and_the_closing_line(build, tmp_path):
    path = tmp_path / "t.json"
    env = {**{k: v for k, v in os.environ.items() if not k.startswith("CUSTREAM_")}, "LD_LIBRARY_PATH": str(build / "fakecuda")}
    done = custream("run", "--gpu=sample:10", "-o", path, build / "tests" / "marks", "threads", 1, 100, env=env)
    assert done.returncode == 0 and re.search(r"calls, 30 GPU operations, nothing lost, GPU times of one call in 10\.", done.stderr), done.stderr
    checked = custream("check", path)
    assert checked.returncode == 0 and ": ok: " in checked.stdout and "lost records 0, GPU times of one call in 10\n" in checked.stdout
    path.write_text(path.read_text().replace('"gpu_sample":10', '"gpu_sample":20', 1))
    checked = custream("check", path)
    assert checked.returncode == 1 and "totals.gpu.sample is 10, and the header's gpu_sample 20" in checked.stdout + checked.stderr


@pytest.fixture(name="sampled")
def fixture_sampled(run_app):
    return run_app(["marks", "threads", 2, 500], env=sample(50)).check()


def test_the_kernels_of_a_report(sampled):
    """All launches are counted. The total is an estimate, and no column that people add up has it."""
    row = kernel_row(sampled.trace)
    assert (row["name"], row["times"], row["sampled"], row["total_ns"]) == ("sleep_us_50", 3000, 60, None)
    assert row["mean_ns"] >= 50000 and abs(row["about_total_ns"] - row["mean_ns"] * 3000) < 3000
    text = custream("report", "--section", "kernels", sampled.trace).stdout
    assert "One call in 50 was timed." in text and re.search(r"total,\s+", text) and "about" in text


def test_a_kernel_that_no_sample_met(run_app):
    run = run_app(["marks", "kinds"], env=sample(1000)).check()
    assert kernel_row(run.trace)["sampled"] == 1
    run = run_app(["marks", "flood", 20], env=sample(1000000)).check()
    rows = {row["name"]: row for row in Report(run.trace)["kernels"]}
    assert rows["empty_kernel"]["sampled"] == 1
    missed = [row for row in rows.values() if not row["sampled"]]
    assert missed and all(row["times"] == 10 and row["mean_ns"] is None and row["about_total_ns"] is None and row["shortest_ns"] is None for row in missed)


@pytest.mark.parametrize("section", ["devices", "idle", "idle_host"])
def test_what_needs_all_work_is_absent(sampled, section):
    assert Report(sampled.trace)[section] == []
    text = " ".join(custream("report", "--section", section, sampled.trace).stdout.split())
    assert "Absent: it needs the GPU times of all calls, and the trace has those of one in 50." in text


def test_the_head_of_a_report(sampled):
    text = " ".join(custream("report", sampled.trace).stdout.split())
    assert "60 pieces of GPU work on" in text
    assert "GPU times are those of one call in 50, so how much the GPU computed, why it wa" in text
    assert "Missing from the trace: the GPU times of all calls but one in 50." in text
    assert "The rules that need no GPU times found nothing to change" in text and " busy for " not in text
    waits = Report(sampled.trace)["host_waits"]
    assert waits and {row["for"] for row in waits} == {"not known"}


def test_a_gate_on_what_is_absent_is_not_passed_silently(sampled):
    done = custream("report", "--fail-if", "gpu_idle > 1%", sampled.trace)
    assert done.returncode != 0 and "gpu_idle" in done.stderr, (done.returncode, done.stderr)
    assert custream("report", "--fail-if", "calls > 1000000", sampled.trace).returncode == 0


def test_two_samples_compared(run_app):
    files = [run_app(["marks", "threads", 1, 100], env=sample(10)).check().trace for _ in range(2)]
    done = custream("diff", *files)
    assert done.returncode == 0 and "busy" not in done.stdout, done.stdout


def test_a_program_that_is_killed(build, tmp_path):
    """The file has all up to the last write, and says that it is a sample."""
    with Remote(tmp_path, sample(5)) as program:
        program.do("create 1", "launch 1 100", "all")
        until(lambda: program.ctl("flush") and len(works_of(read(program.trace))) == 20)
        program.process.send_signal(signal.SIGKILL)
        program.process.wait(30)
        program.rc = -9
    trace = read(tmp_path / "remote.json")
    assert trace.totals["gpu"]["sample"] == 5 and len(works_of(trace)) == 20 and len({stream_of(w["tid"]) for w in works_of(trace)}) == 1
    assert calls_in(trace)["cuLaunchKernel"] == 100
