"""GPU work as Perfetto's own events for GPUs (`custream convert --render-stages`): they say what the slices say, and nobody who reads slices sees them."""
import collections
import json
import pathlib

import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

from tests.gputrace import KINDS, contexts, works
from tests.perfetto import assert_clean
from tests.pftrace import convert, custream, events_of
from tests.trace import Trace

PROGRAMS = [(["demo"], {}), (["timeline"], {}), (["late_graph"], {"CUSTREAM_GRAPH": "node"}), (["graph_copies"], {"CUSTREAM_GRAPH": "node"}),
            (["works", "peers"], {"CUSTREAM_FAKE_DEVICES": 2}), (["runtime"], {"CUSTREAM_GPU": "events"})]
TRACES = sorted((pathlib.Path(__file__).parents[2] / "traces").glob("*.json.gz"))
SPECIFICATIONS, CONTEXTS = "gpu_specifications", "graphics_contexts"
OF_LAUNCH = ("registers per thread", "shared memory", "local memory per thread")
ELSEWHERE = ("stream", "correlation", "context", "grid", "block", "event_wait_ids", *OF_LAUNCH)


class Stages:
    """The events of a file, with what it says once under a number."""

    def __init__(self, path):
        self.told, self.events, self.sequences = {}, [], set()
        for packet in protos.Trace.FromString(path.read_bytes()).packet:
            if not packet.HasField("gpu_render_stage_event"):
                continue
            for kind in (SPECIFICATIONS, CONTEXTS):
                for entry in getattr(packet.interned_data, kind):
                    assert (kind, entry.iid) not in self.told
                    self.told[kind, entry.iid] = entry
            assert packet.sequence_flags == (2 if self.events else 3)
            self.events.append((packet.timestamp, packet.gpu_render_stage_event))
            self.sequences.add(packet.trusted_packet_sequence_id)

    def said(self):
        """Of each event what a slice says, in the slice's words."""
        for begin_ns, event in self.events:
            stage, queue = self.told[SPECIFICATIONS, event.stage_iid], self.told[SPECIFICATIONS, event.hw_queue_iid]
            launch = {arg.name: arg.uint_value for arg in event.launch.args}
            if event.HasField("launch"):
                launch |= {key: [size.x, size.y, size.z] for key, size in (("grid", event.launch.grid_size), ("block", event.launch.workgroup_size))}
            yield {"begin": begin_ns, "ns": event.duration, "name": stage.name, "cat": stage.description, "gpu": event.gpu_id, "queue": queue.name,
                   "described": queue.description, "context": event.context & 0xffffff, "correlation": event.submission_id, "launch": launch,
                   "computes": stage.category, "pid": self.told[CONTEXTS, event.context].pid, "more": {extra.name: extra.value for extra in event.extra_data}}


def text_of(value):
    return value if isinstance(value, str) else json.dumps(value)


def expected(trace, path):
    """The same of the slices of a trace. `path`: it with all shapes said (--whole)."""
    context = contexts(trace)
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events_of(path)[0] if e.get("name") == "thread_name"}
    (host,) = (e["pid"] for e in events_of(path)[0] if e.get("name") == "process_sort_index" and e["pid"] >= 64)
    for e in (e for e in events_of(path)[0] if e["ph"] == "X" and e["cat"] in KINDS):
        args, stream = e["args"], e["args"]["stream"]
        launch = {key: args[key] for key in (*OF_LAUNCH, "grid", "block") if key in args} if "grid" in args else {}
        yield {"begin": round(e["ts"] * 1000), "ns": round(e["dur"] * 1000), "name": e["name"], "cat": e["cat"], "gpu": e["pid"],
               "queue": names.get((e["pid"], stream * 100), f"stream {stream}"), "described": f"CUDA stream {stream} of GPU {e['pid']}",
               "context": context[args.get("correlation")] or 0, "correlation": args.get("correlation", 0), "launch": launch, "pid": host,
               "computes": 2 if e["cat"] in ("kernel", "gpu_graph") else 0, "more": {key: text_of(v) for key, v in args.items() if key not in ELSEWHERE}}


def comparable(said):
    """Texts of numbers are those of the file: 0.5 and 0.500 are the same."""
    return json.dumps(said | {"more": {k: float(v) if v.replace(".", "").isdigit() else v for k, v in said["more"].items()}}, sort_keys=True)


