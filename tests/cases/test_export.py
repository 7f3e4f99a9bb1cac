"""`custream export`: the tables have what the trace has (docs/export.md)."""
import collections
import json
import os
import operator
import pathlib
import re
import signal
import subprocess
import sys

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.handmade import COMMAND, GOOD, render, slice_
from tests.trace import Trace, stream_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
from custream import _arrow  # noqa: E402

WORK = "kernel", "gpu_memcpy", "gpu_memset", "gpu_graph", "gpu_range"
PROGRAMS = [["demo"], ["timeline"], ["works", "captures"], ["nvtx", "nested"], ["callbacks"], ["leaks", 2, 1, 2, 1]]


def run_export(*words, **env):
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "CUSTREAM_PYTHON": sys.executable, **env}
    done = subprocess.run([COMMAND, "export", *map(str, words)], capture_output=True, text=True, errors="replace", timeout=100, check=False, env=env)
    return done.returncode, done.stdout.splitlines(), done.stderr.splitlines()


def export(folder, *words):
    status, said, complaints = run_export("--parquet", folder, *words)
    assert (status, complaints) == (0, []) and len(said) == sum(not str(word).startswith("--") for word in words), complaints
    assert not list(folder.rglob("*.part"))
    return said


def run_fleet(*words):
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "CUSTREAM_PYTHON": sys.executable}
    done = subprocess.run([COMMAND, "fleet", *map(str, words)], capture_output=True, text=True, timeout=100, check=False, env=env)
    return done.returncode, done.stdout, done.stderr.splitlines()


def rows(folder, table, columns="*", where="true"):
    """Of a table; none if no file has any."""
    if not list(folder.glob(f"{table}/**/*.parquet")):
        return []
    found = duckdb.sql(f"SELECT {columns} FROM read_parquet('{folder}/{table}/**/*.parquet', hive_partitioning = true, hive_types_autocast = false) WHERE {where}")
    return [dict(zip(found.columns, row)) for row in found.fetchall()]


def schema():
    return json.loads("".join(run_export("--schema")[1]))


# ---- What the tables are to have: a second account ----

def ns(us):
    return round(us * 1000)


def number(args, key):
    value = args.get(key)
    return int(value, 0) if isinstance(value, str) and re.fullmatch(r"0x[0-9a-f]+|\d+", value) else value if not isinstance(value, str) else None


