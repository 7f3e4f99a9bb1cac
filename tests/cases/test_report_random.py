"""`custream report` on small programs, most of which hypothesis makes up: each device's idle time, and what held the work that came next, against tests/reportmodel.py.

A program is run by tests/apps/script.c on two devices: streams of every sort, events, host functions, values in memory, several threads, waits of the host.
"""
import pathlib
import tempfile

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings, strategies as st

from tests import BUILD
from tests.cases.test_policy_property import programs as programs_with_graphs
from tests.report import Report
from tests.reportmodel import check_idle
from tests.streamscript import run_script, text_of
from tests.trace import Trace

DEVICES = {0: ("s1", "s2", "s3"), 1: ("s4", "s5")}
NON_BLOCKING = ("s2", "s5")
MENU = ["kernel"] * 6 + ["copy", "pause", "event", "event", "event", "value", "rest", "sync", "device"]


class Writer:
    """Writes a program line by line. Each thread has a device that it uses."""

    def __init__(self, draw):
        self.draw = draw
        self.lines = [(0, "device", 1), *((0, "create", s, int(s in NON_BLOCKING)) for s in DEVICES[1]),
                      (0, "device", 0), *((0, "create", s, int(s in NON_BLOCKING)) for s in DEVICES[0])]
        self.device = [0] * draw(st.integers(1, 2))
        self.events = self.values = 0

    def one(self, *choices):
        return self.draw(st.sampled_from(choices))

    def thread(self):
        return self.one(*range(len(self.device)))

    def stream(self, thread):
        return self.one(*DEVICES[self.device[thread]], *DEVICES[self.device[thread]], "legacy", "own")

    def put(self, thread, *line):
        self.lines.append((thread, *line))

    def do_kernel(self):
        thread = self.thread()
        self.put(thread, "step", self.stream(thread), "c0", 1, self.one(50, 200, 400, 800))

    def do_copy(self):
        thread = self.thread()
        if self.one(0, 1):
            self.put(thread, "copy", self.stream(thread), "c1", "c2")
        else:
            self.put(thread, "upd", "c1", 5)

    def do_pause(self):
        thread = self.thread()
        self.put(thread, "pause", self.stream(thread), self.one(300, 900))

    def do_event(self):
        """Another stream waits, of this device or the other, and may be waited for in turn."""
        if self.events > 28:
            return
        self.events += 1
        event = f"e{self.events}"
        thread, other = self.thread(), self.thread()
        self.put(thread, "event", event, 2)
        self.put(thread, "record", event, self.stream(thread))
        if self.one(0, 1):
            self.do_kernel()
        if self.one(0, 1):
            self.do_device(other)
        for _ in range(self.one(1, 1, 2)):
            self.put(other, "wait", self.stream(other), event)

    def do_value(self):
        """Nothing for which the host waits comes between the wait for a value and what writes it. The next work is on the stream, or held by an event or the legacy
        stream."""
        if self.values > 28:
            return
        self.values += 1
        thread, cell = self.thread(), f"h{self.values}"
        stream = self.one(*DEVICES[self.device[thread]])
        self.put(thread, "hold", stream, cell)
        way = self.one("own", "own", "event", "legacy")
        if way == "event" and self.events <= 28:
            self.events += 1
            self.put(thread, "event", f"e{self.events}", 2)
            self.put(thread, "record", f"e{self.events}", stream)
            stream = self.stream(thread)
            self.put(thread, "wait", stream, f"e{self.events}")
        self.put(thread, "step", "legacy" if way == "legacy" else stream, "c0", 1, 100)
        self.put(thread, "rest", self.one(200, 600))
        self.put(thread, "release", cell)

    def do_rest(self):
        self.put(self.thread(), "rest", self.one(100, 500, 1000))

    def do_sync(self):
        thread = self.thread()
        self.put(thread, *self.one(("sync", self.stream(thread)), ("ctxsync",)))

    def do_device(self, thread=None):
        thread = self.thread() if thread is None else thread
        self.device[thread] = 1 - self.device[thread]
        self.put(thread, "device", self.device[thread])


@st.composite
def programs(draw):
    writer = Writer(draw)
    for what in draw(st.lists(st.sampled_from(MENU), min_size=12, max_size=40)):
        getattr(writer, f"do_{what}")()
    return writer.lines


@pytest.fixture(scope="module")
def traced():
    """traced(program, api, environment): its trace's path."""
    with tempfile.TemporaryDirectory() as folder:
        def run(program, api, env=None):
            run_script(BUILD, pathlib.Path(folder), program, api, shim=True, env={"CUSTREAM_FAKE_DEVICES": 2, **(env or {})}).check()
            return pathlib.Path(folder) / "trace.json"
        yield run


def check(path):
    return check_idle(Trace(path), Report(path))


@pytest.mark.parametrize("api", ["legacy", "per-thread"])
@settings(derandomize=True, deadline=None, max_examples=40, phases=[Phase.explicit, Phase.generate], database=None, suppress_health_check=list(HealthCheck))
@given(program=programs())
def test_idle_time(traced, api, program):
    note(text_of(program, api))
    check(traced(program, api))


@pytest.mark.parametrize("graph", ["graph", "node"])
@settings(derandomize=True, deadline=None, max_examples=20, phases=[Phase.explicit, Phase.generate], database=None, suppress_health_check=list(HealthCheck))
@given(program=programs_with_graphs())
def test_idle_time_with_graphs(traced, graph, program):
    """What is inside of a graph the model does not know; the causes add up all the same."""
    note(text_of(program, "legacy"))
    path = traced(program, "legacy", {"CUSTREAM_GRAPH": graph})
    check_idle(Trace(path), Report(path), modelled=False)


# Streams s1 and s3 are blocking, s2 is not. Something holds the last kernel for PAUSE_US, by that cause.
PAUSE_US = 20_000  # so long that the host comes to the last line meanwhile
HELD = {
    "legacy behind a stream without work": ("legacy", [("pause", "s1", PAUSE_US), ("step", "legacy", "c0", 1, 100)]),
    "record on legacy": ("legacy", [("pause", "s1", PAUSE_US), ("record", "e1", "legacy"), ("step", "s3", "c0", 1, 100)]),
    "wait on legacy": ("legacy", [("record", "e1", "s2"), ("pause", "s1", PAUSE_US), ("wait", "legacy", "e1"), ("step", "s3", "c0", 1, 100)]),
    "event behind a value": ("event", [("hold", "s1", "h1"), ("record", "e1", "s1"), ("wait", "s2", "e1"), ("step", "s2", "c0", 1, 100), "release"]),
    "legacy behind a value": ("legacy", [("hold", "s1", "h1"), ("step", "legacy", "c0", 1, 100), "release"]),
    "value, then an event that comes later": (
        "event", [("hold", "s2", "h1"), ("pause", "s3", PAUSE_US), ("record", "e1", "s3"), ("wait", "s2", "e1"), ("step", "s2", "c0", 1, 100), ("release", "h1")]),
}


@pytest.mark.parametrize("case", HELD)
def test_rule(traced, case):
    cause, lines = HELD[case]
    program = [("create", "s1", 0), ("create", "s2", 1), ("create", "s3", 0), ("event", "e1", 2), ("step", "s2", "c0", 1, 100), ("sync", "s2")]
    for line in lines:
        program += [("rest", PAUSE_US), ("release", "h1")] if line == "release" else [line]
    found = check(traced([(0, *line) for line in program], "legacy"))
    assert found[cause] > 0, found
