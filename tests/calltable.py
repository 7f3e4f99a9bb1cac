"""The call table's rows, and the rules that each of them must keep, judged by cuda.h (tests/cudaheader.py).

Every check takes a Header and the rows that the table has under that header, and returns what is wrong as "call: what" lines.
"""
import dataclasses
import json
import re
import subprocess

from tests.cudaheader import unversioned

HANDLES = {"CUstream", "CUevent"}

# Calls that reach a stream or an event and have no row, each with the reason why seeing it would tell nothing.
EXCLUDED = {
    "cuOccupancyMaxPotentialClusterSize": "asks about a launch that is only described: the stream in the configuration is not used",
    "cuOccupancyMaxActiveClusters": "as cuOccupancyMaxPotentialClusterSize",
    "cuCheckpointProcessCheckpoint": "works on another process; the driver's own streams come back in its output, behind three pointers",
    "cuCheckpointProcessRestore": "as cuCheckpointProcessCheckpoint",
}

# The oldest launches: on the default stream, and from before per-thread streams, so that no sibling says it.
DEFAULT_STREAM_WITHOUT_SIBLING = {"cuLaunch", "cuLaunchGrid"}

# One launch on many streams has no stream of its own: CUDA_LAUNCH_PARAMS is an array, an entry a device.
MANY_STREAMS = {"cuLaunchCooperativeKernelMultiDevice"}

# By the time such a call returns its handle may be another object's: what the row's effect found before it is what the trace shows.
DESTROYS = re.compile(r"cu(Stream|Event)Destroy(_v\d+)?")

INTEGERS = re.compile(r"^(const )?(size_t|(unsigned )?(int|char|short|long long|long)|cuuint(32|64)_t|CUdevice|CU\w+(Mode|AttrID|Type|_enum))$")
ADDRESSES = re.compile(r"\*|^CUdeviceptr|^CU(array|context|graph|graphExec|greenCtx|mipmappedArray|memoryPool|module|function|kernel|\w*Ctx)$")
WIDTHS = {"unsigned char": 1, "unsigned short": 2, "unsigned int": 4}


@dataclasses.dataclass
class Row:
    """One row as the table writes it; `values` are (label, format, expression), `launch` the arguments of LAUNCHED or LAUNCHED_CONFIG."""
    name: str
    sibling: str
    kind: str
    how: set
    stream: str
    effect: str
    parameters: str
    arguments: list
    values: list
    launch: tuple
    hook: str = None  # the kind of hook that its calls meet

    @classmethod
    def read(cls, line):
        row = json.loads(line)
        values, launch = [], ()
        for item in split(row["values"]):
            if item.startswith("LAUNCHED"):
                macro, _, inner = item.partition("(")
                launch = (macro, *split(inner[:-1]))
            elif item.startswith("("):
                values.append(tuple(split(inside(item))))
            else:  # the name of a macro that shows the same values in several rows
                values.append((item, "MACRO", item))
        return cls(row["name"], row["sibling"], row["kind"], set(row["how"].split(" | ")) - {"PLAIN"}, row["stream"], row["effect"], row["parameters"], split(inside(row["arguments"])),
                   values, launch)

    def value(self, label):
        """The expression shown under a label, None when there is none."""
        return next((expression for shown, _, expression in self.values if shown == label), None)


def inside(text):
    """What stands between the outer parentheses."""
    assert text[0] == "(" and text[-1] == ")", text
    return text[1:-1]


def split(text):
    """Splits at the commas that no parenthesis encloses."""
    parts, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


def lines_of(root, include, sources, program, compiler):
    """What a program of these sources prints, compiled with that header."""
    subprocess.run([compiler, "-std=gnu11", "-Wall", "-Wextra", "-Werror", f"-I{root}", f"-I{root}/include", "-isystem", str(include),
                    *(f"{root}/{source}" for source in sources), "-o", str(program)], check=True)
    return subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout.splitlines()


