"""Fleets made up: the ranks of a training, with what is planted in them, as tables of `custream export` or as traces. The same for the same seed.

    python -m tests.fleet tables DIR RANKS [STEPS]
    python -m tests.fleet traces DIR RANKS [STEPS]      # runs build/tests/train on the simulated GPU

Each step of a rank: a copy, kernels, with an all-gather among neighbours between them, an all-reduce over all ranks that ends everywhere at once, an optimizer. True time is the fleet's; each host has a clock of its own.
A trace is that of one rank on the simulated GPU with other times: a line through the begins and ends of each step's parts leads from the times there to those of the
fleet. So each row keeps its place among the others, and the trace its rules.
"""
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

BASE = 1_790_000_000_000_000_000
COPY, COMPUTE, GATHER, COMM, OPTIMIZER, PAUSE = 300_000, 8_000_000, 600_000, 2_000_000, 500_000, 400_000  # ns
KERNELS = 4
WHY = {"host": "the host had not enqueued it", "launch": "on its way from the call to the GPU"}  # as `custream export` has them


@dataclasses.dataclass
class Planted:
    stragglers: dict = dataclasses.field(default_factory=dict)  # rank: (cause, first step, last step, ns); cause: kernels, copies, host, call
    offsets: dict = dataclasses.field(default_factory=dict)     # host: ns
    drifts: dict = dataclasses.field(default_factory=dict)      # host: ppb
    jumps: dict = dataclasses.field(default_factory=dict)       # host: (step, ns)
    settings: dict = dataclasses.field(default_factory=dict)    # rank: {key: text}
    late: dict = dataclasses.field(default_factory=dict)        # rank: steps that its trace misses at its begin
    collectives: bool = True
    groups: int = 1                                             # ranks are dealt out to so many communicators, of neighbours
    gathers: int = 0                                            # also an all-gather in the middle of each step, in so many communicators of neighbours
    one_stream: bool = False                                    # those are on the stream of the all-reduces
    slow: dict = dataclasses.field(default_factory=dict)        # of those: how many times longer its all-gathers take
    per_host: int = 8
    beside: bool = False                                        # a kernel on another stream, from the middle of a step to the middle of its optimizer
    broadcasts: bool = False                                    # one each step, which ends on each rank when it likes


def facts_of(rank, ranks, more):
    texts = {"metadata.tool": "custream 0.1.0", "metadata.options.CUSTREAM_FULL": "drop", "metadata.options.CUSTREAM_GPU": "auto",
             "metadata.options.CUSTREAM_TRACE": f"rank{rank}.json", **more}
    numbers = {"distributedInfo.rank": rank, "distributedInfo.world_size": ranks, "totals.complete": 1}
    keys = [*texts, *numbers]
    return pa.table({"key": keys, "whole": pa.array([numbers.get(key) for key in keys], pa.int64()), "value": pa.array([numbers.get(key) for key in keys], pa.float64()),
                     "text": pa.array([texts.get(key) for key in keys], pa.string())})


