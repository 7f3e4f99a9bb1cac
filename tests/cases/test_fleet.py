"""`custream fleet`: what is planted in a fleet is found, and nothing else (docs/fleet.md). The fleets are made up by tests/fleet.py."""
import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from tests.cases.test_export import ROOT, export
from tests.fleet import COMM, COMPUTE, Fleet, Planted
from tests.handmade import COMMAND

sys.path.insert(0, str(ROOT / "python"))
from custream import fleet  # noqa: E402
from custream.fleet import clocks as fleet_clocks  # noqa: E402
from custream.fleet import questions  # noqa: E402

MS = 1_000_000


def answers(folder, *questions, run=None):
    return {answer.name: answer for answer in fleet.ask(folder, run, questions)[2]}


def made(tmp_path, ranks=16, steps=60, seed=1, **planted):
    return Fleet(ranks, steps, Planted(**planted), seed).write(tmp_path / "tables")


# ---- Nothing is invented ----

@pytest.mark.parametrize("seed", [1, 2])
def test_a_clean_fleet(tmp_path, seed):
    """With clocks that differ as those of hosts do."""
    folder = made(tmp_path, seed=seed, offsets={"node1": 3 * MS}, drifts={"node1": 20_000})
    found = answers(folder)
    assert not found["stragglers"].rows and "No rank makes the others wait" in found["stragglers"].says[0]
    assert found["kernels"].says == ["No kernel's spread across ranks costs a rank a twentieth of its kernels' time."] and len(found["idle"].says) == 1
    assert not found["settings"].rows and found["settings"].says == ["All ranks have the same settings and versions."]
    assert not any("jumps" in line or "contradict" in line or "match no other" in line for line in found["clocks"].says)
    median = {row["rank"]: row["median_ms"] for row in found["steps"].rows}
    assert len(median) == 16 and all(abs(ms - median[0]) < 0.01 for ms in median.values())


# ---- Stragglers ----

@pytest.mark.parametrize("cause, words", [("kernels", "its kernels take longer"), ("copies", "its copies take longer"), ("host", "its GPU waits for the host's own code"),
                                          ("call", "its host is blocked in cuStreamSynchronize")])
def test_a_straggler_and_its_cause(tmp_path, cause, words):
    """Also across hosts whose clocks differ by more than it is late."""
    folder = made(tmp_path, stragglers={11: (cause, 20, 39, 3 * MS)}, offsets={"node0": 50 * MS, "node1": -7 * MS}, drifts={"node1": -30_000})
    (row,) = answers(folder)["stragglers"].rows
    assert (row["rank"], row["host"], row["late"], row["of"]) == (11, "node1", 20, 60) and row["by_ms"] == pytest.approx(3, abs=0.1)
    late = re.fullmatch(rf"{words} \((\d+\.\d+) ms a step\)", row["cause"])
    assert late and float(late[1]) == pytest.approx(3, abs=0.3), row["cause"]
    assert row["others_waited_ms"] == pytest.approx(15 * 20 * 3.15, rel=0.1)


def test_of_two_ranks_one_is_late(tmp_path):
    """By all that the two differ, and not by half of it."""
    found = answers(made(tmp_path, ranks=2, stragglers={1: ("kernels", 20, 49, 4 * MS)}), "stragglers", "kernels")
    (row,) = found["stragglers"].rows
    assert (row["rank"], row["late"], row["class"]) == (1, 30, "kernels") and row["by_ms"] == pytest.approx(4, abs=0.2)
    assert row["others_waited_ms"] == pytest.approx(30 * 4, rel=0.05)
    more = re.fullmatch(r"Rank 1 \(node0\) spends \d+\.\d ms in kernels, (\d+\.\d) ms more than the middle one\.", found["kernels"].says[0])
    assert more and float(more[1]) == pytest.approx(30 * 4, rel=0.1), found["kernels"].says


def test_two_stragglers(tmp_path):
    folder = made(tmp_path, stragglers={2: ("kernels", 5, 9, 6 * MS), 13: ("copies", 30, 49, 2 * MS)})
    found = answers(folder, "stragglers")["stragglers"]
    assert {(row["rank"], row["late"], row["cause"].split(" (")[0]) for row in found.rows} == {(2, 5, "its kernels take longer"), (13, 20, "its copies take longer")}
    assert found.rows[0]["others_waited_ms"] > found.rows[1]["others_waited_ms"] and found.says[0].startswith(f"Rank {found.rows[0]['rank']} ")


