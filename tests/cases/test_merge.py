"""`custream merge`: all rows of several traces once each, at the right time, under pids and ids of their own; and what it refuses, leaving nothing."""
import collections
import gzip
import json
import os
import re
import resource
import signal
import subprocess
import time

import pytest

from tests.cases.conftest import app_environment
from tests.handmade import COMMAND, GOOD, HEADER, HOST, TRAILER, custream, render, slice_, good_trailer
from tests.perfetto import assert_clean
from tests.trace import check_file, tell_shapes

NAMES = ("process_name", "process_labels", "process_sort_index")
ID_KEYS = ("id", "bind_id")


def load(path):
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)


def ns(us):
    return round(us * 1000)


def merge(out, *files, options=()):
    """The merged trace, as JSON."""
    done = custream("merge", "-o", out, *options, *files)
    assert (done.returncode, done.stderr) == (0, ""), (done.returncode, done.stderr)
    return load(out)


def refused(out, *files, options=(), words=""):
    """One complaint; OUT is as it was, and nothing lies beside it."""
    before = {path: path.read_bytes() for path in out.parent.iterdir() if path.is_file()}
    done = custream("merge", "-o", out, *options, *files)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and words in done.stderr and not done.stdout, (done.returncode, done.stderr)
    assert {path: path.read_bytes() for path in out.parent.iterdir() if path.is_file()} == before
    return done.stderr


def plain(event, shift=0, pids=None):
    """A row without what merging may change, at the time that it has in the merged trace."""
    row = {key: value for key, value in event.items() if key not in ID_KEYS}
    if "ts" in row:
        row["ts"] = ns(row["ts"]) + shift
    row["pid"] = pids[str(row["pid"])] if pids else row["pid"]
    row["args"] = {key: value for key, value in event.get("args", {}).items() if key not in ("correlation", "event_wait_ids")}
    return json.dumps(row, sort_keys=True)


def arrows(events):
    """Flows as (cat, lane and time of each end), whatever their ids; how often."""
    ends = collections.defaultdict(list)
    for event in events:
        if event["ph"] in "stf":
            ends[event["id"]].append((event["ph"], event["cat"], event["pid"], event["tid"], ns(event["ts"])))
        if "bind_id" in event:
            ends["bound", event["bind_id"]].append(("flow_out" in event, event["pid"], event["tid"], ns(event["ts"])))
    return collections.Counter(tuple(sorted(rows)) for rows in ends.values())


def waits(events):
    """Work, and the work that it says it waited for, by lane and time; how often."""
    place = {id(event): (event["pid"], event["tid"], ns(event["ts"])) for event in events if "ts" in event}
    made = collections.defaultdict(list)
    for event in events:
        if "flow_in" in event:
            made[event["args"]["correlation"]].append(place[id(event)])
    return collections.Counter((place[id(event)], *sorted(sum((made[i] for i in event["args"]["event_wait_ids"]), [])))
                               for event in events if "event_wait_ids" in event.get("args", {}))


def rows_of(trace):
    tell_shapes(trace["traceEvents"])
    return [event for event in trace["traceEvents"] if event["name" if "name" in event else "ph"] not in NAMES]


def whole(merged, *files):
    """Each row of each file is in the merged trace once, and each arrow leads from where to where it led."""
    said = {entry["file"]: entry for entry in merged["metadata"]["merged"]["files"]}
    assert set(said) == {str(path) for path in files}
    wanted, wanted_arrows, wanted_waits = collections.Counter(), collections.Counter(), collections.Counter()
    for path in files:
        trace, entry = load(path), said[str(path)]
        moved = [dict(event, pid=entry["pids"][str(event["pid"])], **({"ts": (ns(event["ts"]) + entry["shift_ns"]) / 1000} if "ts" in event else {}))
                 for event in rows_of(trace)]
        wanted.update(map(plain, moved))
        wanted_arrows.update(arrows(moved))
        wanted_waits.update(waits(moved))
    assert collections.Counter(map(plain, rows_of(merged))) == wanted
    assert arrows(merged["traceEvents"]) == wanted_arrows
    assert waits(merged["traceEvents"]) == wanted_waits