def hook_kinds(root):
    """The kinds of hooks by number, as custream.h has them."""
    kinds = re.findall(r"CUSTREAM_HOOK_(\w+) = (\d+),", (root / "include" / "custream.h").read_text())
    return {int(number): kind for kind, number in kinds}


def compile_rows(root, include, program, compiler="gcc"):
    """The table as that header's version has it: name to Row, read from tests/dump_calls.c and tests/dump_hooks.c."""
    lines = lines_of(root, include, ["tests/dump_calls.c"], program, compiler)
    rows = [Row.read(line) for line in lines[1:]]
    names = [row.name for row in rows]
    assert len(names) == len(set(names)), f"rows given twice: {sorted({n for n in names if names.count(n) > 1})}"
    kinds = hook_kinds(root)
    hooks = [json.loads(line) for line in lines_of(root, include, ["tests/dump_hooks.c", "shim/calls/calls.c"], f"{program}-hooks", compiler)]
    assert [hook["name"] for hook in hooks] == names
    for row, hook in zip(rows, hooks):
        row.hook = kinds.get(hook["hook"])
    return json.loads(lines[0])["cuda_version"], {row.name: row for row in rows}


# From cudaProfiler.h, which not every package of headers has; shim/calls/cuda_api.h declares them.
PROFILER = ("cuProfilerStart", "cuProfilerStop")


def check_complete(header, rows):
    """Every call that takes or gives a stream or an event, by value or behind any pointer, or that has a per-thread sibling, has a row."""
    wrong = [f"{name}: excluded, and has a row: drop one of the two" for name in EXCLUDED if name in rows]
    wrong += [f"{name}: cuda.h does not declare it" for name in rows if name not in header.calls and name not in PROFILER]
    for name, parameters in header.calls.items():
        if name in rows or name in EXCLUDED:
            continue
        if header.sibling(name) != "ONE":
            wrong.append(f"{name}: has a {header.sibling(name)} sibling and no row")
        for parameter in parameters:
            path = header.reaches(parameter.node, HANDLES)
            if path is not None:
                wrong.append(f"{name}: takes a stream or event ({parameter.text} {parameter.name}{' -> ' + path if path else ''}) and has no row")
    return wrong


def check_siblings(header, rows):
    """The sibling column says what the header declares and what its macros choose."""
    wrong = []
    for name, row in rows.items():
        if row.sibling != header.sibling(name):
            wrong.append(f"{name}: sibling is {header.sibling(name)} in cuda.h and {row.sibling} in the table")
    for name, kind in header.macro_siblings.items():
        if name not in rows:
            wrong.append(f"{name}: __CUDA_API_{kind} names it and it has no row")
        elif rows[name].sibling != kind:
            wrong.append(f"{name}: sibling is {kind} by the macros of cuda.h and {rows[name].sibling} in the table")
    return wrong


def check_exports(symbols, rows):
    """The sibling column says what libcuda exports, for the calls that this libcuda has."""
    wrong = []
    for name, row in rows.items():
        found = [kind for suffix, kind in (("_ptds", "PTDS"), ("_ptsz", "PTSZ")) if name + suffix in symbols]
        if name in symbols and row.sibling != (found[0] if found else "ONE"):
            wrong.append(f"{name}: sibling is {found or ['ONE']} by the symbols of libcuda and {row.sibling} in the table")
    wrong += [f"{symbol}: libcuda exports it and {symbol[:-5]} has no row" for symbol in sorted(symbols)
              if symbol.endswith(("_ptds", "_ptsz")) and symbol[:-5] not in rows]
    return wrong


def check_parameters(header, rows):
    """Parameters are the header's in type, name and order; arguments are their names in the same order."""
    wrong = []
    for name, row in rows.items():
        if name not in header.calls:
            continue  # check_complete names it
        declared, written = header.calls[name], header.parameters(row.parameters)
        if [p.text for p in declared] != [p.text for p in written]:
            wrong.append(f"{name}: parameters are ({', '.join(p.text for p in declared)}), the table says ({', '.join(p.text for p in written)})")
        elif [p.name for p in declared] != [p.name for p in written]:
            wrong.append(f"{name}: parameters are called {[p.name for p in declared]}, the table says {[p.name for p in written]}")
        if row.arguments != [p.name for p in written]:
            wrong.append(f"{name}: arguments {row.arguments} are not the parameters {[p.name for p in written]}")
    return wrong


