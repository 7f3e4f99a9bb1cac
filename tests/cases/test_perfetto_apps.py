"""Perfetto itself opens the traces of our programs: no error, nothing dropped, and by SQL the slices, arguments, flows and threads that they made."""
import collections
import gzip
import json
import subprocess

import pytest

from tests.apprun import BUILD, calls_in, calls_of, notes_of, read
from tests.perfetto import TraceError, assert_clean

SLICES = "SELECT s.id, s.ts, s.dur, s.name, s.category, s.depth, t.tid, t.name AS thread, p.pid, s.arg_set_id FROM slice s " \
         "JOIN thread_track k ON k.id = s.track_id JOIN thread t USING (utid) JOIN process p USING (upid)"
CALLS = f"SELECT name, count(*) AS n FROM ({SLICES}) WHERE category = 'cuda_driver' GROUP BY name"
FLOWS = "SELECT a.name AS start, ta.tid AS start_tid, a.ts AS start_ts, b.name AS finish, tb.tid AS finish_tid, b.ts AS finish_ts FROM flow f " \
        "JOIN slice a ON a.id = f.slice_out JOIN slice b ON b.id = f.slice_in " \
        "JOIN thread_track ka ON ka.id = a.track_id JOIN thread ta ON ta.utid = ka.utid " \
        "JOIN thread_track kb ON kb.id = b.track_id JOIN thread tb ON tb.utid = kb.utid"

PROGRAMS = [["demo"], ["timeline"], ["arrows"], ["callbacks"], ["capture"], ["leaks", 3, 4, 5, 6], ["contexts"], ["reuse"], ["devices"], ["adopt"],
            ["badcalls"], ["race", 8], ["burst", 2, 5000]]


def shown_flows(trace):
    """What FLOWS is to say. Perfetto has an arrow lead from the slice that began first, whatever the file says."""
    return sorted(tuple(v for e in (f.start, f.finish) for v in (e["name"], e["tid"], round(e["ts"] * 1000))) for f in trace.flows())


@pytest.mark.parametrize("argv", PROGRAMS, ids=lambda argv: argv[0])
def test_opens_clean(run_app, trace_processor, argv):
    """Every slice, flow, thread and lane of the file is in Perfetto, no more and no less."""
    run = run_app(argv, env={"CUSTREAM_FAKE_DEVICES": 2} if argv[0] == "devices" else {}).check()
    trace = read(run.trace)
    trace_processor.load(run.trace)
    assert_clean(trace_processor)

    shown = {r["name"]: r["n"] for r in trace_processor.query(CALLS)}
    assert shown == calls_in(trace) and (argv[0] in ("demo", "leaks", "badcalls") or shown == calls_of(run.stdout))

    rows = trace_processor.query(SLICES)
    assert len(rows) == len(trace.slices) + len(trace.instants)
    assert len([r for r in rows if r["dur"] < 1]) == len(trace.instants)
    assert not [r for r in rows if r["category"] == "cuda_driver" and r["depth"] and "callback" not in run.argv[0]]
    expected = collections.Counter((e["pid"], e["tid"], e["name"], round(e["ts"] * 1000)) for e in trace.slices)
    found = collections.Counter((r["pid"], r["tid"], r["name"], r["ts"]) for r in rows)
    assert not expected - found

    assert shown_flows(trace) == sorted(tuple(r.values()) for r in trace_processor.query(FLOWS))

    names = {(r["pid"], r["tid"]): r["name"] for r in trace_processor.query(
        "SELECT p.pid, t.tid, t.name FROM thread t JOIN process p USING (upid) WHERE t.name IS NOT NULL")}
    assert {key: names.get(key) for key in trace.thread_names} == trace.thread_names
    processes = {r["pid"]: r["name"] for r in trace_processor.query("SELECT pid, name FROM process WHERE name IS NOT NULL")}
    assert {pid: processes.get(pid) for pid in trace.process_names} == trace.process_names


