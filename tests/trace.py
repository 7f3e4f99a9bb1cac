"""A trace file as data, for tests: found good by `custream check`, read strictly, with the views that tests ask for. The layout is docs/trace.md."""
import bisect
import collections
import dataclasses
import functools
import gzip
import json
import math
import os
import pathlib
import re
import subprocess

from tests import BUILD

PROFILER = "profiler overhead"  # a lane of the process's own that is no thread: what CUPTI did for itself


def _no_duplicates(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):  # for each object of each trace: a message is made only where there is a reason
        raise AssertionError(f"an object gives a key twice: {[key for key, _ in pairs]}")
    return found


def _no_constant(text):
    raise AssertionError(f"{text} is no JSON")


def parse(data):
    """JSON as the standard has it: UTF-8, no NaN, no control characters in strings, no key twice, nothing after the end."""
    return json.loads(data.decode("utf-8"), parse_constant=_no_constant, object_pairs_hook=_no_duplicates)


def check_file(path):
    """`custream check` finds that the trace keeps the rules. What it says of it: "ok", or why the file has not all of it."""
    env = dict(os.environ, LD_LIBRARY_PATH=f"{BUILD / 'carry'}:{os.environ.get('LD_LIBRARY_PATH', '')}")  # a lent machine has its libcjson there
    done = subprocess.run([BUILD / "custream", "check", path], env=env, capture_output=True, check=False)
    said = (done.stdout.removeprefix(os.fsencode(path) + b": ") + done.stderr).decode(errors="replace")
    found = re.fullmatch(r"((?:ok|incomplete|ended).*): events \d+, .*\n", said)
    assert done.returncode == 0 and found, f"{path}: {said}"
    return found[1]


def keys_of(table):
    """The keys of a table of the library, with their texts."""
    return dict(re.findall(r'^CS_\w+\(\w+, (\w+), "([^"]+)"\)', (pathlib.Path(__file__).parents[1] / f"shim/base/{table}.def").read_text(encoding="utf-8"), re.MULTILINE))


CUTS, LOSSES = keys_of("cut"), keys_of("loss")


def cut(key):
    """The arguments of a range without attributes that is not as the program made it."""
    return {"cs.note": CUTS[key], "cs.cut": key}


# Numbers of lanes of a GPU (shim/base/lane.h): what a row shows.
WORK, SYNC, AUDIT = range(3)
STEP, LEVELS = 100, 30


def tid_of(stream, kind=WORK, level=0):
    """The number of a stream's lane, or of a row under it. Rows of the GPU itself have streams that no stream is."""
    return stream * STEP + kind * LEVELS + level


LIVES, PEERS = tid_of(1), tid_of(3)


def stream_of(tid):
    """The number of the stream whose lane of a GPU that is, or under whose it stands."""
    return tid // STEP


def kind_of(tid):
    return tid % STEP // LEVELS


def level_of(tid):
    return tid % STEP % LEVELS


@dataclasses.dataclass(frozen=True)
class Flow:
    """An arrow: category, id and the slices that it leaves and enters (None where no slice encloses the point)."""
    cat: str
    id: int
    start: dict
    finish: dict


def _duration(event):
    return math.inf if event["dur"] is None else event["dur"]


def _end(event):
    return math.inf if event["dur"] is None else round(event["ts"] + event["dur"], 3)


SHAPE = ("grid", "block", "registers per thread", "shared memory", "local memory per thread")


def tell_shapes(events):
    """A kernel says how it was launched where the one before of that name on its GPU was launched otherwise. Here each says it."""
    last = {}
    for event in events:
        if event.get("cat") == "kernel" and event["ph"] == "X":
            of = event["pid"], event["name"]
            if "grid" in event["args"]:
                last[of] = {key: event["args"][key] for key in SHAPE if key in event["args"]}
            event["args"].update(last.get(of, {}))