PLACES = """(SELECT s.id, s.ts, s.dur, COALESCE(p.pid, q.pid, -1) AS pid FROM slice s
             LEFT JOIN thread_track tt ON tt.id = s.track_id LEFT JOIN thread t ON t.utid = tt.utid LEFT JOIN process p ON p.upid = t.upid
             LEFT JOIN process_track pt ON pt.id = s.track_id LEFT JOIN process q ON q.upid = pt.upid)"""
SUMS = {
    "slices": f"SELECT pid, COUNT(*) AS n, SUM(ts) AS ts, SUM(dur) AS dur FROM {PLACES} GROUP BY pid",
    "flows": f"SELECT a.pid AS pid, b.pid AS other, COUNT(*) AS n, SUM(a.ts) AS ts FROM flow f "
             f"JOIN {PLACES} a ON a.id = f.slice_out JOIN {PLACES} b ON b.id = f.slice_in GROUP BY 1, 2",
    "counters": "SELECT p.pid AS pid, COUNT(*) AS n, SUM(c.ts) AS ts, SUM(c.value) AS value FROM counter c "
                "JOIN process_counter_track t ON t.id = c.track_id JOIN process p USING (upid) GROUP BY 1"}


def sums(tp, path):
    tp.load(path)
    assert_clean(tp)
    return {what: tp.query(sql) for what, sql in SUMS.items()}


def in_perfetto(tp, out, *files):
    """By process, Perfetto counts as many slices, flows and counter values as in the files, and their times add up to the same, moved by the shift."""
    said = {entry["file"]: entry for entry in load(out)["metadata"]["merged"]["files"]}
    wanted = {what: collections.Counter() for what in SUMS}
    for path in files:
        entry = said[str(path)]
        entry["pids"]["-1"] = -1  # a span with a plain id is of no process
        for what, rows in sums(tp, path).items():
            assert what != "slices" or rows
            for row in rows:
                key = tuple(entry["pids"][str(row[name])] for name in ("pid", "other") if name in row)
                for name in row.keys() - {"pid", "other"}:
                    wanted[what][(*key, name)] += row[name] + (entry["shift_ns"] * row["n"] if name == "ts" else 0)
    found = {what: collections.Counter({(*(row[name] for name in ("pid", "other") if name in row), name): row[name]
                                        for row in rows for name in row.keys() - {"pid", "other"}}) for what, rows in sums(tp, out).items()}
    assert found == wanted


def groups(merged):
    """The names of the groups, in the order in which Perfetto shows them."""
    def said(what, key):
        return {e["pid"]: e["args"][key] for e in merged["traceEvents"] if e.get("name") == what}
    order = said("process_sort_index", "sort_index")
    names = said("process_name", "name")
    assert set(order) == set(names) == {event["pid"] for event in merged["traceEvents"]}
    return [names[pid] for pid in sorted(names, key=order.get)]


@pytest.fixture(scope="module")
def ranks(build, tmp_path_factory):
    """Traces of three ranks with two GPUs each, last rank first."""
    folder, paths = tmp_path_factory.mktemp("ranks"), []
    for rank in (2, 0, 1):
        paths.append(folder / f"rank{rank}.json")
        env = app_environment(build, paths[-1], True, {"RANK": rank, "WORLD_SIZE": 3, "CUSTREAM_FAKE_DEVICES": 2})
        subprocess.run([build / "tests/devices"], env=env, capture_output=True, check=True, timeout=60)
    return paths


@pytest.fixture(scope="module")
def demos(build, tmp_path_factory):
    """Two traces of a program with arrows, counters, copies and graphs."""
    folder, paths = tmp_path_factory.mktemp("demos"), []
    for number in range(2):
        paths.append(folder / f"demo{number}.json")
        subprocess.run([build / "tests/demo"], env=app_environment(build, paths[-1], True, {}), capture_output=True, check=True, timeout=60)
    return paths


