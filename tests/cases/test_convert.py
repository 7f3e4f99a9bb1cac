"""`custream convert` and files of other tools: what is very long or very many comes along, and what Perfetto's format has no place for is refused."""
import json

import pytest

from tests.pftrace import convert, custream, events_of

SLICE = {"ph": "X", "cat": "c", "name": "n", "pid": 100, "tid": 1, "ts": 1, "dur": 2, "args": {}}
COUNTER = {"ph": "C", "name": "c", "pid": 100, "tid": 1, "ts": 1, "args": {"x": 1}}


def made(path, *rows):
    """A file of another tool; a row is a dictionary, or a text as it is."""
    texts = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text('{"baseTimeNanoseconds":5,"traceEvents":[\n' + ",\n".join(texts) + "\n]}\n", encoding="utf-8")
    return path


def assert_same_there_and_back(tmp_path, *rows):
    path = made(tmp_path / "made.json", *rows)
    back = convert(convert(path, tmp_path / "there.pftrace"), tmp_path / "back.json")
    assert events_of(back) == events_of(path)


# ---- What is very long, or very many ----

@pytest.mark.parametrize("values, name", [(300, "n" * 500), (10000, "c"), (50000, "c")], ids=["300", "10000", "50000"])
def test_a_counter_of_many_values(tmp_path, values, name):
    """Each value brings a track along. There was room for a few hundred of them, and the heap behind it was overwritten."""
    assert_same_there_and_back(tmp_path, SLICE, {**COUNTER, "name": name, "args": {f"{i:x}": i for i in range(values)}}, COUNTER)


def test_counters_of_many_values_merged(tmp_path):
    paths = [made(tmp_path / f"{pid}.json", {**COUNTER, "pid": pid, "args": {f"{i:x}": i for i in range(10000)}}) for pid in (1, 2)]
    done = custream("merge", "-o", tmp_path / "all.pftrace", *paths)
    assert done.returncode == 0, done.stderr
    rows = [row for row in events_of(convert(tmp_path / "all.pftrace", tmp_path / "all.json"))[0] if row["ph"] == "C"]
    assert [row["args"] for row in rows] == [{f"{i:x}": i for i in range(10000)}] * 2


def test_work_that_waited_for_very_many(tmp_path):
    """Each of them is a short number in the JSON form, and one of eight bytes where that stands for several pieces of work."""
    def work(ts, **args):
        return {**SLICE, "cat": "gpu_memcpy", "pid": 0, "tid": 100, "ts": ts, "args": {"stream": 7, "correlation": 1, **args}}
    rows = [work(1), work(5), {**work(9), "args": {"stream": 8, "correlation": 2, "event_wait_ids": [1] * 500000}}]
    path = made(tmp_path / "made.json", *rows)
    back = convert(convert(path, tmp_path / "there.pftrace", "--render-stages"), tmp_path / "back.json")
    assert events_of(back) == events_of(path)


@pytest.mark.parametrize("length", [4096, 5000, 8000, 16384, 100000, 1000000])
def test_arguments_that_are_long(tmp_path, length):
    """A text, a key or a list of more than some 5000 bytes was left out."""
    long = "x" * length
    assert_same_there_and_back(tmp_path, SLICE, {**SLICE, "args": {"before": 1, "a": long, "behind": 2}}, {**SLICE, "args": {long: 1, "b": {long: 2}}},
                               {**SLICE, "args": {"kernel": "\u20ac" * length, long: long, "numbers": list(range(length // 10)), "last": 1.5}}, SLICE)


@pytest.mark.parametrize("row", [SLICE, {**SLICE, "ph": "i", "s": "t"}, {**SLICE, "ph": "b", "id2": {"local": 3}}, {**SLICE, "ph": "B"}], ids=lambda row: row["ph"])
def test_arguments_that_are_many(tmp_path, row):
    """What did not fit 16 KiB together was left out."""
    row = {key: value for key, value in row.items() if key != "dur" or row["ph"] == "X"}
    assert_same_there_and_back(tmp_path, row, {**row, "args": {f"key {i}": i for i in range(5000)}}, {**row, "args": {f"text {i}": f"{i}" + "t" * 1000 for i in range(300)}},
                               {**row, "args": {f"list {i}": [[i, "a"], 0.5, f"0x{i + 1:x}"] for i in range(3000)}}, row)
