"""`custream merge --range`: the calls of one range, and their work whenever it ran. The truth is by construction."""
import json

import pytest

from tests.handmade import GOOD, HEADER, HOST, custream, flow, good_trailer, render, slice_

THREAD, LANE = 4250, 13
CALL = {"cs.stream": 13}


def call(number, ts):
    return slice_("cuda_driver", "cuLaunchKernel", HOST, THREAD, ts, 1, **CALL, correlation=number)


def kernel(number, ts):
    return slice_("kernel", f"kernel {number}", 0, LANE, ts, 5, device=0, context=1, stream=13, correlation=number)


def launch(number, ts, work_ts):
    """A call and its work, each followed by its end of their arrow."""
    return call(number, ts), flow("s", number, HOST, THREAD, ts), kernel(number, work_ts), flow("f", number, 0, LANE, work_ts)


def annotation(name, ts, dur):
    return slice_("user_annotation", name, HOST, THREAD, ts, dur)


def trace(path, *rows):
    names = [row for row in GOOD.values() if row["ph"] == "M"]
    path.write_text(render(dict(enumerate([*names, *rows])), trailer=good_trailer({"complete": False})))
    return path


def cut(path, name="step", *options):
    out = path.with_name("out.json")
    done = custream("merge", f"--range={name}", "-o", out, *options, path)
    return done, json.loads(out.read_text()) if out.exists() else None


SYNC = slice_("cuda_driver", "cuCtxSynchronize", HOST, THREAD, 120, 2)
ROWS = (*launch(1, 80, 105), *launch(2, 110, 300), SYNC, annotation("step", 100, 50), *launch(3, 160, 162))  # 1 runs in the range, 2 is called in it


def test_calls_of_the_range_and_their_work(tmp_path):
    done, whole = cut(trace(tmp_path / "t.json", *ROWS))
    assert (done.returncode, done.stderr) == (0, "")
    slices = [(row["name"], row["ts"]) for row in whole["traceEvents"] if row["ph"] == "X"]
    assert slices == [("cuLaunchKernel", 110), ("kernel 2", 300), ("cuCtxSynchronize", 120), ("step", 100)]
    assert [(row["ph"], row["id"]) for row in whole["traceEvents"] if row["ph"] in "sf"] == [("s", 2), ("f", 2)]
    assert whole["metadata"]["cut"]["range"] == "step" and whole["totals"]["complete"] is True
    done = custream("check", tmp_path / "out.json")
    assert (done.returncode, done.stderr) == (0, "") and ": ok" in done.stdout
    done = custream("report", tmp_path / "out.json")
    assert (done.returncode, done.stderr) == (0, "") and "cut" not in done.stdout


def test_the_newest_range_of_that_name(tmp_path):
    name = 'a "test"\\ [ü]'
    _, whole = cut(trace(tmp_path / "t.json", call(1, 10), annotation(name, 9, 3), call(2, 20), annotation(name, 19, 3), call(3, 30), annotation("other", 29, 3)), name)
    assert [row["ts"] for row in whole["traceEvents"] if row.get("name") == "cuLaunchKernel"] == [20]


def test_a_range_without_calls(tmp_path):
    done, whole = cut(trace(tmp_path / "t.json", call(1, 10), annotation("step", 20, 5), kernel(1, 21)))
    assert (done.returncode, whole) == (1, None) and done.stderr == f"custream merge: {tmp_path}/t.json: no call of CUDA was made in the range\n"


GAP = slice_("cs_window", "not recorded", HOST, 0, 105, 10, cause="custream ctl off")


@pytest.mark.parametrize("rows, header, words", [
    (ROWS[:9], HEADER, "does not have the range: recording was off, or the file is full"),
    ((*ROWS, GAP), HEADER, "recording was off in part of it (custream ctl off)"),
    (ROWS, [HEADER[0].replace("\"baseTime", "\"part\":2,\"baseTime"), *HEADER[1:]], "rotates: take CUSTREAM_TRACE_MAX without rotate"),
], ids=["missing", "gap", "part"])
def test_what_cannot_be_cut(tmp_path, rows, header, words):
    path = trace(tmp_path / "t.json", *rows)
    path.write_text(path.read_text().replace("\n".join(HEADER), "\n".join(header), 1))
    done, whole = cut(path)
    assert (done.returncode, whole) == (2, None) and done.stderr.endswith(words + "\n"), done.stderr


@pytest.mark.parametrize("options", [["--window=1,2"], ["--clocks=none"], ["more.json"]])
def test_of_one_trace(tmp_path, options):
    done, whole = cut(trace(tmp_path / "t.json", *ROWS), "step", *options)
    assert (done.returncode, whole) == (2, None) and "--range: of one trace, without --window and --clocks\n" in done.stderr