# --- what is in it ---

def test_ranks(ranks, tmp_path, trace_processor):
    out = tmp_path / "all.json"
    merged = merge(out, *ranks)
    whole(merged, *ranks)
    assert check_file(out) == "ok"
    assert groups(merged) == [f"rank {rank}, {what}" for rank in range(3) for what in ("host", "GPU 0", "GPU 1")]
    in_perfetto(trace_processor, out, *ranks)


def test_processes(demos, tmp_path, trace_processor):
    """Without ranks, groups have the program's name and the pid; totals are those of both."""
    out = tmp_path / "both.json"
    merged = merge(out, *demos)
    whole(merged, *demos)
    assert check_file(out) == "ok"
    pids = [load(path)["traceEvents"][0]["pid"] for path in demos]
    assert groups(merged) == [f"demo {pid}, {what}" for pid in pids for what in ("host", "GPU 0")]
    files = [load(path) for path in demos]
    assert merged["totals"]["recorded"] == sum(trace["totals"]["recorded"] for trace in files) > 0
    assert merged["totals"]["gpu"]["kernels"] == sum(trace["totals"]["gpu"]["kernels"] for trace in files) > 0
    assert [entry["totals"] for entry in merged["merged"]] == [trace["totals"] for trace in files]
    own = {pid: entry["file"] for entry in merged["metadata"]["merged"]["files"] for pid in entry["pids"].values()}
    tied = {(event["args"]["correlation"], own[event["pid"]]) for event in merged["traceEvents"] if event.get("args", {}).get("correlation")}
    assert len({number for number, _ in tied}) == len(tied) > 0
    assert [entry["shift_ns"] for entry in merged["metadata"]["merged"]["files"]] == [0, files[1]["baseTimeNanoseconds"] - files[0]["baseTimeNanoseconds"]]
    in_perfetto(trace_processor, out, *demos)


def test_parts(build, tmp_path, trace_processor):
    """Parts of one process are one process again, in their order whatever that of the command line is."""
    env = app_environment(build, tmp_path / "t.json", True, {"CUSTREAM_FULL": "block", "CUSTREAM_TRACE_MAX": "1M,rotate:99"})
    subprocess.run([build / "tests/parts", "all", "2500"], env=env, capture_output=True, check=True, timeout=60)
    parts = sorted(tmp_path.glob("t*.json"))
    assert len(parts) >= 3
    out = tmp_path / "whole.json.gz"
    merged = merge(out, *reversed(parts))
    assert out.read_bytes()[:2] == b"\x1f\x8b"
    whole(merged, *parts)
    assert check_file(out) == "ok" and groups(merged) == ["parts, host", "parts, GPU 0"]
    assert [entry["part"] for entry in merged["metadata"]["merged"]["files"]] == list(range(1, len(parts) + 1))
    in_perfetto(trace_processor, out, *parts)
    refused(tmp_path / "bad.json", parts[0], parts[1], parts[0], words="the same file")


def test_committed_traces(root, tmp_path, trace_processor):
    files = sorted((root / "traces").glob("*.json.gz"))
    out = tmp_path / "all.json.gz"
    whole(merge(out, *files), *files)
    assert len(files) >= 5
    in_perfetto(trace_processor, out, *files)


# --- files by hand: pids, ids, times, errors ---

def made(path, base=1760000000000000000, rows=None, trailer=TRAILER, header=HEADER, error=120, pid=HOST):
    """The good trace by hand, of another time or process."""
    text = render(rows or GOOD, header, trailer).replace("1760000000000000000", str(base)).replace('_ns":120', f'_ns":{error}')
    path.write_text(text.replace(f'"pid":{HOST}', f'"pid":{pid}').replace(f'"tid":{HOST}', f'"tid":{pid}'), encoding="utf-8")
    return path