def test_several_communicators(tmp_path):
    """Of neighbours: each waits for its own straggler only."""
    folder = made(tmp_path, groups=4, stragglers={1: ("kernels", 10, 29, 4 * MS), 14: ("host", 10, 29, 4 * MS)})
    found = answers(folder, "stragglers")["stragglers"]
    assert {(row["rank"], row["late"]) for row in found.rows} == {(1, 20), (14, 20)}
    assert len({row["communicator"] for row in found.rows}) == 2 and all(row["others_waited_ms"] == pytest.approx(3 * 20 * 4, rel=0.15) for row in found.rows)


def test_who_waits_elsewhere_is_not_accused(tmp_path):
    """A rank is late at its neighbours' all-gathers, so they all are late at the all-reduce, in an order of chance: it is that rank alone. And neighbours with slow links are no stragglers by
    themselves: they communicate for longer."""
    folder = made(tmp_path, gathers=4, stragglers={6: ("host", 10, 29, 3 * MS)}, slow={3: 1.8})
    found = answers(folder, "stragglers", "collectives")
    assert {row["rank"] for row in found["stragglers"].rows} == {6} and {row["class"] for row in found["stragglers"].rows} == {"host"}
    (said,) = found["collectives"].says
    assert re.match(r"Communicator \d+ \(ranks 12, 13, 14, 15\) takes 1\.\d+ ms for a collective once all are there, and 0\.6\d+ is the middle of 4 like it", said)