def expected(trace):
    base, tables = trace.json["baseTimeNanoseconds"], collections.defaultdict(list)
    threads = {key: name for key, name in trace.thread_names.items() if key[0] not in trace.gpus}

    def times(e, dur=0):
        return {"start_ns": base + ns(e["ts"]), "dur_ns": ns(e.get("dur", dur))}
    for e in trace.slices:
        args, cat = e.get("args", {}), e.get("cat")
        if cat in ("cuda_driver", "cuda_runtime", "cs_callback"):
            tables["calls"].append(times(e) | {
                "level": cat.removeprefix("cuda_").removeprefix("cs_"), "name": e["name"], "process": e["pid"], "thread": e["tid"], "thread_name": threads.get((e["pid"], e["tid"])),
                "device": args.get("cs.device", 0) if "cs.stream" in args else None, "stream": args.get("cs.stream"), "correlation": args.get("correlation"),
                "kernel": args.get("kernel"), "bytes": number(args, "bytes"), "blocked_ns": ns(args["blocked_us"]) if "blocked_us" in args else None,
                "delay_ns": ns(args["delay_us"]) if "delay_us" in args else None, "event": number(args, "event"),
                "result": str(args["cs.result"]) if "cs.result" in args else None, "captured": args.get("cs.captured")})
        elif cat in WORK:
            shape = cat == "kernel" and "grid" in args
            grid, block = (args[key] if shape else [None] * 3 for key in ("grid", "block"))
            tables["work"].append(times(e) | dict(zip(("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"), grid + block)) | {
                "kind": cat, "name": e["name"], "device": e["pid"], "stream": args.get("stream", stream_of(e["tid"])), "correlation": args.get("correlation"),
                "bytes": args.get("bytes"), "registers": args.get("registers per thread") if shape else None, "shared_memory": args.get("shared memory", 0) if shape else None,
                "graph": args.get("graph"), "graph_node": args.get("graph node"), "waited_ns": ns(args["waited_us"]) if "waited_us" in args else None,
                "waited_for": args.get("waited for"), "waited_for_stream": args.get("waited for stream")})
            tables["dependencies"] += [{"correlation": args["correlation"], "waits_for": other} for other in args.get("event_wait_ids", [])]
        elif cat == "cuda_sync" or (cat == "cs_dep" and e["name"] == "wake-up"):
            gpu = e["pid"] in trace.gpus
            tables["waits"].append(times(e) | {"kind": e["name"], "process": None if gpu else e["pid"], "thread": None if gpu else e["tid"], "device": e["pid"] if gpu else None,
                                               "stream": args.get("cs.stream") if gpu else None, "on_stream": args.get("recorded on"), "event": number(args, "event")})
        elif cat == "user_annotation":
            tables["ranges"].append(times(e) | {"kind": "range", "name": e["name"], "domain": args.get("domain"), "process": e["pid"], "thread": e["tid"], "note": args.get("cs.note")})
        elif cat == "cs_loss":
            tables["losses"].append(times(e) | {"name": e["name"], "calls": args.get("count"), "gpu_work": args.get("gpu_work"), "cause": args.get("cause")})
    for e in trace.instants:
        if e["cat"] == "user_annotation":
            tables["ranges"].append(times(e) | {"kind": "mark", "name": e["name"], "domain": e["args"].get("domain"), "process": e["pid"], "thread": e["tid"],
                                                "note": e["args"].get("cs.note")})
    ends = {e["id2"]["local"]: e for e in trace.events if e["ph"] == "e" and e.get("cat") == "user_annotation"}
    for e in trace.events:
        if e["ph"] == "b" and e.get("cat") == "user_annotation":
            end = ends.get(e["id2"]["local"])
            note = (end or {}).get("args", {}).get("cs.note") or e["args"].get("cs.note")
            tables["ranges"].append({"start_ns": base + ns(e["ts"]), "dur_ns": ns(end["ts"]) - ns(e["ts"]) if end else None, "kind": "span", "name": e["name"],
                                     "domain": e["args"].get("domain"), "process": e["pid"], "thread": None, "note": note})
    for life in trace.lives:
        args = life["args"]
        tables["streams"].append({
            "device": life["pid"], "stream": args["cs.stream"], "name": life["name"], "origin": args["origin"], "flags": args.get("flags"), "priority": args.get("priority"),
            "requested_priority": args.get("requested priority", args.get("priority")), "created_by": args.get("created by"), "library": args.get("library"),
            "thread": args.get("thread"), "begin_ns": base + ns(life["ts"]), "end_ns": base + ns(life["ts"]) + ns(life["dur"]) if args.get("destroyed") else None})
    return tables


def same(found, wanted):
    """As many rows of each kind, of the same columns."""
    columns = sorted({name for row in (*found, *wanted) for name in row})
    assert all(len(row) == len(columns) for row in (*found, *wanted))
    if columns:
        key = operator.itemgetter(*columns)
        assert collections.Counter(map(key, found)) == collections.Counter(map(key, wanted))


def whole(folder, *traces):
    """Each table has just the rows of the traces."""
    wanted = collections.defaultdict(list)
    for trace in traces:
        for table, of in expected(trace).items():
            wanted[table] += of
    for table, columns in schema()["tables"].items():
        if table not in ("facts", "idle"):  # idle: what follows from the others (test_fleet_traces.py)
            same(rows(folder, table, ", ".join(columns)), wanted[table])


# ---- Rows ----

@pytest.mark.parametrize("argv", PROGRAMS, ids=lambda argv: argv[0])
@pytest.mark.parametrize("name", ["t.json", "t.pftrace.gz"])
def test_tables_have_what_the_trace_has(run_app, tmp_path, argv, name):
    path = run_app(argv, trace=tmp_path / name).check().trace
    export(tmp_path / "out", path)
    if name != "t.json":
        subprocess.run([COMMAND, "convert", path, tmp_path / "plain.json"], check=True, capture_output=True)
        path = tmp_path / "plain.json"
    whole(tmp_path / "out", Trace(path))