def test_same_pid_in_two_files(tmp_path, trace_processor):
    files = [made(tmp_path / "a.json"), made(tmp_path / "b.json", base=1760000000000000000 + 1234567, error=7)]
    out = tmp_path / "out.json"
    merged = merge(out, *files)
    whole(merged, *files)
    said = merged["metadata"]["merged"]
    assert [entry["shift_ns"] for entry in said["files"]] == [0, 1234567] and said["clock_error_ns"] == 127
    assert merged["baseTimeNanoseconds"] == 1760000000000000000
    one, other = (set(entry["pids"].values()) for entry in said["files"])
    assert not one & other and HOST in one and len(one) == len(other) == 2
    assert groups(merged) == ["app 4242 #1, host", "app 4242 #1, GPU 0", "app 4242 #2, host", "app 4242 #2, GPU 0"]
    assert check_file(out) == "incomplete"
    in_perfetto(trace_processor, out, *files)


def test_later_file_first(tmp_path):
    """The base is the earliest of all, whichever file comes first."""
    files = [made(tmp_path / "a.json", base=1760000000000005001), made(tmp_path / "b.json", pid=4300)]
    merged = merge(tmp_path / "out.json", *files)
    whole(merged, *files)
    assert [(entry["pid"], entry["shift_ns"]) for entry in merged["metadata"]["merged"]["files"]] == [(4300, 0), (HOST, 5001)]


def test_no_anchor(tmp_path):
    header = [HEADER[0].replace('"baseTimeNanoseconds":1760000000000000000,', ""), *HEADER[1:]]
    files = [made(tmp_path / "a.json", header=header), made(tmp_path / "b.json", pid=4300)]
    out = tmp_path / "out.json"
    refused(out, *files, words=f"{files[0]}: no baseTimeNanoseconds")
    merged = merge(out, *files, options=["--align=start"])
    whole(merged, *files)
    assert merged["metadata"]["merged"]["align"] == "start"
    assert [entry["shift_ns"] for entry in merged["metadata"]["merged"]["files"]] == [-10000, -10000]
    assert check_file(out) == "incomplete"


def test_too_far_apart(tmp_path):
    refused(tmp_path / "out.json", made(tmp_path / "a.json"), made(tmp_path / "b.json", base=4790000000000000000), words="73 years")


def test_the_same_twice(tmp_path):
    first = made(tmp_path / "a.json")
    copy, link = made(tmp_path / "b.json"), tmp_path / "c.json"
    link.symlink_to(first)
    refused(tmp_path / "out.json", first, copy, words="the same trace as")
    refused(tmp_path / "out.json", first, link, words="the same file as")


def test_window(tmp_path):
    """The first event is at 10 us: the window is 40 to 43 us of the first file, and 38 to 41 us of the other, which began 2 us later."""
    files = [made(tmp_path / "a.json"), made(tmp_path / "b.json", base=1760000000000002000, pid=4300)]
    out = tmp_path / "out.json"
    merged = merge(out, *files, options=["--window=30us,0.000033"])
    first, second = (set(entry["pids"].values()) for entry in merged["metadata"]["merged"]["files"])
    kept = [collections.Counter((event["ph"], event.get("name", "")) for event in rows_of(merged) if event["ph"] != "M" and event["pid"] in pids)
            for pids in (first, second)]
    assert kept[0] == {("X", "j"): 1, ("X", "Memset (Device)"): 1, ("X", "Stream Sync"): 1, ("b", "wait"): 1, ("e", "wait"): 1}
    assert kept[1] == {("X", "j"): 1, ("X", "Memset (Device)"): 1}
    assert check_file(out) == "ok" and merged["metadata"]["merged"]["window_ns"] == [40000, 43000]


