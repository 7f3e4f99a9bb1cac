"""What a run's replay says beside its findings: the speed-up of a comparison, gates on calls, and the longest path."""
import json

import pytest

from tests.handmade import custream
from tests.tracestory import LEGACY, MAIN, Story

MS = 1000  # microseconds
BASE = "1760000000000000000"


def kernels(count, lasted, **more):
    story, end = Story(), 5
    story.stream(13)
    for i in range(count):
        end = story.kernel(13, 3 * i, end, lasted, **more)
    return story


def written(tmp_path, name, story, run=0):
    """Files of one `run` are its parts."""
    path = tmp_path / name
    path.write_text(story.text().replace(BASE, str(int(BASE) + run)), encoding="utf-8")
    return path


def first_words(*paths):
    return " ".join(custream("diff", *paths).stdout.split("\nBefore:")[0].split())


def test_the_speed_is_said_first(tmp_path):
    slow, fast = written(tmp_path, "slow.json", kernels(20, 1000)), written(tmp_path, "fast.json", kernels(20, 250))
    assert first_words(slow, fast) == "After took 5.005 ms, Before 20.00 ms: 4.00 times as fast."
    assert first_words(fast, slow) == "After took 20.00 ms, Before 5.005 ms: 4.00 times as long."
    nearly = written(tmp_path, "nearly.json", kernels(20, 1050))
    assert first_words(slow, nearly).startswith("Before:"), "5 % of one run are no news"


def test_runs_of_one_side_that_are_as_long_as_one_of_the_other(tmp_path):
    before = [written(tmp_path, f"b{us}.json", kernels(20, us), us) for us in (1000, 400)]
    after = [written(tmp_path, f"a{us}.json", kernels(20, us), us) for us in (500, 300)]
    assert first_words(*before, "--after", *after).startswith("Before:")


def test_what_is_gone_is_named_with_its_worth(tmp_path):
    def story(mended):
        told = Story()
        told.stream(13)
        end = told.kernel(13, 0, 5, 1000)
        for i in range(4):
            end = told.kernel(13, 8 + 8 * i, end if mended else told.callback(13, 4 + 8 * i, end, 500), 1000)
        return told
    words = first_words(written(tmp_path, "a.json", story(False)), written(tmp_path, "b.json", story(True)))
    assert words == "After took 5.005 ms, Before 7.005 ms: 1.40 times as fast. Gone is CS116 (host functions held a stream), alone worth 2.000 ms."


def test_other_machines_are_said(tmp_path):
    one, other = kernels(20, 1000), kernels(20, 1000)
    other.devices = [{"id": 0, "name": "another GPU", "numSms": 2}]
    said = custream("diff", written(tmp_path, "a.json", one), written(tmp_path, "b.json", other)).stdout
    assert "The runs are of different GPUs: GPU and another GPU." in said


@pytest.mark.parametrize("condition, status", [("calls(cuLaunchKernel) > 19", 3), ("calls(cuLaunchKernel) > 20", 0), ("calls(cuCtxSynchronize) > 0", 0),
                                               ("calls(cuLaunch*) == 20", 3), ("calls() > 0", 2), ("calls(cuLaunchKernel > 0", 2),
                                               ("calls(cuLaunchKernle) > 0", 3), ("calls(cudaDeviceSynchronize) > 0", 3), ("calls(cuNone*) > 0", 3)])
def test_a_gate_on_calls(tmp_path, condition, status):
    done = custream("report", "--brief", f"--fail-if={condition}", written(tmp_path, "a.json", kernels(20, 100)))
    assert done.returncode == status, done.stderr


def test_a_gate_on_calls_of_the_runtime(tmp_path):
    story = kernels(2, 100)
    story.call("cudaStreamSynchronize", 30, 100)
    path = written(tmp_path, "a.json", story)
    assert custream("report", "--brief", "--fail-if=calls(cudaDeviceSynchronize) > 0", path).returncode == 0
    assert custream("report", "--brief", "--fail-if=calls(cudaDeviceSynchronise) > 0", path).returncode == 3


def test_names_with_what_cuda_adds(tmp_path):
    story = kernels(2, 100)
    story.call("cuCtxSynchronize_v2", 30, 100)
    path = written(tmp_path, "a.json", story)
    assert custream("report", "--brief", "--fail-if=calls(cuCtxSynchronize) == 1", path).returncode == 3
    row, = json.loads(custream("report", "--json", "--what-if=no cuCtxSynchronize", path).stdout)["tables"]["what_if"]
    assert row["gain_high_ns"] == 0, "behind the last work a wait stays"


