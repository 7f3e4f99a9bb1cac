"""One stretch of a trace as a trace of its own: what ran between the begin and the end of a range.

A process has one trace. pytest and Jupyter want one for each test or cell. Each of these is a range in the process's trace, whose name tells it apart.
"""
import collections
import json
import os
import pathlib
import subprocess
import tempfile
import zlib

from custream import _native

HOST_CALLS = ("cuda_driver", "cuda_runtime", "cs_callback", "cs_policy")
SHAPE = ("grid", "block", "registers per thread", "shared memory", "local memory per thread")
OPENERS = {"CUSTREAM_WINDOW", "CUSTREAM_TRIGGER", "CUSTREAM_POLICY"}  # by these nothing may be recorded though CUDA is called
WORK = {"kernel": "kernels", "gpu_memcpy": "copies", "gpu_memset": "memsets", "gpu_graph": "graphs", "gpu_range": "ranges", "overhead": "overhead"}


class CannotCut(Exception):
    """Why nobody knows what ran between the begin and the end of a range. That is not the same as no CUDA work."""


class Reader:
    """The rows of a trace that is still written, read a piece at a time. The file has one row a line; behind the last stands a trailer that each write replaces.

    A trace of another format, or a packed one, is converted, and read as a whole.
    """

    def __init__(self):
        self.path = None
        self.rows, self.header, self.last = [], [], None
        self.offset, self.inode, self.behind = 0, None, {}  # behind: the rows, what the trace says of the whole
        self.shapes = {}  # by GPU and name: how the last kernel was launched

    def forget(self, before):
        """Rows that no later stretch asks for."""
        self.rows = [row for row in self.rows if row["ph"] == "M" or is_life(row) or row["ts"] + row.get("dur", 0) >= before]

    def read(self, path):
        """CannotCut where the file is no trace that begins where this process's did: parts of one that rotates."""
        if path != self.path:
            self.__init__()
            self.path = path
        with open(path, "rb") as file:
            inode = os.fstat(file.fileno()).st_ino
            rotates = self.inode not in (None, inode)
            self.inode = inode
            if not rotates and path.endswith(".json"):
                file.seek(self.offset)
                self._take(file)
            elif not rotates:
                self._convert()
        if rotates or any(b'"part":' in line for line in self.header):
            raise CannotCut(f"{path} rotates: take CUSTREAM_TRACE_MAX without rotate")

    def read_again(self):
        """The same from the file's begin."""
        path = self.path
        self.__init__()
        self.read(path)

    def _convert(self):
        self.rows, self.header, self.offset, self.last = [], [], 0, None
        with tempfile.TemporaryDirectory() as folder:
            text = pathlib.Path(folder, "trace.json")
            done = _native.run("convert", "--whole", self.path, text)
            if done.returncode:
                raise ValueError(done.stderr.strip() or f"custream convert ended with {done.returncode}")
            with open(text, "rb") as file:
                self._take(file)

    def _whole(self, row):
        """A kernel says how it was launched where the one before of that name on its GPU was launched otherwise. Rows may go: each is to say it."""
        if row.get("cat") == "kernel":
            said = {key: row["args"][key] for key in SHAPE if key in row["args"]}
            if "grid" in said:
                self.shapes[row["pid"], row["name"]] = said
            else:
                row["args"] |= self.shapes.get((row["pid"], row["name"]), {})
        return row

    def _take(self, file):
        if self.rows and self.rows[-1] is self.last:
            self.rows.pop()  # it is read again: the comma behind it may be new
        trailer = []
        for line in file:
            if trailer or line.startswith(b"]"):
                trailer.append(line)
            elif line.startswith(b'{"ph":'):
                self.rows.append(self._whole(json.loads(line.rstrip().rstrip(b","))))
                self.last = self.rows[-1]
                length = len(line)
                self.offset += length
            else:
                self.header.append(line)
                self.offset += len(line)
        if self.rows and not self.header:
            raise ValueError(f"{self.path} is no trace of custream's")
        if self.last:
            self.offset -= length
        self.behind = json.loads(b"".join(trailer).decode().replace("]", '{"x":[]', 1)) if trailer else {}


def is_slice(row):
    return row["ph"] == "X"


def is_life(row):
    """One of the two marks of a stream's life: its begin or its end."""
    return row["ph"] == "i" and row["cat"] == "cs_stream"


def keep(rows, begin, end):
    """The rows of that stretch: calls that began in it, the work that they made, and what belongs to both."""
    inside = [begin <= row.get("ts", 0) < end for row in rows]
    calls = {row["args"]["correlation"] for row, within in zip(rows, inside)
             if within and is_slice(row) and row["cat"] in HOST_CALLS and "correlation" in row.get("args", {})}
    ends, starts = collections.Counter(), set()
    kept = []
    for row, within in zip(rows, inside):
        kind, cat = row["ph"], row.get("cat")
        correlation = row.get("args", {}).get("correlation")
        if is_slice(row):
            belongs = correlation in calls if correlation is not None else within
            belongs = belongs and cat != "cs_window"
            if belongs:
                starts.add((row["pid"], row["tid"], row["ts"]))
        elif kind in "sf":
            belongs = True
            ends[(row["cat"], row["id"])] += (row["pid"], row["tid"], row["ts"]) in starts
        elif is_life(row):
            belongs = row["ts"] < end
        else:
            belongs = kind == "M" or (kind in "iC" and within)
        if belongs:
            kept.append(row)
    kept = [row for row in kept if row["ph"] not in "sf" or ends[(row["cat"], row["id"])] == 2]
    return kept + lives_end(kept, end)