def test_committed_traces(root, tmp_path):
    """Of real GPUs."""
    paths = sorted((root / "traces").glob("*.json.gz"))
    export(tmp_path / "t", *paths)
    for path in paths:
        kinds, where = collections.Counter(e["cat"] for e in Trace(path).slices if e.get("cat") in WORK), f"file = '{path.name.removesuffix('.json.gz')}'"
        assert kinds == {row["kind"]: row["n"] for row in rows(tmp_path / "t", "work", "kind, count(*) AS n", f"{where} GROUP BY kind")}
        assert {row["stream"] for row in rows(tmp_path / "t", "work", "stream", where)} <= {row["stream"] for row in rows(tmp_path / "t", "streams", "stream", where)} | {7}


def test_each_file_has_the_version_of_its_tables(root, tmp_path):
    export(tmp_path / "out", root / "traces/demo-h200.json.gz")
    version = json.loads((tmp_path / "out/schema.json").read_text())["version"]
    files = list((tmp_path / "out").rglob("*.parquet"))
    assert files and all(pyarrow.parquet.read_schema(file).metadata[b"custream.tables"] == str(version).encode() for file in files)


def test_a_trace_of_another_tool(tmp_path):
    """As Kineto writes them."""
    events = [{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 4000, "tid": 4000, "ts": 10.5, "dur": 3.25, "args": {"External id": 1, "cbid": 211, "correlation": 5}},
              {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 20.125, "dur": 4.5,
               "args": {"device": 0, "context": 1, "stream": 7, "correlation": 5, "grid": [2, 1, 1], "block": [32, 1, 1], "registers per thread": 16, "shared memory": 0}}]
    (path := tmp_path / "t.json").write_text(json.dumps({"schemaVersion": 1, "distributedInfo": {"rank": 2, "world_size": 4}, "baseTimeNanoseconds": 1790000000000000000, "traceEvents": events}))
    export(tmp_path / "out", path)
    assert rows(tmp_path / "out", "calls", "rank, name, start_ns, dur_ns, correlation") == [
        {"rank": "2", "name": "cudaLaunchKernel", "start_ns": 1790000000000010500, "dur_ns": 3250, "correlation": 5}]
    assert rows(tmp_path / "out", "work", "name, stream, grid_x, block_x, registers") == [{"name": "k", "stream": 7, "grid_x": 2, "block_x": 32, "registers": 16}]


def test_facts(run_app, tmp_path):
    """What the file says of itself outside of its rows, exact."""
    path = run_app(["demo"], trace=tmp_path / "t.json", env={"RANK": 3, "WORLD_SIZE": 8, "SLURM_JOB_ID": "4711"}).check().trace
    export(tmp_path / "out", path)
    trace = json.loads(path.read_text())
    facts = {row["key"]: row["text"] if row["text"] is not None else row["whole"] for row in rows(tmp_path / "out", "facts")}
    assert facts["baseTimeNanoseconds"] == trace["baseTimeNanoseconds"] and facts["totals.calls"] == trace["totals"]["calls"]
    assert facts["metadata.options.CUSTREAM_FULL"] == "drop" and facts["totals.complete"] == 1
    (about,) = rows(tmp_path / "out", "files")
    metadata = trace["metadata"]
    assert about == {"file": "t", "run": "4711", "host": metadata["host"], "rank": "3", "job": "4711", "world_size": 8, "part": None, "base_ns": trace["baseTimeNanoseconds"],
                     "version": metadata["tool"], "clock_error_ns": metadata["clock_error_ns"], "gpu_source": metadata["gpu_time_source"], "gpu_sample": None, "complete": 1,
                     "ended_by": None, "offset_ns": None, "drift_ppb": None, "offset_error_ns": None, "process": f"{metadata['host']} 3 {trace['baseTimeNanoseconds']}"} | {
                         key: about[key] for key in ("first_ns", "last_ns")}
    assert about["base_ns"] < about["first_ns"] < about["last_ns"] == max(row["start_ns"] for table in ("calls", "work") for row in rows(tmp_path / "out", table))


