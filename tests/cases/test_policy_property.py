"""What policies promise, on programs that hypothesis makes up: streams, events, graphs, the default stream in all its forms, several threads.

A program is run by tests/apps/script.c with its calls in the order of its lines. Cells and read values count where CUDA's rules decide them, as the
reference of tests/streamscript.py finds; results, queried values and the simulated driver's journal count always.
"""
import collections
import pathlib
import random
import re
import tempfile

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings, strategies as st

from tests import BUILD
from tests.streamscript import DEFAULTS, Reference, formless, run_script

CELLS = ("c0", "c1", "c2")
ASIDE = "c3"  # touched beside captures
HOST_CELLS = ("h0", "h1")
RELAXED = 2


def examples(count):
    """A failing program is shown as it was made: to make it small, take out lines by hand."""
    return settings(derandomize=True, deadline=None, max_examples=count, phases=[Phase.explicit, Phase.generate], database=None,
                    suppress_health_check=list(HealthCheck))


class Writer:
    """Writes a program line by line, keeping in mind what there is; `order` is how often work on a cell is ordered behind what others did to it."""

    def __init__(self, chance, order, plain):
        self.chance, self.order, self.plain = chance, order, plain
        self.lines = []
        self.threads = chance.randint(1, 3)
        self.streams, self.events, self.graphs = {}, [], []
        self.made = dict.fromkeys("semg", 0)
        self.touched = {cell: {} for cell in (*CELLS, ASIDE, *HOST_CELLS)}  # by whom: (stream, thread) to True

    def one(self, *choices):
        return self.chance.choice(choices)

    def number(self, low, high):
        return self.chance.randint(low, high)

    def name(self, kind):
        self.made[kind] += 1
        return f"{kind}{self.made[kind]}"

    def room(self, kind):
        return self.made[kind] < 30

    def thread(self):
        return self.number(0, self.threads - 1)

    def put(self, thread, *line):
        self.lines.append((thread, *line))

    def any_stream(self):
        return self.one("zero", *self.streams, *DEFAULTS, *self.streams)

    # --- order ---

    def behind(self, stream, thread, cells):
        """Orders the thread's next work on the stream behind all that others did to the cells, mostly; then it is the last to have touched them."""
        here = (stream, thread if stream in DEFAULTS else None)
        for cell in cells:
            others = [other for other in self.touched[cell] if other != here]
            if self.number(1, 100) <= self.order:
                for other in others:
                    self.order_after(here, thread, *other)
                self.touched[cell] = {}
            self.touched[cell][here] = True

    def order_after(self, here, thread, stream, owner):
        owner = thread if owner is None else owner
        way = self.one("event", "event", "event", "event", "event", "sync", "ctxsync")
        if way == "event" and self.room("e"):
            event = self.name("e")
            self.put(thread, "event", event, 2)
            self.put(owner, *(("recordx", event, stream, 0) if self.number(0, 5) == 5 else ("record", event, stream)))
            self.put(thread, *self.one(("wait", here[0], event), ("wait", here[0], event), ("wait", here[0], event), ("esync", event)))
            self.events.append(event)
        elif way == "sync":
            self.put(owner, "sync", stream)
        else:
            self.put(thread, "ctxsync")

    # --- work ---

    def work(self, stream, cell, captured=False):
        """One piece of work on a stream: what the line is, and the cells that it touches."""
        other = self.one(*CELLS)
        k, us = self.number(1, 9), self.one(300, 300, 900, 0)
        kinds = ["step", "step", "mix", "set", "copy", "down", "host", "stepx", "value"] + ([] if captured else ["callback", "up"])
        kind = self.one(*kinds)
        if kind == "down":
            host = self.one(*HOST_CELLS)
            return ("down", stream, host, cell), {host, cell}
        if kind in ("mix", "copy") and other == cell:
            kind = "step"
        if kind in ("mix", "copy"):
            return (kind, stream, cell, other) + ((us,) if kind == "mix" else ()), {cell, other}
        tail = {"step": (k, us), "stepx": (k, us, self.number(-6, 1))}.get(kind, (k,))
        return (kind, stream, cell, *tail), {cell}

    def do_work(self):
        thread, stream = self.thread(), self.any_stream()
        line, cells = self.work(stream, self.one(*CELLS))
        self.behind(stream, thread, sorted(cells))
        self.put(thread, *line)

    def do_default(self):
        """A call that uses the default stream without naming it."""
        thread, cell, other = self.thread(), self.one(*CELLS), self.one(*CELLS)
        line = self.one(("setd", cell, 5), ("upd", cell, 6), ("read", cell), ("copyd", cell, other))
        if line[0] == "copyd" and cell == other:
            line = ("read", cell)
        self.behind("zero", thread, sorted({cell, other}) if line[0] == "copyd" else [cell])
        self.put(thread, *line)

    def do_memory(self):
        if not self.room("m"):
            return
        thread, stream, memory, cell = self.thread(), self.any_stream(), self.name("m"), self.one(*CELLS)
        self.put(thread, "alloc", stream, memory)
        self.put(thread, "set", stream, memory, self.number(1, 99))
        self.behind(stream, thread, [cell])
        self.put(thread, "copy", stream, cell, memory)
        self.put(thread, "free", stream, memory)

    # --- streams and events ---

    def do_create(self):
        if not self.room("s") or len(self.streams) > 5:
            return
        stream, flags, priority = self.name("s"), self.number(0, 1), self.number(-7, 2)
        self.put(self.thread(), *self.one(("create", stream, flags), ("createp", stream, flags, priority), ("green", stream, 1, priority)))
        self.streams[stream] = flags

    def do_destroy(self):
        if not self.streams:
            return
        stream = self.one(*self.streams)
        if self.number(0, 1):
            self.put(self.thread(), "sync", stream)
        self.put(self.thread(), "destroy", stream)
        del self.streams[stream]
        for touched in self.touched.values():
            touched.pop((stream, None), None)

    def do_sync(self):
        thread, stream = self.thread(), self.any_stream()
        self.put(thread, "sync", stream)
        if stream in self.streams:
            self.put(thread, "query", stream)

    def do_event(self):
        thread = self.thread()
        if self.events and self.number(0, 1):
            event = self.one(*self.events)
            if self.number(0, 5) == 5:
                self.events.remove(event)
                self.put(thread, "edestroy", event)
                return
            self.put(thread, *self.one(("epoll", event), ("wait", self.any_stream(), event), ("esync", event), ("record", event, self.any_stream())))
        elif self.room("e"):
            event = self.name("e")
            self.put(thread, "event", event, 2)
            self.put(thread, "wait", self.any_stream(), event)  # for nothing
            self.put(thread, "record", event, self.any_stream())
            self.events.append(event)

    def do_ask(self):
        stream = self.any_stream()
        asked = [("poll", stream), ("capturing", stream), ("context", stream)]
        if not self.plain:
            asked += [("priority", stream), ("getprio", stream), ("flags", stream), ("id", stream), ("range",), ("info", stream)]
        self.put(self.thread(), *self.one(*asked))

    def do_priority(self):
        if not self.plain:
            self.put(self.thread(), "setprio", self.any_stream(), self.number(-7, 2))

    def do_wrong(self):
        """What the driver refuses, in a way that every policy leaves alone."""
        stream = self.any_stream()
        thread = self.thread()
        if self.number(0, 3) == 3:
            self.put(thread, "begin", "legacy", RELAXED)
            self.put(thread, "end", "legacy", "g31")
        self.put(thread, *self.one(("destroy", self.one(*DEFAULTS)), ("record", "e31", stream), ("wait", stream, "e31"),
                                   ("launch", "g31", stream), ("end", stream, "g31"), ("create", "s31", 8)))

    # --- graphs ---

    def do_capture(self):
        """A stream captures, with another that joins it and is joined again, and a third that has nothing to do with it. Where handle 0 is refused, all of
        it is work like any other."""
        if not self.room("g") or self.made["e"] > 27:
            return
        thread, graph = self.thread(), self.name("g")
        stream = self.one("zero", "own", *self.streams)
        fork = self.one(None, *(s for s in self.streams if s != stream))
        inside = [self.work(stream, "c0", True), self.work(stream, "c1", True)]
        forked = ("step", fork, "c2", self.number(1, 9), self.one(300, 0))
        cells = sorted(set().union(*(cells for _, cells in inside)) | {"c2"})
        aside = self.one(None, *(s for s in self.streams if s not in (stream, fork)))
        if aside:
            self.behind(aside, self.thread(), [ASIDE])
        self.behind(stream, thread, cells)
        first, second = (self.name("e"), self.name("e")) if fork else (None, None)
        if fork:
            self.put(thread, "event", first, 2)
            self.put(thread, "event", second, 2)
        self.put(thread, "begin", stream, self.one(1, RELAXED))
        self.put(thread, *inside[0][0])
        if aside:
            self.put(self.thread(), *self.one(("step", aside, ASIDE, self.number(1, 9), 300), ("set", aside, ASIDE, 4), ("host", aside, ASIDE, 5)))
        if fork:
            self.put(thread, "record", first, stream)
            self.put(thread, "wait", fork, first)
            self.put(thread, *forked)
            self.put(thread, "record", second, fork)
            self.put(thread, "wait", stream, second)
        self.put(thread, *inside[1][0])
        self.put(thread, "end", stream, graph)
        self.put(thread, *self.one(("instantiate", graph), ("instantiatex", graph, "zero"), ("instantiatex", graph, stream)))
        self.graphs.append((graph, cells))
        self.launch(thread, graph, cells)

    def launch(self, thread, graph, cells):
        stream = self.any_stream()
        self.behind(stream, thread, cells)
        if self.number(0, 3) == 0:
            self.put(thread, "upload", graph, stream)
        self.put(thread, "launch", graph, stream)

    def do_launch(self):
        if self.graphs:
            self.launch(self.thread(), *self.one(*self.graphs))


