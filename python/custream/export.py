"""`custream export`: tables that the command reads from a trace, as Parquet (docs/export.md). Needs pyarrow, of the extra "fleet".

The command has looked at the options. It tells a table's rows in batches, each a line of JSON and the memory of its columns as Arrow lays it out, so nothing is parsed here.
"""
import contextlib
import dataclasses
import datetime
import errno
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.parse
import uuid

from custream._arrow import texts, whole
from custream._native import Given

NAME = "custream export"
NUMBERS = {"time": 8, "ns": 8, "whole": 8, "small": 4, "real": 8}  # bytes of a value
DIFFERENCES = "start_ns", "begin_ns", "end_ns", "correlation", "waits_for"  # grow along a file
HEAD = {"rank": "distributedInfo.rank", "world_size": "distributedInfo.world_size", "part": "part", "base_ns": "baseTimeNanoseconds", "version": "metadata.tool",
        "host": "metadata.host", "job": "metadata.job", "clock_error_ns": "metadata.clock_error_ns", "gpu_source": "metadata.gpu_time_source",
        "gpu_sample": "metadata.gpu_sample", "complete": "totals.complete", "ended_by": "totals.ended_by", "offset_ns": "merged.clock.offset_ns", "drift_ppb": "merged.clock.drift_ppb",
        "offset_error_ns": "merged.clock.error_ns"}
CLOCK = "offset_ns", "drift_ppb", "offset_error_ns"  # of --clocks
SAID = "version", "host", "job", "gpu_source", "ended_by", "process"  # texts among them


ENDS = signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGXCPU


class Refused(Exception):
    """One line for the user."""


class Ended(BaseException):
    """A signal, args[0], is to end the process: what it has begun goes away first."""


def end(number, _):
    for other in ENDS:
        signal.signal(other, signal.SIG_IGN)
    raise Ended(number)


def ends_tidy():
    for number in ENDS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, end)


def arrow():
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise Refused(f"{error}: install the wheel with its extra \"fleet\"") from None
    return pyarrow


# ---- Batches ----

def text_list(pa, count, offsets, data):
    try:
        data.decode()
    except UnicodeDecodeError:  # names are what the program made them
        ends = memoryview(offsets).cast("i")
        return texts(pa, [data[ends[i]:ends[i + 1]].decode(errors="replace") for i in range(count)])
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(data))