def test_parts(run_app, tmp_path):
    env = {"CUSTREAM_FULL": "block", "CUSTREAM_GPU": "off", "CUSTREAM_TRACE_MAX": "1M,rotate:99"}  # parts are counted in calls of the host
    run_app(["parts", "calls", 12000], trace=tmp_path / "t.json", env=env).check()
    parts = sorted(tmp_path.glob("t*.json"))
    export(tmp_path / "out", *parts)
    assert len(parts) > 1
    whole(tmp_path / "out", *map(Trace, parts))
    assert {row["file"] for row in rows(tmp_path / "out", "calls", "DISTINCT file")} == {path.name.removesuffix(".json") for path in parts}


def test_a_merged_trace(run_app, tmp_path):
    """Has a rank's rows where those of its own file would be; only numbers that merging gives anew differ."""
    paths = [run_app(argv, trace=tmp_path / f"r{rank}.json", env={"RANK": rank, "WORLD_SIZE": 2, "SLURM_JOB_ID": "7"}).check().trace
             for rank, argv in enumerate((["demo"], ["nvtx", "nested"]))]
    subprocess.run([COMMAND, "merge", "-o", tmp_path / "all.pftrace.gz", *paths], check=True, capture_output=True)
    export(tmp_path / "one", *paths)
    export(tmp_path / "other", tmp_path / "all.pftrace.gz")
    for table, columns in schema()["tables"].items():
        columns = ", ".join(column for column in columns if column not in ("correlation", "waits_for"))
        if table != "facts":
            same(rows(tmp_path / "other", table, f"run, host, rank, {columns}"), rows(tmp_path / "one", table, f"run, host, rank, {columns}"))
    about = [{(row["rank"], row["key"]): row["text"] or row["whole"] for row in rows(tmp_path / of, "facts") if re.match(r"metadata\.options|totals", row["key"])} for of in ("one", "other")]
    assert about[0] == about[1] and len(rows(tmp_path / "other", "files")) == 2
    status, _, complaints = run_export("--parquet", tmp_path / "bad", f"--clocks={tmp_path / 'c.json'}", tmp_path / "all.pftrace.gz")
    assert status == 2 and "c.json" in complaints[0]


def test_a_batch_gets_full(run_app, tmp_path):
    """And the next one begins with lists of texts of its own."""
    path = run_app(["burst", 2, 70000], trace=tmp_path / "t.json", env={"CUSTREAM_GPU": "off", "CUSTREAM_FULL": "block"}).check().trace  # a full batch of calls alone
    export(tmp_path / "out", path)
    found = {row["name"]: row["n"] for row in rows(tmp_path / "out", "calls", "name, count(*) AS n", "true GROUP BY name")}
    assert found == collections.Counter(re.findall(r'"cat":"cuda_driver","name":"(\w+)"', path.read_text())) and found["cuLaunchKernel"] == 140000


