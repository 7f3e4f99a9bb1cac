"""Rows of the golden test: command lines over a corpus of traces, and what each writes (tests/golden/expected).

    make bless        # writes all expected files anew

Inputs are words of a command line that name a file of the corpus: tests/golden/traces, or with a folder in front `h200/` (traces) and `bad/`
(tests/fuzz/corpus/trace). A row runs in a folder that has just these, without terminal, variables or time zone: no output has a path of a machine.
An expected file says the exit status and shows all that was written. Packed ones are of outputs that are long.
"""
import contextlib
import dataclasses
import gzip
import hashlib
import http.client
import json
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import urllib.parse

from tests import BUILD, ROOT

HERE = ROOT / "tests/golden"
TRACES, EXPECTED = HERE / "traces", HERE / "expected"
PLACES = {"h200": ROOT / "traces", "bad": ROOT / "tests/fuzz/corpus/trace", "clocks": ROOT / "tests/fuzz/corpus/clocks"}
LONG = 2_000       # bytes of an expected file that is kept as it is; longer ones are packed
SHOWN = 6_000      # bytes of a .pftrace whose packets are shown too, beside its sum
WHOLE = 120_000    # bytes of a written file that is shown as a whole; of a longer one so many, and its sum


@dataclasses.dataclass(frozen=True)
class Row:
    """A command line. `writes`: files that are compared too. `how`: a function of this module that runs it in place of `command`."""
    name: str
    words: str
    writes: tuple = ()
    how: str = "command"

    @property
    def expected(self):
        """The expected file, without .gz."""
        return EXPECTED / f"{self.name}.txt"


# ---- The table ----

OURS = """demo.json.gz timeline.json.gz streams.pftrace.gz captures.pftrace.gz events.json.gz nodes.json.gz ranges.json.gz process_ranges.pftrace.gz
audit.json.gz window.json.gz devices.pftrace.gz sample.json.gz host.json.gz waits.json.gz leaks.json leaks.pftrace rank0.json.gz losses.json.gz
cut.json cut_all.pftrace.gz remote.json handmade.json rotated.1.json.gz rotated.json.gz format2.json.gz format2.pftrace.gz""".split()
H200 = [f"h200/{name}-h200.json.gz" for name in ("demo", "known-events", "known-nodes", "cupy-filter", "torch-transformer-graphed")]
LARGE = [f"h200/{name}-h200.json.gz" for name in ("jax-train", "torch-streams", "known")]
TORN = ["torn_event.json", "torn_trailer.json", "torn.json.gz", "torn.pftrace", "torn.pftrace.gz"]
FOREIGN = """kineto_2021.json kineto_2022.json.gz kineto_2024.json kineto_plain.json.gz kineto_text_times.json.gz kineto_one_line.json.gz
kineto_list.json.gz kineto_torn.json xla.json xla_names_last.json.gz chrome_list.json chrome_open_list.json chrome_no_newline.json chrome_plain.json
letters.json odd_layout.json perfetto.pftrace perfetto_today.pftrace perfetto_interned.pftrace perfetto_packed.pftrace perfetto_mixed.pftrace.gz
perfetto_empty.pftrace perfetto_torn.pftrace""".split()
CORPUS_OF_FUZZ = """begin.json correlation-out-of-range.json count-out-of-range.pftrace empty-header.pftrace empty-name.pftrace empty-slice.pftrace
empty-text.pftrace no-time.json other-type-of-word.pftrace other-type.pftrace text-in-place-of-rank.json times-of-decades.pftrace
torn.json torn.json.gz torn.pftrace""".split()
BAD = ["breach.json", "no_trace.json", "empty.json", "letters.pftrace", "missing.json", *(f"bad/{name}" for name in CORPUS_OF_FUZZ), "overlap.json", "disorder.json"]
MERGED = ["merged.json.gz"]
PARTS = "rotated.1.json.gz rotated.2.json.gz rotated.json.gz"
RANKS = "rank0.json.gz rank1.json.gz"
SLOWER = "kineto_2024.json kineto_2024_slow.json.gz"
RECOVERED = """torn_event.json torn_trailer.json leaks.json kineto_torn.json breach.json no_trace.json bad/torn.json chrome_open_list.json""".split()


