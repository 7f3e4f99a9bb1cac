"""A fleet of traces of the simulated GPU (tests/fleet.py): from files to answers, and the clocks on their way into merged traces and tables."""
import collections
import json
import random
import re
import subprocess
import sys

import duckdb
import numpy as np
import pytest

from tests.cases.test_export import ROOT, export, rows, run_export
from tests.fleet import Fleet, Planted, template
from tests.handmade import COMMAND, custream
from tests.madetrace import report_of

sys.path.insert(0, str(ROOT / "python"))
from custream import fleet  # noqa: E402
from custream._native import Given  # noqa: E402
from custream.fleet import clocks, relations  # noqa: E402

MS = 1_000_000
RANKS, STEPS = 16, 20


@pytest.fixture(scope="module")
def made(once):
    """(the fleet, its traces, the folder with their tables, the file with the clocks that were found, the answers)"""
    return once("fleet", make)


def make(folder):
    one = Fleet(RANKS, STEPS, Planted(offsets={"node1": 3 * MS, "node2": -2 * MS}, drifts={"node1": 40_000, "node3": -25_000}, per_host=4, gathers=4, slow={2: 1.6},
                                      stragglers={5: ("kernels", 5, 14, 3 * MS), 13: ("call", 10, 19, 3 * MS)}, settings={8: {"metadata.options.CUSTREAM_GRAPH": "node"}}))
    paths = one.traces(folder / "traces", template(folder / "t.json", STEPS))
    export(folder / "tables", *paths)
    tables, together, answers = fleet.ask(folder / "tables")
    clocks.write(folder / "clocks.json", tables.run, together.clocks, tables.hosts, together.sets)
    return one, paths, folder / "tables", folder / "clocks.json", {answer.name: answer for answer in answers}


def test_the_traces_keep_the_rules(made):
    for path in made[1][::5]:
        done = custream("check", path)
        assert done.returncode == 0, done.stdout


def test_a_process_may_have_the_number_of_a_lane(tmp_path):
    """Where numbers of processes are small, each run may be that one."""
    text = template(tmp_path / "t.json", STEPS).read_text()
    pid, lane = re.search(r'"process_name","pid":([1-9]\d*)', text)[1], re.search(r'"thread_name","pid":0,"tid":(\d+)', text)[1]
    (tmp_path / "same.json").write_text(text.replace(f'"pid":{pid},"tid":{pid},', f'"pid":{lane},"tid":{lane},').replace(f'"pid":{pid},', f'"pid":{lane},'))
    path = Fleet(8, STEPS, Planted(per_host=4, gathers=4)).traces(tmp_path / "traces", tmp_path / "same.json")[0]
    assert custream("check", path).returncode == 0, custream("check", path).stdout


def test_all_that_is_planted_is_found_and_nothing_else(made):
    _, _, _, _, found = made
    assert {(row["rank"], row["class"]) for row in found["stragglers"].rows} == {(5, "kernels"), (13, "host")}
    assert all("blocked in cuStreamSynchronize" in row["cause"] for row in found["stragglers"].rows if row["rank"] == 13)
    (slow,) = found["collectives"].says
    assert "(ranks 8, 9, 10, 11)" in slow and slow.endswith("its links are slower.")
    assert {(row["setting"], row["value"], row["first_rank"], row["ranks"]) for row in found["settings"].rows} == {("CUSTREAM_GRAPH", "node", 8, 1)}
    assert [re.match(r"Rank (\d+)", line)[1] for line in found["kernels"].says] == ["5"]
    assert [match[1] for match in (re.match(r"Rank (\d+) .* blocked in cuStreamSynchronize", line) for line in found["idle"].says) if match] == ["13"] and len(found["idle"].says) <= 3
    assert not any(word in line for line in found["clocks"].says for word in ("jumps", "contradict", "match no other", "sets"))
    assert len(found["collectives"].rows) == 5 and all(row["hidden_share"] == 0 for row in found["hidden"].rows)