def test_a_torn_trace(run_app, tmp_path):
    """Has its rows up to the last whole one."""
    path = run_app(["demo"], trace=tmp_path / "t.json").check().trace
    data = path.read_bytes()
    path.write_bytes(data[:len(data) * 2 // 3])
    export(tmp_path / "out", path)
    status = subprocess.run([COMMAND, "recover", "-o", tmp_path / "whole.json", path], capture_output=True, check=False).returncode
    assert status == 0 and len(rows(tmp_path / "out", "calls")) == len(expected(Trace(tmp_path / "whole.json"))["calls"]) > 100


NAMES = ['"quoted" \\ back', "line\nbreak\ttab", "größer → 大", "", "a" * 5000, "NULL", "\x7f"]


def test_names(tmp_path):
    """Whatever a program calls its ranges."""
    made = {f"range {i}": slice_("user_annotation", name, 4242, 4242, 300 + i, 0.5, domain=name) for i, name in enumerate(NAMES)}
    (path := tmp_path / "t.json").write_text(render({**GOOD, **made}), encoding="utf-8")
    export(tmp_path / "out", path)
    found = {row["start_ns"]: (row["name"], row["domain"]) for row in rows(tmp_path / "out", "ranges", where="dur_ns = 500")}
    assert [found[at] for at in sorted(found)][-len(NAMES):] == [(name, name) for name in NAMES]


def test_names_that_are_no_text(tmp_path):
    (path := tmp_path / "t.json").write_bytes(render({**GOOD, "r": slice_("user_annotation", "XX", 4242, 4242, 300, 0.5)}).encode().replace(b"XX", b"\xff\xfe"))
    export(tmp_path / "out", path)
    assert "��" in {row["name"] for row in rows(tmp_path / "out", "ranges")}


# ---- Where they go ----

def test_exports_into_one_folder(run_app, tmp_path):
    """Each trace has files of its own."""
    one = run_app(["demo"], trace=tmp_path / "a.json").check().trace
    two = run_app(["burst", 1, 50], trace=tmp_path / "b.json").check().trace
    export(tmp_path / "out", one)
    export(tmp_path / "out", "--run=run/1", "--host=a b=c", two)
    assert {(row["run"], row["host"]) for row in rows(tmp_path / "out", "files", where="file = 'b'")} == {("run/1", "a b=c")}
    whole(tmp_path / "out", Trace(one), Trace(two))


def test_the_same_trace_again(run_app, tmp_path):
    """Takes the place of what was there, whatever it is called, whichever way it is written, and wherever it is to go now; also where it has less to say."""
    one = run_app(["nvtx", "nested"], trace=tmp_path / "a.json").check().trace
    subprocess.run([COMMAND, "convert", one, tmp_path / "b.pftrace.gz"], check=True, capture_output=True)
    export(out := tmp_path / "out", one)
    ranges = len(rows(out, "ranges"))
    for words in ([one], ["--run=exp", one], ["--host=h", one], [tmp_path / "b.pftrace.gz"], ["--run=x", "--host=y", tmp_path / "b.pftrace.gz"], [one, tmp_path / "b.pftrace.gz"]):
        export(out, *words)
        whole(out, Trace(one))
        assert len(rows(out, "files")) == len(list(out.glob("*/run=*"))) / len(list(out.glob("*/"))) == 1
    one.write_text("".join(line for line in one.read_text().splitlines(True) if '"user_annotation"' not in line))
    export(out, one)
    assert ranges and not rows(out, "ranges") and not list(out.glob("ranges/*"))


def launched(run_app, path, rank, base=None, **env):
    """A rank of two, which no scheduler has given a job; with its clock at another time."""
    text = run_app(["burst", 1, 50], trace=path, env={"RANK": rank, "WORLD_SIZE": 2, **env}).check().trace.read_text()
    if base is not None:
        path.write_text(text.replace(f'"baseTimeNanoseconds":{json.loads(text)["baseTimeNanoseconds"]}', f'"baseTimeNanoseconds":{base}'))
    return path


def test_runs_are_not_joined(run_app, tmp_path):
    base = 1_795_941_877_480_294_657
    a0, a1, late = (launched(run_app, tmp_path / f"{name}.json", rank, base + after) for name, rank, after in (("a0", 0, 0), ("a1", 1, 1000), ("late", 1, 10**10)))
    b0 = launched(run_app, tmp_path / "b0.json", 0, base + 2000)
    out = tmp_path / "out"
    export(out, a0, a1)
    name = "2026-11-29T08.44.37.480294657"
    assert [(row["run"], row["rank"]) for row in rows(out, "files", where="true ORDER BY rank")] == [(name, "0"), (name, "1")]
    export(out, a1)  # what is there already stays in its run
    assert {row["run"] for row in rows(out, "files")} == {name}
    export(out, b0)
    assert len({row["run"] for row in rows(out, "files")}) == 2
    for words, line in (([tmp_path / "two", a0, b0], f".*b0.json: is a second rank 0 in run {name}, where a0 is another process; give another run another --run"),
                        ([tmp_path / "three", a0, late], f".*late.json: is of another time than all of run {name}; give another run another --run, or --run={name} if it is the same"),
                        ([out, "--run=" + name, b0], f".*b0.json: is a second rank 0 in run {name}, where a0 is another process; .*")):
        status, _, complaints = run_export("--parquet", *words)
        assert status == 2 and len(complaints) == 1 and re.fullmatch(f"custream export: {line}", complaints[0]), complaints
        assert not list(words[0].rglob("*.part")) and not list(words[0].glob(".export-*"))
    assert len(rows(tmp_path / "two", "files")) == 1
    export(tmp_path / "three", f"--run={name}", late)
    assert {row["run"] for row in rows(tmp_path / "three", "files")} == {name} and len(rows(tmp_path / "three", "files")) == 2


def test_a_job_has_one_rank_0(run_app, tmp_path):
    paths = [launched(run_app, tmp_path / f"{name}.json", 0, SLURM_JOB_ID="7") for name in "ab"]
    status, said, complaints = run_export("--parquet", tmp_path / "out", *paths)
    assert (status, len(said)) == (2, 1) and re.fullmatch("custream export: .*b.json: is a second rank 0 in run 7, where a is another process; .*", complaints[0])


def test_two_exports_at_once(run_app, tmp_path):
    """The second of two ranks 0 is refused, also where both are judged before one is in its place. The second export begins when the first has judged."""
    ranks = [launched(run_app, tmp_path / f"{name}.json", 0) for name in "ab"]
    program = f"""import os, pathlib, subprocess, sys, time
from custream import export
command, out, a, b = {[str(COMMAND), str(tmp_path / "out"), *map(str, ranks)]!r}
judge = export.Tables.take_place
def waits():
    lock = pathlib.Path(out, ".lock")
    lock = lock.stat().st_ino if lock.exists() else 0
    return any("->" in line and "FLOCK" in line and ":%d " % lock in line for line in open("/proc/locks"))
def take_place(*words):
    global second
    judge(*words)
    second = subprocess.Popen([command, "export", "--parquet", out, "--run=X", b], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    while second.poll() is None and not waits():
        time.sleep(0.01)
export.Tables.take_place = take_place
first = export.command(command, {{"parquet": out, "run": "X"}}, [a])
said = second.communicate()[1]
print(first, second.returncode, said)"""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "CUSTREAM_PYTHON": sys.executable}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout.splitlines()[-2].startswith("0 2 custream export: ") and "b.json: is a second rank 0 in run X, where a is another process" in done.stdout, done
    assert len(rows(tmp_path / "out", "files")) == 1 and not list((tmp_path / "out").glob(".export-*"))


def test_a_second_export_sees_what_came_meanwhile(run_app, tmp_path):
    """Of several files: what another export put there between two of them counts too."""
    ranks = [launched(run_app, tmp_path / f"{name}.json", rank) for name, rank in (("a0", 0), ("a1", 1), ("b1", 1))]
    program = f"""import subprocess, sys
from custream import export
command, out, a0, a1, b1 = {[str(COMMAND), str(tmp_path / "out"), *map(str, ranks)]!r}
made = export.export
def export_one(*words):
    made(*words)
    subprocess.run([command, "export", "--parquet", out, "--run=X", b1], check=True, stdout=subprocess.DEVNULL)
export.export = export_one
sys.exit(export.command(command, {{"parquet": out, "run": "X"}}, [a0, a1]))"""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "CUSTREAM_PYTHON": sys.executable}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 2 and "a1.json: is a second rank 1 in run X, where b1 is another process" in done.stderr, done


