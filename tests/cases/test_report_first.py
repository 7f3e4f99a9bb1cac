"""The first screen of `custream report`: the steady part and its steps, how much of it the GPU computed, what costs most, and where to look next."""
import shlex
import subprocess

import pytest

from tests.handmade import custream
from tests.madetrace import Made, only, report
from tests.tracestory import Story

MS = 1000  # microseconds


def text_of(tmp_path, told, *options):
    """The first screen, with its lines joined."""
    path = tmp_path / "story.json"
    path.write_text(told.text(), encoding="utf-8")
    return custream("report", "--brief", *options, "story.json", cwd=tmp_path, env={"COLUMNS": "5000"}).stdout


def synchronous(rounds, kernels=3, names="abc", gap=700):
    """Rounds of some kernels of 100 us, a wait for them, and own code: a round takes 1 ms."""
    story = Story()
    story.stream(13)
    for n in range(rounds):
        at = end = MS * n
        for k in range(kernels):
            end = story.kernel(13, at + 2 * k, max(end, at + 2 * k) + 1, 100 - 1, names[k % len(names)])
        story.call("cuStreamSynchronize", at + 2 * kernels, end - at - 2 * kernels, **story.on(13))
    return story


# --- steps ---

@pytest.mark.parametrize("rounds", [5, 20])
@pytest.mark.parametrize("kernels, names", [(1, "a"), (3, "abc"), (7, "aabaaba"), (6, "a")], ids=["one kernel", "three", "a kernel often", "the same, and a wait"])
def test_steps_told_by_work(tmp_path, rounds, kernels, names):
    steady = only(synchronous(rounds, kernels, names).report(tmp_path)["steady"])
    assert (steady["steps"], steady["step_ns"], steady["range"]) == (rounds, 1_000_000, 0)


def test_a_warm_up_is_no_step(tmp_path):
    """Three rounds, a pause of 200 ms, then twelve."""
    story = synchronous(3)
    later = synchronous(12)
    for row in later.rows:
        row["ts"] += 200 * MS
        for key in ("correlation", "bind_id"):
            for where in (row, row.get("args", {})):
                if key in where:
                    where[key] += 100
    story.rows += later.rows
    steady = only(story.report(tmp_path)["steady"])
    assert (steady["begin_ns"], steady["steps"], steady["step_ns"]) == (200_000_000, 12, 1_000_000)
    assert steady["steady_ns"] == pytest.approx(11_100_000, abs=1000) and steady["after_ns"] == pytest.approx(201_000, abs=1000)


def test_steps_of_a_host_that_runs_ahead(tmp_path):
    """All is enqueued in the first 60 us; on the GPU a step takes 1 ms, on two streams. It begins with a copy."""
    story = Story()
    streams = story.stream(13), story.stream(14)
    for n in range(10):
        story.copy(13, 6 * n, 45 + MS * n, 5, took=1)
        for k, stream in enumerate(streams):
            story.kernel(stream, 6 * n + 2 * k + 2, 50 + MS * n + 500 * k, 500, took=1)
    steady = only(story.report(tmp_path)["steady"])
    assert (steady["steps"], steady["step_ns"]) == (10, 1_000_000)


def test_a_range_tells_the_steps(tmp_path):
    """Each of six ranges has two rounds of the work."""
    made = Made()
    made.stream(13)
    for n in range(12):
        if n % 2 == 0:
            made.range(f"step {n // 2}", MS * n, 1900)
        made.launch("k", MS * n + 5, MS * n + 10, 300)
    steady = only(report(tmp_path, made)["steady"])
    assert (steady["steps"], steady["step_ns"], steady["step"], steady["range"]) == (6, 2_000_000, "step N", 1)
    assert "6 steps of about 2.000 ms (range step N)." in text_of(tmp_path, made)


def test_a_short_range_is_no_step(tmp_path):
    """One range in each half of a round, of 20 us: the work tells the rounds."""
    made = Made()
    made.stream(13)
    for n in range(20):
        made.range("reduce", MS * n + 50, 20)
        for k in "ab" if n % 2 else "cd":
            made.launch(k, MS * n + 55, MS * n + (60 if k in "ac" else 300), 200)
    steady = only(report(tmp_path, made)["steady"])
    assert (steady["steps"], steady["step_ns"], steady["range"]) == (10, 2_000_000, 0)


def test_a_range_of_the_warm_up_tells_nothing(tmp_path):
    made = Made()
    made.stream(13)
    for n in range(3):
        made.range("prepare", 10 * n, 5)
    for n in range(12):
        made.launch("k", MS * n + 100, MS * n + 110, 300)
    assert only(report(tmp_path, made)["steady"])["range"] == 0


