"""The tables of one run, in an engine that takes SQL: DuckDB in this process, or Apache Spark.

Every question is written once, in SQL that both take. An engine's table() answers a query, keep() gives an answer a name,
put() gives rows of this process one. What is theirs alone is how they read files, and stands here.
"""
import glob
import json
import re
import urllib.parse

from custream._arrow import numbers
from custream.export import escaped

NAMES = {"duckdb": ("duckdb", "numpy", "pyarrow"), "spark": ("pyspark", "pandas", "numpy", "pyarrow")}
EXTRAS = {"duckdb": "fleet", "spark": "spark"}
VERSIONS = 1, 2  # 1 has no idle times

# The columns that questions ask for. What no trace had rows for is an empty table.
COLUMNS = {
    "files": {"file": "STRING", "version": "STRING", "complete": "BIGINT", "gpu_sample": "BIGINT", "offset_ns": "BIGINT"},
    "facts": {"file": "STRING", "key": "STRING", "text": "STRING"},
    "work": {"file": "STRING", "start_ns": "BIGINT", "dur_ns": "BIGINT", "kind": "STRING", "name": "STRING", "device": "INT", "stream": "INT", "correlation": "BIGINT",
             "grid_x": "INT"},
    "ranges": {"file": "STRING", "start_ns": "BIGINT", "dur_ns": "BIGINT", "kind": "STRING", "name": "STRING"},
    "idle": {"file": "STRING", "start_ns": "BIGINT", "dur_ns": "BIGINT", "device": "INT", "cause": "STRING", "why": "STRING", "doing": "STRING", "in_call": "STRING"},
    "losses": {"file": "STRING", "calls": "BIGINT", "gpu_work": "BIGINT"},
}


class Refused(Exception):
    """One line for the user."""


def quoted(text):
    return "'" + str(text).replace("'", "''") + "'"


class DuckDB:
    def __init__(self, _master):
        import duckdb
        self.connection = duckdb.connect()
        self.connection.execute("SET enable_progress_bar = false")  # it goes to standard output

    def read(self, name, folder, columns):
        """A view of the files in `folder`/host=*/rank=*."""
        files = quoted(glob.escape(str(folder)) + "/**/*.parquet")
        wanted = ", ".join(["CAST(rank AS INTEGER) AS rank", "CAST(host AS VARCHAR) AS host", *columns])
        types = "{'rank': INTEGER, 'host': VARCHAR}"
        # A column that all files lack, as those of an earlier version do, is null.
        have = {row[0] for row in self.connection.execute(f"DESCRIBE SELECT * FROM read_parquet({files}, union_by_name = true)").fetchall()}
        lacking = "".join(f", CAST(NULL AS {kind}) AS {column}" for column, kind in columns.items() if column not in have)
        source = f"read_parquet({files}, hive_partitioning = true, hive_types = {types}, union_by_name = true)"
        self.connection.execute(f"CREATE VIEW {name} AS SELECT {wanted} FROM (SELECT *{lacking} FROM {source})")

    def empty(self, name, columns):
        self.connection.execute(f"CREATE VIEW {name} AS SELECT CAST(NULL AS INT) AS rank, CAST(NULL AS STRING) AS host, "
                                f"{', '.join(f'CAST(NULL AS {kind}) AS {column}' for column, kind in columns.items())} WHERE false")

    def table(self, query, *values):
        return self.connection.sql(query, params=list(values)).to_arrow_table()

    def keep(self, name, query):
        self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {query}")

    def put(self, name, rows):
        self.connection.register("given", rows)
        self.keep(name, "SELECT * FROM given")
        self.connection.unregister("given")

    def close(self):
        self.connection.close()