def test_one_process_has_its_calls_once(run_app, tmp_path):
    """A window of a trace, and the trace."""
    path = run_app(["burst", 1, 50], trace=tmp_path / "t.json").check().trace
    lines, some = path.read_text().splitlines(True), 0
    for at, line in enumerate(lines):
        if some < 5 and '"cuda_driver"' in line:
            some, lines[at] = some + 1, ""
    (tmp_path / "w.json").write_text("".join(lines))
    status, _, complaints = run_export("--parquet", tmp_path / "out", path, tmp_path / "w.json")
    assert status == 2 and re.fullmatch("custream export: .*w.json: has rows that t of run .* has too: both are of one process and one time; export one of them", complaints[0])


def test_a_trace_without_a_rank(tmp_path):
    """Is none of rank 0: the column is null."""
    good = json.loads(render(GOOD))
    good.pop("distributedInfo", None)
    (tmp_path / "t.json").write_text(json.dumps(good))
    export(tmp_path / "out", tmp_path / "t.json")
    assert {row["rank"] for row in rows(tmp_path / "out", "calls", "rank")} == {None}
    status, _, complaints = run_fleet(tmp_path / "out")
    assert status == 2 and len(complaints) == 1 and re.fullmatch("custream fleet: .*out: t of run .* says no rank, and all answers are by rank", complaints[0]), complaints


