"""`custream report` of a trace in parts: whichever are given, in whatever order, nothing counts twice and what is not there is said."""
import json

import pytest

from tests.apprun import calls_of
from tests.handmade import GPU_TOTALS, HEADER, HOST, custream, cut_by_key, cut_by_note, render, slice_, trailer_of
from tests.madetrace import MAIN, Made, by, only, process_range
from tests.report import Report


def part(tmp_path, number, rows, name=None, **totals):
    """A part of a trace, with these rows behind those that name its threads."""
    made = Made()
    made.stream(13)
    header = [HEADER[0] + f'"part":{number},', *HEADER[1:]]
    trailer = trailer_of({"lost_records": 0, "part": number, "continues": True, "parts_deleted": 0, **totals})
    path = tmp_path / (name or f"t.{number}.json")
    path.write_text(render(dict(enumerate(made.metas + made.rows + rows)), header, trailer))
    return path


def pushed(name, at, took, **args):
    return slice_("user_annotation", name, HOST, MAIN, at, took, **args)


def call(at):
    return slice_("cuda_driver", "cuCtxSetCurrent", HOST, MAIN, at, 5)


def run_of(*paths):
    return only(tables_of(*paths)["run"])


def tables_of(*paths):
    done = custream("report", "--json", *paths)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return json.loads(done.stdout)["tables"]


@pytest.fixture(params=[cut_by_key, cut_by_note])
def three(tmp_path, request):
    """A range in another of its name over all three parts, one over the end of the first, one of the process over all, and one inside the last."""
    process = process_range("p", 1, 10, 100)
    first, middle, last = map(request.param, ("goes_on", "continued_goes_on", "continued"))
    pieces = [{**process[0], "args": last}, {**process[1], "args": first}]
    return [part(tmp_path, 1, [call(1), pushed("f", 20.5, 79.5, **first), pushed("f", 20, 80, **first), process[0], {**pieces[1], "ts": 250}]),
            part(tmp_path, 2, [pushed("f", 100.001, 49.999, **last), pushed("f", 100, 100, **middle), call(199),
                               {**pieces[0], "ts": 250}, {**pieces[1], "ts": 250.001}]),
            part(tmp_path, 3, [pushed("f", 200, 60, **last), pushed("f", 210, 10), call(290), {**pieces[0], "ts": 250}, {**process[1], "ts": 280}], continues=False)]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_a_range_that_is_cut_is_one(three, order):
    tables = tables_of(*(three[i] for i in order))
    ranges = by(tables["ranges"], "name")
    assert [ranges["f"][key] for key in ("times", "total_ns", "shortest_ns", "longest_ns")] == [3, 240_000 + 129_500 + 10_000, 10_000, 240_000]
    assert [ranges["p"][key] for key in ("times", "total_ns")] == [1, 270_000]
    assert only(tables["run"])["whole"] == "yes"


def test_a_piece_whose_rest_is_not_there_stays_a_piece(three):
    """The range of the last part may be another one than that of the first."""
    assert by(tables_of(three[0], three[2])["ranges"], "name")["f"]["times"] == 4


@pytest.mark.parametrize("given,missing", [((0, 2), "part 2 is not among the files"), ((2,), "parts 1 to 2 are not among the files"),
                                           ((1,), "part 1 is not among the files; another part follows"), ((1, 0), "another part follows")])
def test_parts_that_are_not_there(three, given, missing):
    assert run_of(*(three[i] for i in given))["whole"] == missing


def test_parts_that_were_deleted(tmp_path):
    paths = [part(tmp_path, 7, [call(1)], parts_deleted=5), part(tmp_path, 8, [call(9)], parts_deleted=6, continues=False)]
    assert run_of(*paths)["whole"] == "6 parts deleted"