class Trace:
    """One trace. Events stay the dicts that the file has; times are in microseconds, as in the file.

    What `custream check` finds is found by it alone, once a file: that rows are sound, and that the totals are what they add up to. `verdict` is what
    it said. `judged` False: a file that no recorder wrote."""

    def __init__(self, path, judged=True):
        self.path = pathlib.Path(path)
        self.verdict = check_file(path) if judged else None
        data = self.path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        self.size = len(data)
        self.json = json.loads(data.decode("utf-8"), parse_constant=_no_constant) if judged else parse(data)  # a key that stands twice is a breach to check
        self.events = self.json["traceEvents"]
        tell_shapes(self.events)
        self.metadata = self.json.get("metadata", {})
        self.totals = self.json.get("totals", {})
        whole = "cut" in self.metadata or (self.totals.get("complete", True) and "ended" not in self.totals and "no_room" not in self.totals and not self.totals.get("untracked_objects") and not self.totals.get("gpu", {}).get("without_call"))
        assert not judged or self.verdict.startswith("ok") == whole, f"{path}: {self.verdict}"
        self.process_names = {e["pid"]: e["args"]["name"] for e in self.events if e["ph"] == "M" and e["name"] == "process_name"}
        self.thread_names = {(e["pid"], e["tid"]): e["args"]["name"] for e in self.events if e["ph"] == "M" and e["name"] == "thread_name"}

    @functools.cached_property
    def gpus(self):
        """The pids that are GPUs."""
        return {pid for pid, name in self.process_names.items() if name.startswith("GPU ")}

    @property
    def lanes(self):
        """GPU lanes: (device, tid) to name."""
        return {key: name for key, name in self.thread_names.items() if key[0] in self.gpus}

    @functools.cached_property
    def streams(self):
        """What streams are called, (device, number) to name: as their lane is, or where they have none as the mark of their begin says."""
        begun = {(life["pid"], life["tid"]): life["name"] for life in self.lives}
        return begun | {(device, stream_of(tid)): name for (device, tid), name in self.lanes.items() if tid == tid_of(stream_of(tid)) and (device, stream_of(tid)) in begun}

    @property
    def streams_with_lane(self):
        """Streams of the first GPU that have a lane: number to its name."""
        return {stream_of(tid): name for (device, tid), name in self.lanes.items() if (device, stream_of(tid)) in self.streams and (device, tid) == (0, tid_of(stream_of(tid)))}

    @property
    def instants(self):
        """Events of one moment: marks of the program, of streams' lives, of the audit."""
        return [e for e in self.events if e["ph"] == "i"]

    @functools.cached_property
    def lives(self):
        """Streams' lives, from the two marks of each: as slices on the stream's lane, named as the stream, the args of both together, `dur` None where
        the end is missing."""
        found, begun = [], {}
        for e in (e for e in self.instants if e["cat"] == "cs_stream"):
            args, key = dict(e["args"]), (e["pid"], e["args"]["cs.stream"])
            if "origin" in args:
                found.append(dict(e, name=args.pop("name"), tid=key[1], dur=None, args=args))
                begun[key] = found[-1]
            elif key in begun:
                life = begun.pop(key)
                life["dur"], life["name"] = round(e["ts"] - life["ts"], 3), args.pop("name")
                life["args"].update(args)
        return found

    @property
    def threads(self):
        """Host threads: tid to name."""
        return {tid: name for (pid, tid), name in self.thread_names.items() if pid not in self.gpus and name != PROFILER}

    @functools.cached_property
    def slices(self):
        """Every X slice, in the order of the file."""
        return [e for e in self.events if e["ph"] == "X"]

    @functools.cached_property
    def _by_side(self):
        """The slices of GPU lanes (True), and of all others."""
        sides = {True: [], False: []}
        for e in self.slices:
            sides[e["pid"] in self.gpus].append(e)
        return sides

    def work_by_call(self):
        """Of each piece of the GPU's work: its name, and that of the driver's call that enqueued it or None; how often. Graphs go without their
        numbers, which are given in the order in which threads happen to make them."""
        calls = {e["args"]["correlation"]: e["name"] for e in self.host(cat="cuda_driver") if "correlation" in e["args"]}
        work = [e for e in self.slices if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset", "gpu_graph", "gpu_range")]
        return collections.Counter((re.sub(r"^graph \d+$", "graph", e["name"]), calls.get(e["args"].get("correlation"))) for e in work)

    def host(self, name=None, cat=None):
        """X slices of host threads, of that name and category."""
        return [e for e in self._by_side[False] if name in (None, e["name"]) and (e.get("cat") == cat if cat else e.get("cat") not in ("overhead", "cs_dep"))]

    def gpu(self, name=None, cat=None):
        """X slices of GPU lanes, of that name and category."""
        return [e for e in self._by_side[True] if name in (None, e["name"]) and cat in (None, e.get("cat"))]

    def count(self, **where):
        """How many host slices there are by name."""
        return collections.Counter(e["name"] for e in self.host(**where))

    def spans(self, name=None):
        """Async spans (b and e) as (name, id, start, end), end None where it never came."""
        open_spans, found = {}, []
        for e in sorted((e for e in self.events if e["ph"] in "be"), key=lambda e: e["ts"]):
            key = (e.get("cat"), json.dumps(e.get("id2", e.get("id"))), e["pid"], e["name"])
            if e["ph"] == "b":
                open_spans[key] = len(found)
                found.append([e["name"], e.get("id2", e.get("id")), e["ts"], None])
            elif key in open_spans:
                found[open_spans.pop(key)][3] = e["ts"]
        return [tuple(span) for span in found if name in (None, span[0])]

    def counters(self, name):
        """The values of a counter as (ts, args)."""
        return [(e["ts"], e["args"]) for e in self.events if e["ph"] == "C" and e["name"] == name]

    @functools.cached_property
    def _by_lane(self):
        """Lane to its slices, the outer one first, and their starts."""
        lanes = collections.defaultdict(list)
        for e in self.slices:
            lanes[e["pid"], e["tid"]].append(e)
        for lane in lanes.values():
            lane.sort(key=lambda e: (e["ts"], -_duration(e)))
        return {key: (lane, [e["ts"] for e in lane]) for key, lane in lanes.items()}

    def slice_at(self, event):
        """The innermost slice of the event's lane that covers its time, both ends included, as Perfetto binds a flow with bp:e."""
        lane, starts = self._by_lane.get((event["pid"], event["tid"]), ((), ()))
        for at in range(bisect.bisect_right(starts, event["ts"]) - 1, -1, -1):
            if event["ts"] <= _end(lane[at]):
                return lane[at]
        return None

    def bound(self):
        """The arrows that slices carry themselves, from a call to each piece of its work. Not all calls have work in the file."""
        starts = {}
        for e in self.slices:
            if e.get("flow_out"):
                assert e["bind_id"] not in starts, f"two slices begin arrow {e['bind_id']}"
                starts[e["bind_id"]] = e
        return [Flow("ac2g", e["bind_id"], starts[e["bind_id"]], e) for e in self.slices if e.get("flow_in")]

    def flows(self, cat=None):
        """Every complete flow. A start without end, or an end without start, is an error here: Perfetto drops both without a word."""
        ends = {}
        for e in self.events:
            if e["ph"] in "sf" and cat in (None, e["cat"]):
                points = ends.setdefault((e["cat"], e["id"]), {})
                assert e["ph"] not in points, f"flow {e['cat']} {e['id']} has two {e['ph']}"
                points[e["ph"]] = e
        halves = [key for key, points in ends.items() if len(points) != 2]
        assert not halves, f"flows with one end only: {halves[:5]}"
        of_rows = [Flow(cat, number, self.slice_at(p["s"]), self.slice_at(p["f"])) for (cat, number), p in ends.items()]
        return of_rows + (self.bound() if cat in (None, "ac2g") else [])
