"""`custream convert` and files of other tools: what is very long or very many comes along, and what Perfetto's format has no place for is refused."""
import json
import re

import pytest

from tests.perfetto import assert_clean
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
    def work(ts, **args):
        return {**SLICE, "cat": "gpu_memcpy", "pid": 0, "tid": 100, "ts": ts, "args": {"stream": 7, "correlation": 1, **args}}
    rows = [work(1), work(5), {**work(9), "args": {"stream": 8, "correlation": 2, "event_wait_ids": [1] * 500000}}]
    path = made(tmp_path / "made.json", *rows)
    back = convert(convert(path, tmp_path / "there.pftrace"), tmp_path / "back.json")
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


# ---- What other tools say, and trace files of custream's do not ----

def without(row, *names):
    return {key: value for key, value in row.items() if key not in names}


INSTANT, SPAN = {**without(SLICE, "dur"), "ph": "i", "s": "t"}, {**without(SLICE, "dur"), "ph": "b", "id2": {"local": 3}}
BEGIN, ARROW = {**without(SLICE, "dur"), "ph": "B"}, {**without(SLICE, "dur", "args"), "ph": "s", "id": 5}
END = {**ARROW, "ph": "f", "bp": "e"}
NAMED = {"ph": "M", "name": "thread_name", "pid": 100, "tid": 1, "args": {"name": "x"}}
ORDERED = {**NAMED, "name": "thread_sort_index", "args": {"sort_index": 1}}


@pytest.mark.parametrize("row", [SLICE, INSTANT, SPAN, BEGIN, ARROW, END], ids=lambda row: row["ph"])
def test_what_is_missing_and_what_is_empty(tmp_path, row):
    """Arguments, a category and a name that are not there are not those that are empty, whatever the kind."""
    args = [{}, {"a": 1}, {"a": [1, "b"], "c": "d"}]
    assert_same_there_and_back(tmp_path, *({**without(row, "args"), **more} for more in ({}, *({"args": each} for each in args))), without(row, "cat"),
                               {**row, "cat": ""}, without(row, "name"), {**row, "name": ""}, {**without(row, "name", "cat"), "args": {}})


def test_perfetto_has_them(trace_processor, tmp_path):
    """What is long, what is empty and what is no number of 64 bits opens without an error."""
    rows = [{**SLICE, "cat": "", "args": {"long": "x" * 100000, "list": list(range(3000)), "k" * 9000: 1, "great": 2 ** 64}}, without(INSTANT, "args"), without(SPAN, "args"),
            {**SPAN, "ph": "e", "ts": 2}, {**ARROW, "args": {}}, {**END, "args": {"a": 1}}, {**COUNTER, "args": {f"{i}": i for i in range(1000)}}]
    trace_processor.load(convert(made(tmp_path / "made.json", *rows), tmp_path / "there.pftrace"))
    assert_clean(trace_processor)
    assert trace_processor.value("SELECT string_value FROM args WHERE key = 'debug.long'") == "x" * 100000
    assert trace_processor.value("SELECT count(*) FROM counter_track") == 1000
    assert trace_processor.value("SELECT count(*) FROM slice") == 3


def test_numbers_come_along_as_they_are(tmp_path):
    numbers = ["-9223372036854775808", "9223372036854775807", "18446744073709551615", "18446744073709551616", "-9223372036854775809", "1" * 100, "-0", "-0.0",
               "0." + "0" * 70 + "1", "1" + "0" * 70 + ".5", "1e-300", "2.0"]
    row = json.dumps({**SLICE, "args": "ARGS"}).replace('"ARGS"', "{%s}" % ",".join(f'"{i}":{number}' for i, number in enumerate(numbers)))
    path = made(tmp_path / "made.json", row, row, row, row, {**COUNTER, "args": {"x": 2 ** 63 - 1, "y": -2 ** 63}})
    back = convert(convert(path, tmp_path / "there.pftrace"), tmp_path / "back.json")
    found, expected = events_of(back)[0], events_of(path)[0]
    assert found == expected
    for one, other in zip(found, expected):
        assert {key: (type(value), str(value)) for key, value in one["args"].items()} == {key: (type(value), str(value)) for key, value in other["args"].items()}


def test_escapes_come_along(tmp_path):
    text = '"\\ud83d\\ude00 \\u0001\\/\\\\u0000 \\u00e9"'
    assert_same_there_and_back(tmp_path, json.dumps({**SLICE, "name": "NAME", "args": {"NAME": "NAME"}}).replace('"NAME"', text), {**NAMED, "args": {"name": "\U0001f600"}})