def test_losses_of_all_parts_are_told(tmp_path):
    gpu = {**GPU_TOTALS, "without_times": 2, "launches_without_kernel": 1}
    paths = [part(tmp_path, 1, [call(1)], gpu=gpu), part(tmp_path, 2, [call(9)], continues=False)]
    expected = "2 pieces of GPU work without times; 1 launch without its kernel"
    assert run_of(*paths)["whole"] == expected == run_of(*reversed(paths))["whole"]


def lossy(tmp_path, number, calls=0, works=0, in_all=None, **totals):
    """A part that lost so much, and what all parts up to it did: calls, and work on the GPU."""
    lost = slice_("cs_loss", "lost", HOST, MAIN, number, 0.5, count=calls, gpu_work=works, cause="ring full")
    in_all = dict(zip(("lost_in_all_parts", "gpu_work_lost_in_all_parts"), in_all or ()))
    return part(tmp_path, number, [call(10 * number)] + [lost] * bool(calls or works), **{"lost_records": calls, "gpu": {**GPU_TOTALS, "lost": works}, **in_all, **totals})


def losses_of(*paths):
    """What the table says is lost, and the metric."""
    tables = tables_of(*paths)
    row = only(tables["run"])
    return row["lost_calls"], row["lost_works"], by(tables["metrics"], "key")["lost"]["value"]


def test_what_deleted_parts_lost_is_lost(tmp_path):
    paths = [lossy(tmp_path, 4, 2, 0, (92, 7), parts_deleted=2), lossy(tmp_path, 5, 1, 3, (93, 10), parts_deleted=3, continues=False)]
    assert losses_of(*paths) == losses_of(*reversed(paths)) == losses_of(paths[1]) == (93, 10, 103)
    told = ("3 parts deleted; 3 calls lost; 90 calls lost in parts that are not among the files; "
            "3 pieces of GPU work lost; 7 pieces of GPU work lost in parts that are not among the files")
    assert run_of(*paths)["whole"] == told
    done = custream("report", "--fail-if=lost > 0", *paths)
    assert done.returncode == 3 and "lost is 103" in done.stderr and f"Missing from the trace: {told}." in " ".join(done.stdout.split())


def test_a_part_that_lost_nothing_of_a_run_that_did(tmp_path):
    """Also of one that the user chose, where a later one may have lost something."""
    first, second, last = lossy(tmp_path, 1, 0, 0, (0, 0)), lossy(tmp_path, 2, 1, 0, (1, 0)), lossy(tmp_path, 3, 0, 0, (1, 0), continues=False)
    assert losses_of(last) == losses_of(first, last) == losses_of(first, second, last) == (1, 0, 1)
    assert run_of(first, last)["whole"] == "part 2 is not among the files; 1 call lost in parts that are not among the files"
    assert run_of(first, second, last)["whole"] == "1 call lost"
    assert losses_of(first) == (0, 0, None) and losses_of(first, second) == (1, 0, None)
    for given in ((first,), (second,), (last,), (first, second), (first, last), (first, second, last)):
        assert custream("report", "--fail-if=lost > 0", *given).returncode == 3


def test_a_run_in_parts_that_lost_nothing(tmp_path):
    paths = [lossy(tmp_path, 3, 0, 0, (0, 0), parts_deleted=2), lossy(tmp_path, 4, 0, 0, (0, 0), parts_deleted=2, continues=False)]
    assert losses_of(*paths) == losses_of(paths[1]) == (0, 0, 0) and custream("report", "--fail-if=lost > 0", *paths).returncode == 0


def test_a_part_that_does_not_know_of_those_before_it(tmp_path):
    """It was recovered without its neighbour."""
    paths = [lossy(tmp_path, 2, 5, 0, (50, 4), parts_deleted=1), lossy(tmp_path, 3, 2, 1, (2, 1), continues=False, complete=False, recovered={"cut_bytes": 9})]
    assert losses_of(*paths) == losses_of(*reversed(paths)) == (52, 5, 57)


