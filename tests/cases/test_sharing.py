"""STREAMS: a pool that aliases streams, everything on one stream, and waiting for each operation. What the simulated driver was really asked for is counted."""
import collections
import random
import re

import pytest

from tests.apprun import both, calls_in, calls_of, faithful, notes_of, read, said
from tests.trace import stream_of

INVALID_HANDLE = 400


def lives(trace):
    return [e for e in trace.lives if e["cat"] == "cs_stream"]


@pytest.fixture
def counted(run_app, tmp_path):
    """Runs a program under a policy; the run has `real`, how often the driver was asked for each symbol."""
    def run(argv, streams, **env):
        counts = tmp_path / "counts"
        done = run_app(argv, env={"CUSTREAM_STREAMS": streams, "CUSTREAM_FAKE_COUNTS": str(counts)} | env)
        done.real = collections.Counter({name: int(n) for name, n in (line.split() for line in counts.read_text().splitlines())})
        done.made = done.real["cuStreamCreate"] + done.real["cuStreamCreateWithPriority"]
        done.destroyed = done.real["cuStreamDestroy_v2"] + done.real["cuStreamDestroy"]
        return done
    return run


# ---- pool ----

KINDS = [(0, 0), (1, 0), (1, -1), (1, -5), (1, -5), (0, 0)]  # flags and priority as they are given: of sharing.c's kinds two pairs are the same


class Pool:
    """What a pool of n makes of a script, printed as sharing.c prints it."""

    def __init__(self, n):
        self.n, self.made, self.pools, self.turns, self.shares, self.created = n, 0, {}, collections.Counter(), collections.Counter(), []

    def create(self, kind):
        streams = self.pools.setdefault(KINDS[kind], [])
        if len(streams) < self.n:
            streams.append(self.made)
            self.made += 1
            stream = streams[-1]
        else:
            turn = self.turns[KINDS[kind]]
            self.turns[KINDS[kind]] += 1
            stream = min((streams[(turn + i) % self.n] for i in range(self.n)), key=lambda s: self.shares[s])  # the first of those with the fewest
        self.shares[stream] += 1
        self.created.append(stream)
        return stream

    def destroy(self, i):
        stream = self.created[i]
        if not self.shares[stream]:
            return INVALID_HANDLE
        self.shares[stream] -= 1
        return 0

    def run(self, script):
        lines = []
        for step in script:
            i, result = int(step[1:]), 0
            if step[0] == "c":
                lines.append(f"stream {self.create(i)}")
            if step[0] == "d":
                result = self.destroy(i)
            lines.append(f"{step} result {result}")
        return lines


def random_script(seed, steps):
    rng, script, created = random.Random(seed), [], 0
    for _ in range(steps):
        step = rng.choice("cccdddw") if created else "c"
        script.append(f"{step}{rng.randrange(len(KINDS)) if step == 'c' else rng.randrange(created)}")
        created += step == "c"
    return script


@pytest.mark.parametrize("n, seed", [(1, 1), (2, 2), (3, 3), (5, 4), (32, 5), (1024, 6)])
def test_a_pool_does_as_its_model(counted, n, seed):
    """The first n of a kind are made, then those with the fewest shares go round; a destroy takes a share back, one too many is refused; nothing else is
    ever asked of the driver."""
    script = random_script(seed, 500)
    run = counted(["sharing", "script", *script], f"pool:{n}").check()
    pool = Pool(n)
    assert run.stdout.splitlines() == pool.run(script)
    assert (run.made, run.destroyed) == (pool.made, 0) and not said(run)
    trace = read(run.trace)
    assert trace.totals["leaked_streams"] == sum(pool.shares.values())
    assert calls_in(trace)["cuStreamDestroy_v2"] == sum(step[0] == "d" for step in script)
    refused = [e for e in trace.host("cuStreamDestroy_v2") if "cs.result" in e["args"]]
    assert {e["args"]["cs.result"] for e in refused} <= {"CUDA_ERROR_INVALID_HANDLE"}
    assert len(refused) == run.stdout.count(f"result {INVALID_HANDLE}\n")


def test_round_robin(counted):
    run = counted(["sharing", "script", *["c1"] * 9], "pool:4").check()
    assert re.findall(r"^stream (\d+)$", run.stdout, flags=re.M) == list("012301230") and run.made == 4