def expected_stream(header, name):
    """The stream column, from the header alone."""
    parameters = header.calls[name]
    streams = [p.name for p in parameters if p.text == "CUstream"]
    if len(streams) > 1:  # what is changed, not what is read
        streams = [s for s in streams if s.startswith("dst")]
        assert len(streams) == 1, f"{name}: takes several streams, none of them called dst..."
    if DESTROYS.fullmatch(name):
        return "NO_STREAM"
    if streams:
        return f"ON({streams[0]})"
    if name not in MANY_STREAMS:
        for parameter in parameters:
            fields = [member for member, text in header.members(parameter).items() if text == "CUstream"]
            if fields:
                return f"ON_FIELD({parameter.name}->{fields[0]})"
    # A version without sibling still works on the default stream when another version of the same call has one.
    if unversioned(name) in header.on_default_stream or name in DEFAULT_STREAM_WITHOUT_SIBLING:
        return "ON_DEFAULT"
    return "NO_STREAM"


def check_streams(header, rows):
    """The stream column names the header's own stream."""
    return [f"{name}: stream is {expected_stream(header, name)} by cuda.h and {row.stream} in the table" for name, row in rows.items()
            if name in header.calls and row.stream != expected_stream(header, name)]


def check_events(header, rows):
    """Every event given by value is shown, as `event` or, where there are two, under its own name; nothing else is shown as an event."""
    wrong = []
    for name, row in rows.items():
        events = [p.name for p in header.calls.get(name, ()) if p.text == "CUevent"]
        labels = ["event"] if len(events) == 1 else [re.sub(r"^h", "", e).lower() for e in events]
        expected = [(label, "EVENT", "DYING" if DESTROYS.fullmatch(name) else f"EVENT_ID({event})") for label, event in zip(labels, events)]
        shown = [value for value in row.values if value[1] == "EVENT" or "EVENT_ID" in value[2]]
        if shown != expected:
            wrong.append(f"{name}: shows the events {shown}, and should show {expected}")
    return wrong


def factors(expression):
    """A product as the sorted list of its factors, without casts and GIVEN(...)."""
    expression = expression.replace("(cs_u64)", "")
    given = re.fullmatch(r"GIVEN\((.*)\)", expression)
    return sorted(f.strip() for f in (given.group(1) if given else expression).split("*"))


def byte_parameters(header, name):
    """The integer parameters that are a size in bytes, by name or by what the header's comment on any version of the call says."""
    comments = header.comments.get(unversioned(name), {})
    return [p.name for p in header.calls[name] if p.text in ("size_t", "unsigned int")
            and not re.search(r"(?i)offset|pitch|shared|element", p.name)
            and (p.name in ("ByteCount", "bytesize", "length", "size") or re.search(r"(?i)\bbytes\b", comments.get(p.name, "")))]


def expected_bytes(header, row):
    """The factors of the number of bytes that a copy, a memset or an allocation is about; None where one call has no single number."""
    parameters = {p.name: p for p in header.calls[row.name]}
    if row.kind == "SET":
        (width,) = [WIDTHS[p.text] for p in parameters.values() if p.name in ("uc", "us", "ui")]
        assert re.search(rf"D{8 * width}(\D|$)", row.name), f"{row.name}: sets values of {width} bytes"
        counts = ["Width", "Height"] if "Width" in parameters else ["N"]
        return sorted(counts + ([str(width)] if width > 1 else []))
    if "WidthInBytes" in parameters:
        return ["Height", "WidthInBytes"]
    for parameter in parameters.values():
        members = header.members(parameter)
        if "WidthInBytes" in members:
            return sorted(f"{parameter.name}->{m}" for m in ("WidthInBytes", "Height", "Depth") if m in members)
    found = byte_parameters(header, row.name)
    assert len(found) < 2, f"{row.name}: several sizes in bytes: {found}"
    return found or None