@pytest.mark.parametrize("at", [[n * n * n for n in range(12)], [0, 1, 2, 3]], ids=["at no regular times", "too few"])
def test_no_steps(tmp_path, at):
    """What repeats at no period has no steps, and its findings no gain of a step."""
    story = Story()
    story.stream(13)
    for t in at:
        story.kernel(13, MS * t, MS * t + 5, 200)
    tables = story.report(tmp_path)
    assert (only(tables["steady"])["steps"], only(tables["steady"])["step_ns"]) == (None, None)
    assert tables["findings"] and all(row["gain_step_ns"] is None for row in tables["findings"])
    assert " steps of " not in text_of(tmp_path, story) and "of each step" not in text_of(tmp_path, story)


def test_the_gain_of_a_step_is_a_part_of_the_gain(tmp_path):
    """Twenty rounds, each with 700 us of own code: the gain of a step is that of own code, less the wait's return."""
    tables = synchronous(20).report(tmp_path)
    finding = next(row for row in tables["findings"] if row["id"] == "CS117")
    assert finding["gain_step_ns"] * 20 == pytest.approx(finding["gain_high_ns"])
    assert finding["gain_step_ns"] == pytest.approx(700_000 * 19 / 20, rel=0.02)
    unknown = [row for row in tables["findings"] if row["gain_high_ns"] is None]
    assert all(row["gain_step_ns"] is None for row in unknown)


# --- computing, copying, nothing ---

def test_a_copy_is_not_computing(tmp_path):
    """Of each round of 1 ms: a kernel for 200 us, a copy for 400 us, a quarter of it beside the kernel."""
    story = Story()
    story.stream(13), story.stream(14)
    for n in range(10):
        story.kernel(13, MS * n, MS * n + 10, 200)
        story.copy(14, MS * n + 3, MS * n + 110, 400)
    tables = story.report(tmp_path)
    length = only(tables["steady"])["steady_ns"]
    computing = only(tables["computing"])
    assert length == 9_210_000  # it ends with the last kernel
    assert (computing["kernels_ns"], computing["copies_ns"], computing["unknown_ns"], computing["nothing_ns"]) == (2_000_000, 2_700_000, 0, length - 4_700_000)
    assert "In that time GPU 0 computed for 21.7 % (2.000 ms), only copied or set memory for 29.3 % (2.700 ms) and did nothing for 49.0 % (4.510 ms)." in text_of(tmp_path, story)


def test_inside_of_a_graph_nothing_is_known(tmp_path):
    story = Story()
    story.stream(13), story.stream(14)
    for n in range(10):
        story.work("cuGraphLaunch", 13, MS * n, MS * n + 10, 500, kind="gpu_graph", name="graph 1", graph=1)
        story.kernel(14, MS * n + 4, MS * n + 410, 200)
    tables = story.report(tmp_path)
    computing = only(tables["computing"])
    assert (computing["kernels_ns"], computing["unknown_ns"]) == (1_900_000, 4_000_000)  # of the last kernel only the half lies in the steady part
    text = text_of(tmp_path, story)
    assert "was inside of graphs or other work that is not known further for 42.1 % (4.000 ms)" in text
    assert "CUSTREAM_GRAPH=node records what is inside of graphs." in text


def test_each_gpu_has_its_own_sentence(tmp_path):
    made = Made()
    for device, lasts in ((0, 250), (1, 500)):
        made.stream(13, device=device)
        for n in range(10):
            made.launch("k", MS * n + device, MS * n + 10, lasts, device=device)
    text = text_of(tmp_path, made)
    assert "\nIn that time GPU 0 computed for 26.3 % (2.500 ms) and did nothing for 73.7 % (7.010 ms).\nGPU 1 computed for 52.6 % (5.000 ms)" in text


# --- what costs most ---

def test_what_costs_most_is_the_finding_with_the_largest_gain(tmp_path):
    told = synchronous(20)
    first = told.report(tmp_path)["findings"][0]
    assert first["id"] == "CS117"
    assert "What costs most: the GPU waits for the program's own code (main 4250). Mending that wins about 13." in text_of(tmp_path, told)


def test_a_full_gpu_costs_most_itself(tmp_path):
    story, end = Story(), 5
    story.stream(13)
    for n in range(12):
        end = story.kernel(13, 3 * n, end, 1000)
    text = text_of(tmp_path, story)
    assert "In that time GPU 0 computed for 100.0 % (12.00 ms) and did nothing for <0.1 % (5.000 us)." in text
    assert "What costs most is the GPU's own work: kernels ran for 100.0 % of the run's steady part; k took 100.0 % of that." in text


