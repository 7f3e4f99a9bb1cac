"""What `custream report` must say of idle time, found the long way from a trace's rows.

For each piece of work, everything that was enqueued before it is looked at, by CUDA's rules: a stream's order, events, the legacy default stream. No graphs.
"""
import dataclasses
import functools
import math
import re


WORK = ("kernel", "gpu_memcpy", "gpu_memset", "gpu_graph", "gpu_range")
# Calls that put something else than work on a stream.
KINDS = {"cuEventRecord": "record", "cuEventRecordWithFlags": "record", "cuStreamWaitEvent": "wait", "cuLaunchHostFunc": "host", "cuStreamAddCallback": "host",
         "cuStreamWaitValue32": "value", "cuStreamWriteValue32": "write"}

LATENCY_NS = 100_000  # work that began within this after what held it was held by that


def ns(us):
    return round(us * 1000)


def end_of(row):
    return ns(row["ts"]) + ns(row["dur"])


@dataclasses.dataclass(eq=False)
class Op:
    """Something on a stream. `end` of work and host functions; of others nothing is known but what they wait for."""
    kind: str
    stream: tuple  # (device, lane)
    call: dict
    works: list = dataclasses.field(default_factory=list)
    end: int = None
    record: object = None  # of a wait: the Op that recorded its event


@dataclasses.dataclass
class Hold:
    """Until when something was held, and by which causes, several if they ended at once. `unknown`: the causes that held it until moments that the trace does not
    have."""
    until: float = -math.inf
    causes: frozenset = frozenset({None})
    streams: frozenset = frozenset()  # of the work that ended then
    unknown: frozenset = frozenset()