def check_bytes(header, rows):
    """`bytes` of copies, memsets and allocations is the header's number of bytes."""
    wrong = []
    for name, row in rows.items():
        if name not in header.calls:
            continue
        shown = row.value("bytes")
        expected = expected_bytes(header, row) if row.kind in ("COPY", "SET", "MEMORY", "ALLOC") else None
        if (factors(shown) if shown else None) != expected:
            wrong.append(f"{name}: bytes is {shown}, and should be {' * '.join(expected) if expected else 'absent'}")
        if shown and ("bytes", "SIZE", shown) not in row.values:
            wrong.append(f"{name}: bytes is not shown as SIZE")
    return wrong


def check_launches(header, rows):
    """Launches with a grid show all of it, in order; launches by configuration show the configuration; every launch shows its kernel."""
    wrong = []
    for name, row in rows.items():
        names = [p.name for p in header.calls.get(name, ())]
        kernel = [p.name for p in header.calls.get(name, ()) if p.text == "CUfunction"]
        config = [p.name for p in header.calls.get(name, ()) if p.text == "const CUlaunchConfig *"]
        expected = ()
        if "gridDimX" in names:
            at = names.index("gridDimX")
            expected = ("LAUNCHED", kernel[0], *names[at:at + 7])
        elif config and kernel:
            expected = ("LAUNCHED_CONFIG", kernel[0], config[0])
        if row.launch != expected:
            wrong.append(f"{name}: launch shows {row.launch}, and should show {expected}")
        if row.kind == "LAUNCH" and kernel and not expected and ("kernel", "KERNEL", f"KERNEL_ID({kernel[0]})") not in row.values:
            wrong.append(f"{name}: does not show its kernel {kernel[0]}")
    return wrong


def check_values(header, rows):
    """Values fit their format, dereference only inside GIVEN, and number four at most, each under its own label."""
    wrong = []
    for name, row in rows.items():
        types = {p.name: p.text for p in header.calls.get(name, ())}
        labels = [label for label, _, _ in row.values]
        if len(labels) > 4 or len(labels) != len(set(labels)):
            wrong.append(f"{name}: shows {labels}, at most four of different names are allowed")
        for label, form, expression in row.values:
            text = types.get(expression)
            if (form in ("INT", "UINT", "HEX", "SIZE", "CAPTURE_MODE", "RESERVED") or form.startswith("WORDS(")) and text and not INTEGERS.match(text):
                wrong.append(f"{name}: shows {label} as {form}, and {expression} is a {text}")
            if form == "PTR" and text and not ADDRESSES.search(text):
                wrong.append(f"{name}: shows {label} as PTR, and {expression} is a {text}")
            if ("->" in expression or expression.startswith("*") or "(*" in expression) and not expression.startswith("GIVEN("):
                wrong.append(f"{name}: {expression} is read from memory without GIVEN")
    return wrong


# Takes a stream to ask something of it, to set something, or to get a graph ready, whose launch is met.
MET_BY_NO_HOOK = re.compile(r"cuStream(Get|Set|IsCapturing|Query|CopyAttributes|UpdateCapture)|cuGraph(Upload|InstantiateWithParams)")

# Frees host memory, and waits for the work that may use it: 30 ms behind a kernel of 30 ms, where allocations took no longer than on an idle GPU (an H200).
FREES_BEHIND_WORK = {"cuMemFreeHost", "cuMemHostUnregister"}

# Works on streams without naming one.
MEMORY_WITHOUT_STREAM = {"cuMemFree", "cuMemFree_v2"}