def test_times_are_rounded_to_nanoseconds(tmp_path):
    path = made(tmp_path / "made.json", {**SLICE, "ts": 1.00049, "dur": 0.0004})
    row, = events_of(convert(convert(path, tmp_path / "there.pftrace"), tmp_path / "back.json"))[0]
    assert (row["ts"], row["dur"]) == (1, 0)


@pytest.mark.parametrize("name", ["n" * 512, "\u20ac" * 170, "", " "])
def test_counters_that_are_called_nearly_the_same(tmp_path, name):
    rows = [{**COUNTER, "name": name, "args": {"k" * 126 + end: ts}, "ts": ts} for ts, end in enumerate("aba")]
    assert_same_there_and_back(tmp_path, *rows, {**COUNTER, "name": name, "tid": 2, "args": {" k": 1}}, {**COUNTER, "name": name, "pid": 7, "args": {"k": 1, "": 2}})


def test_counters_whose_tracks_are_called_the_same(trace_processor, tmp_path):
    rows = [{**COUNTER, "name": "a b", "args": {"c": 1}}, {**COUNTER, "name": "a", "args": {"b c": 2}}, {**COUNTER, "name": "a b", "args": {"c": 3}, "ts": 2}]
    assert_same_there_and_back(tmp_path, *rows)
    trace_processor.load(tmp_path / "there.pftrace")
    assert_clean(trace_processor)
    told = trace_processor.query("SELECT name, CAST(value AS INT) AS value, track_id FROM counter JOIN counter_track ON track_id = counter_track.id")
    assert sorted((row["name"], row["value"]) for row in told) == [("a b c", 1), ("a b c", 2), ("a b c", 3)] and len({row["track_id"] for row in told}) == 2


def test_what_means_nothing_is_left_out(tmp_path):
    """Browsers and Kineto write a time and a category into rows of names, and a category into counters."""
    rows = [SLICE, {**NAMED, "ts": 0, "cat": "__metadata"}, {**COUNTER, "cat": "c"}]
    back = convert(convert(made(tmp_path / "made.json", *rows), tmp_path / "to.pftrace"), tmp_path / "back.json")
    assert events_of(back)[0] == [SLICE, NAMED, COUNTER]


@pytest.mark.parametrize("rows, words, allowed", [
    ([{**COUNTER, "name": "n" * 513}], "a counter with a name of more than 512 bytes", ""),
    ([{**COUNTER, "args": {"k" * 128: 1}}], "a name of more than 127 bytes", ""),
    ([{**COUNTER, "args": {}}], 'a counter without a value: "c"', "one and more"),
    ([without(COUNTER, "args")], 'a counter without a value: "c"', "one and more"),
    ([without(COUNTER, "name")], "a counter without a name", ""),
    ([{**COUNTER, "args": {"x": 2 ** 63}}], "a counter's integer that 64 bits do not hold: 9223372036854775808", "from -2^63 to 2^63 - 1"),
    ([{**SLICE, "name": "a\0b"}], 'a text with \\u0000 or half a pair of surrogates in it: "a\\u0000b"', "a text without these"),
    ([{**SLICE, "args": {"a\0b": 1}}], "a text with \\u0000", "without these"),
    ([{**SLICE, "args": {"a": "b\0"}}], "a text with \\u0000", "without these"),
    ([{**SLICE, "cat": "\ud83d"}], "half a pair of surrogates", "without these"),
    ([{**SLICE, "args": {"a": "\ude00\ud83d"}}], "half a pair of surrogates", "without these"),
    ([{**NAMED, "args": {"name": "\ud83dy"}}], "half a pair of surrogates", "without these"),
    ([{**COUNTER, "args": {"\ud83d\ud83d": 1}}], "half a pair of surrogates", "without these"),
    ([{**SLICE, "name": 5}], "no text where one belongs: 5", "a text"),
    ([{**SLICE, "cat": None}], "no text where one belongs: null", "a text"),
    ([{**NAMED, "args": {"name": 7}}], "no text where one belongs: 7", "a text"),
    ([ARROW, without(END, "bp")], "the end of an arrow without bp", '"bp":"e"'),
    ([{**END, "bp": "s"}], 'the end of an arrow whose bp is "s"', '"bp":"e"'),
    ([{**SLICE, "bind_id": 4, "flow_out": False}], "a bind_id that is no arrow's one end: 4", "true"),
    ([{**SLICE, "bind_id": 4, "flow_in": 1}], "a bind_id that is no arrow's one end: 4", "true"),
    ([{**SLICE, "flow_out": True}], "an end of an arrow without bind_id", "a number with"),
    ([{**SPAN, "id": 9}], "a span with more than a local id2", '"id2":{"local":NUMBER}'),
    ([{**SPAN, "id2": {"local": 3, "global": 7}}], "a span with more than a local id2", "local"),
    *(([{**row, member: value}], f'an event of the kind {row["ph"]} with the member "{member}"', "ph, name, pid, tid, args")
      for row, member, value in [(SLICE, "id", 7), (SLICE, "id2", {}), (SLICE, "s", "t"), (SLICE, "bp", "e"), (INSTANT, "dur", 1), (INSTANT, "bind_id", 1),
                                 (BEGIN, "dur", 1), (BEGIN, "bind_id", 4), (COUNTER, "id", 3), (ARROW, "bp", "e"), (NAMED, "dur", 0)]),
    ([json.dumps(SLICE).replace('"name"', '"name":"m","name"')], 'the member "name" twice', "ph, name"),
    *(([{**ORDERED, "args": {"sort_index": value}}], "a sort_index that is no integer of 64 bits", "from -2^63 to 2^63 - 1") for value in (1.5, True, None, {"a": 3}, 2 ** 63, "1")),
    ([{**ORDERED, "args": {"sort_index": 1, "a": 2}}], "a name with more beside it", "one member"),
    ([{**NAMED, "args": {"a": 1, "name": "x"}}], "a name with more beside it", "1024 bytes behind the name"),
    ([{**NAMED, "name": "process_name", "args": {"a": 1, "name": "x"}}], "a name with more beside it", "one member"),
    ([json.dumps({**SLICE, "args": {"a": 1}}).replace('"a": 1', '"a": 1e999')], "a number that is too great: 1e999", "up to 1.79e308")])
