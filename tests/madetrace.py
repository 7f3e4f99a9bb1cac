"""Traces made row by row, for cases of `custream report`, and the report's tables as data."""
import json

from tests.handmade import GPU, HOST, bound, custream, meta, render, slice_, trailer_of
from tests.trace import LIVES
from tests.tracestory import MAIN, Story

WORKER = 4251
H200 = [{"id": 0, "name": "H200", "numSms": 132}]


class Made(Story):
    """A story that need not be one that a recorder would tell: work without its call, streams whose life nobody knows, several devices, ranges."""

    def stream(self, lane, device=GPU, origin="created", name=None, **args):
        name = name or f"stream {lane}"
        about = {"cs.stream": lane, "origin": origin, "name": name, "flags": "non-blocking", "priority": 0, "requested priority": 0, **args}
        self.rows += [meta("thread_name", device, lane, name),
                      {"ph": "i", "s": "t", "cat": "cs_stream", "name": f"stream {lane} begins", "pid": device, "tid": LIVES, "ts": 0, "args": about}]

    def ran(self, name, began, lasted, lane=13, cat="kernel", device=GPU, **args):
        """Work of which no call is known."""
        self.rows.append(slice_(cat, name, device, lane, began, lasted, device=device, stream=lane, **args))

    def launch(self, name, at, began, lasted, lane=13, call="cuLaunchKernel", took=2, thread=MAIN, device=GPU, **work):
        """A call at `at`, and its work."""
        self.correlation += 1
        self.call(call, at, took, thread, **{"correlation": self.correlation, "cs.stream": lane, "cs.device": device})
        self.ran(name, began, lasted, lane, device=device, correlation=self.correlation, **work)
        self.rows[-2:] = bound(*self.rows[-2:])

    def range(self, name, at, took, thread=MAIN, **args):
        self.rows.append(slice_("user_annotation", name, HOST, thread, at, took, **args))

    def text(self, trailer=trailer_of(deviceProperties=H200)):
        return render(dict(enumerate(self.metas + self.rows)), trailer=trailer)


def report(tmp_path, content, said=""):
    """The tables of a trace, by key; the content is a Made, or the file's text."""
    path = tmp_path / "t.json"
    path.unlink(missing_ok=True)  # some file systems write out what a file had before they cut it, and a busy disk takes long for that
    path.write_text(content.text() if isinstance(content, Made) else content, encoding="utf-8")
    return report_of(path, said)


def report_of(path, said=""):
    """`said`: words of the one line on stderr; none: nothing is said."""
    done = custream("report", "--json", path)
    assert done.returncode == 0 and said in done.stderr and done.stderr.count("\n") == bool(said), done.stderr
    return json.loads(done.stdout)["tables"]


def only(rows):
    (row,) = rows
    return row


def by(rows, *keys):
    """Rows by the cells that name them; no two have the same."""
    found = {row[keys[0]] if len(keys) == 1 else tuple(row[key] for key in keys): row for row in rows}
    assert len(found) == len(rows)
    return found


def cells(row, *keys):
    return tuple(row[key] for key in keys)


def process_range(name, id_, ts, dur):
    about = {"cat": "user_annotation", "name": name, "id2": {"local": id_}, "pid": HOST, "tid": MAIN}
    return [{"ph": "b", "ts": ts, "args": {}, **about}, {"ph": "e", "ts": ts + dur, **about}]
