"""Why a rank is late: what it had more of than the middle rank, from the end of the collective before to its arrival at the one that it was late at."""
from custream._arrow import whole
from custream.fleet.relations import stretches

WINDOWS_MOST = 100  # of the steps in which a rank was late
OTHERS_MOST = 32    # ranks that it is compared with


def inside(relation):
    """How much of each window lies in pieces of a relation that has rank, device, since, until."""
    keys, mine = "about, rank, device", "SELECT about, rank, device, since, until FROM windows"
    pieces = f"""SELECT m.about AS about, m.rank AS rank, m.device AS device, since, until
                 FROM (SELECT DISTINCT {keys} FROM windows) m JOIN {relation} r ON r.rank = m.rank AND r.device = m.device"""
    return f"SELECT {keys}, one_since AS window_ns, until - since AS ns, other_since FROM ({stretches(mine, pieces, keys)}) s WHERE other_since IS NOT NULL"


TIMES = f"""
SELECT w.about AS about, w.rank AS rank, w.since AS since, CAST(max(w.until - w.since) AS BIGINT) AS took,
       CAST(coalesce(max(computing), 0) AS BIGINT) AS computing, CAST(coalesce(max(working), 0) AS BIGINT) AS working, CAST(coalesce(max(busy), 0) AS BIGINT) AS busy
FROM windows w LEFT JOIN (
  SELECT about, rank, window_ns, sum(CASE WHEN of = 'computing' THEN ns END) AS computing, sum(CASE WHEN of = 'working' THEN ns END) AS working, sum(CASE WHEN of = 'busy' THEN ns END) AS busy
  FROM ({' UNION ALL '.join(f"SELECT about, rank, window_ns, ns, '{of}' AS of FROM ({inside(of)}) i" for of in ('computing', 'working', 'busy'))}) parts
  GROUP BY about, rank, window_ns) p ON p.about = w.about AND p.rank = w.rank AND p.window_ns = w.since
GROUP BY w.about, w.rank, w.since"""
IDLE_INSIDE = f"""
SELECT about, i.rank AS rank, cause, why, coalesce(doing, '') AS doing, coalesce(in_call, '') AS in_call, CAST(sum(ns) AS BIGINT) AS ns
FROM ({inside('pauses')}) i JOIN pauses d ON d.rank = i.rank AND d.device = i.device AND d.since = i.other_since
GROUP BY about, i.rank, cause, why, coalesce(doing, ''), coalesce(in_call, '')"""


def windows_of(together, rows):
    """Of each row's rank and of others in its communicator: (about, rank, device, since, until), by the rank's own clock."""
    found = []
    for about, row in enumerate(rows):
        group = together.groups[row["communicator"]]
        of = together.matrix(group)
        places = row["places"][row["places"] > 0][:WINDOWS_MOST]
        for at in [of.ranks.index(row["rank"]), *[at for at, rank in enumerate(of.ranks) if rank != row["rank"]][:OTHERS_MOST]]:
            clock = together.clocks[of.ranks[at]]
            for nth in places:
                since, until = of.ends[at, nth - 1], of.starts[at, nth]
                if since < until:
                    shift = float(clock.ahead(of.base + int(since)))
                    found.append((about, of.ranks[at], group[at][0].device, of.base + int(since + shift), of.base + int(until + shift)))
    return found


def causes_of(tables, together, rows):
    """Sets class and cause of each row."""
    import pyarrow as pa
    windows = windows_of(together, rows)
    for row in rows:
        row["class"], row["cause"] = "unknown", "the cause is not known"
    if not windows:
        return
    kinds = {"about": pa.int32(), "rank": pa.int32(), "device": pa.int32(), "since": pa.int64(), "until": pa.int64()}
    tables.put("windows", pa.table({name: whole(pa, column, kind) for (name, kind), column in zip(kinds.items(), zip(*windows))}))
    for relation in ("computing", "working", "busy", "pauses"):
        tables.have(relation)
    times, idle = tables.arrays(TIMES), tables.rows(IDLE_INSIDE)
    for about, row in enumerate(rows):
        cause_of(together.np, row, {name: values[times["about"] == about] for name, values in times.items()}, [i for i in idle if i["about"] == about])


def cause_of(np, row, times, idle):
    mine = times["rank"] == row["rank"]
    if not mine.any() or mine.all():
        return
    values = {"kernels": times["computing"], "copies": times["working"] - times["computing"], "communication": times["busy"] - times["working"], "idle": times["took"] - times["busy"]}
    more = {what: float(np.median(of[mine]) - np.median(of[~mine])) for what, of in values.items()}
    worst = max(more, key=more.get)
    by = f"({more[worst] / 1e6:.3f} ms a step)"
    words = {"kernels": "its kernels take longer", "copies": "its copies take longer", "communication": "it is in other collectives for longer"}
    row["class"], row["cause"] = worst, f"{words.get(worst)} {by}"
    if worst == "idle":
        row["class"], said = idle_cause(row["rank"], idle, int(mine.sum()), int((~mine).sum()))
        row["cause"] = f"{said} {by}"


def idle_cause(rank, idle, mine, others):
    """What it was idle for, more than the others: (class, words)."""
    more = {}
    for piece in idle:
        key = piece["cause"], piece["doing"], piece["in_call"], piece["why"]
        more[key] = more.get(key, 0.0) + (piece["ns"] / mine if piece["rank"] == rank else -piece["ns"] / others)
    cause, doing, call, why = max(sorted(more), key=more.get, default=("unknown", "", "", "not known"))
    if cause == "host":
        said = {"blocked": f"its host is blocked in {call}", "in a call": f"its host is in {call} for longer",
                "waiting outside CUDA": "its host waits for something outside CUDA", "waiting for a thread": "its thread waits for another one"}
        return "host", said.get(doing, "its GPU waits for the host's own code")
    return cause, f"its GPU is idle for longer, and the cause is {why}"