def test_without_a_pool_each_is_its_own(run_app):
    run = run_app(["sharing", "script", *["c1"] * 9, "d0", "d0"]).check()
    assert re.findall(r"^stream (\d+)$", run.stdout, flags=re.M) == list("012345678") and run.stdout.endswith(f"d0 result 0\nd0 result {INVALID_HANDLE}\n")


def test_the_trace_tells_who_shares(counted):
    """Each creation's slice has the stream that it got; the stream's life has its place, and at its end how many shared it at most."""
    run = counted(["sharing", "script", "c0", "c0", "c0", "c0", "c0", "d0", "d2", "d1", "w4", "c2"], "pool:2").check()
    trace = read(run.trace)
    created = sorted((e for e in trace.host() if e["name"].startswith("cuStreamCreate")), key=lambda e: e["ts"])
    lanes = [e["args"]["cs.stream"] for e in created]
    assert lanes[0::2][:3] == [lanes[0]] * 3 and lanes[1::2][:2] == [lanes[1]] * 2 and len(set(lanes)) == 3
    args = {e["tid"]: e["args"] for e in lives(trace)}
    assert [(args[lane]["pool place"], args[lane]["shared by"]) for lane in (lanes[0], lanes[1], lanes[5])] == [(1, 3), (2, 2), (1, 1)]
    assert args[lanes[0]]["memsets"] == 1 and args[lanes[0]]["destroyed"] is False
    assert (trace.totals["leaked_streams"], sum(e["count"] for e in trace.json["neverDestroyed"] if e["object"] == "stream")) == (3, 3)


def test_without_a_trace(counted):
    run = counted(["sharing", "script", "c0", "c0", "c0", "d0", "d2", "d2"], "pool:2", CUSTREAM_TRACE="off").check()
    assert run.stdout.splitlines() == Pool(2).run(["c0", "c0", "c0", "d0", "d2", "d2"]) and run.made == 2


def test_rules_make_kinds_of_their_own(counted):
    """What a rule names, or leaves out of the trace, is not mixed with the rest."""
    policy = '{"rules": [{"match": {"nth": 2}, "set": {"name": "mine", "record": false}}]}'
    run = counted(["sharing", "script", "c0", "c0", "c0"], "pool:1", CUSTREAM_POLICY=policy).check()
    assert re.findall(r"^stream (\d+)$", run.stdout, flags=re.M) == ["0", "1", "0"]


def test_a_priority_policy_comes_first(counted):
    run = counted(["sharing", "script", "c1", "c2", "c3"], "pool:1", CUSTREAM_PRIORITY="0:-1").check()
    assert re.findall(r"^stream (\d+)", run.stdout, flags=re.M) == ["0", "1", "1"]  # -5 is given -1


@pytest.mark.parametrize("threads", [2, 8])
def test_a_pool_of_many_threads(counted, threads):
    """However many make streams at once, there are n of a kind: who made one too many gave it back."""
    for _ in range(5):
        run = counted(["sharing", "threads", threads, 40, 10], "pool:3").check()
        assert run.stdout == "distinct 3\n" * 2 and run.made - run.destroyed == 6
        assert read(run.trace).totals["leaked_streams"] == 20


def test_a_pool_ends_with_its_context(counted):
    """Contexts destroyed and made again, a reset of the device, the primary context's last release, also by a green context: each has a pool of its own, of
    streams that live."""
    run = counted(["sharing", "contexts"], "pool:2").check()
    assert run.made == 2 * (3 * 2 + 4) and run.destroyed == 0
    assert run.stdout.splitlines() == run_like(3)
    assert read(run.trace).totals["leaked_streams"] > 0


def run_like(rounds):
    return ([f"{what} {n} of {n} in the current context" for what, n in (("first", 5), ("second", 5), ("first again", 2))] * rounds
            + [f"{what} 5 of 5 in the current context" for what in ("primary", "primary after reset", "primary once more", "primary of a green one", "primary after the green one")])


def test_a_carrier_ends_with_its_context(counted):
    run = counted(["sharing", "contexts"], "serial").check()
    assert run.stdout.splitlines() == run_like(3) and not said(run)


