"""The custream command: what `check` says of good and of broken traces, and what `run` hands to the program that it starts."""

import errno
import gzip
import json
import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from tests.handmade import (COMMAND, NO_CUDA, GOOD, GPU, HEADER, HOST, SHIM, TRAILER, WORK, assert_breach, bound, check, copy_rows, custream, flow, lane, line_of,
                            meta, render, slice_, good_trailer)
from tests.trace import PEERS


def test_good_trace(tmp_path):
    result, path = check(tmp_path, render(GOOD))
    assert result.stdout == f"{path}: incomplete: events 20, slices 9, flows 2, threads 1, lanes 3, lost records 7, 3 GPU operations without their calls\n"
    assert (result.returncode, result.stderr) == (0, "")


def test_good_trace_in_gzip_members(tmp_path):
    text = render(GOOD).encode()
    cut = text.index(b'],"traceName"')
    result, _ = check(tmp_path, gzip.compress(text[:500]) + gzip.compress(text[500:cut]) + gzip.compress(text[cut:]), "t.json.gz")
    assert result.returncode == 0 and "slices 9" in result.stdout, result.stdout + result.stderr


def test_rows_of_gpu_times(tmp_path):
    """Graph launches, ranges between events, the other side of a peer copy, and dependencies that start inside work."""
    rows = dict(copy_rows(), **{
        **dict(zip(("call", "graph", "other call", "calls"), [
            *bound(slice_("cuda_driver", "cuGraphLaunch", HOST, 4250, 72, 0.5, **{"correlation": 92, "cs.stream": 13}),
                   slice_("gpu_graph", "graph 3", GPU, WORK, 130, 4, device=0, stream=13, correlation=92)),
            *bound(slice_("cuda_driver", "cuGraphLaunch", HOST, 4250, 73, 0.5, **{"correlation": 93, "cs.stream": 13}),
                   slice_("gpu_range", "5 calls", GPU, WORK, 140, 4, device=0, stream=13, correlation=93))])),
        "peer": slice_("cs_peer", "Memcpy PtoP (Device -> Device)", GPU, PEERS, 150, 4, device=0, correlation=94),
        "dep s": flow("s", 1 << 42, GPU, WORK, 133), "dep f": flow("f", 1 << 42, GPU, WORK, 143)})
    good = {"peer lane": meta("thread_name", GPU, PEERS, "peer copies", **{"cs.stream": 0}), **rows}
    result, _ = check(tmp_path, render(good, trailer=good_trailer({"recorded": 5, "calls": 3}, {"graphs": 1, "ranges": 1})))
    assert result.returncode == 0, result.stdout
    for name, rule, change, words in [("graph", 2, {"pid": HOST, "tid": 4250, "ts": 500}, "ordinal"), ("calls", 3, {"args": {"stream": 14}}, "args.stream"),
                                      ("peer", 7, {"args": {"stream": 13}}, "args.stream"), ("dep s", 8, {"cat": "cs_peer"}, "cs_peer")]:
        bad = {key: dict(row, **change) if key == name else row for key, row in good.items()}
        assert_breach(tmp_path, render(bad), line_of(bad, name), rule, words)


def test_rows_of_the_audit(tmp_path):
    """Of the default stream: rows and arrows, and the trailer that sums them up."""
    side = {"operation": "cuLaunchKernel", "thread": 1}
    audit = {"verdict": "not safe", "hazards": [{"first": side, "second": side, "count": 2}], "lost_orders": 3}
    good = {"audit lane": lane(1360, "stream 13 (audit)"), **copy_rows(), "audit": slice_("cs_audit", "implicit wait", GPU, 1360, 130, 4, **{"cs.stream": 13, "verdict": "hazard"}),
            "instant": {"ph": "i", "s": "t", "cat": "cs_audit", "name": "implicit wait", "pid": GPU, "tid": 1360, "ts": 131, "args": {"verdict": "nobody needed it"}}}

    def with_audit(**change):
        return good_trailer(defaultStreamAudit=dict(audit, **change))
    result, _ = check(tmp_path, render(good, trailer=with_audit()))
    assert result.returncode == 0, result.stdout
    for change, words in [({"verdict": "cannot tell"}, "does not say why"), ({"verdict": "fine"}, "known verdict"), ({"verdict": "safe"}, "lost_orders is 3"), ({"lost_orders": 1}, "hazards have 2"),
                          ({"lost_orders": 0, "verdict": "safe", "hazards": []}, "rows 1"), ({"hazards": [{"first": side, "second": {}, "count": 1}]}, "two named"),
                          ({"hazards": {}}, "two named")]:
        assert_breach(tmp_path, render(good, trailer=with_audit(**change)), line_of(good, "instant") + 1, 10, words)
    assert_breach(tmp_path, render(good), line_of(good, "instant") + 1, 10, "no defaultStreamAudit")
    for args in ({}, {"verdict": "perhaps"}):
        assert_breach(tmp_path, render(dict(good, audit=dict(good["audit"], args=args)), trailer=with_audit()), line_of(good, "audit"), 8, "verdict")


