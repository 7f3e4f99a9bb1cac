"""`custream fleet DIR`: questions over the tables of many ranks (docs/fleet.md). Needs duckdb and numpy, of the extra "fleet".

DuckDB reads the tables. What relates ranks to each other (which collectives are one, and how clocks differ) is in fleet_clocks.py. Each question gives rows, worst
first, and a sentence that says what they mean.
"""
import argparse
import dataclasses
import json
import pathlib
import sys

NAME = "custream fleet"
MATTERS = 0.05       # of a step: what is less is no straggler
WINDOWS_MOST = 400   # of the steps in which a rank was late, to look for its cause
COLLECTIVE = "kind = 'kernel' AND (name LIKE 'ncclDevKernel%' OR name LIKE 'ncclKernel%')"
TOGETHER = ("AllReduce", "AllGather", "ReduceScatter")  # end for all at once
# What says nothing of how a rank was set up: names of its own, and what was measured.
OWN = ("metadata.host", "metadata.job", "metadata.rings", "metadata.clock_error_ns", "metadata.options.CUSTREAM_TRACE", "metadata.options.CUSTREAM_KEEP")


class Refused(Exception):
    """One line for the user."""


@dataclasses.dataclass
class Answer:
    name: str
    says: list          # sentences
    rows: list          # dicts

    def text(self):
        return "\n".join([self.name.upper(), *("  " + line for line in self.says), *table(self.rows)])


def table(rows, most=10):
    """Lines of text; the first rows."""
    if not rows:
        return []
    shown = [list(rows[0])] + [["-" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value) for value in row.values()] for row in rows[:most]]
    widths = [max(len(line[i]) for line in shown) for i in range(len(shown[0]))]
    lines = ["    " + "  ".join(word.rjust(width) for word, width in zip(line, widths)).rstrip() for line in shown]
    return lines + ([f"    ... {len(rows) - most} more: --json"] if len(rows) > most else [])


# ---- The tables ----

class Tables:
    """Those of one run, in DuckDB. A table that no trace had rows for is empty, with the columns of the schema."""

    def __init__(self, folder, run=None):
        try:
            import duckdb
            import numpy  # noqa: F401  all that is needed later, so that what is missing is said at once
            import pyarrow  # noqa: F401
        except ImportError as error:
            raise Refused(f"{error}: install the wheel with its extra \"fleet\"") from None
        self.folder = folder
        if not (folder / "schema.json").is_file():
            raise Refused(f"{folder}: no schema.json: it is no folder that 'custream export --parquet' made")
        version = json.loads((folder / "schema.json").read_text(encoding="utf-8")).get("version")
        if version != 1:
            raise Refused(f"{folder}: has tables of version {version}, and this reads version 1")
        self.engine = duckdb.connect()
        runs = sorted({path.name.removeprefix("run=") for path in folder.glob("*/run=*")})
        if not runs:
            raise Refused(f"{folder}: no traces were exported to it")
        if run is None and len(runs) > 1:
            raise Refused(f"{folder}: has {len(runs)} runs; --run=NAME says which: {', '.join(runs[:8])}")
        self.run = run or runs[0]
        if self.run not in runs:
            raise Refused(f"{folder}: has no run {self.run}; there is {', '.join(runs[:8])}")
        for name, columns in COLUMNS.items():
            self.view(name, columns)
        self.ranks = [row[0] for row in self.rows("SELECT DISTINCT rank FROM files ORDER BY rank")]
        self.hosts = dict(self.rows("SELECT DISTINCT rank, host FROM files"))

    def view(self, name, columns):
        files = self.folder / name / f"run={self.run}" / "**" / "*.parquet"
        if any((self.folder / name).glob(f"run={self.run}/**/*.parquet")):
            source = f"read_parquet('{str(files).replace(chr(39), chr(39) * 2)}', hive_partitioning = true, hive_types = {{'rank': INTEGER, 'host': VARCHAR, 'run': VARCHAR}}, union_by_name = true)"
            self.engine.execute(f"CREATE VIEW {name} AS SELECT rank, host, {', '.join(columns)} FROM {source}")
        else:
            said = ", ".join(f"NULL::{kind} AS {column}" for column, kind in columns.items())
            self.engine.execute(f"CREATE VIEW {name} AS SELECT 0 AS rank, '' AS host, {said} WHERE false")

    def rows(self, query, *values):
        return self.engine.execute(query, values).fetchall()

    def arrays(self, query, *values):
        return self.engine.execute(query, values).fetchnumpy()