MENU = ["work"] * 12 + ["default"] * 2 + ["create"] * 3 + ["memory", "destroy", "sync", "event", "ask", "ask", "priority", "wrong", "capture", "launch"]


@st.composite
def programs(draw, order=None, plain=False):
    """`plain`: nothing is asked that a policy may answer in its own way. One number makes the program: to draw each of its choices takes longer than to run it."""
    chance = random.Random(draw(st.integers(0, 2**32 - 1)))
    writer = Writer(chance, chance.choice([100, 50, 0]) if order is None else order, plain)
    writer.do_create()
    writer.do_create()
    for what in chance.choices(MENU, k=chance.randint(8, 30)):
        getattr(writer, f"do_{what}")()
    return writer.lines


@pytest.fixture(scope="module")
def run():
    """run(program, api, shim=..., env=...) in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        yield lambda program, api, **how: run_script(BUILD, pathlib.Path(folder), program, api, **how).check()


def decided(ran, reference):
    """What was printed, without the values that no rule decides."""
    values = ran.values()
    for line, value in reference.printed.items():
        if value is None and str(values[line]).startswith("read 0 "):
            values[line] = "read 0"
    for cell, value in reference.cells.items():
        if value is None:
            values.pop(cell, None)
    return values


def computes(ran, reference):
    """The cells and the values read are the reference's."""
    values = ran.values()
    for cell in (*CELLS, ASIDE, *HOST_CELLS):
        wanted = reference.cells.get(cell, 0)
        if wanted is not None:
            assert int(values.get(cell, 0)) == wanted, cell
    for line, wanted in reference.printed.items():
        if wanted is not None:
            assert values[line] == f"read 0 {wanted}"


