"""Work on the GPU whose times never come: each piece is counted, and once."""
import json
import re

import pytest

from tests.apprun import read
from tests.cases.test_closing import lines, only_line, run_under


def gpu_of(path):
    return read(path).totals["gpu"]


@pytest.mark.parametrize("kind", ["kernel", "graph", "copy", "set"])
def test_what_is_enqueued_behind_the_last_flush(build, tmp_path, kind):
    """Nobody can say "nothing lost" of it, whatever it is."""
    done = run_under(build, tmp_path, "afterwards", kind, options=["-o", "t.json"])
    gpu = gpu_of(tmp_path / "t.json")
    assert done.returncode == 0 and (gpu["without_times"], gpu["launches_without_kernel"], gpu["kernels"]) == (7, 0, 1), gpu
    assert ", 7 GPU operations without times." in only_line(done)


def test_launches_that_do_not_end(build, tmp_path):
    done = run_under(build, tmp_path, "afterwards", "pending", options=["-o", "t.json"])
    assert done.returncode == 0 and gpu_of(tmp_path / "t.json")["without_times"] == 7 and ", 7 GPU operations without times" in only_line(done)


@pytest.mark.parametrize("closes", [[], ["closed"]], ids=["open", "closed"])
def test_launches_behind_the_begin_of_a_window(build, tmp_path, closes):
    """What was enqueued before it may come and is hidden. What is enqueued in it should come, also in its first moment."""
    done = run_under(build, tmp_path, "afterwards", "window", *closes, options=["-o", "t.json"], env={"CUSTREAM_WINDOW": "profiler"})
    trace = read(tmp_path / "t.json")
    launches = trace.host("cuLaunchKernel")
    assert done.returncode == 0 and len(launches) == 7 == trace.totals["gpu"]["without_times"] and ", 7 GPU operations without times" in only_line(done)


def test_a_full_trace_counts_nothing_twice(build, tmp_path):
    """What comes for launches in it when it is full is not written, and said to be that."""
    done = run_under(build, tmp_path, "burst", 2, 30000, options=["-o", "t.json", "--trace-max=1M"])
    trace = read(tmp_path / "t.json")
    assert trace.totals["not_written"]["gpu_work"] > 1000 and trace.totals["gpu"]["without_times"] == trace.totals["gpu"]["launches_without_kernel"] == 0
    assert "without times" not in lines(done)[-1]


def test_all_parts_count_together(build, tmp_path):
    env = {"CUSTREAM_FAKE_CUPTI_ZERO": "100"}
    done = run_under(build, tmp_path, "burst", 1, 6000, 700, options=["-o", "t.json", "--trace-max=1M,rotate:99", "--full=block"], env=env)
    parts = sorted((read(path).totals for path in tmp_path.glob("t*.json")), key=lambda totals: totals["part"])
    sums = [part["gpu"]["without_times"] + part["gpu"]["launches_without_kernel"] for part in parts]
    assert len(parts) > 1 and sum(map(bool, sums)) > 1
    assert [part["gpu_work_without_times_in_all_parts"] for part in parts] == [sum(sums[:n + 1]) for n in range(len(sums))]
    assert f", {sum(sums)} GPU operations without times." in only_line(done)


def without(nth):
    return {"CUSTREAM_POLICY": json.dumps({"rules": [{"match": {"nth": nth, "call": "cuStreamCreate*"}, "set": {"record": False}}]})}


@pytest.mark.parametrize("argv, env", [([], without(1)), (["chain"], without(3)), (["record"], {"CUSTREAM_WINDOW": "profiler"}), (["wait"], {"CUSTREAM_WINDOW": "profiler"}),
                                       (["within"], {"CUSTREAM_WINDOW": "profiler"}), (["within", "again"], {"CUSTREAM_WINDOW": "profiler"})],
                         ids=["origin", "chain", "record", "wait", "within", "again"])
def test_captures_of_which_not_all_is_recorded(build, tmp_path, argv, env):
    """A stream that is used in captures alone has no work, whether its part in them is known or not."""
    done = run_under(build, tmp_path, "captured_aside", *argv, options=["-o", "t.json"], env=env)
    gpu = gpu_of(tmp_path / "t.json")
    assert done.returncode == 0 and gpu["without_times"] == gpu["launches_without_kernel"] == 0, gpu
    assert re.search(r"nothing lost\. Next:", only_line(done))
