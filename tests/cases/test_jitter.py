"""JITTER: delays before operations. What is delayed, and how long, must follow from the seed alone, as the model here has it; and a missing wait must show."""
import collections
import re

import pytest

from tests.apprun import both, calls_of, faithful, said

KINDS = [("launch", "cuLaunchKernel"), ("copy", "cuMemcpy"), ("set", "cuMemset"), ("event", "cuEventRecord"), ("wait", "cuStreamWaitEvent"), ("graph", "cuGraphLaunch")]


def kind_of(name):
    return next((kind for kind, head in KINDS if name.startswith(head)), None)


# ---- The model ----

def mixed(x):
    full = (1 << 64) - 1
    x = (x + 0x9E3779B97F4A7C15) & full
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & full
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & full
    return x ^ (x >> 31)


def draw(seed, percent, us, who, n, on_stream):
    """Microseconds before the n-th operation of a stream; 0: it is not delayed. Even numbers are streams', odd ones threads'."""
    drawn = mixed(mixed(seed) ^ mixed(who << 32 | n) ^ (1 if on_stream else 0))
    return 0 if drawn % 100 >= percent else 1 + (drawn >> 32) % us


class Delays:
    """The operations of a trace by whose they are, in their order, and the delays in it."""

    def __init__(self, run):
        self.trace = trace = run.load()
        created = sorted((e for e in trace.host() if e["name"].startswith("cuStreamCreate")), key=lambda e: e["ts"])
        ordinal = {e["args"]["cs.stream"]: i + 1 for i, e in enumerate(created)}
        first_use = {}
        self.operations = collections.defaultdict(list)
        for e in sorted((e for e in trace.host(cat="cuda_driver") if kind_of(e["name"])), key=lambda e: e["ts"]):
            if e["args"]["cs.stream"] in ordinal:
                who = ordinal[e["args"]["cs.stream"]] << 1
            else:
                who = first_use.setdefault(e["tid"], len(first_use) + 1) << 1 | 1
            self.operations[who].append(e)
        self.all = trace.host("delay")
        assert all(e["cat"] == "cs_policy" for e in self.all)
        captures = trace.gpu("capture", cat="cs_stream")
        self.captured = lambda e: any(c["ts"] <= e["ts"] < c["ts"] + c["dur"] for c in captures)

    def expected(self, seed, percent, us, at="both", on=None):
        """Every delay that there must be, as (microseconds, where, before which call, on which stream)."""
        found = collections.Counter()
        for who, operations in self.operations.items():
            for n, e in enumerate(operations):
                if on and kind_of(e["name"]) not in on:
                    continue
                for place in ("host", "stream"):
                    drawn = draw(seed, percent, us, who, n, place == "stream") if at in (place, "both") else 0
                    if drawn and not (place == "stream" and self.captured(e)):
                        found[drawn, place, e["name"], e["args"]["cs.stream"]] += 1
        return found

    def seen(self):
        return collections.Counter((e["args"]["drawn_us"], e["args"]["at"], e["args"]["before"], e["args"]["cs.stream"]) for e in self.all)


def jittered(run_app, argv, text, **env):
    return run_app(argv, env={"CUSTREAM_JITTER": text} | env)


# ---- What is delayed ----

@pytest.mark.parametrize("seed", [0, 1, 2**63 - 1])
def test_delays_follow_from_the_seed(run_app, seed):
    delays = Delays(jittered(run_app, ["jitter", "many"], f"seed={seed},percent=30,us=300").check())
    expected = delays.expected(seed, 30, 300)
    assert sum(expected.values()) > 100 and {where for _, where, *_ in expected} == {"host", "stream"}
    assert delays.seen() == expected


@pytest.mark.parametrize("text, at, on", [
    ("at=host", "host", None), ("at=stream", "stream", None), ("on=launch", "both", {"launch"}), ("on=copy+set", "both", {"copy", "set"}),
    ("on=event+wait,at=stream", "stream", {"event", "wait"}), ("on=graph", "both", {"graph"}),
])
def test_where_and_before_which_operations(run_app, text, at, on):
    """Choosing fewer leaves those that remain as they were."""
    delays = Delays(jittered(run_app, ["jitter", "many"], f"seed=5,us=100,percent=50,{text}").check())
    expected = delays.expected(5, 50, 100, at, on)
    assert len(expected) > 5 and delays.seen() == expected


def test_defaults(run_app):
    delays = Delays(jittered(run_app, ["jitter", "many"], "seed=9").check())
    assert delays.seen() == delays.expected(9, 10, 200) and delays.all


def test_it_changes_nothing_else(run_app):
    """Results, answers, errno and the graph's nodes; each call is there once, and each delay is beside it."""
    bare = run_app(["jitter", "many"], shim=False).check()
    run = jittered(run_app, ["jitter", "many"], "seed=4,percent=100,us=50").check()
    trace = run.load()
    assert run.stdout == bare.stdout and "nodes 8\n" in run.stdout and "errno 4711\n" in run.stdout and not said(run)
    assert trace.count(cat="cuda_driver") == calls_of(run.stdout)
    assert trace.totals["lost_records"] == 0


def test_a_hosts_delay_stands_before_its_call(run_app):
    delays = Delays(jittered(run_app, ["jitter", "many"], "seed=6,percent=40,us=200,at=host").check())
    lanes = collections.defaultdict(list)
    for e in delays.trace.host():
        lanes[e["tid"]].append(e)
    for lane in lanes.values():
        lane.sort(key=lambda e: e["ts"])
        for e, after in zip(lane, lane[1:]):
            if e["name"] == "delay":
                assert e["args"]["before"] == after["name"] and e["args"]["cs.stream"] == after["args"]["cs.stream"]
                assert e["dur"] >= e["args"]["drawn_us"] and round(e["ts"] + e["dur"], 3) <= after["ts"]