def test_trace_without_events(tmp_path):
    result, _ = check(tmp_path, "\n".join(HEADER) + "\n" + good_trailer({"recorded": 0, "calls": 0, "lost_records": 0, "gpu": None}))
    assert result.returncode == 0 and "events 0" in result.stdout


def test_crlf_blank_lines_and_no_last_newline(tmp_path):
    result, _ = check(tmp_path, render(GOOD).rstrip("\n").replace("\n", "\r\n \r\n"))
    assert result.returncode == 0, result.stdout + result.stderr


# (rule, row that is reported, changes by row: a dict of members to set, None to take one away)
CHANGES = {
    "ts missing": (1, "kernel", {"kernel": {"ts": None}}),
    "ts text": (1, "kernel", {"kernel": {"ts": "14.5"}}),
    "ts negative": (1, "runtime", {"runtime": {"ts": -1}}),
    "ts of four decimals": (1, "counter", {"counter": {"ts": 44.0001}}),
    "ts beyond nanoseconds": (1, "counter", {"counter": {"ts": 2300000000000001.5}}),
    "dur missing": (1, "memset", {"memset": {"dur": None}}),
    "dur zero": (1, "memset", {"memset": {"dur": 0}}),
    "dur of four decimals": (1, "memset", {"memset": {"dur": 1.0005}}),
    "tid zero": (2, "launch", {"launch": {"tid": 0}}),
    "tid missing": (2, "launch", {"launch": {"tid": None}}),
    "tid of 33 bits": (2, "launch", {"launch": {"tid": 2**32}}),
    "tid negative": (2, "launch", {"launch": {"tid": -1}}),
    "tid fraction": (2, "launch", {"launch": {"tid": 1.5}}),
    "pid text": (2, "process", {"process": {"pid": "4242"}}),
    "pid of 33 bits": (2, "launch", {"launch": {"pid": 2**32}}),
    "host pid below 64": (2, "runtime", {"runtime": {"pid": 13, "tid": WORK}, "stream": {"pid": 13}}),
    "kernel on host pid": (2, "kernel", {"kernel": {"pid": HOST}}),
    "device is not the pid": (2, "kernel", {"kernel": {"args": {"device": 1, "stream": 13}}}),
    "name after first event": (3, "late", {"late": meta("thread_name", HOST, 4251, "x"), "launch": {"tid": 4251}, "s": {"tid": 4251}}),
    "GPU lane without a name": (3, "kernel", {"stream": lane(1400, "stream 14")}),
    "counter on a lane without a name": (3, "counter", {"counter": {"tid": 15}}),
    "name without args.name": (3, "thread", {"thread": {"args": {}}}),
    "stream is not the lane": (3, "kernel 2", {"kernel 2": {"args": {"stream": 14}}}),
    "partial overlap": (4, "memset", {"memset": {"ts": 35.7, "dur": 5}}),
    "partial overlap by 1 ns": (4, "memcpy", {"memcpy": {"ts": 35.749, "dur": 0.002}}),
    "partial overlap with a range": (4, "loss", {"loss": {"dur": 9.001}}),
    "async without id": (4, "wait b", {"wait b": {"id": None}}),
    "async with neither local nor global id": (4, "wait e", {"wait b": {"id": None, "id2": {"local": 3}}, "wait e": {"id": None, "id2": {"x": 3}}}),
    "async of another scope": (4, "wait b", {"wait e": {"id": None, "id2": {"local": 4}}}),
    "async b without e": (4, "wait b", {"wait e": {"ph": "n"}}),
    "async e without b": (4, "wait e", {"wait b": {"ph": "n"}}),
    "async e of another name": (4, "wait b", {"wait e": {"name": "x"}}),
    "async e before its b": (4, "wait b", {"wait e": {"ts": 41}}),
    "sync row on the stream's lane": (5, "sync", {"sync": {"tid": WORK}}),
    "f without s": (6, "f", {"f": {"id": 92}}),
    "f before s in time": (6, "f", {"f": {"ts": 9}}),
    "f without bp": (6, "f", {"f": {"bp": None}}),
    "flow id twice, s": (6, "s2", {"s2": flow("s", 5, HOST, 4250, 10)}),
    "flow id twice, f": (6, "f2", {"f2": flow("f", 5, GPU, WORK, 14.5)}),
    "flow id text": (6, "s", {"s": {"id": "5"}}),
    "flow id fraction": (6, "s", {"s": {"id": 9.5}}),
    "flow id beyond 2^53": (6, "s", {"s": {"id": 2**60}}),
    "flow id missing": (6, "f", {"f": {"id": None}}),
    "s on no slice": (6, "s", {"s": {"ts": 9.5}}),
    "s on another thread": (6, "s", {"s": {"tid": 4299}}),
    "f on no slice": (6, "f", {"f": {"ts": 37}}),
    "bind_id on a slice without direction": (6, "launch", {"launch": {"flow_out": None}}),
    "bind_id with both directions": (6, "launch", {"launch": {"flow_in": True}}),
    "direction without a bind_id": (6, "launch", {"launch": {"bind_id": None}}),
    "bind_id text": (6, "launch", {"launch": {"bind_id": "91"}}),
    "flow_out of a number": (6, "launch", {"launch": {"flow_out": 1}}),
    "two slices begin an arrow": (6, "memcpy", {"memcpy": {"bind_id": 91, "flow_out": True}}),
    "a slice ends an arrow that none begins": (6, "kernel", {"launch": {"bind_id": None, "flow_out": None}}),
    "a slice ends an arrow before it begins": (6, "memcpy", {"launch": {"bind_id": None, "flow_out": None}, "memcpy": {"bind_id": 91, "flow_out": True}}),
    "both slices of an arrow begin at once": (6, "kernel", {"launch": {"ts": 14.5, "dur": 0.5}, "runtime": None, "s": None, "f": None}),
    "stream on a host row": (7, "launch", {"launch": {"args": {"stream": 13, "correlation": 91}}}),
    "stream on a sync row": (7, "sync", {"sync": {"args": {"stream": 13}}}),
    "cat unknown": (8, "launch", {"launch": {"cat": "driver"}}),
    "cat missing": (8, "launch", {"launch": {"cat": None}}),
    "slice cat on a flow": (8, "s", {"s": {"cat": "kernel"}}),
    "memcpy by another name": (8, "memcpy", {"memcpy": {"name": "CopyHtoD"}}),
    "memset by another name": (8, "memset", {"memset": {"name": "memset"}}),
    "loss without a count": (10, "loss", {"loss": {"args": {"cause": "x"}}}),
    "counter without a value": (11, "counter", {"counter": {"args": {}}}),
    "counter of text": (11, "counter", {"counter": {"args": {"n": "3"}}}),
    "ph unknown": (0, "launch", {"launch": {"ph": "Q"}}),
    "ph of half a slice": (0, "range", {"range": {"ph": "B"}}),
    "ph missing": (0, "launch", {"launch": {"ph": None}}),
    "name missing": (0, "launch", {"launch": {"name": None}}),
}


