"""Traces in Perfetto's own format: they say the same as the JSON form, to Perfetto, to the command, and when they are converted there and back."""
import collections
import gzip
import json
import os
import pathlib
import signal
import subprocess

import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

from tests.apprun import BUILD, calls_of
from tests.perfetto import assert_clean
from tests.pftrace import convert, custream, events_of, packets_of
from tests.remote import Remote
from tests.trace import Trace

PROGRAMS = [["demo"], ["timeline"], ["arrows"], ["callbacks"], ["capture"], ["leaks", 3, 4, 5, 6], ["contexts"], ["reuse"], ["devices"], ["adopt"],
            ["badcalls"], ["race", 8], ["burst", 2, 5000], ["nvtx"], ["runtime"]]

SLICES = """SELECT s.id, s.ts, s.dur, s.name, s.category, s.depth, s.arg_set_id, t.tid, p.pid FROM slice s
            LEFT JOIN thread_track k ON k.id = s.track_id LEFT JOIN thread t USING (utid) LEFT JOIN process p ON p.upid = t.upid"""
# The arguments of a slice as one text, without those that the trace processor adds by the way a slice came.
ARGS = """SELECT arg_set_id, group_concat(key || '=' || ifnull(display_value, 'null'), char(10)) AS text FROM (
            SELECT arg_set_id, CASE WHEN key GLOB 'args.*' THEN substr(key, 6) WHEN key GLOB 'debug.*' THEN substr(key, 7) ELSE key END AS key, display_value FROM args
            WHERE arg_set_id IN (SELECT arg_set_id FROM slice) ORDER BY arg_set_id, 2)
          WHERE NOT (key GLOB 'legacy_*' OR key GLOB 'source*' OR key GLOB 'passthrough*') GROUP BY arg_set_id"""
COUNTERS = "SELECT t.name, c.ts, c.value FROM counter c JOIN counter_track t ON t.id = c.track_id"
NAMES = "SELECT p.pid, t.tid, t.name FROM thread t LEFT JOIN process p USING (upid) WHERE t.name IS NOT NULL AND t.tid > 0"


def in_perfetto(tp, path):
    """What the trace processor has of a file, in terms that do not depend on its format."""
    tp.load(path)
    assert_clean(tp)
    args = {row["arg_set_id"]: row["text"] for row in tp.query(ARGS)}
    slices = {r["id"]: (r["pid"], r["tid"], r["name"], r["category"], r["ts"], r["dur"], r["depth"], args.get(r["arg_set_id"])) for r in tp.query(SLICES)}
    arrows = [(slices[r["slice_out"]], slices[r["slice_in"]]) for r in tp.query("SELECT slice_out, slice_in FROM flow")]
    return {"slices": collections.Counter(slices.values()), "arrows": collections.Counter(arrows),
            "counters": collections.Counter(tuple(r.values()) for r in tp.query(COUNTERS)),
            "names": {(r["pid"], r["tid"]): r["name"] for r in tp.query(NAMES)},
            "processes": {r["pid"]: r["name"] for r in tp.query("SELECT pid, name FROM process WHERE name IS NOT NULL")}}


def same_in_perfetto(tp, one, other):
    here, there = in_perfetto(tp, one), in_perfetto(tp, other)
    for what, rows in here.items():
        if isinstance(rows, collections.Counter):
            assert (rows - there[what], there[what] - rows) == ({}, {}), what
        else:
            assert rows == there[what], what
    return here


def run_packets(run_app, argv, tmp_path, env=None, name="trace.pftrace", ends_well=True):
    run = run_app(argv, env={"CUSTREAM_FAKE_DEVICES": 2, **(env or {})} if argv[0] == "devices" else env, trace=tmp_path / name)
    return run.check() if ends_well else run