def test_without_a_gain_the_largest_idle_time_is_named(tmp_path):
    """The calls of the work are not in the trace, so nothing can be played again."""
    made = Made()
    made.stream(13)
    for n in range(10):
        made.ran("k", MS * n, 200)
    text = text_of(tmp_path, made)
    assert "No finding has a gain. Of its idle time, GPU 0 had 100.0 % for this reason: not known." in text


@pytest.mark.parametrize("devices", [1, 2])
def test_whose_own_work_costs_most(tmp_path, devices):
    """GPU 1 is full. GPU 0, if there is one, has little to do."""
    made, end = Made(), 5
    for device in range(2 - devices, 2):
        made.stream(13, device=device)
    for n in range(12):
        if devices > 1:
            made.launch("small", 1000 * n + 1, 1000 * n + 10, 20, device=0)
        made.launch("k", 3 * n + 2, max(end, 3 * n + 10), 1000, device=1)
        end = max(end, 3 * n + 10) + 1000
    text = text_of(tmp_path, made)
    assert f"What costs most is {'GPU 1' if devices > 1 else 'the GPU'}'s own work: kernels ran for " in text, text


@pytest.mark.parametrize("named", [True, False])
def test_a_long_start_is_told(tmp_path, named):
    """Before twelve kernels of 1 ms one after the other: 10 s in one call, or in none."""
    story, end = Story(), 0
    story.stream(13)
    story.call("cuDevicePrimaryCtxRetain", 0, 10_000_000 if named else 10)
    for n in range(12):
        at = 10_000_010 + 1000 * n
        end = story.kernel(13, at, max(end, at + 5), 995)
    spent = "10.00 s of that went to cuDevicePrimaryCtxRetain (1 time)" if named else "for 10.00 s of that no thread was in a call that is recorded"
    assert f"\nBefore its steady part came 10.00 s; {spent}.\n" in text_of(tmp_path, story)
    assert "Before its" not in text_of(tmp_path, synchronous(20))


# --- where to look next ---

def next_of(text):
    lines = text.split("Where to look next\n")[1].splitlines()
    return [line.split("  # ")[0].strip() for line in lines]


def test_commands_that_apply(tmp_path):
    assert next_of(text_of(tmp_path, synchronous(20))) == [
        "custream explain CS117", "custream report --critical-path story.json", "custream report --what-if='own code=0' story.json", "custream open story.json"]
    made = Made()
    made.stream(13)
    made.ran("k", 0, 200)
    made.ran("k", 900, 200)
    assert next_of(text_of(tmp_path, made)) == ["custream open story.json"]  # nothing to explain, and nothing can be played


def test_no_command_names_a_pipe():
    done = custream("report", "--brief", "-", input=synchronous(20).text())
    assert next_of(done.stdout) == ["custream explain CS117"]


def test_the_commands_do_as_they_say(tmp_path):
    (tmp_path / "a b").mkdir()
    path = tmp_path / "a b/it's.json"
    path.write_text(synchronous(20).text(), encoding="utf-8")
    text = custream("report", "--brief", "a b/it's.json", cwd=tmp_path, env={"COLUMNS": "5000"}).stdout
    commands = next_of(text)
    assert commands[1] == "custream report --critical-path 'a b/it'\\''s.json'"
    for command in commands[1:3]:
        words = shlex.split(command)
        assert custream(*words[1:], cwd=tmp_path).returncode == 0


def test_a_file_name_that_would_break_the_line(tmp_path):
    """It is written with numbers, and a shell reads it as the name again."""
    (tmp_path / "a\nb").mkdir()
    (tmp_path / "a\nb/it's.json").write_text(synchronous(20).text(), encoding="utf-8")
    text = custream("report", "--brief", "a\nb/it's.json", cwd=tmp_path, env={"COLUMNS": "5000"}).stdout
    command = next_of(text)[1]
    assert command == "custream report --critical-path $'a\\012b/it\\047s.json'"
    told = subprocess.run(["bash", "-c", command.replace("custream report --critical-path", "printf %s")], capture_output=True, text=True, check=True).stdout
    assert told == "a\nb/it's.json"


# --- nothing is known ---

def test_a_trace_without_gpu_work_says_so(tmp_path):
    story = Story()
    story.stream(13)
    story.call("cuStreamSynchronize", 10, 500, **story.on(13))
    text = text_of(tmp_path, story)
    assert text.startswith("app (process 4242) ran for 500.0 us.\nThe trace has no GPU work.\n")
    assert "computed" not in text and "What costs most" not in text