def assert_waits(stages, trace):
    """Each event waits for those whose correlations its slice names: of several of one correlation for the one that had ended last."""
    slices = {(round(e["ts"] * 1000), e["pid"], e["args"].get("correlation", 0)): e["args"].get("event_wait_ids", []) for e in works(trace)}
    by_id = {event.event_id: (begin, event) for begin, event in stages.events}
    assert len(by_id) == len(stages.events)
    waits = 0
    for begin, event in stages.events:
        named = [by_id[i][1] for i in event.event_wait_ids]
        assert [waited.submission_id for waited in named] == slices[begin, event.gpu_id, event.submission_id]
        for waited in named:
            ends = [b + e.duration for b, e in stages.events if e.submission_id == waited.submission_id]
            assert by_id[waited.event_id][0] + waited.duration == max(ends)
        waits += len(named)
    return waits


def stages_of(path, tmp_path):
    return convert(path, tmp_path / "stages.pftrace", "--render-stages")


@pytest.mark.parametrize("argv, env", PROGRAMS, ids=lambda part: part[0] if isinstance(part, list) else "")
def test_says_what_the_slices_say(run_app, tmp_path, argv, env):
    run = run_app(argv, env=env).check()
    trace, stages = Trace(run.trace), Stages(stages_of(run.trace, tmp_path))
    whole = convert(run.trace, tmp_path / "whole.json", "--whole")
    assert collections.Counter(map(comparable, stages.said())) == collections.Counter(map(comparable, expected(trace, whole)))
    assert len(stages.events) == len(works(trace)) > 3 and len(stages.sequences) == 1
    assert {stages.told[CONTEXTS, e.context].api for _, e in stages.events} == {protos.InternedGraphicsContext.CUDA}
    assert assert_waits(stages, trace) > 0 or argv[0] not in ("demo", "timeline"), "nothing waited"


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name.partition(".")[0])
def test_committed_traces(trace_processor, tmp_path, path):
    """Real GPUs' work, nodes of graphs too: Perfetto has each event, with its times and the process it is of, beside the slices, which stay as they are."""
    packets = stages_of(path, tmp_path)
    plain = convert(path, tmp_path / "plain.json")
    events = events_of(plain)[0]
    stages = Stages(packets)
    slices = [e for e in events if e["ph"] == "X" and e["cat"] in KINDS]
    assert len({event.event_id for _, event in stages.events}) == len(stages.events) == len(slices) > 10
    assert events_of(convert(packets, tmp_path / "back.json")) == events_of(plain)
    trace_processor.load(packets)
    assert_clean(trace_processor)
    shown = collections.Counter((r["ts"], r["dur"], r["name"], r["submission_id"], r["pid"]) for r in trace_processor.query(
        "SELECT ts, dur, g.name AS name, submission_id, pid FROM gpu_slice g LEFT JOIN process p USING (upid)"))
    (host,) = (e["pid"] for e in events if e.get("name") == "process_sort_index" and e["pid"] >= 64)
    assert shown == collections.Counter((round(e["ts"] * 1000), round(e["dur"] * 1000), e["name"], e["args"].get("correlation", 0), host) for e in slices)
    shown = trace_processor.value("SELECT count(*) FROM slice")
    trace_processor.load(convert(path, tmp_path / "without.pftrace"))
    assert shown == trace_processor.value("SELECT count(*) FROM slice") + len(slices)


def test_readers_leave_them_out(run_app, tmp_path):
    """All commands say the same of a trace with them and without."""
    run = run_app(["timeline"]).check()
    packets, without = stages_of(run.trace, tmp_path), convert(run.trace, tmp_path / "without.pftrace")
    assert custream("check", packets).stdout.partition(": ")[2] == custream("check", without).stdout.partition(": ")[2] != ""
    reports = [custream("report", "--json", "--", path).stdout.replace(str(path), "FILE") for path in (packets, without)]
    assert reports[0] == reports[1] != ""
    assert custream("diff", packets, without).returncode == 0
    assert custream("merge", "-o", tmp_path / "merged.pftrace", packets).returncode == 0
    assert Stages(packets).events and not Stages(tmp_path / "merged.pftrace").events


