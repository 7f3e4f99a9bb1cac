"""Programs for tests/apps/script.c: how they are run, what they must compute, and what of two runs can be compared.

A program is a list of lines (thread, operation, arguments...). `Reference` says what its cells must hold when CUDA's rules of order are kept, and
which values no rule decides, since two pieces of work touch them that nothing orders.
"""
import dataclasses
import functools
import re
import subprocess

from tests.cases.conftest import app_environment

# Calls of the table by which the shim asks the driver something for itself: they change nothing. It makes them outside of its wrappers.
ASKED_BY_SHIM = {"cuStreamGetCtx", "cuStreamGetGreenCtx", "cuStreamGetFlags", "cuStreamGetPriority", "cuStreamIsCapturing", "cuCtxGetStreamPriorityRange"}

DEFAULTS = ("zero", "legacy", "own")
NOT_READY = 600
MASK = 0xffffffff


def text_of(program, api):
    return f"api {api}\n" + "".join(" ".join(map(str, line)) + "\n" for line in program)


@dataclasses.dataclass
class Ran:
    rc: int
    stdout: str
    stderr: str
    journal: list

    def check(self):
        assert self.rc == 0, f"{self.rc}\n{self.stdout}\n{self.stderr}"
        return self

    def values(self):
        """What it printed, by line of the program, "end", callback or cell."""
        found = {}
        for line in self.stdout.splitlines():
            key, _, rest = line.partition(": " if line.startswith("callback") else " ")
            if key == "cell":
                key, _, rest = rest.partition(" ")
            found[int(key) if key.isdigit() else key] = rest
        return found


def run_script(build, folder, program, api, shim=False, env=None):
    """Runs a program in a folder for its files; without the shim, or with it and an environment."""
    script, journal = folder / "script", folder / "journal"
    script.write_text(text_of(program, api))
    child = app_environment(build, folder / "trace.json", shim, {"CUSTREAM_FAKE_JOURNAL": journal, **(env or {})})
    done = subprocess.run([build / "tests/script", script], env=child, cwd=folder, timeout=60, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False)
    return Ran(done.returncode, done.stdout, done.stderr, program_journal(journal.read_text().splitlines(), build))


@functools.cache
def wrapper_code(library):
    """Where the code of the wrappers is in the library, as (first, behind the last) of its sections: calls from there are the program's."""
    listing = subprocess.run(["readelf", "-SW", library], check=True, capture_output=True, text=True).stdout
    found = re.findall(r"\] cs_wrappers\w* +PROGBITS +([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+) .* AX ", listing)
    assert found, f"{library}: no section of wrappers\n{listing}"
    return [(int(at, 16), int(at, 16) + int(size, 16)) for at, size in found]


def is_asked_by_shim(build, call, caller):
    file, _, place = caller.partition("+")
    if not file.startswith("libcustream_shim") or ":" in file or re.sub("_pt[ds][sz]$", "", call) not in ASKED_BY_SHIM:
        return False
    return not any(first < int(place, 16) <= behind for first, behind in wrapper_code(build / file))


def program_journal(lines, build):
    """The journal without what the shim asks for itself, and without who called; whether polled work was done is left out, since time decides it."""
    kept = []
    for line in lines:
        what, _, caller = line.partition(" by ")
        if is_asked_by_shim(build, what.split()[1], caller):
            continue
        kept.append(re.sub(r"(Query\S* .*) -> 600$", r"\1 -> 0", what))
    return kept


def formless(journal):
    """The journal with both forms of a call under one name: the stream that it went to says what the form was for."""
    return [re.sub(r"^(\d+ \w+?)_pt(?:ds|sz) ", r"\1 ", line) for line in journal]


# --- what a program must compute ---

@dataclasses.dataclass(eq=False)
class Stream:
    legacy: bool = False
    blocking: bool = True
    before: int = 0                # work on it so far, and all that came before that, as bits
    graph: list = None             # being captured: the graph
    last: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(eq=False)