def test_what_would_get_lost(tmp_path, rows, words, allowed):
    """It was left out or changed, and nobody said so. One line says which event, what of it, and what is allowed; nothing is written."""
    path, to = made(tmp_path / "made.json", SLICE, *rows), tmp_path / "to.pftrace"
    done = custream("convert", path, to)
    assert done.returncode == 2 and done.stderr.startswith(f"custream convert: {path}: event {len(rows) + 1}: ") and len(done.stderr.splitlines()) == 1, done.stderr
    said, _, behind = done.stderr.partition(", which Perfetto's format has no place for")
    assert words in said and behind.startswith("; allowed: " if allowed else "\n") and allowed in behind
    assert [file.name for file in tmp_path.iterdir()] == ["made.json"]
    again = convert(path, tmp_path / "again.json")
    path.write_text(re.sub(r"\\ud[89a-f]\w\w", r"\\ufffd", path.read_text()))  # half a pair is no character
    assert events_of(again) == events_of(path)


def test_pids_that_are_no_numbers(tmp_path):
    """Kineto's: a text, or -1. Each has a number of its own, and is called by what it was. A text that is a number by its digits is that."""
    rows = [{**SLICE, "pid": "Spans", "tid": "PyTorch Profiler"}, {**SLICE, "pid": "4242", "tid": "0x7", "ts": 5}, {**SLICE, "pid": -1, "ts": 9},
            {**INSTANT, "pid": "Spans", "tid": "PyTorch Profiler", "ts": 10, "s": "g"}, {**SLICE, "pid": -1, "tid": "PyTorch Profiler", "ts": 15}]
    back = events_of(convert(convert(made(tmp_path / "made.json", *rows), tmp_path / "to.pftrace"), tmp_path / "back.json"))[0]
    names = {(row["name"], row["pid"], row["tid"]): row["args"]["name"] for row in back if row["ph"] == "M"}
    told = [row for row in back if row["ph"] != "M"]
    spans, _, none, *_ = (row["pid"] for row in told)
    assert [{**row, "pid": 0, "tid": 0} for row in told] == [{**row, "pid": 0, "tid": 0} for row in rows]
    assert [row["pid"] for row in told] == [spans, 4242, none, spans, none] and len({spans, none, 4242, 100}) == 4 and [row["tid"] for row in told[1:3]] == [7, 1]
    threads = [told[0]["tid"], told[4]["tid"]]
    assert names == {("process_name", spans, threads[0]): "Spans", ("thread_name", spans, threads[0]): "PyTorch Profiler",
                     ("process_name", none, 1): "-1", ("thread_name", none, threads[1]): "PyTorch Profiler"}