def expected_hook(header, name):
    """The kind of hook that a call meets, by its name and by what it takes: what works on a stream meets one, and is an ENQUEUE unless it is something else."""
    types = [p.text for p in header.calls[name]]
    in_graph, event = name.startswith("cuGraph"), "CUevent" in types
    kinds = {
        "CREATE": "CUstream *" in types,
        "EVENT_CREATE": "CUevent *" in types and not in_graph,
        "DESTROY": name.startswith("cuStreamDestroy"),
        "EVENT_DESTROY": name.startswith("cuEventDestroy"),
        "RECORD": event and "Record" in name and not in_graph,
        "WAIT": event and "Wait" in name and not in_graph,
        "SYNCHRONIZE": "Synchronize" in name,
        "CAPTURE": re.match(r"cuStream(Begin|End)\w*[cC]apture", name),
        "CALLBACK": {"CUhostFn", "CUstreamCallback"} & set(types),
        "GRAPH_LAUNCH": name.startswith("cuGraphLaunch"),
    }
    found = [kind for kind, is_it in kinds.items() if is_it]
    assert len(found) < 2, f"{name}: {found}"
    if found:
        return found[0]
    works = expected_stream(header, name) != "NO_STREAM" or name in MANY_STREAMS | MEMORY_WITHOUT_STREAM
    return "ENQUEUE" if works and not MET_BY_NO_HOOK.match(name) else None


def check_hooks(header, rows):
    """Each call meets hooks of the kind that its name promises, and only what works on no stream meets none."""
    return [f"{name}: meets hooks of kind {row.hook}, and should meet {expected_hook(header, name)}" for name, row in rows.items()
            if name in header.calls and row.hook != expected_hook(header, name)]


def place_of(parameter):
    """What a copy's parameter says of the memory: a letter, X where any memory will do, P for that of another context; None: it is no memory."""
    if "MEMCPY3D_PEER" in parameter.text or re.fullmatch(r"(dst|src)Context", parameter.name):
        return "P"
    found = re.fullmatch(r"(?:dst|src)(Host|Device|Array|)", parameter.name)
    return (found.group(1)[:1] or "X") if found else None


def way_of(parameters):
    """Which way a copy goes, as far as its parameters tell: the destination comes first."""
    places = [place for place in map(place_of, parameters) if place]
    if "P" in places:
        return {"PEER"}
    return {f"{places[1]}to{places[0]}"} if len(places) == 2 and "X" not in places else set()


def expected_how(header, name, kind):
    """What a call is besides its kind, by what it takes, and by what its name promises where that is all there is."""
    parameters = header.calls[name]
    types, names = [p.text for p in parameters], [p.name for p in parameters]
    creates = "CUstream *" in types
    facts = {
        "BLOCKS": kind == "COPY" and "CUstream" not in types and way_of(parameters) != {"PEER"},
        "PITCHED": kind == "SET" and "dstPitch" in names,
        "LAUNCHES": {"CUgraphExec", "CUstream"} <= set(types) and "Upload" not in name,
        "UPDATES": {"CUgraphExec", "CUgraph"} <= set(types),
        "RECORDS": kind == "EVENT" and "Record" in name,
        "BEGINS": "CUstream" in types and re.search(r"Begin\w*[cC]apture", name),
        "ENDS": "CUstream" in types and re.search(r"End\w*[cC]apture", name),
        "WIDE": kind in ("EVENT", "WAIT", "SYNC", "QUERY") and re.match("cuCtx", name),
        "PREFETCHES": "Prefetch" in name and "Discard" not in name,
        "CREATES": creates,
        "GREEN": creates and "CUgreenCtx" in types,
        "WAITS": kind == "MEMOP" and ("WaitValue" in name or "Batch" in name) or name in FREES_BEHIND_WORK,
    }
    return {fact for fact, holds in facts.items() if holds} | (way_of(parameters) if kind == "COPY" else set())


def check_how(header, rows):
    """What is known of a call besides its kind: the recorder goes by the column alone, never by a name."""
    expected = {name: expected_how(header, name, row.kind) for name, row in rows.items() if name in header.calls}
    return [f"{name}: how is {sorted(rows[name].how)}, and should be {sorted(how)}" for name, how in expected.items() if rows[name].how != how]


CHECKS = [check_how, check_complete, check_siblings, check_parameters, check_streams, check_events, check_bytes, check_launches, check_values, check_hooks]