class Fleet:
    def __init__(self, ranks, steps, planted=None, seed=1):
        self.ranks, self.steps, self.planted = ranks, steps, planted or Planted()
        dice = np.random.default_rng(seed)
        size = (ranks, steps)
        self.compute = COMPUTE * (1 + 0.01 * dice.standard_normal(size))
        self.copy = np.full(size, float(COPY))
        self.before = PAUSE * (1 + 0.1 * dice.random(size))      # the GPU waits for the host
        self.blocked = np.zeros(size)
        for rank, (cause, first, last, ns) in self.planted.stragglers.items():
            of = {"kernels": self.compute, "copies": self.copy, "host": self.before, "call": self.before}[cause]
            of[rank, first:last + 1] += ns
            if cause == "call":
                self.blocked[rank, first:last + 1] += ns
        self.skew = 2000 * dice.random(size)                      # of a collective's end
        self.begins, self.arrives, self.ends = np.zeros(size), np.zeros(size), np.zeros(size)
        self.gathers, self.gathered = np.zeros(size), np.zeros(size)
        group, of = np.arange(ranks) * self.planted.groups // ranks, np.arange(ranks) * self.planted.gathers // ranks
        at = np.zeros(ranks)
        for step in range(steps):
            self.begins[:, step] = at
            self.gathers[:, step] = self.gathered[:, step] = at + self.before[:, step] + self.copy[:, step] + self.compute[:, step] / 2
            for one in range(self.planted.gathers):
                done = self.gathers[of == one, step].max() + GATHER * self.planted.slow.get(one, 1) * (1 + 0.05 * dice.random())
                self.gathered[of == one, step] = done + self.skew[of == one, step] / 2
            self.arrives[:, step] = self.gathered[:, step] + self.compute[:, step] / 2
            for one in range(self.planted.groups):
                together = group == one
                done = self.arrives[together, step].max() + COMM * (1 + 0.05 * dice.random()) if self.planted.collectives else self.arrives[together, step]
                self.ends[together, step] = done + self.skew[together, step]
            at = self.ends[:, step] + OPTIMIZER

    def host(self, rank):
        return f"node{rank // self.planted.per_host}"

    def clock(self, rank, times):
        """What the rank's clock shows at these moments of true time."""
        host, planted = self.host(rank), self.planted
        shown = times + planted.offsets.get(host, 0) + planted.drifts.get(host, 0) * 1e-9 * times
        if host in planted.jumps:
            step, ns = planted.jumps[host]
            shown = shown + np.where(times >= self.begins[0, step], ns, 0)
        return np.round(shown).astype(np.int64) + BASE

    def tables(self, rank):
        first = self.planted.late.get(rank, 0)
        begins, before, copy, compute = (of[rank, first:] for of in (self.begins, self.before, self.copy, self.compute))
        arrives, ends, blocked, n = self.arrives[rank, first:], self.ends[rank, first:], self.blocked[rank, first:], self.steps - first
        gathers, gathered = self.gathers[rank, first:], self.gathered[rank, first:]
        starts, durs, kinds, names, streams = [begins + before], [copy], ["gpu_memcpy"], ["Memcpy HtoD (Pinned -> Device)"], [13]
        for kernel in range(KERNELS):
            starts.append((begins + before + copy if kernel < KERNELS / 2 else gathered - compute / 2) + compute * kernel / KERNELS)
            durs.append(compute / KERNELS)
            kinds.append("kernel"), names.append(f"gemm_{kernel}"), streams.append(7)
        if self.planted.collectives:
            starts.append(arrives), durs.append(ends - arrives), kinds.append("kernel"), streams.append(20)
            names.append("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)")
        if self.planted.gathers:
            starts.append(gathers), durs.append(gathered - gathers), kinds.append("kernel"), streams.append(20 if self.planted.one_stream else 21)
            names.append("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)")
        if self.planted.beside:
            starts.append(arrives - compute / 2), durs.append(ends + OPTIMIZER / 2 - starts[-1]), kinds.append("kernel"), names.append("beside"), streams.append(30)
        if self.planted.broadcasts:
            starts.append(begins + 1000 * (rank + 1)), durs.append(np.full(n, 5000.0 * (rank + 1))), kinds.append("kernel"), streams.append(20)
            names.append("ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)")
        starts.append(ends), durs.append(np.full(n, float(OPTIMIZER))), kinds.append("kernel"), names.append("adam"), streams.append(7)
        each, order = len(starts), None
        begin = self.clock(rank, np.concatenate(starts))
        end = self.clock(rank, np.concatenate(starts) + np.concatenate(durs))
        order = np.argsort(begin, kind="stable")
        number = np.empty(len(begin), np.int64)
        number[order] = np.arange(1, len(begin) + 1)

        def spread(values):
            return np.repeat(np.array(values, dtype=object), n)[order]
        work = pa.table({"file": pa.array([f"rank{rank}"] * len(begin)).dictionary_encode(), "start_ns": begin[order], "dur_ns": (end - begin)[order],
                         "kind": pa.array(spread(kinds)).dictionary_encode(), "name": pa.array(spread(names)).dictionary_encode(),
                         "device": pa.array(np.zeros(len(begin), np.int32)), "stream": pa.array(np.repeat(np.array(streams, np.int32), n)[order]), "correlation": number[order]})
        # Each call some time before its work. A wait of the host at a step's begin, which is long where one was planted.
        launch = np.maximum(begin - 60_000, self.clock(rank, np.repeat(begins[None, :], each, 0).ravel() + np.repeat((before - PAUSE / 2)[None, :], each, 0).ravel()))
        wait = self.clock(rank, begins)
        waited = np.round(blocked + PAUSE / 4).astype(np.int64)
        calls = pa.table({"file": pa.array([f"rank{rank}"] * (len(begin) + n)).dictionary_encode(), "start_ns": np.concatenate([launch, wait]),
                          "dur_ns": np.concatenate([np.full(len(begin), 3000), waited]), "level": pa.array(["driver"] * (len(begin) + n)).dictionary_encode(),
                          "name": pa.array(["cuLaunchKernel"] * len(begin) + ["cuStreamSynchronize"] * n).dictionary_encode(), "process": pa.array(np.full(len(begin) + n, 4000 + rank, np.int32)),
                          "thread": np.full(len(begin) + n, 4000 + rank), "correlation": pa.array(np.concatenate([number, np.zeros(n, np.int64)]), mask=np.arange(len(begin) + n) >= len(begin)),
                          "blocked_ns": pa.array(np.concatenate([np.zeros(len(begin), np.int64), waited]), mask=np.arange(len(begin) + n) < len(begin))})
        # Why the GPU was idle: until the call began the host is the cause, and then the launch.
        covered, following = np.maximum.accumulate(end[order])[:-1], begin[order][1:]
        gap = covered < following
        since, until, called = covered[gap], following[gap], launch[order][1:][gap]
        ready, step = np.clip(called, since, until), np.clip(np.searchsorted(wait, until) - 1, 0, n - 1)
        blocks, goes_on = np.clip(wait[step], since, ready), np.clip(wait[step] + waited[step], since, ready)
        pieces = [(since, blocks, "host", "own code", None), (blocks, goes_on, "host", "blocked", "cuStreamSynchronize"), (goes_on, ready, "host", "own code", None),
                  (ready, until, "launch", None, None)]
        idle = pa.concat_tables([pa.table({
            "file": pa.array([f"rank{rank}"] * len(a)), "start_ns": a, "dur_ns": b - a, "device": pa.array(np.zeros(len(a), np.int32)), "cause": [cause] * len(a), "why": [WHY[cause]] * len(a),
            "doing": pa.array([doing] * len(a), pa.string()), "in_call": pa.array([call] * len(a), pa.string())}).filter(pa.array(a < b)) for a, b, cause, doing, call in pieces])
        step_begin, step_end = self.clock(rank, begins), self.clock(rank, ends + OPTIMIZER)
        ranges = pa.table({"file": pa.array([f"rank{rank}"] * n), "start_ns": step_begin, "dur_ns": step_end - step_begin, "kind": ["range"] * n, "name": ["step"] * n,
                           "process": pa.array(np.full(n, 4000 + rank, np.int32)), "thread": np.full(n, 4000 + rank)})
        files = pa.table({"file": [f"rank{rank}"], "world_size": [self.ranks], "version": ["custream 0.1.0"], "complete": [1]})
        facts = facts_of(rank, self.ranks, self.planted.settings.get(rank, {}))
        return {"work": work, "calls": calls, "ranges": ranges, "idle": idle, "files": files, "facts": facts.add_column(0, "file", pa.array([f"rank{rank}"] * facts.num_rows))}

    def write(self, folder):
        folder = pathlib.Path(folder)
        for rank in range(self.ranks):
            for table, rows in self.tables(rank).items():
                place = folder / table / "run=job" / f"host={self.host(rank)}" / f"rank={rank}"
                place.mkdir(parents=True, exist_ok=True)
                pq.write_table(rows, place / f"rank{rank}.parquet", compression="zstd")
        (folder / "schema.json").write_text('{"version": 2}\n')
        return folder


    def traces(self, folder, template):
        """A file for each rank, of the trace of `train` with as many steps."""
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        template, paths = Template(template), []
        assert len(template.parts) == self.steps and self.planted.gathers, "the template has all-gathers"
        for rank in range(self.ranks):
            host, more = self.host(rank), self.planted.settings.get(rank, {})
            times = np.stack([self.begins[rank], self.begins[rank] + self.blocked[rank] + PAUSE / 4, self.begins[rank] + self.before[rank],
                              self.begins[rank] + self.before[rank] + self.copy[rank],
                              self.gathers[rank], self.gathered[rank], self.arrives[rank], self.ends[rank], self.ends[rank] + OPTIMIZER - 1000], axis=1)
            paths.append(folder / f"rank{rank}.json")
            paths[-1].write_text(template.of(times, lambda moments, rank=rank: self.clock(rank, moments), rank, self.ranks, host, more), encoding="utf-8")
        return paths


