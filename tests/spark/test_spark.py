"""`make check-spark`: each question has the same answer from Apache Spark as from DuckDB."""
import os
import pathlib
import sys

import pytest

from tests.fleet import Fleet, planted_of

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from custream import fleet  # noqa: E402

MASTER, RANKS = os.environ.get("SPARK_MASTER", "local[2]"), int(os.environ.get("SPARK_RANKS", "64"))


def same(one, other):
    """Numbers to the last digits, which depend on the order in which an engine adds."""
    if isinstance(one, float) and isinstance(other, float):
        return one == pytest.approx(other, rel=1e-9, abs=1e-9)
    return one == other


@pytest.mark.timeout(3000)
def test_spark_answers_as_duckdb(tmp_path):
    folder = Fleet(RANKS, 20, planted_of(RANKS)).write(tmp_path / "tables[1]*")
    before = Fleet(8, 20, planted_of(8)).write(tmp_path / "before")
    _, _, wanted = fleet.ask(folder, other=before)
    tables, _, found = fleet.ask(folder, engine="spark", master=MASTER, other=before)
    tables.engine.close()
    assert [answer.name for answer in found] == ["against", *fleet.QUESTIONS]
    for one, other in zip(wanted, found):
        assert one.says == other.says and len(one.rows) == len(other.rows), one.name
        for a, b in zip(one.rows, other.rows):
            assert a.keys() == b.keys() and all(same(a[key], b[key]) for key in a), (one.name, a, b)
    assert {row["rank"] for row in found[1].rows} == {5, RANKS - 3}