def stem(trace):
    """The trace's name as that of an expected file."""
    return trace.replace("/", "-").replace(".", "_")


def each(name, words, traces, *writes, how="command"):
    """A row for each trace, which takes the place of TRACE."""
    return [Row(f"{name}/{stem(trace)}", words.replace("TRACE", trace), writes, how) for trace in traces]


def one(name, words, *writes, how="command"):
    return [Row(name, words, writes, how)]


def turned(traces, ending):
    return [trace for trace in traces if trace.removesuffix(".gz").endswith(ending)]


EVERY = OURS + H200 + LARGE + TORN + FOREIGN + BAD + MERGED
READABLE = OURS + H200 + TORN + FOREIGN
ROWS = [
    *each("check", "check TRACE", EVERY),
    *one("check/several", f"check {PARTS} breach.json empty.json torn.json.gz rank0.json.gz"),
    *each("report", "report TRACE", OURS[::2] + H200[:1] + TORN + FOREIGN + BAD + MERGED),
    *each("report_json", "report --json TRACE", OURS + H200 + TORN + FOREIGN + ["overlap.json"]),
    *each("report_csv", "report --csv TRACE", ["timeline.json.gz", "captures.pftrace.gz", "waits.json.gz", "kineto_2024.json", "xla.json"]),
    *each("report_html", "report --html=page.html TRACE", ["streams.pftrace.gz", "kineto_2022.json.gz"], "page.html"),
    *each("report_brief", "report --brief TRACE", OURS[1::2] + H200[1:] + LARGE),
    *one("report/files", "report --json=j.json --csv=c.csv --html=h.html ranges.json.gz", "j.json", "c.csv", "h.html"),
    *one("report/sections", "report --section=kernels --section=idle_host --section=findings --no-color demo.json.gz"),
    *one("report/parts", f"report {PARTS}"),
    *one("report_json/parts", f"report --json {PARTS}"),
    *one("report/parts_that_miss_one", "report rotated.1.json.gz rotated.json.gz"),
    *one("report/parts_in_disorder", "report --brief rotated.json.gz rotated.1.json.gz rotated.2.json.gz"),
    *one("report/two_processes", f"report {RANKS}"),
    *one("report/two_foreign", f"report {SLOWER}"),
    *one("report/part_and_foreign", "report rotated.1.json.gz kineto_2022.json.gz"),
    *one("report/the_same_twice", "report rank0.json.gz rank0.json.gz"),
    *each("fail_if", "report --brief --fail-if=idle_host>20% --fail-if=gpu_idle>5ms --fail-if=default_stream_work>0 TRACE",
          ["demo.json.gz", "timeline.json.gz", "h200/demo-h200.json.gz", "kineto_2024.json", "xla.json", "window.json.gz", "torn.json.gz"]),

    *one("diff/ranks", f"diff {RANKS}"),
    *one("diff/ranks_json", f"diff --json {RANKS}"),
    *one("diff/ranks_csv", f"diff --csv {RANKS}"),
    *one("diff/the_same", "diff demo.json.gz demo.json.gz"),
    *one("diff/formats", "diff leaks.json leaks.pftrace"),
    *one("diff/graphs_and_nodes", "diff h200/known-h200.json.gz h200/known-nodes-h200.json.gz"),
    *one("diff/graphs_and_nodes_json", "diff --json h200/known-h200.json.gz h200/known-nodes-h200.json.gz"),
    *one("diff/cupti_and_events", "diff h200/known-h200.json.gz h200/known-events-h200.json.gz"),
    *one("diff/parts", f"diff demo.json.gz --after {PARTS}"),
    *one("diff/torn", "diff timeline.json.gz torn.json.gz"),
    *one("diff/cut", "diff remote.json cut.json"),
    *one("diff/kineto", f"diff {SLOWER}"),
    *one("diff/kineto_json", f"diff --json=d.json {SLOWER}", "d.json"),
    *one("diff/kineto_years", "diff kineto_2021.json kineto_2022.json.gz"),
    *one("diff/kineto_and_ours", "diff kineto_2024.json rank1.json.gz"),
    *one("diff/text_times", "diff kineto_2022.json.gz kineto_text_times.json.gz"),
    *one("diff/xla", "diff xla.json xla_names_last.json.gz"),
    *one("diff/bad", "diff demo.json.gz no_trace.json"),
    *one("diff/fail_if_holds", f"diff --fail-if=gpu_idle>5% --fail-if=wall>+1% --fail-if=idle_host>+1us {RANKS}"),
    *one("diff/fail_if", f"diff --fail-if=wall>+5% --fail-if=gpu_idle>20% {SLOWER}"),

    *each("convert", "convert TRACE out.pftrace", turned(READABLE + BAD[:4] + MERGED, ".json"), "out.pftrace"),
    *each("convert", "convert TRACE out.json", turned(READABLE + BAD, ".pftrace"), "out.json"),
    *each("convert_whole", "convert --whole TRACE out.json", ["streams.pftrace.gz", "captures.pftrace.gz"], "out.json"),
    *each("convert_whole", "convert --whole TRACE out.pftrace.gz", ["timeline.json.gz", "nodes.json.gz", "h200/demo-h200.json.gz"], "out.pftrace.gz"),
    *each("convert_same", "convert TRACE out.json.gz", ["leaks.json", "kineto_plain.json.gz"], "out.json.gz"),
    *each("convert_there_and_back", "TRACE", ["timeline.json.gz", "waits.json.gz", "devices.pftrace.gz", "audit.json.gz", "kineto_plain.json.gz",
          "chrome_plain.json", "host.json.gz"], how="there_and_back"),

    *one("merge/ranks", f"merge -o out.json {RANKS}", "out.json"),
    *one("merge/ranks_pftrace", f"merge -o out.pftrace.gz {RANKS}", "out.pftrace.gz"),
    *one("merge/parts", f"merge -o out.json {PARTS}", "out.json"),
    *one("merge/parts_pftrace", f"merge -o out.pftrace {PARTS}", "out.pftrace"),
    *one("merge/start", "merge --align=start -o out.json rank0.json.gz devices.pftrace.gz kineto_2024.json", "out.json"),
    *one("merge/start_kineto", "merge --align=start -o out.json.gz kineto_2022.json.gz kineto_2021.json", "out.json.gz"),
    *one("merge/clock_kineto", f"merge -o out.json {SLOWER}", "out.json"),
    *one("merge/no_base", "merge -o out.json kineto_2022.json.gz rank0.json.gz", "out.json"),
    *one("merge/start_xla", "merge --align=start -o out.json xla.json", "out.json"),
    *one("merge/start_letters", "merge --align=start -o out.json letters.json ranges.json.gz", "out.json"),
    *one("merge/start_xla_names_last", "merge --align=start -o out.json xla_names_last.json.gz", "out.json"),
    *one("merge/start_list", "merge --align=start -o out.json chrome_list.json", "out.json"),
    *one("merge/start_object", "merge --align=start -o out.json chrome_no_newline.json", "out.json"),
    *one("merge/start_plain", "merge --align=start -o out.json kineto_plain.json.gz chrome_plain.json", "out.json"),
    *one("merge/start_odd", "merge --align=start -o out.json odd_layout.json handmade.json", "out.json"),
    *one("merge/start_perfetto", "merge --align=start -o out.json perfetto.pftrace perfetto_interned.pftrace", "out.json"),
    *one("merge/torn", "merge --align=start -o out.json torn.json.gz torn.pftrace torn_event.json", "out.json"),
    *one("merge/window", f"merge --window=1ms,3ms -o out.json {RANKS}", "out.json"),
    *one("merge/window_of_one", "merge --window=5ms,6ms -o out.json demo.json.gz", "out.json"),
    *one("merge/window_pftrace", "merge --window=0,2ms --align=start -o out.pftrace streams.pftrace.gz waits.json.gz process_ranges.pftrace.gz",
         "out.pftrace"),
    *one("merge/window_behind", f"merge --window=900,901 -o out.json {RANKS}", "out.json"),
    *one("merge/clocks", f"merge --clocks=clocks/two -o out.json {RANKS}", "out.json"),
    *one("merge/twice", "merge -o out.json rank0.json.gz rank0.json.gz", "out.json"),
    *one("merge/of_merged", "merge --align=start -o out.json merged.json.gz cut.json", "out.json"),
    *one("merge/bad", "merge --align=start -o out.json rank0.json.gz no_trace.json", "out.json"),

    *each("recover", "recover -o out.json TRACE", RECOVERED, "out.json"),
    *each("recover", "recover -o out.json.gz TRACE", ["torn.json.gz", "bad/torn.json.gz", "demo.json.gz"], "out.json.gz"),
    *each("recover", "recover -o out.pftrace TRACE", ["torn.pftrace", "bad/torn.pftrace", "perfetto_torn.pftrace", "perfetto.pftrace",
          "letters.pftrace"], "out.pftrace"),
    *each("recover", "recover -o out.pftrace.gz TRACE", ["torn.pftrace.gz"], "out.pftrace.gz"),
    *one("recover/in_place", "recover --in-place torn_event.json torn_trailer.json leaks.json empty.json", "torn_event.json", "torn_trailer.json"),
    *one("recover/beside", "recover torn_trailer.json torn.pftrace", "torn_trailer.recovered.json", "torn.recovered.pftrace"),

    *each("export", "export --batches TRACE", OURS + H200[:1] + TORN + FOREIGN + MERGED + BAD[:3], how="batches"),
    *one("export/schema", "export --schema"),
    *one("parquet/ranks", f"export --parquet tables --run=r --host=h {RANKS}", how="parquet"),
    *one("parquet/alone", "export --parquet tables demo.json.gz streams.pftrace.gz kineto_2024.json xla.json torn.json.gz merged.json.gz",
         how="parquet"),
    *one("fleet/ranks", RANKS, how="fleet"),

    *one("stretch/before", "remote.json before", how="stretch"),
    *one("stretch/after", "remote.json after", how="stretch"),
    *one("stretch/of_packets", "rank0.pftrace step", how="stretch"),
    *one("stretch/packed", "rank1.json.gz step", how="stretch"),
    *one("stretch/missing", "ranges.json.gz no such range", how="stretch"),
    *one("stretch/of_a_part", "rotated.1.json.gz step", how="stretch"),
    *one("stretch/foreign", "kineto_2024.json ProfilerStep#3", how="stretch"),
    *each("open", "TRACE", ["streams.pftrace.gz", "timeline.json.gz", "kineto_2024.json", "xla.json", "torn.json.gz"], how="opened"),
    *one("open/ranks", RANKS, how="opened"),
]