class Model:
    """Everything that a program put on streams, in the order of its calls."""

    def __init__(self, trace):
        self.trace = trace
        self.works = {device: [e for e in trace.gpu() if e["cat"] in WORK and e["pid"] == device] for device in trace.gpus}
        self.legacy, self.blocking = set(), set()
        for life in trace.lives:
            if "origin" in life["args"]:
                key = (life["pid"], life["args"]["cs.stream"])
                if life["args"]["origin"].startswith("legacy"):
                    self.legacy.add(key)
                elif life["args"].get("flags", 0) in (0, "blocking"):
                    self.blocking.add(key)
        self.closed = [(ns(row["ts"]), end_of(row)) for row in self.trace.host(cat="cs_window")]
        self.ops = self.find_ops()
        self.by_work = {id(work): op for op in self.ops for work in op.works}
        self.held = functools.lru_cache(maxsize=None)(self.hold)

    def find_ops(self):
        by_call, ops, recorded = {}, [], {}
        for work in sum(self.works.values(), []):
            by_call.setdefault(work["args"]["correlation"], []).append(work)
        for call in sorted(self.trace.host(cat="cuda_driver"), key=lambda e: e["ts"]):
            args = call["args"]
            works = by_call.get(args.get("correlation"), [])
            kind = "work" if works else KINDS.get(re.sub("(_v2)?(_pt[ds][sz])?$", "", call["name"]))
            if kind is None or "cs.result" in args:
                continue
            op = Op(kind, (args.get("cs.device", 0), args["cs.stream"]), call, works, max(map(end_of, works), default=None))
            if kind == "record":
                recorded[args["event"]] = op
            if kind == "wait":
                op.record = recorded.get(args["event"])
            ops.append(op)
        return self.with_callbacks(ops)

    def with_callbacks(self, ops):
        """Host functions of a stream run in the order in which they were enqueued. Those that went into a graph are not seen running."""
        ran = {}
        for row in sorted(self.trace.host(cat="cs_callback"), key=lambda e: e["ts"]):
            if "cs.stream" not in row["args"]:
                continue  # its stream was destroyed before it ran, and is not known any more
            ran.setdefault((row["args"].get("cs.device", 0), row["args"]["cs.stream"]), []).append(end_of(row))
        for op in ops:
            if op.kind == "host" and ran.get(op.stream):
                op.end = ran[op.stream].pop(0)
        return [op for op in ops if op.kind != "host" or op.end is not None]

    def passed(self, op, cause):
        """What it means for others that they have that before them: its end, or what held it, which then has that cause for them."""
        if op.end is not None:
            return Hold(op.end, frozenset({cause}), frozenset({op.stream} if op.works else ()))
        held = self.held(op)
        return Hold(held.until, frozenset({cause}), held.streams, frozenset({cause} if held.unknown or op.kind == "value" else ()))

    def waits_for(self, stream):
        """The streams whose work comes before new work on it because of the legacy default stream."""
        others = self.blocking if stream in self.legacy else self.legacy if stream in self.blocking else ()
        return [other for other in others if other[0] == stream[0]]

    def waits_for_nothing(self, op):
        """A wait for an event with nothing before it is no work: CUDA does not say what it orders."""
        return op.kind == "wait" and (op.record is None or self.held(op.record).until == -math.inf and not self.held(op.record).unknown)

    def hold(self, op):
        """What was last in its way."""
        before = [other for other in self.ops[:self.ops.index(op)] if not self.waits_for_nothing(other)]
        ways = [Hold()]
        own = [other for other in before if other.stream == op.stream]
        if own:
            last = own[-1]
            ways.append(self.held(last) if last.end is None else self.passed(last, {"work": "order", "host": "host_function"}[last.kind]))
            if last.kind == "value":
                ways.append(Hold(unknown=frozenset({"memory_value"})))
        if op.record:
            ways.append(self.passed(op.record, "event"))
        for stream in self.waits_for(op.stream):
            ways += [self.passed(other, "legacy") for other in [other for other in before if other.stream == stream][-1:]]
        latest = max(way.until for way in ways)
        last = [way for way in ways if way.until == latest]
        return Hold(latest, *(frozenset().union(*(getattr(way, what) for way in those)) for what, those in (("causes", last), ("streams", last), ("unknown", ways))))

    def gaps(self, device):
        """When nothing ran between the first work and the last: (begin, end, the work that came next, or one of several)."""
        works, found = sorted(self.works[device], key=lambda e: ns(e["ts"])), []
        until = ns(works[0]["ts"]) if works else 0
        for work in works:
            begin = ns(work["ts"])
            if begin > until:
                found.append((until, begin, [w for w in works if ns(w["ts"]) == begin]))
            until = max(until, end_of(work))
        return found

    def before(self, device, at, stream):
        """Of the gap in which that moment lies, rounded to us: the streams whose work may have held the work of that stream that came next."""
        gaps = [works for begin, end, works in self.gaps(device) if begin <= at + 500 and at - 500 <= end]
        held = [self.held(self.op_of(work)) for works in gaps for work in works if work["args"]["stream"] == stream]
        return {lane for one in held for _, lane in one.streams}

    def idle_ns(self, device):
        return sum(end - begin for begin, end, _ in self.gaps(device))

    def outside_windows(self, begin, end):
        """For how long in that time nothing was recorded, so that nobody knows why the device seems idle."""
        return sum(max(min(until, end) - max(since, begin), 0) for since, until in self.closed)

    def op_of(self, work):
        return self.by_work[id(work)]

    def parts(self, begin, end, work):
        """Of a gap before that work, in each way that is right: ns by cause, and what is left, in which nothing held it. Unless it began at once after what is known
        to have held it, a value in memory did, which may have held it all the time."""
        op = self.op_of(work)
        enqueued = min(max(ns(op.call["ts"]), begin), end)
        held = self.held(op)
        ready = min(max(held.until, enqueued), end)
        known = [{"host": enqueued - begin, cause: ready - enqueued} for cause in held.causes]
        if not held.unknown or end - ready <= LATENCY_NS:
            return [(parts, end - ready) for parts in known]
        ways = [({**parts, cause: parts.get(cause, 0) + end - ready}, 0) for cause in held.unknown for parts in known]
        return ways + [({"host": enqueued - begin, cause: end - enqueued}, 0) for cause in held.unknown]

    def bounds(self, device):
        """By cause: the least and the most idle time that a report may give it by the rules. What is left over, latencies, may have any cause."""
        least, most, left_over = {}, {}, 0
        for begin, end, candidates in self.gaps(device):
            ways = [way for work in candidates for way in self.parts(begin, end, work)]
            unseen = self.outside_windows(begin, end)
            left_over += unseen
            for cause in {cause for parts, _ in ways for cause in parts}:
                least[cause] = least.get(cause, 0) + max(min(parts.get(cause, 0) for parts, _ in ways) - unseen, 0)
                most[cause] = most.get(cause, 0) + max(parts.get(cause, 0) for parts, _ in ways)
            left_over += max(left for _, left in ways)
        return least, most, left_over


def check_examples(model, report, device):
    """Where the report says behind which work the next work was held, it was."""
    for row in report.rows("idle", device=device):
        at, stream = re.match(r"at ([\d.]+) s, before .+? on stream (\d+)\b", row["example"]).groups()
        behind = re.search(r", behind .+? on stream (\d+)\b", row["example"])
        if behind:
            streams = model.before(device, round(float(at) * 1e9), int(stream))
            assert int(behind[1]) in streams, (row, streams)


def check_idle(trace, report, modelled=True):
    """By causes a device's idle time adds up, to the nanosecond; and each cause has what CUDA's rules give it. Returns the idle time of device 0 by cause.

    `modelled` False: of a trace with graphs."""
    model = Model(trace)
    for device in model.works:
        found = report.idle_ns(device)
        assert sum(found.values()) == model.idle_ns(device)
        if not modelled:
            continue
        least, most, left = model.bounds(device)
        for cause in {*found, *least}:
            assert least.get(cause, 0) <= found[cause] <= most.get(cause, 0) + left, (device, cause, found, least, most, left)
        assert found["host"] <= most.get("host", 0), (device, found, most)
        check_examples(model, report, device)
    assert {row["device"]: row["idle_ns"] for row in report["devices"]} == {device: model.idle_ns(device) for device, found in model.works.items() if found}
    return report.idle_ns(0)