def results(ran):
    """What each line was answered, without the values."""
    return {line: said.split()[:2] for line, said in ran.values().items() if isinstance(line, int)}


def show(program):
    note("\n".join(" ".join(map(str, line)) for line in program))


# --- the reference and the simulated driver agree ---

@pytest.mark.parametrize("api", ["legacy", "per-thread"])
@examples(36)
@given(program=programs())
def test_reference(run, api, program):
    show(program)
    computes(run(program, api), Reference(program, api))


# --- without a policy ---

# Nothing of this changes what a program asks for.
UNCHANGING = {
    "recorded": {}, "off": {"CUSTREAM_TRACE": "off"}, "audit": {"CUSTREAM_DEFAULT_STREAM": "audit"}, "window": {"CUSTREAM_WINDOW": "profiler"},
    "rules": {"CUSTREAM_POLICY": '{"rules": [{"match": {"library": "nobody.so"}, "set": {"priority": -1, "default_stream": "per-thread"}}]}'},
    "rules, off": {"CUSTREAM_POLICY": '{"trace": "off", "rules": [{"match": {"thread": "nobody"}, "set": {"default_stream": "legacy"}}]}'},
}


@pytest.mark.parametrize("how", UNCHANGING)
@examples(30)
@given(program=programs(), api=st.sampled_from(["legacy", "per-thread"]))
def test_keep(run, how, program, api):
    """The shim changes nothing: results, values and the driver's journal are those without it."""
    show(program)
    reference = Reference(program, api)
    bare, shimmed = run(program, api), run(program, api, shim=True, env=UNCHANGING[how])
    assert decided(shimmed, reference) == decided(bare, reference)
    assert shimmed.journal == bare.journal
    assert not shimmed.stderr or how in ("audit", "window")  # which say what came of it


