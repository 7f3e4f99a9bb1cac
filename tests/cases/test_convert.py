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