def test_the_longest_path(tmp_path):
    """100 us of own code, a kernel of 1 ms on one stream beside a short one on another, the wait for it, and a call of 50 us."""
    story = Story()
    story.stream(13), story.stream(14)
    story.call("cuMemAlloc_v2", 0, 10)
    story.kernel(13, 110, 115, 1000, name="long")
    story.kernel(14, 113, 118, 200, name="short")
    at = story.call("cuStreamSynchronize", 116, 1004, **{"cs.stream": 13})
    story.call("cuMemFree_v2", at, 50)
    rows = json.loads(custream("report", "--json", "--critical-path", written(tmp_path, "a.json", story)).stdout)["tables"]["critical_path"]
    path = {(row["what"], row["name"]): row["path_ns"] / 1000 for row in rows}
    assert path[("kernel", "long")] == 1000 and ("kernel", "short") not in path
    assert path[("own code before", "cuLaunchKernel")] == 100 and path[("call", "cuMemFree_v2")] == 50
    assert sum(path.values()) == pytest.approx(1170) and sum(row["share"] for row in rows) == pytest.approx(1)


def test_the_path_goes_over_the_legacy_stream_and_threads(tmp_path):
    """A kernel on the legacy stream holds the one behind it; another thread goes on when the first has waited for both."""
    story = Story()
    story.stream(LEGACY), story.stream(13, blocking=True)
    end = story.kernel(LEGACY, 0, 5, 1000, name="a")
    end = story.kernel(13, 4, end, 1000, name="b")
    woken = story.call("cuStreamSynchronize", 8, end + 4 - 8, **{"cs.stream": 13}) + 20
    story.call("cuCtxGetCurrent", 1, 2, thread=MAIN + 1)
    story.kernel(13, woken, woken + 5, 500, name="c", thread=MAIN + 1)
    rows = json.loads(custream("report", "--json", "--critical-path", written(tmp_path, "a.json", story)).stdout)["tables"]["critical_path"]
    path = {(row["what"], row["name"]): row["path_ns"] / 1000 for row in rows}
    assert [path[("kernel", name)] for name in "abc"] == [1000, 1000, 500]


FULL = {"grid": [4, 1, 1], "block": [1024, 1, 1], "registers per thread": 16, "shared memory": 0}  # two multiprocessors hold four such blocks
SMALL = {"grid": [1, 1, 1], "block": [32, 1, 1], "registers per thread": 16, "shared memory": 0}


@pytest.mark.parametrize("shape, found", [(FULL, []), (SMALL, ["CS101", "CS102"])])
def test_kernels_that_fill_the_gpu_gain_nothing_from_more_streams(tmp_path, shape, found):
    """A short kernel on the legacy stream keeps two streams apart: for nothing, if their kernels had room for each other."""
    story, end = Story(), 10
    story.stream(LEGACY), story.stream(13, blocking=True), story.stream(14, blocking=True)
    for i in range(12):
        end = story.kernel(13 + i % 2, 6 * i, end, 1000, **shape)
        end = story.kernel(LEGACY, 6 * i + 3, end, 2, name="short", **SMALL)
    tables = json.loads(custream("report", "--json", written(tmp_path, "a.json", story)).stdout)["tables"]
    assert [row["id"] for row in tables["findings"] if row["id"] in ("CS101", "CS102")] == found, tables["findings"]
    assert found or tables["findings"][0]["id"] == "CS123"


def test_copies_in_one_direction_gain_nothing_from_more_streams(tmp_path):
    story, end = Story(), 10
    story.stream(LEGACY), story.stream(13, blocking=True)
    for i in range(8):
        end = story.copy((LEGACY, 13)[i % 2], 3 * i, end, 1000)
    tables = json.loads(custream("report", "--json", written(tmp_path, "a.json", story)).stdout)["tables"]
    assert not {row["id"] for row in tables["findings"]} & {"CS101", "CS102", "CS114", "CS122"}, tables["findings"]


def test_streams_that_take_turns_are_counted_once(tmp_path):
    """Work on the legacy stream and a blocking one by turns, 1 ms each: side by side half of it is gained, not all but the first."""
    story, end = Story(), 50
    story.stream(LEGACY), story.stream(13, blocking=True)
    for i in range(3):
        end = story.kernel(LEGACY, 6 * i, end, 1 * MS, "a")
        end = story.kernel(13, 6 * i + 3, end, 1 * MS, "b")
    assert [(row["id"], row["gain_high_ns"]) for row in story.report(tmp_path)["findings"] if row["id"] in ("CS101", "CS102")] == [
        ("CS101", pytest.approx(3_000_000, rel=0.01)), ("CS102", pytest.approx(3_000_000, rel=0.01))]


REAL = ["demo-h200", "known-events-h200", "known-h200", "known-nodes-h200", "torch-streams-h200"]


@pytest.mark.parametrize("name", REAL)
def test_nothing_gains_more_than_the_time_that_it_comes_from(root, name):
    """Traces of a real GPU: a finding gains less than the run took beside its longest kernel."""
    done = custream("report", "--json", root / f"traces/{name}.json.gz")
    tables = json.loads(done.stdout)["tables"]
    longest = max(row["longest_ns"] for row in tables["kernels"])
    for row in tables["findings"]:
        if row["gain_high_ns"] is not None:
            assert 0 <= row["gain_low_ns"] <= row["gain_high_ns"] <= tables["run"][0]["wall_ns"] - longest and row["gain_high_ns"], row
