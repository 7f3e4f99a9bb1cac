"""The questions: each gives rows, worst first, and sentences that say what they mean. Queries are in SQL that DuckDB and Spark take."""
import dataclasses

from custream.fleet.causes import causes_of
from custream.fleet.relations import COLLECTIVE, stretches

MATTERS = 0.05    # of a step, or of a rank's time: what is less is not worth a sentence
SLOW = 1.25       # a kernel or a communicator that takes that much longer than the middle one is named
CAUSES_MOST = 16  # stragglers whose causes are looked for
# What says nothing of how a rank was set up: names of its own, and what was measured.
OWN = ("metadata.host", "metadata.job", "metadata.rings", "metadata.clock_error_ns", "metadata.options.CUSTREAM_TRACE", "metadata.options.CUSTREAM_KEEP")


@dataclasses.dataclass
class Answer:
    name: str
    says: list                                             # sentences
    rows: list                                             # dicts
    picture: dict = dataclasses.field(default_factory=dict)  # what page.py draws beside the rows


def middle_of(values):
    """A rank's, not what lies between two: of two ranks the lower one, so that the other is behind it by all that they differ."""
    values = sorted(values)
    return values[(len(values) - 1) // 2] if values else 0.0


def middle_rank(np, values):
    """The same of each column, by those that are known."""
    return np.nanquantile(values, 0.5, axis=0, method="lower")


def ms(ns):
    return ns / 1e6


def rank_and_host(tables, rank):
    return {"rank": rank, "host": tables.hosts.get(rank)}


# ---- Who is late ----

def stragglers(tables, together):
    rows, says, matrices = [], [], [together.matrix(group) for group in together.groups]
    for number, of in enumerate(matrices):
        rows += late_ranks(tables, together, number, of, induced(together.np, matrices, number))
    rows.sort(key=lambda row: (-row["others_waited_ms"], row["rank"]))
    causes_of(tables, together, rows[:CAUSES_MOST])
    for row in rows:
        row.pop("places")
    if together.left_out:
        says.append(f"{together.left_out} NCCL kernels that do not end on all ranks at once (broadcasts, sends, receives) are not looked at.")
    if not together.groups:
        return Answer("stragglers", ["There are no collectives that several ranks have: nobody waits for anybody here.", *says], [])
    picture = {"matrix": max(matrices, key=lambda of: len(of.ranks))}
    if not rows:
        return Answer("stragglers", ["No rank makes the others wait: who arrives last is not late by a twentieth of a step, or by what the clocks are off.", *says], [], picture)
    for place, row in enumerate(rows[:3]):
        says.insert(place, f"Rank {row['rank']} ({row['host']}) is late at {row['late']} of {row['of']} collectives, {row['by_ms']:.3f} ms behind the middle one: {row['cause']}. "
                    f"The others waited {row['others_waited_ms']:.1f} ms in all.")
    return Answer("stragglers", says, rows, picture)


def induced(np, matrices, number):
    """What each rank of a communicator waited for ranks that were late at collectives of its other communicators, since the collective before. A row for each rank."""
    of = matrices[number]
    found = np.zeros(of.starts.shape)
    for other in matrices:
        shared = set(other.ranks) & set(of.ranks) if other is not of else ()
        if not shared:
            continue
        took = other.ends - other.starts
        waited = np.nan_to_num(took - took.min(axis=0))  # who comes last waits for nobody; without a rank it is not known
        for rank in shared:
            row, mine = of.ranks.index(rank), other.ranks.index(rank)
            ends = other.ends[mine] + (other.base - of.base)
            sums, there = np.concatenate([[0.0], np.cumsum(waited[mine][~np.isnan(ends)])]), np.sort(ends[~np.isnan(ends)])
            until = sums[np.searchsorted(there, of.starts[row], side="right")]
            found[row, 1:] = until[1:] - sums[np.searchsorted(there, of.ends[row, :-1], side="right")]
    return found


def late_ranks(tables, together, number, of, waited):
    """Of several that are late, the one is meant that is so by itself, and not because it waited for another of them elsewhere."""
    np = together.np
    whole = ~np.isnan(of.starts).any(axis=0)
    if not whole.any():
        return []
    arrive = of.starts[:, whole]
    step = named_step_ns(tables) or (np.median(np.diff(np.nanmedian(of.ends, axis=0))) if of.ends.shape[1] > 1 else 0.0)
    matters = max(MATTERS * step, 3 * together.error(of.ranks))
    late = arrive - middle_rank(np, arrive)
    alone = arrive - waited[:, whole]
    alone -= middle_rank(np, alone)
    alone[late <= matters] = -np.inf
    blamed = np.where(alone.max(axis=0) > matters, alone.argmax(axis=0), arrive.argmax(axis=0))
    behind = late[blamed, np.arange(arrive.shape[1])]
    counts, places, rows = behind > matters, np.flatnonzero(whole), []
    for at in np.unique(blamed[counts]):
        mine = counts & (blamed == at)
        lost = (arrive.max(axis=0) - arrive)[:, mine].sum()
        rows.append({**rank_and_host(tables, of.ranks[at]), "communicator": number, "late": int(mine.sum()), "of": int(whole.sum()), "by_ms": ms(float(np.median(behind[mine]))),
                     "others_waited_ms": ms(float(lost)), "class": None, "cause": "not looked for", "places": places[mine]})
    return [row for row in rows if row["late"] > 1 or row["by_ms"] * 1e6 > step]


# ---- Steps ----

STEP_NAMES = """
SELECT name FROM (SELECT name, count(DISTINCT rank) AS ranks, count(*) AS n, sum(dur_ns) AS ns FROM ranges WHERE kind = 'range' GROUP BY name) s
WHERE ranks = (SELECT count(DISTINCT rank) FROM files) AND n >= 3 * ranks ORDER BY ns DESC, name LIMIT 1"""
STEPS = """
SELECT rank, count(*) AS steps, percentile_cont(0.5) WITHIN GROUP (ORDER BY dur_ns) AS middle, percentile_cont(0.9) WITHIN GROUP (ORDER BY dur_ns) AS high, max(dur_ns) AS most
FROM ranges WHERE kind = 'range' AND name = ? GROUP BY rank"""
# For a picture: of each rank, the longest of the steps that share a column.
STEP_COLUMNS = """
SELECT rank, place, max(dur_ns) AS ns
FROM (SELECT rank, dur_ns, CAST(floor((row_number() OVER (PARTITION BY rank ORDER BY start_ns) - 1) / ?) AS INT) AS place FROM ranges WHERE kind = 'range' AND name = ?) n
GROUP BY rank, place ORDER BY rank, place"""


def named_step(tables):
    """The longest range whose name repeats on every rank; None."""
    if not hasattr(tables, "step"):
        found = tables.rows(STEP_NAMES)
        tables.step = found[0]["name"] if found else None
    return tables.step


def named_step_ns(tables):
    if not hasattr(tables, "step_ns"):
        found = tables.rows("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY dur_ns) AS ns FROM ranges WHERE kind = 'range' AND name = ?", named_step(tables))
        tables.step_ns = found[0]["ns"]
    return tables.step_ns


def steps(tables, together):
    named, np = named_step(tables), together.np
    if named:
        of, source = [(row["rank"], row["steps"], row["middle"], row["high"], row["most"]) for row in tables.rows(STEPS, named)], f"the range \"{named}\""
    elif together.groups:
        of, source = [], "the time between collectives"
        for s, _ in together.groups[0]:
            took = np.diff(s.ends)
            if len(took):
                of.append((s.rank, len(took), float(np.median(took)), float(np.quantile(took, 0.9)), float(took.max())))
    else:
        return Answer("steps", ["No range repeats on every rank, and no collectives do: there are no steps to compare."], [])
    rows = [{**rank_and_host(tables, rank), "steps": n, "median_ms": ms(middle), "p90_ms": ms(high), "max_ms": ms(most)} for rank, n, middle, high, most in of]
    rows.sort(key=lambda row: (-row["median_ms"], row["rank"]))
    says = f"Steps ({source}) take {middle_of(row['median_ms'] for row in rows):.3f} ms, by the median of {len(rows)} ranks; {rows[0]['median_ms']:.3f} on rank {rows[0]['rank']}."
    return Answer("steps", [says], rows, {"step": named})


def step_columns(tables, most):
    """(ranks, steps a column, matrix in ms) of the named steps, in at most so many columns."""
    import numpy as np
    named = named_step(tables)
    count = tables.rows("SELECT max(n) AS n FROM (SELECT count(*) AS n FROM ranges WHERE kind = 'range' AND name = ? GROUP BY rank) c", named)[0]["n"]
    each = -(-count // most)
    found = tables.arrays(STEP_COLUMNS, each, named)
    ranks, row = np.unique(found["rank"], return_inverse=True)
    matrix = np.full((len(ranks), -(-count // each)), np.nan)
    matrix[row, found["place"]] = found["ns"] / 1e6
    return [int(rank) for rank in ranks], each, matrix


# ---- Collectives: what they take once all are there ----

def collectives(tables, together):
    rows, np = [], together.np
    for number, group in enumerate(together.groups):
        of = together.matrix(group)
        took = of.ends - of.starts
        whole = ~np.isnan(took).any(axis=0)
        if whole.any():  # on who comes last it takes least: that needs no clock
            least = took[:, whole].min(axis=0)
            hosts = {tables.hosts.get(rank) for rank in of.ranks}
            rows.append({"communicator": number, "ranks": len(of.ranks), "first_rank": min(of.ranks), "hosts": len(hosts), "collectives": int(whole.sum()),
                         "median_ms": ms(float(np.median(least))), "p90_ms": ms(float(np.quantile(least, 0.9))), "waiting_ms": ms(float((took[:, whole] - least).mean())),
                         "kernels": ", ".join(short(together.names[name]) for name in np.unique(of.names[whole]))})
    says = []
    for row in rows:
        alike = [other["median_ms"] for other in rows if (other["kernels"], other["ranks"]) == (row["kernels"], row["ranks"])]
        if len(alike) > 2 and row["median_ms"] > SLOW * middle_of(alike):
            members = sorted(s.rank for s, _ in together.groups[row["communicator"]])
            says.append(f"Communicator {row['communicator']} (ranks {', '.join(map(str, members[:8]))}{', ...' if len(members) > 8 else ''}) takes {row['median_ms']:.3f} ms for a collective "
                        f"once all are there, and {middle_of(alike):.3f} is the middle of {len(alike)} like it: its links are slower.")
    rows.sort(key=lambda row: (-row["median_ms"], row["communicator"]))
    if not rows:
        says = ["There are no collectives that several ranks have."]
    return Answer("collectives", says or [f"Collectives of {len(rows)} communicators; none is slower than others like it."], rows)


def short(name):
    return name.split("(")[0].removeprefix("ncclDevKernel_").removeprefix("ncclKernel_")


# ---- Communication behind computation ----

HIDDEN = f"""
SELECT rank, CAST(sum(until - since) AS BIGINT) AS ns, CAST(sum(CASE WHEN other_since IS NULL THEN 0 ELSE until - since END) AS BIGINT) AS hidden
FROM ({stretches("SELECT * FROM communicating", "SELECT * FROM computing", "rank, device")}) s GROUP BY rank"""


def hidden(tables, together):
    del together
    tables.have("communicating"), tables.have("computing")
    rows = [{**rank_and_host(tables, row["rank"]), "communication_ms": ms(row["ns"]), "hidden_ms": ms(row["hidden"]), "hidden_share": row["hidden"] / row["ns"]}
            for row in tables.rows(HIDDEN) if row["ns"]]
    rows.sort(key=lambda row: (row["hidden_share"], row["rank"]))
    if not rows:
        return Answer("hidden", ["There are no kernels of NCCL: nothing is known of communication."], [])
    share = sum(row["hidden_ms"] for row in rows) / sum(row["communication_ms"] for row in rows)
    return Answer("hidden", [f"{share:.0%} of the time in NCCL's kernels is hidden: other kernels run on the same GPU meanwhile. That time includes waiting for ranks that come late."], rows)


# ---- Kernels ----

# The slowest rank of a kernel, by its mean there, against the middle rank's.
KERNELS = f"""
WITH by_rank AS (
  SELECT name, rank, count(*) AS n, CAST(sum(dur_ns) AS DOUBLE) / count(*) AS mean FROM work WHERE kind = 'kernel' AND NOT {COLLECTIVE} GROUP BY name, rank),
placed AS (SELECT *, row_number() OVER (PARTITION BY name ORDER BY mean DESC, rank) AS place FROM by_rank)
SELECT name, count(*) AS ranks, CAST(sum(n) AS BIGINT) AS launches, percentile_disc(0.5) WITHIN GROUP (ORDER BY mean) AS middle, min(mean) AS least, max(mean) AS most,
       max(CASE WHEN place = 1 THEN rank END) AS slowest_rank, max(CASE WHEN place = 1 THEN n END) AS slowest_n
FROM placed GROUP BY name HAVING count(*) > 1"""
KERNEL_TIME = f"SELECT rank, CAST(sum(dur_ns) AS BIGINT) AS ns FROM work WHERE kind = 'kernel' AND NOT {COLLECTIVE} GROUP BY rank"


def kernels(tables, together):
    del together
    rows, says = [], []
    total = {row["rank"]: row["ns"] for row in tables.rows(KERNEL_TIME)}
    middle = middle_of(total.values())
    for rank, ns in sorted(total.items(), key=lambda pair: (-pair[1], pair[0]))[:3]:
        if ns > (1 + MATTERS) * middle:
            says.append(f"Rank {rank} ({tables.hosts.get(rank)}) spends {ms(ns):.1f} ms in kernels, {ms(ns - middle):.1f} ms more than the middle one.")
    for row in tables.rows(KERNELS):
        rows.append({"kernel": row["name"], "ranks": row["ranks"], "launches": row["launches"], "middle_us": row["middle"] / 1e3, "fastest_us": row["least"] / 1e3,
                     "slowest_us": row["most"] / 1e3, "slowest_rank": row["slowest_rank"], "more_ms": ms((row["most"] - row["middle"]) * row["slowest_n"])})
    rows.sort(key=lambda row: (-row["more_ms"], row["kernel"]))
    for row in rows[:3]:
        if row["more_ms"] * 1e6 > MATTERS * total[row["slowest_rank"]]:
            says.append(f"{short_kernel(row['kernel'])} takes {row['slowest_us']:.1f} us on rank {row['slowest_rank']} ({tables.hosts.get(row['slowest_rank'])}), and {row['middle_us']:.1f} on the middle one: "
                        f"{row['more_ms']:.1f} ms more in all.")
    return Answer("kernels", says or ["No kernel's spread across ranks costs a rank a twentieth of its kernels' time." if rows else "No kernel ran on several ranks."], rows)


def short_kernel(name):
    return name if len(name) <= 60 else name[:57] + "..."


# ---- Idle GPUs ----

IDLE_TIMES = """
SELECT rank, cause, why, coalesce(doing, '') AS doing, coalesce(in_call, '') AS in_call, CAST(sum(until - since) AS BIGINT) AS ns FROM pauses
GROUP BY rank, cause, why, coalesce(doing, ''), coalesce(in_call, '')"""
SPANS = "SELECT rank, CAST(sum(ns) AS BIGINT) AS ns FROM (SELECT rank, device, max(start_ns + dur_ns) - min(start_ns) AS ns FROM work GROUP BY rank, device) s GROUP BY rank"


def idle(tables, together):
    del together
    if not tables.causes:
        return Answer("idle", ["These tables are of an earlier custream, and have no causes of idle time: export the traces again."], [])
    tables.have("pauses")
    spans = {row["rank"]: row["ns"] for row in tables.rows(SPANS)}
    sampled = {row["rank"] for row in tables.rows("SELECT DISTINCT rank FROM files WHERE gpu_sample IS NOT NULL")}
    found, why = {}, {}
    for row in tables.rows(IDLE_TIMES):
        why[row["cause"]] = row["why"]
        if row["rank"] not in sampled:
            found.setdefault((row["cause"], row["doing"], row["in_call"]), {})[row["rank"]] = row["ns"]
    ranks = [rank for rank in spans if rank not in sampled]
    rows = []
    for (cause, doing, call), by_rank in found.items():
        middle = middle_of(by_rank.get(rank, 0) for rank in ranks)
        rows += [{**rank_and_host(tables, rank), "cause": cause, "doing": doing or None, "call": call or None, "idle_ms": ms(ns), "share": ns / spans[rank], "more_ms": ms(ns - middle)}
                 for rank, ns in by_rank.items()]
    rows.sort(key=lambda row: (-row["more_ms"], row["rank"], row["cause"], row["doing"] or "", row["call"] or ""))
    says = []
    if ranks:
        shares = {rank: sum(by_rank.get(rank, 0) for by_rank in found.values()) / spans[rank] if spans[rank] else 0.0 for rank in ranks}
        says.append(f"The GPU of the middle rank is idle {middle_of(shares.values()):.1%} of the time.")
        for row in rows[:3]:
            if row["more_ms"] * 1e6 > MATTERS * spans[row["rank"]]:
                says.append(f"Rank {row['rank']} ({row['host']}) is idle {row['more_ms']:.1f} ms longer than the middle one: {words_of(why[row['cause']], row['doing'], row['call'])}.")
    if sampled:
        says.append(f"{len(sampled)} ranks have GPU times of a sample of their calls: nothing is said of their idle time.")
    lost = tables.rows("SELECT count(DISTINCT rank) AS n FROM losses WHERE coalesce(calls, 0) + coalesce(gpu_work, 0) > 0")[0]["n"]
    if lost:
        says.append(f"The traces of {lost} ranks lack some calls or work: there the GPU may have been less idle.")
    return Answer("idle", says or ["There is no GPU work with times."], rows)


def words_of(why, doing, call):
    return why + {"blocked": f"; it was blocked in {call}", "in a call": f"; it was in {call}", "own code": "; it ran its own code",
                  "waiting outside CUDA": "; it waited for something outside CUDA", "waiting for a thread": "; its thread waited for another one"}.get(doing, "")


# ---- Clocks ----

def clocks(tables, together):
    rows = [{**rank_and_host(tables, c.rank), "offset_us": c.offset_ns / 1e3, "drift_ppm": c.drift_ppb / 1e3, "error_us": c.error_ns / 1e3 if c.collectives else None,
             "collectives": c.collectives, "jumps": len(c.jumps)} for c in together.clocks.values()]
    rows.sort(key=lambda row: (-round(abs(row["offset_us"]), 1), row["rank"]))
    known = [row for row in rows if row["collectives"]]
    if not known:
        return Answer("clocks", ["No collectives relate the ranks' clocks. Times are those of the hosts' wall clocks, which differ by a millisecond or so."], rows)
    says = [f"{len(known)} of {len(rows)} ranks are related by collectives. The clock that is furthest off is that of rank {known[0]['rank']} ({known[0]['host']}): "
            f"{known[0]['offset_us']:,.1f} us, +- {known[0]['error_us']:,.1f}."]
    if tables.moved():
        says.append("Times in the tables are by clocks that were found before (custream export --clocks): this is what is left.")
    for clock in together.clocks.values():
        for moment, size in clock.jumps:
            says.append(f"The clock of rank {clock.rank} ({tables.hosts.get(clock.rank)}) jumps by {size / 1e3:,.1f} us at {moment / 1e9:.3f} s since the epoch.")
    by_host = {}
    for row in known:
        by_host.setdefault(row["host"], []).append(row)
    for host, of in by_host.items():
        spread = max(row["offset_us"] for row in of) - min(row["offset_us"] for row in of)
        if host != "unknown" and spread > 2 * max(row["error_us"] for row in of) + 20:
            says.append(f"Ranks of {host} contradict each other by {spread:,.1f} us, and have one clock: look at their jumps.")
    if together.sets > 1:
        says.append(f"The ranks are {together.sets} sets that neither collectives nor a host connect. Clocks of different sets are related by their wall clocks only.")
    if together.alone:
        says.append(f"{len(together.alone)} streams with collectives match no other rank's; they are in no answer.")
    return Answer("clocks", says, rows)


# ---- Settings ----

SETTINGS = f"""
SELECT key, text, count(DISTINCT rank) AS n, min(rank) AS first_rank FROM facts
WHERE key LIKE 'metadata.%' AND text IS NOT NULL AND key NOT IN ({', '.join('?' * len(OWN))}) GROUP BY key, text ORDER BY key, n DESC, text"""


def setting_name(key):
    return key.removeprefix("metadata.").removeprefix("options.")


def settings(tables, together):
    """Facts that most ranks share, and some do not."""
    del together
    found, common, rows = tables.rows(SETTINGS, *OWN), {}, []
    for row in found:
        common.setdefault(row["key"], (row["text"], row["n"]))
    for row in found:
        of = common[row["key"]][0]
        if row["text"] != of or (row["n"] < len(tables.ranks) and sum(other["key"] == row["key"] for other in found) == 1):
            rows.append({"setting": setting_name(row["key"]), "value": row["text"], "ranks": row["n"], "first_rank": row["first_rank"], "most_have": of})
    rows.sort(key=lambda row: (row["ranks"], row["setting"]))
    says = [f"Rank {row['first_rank']}{f' and {more} more' if (more := row['ranks'] - 1) else ''}: {row['setting']} is {row['value']}, on the others {row['most_have']}." for row in rows[:5]]
    incomplete = [row["rank"] for row in tables.rows("SELECT DISTINCT rank FROM files WHERE complete = 0 ORDER BY rank")]
    if incomplete:
        says.append(f"The traces of {len(incomplete)} ranks are not complete: {', '.join(map(str, incomplete[:8]))}.")
    return Answer("settings", says or ["All ranks have the same settings and versions."], rows)


QUESTIONS = {"stragglers": stragglers, "steps": steps, "idle": idle, "kernels": kernels, "collectives": collectives, "hidden": hidden, "clocks": clocks, "settings": settings}