@examples(30)
@given(program=programs())
def test_audit(run, program):
    """What the audit calls safe is decided by the same rules under per-thread default streams; where no order goes it finds none that does. If it cannot
    tell, the program has what it names."""
    timely = ("poll", "query", "epoll")  # an answer may order things, as time decides
    program = [line for line in program if line[1] not in timely and line[1:3] != ("begin", "zero")]
    show(program)
    verdict = run(program, "legacy", shim=True, env={"CUSTREAM_DEFAULT_STREAM": "audit"}).stderr
    legacy, own = Reference(program, "legacy"), Reference(program, "per-thread")
    doubts = re.findall("^custream: audit: cannot tell(?: for per-thread default streams)?: (.*)", verdict, flags=re.M)
    for doubt in doubts:
        has = {line[1] for line in program}
        why = {"several threads make calls": len({line[0] for line in program}) > 1, "an order stands only by a synchronous copy": "upd" in has, "events are used in graphs": "begin" in has,
               "a call on the default stream failed because of a capture": "begin" in has, "an order would be lost between operations on different memory": has & {"setd", "upd", "read", "copyd"}}
        assert any(holds and doubt.startswith(words) for words, holds in why.items()), verdict
    if doubts:
        return
    if "NOT SAFE" in verdict:
        assert [before for _, before in legacy.work] != [before for _, before in own.work]
        return
    assert re.match("custream: audit: (safe|nothing on the default stream)", verdict), verdict
    for ours, theirs in ((legacy.cells, own.cells), (legacy.printed, own.printed)):
        assert {key: value for key, value in ours.items() if value is not None}.items() <= theirs.items()


# --- the default stream ---

OTHER = {"per-thread": "legacy", "legacy": "per-thread"}


@pytest.mark.parametrize("target", OTHER)
@examples(50)
@given(program=programs())
def test_default_stream(run, target, program):
    """The program behaves as one that was compiled for that default stream: results, values, what callbacks are given, and where each call goes."""
    show(program)
    reference = Reference(program, target)
    compiled, steered = run(program, target), run(program, OTHER[target], shim=True, env={"CUSTREAM_DEFAULT_STREAM": target})
    assert not steered.stderr
    assert decided(steered, reference) == decided(compiled, reference)
    assert formless(steered.journal) == formless(compiled.journal)
    computes(steered, reference)