def test_window_keeps_pairs_arrows_and_the_last_value(tmp_path):
    """The range from B to E, as other tools have it, reaches into the window; of the arrow one end does; the counter's last value before it holds."""
    out = tmp_path / "out.json"
    half = {"cat": "user_annotation", "name": "step", "pid": HOST, "tid": 4250}
    source = made(tmp_path / "a.json", rows=dict(GOOD, b={"ph": "B", "ts": 60, **half}, e={"ph": "E", "ts": 70, **half}))
    merged = merge(out, source, options=["--window=55us,56us"])
    assert [event["ph"] for event in rows_of(merged) if event["ph"] in "BEC"] == ["C", "B", "E"]
    merged = merge(out, source, options=["--window=4us,20us"])
    assert "kernel" in {event.get("cat") for event in rows_of(merged)} and not [event for event in rows_of(merged) if event["ph"] in "sf"] and check_file(out) == "ok"
    merged = merge(out, source, options=["--window=0,5us"])
    assert sum(arrows(merged["traceEvents"]).values()) == 2


def test_window_between_the_slices_of_an_arrow(demos, tmp_path, trace_processor):
    """Slices that are bound to each other: one of them alone is in the window, and stays as it is. Perfetto has no arrow for it, and no complaint."""
    out = tmp_path / "out.json"
    rows = load(demos[0])["traceEvents"]
    begins, ends = ({row["bind_id"]: row for row in rows if row.get(key)} for key in ("flow_out", "flow_in"))
    first = min(row["ts"] for row in rows if "ts" in row)
    number = max(ends, key=lambda number: ends[number]["ts"] - begins[number]["ts"] - begins[number]["dur"])
    left, right = (ends[number]["ts"] - first, ends[number]["ts"] - first + ends[number]["dur"])
    merged = rows_of(merge(out, demos[0], options=[f"--window={left:.3f}us,{right:.3f}us"]))
    assert [row for row in merged if row.get("flow_in")] and not [row for row in merged if row.get("bind_id") == number and row.get("flow_out")]
    assert check_file(out) == "ok"
    trace_processor.load(out)
    assert_clean(trace_processor)
    began = {row["bind_id"] for row in merged if row.get("flow_out")}
    assert trace_processor.value("SELECT count(*) FROM flow") == sum(row["ph"] == "f" or (row.get("flow_in", False) and row["bind_id"] in began) for row in merged)


def test_window_over_all_is_all(demos, tmp_path):
    whole(merge(tmp_path / "out.json", *demos, options=["--window=0,1000"]), *demos)


def test_files_of_another_tool(tmp_path, trace_processor):
    """Rows on several lines, no rows' order, no category known, names for pids: all of it is there, apart from a trace of custream."""
    rows = [{"ph": "X", "cat": "op", "name": "loop step", "pid": "loop", "tid": 5, "ts": 3.25, "dur": 4}, {"ph": "s", "cat": "x", "name": "x", "id": 91, "pid": "loop", "tid": 5, "ts": 3.25},
            {"ph": "X", "cat": "op", "name": "in \"q\" [{", "pid": 70, "tid": 6, "ts": 8.5, "dur": 1}, {"ph": "f", "bp": "e", "cat": "x", "name": "x", "id": 91, "pid": 70, "tid": 6, "ts": 8.5}]
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"traceEvents": rows, "baseTimeNanoseconds": 1760000000000001000}, indent=2), encoding="utf-8")
    files = [made(tmp_path / "a.json"), other]
    out = tmp_path / "out.json"
    merged = merge(out, *files)
    whole(merged, *files)
    trace_processor.load(out)
    assert trace_processor.value("SELECT COUNT(*) FROM flow") == 3
    assert trace_processor.value("SELECT ts FROM slice WHERE name = 'loop step'") == 4250