def lives_end(rows, end):
    """The lives of streams go on after the stretch. They end with it, as in a part of a trace."""
    opened = {}
    for row in filter(is_life, rows):
        key = row["pid"], row["args"]["cs.stream"]
        if "origin" in row["args"]:  # of the begin alone
            opened[key] = row
        else:
            opened.pop(key, None)
    last = max([end, *(row["ts"] + row["dur"] for row in rows if is_slice(row))])
    return [{**row, "name": f"stream {stream} goes on", "ts": last, "args": {"name": row["args"]["name"], "cs.stream": stream, "continues": True}}
            for (_, stream), row in opened.items()]


def totals(rows, source):
    """What the rows add up to (docs/command.md, rule 12)."""
    cats = collections.Counter(row.get("cat") for row in rows if is_slice(row))
    marks = sum(row["ph"] in "Xi" and row.get("cat") == "user_annotation" for row in rows)
    losses = [row["args"] for row in rows if row.get("cat") == "cs_loss" and "args" in row]
    gpu = {name: cats[cat] for cat, name in WORK.items()}
    gpu |= {"without_call": sum(is_slice(row) and row.get("cat") in WORK and row["cat"] != "overhead" and "correlation" not in row["args"] for row in rows)}
    gpu |= {"without_times": 0, "lost": sum(loss.get("gpu_work", 0) for loss in losses), "launches_without_kernel": 0}
    said = {"recorded": sum(cats[cat] for cat in HOST_CALLS) + marks, "lost_records": sum(loss.get("count", 0) for loss in losses), "complete": True,
            "untracked_objects": 0}
    return said | ({"gpu": {"source": source, **gpu}} if source not in (None, "off") else {}) | {"leaked_streams": 0, "leaked_events": 0}


def spell(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def spell_row(row):
    """Times with up to three decimals, as they were."""
    for key in ("ts", "dur"):
        if key in row:
            row = {**row, key: f"@{row[key]:.3f}".rstrip("0").rstrip(".") + "@"}
    return spell(row).replace('"@', "").replace('@"', "")


def range_name(text):
    """The same text as a range is called by in a trace, whatever is in it and however long it is."""
    shown = _native.text(text).decode()
    return shown if len(shown) <= 400 else f"{shown[:400]}-{zlib.crc32(shown.encode()):08x}"


def stretch(reader, name, path):
    """Writes the stretch of the newest range called `name`, which has ended, to `path`. False: no CUDA call was made in it."""
    recorded = _native.control("flush")
    recording, whole = _native.status() or (None, None)
    if recording not in (None, "on"):
        raise CannotCut(f"recording is {recording}")
    if not whole:
        if os.environ.get("CUSTREAM_TRACE") == "off":
            raise CannotCut("nothing is recorded (CUSTREAM_TRACE=off)")
        if recorded or (os.environ.get("CUSTREAM_CTL") == "off" and not OPENERS.isdisjoint(os.environ)):
            raise CannotCut("the process cannot be asked for its trace (CUSTREAM_CTL=off)")
        return False
    try:
        try:
            reader.read(whole)
        except ValueError:  # it was written in the middle of it
            _native.control("flush")
            reader.read_again()
        return write(reader, name, path)
    except (OSError, ValueError) as error:
        raise CannotCut(f"{whole} cannot be read: {error}") from None


def write(reader, name, path):
    """The same of what has been read."""
    found = [row for row in reader.rows if is_slice(row) and row.get("cat") == "user_annotation" and row["name"] == name]
    if not found:
        raise CannotCut(f"{reader.path} does not have it: recording was off, or the file is full")
    begin, end = found[-1]["ts"], found[-1]["ts"] + found[-1]["dur"]
    for row in reader.rows:
        if is_slice(row) and row["cat"] == "cs_window" and row["ts"] < end and row["ts"] + row["dur"] > begin:
            raise CannotCut(f"recording was off in part of it ({row['args']['cause']})")
    rows = keep(reader.rows, begin, end)
    if not any(is_slice(row) and row["cat"] in HOST_CALLS for row in rows):
        return False
    header = b"".join(reader.header).decode()
    source = json.loads(header + "]}").get("metadata", {}).get("gpu_time_source")
    devices = reader.behind.get("deviceProperties", [])
    with open(path, "w", encoding="utf-8") as file:
        file.write(header + ",\n".join(map(spell_row, rows)))
        file.write(f'\n],"traceName":"custream","deviceProperties":{spell(devices)},\n"totals":{spell(totals(rows, source))},\n"neverDestroyed":[]}}\n')
    reader.forget(end)
    return True