@pytest.mark.parametrize("argv", PROGRAMS, ids=lambda argv: argv[0])
def test_says_what_json_says(run_app, trace_processor, tmp_path, argv):
    """The trace processor finds the same slices, times, arrows, arguments, counters and names in the file and in the JSON that it is converted to."""
    run = run_packets(run_app, argv, tmp_path)
    trace = Trace(convert(run.trace, tmp_path / "trace.json"))
    shown = same_in_perfetto(trace_processor, run.trace, tmp_path / "trace.json")
    assert sum(shown["slices"].values()) == len(trace.slices) + len(trace.instants) + len(trace.spans())
    assert sum(shown["arrows"].values()) == len(trace.flows())
    if argv[0] not in ("demo", "leaks", "badcalls", "runtime"):
        assert collections.Counter(e["name"] for e in trace.host(cat="cuda_driver")) == calls_of(run.stdout)


@pytest.mark.parametrize("argv", PROGRAMS, ids=lambda argv: argv[0])
def test_there_and_back(run_app, trace_processor, tmp_path, argv):
    """JSON that becomes packets and JSON again is the same, event by event, and so is what stands around them. Perfetto sees no difference either."""
    run = run_app(argv, env={"CUSTREAM_FAKE_DEVICES": 2} if argv[0] == "devices" else {}).check()
    packets = convert(run.trace, tmp_path / "there.pftrace")
    back = convert(packets, tmp_path / "back.json")
    assert events_of(back) == events_of(run.trace)
    assert back.read_bytes().split(b'"traceEvents"')[0] == run.trace.read_bytes().split(b'"traceEvents"')[0]
    same_in_perfetto(trace_processor, run.trace, packets)


@pytest.mark.parametrize("app", ["demo", "graph_copies", "late_graph"])
def test_arrows_to_each_node(run_app, trace_processor, tmp_path, app):
    """A graph launch has an arrow to each of its nodes, not to the first alone, whichever way the file was made."""
    run = run_packets(run_app, [app], tmp_path, env={"CUSTREAM_GRAPH": "node"})
    trace = Trace(convert(run.trace, tmp_path / "trace.json"))
    shown = same_in_perfetto(trace_processor, run.trace, tmp_path / "trace.json")
    assert sum(shown["arrows"].values()) == len(trace.flows())
    ends = collections.Counter(e["bind_id"] for e in trace.slices if e.get("flow_in"))
    assert max(ends.values()) > 1
    same_in_perfetto(trace_processor, convert(tmp_path / "trace.json", tmp_path / "again.pftrace"), run.trace)


@pytest.mark.parametrize("path", sorted((pathlib.Path(__file__).parents[2] / "traces").glob("*.json.gz")), ids=lambda path: path.name.partition(".")[0])
def test_committed_traces(trace_processor, tmp_path, path):
    """Traces of real GPUs, by this version and earlier ones: there and back they are the same, and so are Perfetto's view and the report of both forms."""
    packets = convert(path, tmp_path / "there.pftrace")
    back = convert(packets, tmp_path / "back.json")
    assert events_of(back) == events_of(path)
    same_in_perfetto(trace_processor, back, packets)
    reports = [custream("report", "--json", "--", file) for file in (back, packets)]
    assert reports[0].returncode == reports[1].returncode == 0
    assert reports[0].stdout.replace(str(back), "FILE") == reports[1].stdout.replace(str(packets), "FILE")
    assert custream("diff", packets, path).returncode == 0


# ---- The file on the disk ----

def test_each_prefix_is_a_trace(run_app, trace_processor, tmp_path):
    """Cut at any byte, the file opens in Perfetto without an error, and the command reads what is whole: a kill costs no more than what was not written."""
    run = run_packets(run_app, ["timeline"], tmp_path)
    data = run.trace.read_bytes()
    ends = [end for end, _ in packets_of(data)]
    rows = [e for e in events_of(convert(run.trace, tmp_path / "whole.json"))[0]]
    cut, part = tmp_path / "cut.pftrace", tmp_path / "cut.json"
    assert ends[-1] == len(data)
    for end in [1, 40, ends[0], ends[0] + 5, *ends[3:-1:50], *(end + 7 for end in ends[10:-1:80]), ends[-2], len(data) - 1]:
        cut.write_bytes(data[:end])
        trace_processor.load(cut)
        assert_clean(trace_processor)
        if end <= ends[0]:
            continue
        done = custream("convert", cut, part)
        assert done.returncode == 0 and "truncated" in done.stderr, done.stderr
        found = events_of(part)[0]
        assert found == rows[:len(found)]
    assert len(found) == len(rows)
    done = custream("check", cut)
    assert done.returncode == 2 and "truncated: it has no end" in done.stderr
    assert "truncated" in custream("report", cut).stderr