def test_clocks_are_within_the_error_that_is_said(made):
    one, _, _, path, _ = made
    known, moments = clocks.read(path), np.linspace(0, one.ends.max(), 9)
    for rank in range(1, RANKS):
        apart = known[rank].ahead(one.clock(rank, moments)) - known[0].ahead(one.clock(0, moments))
        planted = (one.clock(rank, moments) - one.clock(0, moments)).astype(float)
        assert np.abs(apart - planted).max() <= known[rank].error_ns + known[0].error_ns < 20_000


def ends(events, pid, base):
    """When the all-reduces of a GPU ended, ns since the epoch."""
    return np.array([base + round((e["ts"] + e["dur"]) * 1000) for e in events if e["ph"] == "X" and e["pid"] == pid and "AllReduce" in e["name"]])


def test_merged_by_these_clocks(made, tmp_path):
    """Collectives end at once; rows are in their order, and do not overlap by a nanosecond."""
    _, paths, _, path, _ = made
    files = [paths[i] for i in (0, 5, 9, 13)]
    done = custream("merge", "-o", tmp_path / "m.json", f"--clocks={path}", *files)
    assert (done.returncode, done.stderr) == (0, "") and custream("check", tmp_path / "m.json").returncode == 0
    merged = json.loads((tmp_path / "m.json").read_text())
    about = merged["metadata"]["merged"]
    of = [ends(merged["traceEvents"], entry["pids"]["0"], 0) for entry in about["files"]]
    assert about["align"] == "clocks" and not about["clock_error_unknown"] and np.ptp(of, axis=0).max() <= about["clock_error_ns"] + 2000 < 20_000
    custream("merge", "-o", tmp_path / "w.json", *files)
    wall = json.loads((tmp_path / "w.json").read_text())
    assert np.ptp([ends(wall["traceEvents"], entry["pids"]["0"], 0) for entry in wall["metadata"]["merged"]["files"]], axis=0).min() > 4 * MS
    done = custream("merge", "-o", tmp_path / "part.json", f"--clocks={path}", "--window=0.1,0.15", *files)
    assert done.returncode == 0 and custream("check", tmp_path / "part.json").returncode == 0
    begin = min(e["ts"] for e in merged["traceEvents"] if "ts" in e)
    wanted = {(e["name"], e["pid"], e["ts"], e["dur"]) for e in merged["traceEvents"] if e.get("cat") == "kernel" and e["ts"] + e["dur"] > begin + 100_000 and e["ts"] < begin + 150_000}
    assert wanted == {(e["name"], e["pid"], e["ts"], e["dur"]) for e in json.loads((tmp_path / "part.json").read_text())["traceEvents"] if e.get("cat") == "kernel"}


def test_exported_by_these_clocks(made, tmp_path):
    """As merge has them, to the nanosecond; the fleet's questions find little that is left."""
    _, paths, _, path, _ = made
    export(tmp_path / "t", f"--clocks={path}", *paths)
    found = collections.defaultdict(list)
    for row in rows(tmp_path / "t", "work", "rank, start_ns + dur_ns AS done", "name LIKE '%AllReduce%' ORDER BY done"):
        found[int(row["rank"])].append(row["done"])
    assert np.ptp([found[rank] for rank in range(RANKS)], axis=0).max() < 10_000
    custream("merge", "-o", tmp_path / "m.json", f"--clocks={path}", paths[0], paths[6])
    merged = json.loads((tmp_path / "m.json").read_text())
    for entry in merged["metadata"]["merged"]["files"]:
        assert ends(merged["traceEvents"], entry["pids"]["0"], merged["baseTimeNanoseconds"]).tolist() == found[entry["rank"]]
    (about,) = rows(tmp_path / "t", "files", "offset_ns, drift_ppb, offset_error_ns", "rank = '4'")
    assert about["offset_ns"] == round(clocks.read(path)[4].offset_ns) and about["offset_error_ns"] > 0
    tables, _, (answer,) = fleet.ask(tmp_path / "t", None, ["clocks"])
    assert tables.moved() and any("were found before" in line for line in answer.says) and all(abs(row["offset_us"]) < 10 for row in answer.rows)


