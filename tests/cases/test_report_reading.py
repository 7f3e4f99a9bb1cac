"""How `custream report` reads files: whatever the layout, exact to the nanosecond, parts of one run as one, and one clear line where a file cannot be read."""
import gzip
import json

import pytest

from tests.handmade import HOST, custream
from tests.tracestory import MAIN, Story


def tables_of(*paths):
    done = custream("report", "--json", *paths)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return json.loads(done.stdout)["tables"]


def written(path, data):
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


@pytest.fixture
def text():
    """Two kernels with 3 us between them, for which the host is to blame."""
    story = Story()
    story.stream(13)
    end = story.kernel(13, 10, 15.001, 20.125, "first")
    story.call("cuCtxSynchronize", 13, 26)
    story.kernel(13, end + 4, end + 8.5, 10, "second")
    return story.text()


LAYOUTS = {
    "a line an event": lambda text: text,
    "one line": lambda text: json.dumps(json.loads(text)),
    "indented": lambda text: json.dumps(json.loads(text), indent=4),
    "members in another order": lambda text: json.dumps(dict(reversed(json.loads(text).items()))),
    "gzip": lambda text: gzip.compress(text.encode()),
    "several gzip members": lambda text: gzip.compress(text[:700].encode()) + gzip.compress(text[700:].encode()),
    "events in another order": lambda text: json.dumps({**(whole := json.loads(text)), "traceEvents": whole["traceEvents"][::-1]}),
    "escaped": lambda text: json.dumps(json.loads(text), ensure_ascii=True).replace("kernel", "\\u006bernel"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(tmp_path, text, layout):
    expected = tables_of(written(tmp_path / "plain.json", text))
    found = tables_of(written(tmp_path / "t.json", LAYOUTS[layout](text)))
    assert found == expected and [row["times"] for row in expected["kernels"]] == [1, 1]


def test_nanoseconds_are_exact(tmp_path, text):
    """As integers, where a float of microseconds since the trace's begin has no third decimal left."""
    shift = 9_007_199_254_740  # microseconds: 2**53 / 1000
    whole = json.loads(text)
    lines = [json.dumps(row) for row in whole["traceEvents"]]
    for i, row in enumerate(whole["traceEvents"]):
        if "ts" in row:
            ns = round(row["ts"] * 1000)
            lines[i] = lines[i].replace(f'"ts": {json.dumps(row["ts"])}', f'"ts": {shift + ns // 1000}.{ns % 1000:03}')
    rest = json.dumps({key: value for key, value in whole.items() if key != "traceEvents"})
    path = written(tmp_path / "t.json", rest[:-1] + ', "traceEvents": [' + ",".join(lines) + "]}")
    (device,), idle = tables_of(path)["devices"], tables_of(path)["idle"]
    assert device["span_ns"] == 20_125 + 8_500 + 10_000 and device["busy_ns"] == 30_125
    assert sum(row["idle_ns"] for row in idle) == 8_500


@pytest.mark.parametrize("spelling,ns", [("12", 12_000), ("12.5", 12_500), ("12.3456", 12_345), ("1.2e1", 12_000), ("12.000", 12_000)])
def test_spellings_of_times(tmp_path, text, spelling, ns):
    assert '"dur":20.125' in text
    path = written(tmp_path / "t.json", text.replace('"dur":20.125', f'"dur":{spelling}'))
    assert next(row for row in tables_of(path)["kernels"] if row["name"] == "first")["total_ns"] == ns


def test_parts_of_a_run(tmp_path, text):
    """A call in one part, its work in the next."""
    whole = json.loads(text)
    rows = whole["traceEvents"]
    first = [row for row in rows if row["ph"] == "M" or row.get("cat") in ("cuda_driver", "cs_stream")]
    second = [row for row in rows if row["ph"] == "M" or row.get("cat") in ("kernel", "cs_stream")]
    paths = [written(tmp_path / f"{i}.json", json.dumps({**whole, "part": i + 1, "traceEvents": part})) for i, part in enumerate((first, second))]
    expected = tables_of(written(tmp_path / "whole.json", text))
    assert tables_of(*paths) == expected == tables_of(*reversed(paths))


def test_list_alone_is_a_trace(tmp_path, text):
    """As Chrome writes it. Nothing says who wrote it, so calls of the runtime count too."""
    rows = json.loads(text)["traceEvents"]
    assert {row["name"] for row in tables_of(written(tmp_path / "t.json", json.dumps(rows)))["kernels"]} == {"first", "second"}


@pytest.mark.parametrize("cut", [1, 7, 40, 200])
def test_cut_anywhere_behind_the_first_event(tmp_path, text, cut):
    """What is before it is told, and that it is not whole."""
    at = text.index('"second"') + cut
    done = custream("report", "--json", written(tmp_path / "t.json", text[:at]))
    assert done.returncode == 0 and "truncated" in done.stderr and done.stderr.count("\n") == 1
    assert "first" in {row["name"] for row in json.loads(done.stdout)["tables"]["kernels"]}


BAD = {
    "empty": (b"", "empty"),
    "text": (b"hello\n", "line 1: no JSON"),
    "another object": (b'{"traceEvents": {"a": 1}}', "no trace: it has no list of traceEvents"),
    "a fault on line 3": (b'{"a": 1,\n"traceEvents": [\n{"ph": "X",}\n]}', "line 3: no JSON"),
    "no gzip behind the first bytes": (b"\x1f\x8b\x08\x00" + bytes(20), "damaged gzip data"),
    "two lists": (b"[1, 2] [3]", "line 1: no JSON"),
    "a number that is none": (b'{"traceEvents": [{"ph": "X", "ts": NaN}]}', "line 1: no JSON"),
}


@pytest.mark.parametrize("name", BAD)
def test_one_line_for_what_is_no_trace(tmp_path, name):
    content, why = BAD[name]
    path = written(tmp_path / "bad.json", content)
    done = custream("report", path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"custream report: {path}: ") and why in done.stderr and done.stderr.count("\n") == 1, done.stderr


HARD = {
    "lists in lists": '{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":13,"ts":1,"dur":1,"args":{"grid":[[1,2],[3]],"block":[1,[2],3,4,5]}}',
    "args within args": '{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":13,"ts":1,"dur":1,"args":{"args":{"stream":9,"dur":5},"stream":13}}',
    "texts for numbers": '{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":13,"ts":1,"dur":1,"args":{"stream":"thirteen","device":"0x0","bytes":"1e99"}}',
    "numbers for texts": '{"ph":"X","cat":"kernel","name":17,"pid":0,"tid":13,"ts":1,"dur":1,"args":{}}',
    "huge numbers": '{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":13,"ts":1e300,"dur":99999999999999999999,"args":{"stream":99999999999999999999}}',
    "negative numbers": '{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":13,"ts":-5,"dur":-3,"args":{"stream":-1,"device":-7}}',
    "nothing": "{}",
    "no objects": '17,"x",null,[[{"ph":"X"}]]',
    "an end without a begin": '{"ph":"E","pid":0,"tid":13,"ts":5}',
    "metadata without a name": '{"ph":"M","name":"thread_name","pid":0,"tid":13}',
    "deep": "[" * 100 + "]" * 100,
}


@pytest.mark.parametrize("name", HARD)
def test_rows_that_nobody_expects(tmp_path, text, name):
    """They are taken as far as they go; those beside them stay what they are."""
    content = text.replace('"traceEvents":[\n', f'"traceEvents":[\n{HARD[name]},\n')
    assert content != text
    done = custream("report", "--json", written(tmp_path / "t.json", content))
    assert done.returncode == 0 and ("without a usable time" in done.stderr) == (name == "huge numbers")
    kernels = {row["name"]: row["times"] for row in json.loads(done.stdout)["tables"]["kernels"]}
    assert kernels["first"] == kernels["second"] == 1


def test_process_is_named(tmp_path, text):
    (run,) = tables_of(written(tmp_path / "t.json", text))["run"]
    assert (run["program"], run["pid"], run["calls"], run["works"], run["threads"]) == ("app", HOST, 3, 2, 1) and MAIN != HOST