@pytest.mark.parametrize("name", ["trace.pftrace", "trace.pftrace.gz"])
def test_two_in_one_file(run_app, tmp_path, name):
    """The second of two files that were joined was left out, and nobody said so. So it is where the first has no end."""
    first = run_packets(run_app, ["timeline"], tmp_path).trace.read_bytes()
    second = run_packets(run_app, ["demo"], tmp_path).trace.read_bytes()
    pack = gzip.compress if name.endswith("gz") else bytes
    path, to = tmp_path / name.replace("trace", "joined"), tmp_path / "to.json"
    last = [end for end, _ in packets_of(first)][-2]
    for begin in (first, first[:last]):
        path.write_bytes(pack(begin) + pack(second))
        for words in (["check", path], ["report", path], ["convert", path, to], ["merge", path, "-o", to]):
            done = custream(*words)
            assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1), done.stderr
            assert f"another trace, or a part of one, begins at byte {len(begin) + 1}; allowed is one in a file" in done.stderr
        assert not to.exists()
    path.write_bytes(pack(first) + pack(first[[end for end, _ in packets_of(first)][-40]:last]))  # events alone
    assert "another trace, or a part of one" in custream("check", path).stderr


def test_protobuf_reads_it(run_app, tmp_path):
    """The message definitions of Perfetto 59 know all that is said, but for the arguments, which the file describes itself."""
    run = run_packets(run_app, ["demo"], tmp_path)
    trace = protos.Trace.FromString(run.trace.read_bytes())
    tracks = [packet.track_descriptor for packet in trace.packet if packet.HasField("track_descriptor")]
    root = tracks[0]
    assert root.uuid == 0 and root.process_ordering == root.PROCESS_ORDERING_EXPLICIT and root.thread_ordering == root.THREAD_ORDERING_EXPLICIT
    first = {}
    for track in tracks[1:]:
        first.setdefault(track.uuid, track)
    ranks = {track.thread.tid: track.sibling_order_rank for track in first.values() if track.HasField("thread") and track.thread.pid < 64}
    assert len(ranks) > 3 and sorted(ranks, key=ranks.get) == sorted(ranks)  # a stream's rows stand together, as their numbers do
    assert any(track.counter.unit_name == "%" for track in first.values())
    extended = {file.package for packet in trace.packet for file in packet.extension_descriptor.extension_set.file}
    assert extended == {"custream"}
    begins = [packet.track_event for packet in trace.packet if packet.track_event.type == protos.TrackEvent.TYPE_SLICE_BEGIN]
    ends = [packet.track_event for packet in trace.packet if packet.track_event.type == protos.TrackEvent.TYPE_SLICE_END]
    assert len(begins) == len(ends) > 100 and all(event.name_iid and event.category_iids for event in begins)
    known = {(packet.trusted_packet_sequence_id, name.iid) for packet in trace.packet for name in packet.interned_data.event_names}
    assert all((packet.trusted_packet_sequence_id, packet.track_event.name_iid) in known for packet in trace.packet if packet.track_event.name_iid)


