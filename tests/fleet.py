"""Fleets made up: the tables of `custream export` of many ranks that train together, with what is planted in them. The same for the same seed.

    python -m tests.fleet DIR RANKS [STEPS]

Each step of a rank: a copy, kernels, an all-reduce over all ranks that ends everywhere at once, an optimizer. True time is the fleet's; each host has a clock of its own.
"""
import dataclasses
import pathlib
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

BASE = 1_790_000_000_000_000_000
COPY, COMPUTE, COMM, OPTIMIZER, PAUSE = 300_000, 8_000_000, 2_000_000, 500_000, 400_000  # ns
KERNELS = 4


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
        group = np.arange(ranks) * self.planted.groups // ranks
        at = np.zeros(ranks)
        for step in range(steps):
            self.begins[:, step] = at
            self.arrives[:, step] = at + self.before[:, step] + self.copy[:, step] + self.compute[:, step]
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
        shown = BASE + times + planted.offsets.get(host, 0) + planted.drifts.get(host, 0) * 1e-9 * times
        if host in planted.jumps:
            step, ns = planted.jumps[host]
            shown = shown + np.where(times >= self.begins[0, step], ns, 0)
        return np.round(shown).astype(np.int64)

    def tables(self, rank):
        first = self.planted.late.get(rank, 0)
        begins, before, copy, compute = (of[rank, first:] for of in (self.begins, self.before, self.copy, self.compute))
        arrives, ends, blocked, n = self.arrives[rank, first:], self.ends[rank, first:], self.blocked[rank, first:], self.steps - first
        starts, durs, kinds, names, streams = [begins + before], [copy], ["gpu_memcpy"], ["Memcpy HtoD (Pinned -> Device)"], [13]
        for kernel in range(KERNELS):
            starts.append(begins + before + copy + compute * kernel / KERNELS)
            durs.append(compute / KERNELS)
            kinds.append("kernel"), names.append(f"gemm_{kernel}"), streams.append(7)
        if self.planted.collectives:
            starts.append(arrives), durs.append(ends - arrives), kinds.append("kernel"), streams.append(20)
            names.append("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)")
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
        step_begin, step_end = self.clock(rank, begins), self.clock(rank, ends + OPTIMIZER)
        ranges = pa.table({"file": pa.array([f"rank{rank}"] * n), "start_ns": step_begin, "dur_ns": step_end - step_begin, "kind": ["range"] * n, "name": ["step"] * n,
                           "process": pa.array(np.full(n, 4000 + rank, np.int32)), "thread": np.full(n, 4000 + rank)})
        files = pa.table({"file": [f"rank{rank}"], "world_size": [self.ranks], "version": ["custream 0.1.0"], "complete": [1]})
        facts = facts_of(rank, self.ranks, self.planted.settings.get(rank, {}))
        return {"work": work, "calls": calls, "ranges": ranges, "files": files, "facts": facts.add_column(0, "file", pa.array([f"rank{rank}"] * facts.num_rows))}

    def write(self, folder):
        folder = pathlib.Path(folder)
        for rank in range(self.ranks):
            for table, rows in self.tables(rank).items():
                place = folder / table / "run=job" / f"host={self.host(rank)}" / f"rank={rank}"
                place.mkdir(parents=True, exist_ok=True)
                pq.write_table(rows, place / f"rank{rank}.parquet", compression="zstd")
        (folder / "schema.json").write_text('{"version": 1}\n')
        return folder


if __name__ == "__main__":
    Fleet(int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 100, Planted(offsets={"node1": 2_000_000}, stragglers={5: ("kernels", 20, 60, 3_000_000)})).write(sys.argv[1])
