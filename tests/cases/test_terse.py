"""What a trace does not say again: how a kernel was launched stands where the slice before of that name on the GPU, in the file, has something else."""
import collections
import json
import subprocess

import pytest

from tests.gputrace import CUPTI
from tests.trace import SHAPE, Trace, parse

PROGRAMS = [["demo"], ["works", "many", 3000], ["burst", 2, 2000, 0]]


def raw(path):
    """The rows as they stand in the file."""
    return parse(path.read_bytes())["traceEvents"]


def kernels(rows):
    return [row for row in rows if row.get("cat") == "kernel"]


def spelled_out(path, to):
    """The same trace, in which each kernel says how it was launched, and times have three decimals."""
    lines, full = path.read_text(encoding="utf-8").split("\n"), iter(Trace(path).events)
    for i, line in enumerate(lines):
        if line.startswith('{"ph":'):
            row = next(full)
            text = json.dumps({**row, **{key: f"@{row[key]:.3f}@" for key in ("ts", "dur") if key in row}}, ensure_ascii=False, separators=(",", ":"))
            lines[i] = text.replace('"@', "").replace('@"', "") + ("," if line.endswith(",") else "")
    to.write_text("\n".join(lines), encoding="utf-8")
    return to


@pytest.fixture
def custream(build):
    def run(*args):
        done = subprocess.run([build / "custream", *map(str, args)], capture_output=True, text=True, timeout=100, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout
    return run


@pytest.mark.parametrize("argv", PROGRAMS, ids=lambda argv: argv[0])
def test_a_kernel_says_what_is_new(run_app, argv):
    """Each that says nothing has one before it, and none says what the one before it said."""
    rows = kernels(raw(run_app(argv, env=CUPTI).check().trace))
    last, silent = {}, 0
    for row in rows:
        said = {key: row["args"][key] for key in SHAPE if key in row["args"]}
        silent += not said
        assert said or (row["pid"], row["name"]) in last, row
        if said:
            assert len(said["grid"]) == len(said["block"]) == 3 and said != last.get((row["pid"], row["name"])), row
            last[row["pid"], row["name"]] = said
    assert silent or argv[0] == "works"


@pytest.mark.parametrize("argv", PROGRAMS, ids=lambda argv: argv[0])
def test_what_is_read_is_as_if_each_had_said_it(run_app, custream, tmp_path, argv):
    """The report and check of a trace, and of the same one spelled out."""
    terse = run_app(argv, env=CUPTI).check().trace
    long = spelled_out(terse, tmp_path / "long.json")
    assert long.stat().st_size > terse.stat().st_size and Trace(terse).events == Trace(long).events
    reports = [json.loads(custream("report", "--json", path)) for path in (terse, long)]
    files = [report.pop("files") for report in reports]
    assert reports[0] == reports[1] and files == [[str(terse)], [str(long)]]
    assert reports[0]["tables"]["kernels"] and all(row["blocks"] and row["threads"] for row in reports[0]["tables"]["kernels"])


def test_a_cut_trace_says_it_itself(run_app, custream, tmp_path):
    """merge --window leaves out the rows that said it."""
    path = run_app(["burst", 2, 2000, 0], env=CUPTI).check().trace
    whole = kernels(Trace(path).events)
    begin, middle = min(row["ts"] for row in whole), whole[len(whole) // 2]["ts"]
    out = tmp_path / "cut.json"
    first = min(row["ts"] for row in raw(path) if "ts" in row)
    custream("merge", "-o", out, f"--window={middle - first:.3f}us,{middle - begin + middle:.3f}us", path)
    assert "ok" in custream("check", out)
    expected = {row["args"]["correlation"]: [row["args"].get(key) for key in SHAPE] for row in whole}
    found = kernels(raw(out))
    assert 10 < len(found) < len(whole)
    shapes = collections.Counter(str([row["args"].get(key) for key in SHAPE]) for row in found)
    assert shapes == collections.Counter(str(shape) for shape in [expected[row["args"]["correlation"]] for row in found])


def test_each_part_says_it_itself(run_app, tmp_path):
    env = {"CUSTREAM_FULL": "block", "CUSTREAM_TRACE_MAX": "1M,rotate:99"}
    path = run_app(["burst", 1, 12000, 0], env=CUPTI | env).check().trace
    parts = [part for part in [path, *path.parent.glob(path.stem + ".*.json")] if kernels(raw(part))]
    assert len(parts) >= 3
    for part in parts:
        said = {row["name"]: "grid" in row["args"] for row in reversed(kernels(raw(part)))}
        assert all(said.values()), part


def test_events_of_the_gpu_say_it_each_time(run_app):
    """With times of events, and in Perfetto's own format, in which the same again takes next to nothing."""
    rows = kernels(raw(run_app(["burst", 1, 100, 0], env={"CUSTREAM_GPU": "events"}).check().trace))
    assert len(rows) >= 50 and all("grid" in row["args"] for row in rows)


@pytest.mark.parametrize("argv", PROGRAMS, ids=lambda argv: argv[0])
def test_the_page_says_how_to_fill_it_in(run_app, root, argv):
    """The code in docs/trace.md does."""
    path = run_app(argv, env=CUPTI).check().trace
    section = (root / "docs/trace.md").read_text(encoding="utf-8").split("## What is not said again")[1].split("\n## ")[0]
    (code,) = section.split("```python\n")[1:]
    rows = parse(path.read_bytes())
    assert kernels(rows["traceEvents"]) != kernels(Trace(path).events)
    exec(code.split("```")[0].replace('json.load(open("trace.json"))', "rows"), {"rows": rows})
    assert rows["traceEvents"] == Trace(path).events


def test_convert_fills_it_in_where_it_is_asked_to(run_app, custream, tmp_path):
    path = run_app(PROGRAMS[1], env=CUPTI).check().trace
    custream("convert", path, tmp_path / "same.json")
    custream("convert", "--whole", path, tmp_path / "whole.json")
    assert raw(tmp_path / "same.json") == raw(path)
    assert raw(tmp_path / "whole.json") == Trace(path).events != raw(path)