@pytest.mark.parametrize("case", CHANGES)
def test_broken_row(tmp_path, case):
    rule, reported, changes = CHANGES[case]
    rows = copy_rows()
    for name, members in changes.items():
        rows[name] = {k: v for k, v in {**rows.get(name, {}), **members}.items() if v is not None} if members else None
    rows = {name: row for name, row in rows.items() if row}
    assert_breach(tmp_path, render(rows), line_of(rows, reported), rule)


# (rule, row, text in it, text instead): what a JSON library would not write
TEXTS = {
    "null": (1, "counter", '"n":3', '"n":null'),
    "NaN": (1, "counter", '"n":3', '"n":NaN'),
    "-inf": (1, "counter", '"n":3', '"n":-inf'),
    "infinite": (1, "counter", '"ts":44', '"ts":1e999'),
    "leading zero": (1, "counter", '"ts":44', '"ts":044'),
    "point without a digit": (1, "counter", '"ts":44', '"ts":44.'),
    "no digit before the point": (1, "counter", '"ts":44', '"ts":-.5'),
    "decimal comma": (9, "counter", '"ts":44', '"ts":44,5'),
    "hexadecimal": (9, "counter", '"ts":44', '"ts":0x44'),
    "bytes that are not UTF-8": (9, "kernel", "k(", "k\udcff("),
    "overlong UTF-8": (9, "kernel", "k(", "k\udcc0\udcaf("),
    "surrogate in UTF-8": (9, "kernel", "k(", "k\udced\udca0\udc80("),
    "control character": (9, "kernel", "k(", "k\x02("),
    "tab in a name": (9, "kernel", "k(", "k\t("),
    "zero byte": (9, "kernel", "k(", "k\0("),
    "unknown escape": (9, "kernel", "k(", "k\\x41("),
    "bad \\u": (9, "kernel", "k(", "k\\u12G4("),
    "lone surrogate": (9, "kernel", "k(", "k\\ud800("),
    "quote not escaped": (9, "kernel", "k(", 'k"('),
    "newline in a name": (9, "kernel", "k(", "k\n("),
    "member twice": (0, "kernel", '"ts":14.5', '"ts":14.5,"ts":14.6'),
    "arg twice": (0, "counter", '"n":3', '"n":3,"n":4'),
    "two events on a line": (0, "counter", '{"ph"', '{"ph":"M"},{"ph"'),
    "an array": (9, "counter", None, "[1]"),
    "cut in the middle": (9, "counter", '"args":{"n":3}}', '"ar'),
}


