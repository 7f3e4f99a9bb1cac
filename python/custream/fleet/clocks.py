"""Clocks of a fleet, from its collectives: they end in the same moment on all ranks, within a bound. numpy only.

A trace does not name communicators. What NCCL runs on one stream of a rank is mostly one communicator's, in its order. So streams of several ranks belong together
if their kernels have the same names in the same order and end, by a line that relates the two clocks, in the same moments. Traces may begin and end at different
times: then one order is a part of the other, and which part is told by the line that fits. Several communicators may share a stream: then kernels of one name and
grid belong together on more ranks than the streams do, or some of them do not end with the others.
"""
import dataclasses
import json

import numpy as np

LEAST = 8             # collectives in common, to relate two clocks
SHIFT_MOST = 256      # collectives that one trace may have begun later than another
SAME_NS = 30_000      # ends of one collective are no further apart, by the median
VARIES_NS = 5_000     # ends of one collective may be so far apart, however regular the steps are
WALL_NS = 1e9         # wall clocks are no further apart
LEVELS_NS = 2_000, 5_000, 12_000, SAME_NS  # what ends closer together belongs together first: steps of all may end within microseconds of each other
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
    grids: np.ndarray
    device: int = 0
    shift: int = 0      # the place of the first one in its communicator

    def part(self, which):
        return Sequence(self.rank, self.names[which], self.starts[which], self.ends[which], self.grids[which], self.device)


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
        """How far ahead of the fleet's clock it is at these moments of its own. What it passed over as it was set forward is one moment, so that order stays."""
        times = np.asarray(times)
        found = self.offset_ns + self.drift_ppb * 1e-9 * (times - self.at_ns)
        for moment, size in self.jumps:
            found = found + (np.clip(0.99 * (times - moment), 0, size) if size > 0 else np.where(times >= moment, size, 0.0))
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
        jumps.append((int(other[found[0] - 1] + (other[found[0]] - other[found[0] - 1] - max(0, found[1])) // 2), found[1]))
    slope, offset = median_line(x, y)
    return Line(float(x[0]), offset, slope, float(np.median(np.abs(y - offset - slope * (x - x[0])))), tuple(jumps))


# ---- Which streams are of one communicator ----

def overlap(one, other, shift):
    """Of two orders the parts that stand beside each other, if other's first is the one at `shift`."""
    begin, end = max(0, shift), min(len(one.names), len(other.names) + shift)
    return slice(begin, end), slice(begin - shift, end - shift)


def shifts(one, other):
    """Where other's first collective may stand in one's order: those by which the time between the two clocks changes least from one collective to the next."""
    shorter = min(len(one.names), len(other.names))
    least = max(LEAST, shorter // 2)  # in common
    if shorter < least:
        return []
    steps, of = [np.diff(sequence.ends).astype(np.float64) for sequence in (one, other)], min(LOOKED_AT, least) - 1
    windows = [np.lib.stride_tricks.sliding_window_view(mine[:min(SHIFT_MOST, len(mine) + 1 - least) + of], of) for mine in steps]
    changes = np.concatenate([np.median(np.abs(windows[0] - steps[1][:of]), axis=1), np.median(np.abs(windows[1][1:] - steps[0][:of]), axis=1)])
    shift_of = np.concatenate([np.arange(len(windows[0])), -np.arange(1, len(windows[1]))])
    varies = float(np.median(np.abs(steps[0] - np.median(steps[0]))))  # what the clocks would differ by if the two had nothing to do with each other
    found = []
    for at in np.argsort(changes, kind="stable"):
        if changes[at] > min(SAME_NS, max(VARIES_NS, varies / 4)) or len(found) == SHIFTS_TRIED:
            break
        a, b = overlap(one, other, int(shift_of[at]))
        if abs(int(other.ends[b][0]) - int(one.ends[a][0])) <= WALL_NS and np.array_equal(one.names[a], other.names[b]):
            found.append(int(shift_of[at]))
    return found


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


def placed(sequence, groups, level):
    """The group to which it belongs, by lines that leave no more than `level`: ((shift, line), group); None."""
    best = None
    for group in sorted(groups, key=lambda group: abs(group[-1][0].rank - sequence.rank)):  # neighbours mostly belong together
        if any(member.rank == sequence.rank for member, _ in group) or not (found := related(group[0][0], sequence)) or found[1].residual > level:
            continue
        if best is None or found[1].residual < best[0][1].residual:
            best = found, group
        if found[1].residual <= LEVELS_NS[0]:
            break
    return best


def matched(sequences):
    """Lists of sequences that belong together, with their shifts set, and the lines that relate each to its first; and those that belong to none."""
    groups, alone = [], sorted(sequences, key=lambda s: (-len(s.names), s.rank))
    for level in LEVELS_NS:
        left, alone = alone, []
        for sequence in left:
            if found := placed(sequence, groups, level):
                (sequence.shift, line), group = found
                group.append((sequence, line))
            else:
                sequence.shift = 0
                groups.append([(sequence, Line(float(sequence.ends[0]) if len(sequence.ends) else 0.0, 0.0, 0.0, 0.0, ()))])
        alone = [group[0][0] for group in groups if len(group) == 1]
        groups = [group for group in groups if len(group) > 1]
    return groups, alone


def without_strangers(group):
    """The group without the collectives that do not end together on several of its ranks: those are of other communicators, on the same streams. Also these."""
    (first, _), *others = group
    misses = np.zeros(len(first.names), int)
    for sequence, line in others:
        a, b = overlap(first, sequence, sequence.shift)
        apart = (sequence.ends[b] - first.ends[a]).astype(np.float64)
        for moment, size in line.jumps:
            apart -= np.where(sequence.ends[b] >= moment, size, 0.0)
        apart -= line.offset + line.slope * (first.ends[a] - line.at)
        misses[a] += np.abs(apart) > max(SAME_NS, 8 * line.residual)
    strange = np.flatnonzero(misses > max(1, len(others) // 20))
    if not len(strange):
        return group, []
    left = []
    for sequence, _ in group:
        at = strange - sequence.shift
        at = at[(at >= 0) & (at < len(sequence.names))]
        left.append(sequence.part(at))
        shift, kept = sequence.shift - int(np.count_nonzero(strange < sequence.shift)), np.setdiff1d(np.arange(len(sequence.names)), at)
        for name in ("names", "starts", "ends", "grids"):
            setattr(sequence, name, getattr(sequence, name)[kept])
        sequence.shift = shift
    return group, left


def by_kind(sequence):
    """Its kernels of each name and grid."""
    kinds = sequence.names.astype(np.int64) << 32 | sequence.grids
    return [sequence.part(kinds == kind) for kind in np.unique(kinds)]


def ranks_of(group):
    return {sequence.rank for sequence, _ in group}


def shared_streams(sequences, groups, alone):
    """(groups, alone), where kernels of one name and grid belong together on more ranks than their streams do: then those streams are of several communicators."""
    whole = {id(sequence): ranks_of(group) for group in groups for sequence, _ in group}
    whole |= {id(sequence): {sequence.rank} for sequence in alone}
    parts = {id(part): (sequence, part) for sequence in sequences for part in by_kind(sequence) if len(part.names) < len(sequence.names)}
    finer, rest = matched([part for _, part in parts.values()])
    several = {id(parts[id(part)][0]) for group in finer for part, _ in group if not ranks_of(group) <= whole[id(parts[id(part)][0])]}
    for group in groups:
        if any(id(sequence) in several for sequence, _ in group):
            several |= {id(sequence) for sequence, _ in group}

    def is_of_several(part):
        return id(parts[id(part)][0]) in several
    return ([group for group in groups if id(group[0][0]) not in several] + [group for group in finer if is_of_several(group[0][0])],
            [sequence for sequence in alone if id(sequence) not in several] + [part for part in rest if is_of_several(part)])


def communicators(sequences):
    """(groups, alone) as of matched(), also of communicators that share streams."""
    groups, alone = shared_streams(sequences, *matched(sequences))
    left = [part for group in groups for part in without_strangers(group)[1]]
    found, still = matched(left)
    return groups + found, alone + still


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


# ---- The file ----

FORM = 1
KEYS = "rank", "offset_ns", "drift_ppb", "at_ns", "error_ns", "collectives"


def write(path, run, clocks, hosts, sets):
    """For `custream merge` and `custream export`, which subtract how far a rank's clock is ahead."""
    known = any(clock.collectives for clock in clocks.values())
    rows = [{"host": hosts.get(rank), **{key: getattr(clock, key) for key in KEYS}, "jumps": [list(jump) for jump in clock.jumps]} for rank, clock in sorted(clocks.items())]
    about = {"custream_clocks": FORM, "run": run, "by": "collectives" if known else "wall clock", "sets": sets, "clocks": rows}
    path.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


# What is beyond these is no clock, and no moment: times that are moved by it stay numbers of 64 bits. As in tools/custream/merge/clocks.c.
AHEAD_MOST, DRIFT_MOST, MOMENT_MOST = 9e15, 1e7, 9e18


def is_one(clock):
    return (abs(clock.offset_ns) <= AHEAD_MOST and abs(clock.drift_ppb) <= DRIFT_MOST and abs(clock.at_ns) <= MOMENT_MOST and 0 <= clock.error_ns <= AHEAD_MOST
            and len(clock.jumps) <= JUMPS_MOST and all(abs(moment) <= MOMENT_MOST and abs(size) <= AHEAD_MOST for moment, size in clock.jumps))


def read(path):
    """By rank. ValueError: it is no such file."""
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        if about["custream_clocks"] != FORM:
            raise ValueError(f"has clocks of form {about['custream_clocks']}, and this reads form {FORM}")
        found = {row["rank"]: Clock(**{key: row[key] for key in KEYS}, jumps=tuple((moment, size) for moment, size in row["jumps"])) for row in about["clocks"]}
        if all(map(is_one, found.values())):
            return found
        raise ValueError("has no clocks: one is further off than clocks are")
    except (KeyError, TypeError, UnicodeDecodeError, json.JSONDecodeError):
        raise ValueError("has no clocks: 'custream fleet --clocks FILE' writes them") from None
