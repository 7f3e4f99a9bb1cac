"""The collectives of a run, which relate its ranks: communicators, clocks, and who arrives when."""
import dataclasses

from custream.fleet import clocks
from custream.fleet.relations import COLLECTIVE
from custream.fleet.tables import quoted

TOGETHER = ("AllReduce", "AllGather", "ReduceScatter")  # end for all at once


@dataclasses.dataclass
class Matrix:
    """A communicator's collectives: a row for each rank, a column for each collective, nan where a trace does not have it. By the fleet's clock, ns since `base`."""
    ranks: list
    names: object
    starts: object
    ends: object
    base: int


class Together:
    def __init__(self, tables):
        import numpy as np

        self.np, self.tables = np, tables
        self.names = [row["name"] for row in tables.rows(f"SELECT DISTINCT name FROM work WHERE {COLLECTIVE} ORDER BY name")]
        number = " ".join(f"WHEN {quoted(name)} THEN {n}" for n, name in enumerate(self.names))
        found = tables.arrays(f"SELECT rank, device, stream, CASE name {number} END AS number, coalesce(grid_x, 0) AS grid, start_ns, start_ns + dur_ns AS end_ns "
                              f"FROM work WHERE {COLLECTIVE} ORDER BY rank, device, stream, start_ns, end_ns") if self.names else None
        numbers = found["number"].astype(np.int64) if found else np.empty(0, np.int64)
        lane = np.stack([found[key].astype(np.int64) for key in ("rank", "device", "stream")]) if found else np.empty((3, 0), np.int64)
        edges = np.flatnonzero(np.any(np.diff(lane, axis=1), axis=0)) + 1 if lane.size else []
        ends_together = np.array([any(word in name for word in TOGETHER) for name in self.names], bool)
        sequences = []
        for part in np.split(np.arange(lane.shape[1]), edges) if lane.size else []:
            part = part[ends_together[numbers[part]]]
            if len(part):
                sequences.append(clocks.Sequence(int(lane[0, part[0]]), numbers[part], found["start_ns"][part], found["end_ns"][part], found["grid"][part], int(lane[1, part[0]])))
        self.groups, self.alone = clocks.communicators(sequences)
        self.clocks, self.sets = clocks.clocks_of(self.groups, tables.hosts)
        self.collectives = len(sequences) > 0
        self.left_out = int(np.count_nonzero(~ends_together[numbers])) if len(self.names) else 0

    def matrix(self, group):
        """From the first collective that any rank has."""
        np, first = self.np, min(s.shift for s, _ in group)
        width = max(s.shift - first + len(s.names) for s, _ in group)
        starts, ends = (np.full((len(group), width), np.nan) for _ in range(2))
        names = np.zeros(width, int)
        base = min(int(s.starts[0]) for s, _ in group)
        for row, (s, _) in enumerate(group):
            place, clock = slice(s.shift - first, s.shift - first + len(s.names)), self.clocks[s.rank]
            starts[row, place] = (s.starts - base) - clock.ahead(s.starts)
            ends[row, place] = (s.ends - base) - clock.ahead(s.ends)
            names[place] = s.names
        return Matrix([s.rank for s, _ in group], names, starts, ends, base)

    def error(self, ranks):
        return max(self.clocks[rank].error_ns for rank in ranks)