def test_a_child_of_fork(counted, run_app):
    """It has no CUDA, and gets no stream of the parent's."""
    run = counted(["sharing", "fork"], "pool:1").check()
    assert run.stdout == "cuStreamCreate 3\ncuStreamDestroy_v2 3\nchild 0\ncuStreamDestroy_v2 0\n" == run_app(["sharing", "fork"], shim=False).stdout


SHARED = ("custream: warning: a stream that the program has created {} times (CUSTREAM_STREAMS=pool) is being captured: work on any of them goes into "
          "that graph")


def test_capturing_streams_are_not_given_out(counted):
    """The others are; where all capture one outside of the pool is made, which is the program's alone and really destroyed."""
    run = counted(["sharing", "script", "c0", "c0", "b0", "c0", "c0", "b1", "c0", "c0", "d4", "d5", "e0", "e1", "c0", "c0"], "pool:2").check()
    assert re.findall(r"^stream (\d+)$", run.stdout, flags=re.M) == ["0", "1", "1", "1", "2", "3", "0", "0"]
    assert (run.made, run.destroyed) == (4, 2)
    assert said(run) == [SHARED.format(3), "custream: warning: all streams of the pool (CUSTREAM_STREAMS) are being captured: one more is made"]


def test_streams_that_joined_a_capture_are_not_given_out(counted):
    run = counted(["sharing", "script", "c0", "c0", "c0", "b0", "j1", "c0", "d3"], "pool:3").check()
    assert re.findall(r"^stream (\d+)$", run.stdout, flags=re.M) == ["0", "1", "2", "2"]


def test_a_capture_on_a_shared_stream_says_so(counted):
    run = counted(["sharing", "script", "c0", "c0", "c0", "b0", "w1", "e0", "d0", "d1", "b2", "w2", "e2"], "pool:1").check()
    assert said(run) == [SHARED.format(3)]
    begun = sorted(read(run.trace).host("cuStreamBeginCapture_v2"), key=lambda e: e["ts"])
    assert [(e["args"]["mode"], e["args"].get("shared by")) for e in begun] == [("relaxed", 3), ("relaxed", None)]


def test_the_last_destroy_of_a_capturing_stream_is_real(counted):
    """Its capture ends with it, as without the pool, and a new stream takes its place."""
    run = counted(["sharing", "script", "c0", "c0", "b0", "d0", "d1", "c0", "w2", "c0"], "pool:1").check()
    assert (run.made, run.destroyed) == (2, 1) and run.stdout.count("result 0\n") == 8
    assert read(run.trace).totals["leaked_streams"] == 2


def test_refused_creations_take_no_place(counted):
    run = counted(["sharing", "script", "c1", "c1", "c1", "c1"], "pool:2", CUSTREAM_FAKE_FAIL="cuStreamCreateWithPriority:2=2").check()
    assert run.stdout == "stream 0\nc1 result 0\nc1 result 2\nstream 1\nc1 result 0\nstream 0\nc1 result 0\n"


def test_green_contexts_keep_their_streams(run_app):
    run, trace = both(run_app, ["works", "green"], env={"CUSTREAM_STREAMS": "pool:1"})
    run.check()
    green = [e for e in lives(trace) if "green context" in e["args"]]
    assert green and all("pool place" not in e["args"] for e in green)


# ---- serial ----

def on_one_stream(trace):
    """All work of each context is on its carrier or on its legacy stream; what was captured is on the program's own streams. The carriers."""
    carriers = {e["args"]["cs.stream"] for e in lives(trace) if e["args"].get("serial") == "carrier"}
    legacy = {e["args"]["cs.stream"] for e in lives(trace) if e["args"]["origin"] == "legacy default"}
    work = [e for e in trace.host() if re.match(r"cu(Launch|Mem(cpy|set)|Graph(Launch|Upload)|Stream(AddCallback|Wait|Write|Query|Synchronize)|EventRecord)", e["name"])
            and "cs.stream" in e["args"] and "cs.result" not in e["args"]]
    return carriers, [e for e in work if e["args"]["cs.stream"] not in carriers | legacy]


class Call:
    """A line of the simulated driver's journal: what it was really asked, and on which stream."""

    def __init__(self, line):
        self.thread, self.name, self.stream = line.split()[:3]
        self.sent, _, rest = line.partition(" -> ")
        self.result = int(rest.split()[0])


