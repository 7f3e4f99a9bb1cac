"""Two runs: what got slower or faster, and what was set up in another way. Ranks and clocks of the two have nothing to do with each other."""
from custream.fleet import questions
from custream.fleet.questions import MATTERS, Answer, middle_of, ms
from custream.fleet.relations import COLLECTIVE

KERNELS = f"SELECT name, count(*) AS n, CAST(sum(dur_ns) AS BIGINT) AS ns FROM work WHERE kind = 'kernel' AND NOT {COLLECTIVE} GROUP BY name"
COPIES = "SELECT coalesce(CAST(sum(dur_ns) AS BIGINT), 0) AS ns FROM work WHERE kind = 'gpu_memcpy' OR kind = 'gpu_memset'"


def per(tables):
    """What times are divided by: steps of all ranks, or ranks where no step is named."""
    named = questions.named_step(tables)
    if not named:
        return len(tables.ranks), "a rank"
    return tables.rows("SELECT count(*) AS n FROM ranges WHERE kind = 'range' AND name = ?", named)[0]["n"], "a step"


def measures(tables, together, by):
    """{(what, name): ns} of one run, each divided by `by`."""
    found = {}
    if questions.named_step(tables):
        found["step", "median of all ranks"] = float(questions.named_step_ns(tables))
    for row in tables.rows(KERNELS):
        found["kernel", row["name"]] = row["ns"] / by
    found["copies", "all"] = tables.rows(COPIES)[0]["ns"] / by
    tables.have("pauses"), tables.have("communicating"), tables.have("computing")
    for row in tables.rows(questions.IDLE_TIMES):
        key = "idle", ": ".join(word for word in (row["cause"], row["doing"], row["in_call"]) if word)
        found[key] = found.get(key, 0.0) + row["ns"] / by
    parts = tables.rows(questions.HIDDEN)
    if parts:
        found["communication", "hidden"] = sum(row["hidden"] for row in parts) / by
        found["communication", "not hidden"] = sum(row["ns"] - row["hidden"] for row in parts) / by
    for name, values in transfers(questions.collectives(tables, together).rows).items():
        found["a collective", name] = middle_of(values) * 1e6
    return found


def transfers(rows):
    found = {}
    for row in rows:
        found.setdefault(f"{row['kernels']}, {row['ranks']} ranks", []).append(row["median_ms"])
    return found


def against(before, after):
    """Each is (tables, together)."""
    bys = [per(tables) for tables, _ in (before, after)]
    one, other = (measures(tables, together, by) for (tables, together), (by, _) in zip((before, after), bys))
    rows = [{"what": key[0], "name": key[1], "before_ms": ms(one[key]) if key in one else None, "after_ms": ms(other[key]) if key in other else None,
             "change_ms": ms(other.get(key, 0.0) - one.get(key, 0.0)), "change": (other[key] - one[key]) / one[key] if one.get(key) and key in other else None} for key in {**one, **other}]
    rows.sort(key=lambda row: (-abs(row["change_ms"]), row["what"], row["name"]))
    whole = next((row for row in rows if row["what"] == "step"), None)
    says = [f"Times are of {bys[0][1]}." if bys[0][1] == bys[1][1] else f"Times before are of {bys[0][1]}, and after of {bys[1][1]}: they cannot be compared."]
    if whole and whole["change"] is not None:
        says.insert(0, f"A step takes {whole['after_ms']:.3f} ms, and took {whole['before_ms']:.3f}: {whole['change']:+.1%}.")
    scale = whole["before_ms"] if whole and whole["before_ms"] else sum(value for key, value in one.items() if key[0] in ("kernel", "copies", "idle")) / 1e6
    for row in [row for row in rows if row["what"] != "step" and abs(row["change_ms"]) > MATTERS * scale][:5]:
        said = "is new" if row["before_ms"] is None else "is gone" if row["after_ms"] is None else f"{row['before_ms']:.3f} ms before, {row['after_ms']:.3f} after"
        says.append(f"{row['what'].capitalize()} {questions.short_kernel(row['name'])}: {said} ({row['change_ms']:+.3f} ms).")
    return Answer("against", says + settings(before[0], after[0]), rows)


def settings(before, after):
    """What most ranks have, where that differs."""
    common = []
    for tables in (before, after):
        common.append({})
        for row in tables.rows(questions.SETTINGS, *questions.OWN):
            common[-1].setdefault(row["key"], row["text"])
    one, other = common
    return [f"{questions.setting_name(key)} was {one.get(key, 'not said')}, and is {other.get(key, 'not said')}." for key in sorted({**one, **other}) if one.get(key) != other.get(key)]
