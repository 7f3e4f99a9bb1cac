"""Clocks of a fleet, from its collectives: they end in the same moment on all ranks, within a bound. numpy only; no file is read here.

A trace does not name communicators. What NCCL runs on one stream of a rank is one communicator's, in its order. So streams of several ranks belong together
if their kernels have the same names in the same order and end, by a line that relates the two clocks, in the same moments. Traces may begin and end at different
times: then one order is a part of the other, and which part is told by the line that fits.
"""
import dataclasses

import numpy as np

LEAST = 8             # collectives in common, to relate two clocks
SHIFT_MOST = 256      # collectives that one trace may have begun later than another
SAME_NS = 30_000      # ends of one collective are no further apart, by the median
WALL_NS = 1e9         # wall clocks are no further apart
SURE_NS = 5_000       # so close ends are those of one communicator: no other is tried
SHIFTS_TRIED = 4      # the best ones get a line
LOOKED_AT = 64        # collectives that tell whether a shift is worth a line
JUMP_NS = 50_000      # what stands out as a jump, beside what is left of a line
JUMPS_MOST = 4        # of one clock; a worse one is no clock


@dataclasses.dataclass
class Sequence:
    """The collectives of one stream of a rank, in their order. Times are by the rank's clock."""
    rank: int
    names: np.ndarray   # a number for each different name
    starts: np.ndarray  # ns
    ends: np.ndarray    # ns
    shift: int = 0      # the place of the first one in its communicator


@dataclasses.dataclass
class Clock:
    """A rank's clock, related to the fleet's: `offset_ns` ahead of it at `at_ns`, and by `drift_ppb` more each second."""
    rank: int
    offset_ns: float = 0.0
    drift_ppb: float = 0.0
    at_ns: int = 0
    error_ns: float = 0.0
    collectives: int = 0
    jumps: tuple = ()   # (moment by its clock in ns, by how many ns)

    def ahead(self, times):
        """How far ahead of the fleet's clock it is at these moments of its own."""
        found = self.offset_ns + self.drift_ppb * 1e-9 * (np.asarray(times, np.float64) - self.at_ns)
        for moment, size in self.jumps:
            found = found + np.where(np.asarray(times) >= moment, size, 0.0)
        return found


@dataclasses.dataclass
class Line:
    at: float
    offset: float
    slope: float
    residual: float     # the median of what is left, without sign
    jumps: tuple


def median_line(x, y):
    """Through the medians of the halves; some wild points do not move it."""
    half = len(x) // 2
    x0, y0, x1, y1 = np.median(x[:half]), np.median(y[:half]), np.median(x[half:]), np.median(y[half:])
    slope = (y1 - y0) / (x1 - x0) if x1 > x0 else 0.0
    return slope, float(np.median(y - slope * (x - x[0])))


def jump_in(y):
    """The place from which on all is higher or lower than before, and by how much; None. Drift moves all places alike."""
    if len(y) < 4 * LEAST:
        return None
    middles = np.median(np.lib.stride_tricks.sliding_window_view(y, LEAST), axis=1)
    steps = middles[LEAST:] - middles[:-LEAST]
    steps -= np.median(steps)
    at = int(np.argmax(np.abs(steps)))
    if abs(steps[at]) <= max(JUMP_NS, 8 * np.median(np.abs(steps))):
        return None
    near = slice(at + 1, at + 2 * LEAST)  # medians do not feel a few wild points, so the place is that of the greatest step nearby
    return near.start + int(np.argmax(np.diff(y)[near.start - 1:near.stop - 1] * np.sign(steps[at]))), float(steps[at])