def test_processes_of_a_merged_trace(run_app, tmp_path):
    """Contexts and streams of one number are of two processes, each with its own pid; so are events that waited."""
    runs = [run_app(["demo"], trace=tmp_path / f"{n}.json").check() for n in range(2)]
    merged = tmp_path / "merged.json"
    assert custream("merge", "-o", merged, *(run.trace for run in runs)).returncode == 0
    stages = Stages(stages_of(merged, tmp_path))
    hosts = {e["pid"] for e in events_of(merged)[0] if e["ph"] == "X" and e["cat"] == "cuda_driver"}
    by_host = collections.Counter(said["pid"] for said in stages.said())
    assert len(hosts) == 2 and by_host.keys() == hosts and {said["gpu"] for said in stages.said()} == {0}
    assert sorted(by_host.values()) == sorted(len(works(Trace(run.trace))) for run in runs)
    queues = {host: {e.hw_queue_iid for _, e in stages.events if stages.told[CONTEXTS, e.context].pid == host} for host in hosts}
    assert not set.intersection(*queues.values())
    by_id = {event.event_id: event for _, event in stages.events}
    assert len(by_id) == len(stages.events)
    for _, event in stages.events:
        assert {stages.told[CONTEXTS, by_id[i].context].pid for i in event.event_wait_ids} <= {stages.told[CONTEXTS, event.context].pid}


ROW = '{"ph":"X","cat":"%s","name":"%s","pid":0,"tid":7,"ts":%s,"dur":2,"args":{%s}}'


def made(tmp_path, rows):
    path = tmp_path / "made.json"
    path.write_text('{"traceEvents":[\n' + ",\n".join(rows) + "\n]}\n", encoding="utf-8")
    return path


def test_another_tools_trace(tmp_path):
    """As Kineto writes it: lanes are streams, the process that has the GPU is not told, and so is left out. What is no work of a stream is none here."""
    path = made(tmp_path, [ROW % ("kernel", "k", 1, '"stream":7,"context":3,"correlation":5,"grid":[1,2,3],"block":[4,5,6],"queued":0'),
                           ROW % ("gpu_memcpy", "c", 5, '"stream":7,"context":3,"correlation":6,"bytes":9'),
                           ROW % ("gpu_user_annotation", "a", 1, '"stream":7'), ROW % ("cuda_sync", "s", 9, '"stream":7')])
    stages = Stages(stages_of(path, tmp_path))
    said = list(stages.said())
    assert [(s["name"], s["queue"], s["context"], s["pid"], s["more"]) for s in said] == [
        ("k", "stream 7", 3, 0, {"queued": "0"}), ("c", "stream 7", 3, 0, {"bytes": "9"})]
    assert said[0]["launch"] == {"grid": [1, 2, 3], "block": [4, 5, 6]} and not stages.told[CONTEXTS, 3].HasField("pid")


def test_odd_rows(tmp_path):
    """Work without a number, lists that are none, long names and texts: each event is there, with what can be said."""
    long = "n" * 5000
    path = made(tmp_path, ['{"ph":"M","name":"thread_name","pid":0,"tid":700,"args":{"name":"%s"}}' % (4096 * "n"),
                           ROW % ("kernel", long, 1, '"stream":7'), ROW % ("kernel", "é\\n\\u0001", 2, '"stream":"x","correlation":-1,"grid":[1],"block":"b"'),
                           ROW % ("gpu_memset", "s", 3, f'"stream":16777215,"correlation":{1 << 39},"event_wait_ids":[],"text":"{long}"'),
                           ROW % ("gpu_memset", "s", 4, f'"stream":16777215,"correlation":{1 << 39},"event_wait_ids":[1,{1 << 39},{1 << 52}]'),
                           ROW % ("kernel", "k", 5, '"stream":7,"nested":{"a":[1,"b"]},"none":null,"grid":[1,2,4294967296],"block":[1,1,1]')])
    stages = Stages(stages_of(path, tmp_path))
    said = list(stages.said())
    assert [s["name"] for s in said] == [long, "é\n\x01", "s", "s", "k"] and len({e.event_id for _, e in stages.events}) == 5
    assert said[0]["queue"] == said[4]["queue"] == 512 * "n"
    assert said[2]["more"]["text"] == long and said[4]["more"] == {"nested": '{"a":[1,"b"]}', "none": "null"}
    assert list(stages.events[3][1].event_wait_ids) == [1, 1 << 39, 1 << 52]


def test_is_for_packets(tmp_path):
    path = made(tmp_path, [ROW % ("kernel", "k", 1, '"stream":7')])
    done = custream("convert", "--render-stages", path, tmp_path / "to.json")
    assert done.returncode == 2 and done.stderr == f"custream convert: {tmp_path}/to.json: --render-stages is for a path ending in .pftrace or .pftrace.gz\n"
    assert not (tmp_path / "to.json").exists()