def journal(run_app, tmp_path, argv, streams, **env):
    path = tmp_path / "journal"
    run_app(argv, env={"CUSTREAM_STREAMS": streams, "CUSTREAM_FAKE_JOURNAL": path} | env).check()
    return [Call(line) for line in path.read_text().splitlines()]


def serial(counted, what):
    run = counted(["serial", what], "serial").check()
    trace = read(run.trace)
    assert calls_in(trace) == calls_of(run.stdout) and not said(run)  # what we ask of the driver is not among them
    assert trace.totals["leaked_streams"] <= calls_of(run.stdout)["cuStreamCreate"] + calls_of(run.stdout)["cuStreamCreateWithPriority"]
    return run, trace


def events_left(calls):
    return sum(calls[name] for name in ("cuEventCreate", "cuEventCreate_v2")) - sum(calls[name] for name in ("cuEventDestroy", "cuEventDestroy_v2"))


def lines_of(run):
    return [line for line in run.stdout.splitlines() if not line.startswith("calls ")]


def test_everything_runs_as_issued(counted, run_app):
    """Created streams, the legacy stream and the thread's own: a gate in the first holds back all that came after it, and each sees what came before."""
    run, trace = serial(counted, "issue")
    assert lines_of(run) == ["cuStreamQuery 600"] * 5 + ["cuStreamQuery_ptsz 600", "straight after 7", "values 7 7 7 7 7 7 7"]
    assert lines_of(run_app(["serial", "issue"]).check())[1] == "cuStreamQuery 0"  # else the program would tell nothing
    carriers, elsewhere = on_one_stream(trace)
    assert len(carriers) == 1 and not elsewhere
    (carrier,) = [e for e in lives(trace) if e["args"].get("serial") == "carrier"]
    assert "carrier of all streams" in carrier["name"] and carrier["args"]["copies"] == 3 and carrier["args"]["flags"] == "blocking"
    carried = [e for e in lives(trace) if e["args"].get("serial") == "its work is the carrier's"]
    assert len(carried) == 3 and run.made == 4 and [e["args"]["flags"] for e in carried] == ["non-blocking"] * 3 and carried[1]["args"]["priority"] == -3
    assert not any(e["args"]["origin"] == "per-thread default" for e in lives(trace))


WORK = re.compile(r"cu(Launch|Mem(cpy|set)|Graph(Launch|Upload)|StreamAddCallback|StreamWait|StreamQuery|StreamSynchronize|EventRecord)")


def test_the_driver_sees_one_stream(run_app, tmp_path):
    """What each call was resolved to: the fourth stream that was created, which is the carrier, or the legacy one."""
    calls = journal(run_app, tmp_path, ["serial", "issue"], "serial")
    assert {call.stream for call in calls if WORK.match(call.name)} == {"s2", "legacy"}
    assert [call.stream for call in calls if call.name.startswith("cuStreamCreate")] == ["s1", "s2", "s3", "s4"]
    assert not any(call.name.endswith(("_ptds", "_ptsz")) for call in calls)


def test_no_carrier_is_made_while_something_captures(run_app, tmp_path):
    names = [call.name for call in journal(run_app, tmp_path, ["serial", "late"], "serial")]
    end = names.index("cuStreamEndCapture")
    assert [sum(name.startswith("cuStreamCreate") for name in part) for part in (names[:end], names[end:])] == [3, 1]


@pytest.mark.parametrize("what, streams", [
    ("destroyed", 4), ("getters", 3), ("callbacks", 3), ("many_callbacks", 3), ("events", 3), ("graphs", 3), ("captured_elsewhere", 3), ("contexts", 9), ("threads", 400)])
def test_all_that_was_asked_for_holds(counted, run_app, what, streams):
    """Programs that order their work themselves print what they print without a policy; each of their streams is there, and one more a context."""
    bare = run_app(["serial", what], shim=False).check()
    run, trace = serial(counted, what)
    assert run.stdout == bare.stdout
    carriers, elsewhere = on_one_stream(trace)
    assert events_left(run.real) == events_left(calls_of(run.stdout))  # those that order work are destroyed again
    assert run.made - (run.destroyed - calls_of(run.stdout)["cuStreamDestroy_v2"]) == streams + len(carriers)
    assert len(carriers) == {"contexts": 5}.get(what, 1)
    if what not in ("graphs", "captured_elsewhere", "many_callbacks"):
        assert not elsewhere


