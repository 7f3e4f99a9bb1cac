"""What the program `known` says that it did, and where that is in a trace."""
import collections
import functools

import times

from tests.trace import stream_of  # times has put the top of the tree on the path

LEGACY, PER_THREAD = -1, -2
CATEGORY = {"kernel": "kernel", "copy": "gpu_memcpy", "memset": "gpu_memset", "graph": "gpu_graph"}


class Known:
    """One run. Ops, streams and nodes are the objects that the program printed; `found` has the slices of each op, by its number."""

    def __init__(self, stdout, trace):
        said = times.lines_of(stdout)
        self.streams = [o for o in said if o["what"] == "stream"]
        self.ops = [o for o in said if o["what"] == "op"]
        self.nodes = [o for o in said if o["what"] == "node"]
        self.trace = trace
        self.by_grid = collections.defaultdict(list)
        for e in times.work_of(trace, "kernel"):
            self.by_grid[e["args"]["grid"][0]].append(e)
        self.launches = self._launches()
        self._moves = self._by_call("gpu_memcpy") | self._by_call("gpu_memset")
        self.found = {op["id"]: self._find(op) for op in self.ops}

    def _launches(self):
        """The work of each graph launch, whole or its nodes, in the order of the launches."""
        of_call = collections.defaultdict(list)
        node_grids = {n["grid"] for n in self.nodes}
        for e in times.work_of(self.trace, "gpu_graph", "kernel"):
            if e["cat"] == "gpu_graph" or e["args"]["grid"][0] in node_grids:
                of_call[e["args"].get("correlation")].append(e)
        return sorted(of_call.values(), key=lambda slices: slices[0]["ts"])

    def _by_call(self, category):
        """Copies and memsets by category and bytes: all that one call made, since a driver may take a copy in pieces."""
        of_call, by_bytes = collections.defaultdict(list), collections.defaultdict(list)
        for e in times.work_of(self.trace, category):
            of_call[e["args"].get("correlation")].append(e)
        for slices in of_call.values():
            by_bytes[category, sum(e["args"]["bytes"] for e in slices)].append(slices)
        return by_bytes

    def _find(self, op):
        if op["kind"] == "kernel":
            return self.by_grid[op["grid"]]
        if op["kind"] == "graph":
            nth = [o["id"] for o in self.ops if o["kind"] == "graph"].index(op["id"])
            return self.launches[nth] if nth < len(self.launches) else []
        return [e for slices in self._moves[CATEGORY[op["kind"]], op["bytes"]] for e in slices]

    def of_kind(self, kind):
        return [op for op in self.ops if op["kind"] == kind]

    def lane(self, stream):
        """The lane on which the program's stream belongs, by what the trace says of the stream's creation."""
        if stream == LEGACY:
            return 7
        if stream == PER_THREAD:
            return next(stream_of(tid) for (_, tid), name in self.trace.lanes.items() if "per-thread default" in name)
        return times.stream_lanes(self.trace)[self.streams[stream]["handle"]]

    def begin(self, op):
        return min(self.found[op], key=lambda e: e["ts"])

    def last(self, op):
        return max(self.found[op], key=times.end)


@functools.lru_cache(maxsize=None)
def known_run(build, source, graph):
    done, trace = times.run_well(f"known-{build}-{source}-{graph}", [times.program(f"known-{build}")], CUSTREAM_GPU=source, CUSTREAM_GRAPH=graph)
    assert trace.metadata["gpu_time_source"] == source, times.losses(trace)
    return Known(done.stdout, trace)