# ---- Traces ----

# What is a time in a row, and how: at its begin, or as a part of it that ends with it.
NUMBER = re.compile(r'"(ts|dur|blocked_us|waited_us)":(-?\d+(?:\.\d+)?)')


class Template:
    """The trace of one rank, as text with places for times: each place shows a moment, or the time between two."""

    def __init__(self, path):
        head, _, rest = pathlib.Path(path).read_text(encoding="utf-8").partition('"traceEvents":[\n')
        rows, _, self.tail = rest.partition('\n],"traceName"')
        self.head = json.loads(head.rstrip(",\n") + "}")
        self.texts, moments, self.since = [], [], []
        for row in rows.splitlines():
            self.take(row, moments)
        self.texts[-1] = self.texts[-1].rstrip("\n") + '\n],"traceName"' + self.tail
        self.moments = np.array(moments, np.float64)
        events = [json.loads(row.rstrip(",")) for row in rows.splitlines()]
        (self.pid,) = {event["pid"] for event in events if event.get("name") == "process_name" and event["args"]["name"] == "train"}
        own = re.compile(rf'"pid":{self.pid},(?:"tid":{self.pid},)?')  # not the GPU's lane, or the arrow, that has the same number
        self.texts = [own.sub(lambda found: found[0].replace(str(self.pid), "@PID"), text) for text in self.texts]
        self.parts = self.parts_of([event for event in events if event["ph"] == "X"])

    def take(self, row, moments):
        values, at, text = {key: round(float(value) * 1000) for key, value in NUMBER.findall(row)}, 0, "" if not self.texts else self.texts.pop()
        for found in NUMBER.finditer(row):
            key = found[1]
            end = values["ts"] + values.get("dur", 0)
            first, last = {"ts": (None, values["ts"]), "dur": (values["ts"], end), "blocked_us": (end - values.get("blocked_us", 0), end),
                           "waited_us": (values["ts"] - values.get("waited_us", 0), values["ts"])}[key]
            self.texts.append(text + row[at:found.start(2)])
            for moment in (first, last):
                moments.append(last if moment is None else moment)
            self.since.append(first is not None)
            at, text = found.end(2), ""
        self.texts.append(text + row[at:] + "\n")

    @staticmethod
    def parts_of(slices):
        """Of each step: begin, the end of the first wait, copy, its end, all-gather, its end, all-reduce, its end, end. ns."""
        def of(which):
            return sorted((round(s["ts"] * 1000), round((s["ts"] + s["dur"]) * 1000)) for s in slices if which(s))
        steps = of(lambda s: s["cat"] == "user_annotation" and s["name"] == "step")
        copies, gathers, reduces = of(lambda s: s["cat"] == "gpu_memcpy"), of(lambda s: "AllGather" in s["name"]), of(lambda s: "AllReduce" in s["name"])
        waits = of(lambda s: s["name"] == "cuStreamSynchronize")[::2]
        parts = np.array([(a[0], w[1], c[0], c[1], g[0], g[1], r[0], r[1], a[1]) for a, w, c, g, r in zip(steps, waits, copies, gathers, reduces)], np.float64)
        assert (np.diff(parts.ravel()) > 0).all(), "the machine was too busy for a trace that can be a template"
        return parts

    def of(self, times, clock, rank, ranks, host, settings):
        """The trace of a rank whose steps have these times."""
        given, wanted = self.parts.ravel(), times.ravel()
        moved = np.interp(self.moments, given, wanted)
        moved = np.where(self.moments < given[0], wanted[0] + self.moments - given[0], np.where(self.moments > given[-1], wanted[-1] + self.moments - given[-1], moved))
        moments, place = np.unique(self.moments, return_inverse=True)  # what is apart stays apart, by a nanosecond at least
        first = np.zeros(len(moments), np.int64)
        first[place.ravel()] = clock(moved)
        shown = (np.maximum.accumulate(first - np.arange(len(moments))) + np.arange(len(moments)))[place].reshape(-1, 2)
        base = int(clock(np.array([-1e9]))[0])
        numbers = np.where(self.since, shown[:, 1] - shown[:, 0], shown[:, 1] - base).tolist()
        head = json.loads(json.dumps(self.head))
        head["baseTimeNanoseconds"] = base
        head["metadata"] |= {"host": host, "job": "job"}
        for key, value in settings.items():
            *inside, name = key.split(".")
            at = head
            for member in inside:
                at = at[member]
            at[name] = value
        members = ",\n".join(f'"{key}":{json.dumps(value, separators=(",", ":"), ensure_ascii=False)}' for key, value in head.items() if key != "distributedInfo")
        members += f',\n"distributedInfo": {{"rank": {rank}, "world_size": {ranks}}}'  # with blanks, for HTA
        body = "".join([part for text, n in zip(self.texts, numbers) for part in (text, f"{n // 1000}.{n % 1000:03}" if n >= 0 else f"{n / 1000:.3f}")] + [self.texts[-1]])
        return "{" + members + ',\n"traceEvents":[\n' + body.replace("@PID", str(20000 + rank))