COLUMNS = {
    "files": {"file": "VARCHAR", "version": "VARCHAR", "complete": "BIGINT"},
    "facts": {"file": "VARCHAR", "key": "VARCHAR", "text": "VARCHAR"},
    "work": {"file": "VARCHAR", "start_ns": "BIGINT", "dur_ns": "BIGINT", "kind": "VARCHAR", "name": "VARCHAR", "device": "INTEGER", "stream": "INTEGER", "correlation": "BIGINT"},
    "calls": {"file": "VARCHAR", "start_ns": "BIGINT", "dur_ns": "BIGINT", "level": "VARCHAR", "name": "VARCHAR", "blocked_ns": "BIGINT"},
    "ranges": {"file": "VARCHAR", "start_ns": "BIGINT", "dur_ns": "BIGINT", "kind": "VARCHAR", "name": "VARCHAR"},
}


# ---- Collectives and clocks ----

class Together:
    """The collectives of the run, and clocks made from them. A matrix a communicator: a row a rank, a column a collective, nan where a trace does not have it."""

    def __init__(self, tables):
        import numpy as np

        from custream import fleet_clocks as clocks
        self.np, self.tables = np, tables
        found = tables.arrays(f"SELECT rank, device, stream, name, start_ns, start_ns + dur_ns AS end_ns FROM work WHERE {COLLECTIVE} ORDER BY rank, device, stream, start_ns")
        names, numbers = np.unique(np.asarray(found["name"], dtype=str), return_inverse=True)
        lane = np.stack([np.asarray(found[key], np.int64) for key in ("rank", "device", "stream")])
        edges = np.flatnonzero(np.any(np.diff(lane, axis=1), axis=0)) + 1 if lane.size else []
        self.sequences = []
        ends_together = np.array([any(word in name for word in TOGETHER) for name in names], bool)
        for part in np.split(np.arange(lane.shape[1]), edges) if lane.size else []:
            part = part[ends_together[numbers[part]]]
            if len(part):
                self.sequences.append(clocks.Sequence(int(lane[0, part[0]]), numbers[part], np.asarray(found["start_ns"])[part], np.asarray(found["end_ns"])[part]))
        self.groups, self.alone = clocks.communicators(self.sequences)
        self.clocks, self.sets = clocks.clocks_of(self.groups, tables.hosts)
        self.left_out = int(np.count_nonzero(~ends_together[numbers])) if len(names) else 0
        step = named_step(tables)
        self.step_ns = tables.rows("SELECT median(dur_ns) FROM ranges WHERE kind = 'range' AND name = ?", step)[0][0] if step else None

    def matrix(self, group):
        """(ranks, starts, ends) by the fleet's clock, from the first collective that any rank has."""
        np, first = self.np, min(s.shift for s, _ in group)
        width = max(s.shift - first + len(s.names) for s, _ in group)
        starts, ends = (np.full((len(group), width), np.nan) for _ in range(2))
        base = min(int(s.starts[0]) for s, _ in group)
        for row, (s, _) in enumerate(group):
            place, clock = slice(s.shift - first, s.shift - first + len(s.names)), self.clocks[s.rank]
            starts[row, place] = (s.starts - base) - clock.ahead(s.starts)
            ends[row, place] = (s.ends - base) - clock.ahead(s.ends)
        return [s.rank for s, _ in group], starts, ends, base