def test_names_that_are_patterns(run_app, tmp_path):
    """A folder's, a trace's, and a run's as it was given."""
    folder, path = tmp_path / "a[1]*?{b}'", run_app(["train", 3], trace=tmp_path / "t[2]*.json").check().trace
    export(folder, "--run=exp:1[a]*", path)
    status, said, complaints = run_fleet("--run=exp:1[a]*", folder, "steps")
    assert (status, complaints) == (0, []) and said.startswith("run exp:1[a]*: 1 ranks")
    assert run_fleet("--run=exp", folder)[2] == [f"custream fleet: {folder}: has no run exp; there is exp:1[a]*"]


def test_traces_of_one_name(run_app, tmp_path):
    paths = [tmp_path / name / "t.json" for name in ("a", "b")]
    for path in paths:
        path.parent.mkdir()
        run_app(["burst", 1, 50], trace=path).check()
    export(tmp_path / "out", *paths)
    whole(tmp_path / "out", *map(Trace, paths))
    assert {row["file"] for row in rows(tmp_path / "out", "files")} == {"t", "t-2"}


# ---- What goes wrong ----

def refused(words, line):
    status, said, complaints = run_export(*words)
    assert (status, said) == (2, []) and len(complaints) == 1 and re.fullmatch(f"custream export: {line}", complaints[0]), complaints


def test_bad_usage(run_app, tmp_path):
    trace, out = run_app(["demo"]).check().trace, tmp_path / "out"
    refused([], "which trace?.*")
    refused([trace], "--parquet=DIR: where the tables go is missing")
    refused(["--batches", trace, trace], "--batches: of one trace at a time")
    refused(["--parket", out, trace], ".*did you mean.*--parquet.*")
    refused(["--parquet", out, tmp_path / "nothing.json"], ".*nothing.json: No such file or directory")
    (tmp_path / "no.json").write_text("{}")
    refused(["--parquet", out, tmp_path / "no.json"], ".*no.json: line 1: no trace: it has no list of traceEvents")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("mine")
    refused(["--parquet", tmp_path / "mine", trace], ".*mine: has files, and none is schema.json of an export; .*")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes"]
    refused(["--parquet", trace, trace], ".*: File exists")
    (out / "schema.json").write_text('{"version": 99}')
    refused(["--parquet", out, trace], ".*out: has tables of version 99, and these are of version 2; give another folder")
    assert not list(out.rglob("*.parquet*"))


def test_a_file_that_breaks_in_the_middle(run_app, tmp_path):
    """Nothing of it is left, and what an earlier export made stays."""
    path = run_app(["burst", 1, 3000], trace=tmp_path / "t.json").check().trace
    export(tmp_path / "out", path)
    before = rows(tmp_path / "out", "calls")
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(b'"\n}no JSON')
    refused(["--parquet", tmp_path / "out", path], r".*t.json: line \d+: no JSON: .*")
    assert rows(tmp_path / "out", "calls") == before and not list((tmp_path / "out").rglob("*.part"))


def test_without_what_writes(run_app, tmp_path):
    trace = run_app(["demo"]).check().trace
    for env, line in (({"PYTHONPATH": ""}, "custream export: python3 has no module custream: .*"), ({"CUSTREAM_PYTHON": "/nowhere/python3"}, ".*/nowhere/python3: No such file.*")):
        status, said, complaints = run_export("--parquet", tmp_path / "out", trace, **env)
        assert (status, said) == (2, []) and re.fullmatch(line, complaints[-1]) and len(complaints) == 1, complaints
    (tmp_path / "pyarrow.py").write_text("raise ImportError(\"No module named 'pyarrow'\")")
    status, said, complaints = run_export("--parquet", tmp_path / "out", trace, PYTHONPATH=f"{tmp_path}:{ROOT / 'python'}")
    assert (status, said, complaints) == (2, [], ["custream export: No module named 'pyarrow': install the wheel with its extra \"fleet\""])