@pytest.mark.parametrize("case", TEXTS)
def test_broken_text(tmp_path, case):
    rule, name, old, new = TEXTS[case]
    rows = copy_rows()
    text = json.dumps(rows[name], ensure_ascii=False, separators=(",", ":"))
    assert old is None or old in text
    rows[name] = new if old is None else text.replace(old, new, 1)
    assert_breach(tmp_path, render(rows), line_of(rows, name), rule)


def test_missing_comma_is_at_the_event_behind(tmp_path):
    rows = copy_rows()
    rows["kernel"] = json.dumps(rows["kernel"])
    content = render(rows).replace(rows["kernel"] + ",\n", rows["kernel"] + "\n")
    assert_breach(tmp_path, content, line_of(rows, "kernel") + 1, 9, "no comma")


def test_comma_behind_the_last_event(tmp_path):
    assert_breach(tmp_path, render(GOOD).replace("\n" + TRAILER, ",\n" + TRAILER), line_of(GOOD, "loss") + 1, 9, "comma behind the last")


def test_shorter_slice_first_at_one_ts(tmp_path):
    order = list(GOOD)
    a, b = order.index("runtime"), order.index("launch")
    order[a], order[b] = order[b], order[a]
    rows = {name: GOOD[name] for name in order}
    assert_breach(tmp_path, render(rows), line_of(rows, "runtime"), 4, f"line {line_of(rows, 'launch')}")


def test_flow_before_its_slice_in_the_file(tmp_path):
    order = [name for name in GOOD if name != "s"]
    order.insert(order.index("runtime"), "s")
    rows = {name: GOOD[name] for name in order}
    assert_breach(tmp_path, render(rows), line_of(rows, "s"), 6, f"line {line_of(rows, 'runtime')}")


def test_f_before_s_in_the_file_at_one_ts(tmp_path):
    order = [name for name in GOOD if name not in ("kernel", "f")]
    order[order.index("s"):order.index("s")] = ["kernel", "f"]
    rows = {name: GOOD[name] for name in order}
    rows["kernel"], rows["launch"] = ({**{key: value for key, value in rows[name].items() if key != "bind_id" and "flow" not in key}, "ts": 10} for name in ("kernel", "launch"))
    rows["f"] = {**rows["f"], "ts": 10}
    assert_breach(tmp_path, render(rows), line_of(rows, "s"), 6, "at one ts")


def test_overlap_names_both_lines_and_the_lowest(tmp_path):
    """Slices in the file's order, not in time's; the pair that overlaps first in time is not the one on the lowest line."""
    rows = copy_rows()
    spans = {"a": (100, 10), "b": (200, 10), "c": (205, 10), "d": (105, 10)}
    for name, (ts, dur) in spans.items():
        rows[name] = slice_("kernel", name, GPU, WORK, ts, dur)
    assert_breach(tmp_path, render(rows), line_of(rows, "c"), 4, f"line {line_of(rows, 'b')} ")


def test_lowest_line_wins_over_the_one_that_stops_reading(tmp_path):
    rows = copy_rows()
    rows["memset"].update(ts=35, dur=2)
    rows["counter"]["ts"] = -1
    assert_breach(tmp_path, render(rows), line_of(rows, "memset"), 4)