# ---- What runs a row ----

def environment(**more):
    """Nothing of the machine's but where its programs and libraries are."""
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    return kept | {"LC_ALL": "C.UTF-8", "TZ": "UTC", **more}


def python_too():
    """What the parts in Python need."""
    return environment(PYTHONPATH=str(ROOT / "python"), CUSTREAM_PYTHON=sys.executable, PYTHONDONTWRITEBYTECODE="1")


def source_of(word):
    """The file of the corpus that a word names, or None."""
    place, _, name = word.rpartition("/")
    path = PLACES.get(place, TRACES if not place else HERE / "none") / name
    return path if name and path.is_file() else None


def bring(words, folder):
    for word in re.split(r"[ =]", words):
        if source := source_of(word):
            (folder / word).parent.mkdir(exist_ok=True)
            shutil.copyfile(source, folder / word)


def text_of(data):
    """Bytes as text."""
    return data.decode("utf-8", "backslashreplace").replace("\r", "\\r")


def custream(words, folder, env=None):
    """(exit status, standard output, standard error), as bytes."""
    argv = [BUILD / "custream", *words]
    done = subprocess.run(argv, cwd=folder, env=env or environment(), stdin=subprocess.DEVNULL, capture_output=True, timeout=100, check=False)
    return done.returncode, done.stdout, done.stderr