def test_what_is_captured_stays_on_its_stream(counted):
    """In a program that captures with a fork and a join, nothing else leaves the carrier, and the carrier joins no capture."""
    _, trace = serial(counted, "graphs")
    carriers, elsewhere = on_one_stream(trace)
    captures = trace.gpu("capture")
    assert len(captures) == 3 and not {e["args"]["cs.stream"] for e in captures} & carriers
    assert elsewhere and all(any(c["ts"] <= e["ts"] < c["ts"] + c["dur"] for c in captures) for e in elsewhere)
    assert {e["args"]["cs.stream"] for e in trace.host("cuGraphLaunch")} == carriers


def test_order_while_another_thread_captures(counted):
    """The threads' own default streams keep their work then, since the legacy stream may not be touched, and still it runs as issued."""
    run, _ = serial(counted, "own_meanwhile")
    assert lines_of(run) == ["values 6 6 6 6", "nodes 2"]


def test_streams_made_while_something_captures(counted):
    """There is no carrier yet: what they were given before there is one comes before what they are given then."""
    run, trace = serial(counted, "late")
    assert lines_of(run) == ["nodes 1, before the gate 0 0", "cuStreamQuery 600", "values 1 1 1"]
    assert len(on_one_stream(trace)[0]) == 1


@pytest.mark.parametrize("call", ["cuEventCreate", "cuEventRecord", "cuStreamWaitEvent"])
def test_an_order_that_the_driver_refuses_is_said(run_app, call):
    """Of the work that the streams had before there was a carrier, and once."""
    run = run_app(["serial", "late"], env={"CUSTREAM_STREAMS": "serial", "CUSTREAM_FAKE_FAIL": f"{call}=2"})
    assert said(run) == ["custream: warning: CUSTREAM_STREAMS=serial: work of two streams could not be ordered (CUDA error 2)"]


def test_serial_without_a_trace(counted, run_app):
    """Callbacks are told their streams also while nothing is recorded."""
    for what in ("callbacks", "many_callbacks", "graphs"):
        run = counted(["serial", what], "serial", CUSTREAM_TRACE="off").check()
        assert run.stdout == run_app(["serial", what], shim=False).stdout and not run.trace.exists()


def test_green_contexts_are_left_out_of_serial(run_app):
    run, trace = both(run_app, ["works", "green"], env={"CUSTREAM_STREAMS": "serial"})
    run.check()
    assert all("serial" not in e["args"] for e in lives(trace) if "green context" in e["args"])


def test_streams_from_elsewhere_have_no_carrier(run_app):
    run, trace = both(run_app, "adopt", env={"CUSTREAM_STREAMS": "serial"})
    run.check()
    assert all("serial" not in e["args"] for e in lives(trace) if e["args"]["origin"].startswith("adopted"))
    assert notes_of(run.stderr)


# ---- sync ----

def test_each_operation_is_waited_for(run_app):
    """Work is over when its call returns; waits for values and events are not waited for, and nothing is while something captures."""
    run = run_app(["serial", "immediate"], env={"CUSTREAM_STREAMS": "sync"}).check()
    assert lines_of(run) == ["set 5", "cuStreamQuery 0", "cuStreamQuery_ptsz 0", "ran 1", "ran 2", "cuEventQuery 600", "graph 6"]
    assert "cuStreamQuery 600" in run_app(["serial", "immediate"]).check().stdout
    trace = read(run.trace)
    assert calls_in(trace) == calls_of(run.stdout) and not said(run)
    launches = [e for e in trace.host() if e["name"].startswith("cuLaunchKernel")]
    captured = trace.gpu("capture")
    waited = [e for e in launches if not any(c["ts"] <= e["ts"] < c["ts"] + c["dur"] for c in captured)]
    assert len(waited) == 4 and all(e["dur"] >= 20000 for e in waited)  # the kernel's own 20 ms: its slice has the wait in it