@pytest.mark.parametrize("target", OTHER)
@examples(30)
@given(program=programs())
def test_default_stream_of_the_same_form(run, target, program):
    """A program that was compiled that way already is left alone, whatever is recorded."""
    show(program)
    reference = Reference(program, target)
    bare, steered = run(program, target), run(program, target, shim=True, env={"CUSTREAM_DEFAULT_STREAM": target})
    assert not steered.stderr
    assert decided(steered, reference) == decided(bare, reference)
    assert steered.journal == bare.journal


@pytest.mark.parametrize("target, replaced, by", [("per-thread", "legacy", "own"), ("legacy", "own", "legacy")])
@examples(36)
@given(program=programs(), api=st.sampled_from(["legacy", "per-thread"]))
def test_default_handles(run, target, replaced, by, program, api):
    """With DEFAULT_HANDLES=all the explicit handle of the other default stream is changed too: as if the program had been written so."""
    written = [tuple(by if word == replaced else word for word in line) for line in program]
    show(program)
    reference = Reference(written, target)
    compiled = run(written, target)
    steered = run(program, api, shim=True, env={"CUSTREAM_DEFAULT_STREAM": target, "CUSTREAM_DEFAULT_HANDLES": "all"})
    assert not steered.stderr  # first: it says what could not be had
    before, after = decided(compiled, reference), decided(steered, reference)
    for key, value in after.items():  # callbacks are told the handle that the program gave
        if str(key).startswith("callback"):
            after[key] = value.replace(f"stream {replaced},", f"stream {by},")
    assert after == before
    assert formless(steered.journal) == formless(compiled.journal)


# --- priorities ---

LEAST, GREATEST = 0, -5

PRIORITIES = {
    "0:-1": (lambda asked: asked, -1), "0:-9": (lambda asked: asked, GREATEST), "0:0": (lambda asked: asked, 0),
    "set:-3": (lambda asked: -3, GREATEST), "shift:-2": (lambda asked: asked - 2, GREATEST), "shift:1": (lambda asked: asked + 1, GREATEST),
    "map:0=-1,-1=-4,-7=0": (lambda asked: {0: -1, -1: -4, -7: 0}.get(asked, asked), GREATEST),
}


def prioritised(journal, rule):
    """The journal as it must be when each priority that is asked for is changed; a stream without one is asked for with one where that changes."""
    change, greatest = PRIORITIES[rule]

    def given_for(asked):
        return max(greatest, min(LEAST, change(asked)))

    def line_of(line):
        words = line.split()
        if words[1] == "cuStreamCreate" and given_for(0) != 0:
            return line.replace(" cuStreamCreate ", " cuStreamCreateWithPriority ").replace(" ->", f" priority={given_for(0)} ->")
        return " ".join(f"priority={given_for(int(word[9:]))}" if word.startswith("priority=") else word for word in words)
    return [line_of(line) for line in journal]


@pytest.mark.parametrize("rule", PRIORITIES)
@examples(25)
@given(program=programs(), api=st.sampled_from(["legacy", "per-thread"]))
def test_priority(run, rule, program, api):
    """Streams, launches and attributes get the changed priorities; all else is as it was. Programs are told the range that there is for them."""
    show(program)
    reference = Reference(program, api)
    bare, steered = run(program, api), run(program, api, shim=True, env={"CUSTREAM_PRIORITY": rule})
    assert steered.journal == prioritised(bare.journal, rule)
    before, after = decided(bare, reference), decided(steered, reference)
    for number, (_, name, *_) in enumerate(program, 2):
        if name == "range":
            assert after[number] == f"range 0 0 {max(PRIORITIES[rule][1], GREATEST)}"
        if name in ("range", "priority", "getprio"):
            before.pop(number), after.pop(number)
    assert after == before
    assert not steered.stderr


# --- sharing and delays: what the program ordered stays ordered ---

def keeps_order(run, program, api, env):
    """The policy leaves what rules decide as it is, and the driver's answers. Returns both runs."""
    show(program)
    bare, steered = run(program, api), run(program, api, shim=True, env=env)
    computes(steered, Reference(program, api))
    assert results(steered) == results(bare)
    assert all("is being captured" in line for line in steered.stderr.splitlines())  # of a pool's stream, which is as the program will have it
    return bare, steered


