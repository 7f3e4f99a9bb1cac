"""GPU times in a trace, as tests look at them: the slices of work, and the rules that hold for each of them whatever the program."""
import collections

from tests.apprun import calls_of, notes_of
from tests.trace import stream_of

KINDS = {"kernel": "kernels", "gpu_memcpy": "copies", "gpu_memset": "memsets", "gpu_graph": "graphs", "gpu_range": "ranges"}
ENQUEUES = ("cuLaunchKernel", "cuLaunchCooperativeKernel", "cuMemcpy", "cuMemset", "cuGraphLaunch")
CUPTI = {"CUSTREAM_GPU": "cupti"}


def works(trace, cat=None):
    """Slices of work on streams, by time."""
    return sorted((e for e in trace.gpu() if e["cat"] in KINDS and cat in (None, e["cat"])), key=lambda e: (e["ts"], e["args"].get("correlation", 0)))


def contexts(trace):
    """The context of each piece of work, by its correlation: the first slice of a lane says it, and one that has another."""
    found, last = {}, {}
    for e in (e for e in trace.gpu() if e["cat"] in KINDS):
        last[e["pid"], e["args"]["stream"]] = context = e["args"].get("context", last.get((e["pid"], e["args"]["stream"])))
        found[e["args"].get("correlation")] = context
    return found


def end_of(event):
    return round(event["ts"] + event["dur"], 3)


def lane_of(trace, run, key):
    """The lane of the stream whose handle the program noted."""
    (lane,) = {e["tid"] for e in trace.lives if e["args"].get("handle") == notes_of(run.stderr)[key]}
    return lane


def ids_noted(run, key):
    """CUPTI's numbers that the program noted under a key, by several threads perhaps."""
    return [int(line.split()[2]) for line in run.stderr.splitlines() if line.startswith(f"note id_{key} ")]


def is_enqueuing(call):
    return call["name"].startswith(ENQUEUES) and "cs.result" not in call["args"]


def captured(trace):
    """Whether a host call went into a graph: it was made on a stream, or one that joined it, while that captured."""
    spans = [(e["ts"], end_of(e)) for e in trace.gpu("capture")]
    return lambda call: any(begin <= call["ts"] <= end for begin, end in spans)


def check_one(work, call):
    """A slice is that of the call whose number it has."""
    args, asked = work["args"], call["args"]
    assert call["ts"] <= work["ts"], (call, work)
    if work["cat"] == "kernel":
        assert asked["kernel"] in work["name"] and len(args["grid"]) == len(args["block"]) == 3, (call, work)
        again = {key: asked[key] for key in ("grid", "block", "shared memory") if key in asked}  # launched while GPU times were not ready
        assert again == {key: args[key] for key in again} and (not again or asked["kernel"] == work["name"])
    if "bytes" in asked and work["cat"] in ("gpu_memcpy", "gpu_memset"):
        assert asked["bytes"] == args["bytes"], (call, work)


def check_works(trace, run=None, whole_graphs=True):
    """All enqueuing calls have their work, once, on their stream's lane, in the order in which a thread made them, with an arrow; and there is no other."""
    found, flows = works(trace), trace.flows("ac2g")
    in_graph = captured(trace)
    asked = {e["args"]["correlation"]: e for e in trace.host(cat="cuda_driver") if is_enqueuing(e) and not in_graph(e)}
    assert len(flows) == len(found)
    assert {id(f.finish) for f in flows} == {id(w) for w in found}, "arrows lead to other slices than those of work"
    for flow in flows:
        assert flow.start["args"]["correlation"] == flow.finish["args"]["correlation"]
    by_call = collections.defaultdict(list)
    for work in found:
        assert "device" not in work["args"] and stream_of(work["tid"]) == work["args"]["stream"]
        by_call[work["args"]["correlation"]].append(work)
    assert set(by_call) == set(asked)
    for number, of_call in by_call.items():
        call = asked[number]
        if call["name"].startswith("cuGraphLaunch") and not whole_graphs:
            continue
        (work,) = of_call
        check_one(work, call)
        assert (call["args"].get("cs.device", 0), call["args"]["cs.stream"]) == (work["pid"], work["args"]["stream"])
    order = collections.defaultdict(list)
    for work in (w for w in found if "cs.ran_on" not in w["args"]):
        order[work["pid"], work["args"]["stream"], asked[work["args"]["correlation"]]["tid"]].append(work["args"]["correlation"])
    for lane, numbers in order.items():
        assert numbers == sorted(numbers), f"lane {lane} is out of order"
    totals = trace.totals["gpu"]
    assert {k: n for k, n in totals.items() if k in KINDS.values()} == {v: sum(w["cat"] == k for w in found) for k, v in KINDS.items()}
    assert (totals["source"], totals["without_call"], totals["without_times"], totals["lost"], totals["launches_without_kernel"]) == ("cupti", 0, 0, 0, 0)
    if run:
        made = sum(n for name, n in calls_of(run.stdout).items() if name.startswith(ENQUEUES))
        refused = len([e for e in trace.host(cat="cuda_driver") if e["name"].startswith(ENQUEUES) and "cs.result" in e["args"]])
        into_graphs = len([e for e in trace.host(cat="cuda_driver") if is_enqueuing(e) and in_graph(e)])
        assert len(asked) == made - refused - into_graphs
    return found


def check_depth(trace):
    """Each counter ends at 0, is never below, and steps in time: of streams their depth, of GPUs what is under way. The last step of each value."""
    last = {}
    for e in trace.events:
        if e["ph"] != "C" or e["name"].startswith("memory pool"):
            continue
        ((unit, n),) = e["args"].items()
        key = e["pid"], f"{e['name']} {unit}"
        assert n >= 0 and n < 1 << 31 and (unit != "%" or n <= 100)
        assert e["ts"] >= last.get(key, (0, 0))[0], key
        last[key] = e["ts"], n
    assert all(n == 0 for _, n in last.values()), last
    return last