def missed(tmp_path, number, launches=0, works=0, in_all=None, **totals):
    """A part with so much work without times, and what all parts up to it have."""
    in_all = {} if in_all is None else {"gpu_work_without_times_in_all_parts": in_all}
    gpu = {**GPU_TOTALS, "without_times": works, "launches_without_kernel": launches}
    return part(tmp_path, number, [call(number)], gpu=gpu, **in_all, **totals)


@pytest.mark.parametrize("own,in_all,missing", [
    ([(1, 0), (0, 0)], [1, 0], "yes"), ([(3, 0), (0, 0)], [3, 1], "1 launch without its kernel"), ([(0, 3), (0, 0)], [3, 2], "2 pieces of GPU work without times"),
    ([(2, 3), (0, 0)], [5, 4], "4 pieces of GPU work without times"),
    ([(1, 2), (0, 0)], [3, 3], "2 pieces of GPU work without times; 1 launch without its kernel")],
    ids=["all came", "some launches came", "some work came", "either may have come", "nothing came"])
def test_work_that_came_in_a_later_part_is_not_missing(tmp_path, own, in_all, missing):
    paths = [missed(tmp_path, n + 1, *own[n], in_all[n], continues=not n) for n in range(2)]
    assert run_of(*paths)["whole"] == missing == run_of(*reversed(paths))["whole"]


def test_work_that_may_come_in_a_part_that_is_not_there(tmp_path):
    paths = [missed(tmp_path, 1, 2, 0, 2), missed(tmp_path, 2, 1, 0, 2), missed(tmp_path, 3, 0, 0, 1, continues=False)]
    assert run_of(*paths)["whole"] == "1 launch without its kernel"
    assert run_of(*paths[:2])["whole"] == "another part follows; at most 2 launches without their kernels"
    assert run_of(paths[0])["whole"] == "another part follows; at most 2 launches without their kernels"
    assert run_of(paths[1])["whole"] == "part 1 is not among the files; another part follows; at most 2 pieces of GPU work without times in parts 1 to 2"
    assert run_of(paths[0], paths[2])["whole"] == "part 2 is not among the files; 1 piece of GPU work without times in parts 1 to 3"


def test_a_part_that_was_recovered_takes_nothing_back(tmp_path):
    """It knows of no work that it misses, and of no part before it that does not stand beside it."""
    first = missed(tmp_path, 1, 2, 0, 2)
    last = missed(tmp_path, 2, 0, 0, 0, continues=False, complete=False, recovered={"cut_bytes": 9})
    assert run_of(first, last)["whole"].endswith("; at most 2 launches without their kernels")


def test_no_part_counts_twice(three):
    for command in (("report", *three, three[1]), ("diff", three[0], "--after", *three, three[1])):
        done = custream(*command)
        assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
        assert f"{three[1]}: part 2 of the trace, as a file before it" in done.stderr


def test_no_trace_counts_twice(tmp_path):
    made = Made()
    made.launch("k", 10, 20, 5)
    paths = [tmp_path / "t.json", tmp_path / "copy.json"]
    for path in paths:
        path.write_text(made.text())
    done = custream("report", *paths)
    assert done.returncode == 2 and f"{paths[1]}: the same trace as a file before it" in done.stderr and done.stderr.count("\n") == 1


def test_parts_of_a_program(run_app):
    """Against its own count: calls, kernels and ranges are what they are without parts."""
    env = {"CUSTREAM_FULL": "block", "CUSTREAM_TRACE_MAX": "1M,rotate:9999"}
    run = run_app(["parts", "all", "2000"], env=env).check()
    stem = run.trace.name.split(".json")[0]
    parts = [path for path in run.trace.parent.iterdir() if path.name.startswith(stem) and ".json" in path.name]
    assert len(parts) > 3
    report = Report(*sorted(parts))
    assert only(report["run"])["whole"] == "yes"
    assert only(report["run"])["calls"] == calls_of(run.stdout).total()
    assert {row["name"]: row["times"] for row in report["ranges"]} == {"all of the process": 1, "outer": 1, "inner": 1, "all of the thread": 1}