def recorded(trace):
    return {} if trace else {"CUSTREAM_TRACE": "off"}


def kinds_created(journal):
    """How many streams were really made, by flags and by the priority that they have."""
    found = collections.Counter()
    for line in journal:
        words = dict(word.split("=") for word in line.split() if "=" in word)
        if re.search(r" cuStreamCreate\w* .* -> 0$", line):
            found[words["flags"], max(GREATEST, min(LEAST, int(words.get("priority", 0))))] += 1
    return found


@pytest.mark.parametrize("size", [1, 2, 4])
@examples(36)
@given(program=programs(plain=True), api=st.sampled_from(["legacy", "per-thread"]), trace=st.booleans())
def test_pool(run, size, program, api, trace):
    _, steered = keeps_order(run, program, api, {"CUSTREAM_STREAMS": f"pool:{size}", **recorded(trace)})
    assert all(count <= size for count in kinds_created(steered.journal).values())


@examples(50)
@given(program=programs(order=0, plain=True), api=st.sampled_from(["legacy", "per-thread"]), trace=st.booleans(),
       jitter=st.sampled_from(["off", "off", "seed=4,us=200,percent=30"]))
def test_serial(run, program, api, trace, jitter):
    """All work comes in the order in which it is asked for, whatever the streams; but for a green context's, which keeps its own."""
    program = [(thread, "createp" if name == "green" else name, *rest) for thread, name, *rest in program]
    _, steered = keeps_order(run, program, api, {"CUSTREAM_STREAMS": "serial", "CUSTREAM_JITTER": jitter, **recorded(trace)})
    computes(steered, Reference(program, api, "serial"))


@examples(50)
@given(program=programs(order=0, plain=True), api=st.sampled_from(["legacy", "per-thread"]), trace=st.booleans())
def test_sync(run, program, api, trace):
    """Each piece of work is waited for, and nothing else is changed."""
    bare, steered = keeps_order(run, program, api, {"CUSTREAM_STREAMS": "sync", **recorded(trace)})
    computes(steered, Reference(program, api, "sync"))
    waits = re.compile("cuStreamSynchronize|cuThreadExchangeStreamCaptureMode")
    assert [line for line in steered.journal if not waits.search(line)] == [line for line in bare.journal if not waits.search(line)]


@pytest.mark.parametrize("jitter", ["seed=1,us=200,percent=50", "seed=2,us=400,percent=100,at=stream", "seed=3,us=300,percent=100,at=host"])
@examples(30)
@given(program=programs(plain=True), api=st.sampled_from(["legacy", "per-thread"]))
def test_jitter(run, jitter, program, api):
    bare, steered = keeps_order(run, program, api, {"CUSTREAM_JITTER": jitter})
    mine = [line for line in steered.journal if "cuLaunchHostFunc" not in line]
    assert mine == [line for line in bare.journal if "cuLaunchHostFunc" not in line]  # only delays are added
    if "host" in jitter:
        assert steered.journal == bare.journal
    else:  # the same ones for the same seed
        assert steered.journal == run(program, api, shim=True, env={"CUSTREAM_JITTER": jitter}).journal


@pytest.mark.parametrize("target", OTHER)
@examples(30)
@given(program=programs(plain=True), sharing=st.sampled_from(["pool:2", "sync"]), jitter=st.sampled_from(["off", "seed=5,us=200,percent=30"]))
def test_together(run, target, program, sharing, jitter):
    """Several policies at once, over a program of the other form."""
    show(program)
    env = {"CUSTREAM_DEFAULT_STREAM": target, "CUSTREAM_STREAMS": sharing, "CUSTREAM_JITTER": jitter, "CUSTREAM_PRIORITY": "0:-2"}
    compiled, steered = run(program, target), run(program, OTHER[target], shim=True, env=env)
    computes(steered, Reference(program, target))
    assert results(steered) == results(compiled)