def test_the_operations_stream_is_waited_for(run_app, tmp_path):
    """And no other: the thread's own default stream for a call of its own, the legacy one for the others."""
    calls = journal(run_app, tmp_path, ["serial", "immediate"], "sync")
    waited = [(call.stream, after.stream) for call, mode, after in zip(calls, calls[1:], calls[2:])
              if mode.name == "cuThreadExchangeStreamCaptureMode" and after.name.startswith("cuStreamSynchronize")]
    assert waited == [("s1", "s1")] * 2 + [("legacy", "legacy"), ("per-thread:1", "per-thread:1")] + [("s2", "s2")] * 4


def test_an_operations_error_is_its_calls(run_app):
    """The third wait finds an error: the call that it belongs to returns it, and no other."""
    env = {"CUSTREAM_STREAMS": "sync", "CUSTREAM_FAKE_FAIL": "cuStreamSynchronize:3=700"}
    run = run_app(["sharing", "script", "c1", "w0", "w0", "w0", "w0", "d0"], env=env).check()
    assert run.stdout.splitlines()[2:] == ["w0 result 0", "w0 result 0", "w0 result 700", "w0 result 0", "d0 result 0"]
    assert [e["args"].get("cs.result") for e in read(run.trace).host("cuMemsetD8Async")] == [None, None, "CUDA_ERROR_ILLEGAL_ADDRESS", None]


def test_an_error_after_a_callback_was_taken(run_app):
    """The driver has it, whatever the wait for it runs into: it runs once, and its node is given back once."""
    env = {"CUSTREAM_STREAMS": "sync", "CUSTREAM_FAKE_FAIL": "cuStreamSynchronize*=700"}
    run = run_app(["serial", "refused_callbacks"], env=env).check()
    assert lines_of(run) == ["refused 200", "ran 200, wrong 0"]


# ---- all of them ----

PROGRAMS = [["capture"], ["callbacks"], ["arrows"], ["timeline"], ["handles"], ["contexts"], ["devices"], ["race"], ["works", "streams"], ["works", "captures"],
            ["works", "graphs"], ["works", "contexts"], ["works", "threads", "40"], ["many", "live", "1000"], ["forks", "plain"]]


@pytest.mark.parametrize("streams", ["pool:64", "serial", "sync"])
@pytest.mark.parametrize("argv", PROGRAMS, ids=" ".join)
def test_programs_end_as_without_it(run_app, argv, streams):
    if (argv, streams) == (["callbacks"], "sync"):
        return  # it opens a gate after it has put a host function behind it: waiting for that one would last for ever
    run, trace = both(run_app, argv, env={"CUSTREAM_STREAMS": streams, "CUSTREAM_FAKE_DEVICES": 2, "CUSTREAM_FULL": "block"})
    run.check()
    assert calls_in(trace) == calls_of(run.stdout)


@pytest.mark.parametrize("streams", ["pool:2", "serial", "sync"])
@pytest.mark.parametrize("gpu", ["cupti", "events"])
def test_with_gpu_times(run_app, streams, gpu):
    """Work is found on the stream that it really ran on."""
    run, trace = both(run_app, ["works", "streams"], env={"CUSTREAM_STREAMS": streams, "CUSTREAM_GPU": gpu, "CUSTREAM_FAKE_KERNEL_NS": 20000})
    run.check()
    kernels = trace.gpu(cat="kernel") if gpu == "cupti" else trace.gpu(cat="kernel") + trace.gpu(cat="gpu_range")
    assert kernels and trace.totals["gpu"].get("without_call", 0) == 0
    if streams == "serial":
        own = {e["tid"] for e in lives(trace) if e["args"].get("serial") == "its work is the carrier's"}
        assert not {stream_of(e["tid"]) for e in kernels} & own


def test_perfetto_reads_them(run_app, trace_processor):
    for streams, argv in (("pool:2", ["sharing", "script", *["c0"] * 5, "b0", "w1", "e0", "d0", "w1"]), ("serial", ["serial", "graphs"]), ("sync", ["serial", "immediate"])):
        run = run_app(argv, env={"CUSTREAM_STREAMS": streams}).check()
        trace_processor.load(run.trace)
        assert not trace_processor.query("SELECT name, value FROM stats WHERE severity IN ('error','data_loss') AND value > 0")


def test_keep_is_no_policy(run_app):
    faithful(run_app, ["serial", "events"], env={"CUSTREAM_STREAMS": "keep"})
