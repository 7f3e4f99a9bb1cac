"""On a real GPU: programs run the same with the shim, and the trace holds every call that CUPTI counted. See docs/check-gpu.md.

    python3 -m pytest tests/gpu/test_gpu.py            # all
    python3 -m pytest tests/gpu/test_gpu.py -k torch   # some
"""
import collections
import importlib.util
import os
import sys
import subprocess

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import observe  # noqa: E402
from programs import BUILD, EXPLAINED, GPU, PROGRAMS  # noqa: E402

REPORT = os.environ.get("CUSTREAM_GPU_REPORT", os.path.join(GPU, "report.txt"))
rows = collections.OrderedDict()  # program -> what the report says of it


def gpu_is_there():
    """Asked of a process of its own: this one shall not hold a context."""
    ask = "import ctypes; c = ctypes.CDLL('libcuda.so.1'); n = ctypes.c_int(); print(c.cuInit(0) or c.cuDeviceGetCount(ctypes.byref(n)) or -n.value)"
    done = subprocess.run([sys.executable, "-c", ask], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return done.returncode == 0 and int(done.stdout) < 0


pytestmark = pytest.mark.skipif(not (observe.SIMULATED or gpu_is_there()), reason="no GPU here")


def available(module):
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


@pytest.fixture(autouse=True)
def report():
    """Written after every test, so that a run that is cut short leaves what it found."""
    os.makedirs(observe.TRACES, exist_ok=True)
    yield
    write_report()


@pytest.fixture(params=PROGRAMS, ids=lambda p: p.name)
def program(request):
    p = request.param
    missing = [m for m in p.modules if not available(m)]
    if missing:
        pytest.skip("not installed: " + ", ".join(missing))
    if observe.SIMULATED and not p.name.startswith("driver"):
        pytest.skip("needs a real GPU")
    if not os.path.exists(p.command[0]):
        pytest.skip(f"{os.path.basename(p.command[0])} is not built: make gpu-programs")
    rows.setdefault(p.name, {})
    return p


def test_same_with_the_shim(program):
    """Same output, same exit status; a whole trace with nothing lost."""
    row = rows[program.name]
    alone = observe.plain(program)
    row["alone"], row["same"] = alone.seconds, "NO"
    with open(os.path.join(observe.TRACES, program.name + ".stdout"), "w", encoding="utf-8") as file:
        file.write(alone.stdout)
    assert alone.status == 0, "without the shim: " + alone.tail()
    row["unavailable"] = alone.stdout.count("unavailable:")

    run, path = observe.with_shim(program)
    row["shim"] = run.seconds
    assert run.status == alone.status, "with the shim: " + run.tail()
    assert run.stdout.splitlines() == alone.stdout.splitlines(), (
        "the output differs under the shim\n" + observe.differing_lines(alone.stdout, run.stdout) + "\n" + run.stderr[-2000:])
    assert path, "no trace was written\n" + run.tail()
    trace = observe.read_trace(path)
    row["calls"], row["lost"], row["by_call"] = sum(trace.calls.values()), trace.lost, trace.calls
    assert trace.calls, "the trace holds no call"
    assert trace.lost == 0, f"{trace.lost} records lost"
    row["same"] = "yes"


def test_every_call_is_recorded(program):
    """For every call of the table, as many host slices in the trace as CUPTI counted calls."""
    if observe.SIMULATED:
        pytest.skip("CUPTI needs a real GPU")
    row = rows[program.name]
    run, path, counts = observe.with_cupti(program)
    row["counted"] = run.seconds
    assert run.status == 0, run.tail()
    assert path, "no trace was written\n" + run.tail()
    assert counts, "CUPTI counted nothing\n" + run.tail()
    trace = observe.read_trace(path)
    differences, row["cupti"], row["own"] = observe.compare(trace, counts)
    row["ours"], row["outside"], row["by_call"] = sum(trace.calls.values()), sum(trace.outside.values()), trace.calls
    row["differences"] = [(d, EXPLAINED.get((program.name, d.call)) or EXPLAINED.get(("*", d.call))) for d in differences]
    assert trace.lost == 0, f"{trace.lost} records lost"
    open_ones = [d for d, why in row["differences"] if not why]
    assert not open_ones, "call: trace (of which outside the driver's life) / CUPTI (and nested ones)\n" + "\n".join(
        f"  {d.call}: {d.ours} ({d.outside}) / {d.cupti} (+{d.nested})" for d in open_ones)


def test_trace_passes_the_check(program):
    """`custream check` finds no broken rule in the trace that the first test left."""
    command = os.path.join(BUILD, "custream")
    path = os.path.join(observe.TRACES, program.name + ".json")
    if not os.path.exists(command) or not os.path.exists(path):
        pytest.skip("no command or no trace")
    done = subprocess.run([command, "check", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    rows[program.name]["checked"] = "ok" if done.returncode == 0 else "NO"
    assert done.returncode == 0, done.stdout[-3000:]


COLUMNS = [("same", "same with the shim"), ("calls", "calls recorded"), ("lost", "lost"), ("checked", "`custream check`"),
           ("ours", "counting run: recorded"), ("cupti", "by CUPTI"), ("outside", "unknown to CUPTI"), ("differences", "symbols that differ"),
           ("own", "the shim's own"), ("unavailable", "parts unavailable"), ("alone", "s alone"), ("shim", "s shim"), ("counted", "s counting")]


def cell(value):
    return "-" if value is None else f"{value:.1f}" if isinstance(value, float) else str(len(value)) if isinstance(value, list) else str(value)


def write_report():
    lines = ["| " + " | ".join(["program"] + [title for _, title in COLUMNS]) + " |", "|" + " --- |" * (len(COLUMNS) + 1)]
    covered, notes = collections.Counter(), []
    for name, row in rows.items():
        covered.update(row.get("by_call", {}))
        lines.append("| " + " | ".join([name] + [cell(row.get(key)) for key, _ in COLUMNS]) + " |")
        for d, why in row.get("differences", []):
            counts = f"recorded {d.ours} ({d.outside} outside the driver's life), CUPTI {d.cupti} (+{d.nested} nested)"
            notes.append(f"- {name}: `{d.call}` {counts}. {why or 'NOT EXPLAINED'}")
    table = observe.table_calls()
    seen = [call for call in table if covered[call]]
    lines += ["", f"Calls recorded: {sum(covered.values())}, of {len(seen)} different symbols; the table has {len(table)}.", "", "Differences:", ""]
    lines += notes or ["- none"]
    lines += ["", "Symbols that no program called: " + (", ".join(f"`{c}`" for c in table if not covered[c]) or "none") + "."]
    os.makedirs(os.path.dirname(os.path.abspath(REPORT)), exist_ok=True)
    with open(REPORT, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