@pytest.mark.parametrize("argv", [["burst", 2, 5000], ["runtime"]], ids=lambda argv: argv[0])
def test_short_times(run_app, tmp_path, argv):
    """Events have the time since the one before, whatever lies within what, on however many rows, but for one that is earlier: and a slice only if it is earlier
    than both that it might follow. The end of a slice names no track."""
    run = run_packets(run_app, argv, tmp_path)
    packets = [packet for packet in protos.Trace.FromString(run.trace.read_bytes()).packet if packet.HasField("track_event")]
    last, earlier = collections.Counter(), 0
    for packet in packets:
        sequence, begins = packet.trusted_packet_sequence_id, packet.track_event.type == protos.TrackEvent.TYPE_SLICE_BEGIN
        if packet.timestamp_clock_id == 0:
            last[sequence] += packet.timestamp
            continue
        earlier += 1
        assert packet.timestamp < last[sequence]
        assert not begins or sequence > 4 or packet.timestamp < min(last[sequence], last[(sequence - 1 ^ 1) + 1])
    assert len(packets) > 100 and (earlier < len(packets) / 20 or argv == ["runtime"])  # whose streams a busy machine serves in any order
    ends = [packet for packet in packets if packet.track_event.type == protos.TrackEvent.TYPE_SLICE_END]
    assert len(ends) > 50 and sum(packet.track_event.HasField("track_uuid") for packet in ends) <= 1  # that which the next flush writes over
    assert len({packet.trusted_packet_sequence_id for packet in ends}) > 1


@pytest.mark.parametrize("name", ["trace.pftrace", "trace.pftrace.gz"])
def test_smaller(run_app, tmp_path, name):
    """A launch takes a third of the bytes of its JSON, or less, also packed."""
    twin = name.replace("pftrace", "json")
    for path in (name, twin):
        run_packets(run_app, ["burst", 1, 20000], tmp_path, name=path)
    assert (tmp_path / name).stat().st_size < (tmp_path / twin).stat().st_size * (0.8 if name.endswith("gz") else 1 / 3)


def test_packed(run_app, trace_processor, tmp_path):
    run = run_packets(run_app, ["burst", 1, 20000, 700], tmp_path, name="trace.pftrace.gz")  # the pause is a flush, so that there are several members
    in_perfetto(trace_processor, run.trace)
    trace = Trace(convert(run.trace, tmp_path / "trace.json.gz"))
    assert collections.Counter(e["name"] for e in trace.host(cat="cuda_driver")) == calls_of(run.stdout)
    run.trace.write_bytes(run.trace.read_bytes()[:-700])
    assert "truncated" in custream("report", run.trace).stderr


@pytest.mark.parametrize("how", ["abort", "kill"])
def test_killed(run_app, trace_processor, tmp_path, how):
    run = run_packets(run_app, ["ending", how], tmp_path, ends_well=False)
    assert run.rc < 0
    shown = in_perfetto(trace_processor, run.trace)
    assert sum(n for row, n in shown["slices"].items() if row[2] == "cuLaunchKernel") >= 100
    trace = Trace(convert(run.trace, tmp_path / "trace.json"))
    assert trace.totals["complete"] is False