def test_clocks_that_cannot_serve(made, tmp_path):
    _, paths, tables, path, _ = made
    (tmp_path / "bad.json").write_text("{}")
    lone = json.loads(path.read_text())
    lone["clocks"] = lone["clocks"][:1]
    (tmp_path / "lone.json").write_text(json.dumps(lone))
    for key, far in (("at_ns", 1e300), ("jumps", [[0, 1e300]]), ("drift_ppb", 1e9)):
        (tmp_path / f"{key}.json").write_text(json.dumps({**lone, "clocks": [{**lone["clocks"][0], "rank": 3, key: far}]}))
    for given, words in (*((tmp_path / f"{key}.json", "has no clocks") for key in ("at_ns", "jumps", "drift_ppb")), (tmp_path / "bad.json", "has no clocks"), (tmp_path / "none.json", "No such file"), (tmp_path / "lone.json", "--clocks says nothing of rank 3")):
        done = custream("merge", "-o", tmp_path / "m.json", f"--clocks={given}", paths[3])
        assert done.returncode == 2 and words in done.stderr and done.stderr.count("\n") == 1 and not (tmp_path / "m.json").exists()
        status, _, complaints = run_export("--parquet", tmp_path / "t", f"--clocks={given}", paths[3])
        assert status == 2 and words in complaints[0] and len(complaints) == 1
    done = custream("merge", "-o", tmp_path / "m.json", f"--clocks={path}", "--align=start", paths[3])
    assert done.returncode == 2 and "one or the other" in done.stderr
    with pytest.raises(fleet.Refused, match="have found|earlier --clocks"):
        export(tmp_path / "moved", f"--clocks={path}", paths[0])
        fleet.answer(Given(clocks=tmp_path / "again.json"), tmp_path / "moved", [])


def test_a_clock_that_was_set_keeps_the_order(tmp_path):
    """Forward: what it passed over is one moment. Also in C, where merge has the same."""
    clock = clocks.Clock(0, offset_ns=500.0, drift_ppb=20_000.0, at_ns=10**18, jumps=((10**18 + 7 * MS, 5 * MS), (10**18 + 20 * MS, -2 * MS)))
    times = 10**18 + np.arange(0, 40 * MS, 9973)
    moved = times - np.rint(clock.ahead(times)).astype(np.int64)
    assert (np.diff(moved) >= 0).all() and moved[-1] - times[-1] == pytest.approx(-3 * MS - 500 - 800, abs=2)


# ---- Formats ----

def test_each_format_gives_the_same_tables(made, tmp_path):
    names = ["json", "json.gz", "pftrace", "pftrace.gz"]
    paths = [tmp_path / f"of-{name.replace('.', '-')}.{name}" for name in names]
    paths[0].write_bytes(made[1][3].read_bytes())
    for path in paths[1:]:
        subprocess.run([COMMAND, "convert", paths[0], path], check=True, capture_output=True)
    for path in paths:
        export(tmp_path / path.name.replace(".", "-"), path)
    for table in ("work", "calls", "ranges", "waits", "streams"):
        found = [collections.Counter(tuple(sorted((key, str(value)) for key, value in row.items() if key != "file")) for row in rows(tmp_path / path.name.replace(".", "-"), table))
                 for path in paths]
        assert found[0] and all(of == found[0] for of in found)


# ---- The classes of the report ----

TRACES = ["demo.json.gz", "timeline.json.gz", "streams.pftrace.gz", "captures.pftrace.gz", "nodes.json.gz", "events.json.gz", "devices.pftrace.gz", "waits.json.gz", "losses.json.gz",
          "window.json.gz", "rank0.json.gz", "sample.json.gz", "host.json.gz", "kineto_2022.json.gz", "kineto_2024.json"]

IDLE_NEVER = "sample.json.gz", "host.json.gz", "window.json.gz", "losses.json.gz", "events.json.gz", "devices.pftrace.gz"


