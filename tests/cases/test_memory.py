"""Memory that runs out: each thing that the library asks the system for is refused once, in every mode. The program does not notice, and what is missing is said."""
import re

import pytest

from tests import variants
from tests.faults import MODES
from tests.streamscript import formless, program_journal
from tests.trace import Trace, check_file

NO_GPU_THREAD = "its thread could not be started"  # of which the trace alone tells


def test_memory_of_a_process_that_never_calls_cuda(run_app):
    """Its tables come with the first call: what is there before counts where a program locks all its memory, 8 MiB by default."""
    def addresses(shim):
        text = run_app(["/bin/cat", "/proc/self/status"], shim=shim).check().stdout
        return int(re.search(r"VmSize:\s+(\d+) kB", text)[1])
    assert addresses(True) - addresses(False) < 4 << 10


@pytest.fixture
def scarce(run_app, build, tmp_path):
    """scarce(argv, env, n) is a run in which the n-th thing asked for is refused, and its traces."""
    def run(argv, env, n):
        folder = tmp_path / str(n)
        folder.mkdir()
        trace = folder / env.get("CUSTREAM_TRACE", "trace.json") if env.get("CUSTREAM_TRACE") != "off" else "off"
        preload = f"{build / 'libcustream_shim.so'}:{build / 'tests/libscarce.so'}"
        done = run_app(argv.split(), shim=preload, env={"CUSTREAM_GPU": "auto", "CUSTREAM_CTL": "on", "SCARCE_FAIL": n} | env | {"CUSTREAM_TRACE": trace}, cwd=folder)
        return done, sorted(path for path in folder.iterdir() if path.name.startswith("trace"))
    return run


def says_what_is_missing(run, traces):
    lines = [line for line in run.stderr.splitlines() if line.startswith("custream: ") and "audit: safe" not in line]
    assert not [line for line in lines if line.endswith(" for ")], "for what?"
    if any(Trace(path).metadata.get("rings", "").startswith("not kept: the system") for path in traces):
        return True
    return lines or any(NO_GPU_THREAD in str(Trace(path).json) for path in traces)


def content(traces):
    read = [Trace(path) for path in traces]
    # The simulated driver's own thread has the name of the thread that first needs it, which is one or the other.
    return [(trace.count(), trace.totals["gpu"], sorted({name.removesuffix(" (callbacks)") for name in trace.thread_names.values()} - {"demo", "housekeeping", "runtime"})) for trace in read]


@pytest.mark.parametrize("mode", MODES)
def test_each_thing_refused_once(run_app, scarce, mode):
    argv, env = MODES[mode]
    alone = run_app(argv.split(), shim=False).check()
    run, traces = scarce(argv, env, 10**9)
    asked = int(re.search(r"note asked (\d+)", run.stderr)[1])
    wants_none = env.get("CUSTREAM_TRACE") == "off"
    assert asked > 8 and run.stdout == alone.stdout and bool(traces) != wants_none
    found, whole, refused = [], content(traces), 0
    for n in range(1, asked + 1):
        run, traces = scarce(argv, env, n)
        place = re.search(r"note refused_at (.*)", run.stderr)
        if not place:
            continue  # how many there are depends on how threads overtake each other
        refused += 1
        assert (run.rc, run.stdout) == (alone.rc, alone.stdout), (n, place[1], run.rc, run.stderr)
        assert says_what_is_missing(run, traces) or content(traces) == whole, (n, place[1], run.stderr)
        assert traces or wants_none or "; nothing is recorded" in run.stderr, (n, place[1], run.stderr)
        found += traces
    # Under QEMU threads ask in another order, and a third of what was asked for is not reached again.
    assert refused > 8 and (wants_none or len(found) >= (refused if variants.NAME in variants.EMULATED else asked) // 3)
    for path in found:
        check_file(path)


@pytest.mark.parametrize("env", [{}, {"CUSTREAM_DEFAULT_STREAM": "audit"}, {"CUSTREAM_GPU": "events", "CUSTREAM_STREAMS": "pool:2"}], ids=["timeline", "audit", "pool"])
def test_little_address_space(run_app, build, tmp_path, env):
    """From too little for the program alone to enough for everything: no end by a signal, and each trace that there is is sound."""
    rcs, found = [], []
    for megabytes in [*range(40, 240, 10), 400, 2000]:
        trace = tmp_path / f"{megabytes}.json"
        argv = ["/usr/bin/prlimit", f"--as={megabytes << 20}", build / "tests/demo"]
        run = run_app(argv, env={"CUSTREAM_GPU": "auto"} | env, trace=trace)
        rcs.append(run.rc)
        found += [trace] if trace.exists() else []
    alone = run_app(["demo"], shim=False).check()
    assert min(rcs) >= 0 and rcs[-1] == 0 and run.stdout == alone.stdout and found, rcs
    for path in found:
        check_file(path)


@pytest.mark.parametrize("limit", [f"--{what}={megabytes << 20}" for what in ("as", "data") for megabytes in (700, 1000, 1400)])
def test_a_limit_leaves_the_program_what_it_needs(run_app, build, tmp_path, limit):
    """What is enough for the program alone is enough under the library, which records nothing rather than take so much of it."""
    argv = ["/usr/bin/prlimit", limit, build / "tests/demo"]
    alone, run = run_app(argv, shim=False).check(), run_app(argv).check()
    assert run.stdout == alone.stdout
    assert run.trace.exists() or "no memory, or no thread, for the trace" in run.stderr


@pytest.mark.parametrize("full", ["drop", "block"])
def test_the_policy_holds_for_a_thread_without_memory(scarce, build, tmp_path, full):
    """What the system refuses a thread, its state or its ring, takes its calls out of the trace and not out of the policy."""
    journal = tmp_path / "journal"
    env = {"CUSTREAM_DEFAULT_STREAM": "per-thread", "CUSTREAM_DEFAULT_HANDLES": "all", "CUSTREAM_FULL": full, "CUSTREAM_FAKE_JOURNAL": journal,
           "CUSTREAM_KEEP": "off"}  # else one piece of memory has the rings of all threads

    def went(n):
        journal.unlink(missing_ok=True)
        run, traces = scarce("handles", env, n)
        return run.check(), traces, sorted(formless(program_journal(journal.read_text().splitlines(), build)))
    whole, (trace,), expected = went(10**9)
    calls, fewer = Trace(trace).totals["recorded"], 0
    assert not any(" legacy" in line for line in expected)
    for n in range(1, int(re.search(r"note asked (\d+)", whole.stderr)[1]) + 1):
        run, traces, found = went(n)
        if re.search("nothing is (recorded or )?changed", run.stderr):
            continue
        assert found == expected, (n, run.stderr)
        if "the ring of a thread" in run.stderr:
            totals = Trace(traces[0]).totals
            fewer += totals["lost_records"] > 0 and totals["recorded"] + totals["lost_records"] == calls
    assert fewer == 2  # of both threads