def test_demo_is_what_it_did(run_app, trace_processor):
    run = run_app("demo").check()
    trace_processor.load(run.trace)
    calls = {r["name"]: r["n"] for r in trace_processor.query(CALLS)}
    assert (calls["cuMemcpyHtoDAsync_v2"], calls["cuMemcpyDtoHAsync_v2"], calls["cuGraphLaunch"], calls["cuLaunchHostFunc"]) == (12, 12, 12, 12)
    assert (calls["cuLaunchKernel"], calls["cuEventRecord"], calls["cuStreamWaitEvent"], calls["cuEventSynchronize"]) == (12 + 2 + 5, 24, 24, 3)
    of_work = "SELECT count(*) FROM flow JOIN slice ON slice.id = flow.slice_in WHERE category IN ('kernel', 'gpu_memcpy', 'gpu_memset', 'gpu_graph')"
    assert trace_processor.value("SELECT count(*) FROM flow JOIN slice a ON a.id = slice_out JOIN slice b ON b.id = slice_in "
                                 "WHERE a.category = 'cuda_driver' AND b.category = 'cuda_driver'") == 27
    assert trace_processor.value(f"{of_work} AND name LIKE 'sleep%'") == 17 and trace_processor.value(f"{of_work} AND name LIKE 'Memcpy%'") >= 24
    assert trace_processor.value("SELECT count(*) FROM flow JOIN slice a ON a.id = slice_out JOIN slice b ON b.id = slice_in "
                                 "WHERE b.category NOT IN ('cs_dep', 'cuda_driver') AND a.category != 'cuda_driver'") == 0
    assert trace_processor.value("SELECT count(*) FROM flow JOIN slice b ON b.id = slice_in WHERE b.name = 'wake-up'") > 0
    assert trace_processor.value("SELECT count(*) FROM slice WHERE category = 'cs_callback'") == 12
    assert trace_processor.value("SELECT count(*) FROM slice WHERE name = 'capture'") == 1
    names = {r["name"] for r in trace_processor.query("SELECT DISTINCT t.name FROM thread t JOIN thread_track USING (utid)")}
    assert names >= {"demo", "housekeeping", "stream 7 legacy default"}
    assert len([name for name in names if name.endswith(" (callbacks)")]) == 1  # the driver's thread has the name of whoever started it
    kernels = trace_processor.query("SELECT args.display_value AS kernel, count(*) AS n FROM slice JOIN args USING (arg_set_id) "
                                    "WHERE slice.name = 'cuLaunchKernel' AND args.key = 'args.kernel' GROUP BY kernel")
    assert kernels == [{"kernel": "sleep", "n": 19}]
    copied = trace_processor.value("SELECT sum(args.int_value) FROM slice JOIN args USING (arg_set_id) "
                                   "WHERE slice.name = 'cuMemcpyHtoDAsync_v2' AND args.key = 'args.bytes'")
    assert copied == 12 << 20


def test_arguments(run_app, trace_processor):
    """A launch's arguments, one by one, as Perfetto shows them."""
    run = run_app("timeline", env={"CUSTREAM_GPU": "off"}).check()  # then the launch has all arguments
    trace_processor.load(run.trace)
    first = "(SELECT arg_set_id FROM slice WHERE name = 'cuLaunchKernel' ORDER BY ts LIMIT 1)"
    shown = {r["key"]: r["display_value"] for r in trace_processor.query(f"SELECT key, display_value FROM args WHERE arg_set_id = {first}")}
    lane = shown.pop("args.cs.stream")
    assert shown == {"args.kernel": "empty_kernel", "args.shared memory": "256", "args.grid[0]": "2", "args.grid[1]": "3", "args.grid[2]": "4",
                     "args.block[0]": "32", "args.block[1]": "2", "args.block[2]": "1"}
    plain = trace_processor.value(
        "SELECT b.int_value FROM args a JOIN args b USING (arg_set_id) WHERE b.key = 'args.cs.stream' AND a.key = 'args.handle' "
        f"AND a.display_value = '{notes_of(run.stderr)['plain']}'")
    assert lane == str(plain)


def test_arrows_across_threads(run_app, trace_processor):
    run = run_app("arrows").check()
    notes = notes_of(run.stderr)
    trace_processor.load(run.trace)
    pairs = collections.Counter((r["start"], r["start_tid"], r["finish"], r["finish_tid"]) for r in trace_processor.query(FLOWS))
    assert pairs["cuEventRecord", int(notes["recorder"]), "cuStreamWaitEvent", int(notes["main"])] == 20
    assert sum(pairs.values()) == 26