def clocks_question(tables, together):
    rows = [{"rank": c.rank, "host": tables.hosts.get(c.rank), "offset_us": c.offset_ns / 1e3, "drift_ppm": c.drift_ppb / 1e3, "error_us": c.error_ns / 1e3 if c.collectives else None,
             "collectives": c.collectives, "jumps": len(c.jumps)} for c in together.clocks.values()]
    rows.sort(key=lambda row: (-round(abs(row["offset_us"]), 1), row["rank"]))
    known = [row for row in rows if row["collectives"]]
    if not known:
        return Answer("clocks", ["No collectives relate the ranks' clocks. Times are those of the hosts' wall clocks, which differ by a millisecond or so."], rows)
    says = [f"{len(known)} of {len(rows)} ranks are related by collectives. The clock that is furthest off is that of rank {known[0]['rank']} ({known[0]['host']}): "
            f"{known[0]['offset_us']:,.1f} us, +- {known[0]['error_us']:,.1f}."]
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


# ---- Who is late ----

def stragglers_question(tables, together):
    rows, says = [], []
    for number, group in enumerate(together.groups):
        rows += late_ranks(tables, together, number, group)
    rows.sort(key=lambda row: -row["others_waited_ms"])
    if together.left_out:
        says.append(f"{together.left_out} NCCL kernels that do not end on all ranks at once (broadcasts, sends, receives) are not looked at.")
    if not together.groups:
        return Answer("stragglers", ["There are no collectives that several ranks have: nobody waits for anybody here.", *says], [])
    if not rows:
        return Answer("stragglers", ["No rank makes the others wait: who arrives last is not late by a twentieth of a step, or by what the clocks are off.", *says], [])
    for place, row in enumerate(rows[:3]):
        says.insert(place, f"Rank {row['rank']} ({row['host']}) arrives last in {row['late']} of {row['of']} collectives, {row['by_ms']:.3f} ms behind the middle one: {row['cause']}. "
                    f"The others waited {row['others_waited_ms']:.1f} ms in all.")
    return Answer("stragglers", says, rows)


def late_ranks(tables, together, number, group):
    np = together.np
    ranks, starts, ends, base = together.matrix(group)
    whole = ~np.isnan(starts).any(axis=0)
    if not whole.any():
        return []
    arrive = starts[:, whole]
    step = together.step_ns or (np.median(np.diff(np.nanmedian(ends, axis=0))) if ends.shape[1] > 1 else 0.0)
    error = max(together.clocks[rank].error_ns for rank in ranks)
    last, middle = arrive.argmax(axis=0), np.median(arrive, axis=0)
    behind = arrive.max(axis=0) - middle
    counts = behind > max(MATTERS * step, 3 * error)
    places, rows = np.flatnonzero(whole), []
    for at in np.unique(last[counts]):
        mine = counts & (last == at)
        lost = (arrive.max(axis=0) - arrive)[:, mine].sum()
        rows.append({"rank": ranks[at], "host": tables.hosts.get(ranks[at]), "communicator": number, "late": int(mine.sum()), "of": int(whole.sum()),
                     "by_ms": float(np.median(behind[mine])) / 1e6, "others_waited_ms": float(lost) / 1e6,
                     "cause": cause_of(tables, together, group, ranks[at], places[mine], ends, starts, base)})
    return [row for row in rows if row["late"] > 1 or row["by_ms"] * 1e6 > step]


# How long anything ran in each window, and how long a kernel did: work at the same time counts once, and what reaches into the window from before counts from its begin.
WINDOW_WORK = f"""
WITH parts AS (
  SELECT w.rank AS rank, w.nth AS nth, w.until - w.since AS took, kind = 'kernel' AS is_kernel, greatest(start_ns, w.since) AS since, least(start_ns + dur_ns, w.until) AS until
  FROM windows w LEFT JOIN work ON work.rank = w.rank AND start_ns < w.until AND start_ns + dur_ns > w.since AND NOT ({COLLECTIVE})),
ordered AS (
  SELECT *, max(until) OVER (PARTITION BY rank, nth ORDER BY since, until ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before,
         max(CASE WHEN is_kernel THEN until END) OVER (PARTITION BY rank, nth ORDER BY since, until ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS kernel_before
  FROM parts)
SELECT rank, nth, max(took) AS took, coalesce(sum(greatest(0, until - greatest(since, coalesce(before, since)))), 0) AS busy,
       coalesce(sum(CASE WHEN is_kernel THEN greatest(0, until - greatest(since, coalesce(kernel_before, since))) END), 0) AS kernels
FROM ordered GROUP BY rank, nth"""
WINDOW_CALLS = """
SELECT w.rank AS rank, name, sum(blocked_ns) AS blocked
FROM windows w JOIN calls ON calls.rank = w.rank AND start_ns >= w.since AND start_ns < w.until AND blocked_ns IS NOT NULL
GROUP BY w.rank, name"""