class Event:
    before: int = 0
    graph: list = None
    last: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(eq=False)
class Effect:
    """What one piece of work does to a cell: kind, cell, constant or None, other cell or None; `line` for what is printed."""
    kind: str
    cell: str
    k: int = 0
    other: str = None
    line: int = 0

    def touched(self):
        """(cell, whether it is written)"""
        if self.kind == "print":
            return [(self.cell, False)]
        return [(self.cell, True)] + ([(self.other, False)] if self.other else [])


class Reference:
    """The program run in the order of its lines, which keeps every rule, with the rules' order noted; then what they leave open.

    `default` is what handle 0 and calls without a stream mean: "legacy" or "per-thread". `streams` is the policy of that name: under "serial" each
    piece of work comes after all before it, under "sync" after all that was waited for: everything but single values, and what is put beside a capture.
    """

    def __init__(self, program, default, streams="keep"):
        self.default, self.policy = default, streams
        self.legacy = Stream(legacy=True)
        self.own, self.slots, self.streams = {}, {}, [self.legacy]
        self.events, self.graphs, self.launched = {}, {}, {}
        self.host = 0     # work that the host knows to be done
        self.waited = 0   # the same, from the next line on
        self.work = []    # (effects, before)
        for number, (thread, name, *arguments) in enumerate(program, 2):
            self.thread, self.line, self.name = thread, number, name
            getattr(self, f"do_{name}", lambda *_: None)(*arguments)
            self.host |= self.waited
        self.execute()

    # The results: values of cells, None where no rule decides; what `read` prints, by line, the same way.
    def execute(self):
        open_cells = self.races()
        self.cells, self.printed = {}, {}
        for index, (effects, _) in enumerate(self.work):
            for effect in effects:
                self.apply(effect, open_cells.get(index, ()))

    def races(self):
        """By work, the cells that it touches in no order with another that touches them too, one of the two writing."""
        touched, found = {}, {}
        for index, (effects, before) in enumerate(self.work):
            for cell, writes in {t for effect in effects for t in effect.touched()}:
                for other, other_writes in touched.get(cell, ()):
                    if (writes or other_writes) and other != index and not before >> other & 1:
                        found.setdefault(index, set()).add(cell)
                        found.setdefault(other, set()).add(cell)
                touched.setdefault(cell, []).append((index, writes))
        return found

    def apply(self, effect, racing):
        def value(cell):
            return None if cell in racing else self.cells.get(cell, 0)
        now = value(effect.cell)
        other = value(effect.other) if effect.other else effect.k
        if effect.kind == "print":
            self.printed[effect.line] = now
        elif effect.cell in racing or other is None or (effect.kind == "step" and now is None):
            self.cells[effect.cell] = None
        else:
            self.cells[effect.cell] = (now * 31 + other) & MASK if effect.kind == "step" else other & MASK

    # --- order ---

    def stream(self, name):
        if name == "zero":
            name = "legacy" if self.default == "legacy" else "own"
        if name == "legacy":
            return self.legacy
        if name != "own":
            return self.slots[name]
        if self.thread not in self.own:
            self.own[self.thread] = Stream()
            self.streams.append(self.own[self.thread])
        return self.own[self.thread]

    def ahead(self, stream, waits=False):
        """What comes before the next work on the stream, or before a wait there."""
        before = self.host | stream.before
        if self.policy == "serial":
            before |= (1 << len(self.work)) - 1
        if stream.legacy:
            for other in self.streams:
                before |= other.before if other.blocking else 0
        elif stream.blocking and not waits:
            before |= self.legacy.before
        return before

    def add(self, effects, before):
        self.work.append((effects, before))
        done = before | 1 << len(self.work) - 1
        waits = self.name not in ("value", "record", "recordx", "wait", "upload", "instantiatex", "sync")
        if self.policy == "sync" and waits and not any(stream.graph is not None for stream in self.streams):
            self.waited |= done
        return done

    def put(self, name, *effects, after=0):
        """Work on a stream, or in the graph that it is captured into. Returns it and all before it, as bits."""
        stream = self.stream(name)
        if stream.graph is not None:
            stream.graph.append((effects, list(stream.last)))
            stream.last = [len(stream.graph) - 1]
            return 0
        stream.before = self.add(effects, self.ahead(stream, self.name == "wait") | after)
        return stream.before

    # --- operations; those that order nothing and touch no cell need none ---

    def do_create(self, name, flags, *_):
        self.slots[name] = Stream(blocking=not flags)
        self.streams.append(self.slots[name])
    do_createp = do_green = do_create

    def do_step(self, s, cell, k, *_):
        self.put(s, Effect("step", cell, k))
    do_stepx = do_host = do_callback = do_step

    def do_mix(self, s, cell, other, *_):
        self.put(s, Effect("step", cell, other=other))

    def do_set(self, s, cell, value):
        self.put(s, Effect("set", cell, value))
    do_up = do_value = do_set

    def do_copy(self, s, cell, other):
        self.put(s, Effect("set", cell, other=other))
    do_down = do_copy

    def do_setd(self, cell, value):
        self.put("zero", Effect("set", cell, value))

    def do_copyd(self, cell, other):
        self.put("zero", Effect("set", cell, other=other))

    def do_upd(self, cell, value):
        self.host |= self.put("zero", Effect("set", cell, value))

    def do_read(self, cell):
        self.host |= self.put("zero", Effect("print", cell, line=self.line))

    def do_alloc(self, s, cell):
        self.put(s, Effect("set", cell, 0))
    do_free = do_alloc

    def do_sync(self, s):
        stream = self.stream(s)
        self.host |= self.put(s) if stream.legacy else stream.before

    def do_ctxsync(self):
        self.host |= (1 << len(self.work)) - 1

    def do_event(self, e, *_):
        self.events[e] = Event()

    def do_record(self, e, s, *_):
        event, stream = self.events.get(e), self.stream(s)
        if event is None:
            return
        if stream.graph is not None:
            self.events[e] = Event(graph=stream.graph, last=list(stream.last))
        else:
            self.events[e] = Event(before=self.put(s))
    do_recordx = do_record

    def do_wait(self, s, e):
        event, stream = self.events.get(e), self.stream(s)
        if event is None:
            return
        if event.graph is not None and any(other.graph is event.graph for other in self.streams):
            stream.graph = event.graph
            stream.last += [node for node in event.last if node not in stream.last]
        elif event.before:
            self.put(s, after=event.before)

    def do_esync(self, e):
        self.host |= self.events[e].before if e in self.events else 0

    def do_edestroy(self, e):
        self.events.pop(e, None)

    def do_begin(self, s, *_):
        stream = self.stream(s)
        if not stream.legacy:
            stream.graph, stream.last = [], []

    def do_end(self, s, g):
        graph = self.stream(s).graph
        if graph is None:
            return
        self.graphs[g] = graph
        for stream in self.streams:
            if stream.graph is graph:
                stream.graph, stream.last = None, []

    def do_instantiate(self, g):
        if g in self.graphs:
            self.launched[g] = 0

    def do_instantiatex(self, g, s):
        if g in self.graphs:
            self.launched[g] = 0
            self.put(s)

    def do_upload(self, g, s):
        if g in self.launched:
            self.put(s)

    def do_launch(self, g, s):
        """Nodes follow what they depend on; launches of one graph follow each other."""
        if g not in self.launched:
            return
        stream, nodes = self.stream(s), []
        all_before = before = self.ahead(stream) | self.launched[g]
        for effects, last in self.graphs[g]:
            own = before
            for node in last:
                own |= nodes[node]
            nodes.append(self.add(effects, own))
            all_before |= nodes[-1]
        stream.before = self.launched[g] = self.add((), all_before)
