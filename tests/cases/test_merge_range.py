"""`custream merge --range`: the calls of one range, and their work whenever it ran. The truth is by construction."""
import gzip
import json

import pytest

from tests.handmade import GOOD, HEADER, HOST, custream, good_trailer, render, slice_

THREAD, LANE = 4250, 1300
CALL = {"cs.stream": 13}


def call(number, ts):
    return slice_("cuda_driver", "cuLaunchKernel", HOST, THREAD, ts, 1, **CALL, correlation=number)


def kernel(number, ts):
    return slice_("kernel", f"kernel {number}", 0, LANE, ts, 5, device=0, context=1, stream=13, correlation=number)


def launch(number, ts, work_ts):
    """A call and its work, with an arrow from one to the other."""
    return call(number, ts) | {"bind_id": number, "flow_out": True}, kernel(number, work_ts) | {"bind_id": number, "flow_in": True}


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
    assert [(row["bind_id"], "flow_in" in row) for row in whole["traceEvents"] if "bind_id" in row] == [(2, False), (2, True)]
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
    (ROWS[:5], HEADER, "does not have the range: it has another name, recording was off, or the file is full"),
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


@pytest.mark.parametrize("pack", [False, True], ids=["plain", "gzip"])
def test_what_stands_before_the_range_is_passed_over(tmp_path, pack):
    """With the length that the file had when the range began. Old rows here are none that can be read, so that whoever reads them says so."""
    earlier = [call(number, number) for number in range(100, 4000)]
    path = trace(tmp_path / "t.json", *earlier, *launch(1, 5000, 5010), annotation("step", 4990, 50))
    text = path.read_text()
    began = text.index('"step"')
    assert began > 300_000
    path.write_text(text[:1000] + text[1000:100_000].replace('"correlation":', '"correlation"?') + text[100_000:])
    if pack:
        path = path.with_name("t.json.gz")
        path.write_bytes(gzip.compress(path.with_name("t.json").read_bytes()))
        began = path.stat().st_size
    done, whole = cut(path, "step", f"--from-byte={began}")
    if pack:  # the file's bytes are fewer than the text's: less is passed over, and nothing too much
        assert done.returncode == 2
        return
    assert (done.returncode, done.stderr) == (0, "")
    assert [row["name"] for row in whole["traceEvents"] if row["ph"] == "X"] == ["cuLaunchKernel", "kernel 1", "step"]
    assert cut(path)[0].returncode == 2


@pytest.mark.parametrize("words, said", [(["--from-byte=x", "--range=a"], "--from-byte='x': a number of bytes is wanted"), (["--from-byte=200000"], "--from-byte goes with --range")])
def test_a_wrong_byte(tmp_path, words, said):
    done = custream("merge", *words, "-o", tmp_path / "o.json", trace(tmp_path / "t.json", *ROWS))
    assert (done.returncode, done.stderr) == (2, f"custream merge: {said}\n")