@pytest.mark.parametrize("content, words", [
    ("", "empty"), ("[]", "no baseTimeNanoseconds"), ("{\n}", "line 2: no trace: it has no list of traceEvents"), ("hello", "no trace"), ('{"traceEvents":3}', "no list"),
    ('{"traceEvents":[3]}', "no object"), ('{"traceEvents":[{"ph":"X" "ts":1}]}', "expected a comma"), ('{"traceEvents":[{"ph":"X","ts":01}]}', "leading zero"),
    ('{"traceEvents":[{"ph":"X","pid":1}],"baseTimeNanoseconds":1}', "no time"), ('{"traceEvents":[{"ph":"i","ts":1,"ts":2}]}', "twice"),
    ('{"traceEvents":[]} x', "behind the end"), ('{"traceEvents":[{"ph":"i","name":"\\q"}]}', "escape"), ('{"other":1', "cut off"),
    ('{"traceEvents":[{"ph":"i","ts":1,"pid":{"a":1}}]}', "no pid"), ('{"traceEvents":[{"ph":"i","ts":1,"pid":[1]}]}', "no pid")])
def test_broken_files(tmp_path, content, words):
    bad = tmp_path / "bad.json"
    bad.write_text(content, encoding="utf-8")
    assert str(bad) in refused(tmp_path / "out.json", made(tmp_path / "a.json"), bad, words=words)


def test_missing_file_and_damaged_gzip(tmp_path):
    good, bad = made(tmp_path / "a.json"), tmp_path / "bad.json.gz"
    refused(tmp_path / "out.json", good, tmp_path / "none.json", words="No such file")
    packed = bytearray(gzip.compress(good.read_bytes() * 50))
    packed[len(packed) // 2] ^= 0xff
    bad.write_bytes(packed)
    refused(tmp_path / "out.json", good, bad)


@pytest.mark.parametrize("packed", [False, True])
def test_cut_file(tmp_path, packed):
    """What a killed process leaves is merged up to where it ends, which is said."""
    good = made(tmp_path / "a.json")
    data = good.read_bytes()
    cut = tmp_path / "cut.json"
    data = data[:data.index(b'"Memset')].replace(b"4242", b"4300")
    cut.write_bytes(gzip.compress(data)[:-9] if packed else data)
    out = tmp_path / "out.json"
    done = custream("merge", "-o", out, good, cut)
    assert done.returncode == 0 and f"{cut}: truncated" in done.stderr and "13 events" in done.stderr
    merged = load(out)
    assert [entry["truncated"] for entry in merged["metadata"]["merged"]["files"]] == [False, True]
    assert check_file(out) == "incomplete: one of the merged traces is" and "recorded" not in merged["totals"]


def test_incomplete_file(tmp_path):
    files = [made(tmp_path / "a.json"), made(tmp_path / "b.json", pid=4300, trailer=good_trailer({"complete": False}))]
    out = tmp_path / "out.json"
    assert merge(out, *files)["totals"]["recorded"] == 6
    assert check_file(out) == "incomplete: one of the merged traces is"


@pytest.mark.parametrize("parts", [False, True])
def test_what_had_no_room(tmp_path, parts):
    """Of two processes both counts, of two parts the later one: it is of both."""
    def one(name, base, part, waits):
        header = [HEADER[0] + f'"part":{part},', *HEADER[1:]] if parts else HEADER
        all_ = {"part": part, "recorded_in_all_parts": 3 * part, "lost_in_all_parts": 2 * part, "parts_deleted": 0, "recorded_in_deleted_parts": 0} if parts else {}
        return made(tmp_path / name, base, trailer=good_trailer({"no_room": {"waits": waits}, **all_}), header=header, pid=4242 if parts else 4000 + part)
    out = tmp_path / "out.json"
    start = 1760000000000000000
    merged = merge(out, one("a.json", start, 1, 3), one("b.json", start if parts else start + 99, 2, 5))
    assert merged["totals"]["no_room"] == {"waits": 5 if parts else 8}
    assert parts or "8 waits without the work that released them" in custream("check", out).stdout  # both parts have the same rows here


# --- where it goes ---

def test_out_is_an_input(tmp_path):
    good = made(tmp_path / "a.json")
    refused(good, good, made(tmp_path / "b.json", pid=4300), words="one of the traces")
    link = tmp_path / "link.json"
    os.link(good, link)
    refused(link, good, words="one of the traces")


def test_out_is_no_trace(tmp_path):
    other = tmp_path / "package.json"
    other.write_text('{"name": "mine"}', encoding="utf-8")
    assert "CUSTREAM_FORCE" not in refused(other, made(tmp_path / "a.json"), words="no trace")


def test_out_is_an_earlier_trace(tmp_path):
    """It is replaced, a merged one too; where merging fails it stays."""
    out, good = made(tmp_path / "out.json", pid=4400), made(tmp_path / "a.json")
    bad = tmp_path / "bad.json"
    bad.write_text("{", encoding="utf-8")
    refused(out, good, bad)
    for _ in range(2):
        whole(merge(out, good), good)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "bad.json", "out.json"]