def cause_of(tables, together, group, rank, places, ends, starts, base):
    """What the late rank had more of than the middle one, between the collective before and the one that it was late at."""
    np = together.np
    places = places[places > 0][:WINDOWS_MOST]
    ranks = [s.rank for s, _ in group]
    others = [other for other in ranks if other != rank][:32]
    windows = []
    for other in [rank, *others]:
        row, clock = ranks.index(other), together.clocks[other]
        for nth in places:
            since, until = ends[row, nth - 1], starts[row, nth]
            if since < until:  # by the rank's own clock again
                shift = float(clock.ahead(base + since))
                windows.append((other, int(nth), int(base + since + shift), int(base + until + shift)))
    if not windows:
        return "not known"
    tables.engine.execute("CREATE OR REPLACE TEMP TABLE windows (rank INTEGER, nth INTEGER, since BIGINT, until BIGINT)")
    tables.engine.register("window_rows", dict_of(np, windows))
    tables.engine.execute("INSERT INTO windows SELECT * FROM window_rows")
    tables.engine.unregister("window_rows")
    found = {name: np.asarray(values, np.float64) for name, values in tables.arrays(WINDOW_WORK).items()}
    values = {"kernels": found["kernels"], "copies": found["busy"] - found["kernels"], "idle": found["took"] - found["busy"]}
    mine, more = found["rank"] == rank, {}
    for what, of in values.items():
        more[what] = float(np.median(of[mine]) - (np.median(of[~mine]) if (~mine).any() else 0.0)) if mine.any() else 0.0
    worst = max(more, key=more.get)
    if worst == "kernels":
        return f"its kernels take longer ({more[worst] / 1e6:.3f} ms a step)"
    if worst == "copies":
        return f"its copies take longer ({more[worst] / 1e6:.3f} ms a step)"
    return host_cause(tables, rank, others, len(places), more[worst])


def host_cause(tables, rank, others, steps, idle):
    blocked = {}
    for who, name, ns in tables.rows(WINDOW_CALLS):
        blocked.setdefault(name, [0, 0])[who != rank] += int(ns)
    most = max(blocked, key=lambda name: blocked[name][0] - blocked[name][1] / max(1, len(others)), default=None)
    if most:
        more = (blocked[most][0] - blocked[most][1] / max(1, len(others))) / steps
        if more > idle / 2:
            return f"its host is blocked in {most} ({more / 1e6:.3f} ms a step)"
    return f"its GPU waits for the host ({idle / 1e6:.3f} ms a step)"


# ---- Steps, settings ----

STEP_NAMES = """
SELECT name FROM (SELECT name, count(DISTINCT rank) AS ranks, count(*) AS n, sum(dur_ns) AS ns FROM ranges WHERE kind = 'range' GROUP BY name) s
WHERE ranks = (SELECT count(DISTINCT rank) FROM files) AND n >= 3 * ranks ORDER BY ns DESC, name LIMIT 1"""


def named_step(tables):
    """The longest range whose name repeats on every rank; None."""
    found = tables.rows(STEP_NAMES)
    return found[0][0] if found else None