def test_a_streams_delay_stands_on_the_drivers_thread(run_app):
    delays = Delays(jittered(run_app, ["jitter", "many"], "seed=6,percent=40,us=200,at=stream").check())
    callers = {e["tid"] for e in delays.trace.host(cat="cuda_driver")}
    drivers = {e["tid"] for e in delays.all}
    assert len(drivers) == 1 and not drivers & callers
    assert delays.trace.threads[drivers.pop()].endswith("(callbacks)")
    assert all(e["dur"] >= e["args"]["drawn_us"] for e in delays.all)


def test_the_driver_gets_a_host_function_before_the_operation(run_app, tmp_path):
    """On the same stream, and nothing else between them."""
    path = tmp_path / "journal"
    run = jittered(run_app, ["jitter", "many"], "seed=6,percent=40,us=100,at=stream", CUSTREAM_FAKE_JOURNAL=path)
    threads = collections.defaultdict(list)
    for line in path.read_text().splitlines():
        thread, name, stream = line.split()[:3]
        threads[thread].append((name, stream))
    seen = collections.Counter()
    for calls in threads.values():
        for (name, stream), (after, its) in zip(calls, calls[1:]):
            if name.startswith("cuLaunchHostFunc"):
                assert stream == its or its == "-"  # it takes none
                seen[after] += 1
    assert seen == collections.Counter(before for (_, _, before, _), n in Delays(run.check()).seen().items() for _ in range(n))


def test_perfetto_reads_them(run_app, trace_processor):
    run = jittered(run_app, ["jitter", "many"], "seed=6,percent=40,us=200").check()
    trace_processor.load(run.trace)
    assert not trace_processor.query("SELECT name, value FROM stats WHERE severity IN ('error','data_loss') AND value > 0")
    assert trace_processor.value("SELECT count(*) FROM slice WHERE name = 'delay' AND category = 'cs_policy'") == len(run.load().host("delay"))


def test_without_a_trace(run_app):
    run = jittered(run_app, ["jitter", "many"], "seed=4,percent=100,us=50", CUSTREAM_TRACE="off").check()
    assert run.stdout == run_app(["jitter", "many"], shim=False).stdout and not said(run) and not run.trace.exists()


def test_with_serial_the_same_hosts_delays(run_app):
    """They belong to the streams that the program asked for, wherever their work goes."""
    alone = Delays(jittered(run_app, ["jitter", "many"], "seed=2,percent=40,us=100,at=host").check())
    serial = jittered(run_app, ["jitter", "many"], "seed=2,percent=40,us=100,at=host", CUSTREAM_STREAMS="serial").check()
    assert collections.Counter((e["args"]["drawn_us"], e["args"]["before"]) for e in serial.load().host("delay")) \
        == collections.Counter((us, before) for (us, _, before, _), n in alone.seen().items() for _ in range(n))


@pytest.mark.parametrize("argv", [["capture"], ["callbacks"], ["arrows"], ["timeline"], ["works", "contexts"], ["reuse"], ["race"], ["works", "streams"],
                                  ["works", "captures"], ["works", "graphs"], ["works", "green"]], ids=" ".join)
def test_programs_end_as_without_it(run_app, argv):
    run, trace = both(run_app, argv, env={"CUSTREAM_JITTER": "seed=3,us=50,percent=50"})
    run.check()
    assert trace.count(cat="cuda_driver") == calls_of(run.stdout)


# ---- What it is for ----

ROUNDS, LONG = 5, 100_000  # so long that no machine is slower


def outcome(run):
    return re.findall(r"^round \d+ (\w+)$", run.check().stdout, flags=re.M)


def race(run_app, what, seed):
    return jittered(run_app, ["jitter", what, ROUNDS], f"seed={seed},us=150000,percent=40,on=launch+event,at=stream")


def test_a_missing_wait_shows(run_app):
    """Right without delays; wrong in the rounds whose writer is delayed for long, under every seed, and again the same in a second run."""
    assert outcome(run_app(["jitter", "missing", ROUNDS])) == ["right"] * ROUNDS
    shown = 0
    for seed in range(1, 5):
        run, again = race(run_app, "missing", seed), race(run_app, "missing", seed)
        delays = [draw(seed, 40, 150000, 2, n, True) for n in range(ROUNDS)]
        for one in (run, again):
            assert Delays(one).seen() == Delays(one).expected(seed, 40, 150000, "stream", {"launch", "event"})
            for was, us in zip(outcome(one), delays):
                assert was == ("wrong" if us >= LONG else was if us else "right"), (seed, delays)
        assert sorted(Delays(run).seen()) == sorted(Delays(again).seen())
        shown += any(us >= LONG for us in delays)
    assert shown > 1


def test_the_wait_is_kept(run_app):
    for seed in range(1, 5):
        assert outcome(race(run_app, "waiting", seed)) == ["right"] * ROUNDS
    for seed in range(100, 130):
        run = jittered(run_app, ["jitter", "waiting", 20], f"seed={seed},us=500,percent=50")
        assert outcome(run) == ["right"] * 20
        assert run.load().host("delay")


def test_no_jitter_no_delays(run_app):
    run, trace = faithful(run_app, ["jitter", "many"])
    assert not trace.host("delay") and "nodes 8\n" in run.stdout