def column(pa, stream, rows, kind, listed, size):
    there = pa.py_buffer(stream.read((rows + 7) // 8))
    values = pa.py_buffer(stream.read(rows * NUMBERS.get(kind, 4)))
    if kind != "text":
        return pa.Array.from_buffers({"small": pa.int32(), "real": pa.float64()}.get(kind, pa.int64()), rows, [there, values])
    offsets = stream.read(4 * (listed + 1))
    return pa.DictionaryArray.from_buffers(pa.dictionary(pa.int32(), pa.string()), rows, [there, values], text_list(pa, listed, offsets, stream.read(size)))


def batches(pa, command, path):
    """(table, its rows) of a trace, in the order of the file; (None, place) before the rows of each file of a merged trace. Refused if it cannot be read; its rows are of no
    use then."""
    with subprocess.Popen([command, "export", "--batches", "--", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=False) as reader:
        try:
            while line := reader.stdout.readline():
                head = json.loads(line)
                if "merged" in head:
                    yield None, head["merged"]
                    continue
                names = [name for name, *_ in head["columns"]]
                yield head["table"], pa.table([column(pa, reader.stdout, head["rows"], *about) for _, *about in head["columns"]], names)
        finally:
            reader.stdout.close()
            said = reader.stderr.read().decode(errors="replace").strip()
        if reader.wait():
            raise Refused(said.removeprefix(f"{NAME}: ") or f"{path}: the reader ended with status {reader.returncode}")


# ---- Clocks ----

def by_fleet(pa, rows, clock):
    """The same, by the fleet's clock. An end is moved as a begin is, so that what followed another row still follows it."""
    import numpy as np
    from pyarrow import compute

    def moved(values):
        there = values.is_valid().to_numpy(zero_copy_only=False)
        times = values.fill_null(0).to_numpy()
        return times - np.rint(clock.ahead(times)).astype(np.int64), there
    if "start_ns" in rows.column_names:
        start, end = moved(rows["start_ns"]), moved(compute.add(rows["start_ns"], rows["dur_ns"]))
        rows = rows.set_column(rows.column_names.index("dur_ns"), "dur_ns", pa.array(end[0] - start[0], mask=~end[1]))
    for name in ("start_ns", "begin_ns", "end_ns"):
        if name in rows.column_names:
            values, there = moved(rows[name])
            rows = rows.set_column(rows.column_names.index(name), name, pa.array(values, mask=~there))
    return rows


def clocks_of(path):
    """By rank; None: no --clocks."""
    if path is None:
        return None
    try:
        from custream.fleet import clocks
        return clocks.read(pathlib.Path(path))
    except ImportError as error:
        raise Refused(f"{error}: install the wheel with its extra \"fleet\"") from None
    except ValueError as error:
        raise Refused(f"{path}: {error}") from None


# ---- A file's place ----

class Head(dict):
    """What a file says of itself: members of HEAD, None where it does not."""

    def __init__(self):
        super().__init__(dict.fromkeys(HEAD))

    def take(self, facts):
        keys = {path: name for name, path in HEAD.items()}
        for key, number, value, text in zip(*(facts.column(name).to_pylist() for name in ("key", "whole", "value", "text"))):
            if key in keys:
                self[keys[key]] = text if keys[key] in SAID else number if number is not None else value


# What a merged trace says of each of its files: in its head, by names of its own, and behind the rows as the file had it.
MERGED = re.compile(r"(metadata\.merged\.files|merged)\.(\d+)\.(.*)")
MERGED_HEAD = {"rank": "distributedInfo.rank", "world_size": "distributedInfo.world_size", "host": "metadata.host", "job": "metadata.job", "clock_error_ns": "metadata.clock_error_ns",
               "gpu_sample": "metadata.gpu_sample", "complete": "totals.complete"}


def facts_by_file(pa, rows, known):
    """(place, facts) of each file of a merged trace; (None, facts) of a trace that is none. `known`: by file the keys that it has."""
    found, keys = {}, rows["key"].to_pylist()
    if not known and not any(key.startswith("metadata.merged.files.") for key in keys):
        return [(None, rows)]
    for at, key in enumerate(keys):
        match = MERGED.fullmatch(key)
        if not match:
            continue
        place, name = int(match[2]), match[3]
        if match[1] != "merged":
            name = MERGED_HEAD.get(name, name if name in HEAD.values() else f"merged.{name}")
        if name not in known.setdefault(place, set()):
            known[place].add(name)
            found.setdefault(place, []).append((at, name))
    return [(place, rows.take(whole(pa, [at for at, _ in of])).set_column(0, "key", texts(pa, [name for _, name in of]).dictionary_encode())) for place, of in found.items()]


NOT_SAID = "__HIVE_DEFAULT_PARTITION__"  # in the name of a folder: null


def escaped(name):
    """As engines read the name of a folder KEY=VALUE."""
    return NOT_SAID if name is None else urllib.parse.quote(str(name), safe=" ")


def stem_of(path):
    name = os.path.basename(path)
    for ending in (".gz", ".json", ".pftrace"):
        name = name.removesuffix(ending)
    return name or "trace"


# ---- Runs ----

@dataclasses.dataclass
class Trace:
    """A trace in the folder, or one that is to go there. Of another tool's trace nothing tells the process, so its first row does: its base is often the same for all."""
    place: object  # run=RUN/host=HOST/rank=N
    name: str
    rank: object  # None: it says none
    process: str
    ours: bool
    base_ns: object
    first_ns: object  # when its first row began; None: it has none, or is of an earlier export
    last_ns: object
    part: object
    world_size: object

    @property
    def run(self):
        return urllib.parse.unquote(self.place.parts[0].removeprefix("run="))

    @property
    def begin_ns(self):
        return self.base_ns if self.ours and self.base_ns is not None else self.first_ns

    def is_of(self, other):
        """The same trace, whatever it is called."""
        return (self.process, self.part) == (other.process, other.part) and (self.first_ns == other.first_ns or None in (self.first_ns, other.first_ns))

    def beside(self, other):
        """Both are there at some time; also where that is not known."""
        times = self.begin_ns, self.last_ns, other.begin_ns, other.last_ns
        return None in times or (times[0] <= times[3] and times[2] <= times[1])

    def repeats(self, other):
        """Another trace of the process with the same calls. Parts follow each other, and meet at their ends."""
        times = self.first_ns, self.last_ns, other.first_ns, other.last_ns
        return self.process == other.process and not (self.part and other.part) and None not in times and times[0] <= times[3] and times[2] <= times[1]


def process_of(host, rank, base_ns, ours, first_ns):
    return f"{host or 'unknown'} {rank} {base_ns}" + ("" if ours else f" {first_ns}")


def traces_in(pa, folder):
    found = []
    for path in sorted(folder.glob("files/run=*/host=*/rank=*/*.parquet")):
        with path.open("rb") as file:
            (row,) = pa.parquet.ParquetFile(file).read().to_pylist()
        about = {key: row.get(key) for key in ("process", "base_ns", "first_ns", "last_ns", "part", "world_size")}
        host, rank = (part.partition("=")[2] for part in path.parent.parts[-2:])
        about["process"] = about["process"] or process_of(urllib.parse.unquote(host), rank, row["base_ns"], bool(row["version"]), None)
        found.append(Trace(path.parent.relative_to(folder / "files"), path.stem, None if rank == NOT_SAID else int(rank), ours=bool(row["version"]), **about))
    return found


def refuse_other(trace, others, path, guessed):
    """What cannot be of one run. `guessed`: neither the user nor the trace says which run it is, and it was given together with others."""
    others = [other for other in others if other.place.parts[0] == trace.place.parts[0] and not other.is_of(trace)]
    for other in others:
        if trace.rank is not None and other.rank == trace.rank and other.process != trace.process:
            raise Refused(f"{path}: is a second rank {trace.rank} in run {trace.run}, where {other.name} is another process; give another run another --run")
        if trace.repeats(other):
            raise Refused(f"{path}: has rows that {other.name} of run {trace.run} has too: both are of one process and one time; export one of them")
        if (other.place, other.name) == (trace.place, trace.name):
            raise Refused(f"{path}: run {trace.run} has another trace {trace.name} in this place; give the file another name")
        if guessed and None not in (trace.world_size, other.world_size) and trace.world_size != other.world_size:
            raise Refused(f"{path}: has {trace.world_size} ranks, and {other.name} of run {trace.run} has {other.world_size}; give another run another --run")
    if guessed and others and not any(trace.beside(other) for other in others):
        raise Refused(f"{path}: is of another time than all of run {trace.run}; give another run another --run, or --run={trace.run} if it is the same")


class Tables:
    """The tables of one trace: written beside their places, and put there when all of it is whole."""

    def __init__(self, pa, folder, name, given, path, merged, version):
        self.version = version
        self.pa, self.folder, self.name, self.given, self.path_read, self.merged, self.head, self.clock, self.trace = pa, folder, name, given, path, merged, Head(), None, None
        self.beside, self.writers, self.counts, self.first_ns, self.last_ns = pathlib.Path(tempfile.mkdtemp(prefix=".export-", dir=folder)), {}, {}, None, None

    def begun(self, table):
        return self.beside / f"{table}.part"

    def add(self, table, rows):
        pa = self.pa
        if table == "facts":
            self.head.take(rows)
        if not self.writers:
            self.take_clock()
        if "start_ns" in rows.column_names:
            first, last = rows["start_ns"][0].as_py(), rows["start_ns"][-1].as_py()
            self.first_ns = first if self.first_ns is None else self.first_ns
            self.last_ns = max(self.last_ns or last or 0, last or 0)
        if self.clock:
            rows = by_fleet(pa, rows, self.clock)
        name = pa.DictionaryArray.from_arrays(whole(pa, [0] * rows.num_rows, pa.int32()), texts(pa, [self.name]))
        rows = rows.add_column(0, "file", name)
        if table not in self.writers:
            kinds = {field.name: field.type for field in rows.schema}
            delta = [name for name in kinds if name in DIFFERENCES]
            listed = [name for name, kind in kinds.items() if name not in delta and (pa.types.is_dictionary(kind) or kind in (pa.int32(), pa.int64()))]
            marked = rows.schema.with_metadata({"custream.tables": str(self.version)})
            self.writers[table] = pa.parquet.ParquetWriter(self.begun(table), marked, compression="zstd", use_dictionary=listed,
                                                           column_encoding=dict.fromkeys(delta, "DELTA_BINARY_PACKED"))
        self.writers[table].write_table(rows)
        self.counts[table] = self.counts.get(table, 0) + rows.num_rows

    def take_clock(self):
        clocks, rank = self.given.clocks_by_rank, self.head["rank"]
        if clocks is not None and self.merged:
            raise Refused(f"{self.path_read}: is merged; give --clocks to custream merge")
        if clocks is not None:
            self.clock = clocks.get(rank)
            if self.clock is None:
                raise Refused(f"{self.path_read}: " + ("says no rank, and --clocks goes by it" if rank is None else f"--clocks says nothing of rank {rank}"))

    def take_place(self, others):
        """All of it was read. `others`: what the folder has, and what is to go there before this one."""
        head, given = self.head, self.given
        ours = bool(head["version"])
        process = process_of(head["host"], head["rank"], head["base_ns"], ours, self.first_ns)
        trace = Trace(None, self.name, head["rank"], process, ours, head["base_ns"], self.first_ns, self.last_ns, head["part"], head["world_size"])
        run = given.run or head["job"]
        guessed = not run
        if guessed:  # a launcher's ranks that are given together are one run, any other process is one by itself
            begin, alone = trace.begin_ns or 0, head["rank"] is None or head["world_size"] == 1
            known = next((other.run for other in others if other.process == process), None)
            run = known or f"{datetime.datetime.fromtimestamp(begin // 10**9, datetime.UTC):%Y-%m-%dT%H.%M.%S}.{begin % 10**9:09}"
            if not alone:
                run = given.together = given.together or run
        trace.place = pathlib.Path(f"run={escaped(run)}", f"host={escaped(given.host or head['host'] or 'unknown')}", f"rank={escaped(head['rank'])}")
        refuse_other(trace, others, self.path_read, guessed)
        self.trace = trace

    def finish(self, tables, others):
        pa, head = self.pa, self.head
        said = {**head, "process": self.trace.process, "first_ns": self.first_ns, "last_ns": self.last_ns}
        about = {key: texts(pa, [value]) if key in SAID else whole(pa, [round(value)]) for key, value in said.items() if value is not None}
        about = {key: about.get(key, pa.nulls(1, pa.string() if key in SAID else pa.int64())) for key in said if key not in ("rank", "host")}  # these two are the folder's
        if self.clock:
            about |= {name: whole(pa, [round(value)]) for name, value in zip(CLOCK, (self.clock.offset_ns, self.clock.drift_ppb, self.clock.error_ns))}
        self.add("files", pa.table(about))
        for writer in self.writers.values():
            writer.close()
        earlier = [other for other in others if other.is_of(self.trace)]
        for table in [*tables, "files"]:
            path = self.folder / table / self.trace.place / f"{self.name}.parquet"
            if table in self.writers:
                path.parent.mkdir(parents=True, exist_ok=True)
                os.replace(self.begun(table), path)
            for other in earlier:
                old = self.folder / table / other.place / f"{other.name}.parquet"
                if old != path or table not in self.writers:
                    old.unlink(missing_ok=True)
                    for folder in old.parents[:3]:
                        with contextlib.suppress(OSError):  # others are in it
                            folder.rmdir()
        shutil.rmtree(self.beside)

    def give_up(self):
        for writer in self.writers.values():
            with contextlib.suppress(Exception):
                writer.close()
        shutil.rmtree(self.beside, ignore_errors=True)


# ---- The folder ----

LOCK = ".lock"


class Folder:
    """The traces that a folder has. Several may export into it: what a trace is judged by is as it is until it is in its place."""

    def __init__(self, pa, path, schema):
        """It is new, or has tables of this version."""
        self.pa, self.path, self.traces, self.known = pa, path, [], None
        path.mkdir(parents=True, exist_ok=True)
        about = path / "schema.json"
        if any(other.name not in (LOCK, about.name) for other in path.iterdir()) and not about.exists():
            raise Refused(f"{path}: has files, and none is schema.json of an export; give a new folder, or that of an earlier export")
        with self.held():
            found = json.loads(about.read_text(encoding="utf-8")).get("version") if about.exists() else schema["version"]
            if found != schema["version"]:
                raise Refused(f"{path}: has tables of version {found}, and these are of version {schema['version']}; give another folder")
            about.write_text(json.dumps(schema, indent=1) + "\n", encoding="utf-8")

    @contextlib.contextmanager
    def held(self):
        """Nobody else changes it meanwhile. The lock's file says who did so last."""
        descriptor = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            except OSError as error:
                if error.errno not in (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK):  # a file system without locks
                    raise
            yield descriptor
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def changed(self):
        """The traces that are there, to which the caller adds."""
        with self.held() as descriptor:
            last = os.pread(descriptor, 64, 0)
            if self.known is None or last != self.known:
                self.traces = traces_in(self.pa, self.path)
            self.known = uuid.uuid4().hex.encode()
            os.pwrite(descriptor, self.known, 0)
            yield self.traces


# ---- The command ----

def unused(name, taken):
    number = 1
    while (name if number == 1 else f"{name}-{number}") in taken:
        number += 1
    taken.add(name := name if number == 1 else f"{name}-{number}")
    return name


def export(pa, command, given, schema, path, taken, folder):
    name = unused(stem_of(path), taken)
    made, known, place = {}, {}, None  # Tables by place in a merged trace; None: it is not merged

    def tables(at):
        if at not in made:
            made[at] = Tables(pa, given.parquet, name if at is None else unused(f"{name}.{at}", taken), given, path, at is not None, schema["version"])
        return made[at]
    try:
        for table, rows in batches(pa, command, path):
            if table is None:
                place = rows
            elif table == "facts":
                for at, facts in facts_by_file(pa, rows, known):
                    tables(at).add(table, facts)
            else:
                tables(place).add(table, rows)
        coming = []
        with folder.changed() as there:
            for of in made.values():
                of.take_place([*coming, *(other for other in there if not any(other.is_of(trace) for trace in coming))])
                coming.append(of.trace)
            for of in made.values():
                of.finish(schema["tables"], there)
            there[:] = [other for other in there if not any(other.is_of(trace) for trace in coming)] + coming
    except BaseException:
        for of in made.values():
            of.give_up()
        raise
    counts = {}
    for of in made.values():
        for table, count in of.counts.items():
            counts[table] = counts.get(table, 0) + count
    said = ", ".join(f"{count:,} {table}" for table, count in counts.items() if table not in ("facts", "files"))
    print(f"{path}: {said or 'no rows'}; in {given.parquet}/*/{made[None].trace.place if None in made else f'*: {len(made)} files'}")


def command(own, options, files):
    """own: the command's own file. It has read the options (tools/custream/module.c)."""
    given, taken = Given(options), set()
    given.parquet = pathlib.Path(given.parquet)
    ends_tidy()
    try:
        pa = arrow()
        given.clocks_by_rank = clocks_of(given.clocks)
        schema = json.loads(subprocess.run([own, "export", "--schema"], stdout=subprocess.PIPE, check=True).stdout)
        folder = Folder(pa, given.parquet, schema)
        for path in files:
            export(pa, own, given, schema, path, taken, folder)
    except Ended as ended:
        signal.signal(ended.args[0], signal.SIG_DFL)
        os.kill(os.getpid(), ended.args[0])
    except Refused as refused:
        print(f"{NAME}: {refused}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"{NAME}: {error.filename or given.parquet}: {error.strerror}", file=sys.stderr)
        return 2
    return 0