def steps_question(tables, together):
    named = named_step(tables)
    if named:
        of, source = tables.rows("SELECT rank, host, count(*), median(dur_ns), quantile_cont(dur_ns, 0.9), max(dur_ns) FROM ranges WHERE kind = 'range' AND name = ? GROUP BY rank, host",
                                 named), f"the range \"{named}\""
    elif together.groups:
        np, of, source = together.np, [], "the time between collectives"
        for s, _ in together.groups[0]:
            took = np.diff(s.ends)
            if len(took):
                of.append((s.rank, tables.hosts.get(s.rank), len(took), float(np.median(took)), float(np.quantile(took, 0.9)), float(took.max())))
    else:
        return Answer("steps", ["No range repeats on every rank, and no collectives do: there are no steps to compare."], [])
    rows = [{"rank": rank, "host": host, "steps": n, "median_ms": middle / 1e6, "p90_ms": high / 1e6, "max_ms": top / 1e6} for rank, host, n, middle, high, top in of]
    rows.sort(key=lambda row: (-row["median_ms"], row["rank"]))
    middle = sorted(row["median_ms"] for row in rows)[len(rows) // 2]
    return Answer("steps", [f"Steps ({source}) take {middle:.3f} ms, by the median of {len(rows)} ranks; {rows[0]['median_ms']:.3f} on rank {rows[0]['rank']}."], rows)


def settings_question(tables, together):
    """Facts that most ranks share, and some do not."""
    del together
    skipped = ", ".join("?" * len(OWN))
    found = tables.rows(f"SELECT key, text, count(DISTINCT rank) AS n, min(rank) FROM facts WHERE (key LIKE 'metadata.%') AND key NOT IN ({skipped}) AND text IS NOT NULL "
                        "GROUP BY key, text ORDER BY key, n DESC, text", *OWN)
    common, rows = {}, []
    for key, text, n, first in found:
        if key not in common:
            common[key] = (text, n)
        if text != common[key][0] or n < len(tables.ranks) and sum(k == key for k, *_ in found) == 1:
            rows.append({"setting": key.removeprefix("metadata.").removeprefix("options."), "value": text, "ranks": n, "first_rank": first, "most_have": common[key][0]})
    rows.sort(key=lambda row: (row["ranks"], row["setting"]))
    says = [f"Rank {row['first_rank']}{f' and {row_more} more' if (row_more := row['ranks'] - 1) else ''}: {row['setting']} is {row['value']}, on the others {row['most_have']}." for row in rows[:5]]
    incomplete = tables.rows("SELECT rank FROM files WHERE complete = 0 ORDER BY rank")
    if incomplete:
        says.append(f"The traces of {len(incomplete)} ranks are not complete: {', '.join(str(row[0]) for row in incomplete[:8])}.")
    return Answer("settings", says or ["All ranks have the same settings and versions."], rows)


def dict_of(np, windows):
    columns = list(zip(*windows))
    import pyarrow as pa
    return pa.table({"rank": pa.array(columns[0], pa.int32()), "nth": pa.array(columns[1], pa.int32()), "since": pa.array(columns[2], pa.int64()), "until": pa.array(columns[3], pa.int64())})


QUESTIONS = {"stragglers": stragglers_question, "steps": steps_question, "clocks": clocks_question, "settings": settings_question}


# ---- The command ----

def ask(folder, run=None, questions=()):
    tables = Tables(pathlib.Path(folder), run)
    together = Together(tables)
    return tables, [QUESTIONS[name](tables, together) for name in questions or QUESTIONS]


def command(argv):
    """argv: the command's own file, and its options, which it has looked at."""
    parser = argparse.ArgumentParser(prog=NAME)
    parser.add_argument("--run")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("questions", nargs="*")
    given = parser.parse_args(argv[1:])
    try:
        unknown = [name for name in given.questions if name not in QUESTIONS]
        if unknown:
            raise Refused(f"there is no question \"{unknown[0]}\"; there are {', '.join(QUESTIONS)}")
        tables, answers = ask(given.folder, given.run, given.questions)
    except Refused as refused:
        print(f"{NAME}: {refused}", file=sys.stderr)
        return 2
    if given.json:
        print(json.dumps({"custream_fleet": 1, "run": tables.run, "ranks": len(tables.ranks), "answers": {a.name: {"says": a.says, "rows": a.rows} for a in answers}}, indent=1))
    else:
        print(f"run {tables.run}: {len(tables.ranks)} ranks on {len(set(tables.hosts.values()))} hosts\n")
        print("\n\n".join(answer.text() for answer in answers))
    return 0