def test_who_ended_it(build, tmp_path):
    """Under `custream run` the file of a process that was killed says by what, in the room that its end has."""
    env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD" and not k.startswith("CUSTREAM_")} | {"LD_LIBRARY_PATH": str(build / "fakecuda")}
    done = subprocess.run([build / "custream", "run", "--trace=trace.pftrace", "--", build / "tests/ending", "kill"], cwd=tmp_path, env=env,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL and "ended by SIGKILL" in done.stderr
    assert list(packets_of((tmp_path / "trace.pftrace").read_bytes()))[-1][0] == (tmp_path / "trace.pftrace").stat().st_size
    assert Trace(convert(tmp_path / "trace.pftrace", tmp_path / "trace.json")).totals["ended_by"] == "SIGKILL"


def test_again_and_over_json(run_app, tmp_path):
    """An earlier trace of either format is one that a trace may take."""
    path = tmp_path / "trace.pftrace"
    run_packets(run_app, ["timeline"], tmp_path)
    first = path.read_bytes()
    run_packets(run_app, ["timeline"], tmp_path)
    assert path.read_bytes() != first
    path.write_bytes(run_app(["timeline"]).check().trace.read_bytes())
    run_packets(run_app, ["timeline"], tmp_path)
    assert path.read_bytes()[0] == 0x0a
    other = tmp_path / "other.pftrace"
    other.write_bytes(b"\x0a\x05hello")
    run = run_app(["timeline"], trace=other).check()
    assert "the file is no trace" in run.stderr and other.read_bytes() == b"\x0a\x05hello"


def test_full(run_app, trace_processor, tmp_path):
    """At its size limit the file ends as a whole one that says what is missing."""
    run = run_packets(run_app, ["burst", 2, 40000], tmp_path, env={"CUSTREAM_TRACE_MAX": "1M", "CUSTREAM_FULL": "block"})
    assert run.trace.stat().st_size < (1 << 20) + (70 << 10)
    trace = Trace(convert(run.trace, tmp_path / "trace.json"))
    shown = same_in_perfetto(trace_processor, run.trace, tmp_path / "trace.json")
    lost = [e for e in trace.slices if e["cat"] == "cs_loss"]
    assert "size limit" in trace.totals["ended"] and [e["args"]["count"] for e in lost] == [trace.totals["not_written"]["calls"]]
    assert any(row[3] == "cs_loss" for row in shown["slices"])
    assert lost[0]["ts"] + lost[0]["dur"] > max(e["ts"] + e["dur"] for e in trace.host(cat="cuda_driver"))  # its end was written more than once


def test_parts(run_app, trace_processor, tmp_path):
    """Each part tells all names anew, so each opens alone; merged, they are the whole."""
    env = {"CUSTREAM_FULL": "block", "CUSTREAM_GPU": "off", "CUSTREAM_TRACE_MAX": "1M,rotate:99"}  # parts are counted in calls of the host
    run = run_packets(run_app, ["parts", "calls", 12000], tmp_path, env=env)
    parts = sorted(tmp_path.glob("trace*.pftrace"), key=lambda path: path.stat().st_mtime)
    assert len(parts) > 2 and parts[-1] == run.trace
    calls, recorded = collections.Counter(), 0
    for number, path in enumerate(parts):
        trace = Trace(convert(path, tmp_path / f"part{number}.json"))
        assert trace.json["part"] == trace.totals["part"] == number + 1
        recorded += trace.totals["recorded"]
        calls += collections.Counter(e["name"] for e in trace.host(cat="cuda_driver"))
    assert calls == calls_of(run.stdout)
    for path in (parts[1], parts[-1]):
        in_perfetto(trace_processor, path)
    assert custream("merge", "-o", tmp_path / "all.pftrace", *parts).returncode == 0
    assert Trace(convert(tmp_path / "all.pftrace", tmp_path / "all.json")).json["totals"]["recorded"] == recorded
    run_packets(run_app, ["timeline"], tmp_path, env=env)  # a new run removes the parts of the one before
    assert list(tmp_path.glob("trace.*.pftrace")) == []


def test_fork(run_app, tmp_path):
    """The child's file begins anew: it tells all names itself."""
    run = run_packets(run_app, ["forks", "calls"], tmp_path)
    files = sorted(tmp_path.glob("trace*.pftrace"))
    assert len(files) == 2, run.stderr
    traces = [Trace(convert(path, path.with_suffix(".json"))) for path in files]
    assert sorted(len(trace.host("cuLaunchKernel")) for trace in traces) == [1, 100]


# ---- The command ----

def test_commands_read_both(run_app, tmp_path):
    """check, report, diff, merge and inspect say of a file what they say of its twin."""
    run = run_packets(run_app, ["demo"], tmp_path)
    twin = convert(run.trace, tmp_path / "twin.json")
    for words in (["check"], ["report"], ["report", "--json"], ["report", "--csv=-"]):
        packets, plain = custream(*words, run.trace), custream(*words, twin)
        assert packets.returncode == plain.returncode == 0
        assert packets.stdout.replace(str(run.trace), "FILE") == plain.stdout.replace(str(twin), "FILE").replace(str(run.trace), "FILE")
    assert custream("diff", run.trace, twin).returncode == 0
    other = run_app(["timeline"]).check().trace
    for out in ("all.json", "all.pftrace.gz"):
        assert custream("merge", "-o", tmp_path / out, run.trace, other).returncode == 0
    assert events_of(convert(tmp_path / "all.pftrace.gz", tmp_path / "again.json"))[0] == events_of(tmp_path / "all.json")[0]


def test_standard_input(run_app, tmp_path):
    run = run_packets(run_app, ["timeline"], tmp_path)
    done = subprocess.run([BUILD / "custream", "check", "-"], input=run.trace.read_bytes(), capture_output=True, check=False)
    assert done.returncode == 0 and b"standard input: ok" in done.stdout


ROW = '{"ph":"X","cat":"c","name":"n","pid":5,"tid":6,"ts":1.5,"dur":2.125,"args":%s}'


OURS = '"schemaVersion":1,"displayTimeUnit":"ns","baseTimeNanoseconds":7,"metadata":{"tool":"custream 0"},'


def made(tmp_path, rows, head='"baseTimeNanoseconds":7,', tail=""):
    path = tmp_path / "made.json"
    path.write_text("{" + head + '"traceEvents":[' + ",".join(rows) + "]" + tail + "}", encoding="utf-8")
    return path


def test_values(tmp_path):
    """Each kind of value comes back as it was, whatever tool wrote it."""
    values = {"natural": 18446744073709551615, "negative": -5, "zero": 0, "real": 0.1, "whole real": 2.0, "small": 1e-300, "yes": True, "no": False,
              "nothing": None, "text": "a \"quoted\" \u20ac\n", "empty": "", "hex": "0x1f", "no hex": "0x01f", "long": "x" * 3000, "list": [1, 2, 3],
              "mixed": [1, "a", {"b": None}], "object": {"a": [1.5], "b": {"c": ""}}, "empty list": [], "cs.with.dots": 1}
    rows = [ROW % json.dumps(values), ROW % "{}", ROW.replace(',"args":%s', ""), ROW % '{"natural":"now a text"}',
            '{"ph":"M","name":"process_name","pid":5,"tid":9,"args":{"name":"p \\u00e9"}}', '{"ph":"M","name":"thread_sort_index","pid":5,"tid":6,"args":{"sort_index":-3}}',
            '{"ph":"C","name":"memory","pid":5,"tid":6,"ts":3.0,"args":{"used":1,"free":2.5,"total":-1}}', '{"ph":"C","name":"memory","pid":5,"tid":6,"ts":3.0,"args":{"used":2}}',
            '{"ph":"i","s":"p","cat":"c","name":"mark","pid":5,"tid":6,"ts":4.0,"args":{"a":1}}', '{"ph":"i","s":"t","cat":"c","name":"mark","pid":5,"tid":6,"ts":2.0,"args":{}}',
            '{"ph":"b","cat":"c","name":"span","pid":5,"tid":6,"ts":4.0,"id2":{"local":9},"args":{"k":"v"}}', '{"ph":"e","cat":"c","name":"span","pid":5,"tid":6,"ts":5.0,"id2":{"local":9},"args":{}}',
            '{"ph":"s","id":3,"pid":5,"tid":6,"ts":1.6,"cat":"ac2g","name":"ac2g"}', '{"ph":"f","bp":"e","id":3,"pid":0,"tid":7,"ts":9.0,"cat":"ac2g","name":"ac2g"}',
            ROW.replace("}", "},\"bind_id\":4,\"flow_out\":true}") % "{}".replace("}", "")]
    path = made(tmp_path, rows, tail=',"more":{"a":[1,2]},"totals":{"complete":true}')
    back = convert(convert(path, tmp_path / "made.pftrace"), tmp_path / "back.json")
    found, rest = events_of(back)
    expected, around = events_of(path)
    assert found == expected and rest == around
    assert {key: type(value) for key, value in found[0]["args"].items()} == {key: type(value) for key, value in values.items()}


@pytest.mark.parametrize("row, words", [
    (ROW.replace('"X"', '"n"') % "{}", 'an event of the kind "n"'),
    (ROW.replace('"dur"', '"tts":3,"dur"') % "{}", 'the member "tts"'), (ROW.replace("1.5", "-1.5") % "{}", "before the trace's begin: -1.5"),
    ('{"ph":"C","name":"c","pid":1,"tid":1,"ts":1,"args":{"a":"b"}}', 'a counter whose value is no number: "b"'),
    ('{"ph":"b","cat":"c","name":"mine","pid":1,"tid":1,"ts":1,"id":7,"args":{}}', 'a span without a local id2: "mine"'),
    ('{"ph":"b","cat":"c","name":"mine","pid":1,"tid":1,"ts":1,"id2":{"global":7},"args":{}}', 'a span without a local id2: "mine"'),
    ('{"ph":"s","cat":"c","name":"mine","pid":1,"tid":1,"ts":1,"args":{}}', 'an arrow without an id: "mine"'),
    ('{"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"%s"}}' % ("n" * 100000), "a name of more than 4096 bytes"),
    ('{"ph":"M","name":"process_labels","pid":1,"tid":1,"args":{"labels":"%s"}}' % ("n" * 4097), "a name of more than 4096 bytes"),
    ('{"ph":"M","name":"process_uptime","pid":1,"tid":1,"args":{"uptime":3}}', 'of the kind "process_uptime"')])
def test_what_has_no_place(tmp_path, row, words):
    """One line says which, and the file that was there stays."""
    to = convert(made(tmp_path, [ROW % "{}"], head=OURS), tmp_path / "to.pftrace")
    before = to.read_bytes()
    path = made(tmp_path, [ROW % "{}", row])
    done = custream("convert", path, to)
    assert done.returncode == 2 and words in done.stderr and "no place for" in done.stderr and len(done.stderr.splitlines()) == 1
    assert to.read_bytes() == before and sorted(p.name for p in tmp_path.iterdir()) == ["made.json", "to.pftrace"]


@pytest.mark.parametrize("words, line", [
    (["a.json"], "needs two names: custream convert FROM TO"), (["a.json", "b", "c"], "needs two names"), (["a.json", "b.txt"], "b.txt: allowed is a path ending in .json, .json.gz, .pftrace"),
    (["none.json", "b.pftrace"], "none.json: No such file"), (["a.json", "a.json"], "a.json: is the trace itself"), (["text", "b.json"], "text: line 1: no JSON, or no trace")])
def test_wrong_usage(tmp_path, monkeypatch, words, line):
    monkeypatch.chdir(tmp_path)
    made(tmp_path, [ROW % "{}"]).rename("a.json")
    pathlib.Path("text").write_text("hello", encoding="utf-8")
    done = custream("convert", *words)
    assert done.returncode == 2 and done.stderr.startswith("custream convert: ") and line in done.stderr and len(done.stderr.splitlines()) == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.json", "text"]


def test_another_producer(trace_processor, tmp_path):
    """Slices, instants and counters of other tools' files become rows, on a row for each track."""
    trace = protos.Trace()

    def packet(**fields):
        made_packet = trace.packet.add(trusted_packet_sequence_id=4, **fields)
        return made_packet

    packet(clock_snapshot={"clocks": [{"clock_id": 6, "timestamp": 1000}, {"clock_id": 1, "timestamp": 1700000000000001000}, {"clock_id": 3, "timestamp": 500}]})
    packet(track_descriptor={"uuid": 1, "process": {"pid": 77, "process_name": "other"}})
    packet(track_descriptor={"uuid": 1 << 40, "parent_uuid": 1, "name": "queue"})
    packet(timestamp=5000, track_event={"type": 1, "track_uuid": 1 << 40, "name": "outer", "categories": ["c"],
                                        "debug_annotations": [{"name": "d", "dict_entries": [{"name": "x", "int_value": -1}, {"name": "y", "array_values": [{"bool_value": True}]}]}]})
    packet(timestamp=6000, track_event={"type": 1, "track_uuid": 1 << 40, "name": "inner", "flow_ids": [8]})
    packet(timestamp=6500, timestamp_clock_id=3, track_event={"type": 2, "track_uuid": 1 << 40})
    packet(timestamp=9000, track_event={"type": 2, "track_uuid": 1 << 40})
    path, to = tmp_path / "other.pftrace", tmp_path / "other.json"
    path.write_bytes(trace.SerializeToString())
    done = custream("convert", path, to)
    events, rest = events_of(to)
    slices = {e["name"]: e for e in events if e["ph"] == "X"}
    assert done.returncode == 0 and rest["baseTimeNanoseconds"] == 1700000000000000000
    assert (slices["outer"]["ts"], slices["outer"]["dur"], slices["outer"]["pid"]) == (5.0, 4.0, 77)
    assert slices["outer"]["args"] == {"d": {"x": -1, "y": [True]}} and (slices["inner"]["ts"], slices["inner"]["dur"]) == (6.0, 1.0)
    assert {e["args"]["name"] for e in events if e["ph"] == "M"} == {"other", "queue"}
    trace_processor.load(to)
    assert trace_processor.value("SELECT count(*) FROM slice") == 2


@pytest.mark.parametrize("kind", ["dict", "list", "both"])
def test_arguments_in_arguments(tmp_path, kind):
    """Deeper ones than anybody writes: each command reads the file, and none needs a stack for it."""
    def sized(number, body):
        length = len(body)
        head = bytearray([number << 3 | 2])
        while length > 127:
            head.append(length & 127 | 128)
            length >>= 7
        return bytes(head) + bytes([length]) + body

    note = protos.DebugAnnotation(name="deep", int_value=1).SerializeToString()
    for depth in range(30000):
        number = {"dict": 11, "list": 12, "both": 11 + depth % 2}[kind]
        note = sized(number, note) if number == 12 else sized(10, b"d") + sized(number, note)
    event = protos.TrackEvent(type=1, track_uuid=1, name="outer", categories=["c"]).SerializeToString() + sized(4, sized(10, b"top") + note)
    packets = [protos.TracePacket(track_descriptor={"uuid": 1, "process": {"pid": 77, "process_name": "other"}}, trusted_packet_sequence_id=4).SerializeToString(),
               protos.TracePacket(timestamp=5000, trusted_packet_sequence_id=4).SerializeToString() + sized(11, event),
               protos.TracePacket(timestamp=9000, trusted_packet_sequence_id=4, track_event={"type": 2, "track_uuid": 1}).SerializeToString()]
    path = tmp_path / "deep.pftrace"
    path.write_bytes(b"".join(sized(1, packet) for packet in packets))
    for words in (["convert", path, tmp_path / "t.json"], ["check", path], ["report", path], ["merge", "-o", tmp_path / "m.json", path], ["recover", "-o", tmp_path / "r.pftrace", path]):
        done = custream(*words)
        assert done.returncode >= 0, (words, done.returncode, done.stderr)
    events, _ = events_of(tmp_path / "t.json")
    assert [e["name"] for e in events if e["ph"] == "X"] == ["outer"]


def test_dump_and_record(tmp_path):
    """What is cut out of the file of a process that runs can have either format, whichever the process writes."""
    with Remote(tmp_path, trace="own.pftrace") as program:
        program.do("create 1", "launch 1 5", "all")
        for out in ("cut.json", "cut.pftrace"):
            done = custream("dump", "-p", program.pid, "--last", "100s", "-o", tmp_path / out)
            assert done.returncode == 0, done.stderr
    assert custream("check", tmp_path / "cut.pftrace").returncode == 0
    plain, back = ([{k: v for k, v in e.items() if k != "ts"} for e in events_of(path)[0] if e.get("cat") != "overhead"]  # each dump has what is there flushed
                   for path in (tmp_path / "cut.json", convert(tmp_path / "cut.pftrace", tmp_path / "back.json")))
    assert back == plain and len([e for e in plain if e["ph"] == "X"]) > 5