def template(path, steps, build=pathlib.Path(__file__).resolve().parents[1] / "build"):
    """Of a run on the simulated GPU."""
    env = {**os.environ, "LD_LIBRARY_PATH": str(build / "fakecuda"), "LD_PRELOAD": str(build / "libcustream_shim.so"), "CUSTREAM_TRACE": str(path), "CUSTREAM_COUNTERS": "off", "CUSTREAM_QUIET": "on"}
    subprocess.run([build / "tests/train", str(steps)], env=env, check=True)
    return path


# ---- The command ----

def planted_of(ranks):
    """For measurements: what a fleet of this size is to show."""
    return Planted(offsets={f"node{i}": (i * 7919 % 41 - 20) * 500_000 for i in range(ranks // 8)}, drifts={f"node{i}": (i * 104729 % 61 - 30) * 1000 for i in range(ranks // 8)},
                   stragglers={5: ("kernels", 5, 14, 3_000_000), ranks - 3: ("call", 10, 19, 3_000_000)}, settings={ranks // 2: {"metadata.options.CUSTREAM_GRAPH": "node"}},
                   gathers=ranks // 4, slow={ranks // 8: 1.6})


def main(what, folder, ranks, steps=20):
    fleet = Fleet(ranks, steps, planted_of(ranks))
    if what == "tables":
        return fleet.write(folder)
    with tempfile.TemporaryDirectory() as there:
        return fleet.traces(folder, template(pathlib.Path(there) / "t.json", steps))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