def test_no_room(tmp_path):
    """A write that fails halfway leaves nothing."""
    rows = {f"c{i}": slice_("cuda_driver", "cuInit" + "x" * 50, HOST, 4250, 10 + i, 0.5) for i in range(20000)}
    big, out = made(tmp_path / "big.json", rows=rows), tmp_path / "out.json"
    done = subprocess.run([COMMAND, "merge", "-o", out, big], capture_output=True, text=True, timeout=60, check=False,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)))
    assert done.returncode == 2 and "File too large" in done.stderr, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["big.json"]


def test_ended_by_a_signal(tmp_path):
    """It waits to say that a file is truncated, since its stderr is a pipe that is full; ended then, it leaves nothing."""
    cut, out = made(tmp_path / "cut.json"), tmp_path / "out.json"
    cut.write_bytes(cut.read_bytes()[:-200])
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(writes, b"x" * 512)
    os.set_blocking(writes, True)
    with subprocess.Popen([COMMAND, "merge", "-o", out, cut], stderr=writes) as process:
        while len(list(tmp_path.glob("out.json*"))) < 2:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == -signal.SIGTERM
    os.close(reads)
    os.close(writes)
    assert [path.name for path in tmp_path.iterdir()] == ["cut.json"]


def test_a_pipe_is_refused(tmp_path):
    """It could be read once only."""
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    refused(tmp_path / "out.json", made(tmp_path / "a.json"), pipe, words="no regular file")


def test_memory_stays(tmp_path):
    """A file twenty times as long takes no more."""
    def peak(count):
        rows = (f'{{"ph":"X","cat":"cuda_driver","name":"cuInit","pid":{HOST},"tid":4250,"ts":{10 + i},"dur":0.5,"args":{{"correlation":{i + 1}}}}}' for i in range(count))
        big = tmp_path / f"{count}.json"
        big.write_text("\n".join(HEADER) + "\n" + ",\n".join(rows) + "\n" + TRAILER + "\n", encoding="utf-8")
        with subprocess.Popen([COMMAND, "merge", "-o", tmp_path / "out.json", "--window=0,9", big], stdout=subprocess.DEVNULL) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = status
        assert status == 0
        return usage.ru_maxrss
    assert peak(400000) < peak(20000) + 4096


@pytest.mark.parametrize("options, words", [
    ([], "-o OUT is missing"), (["-o", "OUT"], "which files?"), (["-o", "OUT", "--align=x", "a"], "--align='x'"), (["-o", "OUT", "--window=3", "a"], "--window='3'"),
    (["-o", "OUT", "--window=3,2", "a"], "--window='3,2'"), (["-o", "OUT", "--window=1d,2d", "a"], "--window"), (["-o", "OUT", "--nothing", "a"], "nothing")])
def test_wrong_usage(tmp_path, options, words):
    done = custream("merge", *options, cwd=tmp_path)
    assert done.returncode == 2 and words in done.stderr and not list(tmp_path.iterdir())


def test_help():
    assert custream("merge", "--help").stdout == custream("help", "merge").stdout
    assert re.search(r"^  merge ", custream("help").stdout, re.M)


# --- check, of merged traces ---