class Spark:
    def __init__(self, master):
        from pyspark.sql import SparkSession
        maker = SparkSession.builder.appName("custream fleet").config("spark.ui.showConsoleProgress", "false")
        if master:
            maker = maker.master(master)
        try:
            self.session = maker.getOrCreate().newSession()  # names of one run are not those of another
        except Exception as error:  # its own, the JVM's, or none of both where there is no Java
            raise Refused(f"Spark does not start: {str(error).splitlines()[0]}; it needs Java (Debian: openjdk-17-jre-headless)") from None
        self.session.sparkContext.setLogLevel("ERROR")

    def read(self, name, folder, columns):
        kinds = ", ".join(f"{column} {kind}" for column, kind in {**columns, "host": "STRING", "rank": "INT"}.items())
        files = self.session.read.schema(kinds).option("basePath", str(folder)).parquet(re.sub(r"([][{}*?\\])", r"\\\1", str(folder)))  # a pattern, but for the base
        files.select("rank", "host", *columns).createOrReplaceTempView(name)

    def empty(self, name, columns):
        kinds = ", ".join(f"{column} {kind}" for column, kind in {"rank": "INT", "host": "STRING", **columns}.items())
        self.session.createDataFrame([], kinds).createOrReplaceTempView(name)

    def table(self, query, *values):
        return self.session.sql(query, args=list(values)).toArrow()

    def keep(self, name, query):
        self.session.sql(query).persist().createOrReplaceTempView(name)

    def put(self, name, rows):
        self.session.createDataFrame(rows).createOrReplaceTempView(name)

    def close(self):
        self.session.stop()


ENGINES = {"duckdb": DuckDB, "spark": Spark}


def needed(engine):
    """What is missing is said at once, and not when an answer wants it."""
    import importlib
    if engine not in ENGINES:
        raise Refused(f"--engine={engine}: it is {' or '.join(ENGINES)}")
    try:
        for module in NAMES[engine]:
            importlib.import_module(module)
    except ImportError as error:
        raise Refused(f"{error}: install the wheel with its extra \"{EXTRAS[engine]}\"") from None


class Tables:
    """Those of one run."""

    def __init__(self, folder, run=None, engine=None, master=None):
        engine = engine or ("spark" if master else "duckdb")
        needed(engine)
        self.folder, (self.run, version) = folder, run_of(folder, run)
        self.causes = version > 1
        self.engine = ENGINES[engine](master)
        for name, columns in COLUMNS.items():
            files = folder / name / f"run={escaped(self.run)}"
            if any(files.glob("**/*.parquet")):
                self.engine.read(name, files, columns)
            else:
                self.engine.empty(name, columns)
        self.kept = set()
        (without,) = self.rows("SELECT min(file) AS file FROM files WHERE rank IS NULL")
        if without["file"] is not None:
            raise Refused(f"{folder}: {without['file']} of run {self.run} says no rank, and all answers are by rank")
        self.hosts = dict(sorted((row["rank"], row["host"]) for row in self.rows("SELECT DISTINCT rank, host FROM files")))
        self.ranks = list(self.hosts)

    def rows(self, query, *values):
        """Dicts."""
        return self.engine.table(query, *values).to_pylist()

    def arrays(self, query, *values):
        """A numpy array for each column, all of numbers and without nulls."""
        import numpy as np
        found = self.engine.table(query, *values)
        return {name: numbers(np, found.column(name)) for name in found.column_names}

    def have(self, name):
        """A relation of relations.py, which is worked out once and kept."""
        from custream.fleet import relations
        if name not in self.kept:
            self.engine.keep(name, relations.RELATIONS[name])
            self.kept.add(name)
        return name

    def put(self, name, rows):
        self.engine.put(name, rows)

    def moved(self):
        """Whether times are by the fleet's clock already (`custream export --clocks`)."""
        return bool(self.rows("SELECT rank FROM files WHERE offset_ns IS NOT NULL LIMIT 1"))


def run_of(folder, run):
    if not (folder / "schema.json").is_file():
        raise Refused(f"{folder}: no schema.json: it is no folder that 'custream export --parquet' made")
    version = json.loads((folder / "schema.json").read_text(encoding="utf-8")).get("version")
    if version not in VERSIONS:
        raise Refused(f"{folder}: has tables of version {version}, and this reads versions {VERSIONS[0]} to {VERSIONS[-1]}")
    runs = sorted({urllib.parse.unquote(path.name.removeprefix("run=")) for path in folder.glob("*/run=*")})
    if not runs:
        raise Refused(f"{folder}: no traces were exported to it")
    if run is None and len(runs) > 1:
        raise Refused(f"{folder}: has {len(runs)} runs; --run=NAME says which: {', '.join(runs[:8])}")
    if run is not None and run not in runs:
        raise Refused(f"{folder}: has no run {run}; there is {', '.join(runs[:8])}")
    return run or runs[0], version