def test_what_takes_long_to_load_is_not(run_app, tmp_path):
    """pyarrow would load pandas, where it is installed, and an export that takes a quarter of a second would take half of one."""
    trace = run_app(["demo"]).check().trace
    (tmp_path / "pandas.py").write_text("import os\nos._exit(9)")
    (tmp_path / "sitecustomize.py").write_text("import atexit, sys\natexit.register(lambda: print(sorted({'pandas', 'pyarrow', 'pyarrow.compute'} & sys.modules.keys()), file=sys.stderr))")
    status, _, complaints = run_export("--parquet", tmp_path / "out", trace, PYTHONPATH=f"{tmp_path}:{ROOT / 'python'}")
    assert (status, complaints) == (0, ["['pyarrow']"])


def test_a_reader_that_goes(run_app):
    path = run_app(["demo"]).check().trace
    done = subprocess.run(["/bin/sh", "-c", f"'{COMMAND}' export --batches '{path}' | head -c 1"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and re.fullmatch("(custream export: standard output: Broken pipe\n)?", done.stderr)


# ---- Arrays by their memory ----

def test_a_column_is_what_pyarrow_says():
    """Also of several pieces, cut at their ends; with nulls; of single bits; without a row."""
    columns = [pa.chunked_array([pa.array([5, 6, 7, 8], kind)[1:3], pa.array([], kind), pa.array([9], kind)]) for kind in (pa.int32(), pa.int64(), pa.float64())]
    columns += [pa.chunked_array([[1, None, 3]]), pa.chunked_array([[True, False, True]]), pa.chunked_array([], pa.int64())]
    for column in columns:
        ours, theirs = _arrow.numbers(np, column), column.to_numpy()
        assert ours.dtype == theirs.dtype and np.array_equal(ours, theirs, equal_nan=ours.dtype == float), column
    for kind in (pa.int32(), pa.int64()):
        assert _arrow.whole(pa, [-3, 0, 2**31 - 1], kind).equals(pa.array([-3, 0, 2**31 - 1], kind))
    assert _arrow.texts(pa, ["", "ü", "two words"]).equals(pa.array(["", "ü", "two words"]))


# ---- The page ----

def test_the_page_has_each_column(root):
    text = (root / "docs/export.md").read_text(encoding="utf-8")
    defined = re.findall(r'^COLUMN\((\w+), (\w+), (\w+), \w+, "(.*)"\)$', (root / "tools/custream/export/columns.def").read_text(encoding="utf-8"), re.M)
    said = [(table, *row) for table, part in re.findall(r"^### `(\w+)`\n(.*?)(?=^##|\Z)", text, re.M | re.S) for row in re.findall(r"^\| `(\w+)` \| (\w+) \| (.*) \|$", part, re.M)]
    assert [(table.lower(), name, kind.lower(), says) for table, name, kind, says in defined] == said
    assert {table: dict(columns) for table, columns in schema()["tables"].items()} == {
        table: {name: kind for of, name, kind, _ in said if of == table} for table, *_ in said}


def test_examples_of_the_page(root, run_app, tmp_path):
    """Each query in the page runs on what an export made."""
    export(tmp_path / "tables", run_app(["demo"]).check().trace)
    queries = re.findall(r"^```sql\n(.*?)^```", (root / "docs/export.md").read_text(encoding="utf-8"), re.M | re.S)
    assert len(queries) >= 3
    for query in queries:
        assert duckdb.sql(query.replace("'tables/", f"'{tmp_path}/tables/")).fetchall()


@pytest.mark.parametrize("number", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_ended_by_a_signal(tmp_path, number):
    """Nothing is left of the tables that it had begun, and it ends by that signal."""
    (tmp_path / "good.json").write_text(render(GOOD), encoding="utf-8")
    begun = tmp_path / "tables"
    program = f"""import os, pathlib, signal, sys
from custream import export
def finish(tables, *_):
    assert list(pathlib.Path({str(begun)!r}).rglob("*.part"))
    os.kill(os.getpid(), signal.{number})
export.Tables.finish = finish
sys.exit(export.command({str(COMMAND)!r}, {{"parquet": {str(begun)!r}}}, [{str(tmp_path / "good.json")!r}]))"""
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": str(ROOT / "python")}, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr) == (-getattr(signal, number), "") and begun.exists() and not list(begun.rglob("*.part*"))