def said(status, out, err):
    parts = [f"exit status {status}\n"]
    for name, data in (("standard output", out), ("standard error", err)):
        if data:
            parts.append(f"--- {name}\n{ended(data if isinstance(data, str) else text_of(data))}")
    return "".join(parts)


def ended(text):
    return text if text.endswith("\n") else text + "\n--- no newline at the end\n"


def packets(data):
    """A .pftrace: how long it is and its sum, and where it is short its packets."""
    parts = [f"{len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}\n"]
    if len(data) <= SHOWN:
        from google.protobuf import text_format
        from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace
        parts += [text_format.MessageToString(packet, as_one_line=True) + "\n" for packet in Trace.FromString(data).packet]
    return "".join(parts)


def shown(data, name):
    """A file that was written. Of packed ones what is in them: how they are packed is zlib's matter."""
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    if ".pftrace" in name:
        return f"--- {name}\n{packets(data)}"
    more = f"--- {len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}\n" if len(data) > WHOLE else ""
    return f"--- {name}\n{ended(text_of(data[:WHOLE // 6] if more else data))}{more}"


def written(folder, name):
    return shown((folder / name).read_bytes(), name) if (folder / name).exists() else f"--- {name}: not there\n"


def command(row, folder):
    return said(*custream(row.words.split(), folder)) + "".join(written(folder, name) for name in row.writes)