def test_f_whose_s_was_not_read_yet_is_no_breach(tmp_path):
    rows = copy_rows()
    rows["s"] = {**rows["s"], "id": 6}
    rows["counter"]["ts"] = -1
    rows["late s"] = flow("s", 5, HOST, 4250, 10)
    assert_breach(tmp_path, render(rows), line_of(rows, "counter"), 1)


@pytest.mark.parametrize("line, rule, old, new", [
    (4, 1, '"baseTimeNanoseconds":1760000000000000000', '"base":1'),
    (4, 1, '"baseTimeNanoseconds":1760000000000000000', '"baseTimeNanoseconds":"1"'),
    (2, 7, '"rank": 0', '"rank":0'),
    (3, 9, "custream 0.1", "custream \udcff"),
    (3, 1, '"clock_error_ns":120', '"clock_error_ns":null'),
    (3, 9, '"metadata":{', '"metadata":{{'),
    (line_of(GOOD, "loss") + 1, 10, '"lost_records":7', '"lost_records":6'),
    (line_of(GOOD, "loss") + 1, 10, '"lost_records":7,', ""),
    (line_of(GOOD, "loss") + 1, 1, '"recorded":3', '"recorded":nan'),
    (line_of(GOOD, "loss") + 1, 9, '"leaked_streams":0}}', '"leaked_streams":0}}}'),
    (line_of(GOOD, "loss") + 2, 9, '"leaked_streams":0}}', '"leaked_streams":0}}\n],"traceName":"left over"}'),
])
def test_broken_header_or_trailer(tmp_path, line, rule, old, new):
    text = render(GOOD)
    assert old in text
    assert_breach(tmp_path, text.replace(old, new), line, rule)


def assert_useless(result, path, words):
    assert result.returncode == 2 and result.stdout == ""
    assert re.fullmatch(rf"custream check: {re.escape(str(path))}: .*{words}.*\n", result.stderr), result.stderr


@pytest.mark.parametrize("content, words", [
    ("", "empty"),
    ("\n \n", "empty"),
    ("hello\n", "no trace"),
    ("[1]\n", "another tool"),
    ('{"a":1}\n', "no trace"),
    ('{"a":\n', "cut off before its first event"),
    ('{"a":"b', "cut off before its first event"),
    (b"\x7fELF\x02\x01\x01", "no trace"),
])
def test_no_trace(tmp_path, content, words):
    result, path = check(tmp_path, content)
    assert_useless(result, path, words)


def test_truncated_anywhere(tmp_path):
    """However the file is cut, what is said is one line, and a cut is never called good."""
    content = render(GOOD).rstrip("\n").encode()
    paths = []
    for cut in range(1, len(content), 7):
        paths.append(tmp_path / f"{cut}.json")
        paths[-1].write_bytes(content[:cut])
    result = custream("check", *paths)
    assert result.returncode == 2 and result.stdout == ""
    said = result.stderr.splitlines()
    assert len(said) == len(paths)
    assert all("truncated" in line for line in said), [line for line in said if "truncated" not in line]


def test_truncated_gzip(tmp_path):
    whole = gzip.compress(render(GOOD).encode())
    result, path = check(tmp_path, whole[:-20], "t.json.gz")
    assert_useless(result, path, "truncated")
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 0xff
    result, path = check(tmp_path, bytes(damaged), "d.json.gz")
    assert result.returncode in (1, 2) and (result.stdout + result.stderr).count("\n") == 1


def test_file_missing_directory_unreadable(tmp_path):
    assert_useless(custream("check", tmp_path / "none.json"), tmp_path / "none.json", "No such file")
    assert_useless(custream("check", tmp_path), tmp_path, "Is a directory")
    if os.getuid():
        secret = tmp_path / "secret.json"
        secret.write_text("{}")
        secret.chmod(0)
        assert_useless(custream("check", secret), secret, "Permission denied")


def test_a_line_of_any_length(tmp_path):
    result, _ = check(tmp_path, render(GOOD).replace('"metadata":{', '"metadata":{"long":"' + "x" * (17 << 20) + '",', 1))
    assert (result.returncode, result.stderr) == (0, "")


def test_several_files_worst_status_wins(tmp_path):
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(render(GOOD))
    bad.write_text(render(GOOD).replace('"lost_records":7', '"lost_records":1'))
    assert custream("check", good, good).returncode == 0
    result = custream("check", bad, good)
    assert result.returncode == 1 and len(result.stdout.splitlines()) == 2
    result = custream("check", tmp_path / "none", bad, good)
    assert result.returncode == 2 and len(result.stdout.splitlines()) == 2