@pytest.mark.parametrize("name", TRACES)
def test_idle_is_what_the_report_says(root, tmp_path, name):
    """To the nanosecond, of each device: each cause, and the host's part by what it did and in which call. The report's causes are the only ones."""
    path = root / "tests/golden/traces" / name
    export(tmp_path / "out", path)
    found, wanted, said = collections.Counter(), collections.Counter(), report_of(path)
    for row in rows(tmp_path / "out", "idle"):
        found[row["device"], row["cause"], row["why"]] += row["dur_ns"]
        if row["cause"] == "host":
            found[row["device"], row["doing"], row["in_call"] or ""] += row["dur_ns"]
    for row in said["idle"]:
        wanted[row["device"], row["cause"], row["why"]] += row["idle_ns"]
    for row in said["idle_host"]:
        wanted[row["device"], row["doing"], row["call"]] += row["idle_ns"]
    assert found == wanted
    assert found or name in IDLE_NEVER


# ---- What all answers are made of ----

def covered(pieces, until):
    line = np.zeros(until, bool)
    for a, b in pieces:
        line[a:b] = True
    return line


def test_islands_and_stretches():
    """Against a line of places that are each covered or not."""
    dice = random.Random(3)

    def values(pieces):
        return "SELECT * FROM (VALUES " + ", ".join(f"({key}, {a}, {b})" for key, a, b in pieces) + ") v(key, since, until)"
    for _ in range(20):
        made_up = [[(key, a, a + dice.randrange(1, 12)) for key in (1, 2) for a in (dice.randrange(180) for _ in range(dice.randrange(1, 20)))] for _ in range(2)]
        one, other = (relations.islands(values(pieces), "key") for pieces in made_up)
        cut = duckdb.sql(relations.stretches(one, other, "key")).fetchall()
        for key in (1, 2):
            lines = [covered([(a, b) for k, a, b in pieces if k == key], 200) for pieces in made_up]
            islands = sorted((a, b) for k, a, b in duckdb.sql(one).fetchall() if k == key)
            assert (covered(islands, 200) == lines[0]).all() and all(b < c for (_, b), (c, _) in zip(islands, islands[1:]))
            assert (covered([(since, until) for k, since, until, _, _ in cut if k == key], 200) == lines[0]).all()
            assert (covered([(since, until) for k, since, until, _, of in cut if k == key and of is not None], 200) == lines[0] & lines[1]).all()


# ---- The page, and two runs ----

def test_the_page_needs_nothing_else(made, tmp_path):
    _, _, tables, _, found = made
    fleet.answer(Given(html=tmp_path / "p.html", json=True), tables, [])
    text = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert text.count("<svg") == 7 and not re.search(r"<(?:script|link|img)\b|url\((?!#)|@import", text)
    assert not re.search(r"(?:src|href)=\"(?!#|data:)", text)
    for answer in found.values():
        assert f'<section id="{answer.name}">' in text and all(line.replace("'", "&#x27;").replace('"', "&quot;") in text for line in answer.says)


def test_two_runs(made, tmp_path):
    """Each difference is named, in the time of a step."""
    one, paths, tables, _, _ = made
    other = Fleet(RANKS, STEPS, Planted(per_host=4, gathers=4, stragglers={rank: ("copies", 0, STEPS, 2 * MS) for rank in range(RANKS)},
                                        settings={rank: {"metadata.options.CUSTREAM_COUNTERS": "gpu"} for rank in range(RANKS)}), seed=1)
    export(tmp_path / "t", *other.traces(tmp_path / "traces", paths[0].parent.parent / "t.json"))  # the same template: what differs is planted
    _, _, (answer, *_) = fleet.ask(tmp_path / "t", wanted=["settings"], other=tables)
    changes = {(row["what"], row["name"]): row for row in answer.rows}
    assert answer.name == "against" and changes["copies", "all"]["change_ms"] == pytest.approx(2, abs=0.1) and changes["idle", "host: blocked: cuStreamSynchronize"]["change_ms"] < 0
    assert answer.says[0].startswith("A step takes ") and any(line.startswith("Copies all: ") for line in answer.says)
    assert any(line == "CUSTREAM_COUNTERS was off, and is gpu." for line in answer.says)
    _, _, (same, *_) = fleet.ask(tables, wanted=["settings"], other=tables)
    assert len(same.says) == 2 and all(abs(row["change_ms"]) < 1e-9 for row in same.rows)