def test_communicators_that_share_a_stream(tmp_path):
    """Told apart by what their kernels are called and how large they are: nobody is accused for those of others."""
    _, together, (answer,) = fleet.ask(made(tmp_path, gathers=4, one_stream=True, offsets={"node1": 3 * MS}, stragglers={6: ("kernels", 10, 29, 3 * MS)}), None, ["stragglers"])
    assert sorted(sorted(s.rank for s, _ in group) for group in together.groups) == [[0, 1, 2, 3], list(range(16)), [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]
    assert {row["rank"] for row in answer.rows} == {6} and not together.alone


def test_communicators_that_end_nearly_together():
    """All begin a step at once, so collectives of different communicators end some microseconds apart, and those of one within one."""
    one = Fleet(64, 20, Planted(gathers=16), seed=3)
    groups, alone = fleet_clocks.communicators([fleet_clocks.Sequence(rank, np.zeros(20, int), one.gathers[rank], one.gathered[rank], np.zeros(20, int)) for rank in range(64)])
    assert not alone and sorted(sorted(s.rank for s, _ in group) for group in groups) == [list(range(4 * i, 4 * i + 4)) for i in range(16)]


def test_strangers_among_collectives():
    """Of the same name, few of them: what does not end with the others is another communicator's."""
    dice = np.random.default_rng(1)
    step = np.cumsum(dice.integers(9 * MS, 11 * MS, 120))
    strange = np.arange(120) % 6 == 5
    sequences = []
    for rank in range(8):
        ends = step + np.where(strange, (rank // 2) * MS, 0) + dice.integers(0, 2000, 120)
        sequences.append(fleet_clocks.Sequence(rank, np.zeros(120, int), ends - MS, ends, np.zeros(120, int)))
    groups, alone = fleet_clocks.communicators(sequences)
    assert not alone and sorted((len(group), len(group[0][0].names)) for group in groups)[-1] == (8, 100)
    assert all(sum(len(s.names) for group in groups for s, _ in group if s.rank == rank) == 120 for rank in range(8))


def test_communicators_that_share_no_rank(tmp_path):
    """Each has clocks of its own, and nobody is late for what they are off."""
    found = answers(made(tmp_path, groups=2, per_host=4, offsets={"node1": 20 * MS, "node3": 20 * MS}))
    assert not found["stragglers"].rows and any("2 sets" in line for line in found["clocks"].says)
    offsets = {row["rank"]: row["offset_us"] for row in found["clocks"].rows}
    assert all(abs(offsets[rank + 4] - offsets[rank] - 20000) < 10 for rank in (0, 1, 2, 3, 8, 9, 10, 11))


def test_communicators_that_a_host_connects(tmp_path):
    """Its processes have one clock."""
    found = answers(made(tmp_path, groups=2, per_host=6, offsets={"node0": 5 * MS, "node2": -9 * MS}, stragglers={14: ("kernels", 10, 29, 4 * MS)}))
    offsets = {row["rank"]: row["offset_us"] for row in found["clocks"].rows}
    assert not any("sets" in line for line in found["clocks"].says) and abs(offsets[0] - offsets[15] - 14000) < 20
    assert [row["rank"] for row in found["stragglers"].rows] == [14]


@pytest.mark.parametrize("cause, words", [("kernels", "its kernels take longer"), ("host", "its GPU waits for the host's own code")])
def test_work_that_overlaps(tmp_path, cause, words):
    """A second stream computes at the same time, and beyond the collective's end: that is neither more kernels nor more idle time."""
    folder = made(tmp_path, stragglers={11: (cause, 20, 39, 3 * MS)}, beside=True)
    (row,) = answers(folder, "stragglers")["stragglers"].rows
    assert (row["rank"], row["late"]) == (11, 20) and row["cause"].startswith(words)


def test_ranks_of_a_host_that_contradict_each_other(tmp_path):
    """One clock cannot be two."""
    one = Fleet(8, 60, Planted(offsets={"node1": MS}, per_host=4))
    host = one.host
    folder = one.write(tmp_path / "tables")
    for table in ("work", "calls", "ranges", "idle", "files", "facts"):
        (folder / table / "run=job" / f"host={host(7)}" / "rank=7").rename(folder / table / "run=job" / f"host={host(0)}" / "rank=7")
    (said,) = [line for line in answers(folder, "clocks")["clocks"].says if "contradict" in line]
    apart = re.fullmatch(r"Ranks of node0 contradict each other by ([\d,.]+) us, and have one clock: look at their jumps.", said)
    assert float(apart[1].replace(",", "")) == pytest.approx(1000, abs=10)


def test_many_communicators(tmp_path):
    """Of the same shape, which have nothing to do with each other: each finds its own ranks."""
    _, together, _ = fleet.ask(made(tmp_path, ranks=96, steps=50, groups=24, per_host=4), None, ["settings"])
    assert sorted(sorted(s.rank for s, _ in group) for group in together.groups) == [[4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3] for i in range(24)]
    assert together.sets == 24 and not any(clock.jumps for clock in together.clocks.values()) and all(abs(clock.offset_ns) < 3000 for clock in together.clocks.values())


def test_what_is_not_looked_at(tmp_path):
    """Broadcasts and sends end on each rank at a time of its own."""
    folder = made(tmp_path, ranks=4, steps=20, broadcasts=True)
    found = answers(folder)
    assert not found["stragglers"].rows and any(line.startswith("80 NCCL kernels that do not end") for line in found["stragglers"].says)


def test_traces_that_begin_late(tmp_path):
    """Their first collective is a later one of the others'."""
    folder = made(tmp_path, late={3: 7, 9: 1}, offsets={"node1": 20 * MS}, stragglers={9: ("kernels", 20, 29, 3 * MS)})
    (row,) = answers(folder, "stragglers")["stragglers"].rows
    assert (row["rank"], row["late"], row["of"]) == (9, 10, 53)


# ---- Clocks ----

@pytest.mark.parametrize("seed", range(4))
def test_clocks(tmp_path, seed):
    """Offset and drift of each host, against another one, are within the error that is said."""
    dice = np.random.default_rng(seed)
    offsets = {f"node{i}": int(dice.integers(-20 * MS, 20 * MS)) for i in range(4)}
    drifts = {f"node{i}": int(dice.integers(-50_000, 50_000)) for i in range(4)}
    one = Fleet(16, 200, Planted(offsets=offsets, drifts=drifts, per_host=4), seed)
    _, together, (answer,) = fleet.ask(one.write(tmp_path / "tables"), None, ["clocks"])
    clocks = together.clocks
    moments = np.linspace(0, one.ends.max(), 9)
    for rank in range(1, 16):
        ahead = [clocks[r].ahead(one.clock(r, moments)) for r in (rank, 0)]
        planted = [offsets[one.host(r)] + drifts[one.host(r)] * 1e-9 * moments for r in (rank, 0)]
        assert np.abs((ahead[0] - ahead[1]) - (planted[0] - planted[1])).max() <= clocks[rank].error_ns + clocks[0].error_ns
    assert all(1 < row["error_us"] < 20 for row in answer.rows) and "16 of 16 ranks are related" in answer.says[0]


def test_a_clock_that_jumps(tmp_path):
    """Said, with the moment; and nobody is late for it."""
    one = Fleet(16, 80, Planted(jumps={"node1": (40, 5 * MS)}, per_host=8))
    _, _, found = fleet.ask(one.write(tmp_path / "tables"))
    found = {answer.name: answer for answer in found}
    said = [re.match(r"The clock of rank (\d+) \(node1\) jumps by ([\d.,]+) us at (\d+\.\d+) s", line) for line in found["clocks"].says]
    said = {int(match[1]): (float(match[2].replace(",", "")), float(match[3])) for match in said if match}
    assert set(said) == set(range(8, 16)) and all(size == pytest.approx(5000, abs=10) for size, _ in said.values())
    assert all(abs(moment - one.clock(8, one.begins[0, 40:41])[0] / 1e9) < 0.02 for _, moment in said.values())
    assert not found["stragglers"].rows


def test_wild_collectives_do_not_move_a_clock():
    x = np.arange(100) * 1e7
    y = 5e6 + 2e-5 * x + np.random.default_rng(1).normal(0, 1000, 100)
    y[[3, 50, 51, 77]] += 4e8
    line = fleet_clocks.fit(x, x + y)
    assert not line.jumps and abs(line.offset - 5e6) < 3000 and abs(line.slope - 2e-5) < 5e-6 and line.residual < 2000


def test_without_collectives(tmp_path):
    found = answers(made(tmp_path, collectives=False, ranks=4, steps=20))
    assert "No collectives relate" in found["clocks"].says[0] and not found["stragglers"].rows and "no collectives" in found["stragglers"].says[0]
    assert len(found["steps"].rows) == 4


def test_one_rank_alone(tmp_path):
    found = answers(made(tmp_path, ranks=1, steps=20))
    assert not found["stragglers"].rows and "No collectives relate" in found["clocks"].says[0] and "1 streams with collectives" not in fleet.text(found["clocks"])


def test_a_rank_that_is_missing(tmp_path):
    folder = made(tmp_path, stragglers={3: ("kernels", 10, 29, 3 * MS)})
    for table in ("work", "calls", "ranges", "idle", "files", "facts"):
        shutil.rmtree(folder / table / "run=job" / "host=node0" / "rank=3")
    found = answers(folder)
    assert len(found["steps"].rows) == 15 and not found["stragglers"].rows  # nobody sees it, and no other is accused


# ---- Settings ----

def test_settings_that_differ(tmp_path):
    folder = made(tmp_path, settings={6: {"metadata.options.CUSTREAM_GPU": "events"}, 7: {"metadata.tool": "custream 0.0.9"}, 8: {"metadata.tool": "custream 0.0.9"}})
    rows = {(row["setting"], row["value"], row["ranks"], row["first_rank"]) for row in answers(folder, "settings")["settings"].rows}
    assert rows == {("CUSTREAM_GPU", "events", 1, 6), ("tool", "custream 0.0.9", 2, 7)}


# ---- Real traces ----

def test_tables_of_real_traces(run_app, tmp_path):
    """What `export` wrote of ranks without collectives: they are compared by their settings and ranges."""
    paths = [run_app(["demo"], trace=tmp_path / f"r{rank}.json", env={"RANK": rank, "WORLD_SIZE": 2, "SLURM_JOB_ID": "7", "CUSTREAM_NVTX": "off" if rank else "on"}).check().trace
             for rank in range(2)]
    export(tmp_path / "tables", *paths)
    tables, _, found = fleet.ask(tmp_path / "tables")
    assert (tables.run, tables.ranks) == ("7", [0, 1]) and len(found) == len(questions.QUESTIONS)
    assert ("CUSTREAM_NVTX", 1) in {(row["setting"], row["ranks"]) for row in found[list(questions.QUESTIONS).index("settings")].rows}


# ---- The command ----

def run_fleet(*words):
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "CUSTREAM_PYTHON": sys.executable}
    done = subprocess.run([COMMAND, "fleet", *map(str, words)], capture_output=True, text=True, timeout=100, check=False, env=env)
    return done.returncode, done.stdout, done.stderr.splitlines()


def test_text_and_json_agree(tmp_path):
    folder = made(tmp_path, stragglers={11: ("kernels", 20, 39, 3 * MS)})
    status, text, complaints = run_fleet(folder)
    assert (status, complaints) == (0, []) and text.startswith("run job: 16 ranks on 2 hosts\n")
    status, said, _ = run_fleet("--json", folder)
    data = json.loads(said)
    assert status == 0 and (data["run"], data["ranks"], list(data["answers"])) == ("job", 16, list(questions.QUESTIONS))
    for name, answer in data["answers"].items():
        assert f"\n{name.upper()}\n" in text and all(line in text for line in answer["says"])
    one = json.loads(run_fleet("--json", folder, "stragglers")[1])["answers"]
    assert one == {"stragglers": data["answers"]["stragglers"]}


@pytest.mark.parametrize("missing", ["duckdb", "numpy", "pyarrow"])
def test_without_what_answers(tmp_path, monkeypatch, missing):
    folder = made(tmp_path, ranks=2, steps=20)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(fleet.Refused, match=f'.*{missing}.*: install the wheel with its extra "fleet"'):
        fleet.ask(folder)


def test_without_spark(tmp_path, monkeypatch):
    folder = made(tmp_path, ranks=2, steps=20)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(fleet.Refused, match='.*pyspark.*: install the wheel with its extra "spark"'):
        fleet.ask(folder, engine="spark")
    with pytest.raises(fleet.Refused, match="--engine=flink: it is duckdb or spark"):
        fleet.ask(folder, engine="flink")
    with pytest.raises(fleet.Refused, match='.*pyspark'):
        fleet.ask(folder, master="local[2]")


def test_several_runs(tmp_path):
    folder = made(tmp_path, ranks=2, steps=20)
    for table in ("work", "calls", "ranges", "idle", "files", "facts"):
        shutil.copytree(folder / table / "run=job", folder / table / "run=other")
    status, _, complaints = run_fleet(folder)
    assert status == 2 and complaints == [f"custream fleet: {folder}: has 2 runs; --run=NAME says which: job, other"]
    assert run_fleet("--run=other", folder)[1].startswith("run other: 2 ranks")
    assert run_fleet("--run=third", folder)[2] == [f"custream fleet: {folder}: has no run third; there is job, other"]


def test_bad_usage(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "nothing").mkdir()
    (tmp_path / "nothing" / "schema.json").write_text('{"version": 1}')
    (tmp_path / "newer").mkdir()
    (tmp_path / "newer" / "schema.json").write_text('{"version": 3}')
    for words, line in (([], r"which folder\? 'custream help fleet' says more"), ([tmp_path / "empty"], ".*empty: no schema.json: .*"), ([tmp_path / "absent"], ".*absent: no schema.json: .*"),
                        ([tmp_path / "nothing"], ".*nothing: no traces were exported to it"), ([tmp_path / "newer"], ".*newer: has tables of version 3, and this reads versions 1 to 2"),
                        ([tmp_path / "nothing", "why"], 'there is no question "why"; \'custream help fleet\' lists them'), ([tmp_path / "nothing", "idel"], '.*; did you mean "idle".'), (["--jason", tmp_path], ".*--json.*")):
        status, said, complaints = run_fleet(*words)
        assert (status, said) == (2, "") and len(complaints) == 1 and re.fullmatch(f"custream fleet: {line}", complaints[0]), complaints


def test_the_page_shows_what_the_command_says(root, tmp_path):
    """Its example is that of a fleet that can be made again."""
    page = (root / "docs/fleet.md").read_text(encoding="utf-8")
    shown = re.search(r"^```\n(run job.*?)^```", page, re.M | re.S)[1]
    folder = made(tmp_path, steps=100, stragglers={5: ("kernels", 20, 60, 3 * MS)}, offsets={"node1": 2 * MS}, settings={9: {"metadata.options.CUSTREAM_GPU": "events"}})
    assert run_fleet(folder, "stragglers", "clocks", "settings")[1] == shown
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.M)) >= set(questions.QUESTIONS)


def test_the_fleets_are_what_they_say():
    """The generator itself: all of a communicator end together, and a straggler is what the others wait for."""
    one = Fleet(8, 30, Planted(stragglers={4: ("kernels", 10, 19, 5 * MS)}))
    assert np.ptp(one.ends, axis=0).max() <= 2000 and (one.arrives[:, 10:20].argmax(axis=0) == 4).all()
    assert np.median(one.ends[0] - one.arrives.max(axis=0)) == pytest.approx(COMM, rel=0.06) and np.median(one.compute) == pytest.approx(COMPUTE, rel=0.01)