@pytest.mark.parametrize("change, words", [
    (lambda t: t.replace('"device":0', '"device":1', 1), "rule 2"), (lambda t: t.replace('"recorded":6', '"recorded":7'), "rule 12"),
    (lambda t: t.replace('"kernels":4', '"kernels":5', 1), "rule 12"), (lambda t: t.replace('"lost_records":14', '"lost_records":15', 1), "rule 10"),
    (lambda t: t.replace('"merged":{', '"others":{', 1), "rule 2")])
def test_check_of_a_merged_trace(tmp_path, change, words):
    out = tmp_path / "out.json"
    merge(out, made(tmp_path / "a.json"), made(tmp_path / "b.json", pid=4300))
    assert custream("check", out).returncode == 0
    text = out.read_text(encoding="utf-8")
    out.write_text(change(text), encoding="utf-8")
    assert change(text) != text and words in custream("check", out).stdout


# --- what a report is not of ---

@pytest.mark.parametrize("command", ["report", "diff"])
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
def test_no_report_of_a_merged_trace(tmp_path, command, count, suffix):
    """Not even where a trace of one process stands before it."""
    one, out = made(tmp_path / "a.json"), tmp_path / f"out{suffix}"
    merge(out, *[one, made(tmp_path / "b.json", pid=4300)][:count])
    for files in ([one, out], [out, one]) if command == "diff" else ([out], [one, out]):
        done = custream(command, *files)
        assert done.returncode == 2 and not done.stdout
        assert done.stderr == f"custream {command}: {out}: made by 'custream merge': a report is of one run; give it the files that this one was made of\n"


# --- small mistakes ---

def test_a_window_behind_the_end_is_refused(tmp_path):
    """Seconds, where milliseconds were meant, would make an empty timeline."""
    path, out = tmp_path / "t.json", tmp_path / "out.json"
    path.write_text(render(GOOD))
    whole = merge(out, path)
    length = max(row["ts"] + row.get("dur", 0) for row in whole["traceEvents"] if "ts" in row) - min(row["ts"] for row in whole["traceEvents"] if "ts" in row)
    before = out.read_bytes()
    refused(out, path, options=["--window=12.5,12.7"], words=f"begins at 12.500000 s, and all is over {length / 1e6:.6f} s after the first event")
    assert out.read_bytes() == before
    assert merge(out, path, options=[f"--window={length:.0f}us,1s"])["traceEvents"]


def test_words_of_one_file(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(render(GOOD))
    assert custream("merge", "-o", tmp_path / "out.json", path).stdout == f"{tmp_path / 'out.json'}: 1 file, 1 process\n"


def test_standard_output_is_no_file(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(render(GOOD))
    done = custream("merge", "-o", "-", path, cwd=tmp_path)
    assert done.returncode == 2 and "not standard output" in done.stderr and not (tmp_path / "-").exists()


@pytest.mark.parametrize("number", ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGXCPU", "SIGPIPE"])
@pytest.mark.parametrize("name, files", [("out.json", 2), ("out.pftrace", 3)])
def test_ended_as_a_file_of_its_own_comes_up(build, tmp_path, name, files, number):
    """The output, the text and the packets: each is gone, though the signal came before anything else could be done."""
    number = getattr(signal, number)
    rows = {key: row for key, row in GOOD.items() if "id" not in row}  # packets have no place for a span that has a number of the old form
    good, out = made(tmp_path / "good.json", rows=rows), tmp_path / name
    for n in range(1, files + 2):
        environment = {**os.environ, "LD_PRELOAD": str(build / "tests/libinterrupts.so"), "INTERRUPTS": f"{n}:{int(number)}"}
        done = subprocess.run([COMMAND, "merge", "-o", out, good], env=environment, cwd=tmp_path, capture_output=True, timeout=60, check=False,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
        left = sorted(path.name for path in tmp_path.iterdir())
        assert (done.returncode, left) == ((0, ["good.json", name]) if n > files else (-number, ["good.json"])), (n, done, left)