def fit(one, other):
    """How far the other clock is ahead of the one, by moments that both saw: a line, and places where it jumps, by the other clock. ns."""
    x, y = np.asarray(one, np.float64), (np.asarray(other) - np.asarray(one)).astype(np.float64)
    jumps = []
    while len(jumps) < JUMPS_MOST and (found := jump_in(y)):
        y[found[0]:] -= found[1]
        jumps.append((float(other[found[0]] // 2 + other[found[0] - 1] // 2), found[1]))
    slope, offset = median_line(x, y)
    return Line(float(x[0]), offset, slope, float(np.median(np.abs(y - offset - slope * (x - x[0])))), tuple(jumps))


# ---- Which streams are of one communicator ----

def overlap(one, other, shift):
    """Of two orders the parts that stand beside each other, if other's first is the one at `shift`."""
    begin, end = max(0, shift), min(len(one.names), len(other.names) + shift)
    return slice(begin, end), slice(begin - shift, end - shift)


def shifts(one, other):
    """Where other's first collective may stand in one's order: those by which the time between the two clocks changes least from one collective to the next."""
    found = []
    for shift in range(-min(SHIFT_MOST, len(other.names)), min(SHIFT_MOST, len(one.names)) + 1):
        a, b = overlap(one, other, shift)
        if a.stop - a.start < max(LEAST, min(len(one.names), len(other.names)) // 2):
            continue
        part = slice(a.start, min(a.stop, a.start + LOOKED_AT)), slice(b.start, min(b.stop, b.start + LOOKED_AT))
        apart = (other.ends[part[1]] - one.ends[part[0]]).astype(np.float64)
        if abs(apart[len(apart) // 2]) <= WALL_NS and np.array_equal(one.names[a], other.names[b]):
            found.append((float(np.median(np.abs(np.diff(apart)))), shift))
    steps = np.diff(one.ends)
    varies = float(np.median(np.abs(steps - np.median(steps)))) if len(steps) else 0.0  # what the clocks would differ by if the two had nothing to do with each other
    return [shift for changes, shift in sorted(found)[:SHIFTS_TRIED] if changes <= min(SAME_NS, max(SURE_NS, varies / 4))]


def related(one, other):
    """(shift, line) by which the other's collectives are the one's; None if they are not."""
    found = []
    for shift in shifts(one, other):
        a, b = overlap(one, other, shift)
        line = fit(one.ends[a], other.ends[b])
        if line.residual <= SAME_NS and abs(line.slope) < 1e-3:
            found.append((shift, line))
    if not found:
        return None
    best = min(line.residual for _, line in found)
    # Steps that are as regular as clockwork fit one step later too. Wall clocks are about right, so the nearest is meant.
    return min((pair for pair in found if pair[1].residual <= 3 * best + 1000), key=lambda pair: abs(pair[1].offset))


def communicators(sequences):
    """Lists of sequences that belong together, with their shifts set, and the lines that relate each to its first; and those that belong to none."""
    groups = []
    for sequence in sorted(sequences, key=lambda s: (-len(s.names), s.rank)):
        best = None
        for group in sorted(groups, key=lambda group: abs(group[-1][0].rank - sequence.rank)):  # neighbours mostly belong together
            if any(member.rank == sequence.rank for member, _ in group) or not (found := related(group[0][0], sequence)):
                continue
            if best is None or found[1].residual < best[0][1].residual:
                best = found, group
            if best[0][1].residual <= SURE_NS:
                break
        if best:
            (sequence.shift, line), group = best
            group.append((sequence, line))
        else:
            sequence.shift = 0
            groups.append([(sequence, Line(float(sequence.ends[0]) if len(sequence.ends) else 0.0, 0.0, 0.0, 0.0, ()))])
    alone = [group[0][0] for group in groups if len(group) == 1]
    return [group for group in groups if len(group) > 1], alone


# ---- Clocks ----

def connected(groups):
    """Clocks of the ranks that collectives connect with those of the first group, each against that group's first rank; and the groups that are left."""
    (first, line), *_ = groups[0]
    known, left, found = {first.rank: Clock(first.rank, at_ns=int(line.at))}, list(groups), True
    while found:
        found = False
        for group in list(left):
            anchor = next(((s, line) for s, line in group if s.rank in known), None)
            if anchor is None:
                continue
            found = True
            left.remove(group)
            error = max(1000.0, 4 * float(np.median([line.residual for _, line in group[1:]])))
            whole, its = known[anchor[0].rank], anchor[1]
            whole.error_ns, whole.collectives = max(whole.error_ns, error), max(whole.collectives, len(anchor[0].names))
            for sequence, line in group:
                if sequence.rank not in known:
                    offset = line.offset + float(whole.ahead(line.at)) - (its.offset + its.slope * (line.at - its.at))
                    known[sequence.rank] = Clock(sequence.rank, offset, line.slope * 1e9 + whole.drift_ppb - its.slope * 1e9, int(line.at),
                                                 max(1000.0, 4 * line.residual) + (whole.error_ns if anchor[0] is not group[0][0] else 0), len(sequence.names), line.jumps)
    return known, left


def centred(clocks):
    """The same, against the median of all."""
    at = int(np.median([clock.at_ns for clock in clocks.values()]))
    for clock in clocks.values():
        clock.offset_ns += clock.drift_ppb * 1e-9 * (at - clock.at_ns)
        clock.at_ns = at
    for name in ("offset_ns", "drift_ppb"):
        middle = float(np.median([getattr(clock, name) for clock in clocks.values()]))
        for clock in clocks.values():
            setattr(clock, name, getattr(clock, name) - middle)
    return clocks


def clocks_of(groups, hosts):
    """(clocks, sets): a Clock for each rank of `hosts` (rank: host), and how many sets of ranks neither collectives nor a host connect.

    Inside a set, clocks are against its median. Between sets the wall clock is all there is."""
    left, sets = sorted(groups, key=len, reverse=True), []
    while left:
        known, left = connected(left)
        known = centred(known)
        for one in sets:  # processes of one host have one clock
            apart = [one[a].offset_ns - known[b].offset_ns for a in one for b in known if hosts.get(a) == hosts.get(b) != "unknown"]
            if apart:
                for clock in known.values():
                    clock.offset_ns += float(np.median(apart))
                one.update(known)
                break
        else:
            sets.append(known)
    clocks = {rank: Clock(rank) for rank in hosts}
    for one in sets:
        clocks |= centred(one)
    return clocks, len(sets)