def there_and_back(row, folder):
    """The other format, and from there JSON."""
    status = custream(["convert", row.words, "between.pftrace"], folder)
    if status[0]:
        return said(*status)
    return said(*custream(["convert", "between.pftrace", "back.json"], folder)) + written(folder, "back.json")


# ---- Tables ----

SIZES = {"small": ("i", 4), "text": ("I", 4), "real": ("d", 8)}


def column(stream, rows, kind, listed, size):
    """The values of a column, None where it has none."""
    there, at = stream(-(-rows // 8)), SIZES.get(kind, ("q", 8))
    values = struct.unpack(f"<{rows}{at[0]}", stream(rows * at[1]))
    if kind == "text":
        offsets = struct.unpack(f"<{listed + 1}i", stream(4 * (listed + 1)))
        texts = stream(size)
        values = [text_of(texts[offsets[value]:offsets[value + 1]]) if there[i // 8] >> i % 8 & 1 else None for i, value in enumerate(values)]
    return [value if there[i // 8] >> i % 8 & 1 else None for i, value in enumerate(values)]


def rows_of(names, columns):
    """A line a row: the values that it has, with their columns' names where those differ from the row before."""
    lines, before = [], None
    for values in zip(*columns):
        has = [(name, value) for name, value in zip(names, values) if value is not None]
        if [name for name, _ in has] != before:
            before = [name for name, _ in has]
            lines.append(f"  {' '.join(before)}\n")
        lines.append("    " + " ".join(json.dumps(value, ensure_ascii=False) for _, value in has) + "\n")
    return "".join(lines)


def batches(row, folder):
    """What `custream export` reads of a trace: columns as its output has them, told as rows."""
    status, out, err = custream(row.words.split(), folder)
    at, parts = 0, []

    def stream(size):
        nonlocal at
        at += size
        return out[at - size:at]
    while at < len(out):
        end = out.index(b"\n", at) + 1
        head = json.loads(out[at:end])
        at = end
        if "merged" in head:
            parts.append(f"file {head['merged']}\n")
            continue
        columns = [column(stream, head["rows"], *about) for _, *about in head["columns"]]
        parts.append(f"{head['table']}: {head['rows']} rows\n" + rows_of([name for name, *_ in head["columns"]], columns))
    return said(status, "".join(parts), err)


def parquet(row, folder):
    """The files of `custream export --parquet`, by name, and their rows in order."""
    import pyarrow.parquet
    parts = [said(*custream(row.words.split(), folder, python_too()))]
    for path in sorted(folder.glob("tables/**/*.parquet")):
        table = pyarrow.parquet.ParquetFile(path).read()
        schema = ", ".join(f"{field.name} {field.type}" for field in table.schema)
        content = rows_of(table.column_names, [column.to_pylist() for column in table.columns])
        brief = content if table.num_rows <= 12 else f"    sha256 of the rows: {hashlib.sha256(content.encode()).hexdigest()}\n"
        parts.append(f"--- {path.relative_to(folder)}: {table.num_rows} rows of {schema}\n{brief}")
    return "".join(parts)


def fleet(row, folder):
    """Exports the traces, and asks all questions about them."""
    parts = [said(*custream(["export", "--parquet", "tables", *row.words.split()], folder, python_too()))]
    parts += [said(*custream(["fleet", "tables", *words], folder, python_too())) for words in ((), ("--json",))]
    return "".join(parts)


# ---- What the plug-in of pytest and Jupyter's magic read ----

def stretch(row, folder):
    """A range of a trace as a trace of its own, and what `check` says of it."""
    name, _, called = row.words.partition(" ")
    if name.endswith(".pftrace"):
        bring(name.replace(".pftrace", ".json.gz"), folder)
        custream(["convert", name.replace(".pftrace", ".json.gz"), name], folder)
    script = ("import sys\nfrom custream import _native, cut\n_native.COMMAND = sys.argv[1]\n"
              "try:\n    print(cut.write(sys.argv[2], sys.argv[3], 'stretch.json'))\n"
              "except cut.CannotCut as error:\n    print(type(error).__name__, error)\n")
    argv = [sys.executable, "-c", script, BUILD / "custream", name, called]
    done = subprocess.run(argv, cwd=folder, env=python_too(), stdin=subprocess.DEVNULL, capture_output=True, timeout=100, check=False)
    text = said(done.returncode, done.stdout, done.stderr) + written(folder, "stretch.json")
    return text + (said(*custream(["check", "stretch.json"], folder)) if (folder / "stretch.json").exists() else "")


# ---- What a browser gets ----

def opened(row, folder):
    """The lanes that `custream open` pins, and the trace that it hands out."""
    for _ in range(20):
        with contextlib.closing(socket.socket()) as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        argv = [BUILD / "custream", "open", "--print-url", f"--port={port}", *row.words.split()]
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(argv, cwd=folder, env=environment(), **pipes) as process:
            try:
                link = process.stdout.readline().decode()
                name, body = got(port, link) if link else (None, None)
                status, err = process.wait(timeout=100), process.stderr.read()
            finally:
                process.kill()
        if link:
            pinned = dict(urllib.parse.parse_qsl(link.strip().partition("#!/?")[2])).get("startupCommands", "[]")
            return said(status, "".join(json.dumps(one) + "\n" for one in json.loads(pinned)), err) + shown(body, name)
        if b"is taken" not in err:  # by another test, meanwhile
            return said(status, b"", err)
    raise AssertionError("no port is free")


def got(port, link):
    """What the page of a link reads: its name and the bytes."""
    arguments = dict(urllib.parse.parse_qsl(link.strip().partition("#!/?")[2]))
    path = urllib.parse.urlsplit(arguments["url"]).path
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=100)) as connection:
        connection.request("GET", path, headers={"Origin": "https://ui.perfetto.dev"})
        return path.rpartition("/")[2], connection.getresponse().read()


# ---- Expected files ----

def result(row):
    with tempfile.TemporaryDirectory(prefix="golden-") as folder:
        folder = pathlib.Path(folder)
        bring(row.words, folder)
        return f"{'' if row.how == 'command' else row.how + ': '}{row.words}\n" + globals()[row.how](row, folder)


def expected(row):
    """The text, or None where there is none yet."""
    if row.expected.exists():
        return row.expected.read_bytes().decode()
    packed = row.expected.with_suffix(".txt.gz")
    return gzip.decompress(packed.read_bytes()).decode() if packed.exists() else None


def files_expected():
    """All that is in the folder, and all that is to be there."""
    there = {path for path in EXPECTED.rglob("*") if path.is_file()}
    return there, {row.expected.with_suffix(suffix) for row in ROWS for suffix in (".txt", ".txt.gz")}


def bless():
    for row in ROWS:
        text = result(row)
        if text == expected(row):
            continue
        data, packed = text.encode(), row.expected.with_suffix(".txt.gz")
        row.expected.parent.mkdir(parents=True, exist_ok=True)
        for path in (row.expected, packed):
            path.unlink(missing_ok=True)
        if len(data) > LONG:
            packed.write_bytes(gzip.compress(data, 9, mtime=0))
        else:
            row.expected.write_bytes(data)
        print(f"renewed: {row.name}")
    there, wanted = files_expected()
    for path in there - wanted:
        path.unlink()
        print(f"gone: {path.relative_to(EXPECTED)}")


if __name__ == "__main__":
    bless()