def test_many_events_in_bounded_memory(tmp_path):
    """200,000 slices, 30 MB of text: what is kept of them is far less."""
    path = tmp_path / "big.json"
    pad = "x" * 80
    with path.open("w") as out:
        out.write("\n".join(HEADER) + "\n" + json.dumps(GOOD["stream"]))
        for i in range(200_000):
            out.write(',\n{"ph":"X","cat":"kernel","name":"%s","pid":0,"tid":1300,"ts":%d.125,"dur":0.875,"args":{"stream":13}}' % (pad, i))
        out.write("\n" + good_trailer({"recorded": 0, "calls": 0, "lost_records": 0}, {"kernels": 200_000, "copies": 0, "memsets": 0, "without_call": 200_000}))
    result = subprocess.run(["bash", "-c", f"ulimit -v 60000; exec '{COMMAND}' check '{path}'"], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0 and "slices 200000" in result.stdout, result.stderr


def test_who_stops_reading_is_told_nothing():
    """As in `custream report trace.json | head` where SIGPIPE is ignored: the exit status says it."""
    read, write = os.pipe()
    os.close(read)
    result = subprocess.run([COMMAND, "options"], stdout=write, stderr=subprocess.PIPE, text=True, timeout=60, restore_signals=False, check=False)
    os.close(write)
    assert (result.returncode, result.stderr) == (2, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@pytest.mark.parametrize("args", [["check", "FILE"], ["--version"], ["help"], ["help", "run"]])
def test_output_that_does_not_arrive(tmp_path, args):
    path = tmp_path / "t.json"
    path.write_text(render(GOOD))
    args = [str(path) if arg == "FILE" else arg for arg in args]
    with open("/dev/full", "w") as full:
        result = subprocess.run([COMMAND, *args], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert result.returncode == 2 and result.stderr == "custream: cannot write the output: No space left on device\n"
    result = subprocess.run(["bash", "-c", 'exec "$@" >&-', "-", COMMAND, *args], stderr=subprocess.PIPE, text=True, timeout=60)
    assert result.returncode == 2 and "cannot write the output" in result.stderr


def test_usage():
    version = (Path(__file__).resolve().parents[2] / "VERSION").read_text().strip()
    assert custream("--version").stdout == f"custream {version}\n"
    for args in (["help"], ["--help"], ["help", "run"], ["help", "check"], ["run", "--help"], ["check", "-h"]):
        result = custream(*args)
        assert result.returncode == 0 and result.stdout.startswith("usage: custream") and result.stderr == "", args
    for args in ([], ["fly"], ["help", "fly"], ["run"], ["check"], ["check", "--fly"], ["run", "--fly", "env"], ["run", "--full"]):
        result = custream(*args)
        assert result.returncode == 2 and result.stdout == "" and result.stderr.count("\n") == 1, args
        assert result.stderr.startswith("custream")


@pytest.mark.parametrize("args, said", [
    (["reprot"], 'custream: there is no command "reprot"; did you mean "report"?'),
    (["help", "chekc"], 'custream: there is no command "chekc"; did you mean "check"?'),
    (["rnu"], 'custream: there is no command "rnu"; did you mean "run"?'),
    (["rep"], 'custream: there is no command "rep"; did you mean "report"?'),
    (["--versoin"], 'custream: there is no command "--versoin"; did you mean "version"?'),
    (["fly"], "custream: there is no command \"fly\"; 'custream help' lists them"),
    (["a\nb" + "c" * 100], "custream: there is no command \"a?b" + "c" * 60 + "\"; 'custream help' lists them"),
    (["run", "--trcae=x.json", "true"], 'custream run: there is no option "--trcae"; did you mean "--trace"?'),
    (["run", "--trace_max", "1M", "true"], 'custream run: there is no option "--trace_max"; did you mean "--trace-max"?'),
    (["run", "-trace", "x.json", "true"], 'custream run: there is no option "-trace"; did you mean "--trace"?'),
    (["run", "--fly", "env"], "custream run: there is no option \"--fly\"; 'custream help run' lists them"),
    (["run", "-x", "env"], "custream run: there is no option \"-x\"; 'custream help run' lists them"),
    (["run", "--default", "keep", "env"], 'custream run: "--default" may be "--default-stream" or "--default-handles"'),
    (["run", "--full"], 'custream run: "--full" needs a value: allowed is drop|block'),
    (["run", "-o"], 'custream run: "-o" needs a value: allowed is a path ending in .json'),
    (["run", "--help=me"], 'custream run: "--help" takes no value'),
    (["report", "--htlm=page", "t.json"], 'custream report: there is no option "--htlm"; did you mean "--html"?'),
    (["report", "t.json", "--section"], 'custream report: "--section" needs a value'),
    (["diff", "--no-colour", "a.json", "b.json"], 'custream diff: there is no option "--no-colour"; did you mean "--no-color"?'),
    (["merge", "a.json", "-o"], 'custream merge: "-o" needs a value'),
    (["merge", "--widnow=1,2", "a.json"], 'custream merge: there is no option "--widnow"; did you mean "--window"?'),
    (["check", "t.json", "--hepl"], 'custream check: there is no option "--hepl"; did you mean "--help"?'),
])
def test_what_was_meant(args, said):
    result = custream(*args)
    assert result.returncode == 2 and result.stdout == "" and result.stderr.count("\n") == 1
    assert result.stderr.startswith(said) and (said[-1] != "?" or result.stderr == said + "\n"), result.stderr


def test_every_command_and_option_is_what_was_meant():
    """Of each name that there is, one slip leads to it: no list of its own is asked."""
    commands = re.findall(r"^  (\w+) ", custream("help").stdout, flags=re.M)
    flags = {name: set(re.findall(r"^  (?:-\w, )?--([\w-]+)", custream("help", name).stdout, flags=re.M)) for name in commands}
    assert len(commands) >= 7 and len(flags["run"]) >= 19 and len(flags["report"]) >= 6 and len(flags["diff"]) >= 5 and len(flags["merge"]) >= 3
    for name in commands:
        assert f'did you mean "{name}"?' in custream(name + "x").stderr, name
        for flag in flags[name]:
            assert f'did you mean "--{flag}"?' in custream(name, f"--{flag}x=1", "true").stderr, (name, flag)


# run

def environment(*args, **kwargs):
    result = custream("run", *args, "env", **kwargs)
    assert result.returncode == 0, result.stderr
    return dict(line.split("=", 1) for line in result.stdout.splitlines() if "=" in line), result.stderr


def test_run_environment(tmp_path):
    env, said = environment("-o", "a.json.gz", "--full=block", "--buffer", "1M", "--trace-max=2G", "--gpu", "off", "--log=error")
    assert env["LD_PRELOAD"] == str(SHIM.resolve())
    assert {k: v for k, v in env.items() if k.startswith("CUSTREAM_")} == {
        "CUSTREAM_TRACE": "a.json.gz", "CUSTREAM_FULL": "block", "CUSTREAM_BUFFER": "1M",
        "CUSTREAM_TRACE_MAX": "2G", "CUSTREAM_GPU": "off", "CUSTREAM_LOG": "error",  # a value among others
        "CUSTREAM_RUN": env["CUSTREAM_RUN"]}
    assert said == ""
    env, _ = environment()
    assert [name for name in env if name.startswith("CUSTREAM_")] == ["CUSTREAM_RUN"]


def test_run_flag_beats_environment():
    env, said = environment("--full", "drop", env={"CUSTREAM_FULL": "block", "CUSTREAM_TRACE": "e.json"})
    assert env["CUSTREAM_FULL"] == "drop" and env["CUSTREAM_TRACE"] == "e.json" and said == NO_CUDA
    env, said = environment("--full", "drop", env={"CUSTREAM_FULL": "wrong", "CUSTREAM_LOG": ""})
    assert env["CUSTREAM_FULL"] == "drop" and said == NO_CUDA
    env, _ = environment("-o", "1.json", "--trace", "2.json")
    assert env["CUSTREAM_TRACE"] == "2.json"


def test_run_keeps_what_is_preloaded(tmp_path):
    env, _ = environment(env={"LD_PRELOAD": "libm.so.6"})
    assert env["LD_PRELOAD"] == f"{SHIM.resolve()}:libm.so.6"
    env, _ = environment("--", COMMAND, "run")
    assert env["LD_PRELOAD"] == str(SHIM.resolve())


def test_run_words_behind_the_program_are_its_own():
    result = custream("run", "printf", "%s ", "-o", "x", "--help", "--")
    assert result.stdout == "-o x --help -- "
    assert custream("run", "--", "printf", "%s", "--full").stdout == "--full"


@pytest.mark.parametrize("flag, value, allowed", [
    ("full", "wait", "drop|block"), ("full", "", "drop|block"), ("buffer", "-1", "64K"), ("buffer", "4X", "64K"), ("trace", "t.txt", ".json"),
    ("trace", "%z.json", "%p"), ("log", "loud", "error|warn"), ("trace-max", "1", "1M"), ("gpu", "on", "off"),
])
def test_run_wrong_value(tmp_path, flag, value, allowed):
    ran = tmp_path / "ran"
    result = custream("run", f"--{flag}={value}", "touch", ran)
    assert result.returncode == 2 and result.stderr.count("\n") == 1
    assert f"--{flag}={value} " in result.stderr and allowed in result.stderr
    if value:
        variable = "CUSTREAM_" + flag.upper().replace("-", "_")
        result = custream("run", "touch", ran, env={variable: value})
        assert result.returncode == 2 and f"{variable}={value} " in result.stderr and allowed in result.stderr
    assert not ran.exists()


def test_run_status(tmp_path):
    assert custream("run", "sh", "-c", "exit 7").returncode == 7
    assert custream("run", "sh", "-c", "kill -9 $$").returncode == -9
    for program, status, why in [("no-such-program", 127, errno.ENOENT), (tmp_path / "none", 127, errno.ENOENT), (tmp_path, 126, errno.EACCES)]:
        result = custream("run", program)
        assert (result.returncode, result.stderr) == (status, f"custream run: {program}: {os.strerror(why)}\n")
    plain = tmp_path / "plain"
    plain.write_text("echo hi\n")
    result = custream("run", plain)
    assert result.returncode == 126 and "Permission denied" in result.stderr
    plain.chmod(0o755)
    assert custream("run", plain).stdout == "hi\n"


def compile_(tmp_path, *flags):
    source, program = tmp_path / "p.c", tmp_path / "p"
    source.write_text("int main(void) { return 3; }\n")
    done = subprocess.run([os.environ.get("CC", "cc"), source, "-o", program, *flags], capture_output=True)
    if done.returncode:
        pytest.skip("the compiler cannot do " + " ".join(flags))
    return program


@pytest.mark.parametrize("flags, warned", [(["-static"], True), (["-static-pie", "-fPIE"], True), ([], False)])
def test_run_static_program(tmp_path, flags, warned):
    program = compile_(tmp_path, *flags)
    script = tmp_path / "script"
    script.write_text(f"#! {program} -x\n")
    script.chmod(0o755)
    for start in (program, script):
        result = custream("run", start)
        assert result.returncode == 3
        assert ("statically linked" in result.stderr) == warned, result.stderr
        assert result.stderr.count("\n") == 1 and (result.stderr == NO_CUDA) != warned


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to give a file away")
def test_run_setuid_program(tmp_path):
    program = compile_(tmp_path)
    os.chown(program, 65534, 65534)
    program.chmod(0o755 | stat.S_ISUID)
    result = custream("run", program)
    assert "raised privileges" in result.stderr and result.stderr.count("\n") == 1


def test_run_as_installed(tmp_path):
    """bin/custream finds lib/libcustream_shim.so, also through a symbolic link, and says so when it is nowhere."""
    for folder in ("bin", "lib", "links"):
        (tmp_path / folder).mkdir()
    command, shim = tmp_path / "bin/custream", tmp_path / "lib/libcustream_shim.so"
    shutil.copy(COMMAND, command)
    shutil.copy(SHIM, shim)
    link = tmp_path / "links/custream"
    link.symlink_to(command)
    for start in (command, link):
        result = subprocess.run([start, "run", "env"], capture_output=True, text=True, timeout=60)
        assert f"LD_PRELOAD={shim.resolve()}\n" in result.stdout, result.stderr
    shim.unlink()
    result = subprocess.run([command, "run", "env"], capture_output=True, text=True, timeout=60)
    if result.returncode:  # else an older one is installed on this machine
        assert result.returncode == 2 and "libcustream_shim.so is neither" in result.stderr


@pytest.mark.parametrize("name", ["with space", "in$ORIGIN", "${LIB}", "a$PLATFORM"])
def test_run_from_a_folder_that_cannot_be_preloaded(tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    shutil.copy(COMMAND, folder)
    shutil.copy(SHIM, folder)
    result = subprocess.run([folder / "custream", "run", "env"], capture_output=True, text=True, timeout=60)
    assert result.returncode == 2 and "cannot be preloaded" in result.stderr and not result.stdout