def test_gzip(run_app, trace_processor, tmp_path):
    path = tmp_path / "trace.json.gz"
    run = run_app(["burst", 1, 20000, 700], env={"CUSTREAM_TRACE": path}).check()  # the pause is a flush, so that there are several members
    trace_processor.load(path)
    assert_clean(trace_processor)
    assert {r["name"]: r["n"] for r in trace_processor.query(CALLS)} == calls_of(run.stdout)


def test_losses(run_app, trace_processor):
    run = run_app(["burst", 2, 15000], env={"CUSTREAM_BUFFER": "64K"}).check()
    trace = read(run.trace)
    trace_processor.load(run.trace)
    assert_clean(trace_processor)
    lost = trace_processor.value("SELECT sum(args.int_value) FROM slice JOIN args USING (arg_set_id) "
                                 "WHERE slice.category = 'cs_loss' AND args.key = 'args.count'")
    recorded = trace_processor.value("SELECT count(*) FROM slice WHERE category = 'cuda_driver'")
    assert lost == trace.totals["lost_records"] > 0 and lost + recorded == sum(calls_of(run.stdout).values())


@pytest.mark.parametrize("how", ["abort", "kill"])
def test_killed(run_app, trace_processor, how):
    """What the last flush left opens as well: streams without an end stay open."""
    run = run_app(["ending", how])
    assert run.rc < 0
    trace_processor.load(run.trace)
    assert_clean(trace_processor)
    assert trace_processor.value("SELECT count(*) FROM slice WHERE name = 'cuLaunchKernel'") >= 100


@pytest.mark.parametrize("packed", [False, True], ids=["json", "gz"])
def test_a_file_that_ends_inside_an_event(run_app, trace_processor, tmp_path, packed):
    """As a process leaves it that is killed during a write. Perfetto refuses it, and opens what `recover` makes of it."""
    run = run_app(["burst", 2, 3000]).check()
    whole = run.trace.read_bytes()
    cut = whole[:whole.index(b'"dur"', len(whole) // 2) + 7]
    path = tmp_path / ("FILE.json.gz" if packed else "FILE.json")
    path.write_bytes(gzip.compress(cut) if packed else cut)
    lines = cut.count(b"\n")

    with pytest.raises(TraceError):
        trace_processor.load(path)

    done = subprocess.run([BUILD / "custream", "check", path], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "it ends inside an event" in done.stderr and "'custream recover' makes" in done.stderr
    whole = tmp_path / ("whole.json.gz" if packed else "whole.json")
    subprocess.run([BUILD / "custream", "recover", "-o", whole, path], capture_output=True, check=True)
    events = json.loads((gzip.decompress if packed else bytes)(whole.read_bytes()))["traceEvents"]
    trace_processor.load(whole)
    phases = collections.Counter(e["ph"] for e in events)
    assert phases["X"] == sum(line.startswith(b'{"ph":"X"') for line in cut.splitlines()[:lines]) > 1000
    assert trace_processor.value("SELECT count(*) FROM slice") == phases["X"] + phases["i"]


@pytest.mark.parametrize("argv, env", [(["demo"], {}), (["works", "graphs"], {"CUSTREAM_GRAPH": "node"}), (["works", "streams"], {"CUSTREAM_FAKE_CUPTI_EARLY": 1000000}),
                                       (["works", "streams"], {"CUSTREAM_GPU": "events"}), (["timeline"], {})],
                         ids=["demo", "graph nodes", "before their calls", "events", "timeline"])
def test_arrows_on_slices(run_app, trace_processor, argv, env):
    """An arrow from a call to its work stands on both slices, and Perfetto shows it."""
    run = run_app(argv, env=env).check()
    trace_processor.load(run.trace)
    assert_clean(trace_processor)
    trace = read(run.trace)
    bound = trace.bound()
    assert shown_flows(trace) == sorted(tuple(r.values()) for r in trace_processor.query(FLOWS)) and bound
    assert all(f.start["ts"] < f.finish["ts"] for f in bound)
    assert (len({f.id for f in bound}) < len(bound)) == ("CUSTREAM_GRAPH" in env), "a graph launch alone has several pieces of work"
