"""Slices of the runtime's calls by CUPTI: of one that is linked into the program, and of all where that is asked for (docs/runtime-level.md)."""
import collections
import re

import pytest

from tests.apprun import both, calls_in, read, said
from tests.cases.test_runtime import MADE_BY, all_of, around, made, runtime_calls

CUPTI = {"CUSTREAM_GPU": "cupti"}
WAYS = {"static": (["runtime_static"], CUPTI), "asked-for": (["runtime"], {**CUPTI, "CUSTREAM_RUNTIME": "cupti"})}


@pytest.fixture(params=WAYS)
def way(request):
    return WAYS[request.param]


def test_each_call_once_around_the_drivers(run_app, way):
    """All that a shared runtime's symbols show, and the same work from the same calls."""
    (program, env), (_, shared) = way, both(run_app, ["runtime", "plain"], env=CUPTI)
    run, trace = both(run_app, [*program, "plain"], env=env)
    calls = made(run.stdout)
    assert len(calls) > 30 and not said(run) and calls_in(trace) == calls_in(shared)
    assert runtime_calls(trace) == calls
    for driver, runtime in around(trace):
        base = re.sub(r"_pt[sd][sz]$", "", driver)
        if base in MADE_BY:
            assert runtime and re.fullmatch(MADE_BY[base] + driver[len(base):], runtime), (driver, runtime)
    failed = [(e["name"], e["args"]["cs.result"]) for e in trace.host(cat="cuda_runtime") if "cs.result" in e["args"]]
    assert len(failed) == 10 and set(failed) == {("cudaStreamQuery", 400), ("cudaLaunchKernel", 98)}
    work = trace.work_by_call()
    assert work == shared.work_by_call() and sum(work.values()) > 60 and None not in {call for _, call in work}
    assert trace.totals["recorded"] == sum(runtime_calls(trace).values()) + sum(calls_in(trace).values())


@pytest.mark.parametrize("env", [{"CUSTREAM_GPU": "events"}, {"CUSTREAM_GPU": "off"}, {**CUPTI, "CUSTREAM_RUNTIME": "off"},  # without CUPTI
                                 {**CUPTI, "CUSTREAM_FAKE_CUPTI": "cuptiSubscribe:39"}], ids=["events", "no-source", "off", "refused"])
def test_without_cupti_the_drivers_alone(run_app, env):
    _, shared = both(run_app, ["runtime", "plain"], env={**CUPTI, "CUSTREAM_RUNTIME": "off"})
    run, trace = both(run_app, ["runtime_static", "plain"], env=env)
    assert not runtime_calls(trace) and not said(run) and calls_in(trace) == calls_in(shared)
    if env["CUSTREAM_GPU"] == "cupti":
        assert trace.work_by_call() == shared.work_by_call()


@pytest.mark.parametrize("source", ["events", "off"])
def test_asked_for_and_not_to_be_had(run_app, source):
    """One line, and what can be shown without."""
    run, trace = both(run_app, ["runtime", "plain"], env={"CUSTREAM_RUNTIME": "cupti", "CUSTREAM_GPU": source})
    (line,) = said(run)
    assert f"CUSTREAM_RUNTIME=cupti needs CUPTI, and CUSTREAM_GPU={source} does without" in line and runtime_calls(trace) == made(run.stdout)


def test_a_shared_runtime_is_told_of_by_its_symbols(run_app):
    """CUPTI is not asked: its callbacks cost, and would be somebody else's to have."""
    run, trace = both(run_app, ["runtime", "subscriber"], env={**CUPTI, "CUSTREAM_LOG": "info"})
    assert runtime_calls(trace) == made(run.stdout) and "told of 5\n" in run.stdout and not [line for line in said(run) if "subscribe" in line]


@pytest.mark.parametrize("closed_us", [0, 400000, 2500000], ids=["at-once", "let-go", "gone"])
@pytest.mark.parametrize("what", ["windows", "early"])
def test_in_windows(run_app, way, once, what, closed_us):
    """Also while CUPTI's callbacks go on for a moment after the window has closed, have been given back, or CUPTI has been let go altogether."""
    program, env = way
    run, trace = both(run_app, [*program, what, closed_us], env={**env, "CUSTREAM_WINDOW": "profiler"})
    shared = once(f"windows-{what}-{closed_us}", lambda _: both(
        run_app, ["runtime", what, closed_us], env={**CUPTI, "CUSTREAM_WINDOW": "profiler", "CUSTREAM_RUNTIME": "off"})[1].work_by_call())
    assert runtime_calls(trace) == made(run.stdout) and not said(run)
    assert trace.work_by_call() == shared and sum(trace.work_by_call().values()) > 20
    assert None not in {call for _, call in trace.work_by_call()}


def test_a_call_that_outlives_its_window(run_app, way):
    """Its end may go untold; the thread's later calls are told of all the same."""
    program, env = way
    run, trace = both(run_app, [*program, "blocked"], env={**env, "CUSTREAM_WINDOW": "profiler"})
    calls = runtime_calls(trace)
    assert calls["cudaDeviceSynchronize"] == 1 and calls["cudaStreamSynchronize"] in (1, 2), calls
    assert calls["cudaEventCreate"] == 1, "of the second window, on the thread of the call that outlived the first"


def test_a_client_that_was_first(run_app, way):
    """It has the callbacks, and all that we show of the GPU has its calls."""
    program, env = way
    run, trace = both(run_app, [*program, "subscribed"], env=env)
    assert "told of 10\n" in run.stdout and not said(run)
    _, without = both(run_app, ["runtime", "subscriber"], env={**CUPTI, "CUSTREAM_RUNTIME": "off"})
    assert trace.work_by_call() == without.work_by_call() and None not in {call for _, call in trace.work_by_call()}
    assert runtime_calls(trace) == (made(run.stdout) if program == ["runtime"] else {})


def test_a_client_that_ends_cupti(run_app, way):
    """Its callbacks end, as alone; we go on."""
    program, env = way
    run, trace = both(run_app, [*program, "finalizes"], env=env)
    assert "told of 5\n" in run.stdout and not said(run) and trace.totals["gpu"]["without_call"] == 0


def absences(trace):
    return sorted((e["ts"], round(e["ts"] + e["dur"], 3), e["args"]["cause"]) for e in trace.slices if e["name"] == "no runtime calls")


def test_a_subscriber_that_leaves(run_app, way):
    """Calls have their slices again from then on, and the timeline says for how long they had none and why."""
    program, env = way
    run, trace = both(run_app, [*program, "leaves"], env={**env, "CUSTREAM_LOG": "info"})
    assert "told of 10\n" in run.stdout and sum("shown again" in line for line in said(run)) == 2
    _, shared = both(run_app, ["runtime", "leaves"], env={**CUPTI, "CUSTREAM_RUNTIME": "off"})
    assert calls_in(trace) == calls_in(shared) and trace.work_by_call() == shared.work_by_call()
    gaps = absences(trace)
    assert [cause for _, _, cause in gaps] == ["another client subscribes to CUPTI's callbacks"] * 2 and gaps[0][1] < gaps[1][0]
    in_gap = [e for e in trace.host(cat="cuda_driver") if any(begin < e["ts"] < end for begin, end, _ in gaps)]
    assert calls_in(trace)["cuLaunchKernel"] == 20 and sum(e["name"] == "cuLaunchKernel" for e in in_gap) == 8
    if program == ["runtime_static"]:
        assert runtime_calls(trace) == collections.Counter({name: count // 5 * 3 for name, count in made(run.stdout).items()})
        assert not [e for e in trace.host(cat="cuda_runtime") if any(begin < e["ts"] < end for begin, end, _ in gaps)]
    else:
        assert runtime_calls(trace) == made(run.stdout)  # a shared one's symbols take over meanwhile


def test_its_callbacks_go_on_when_we_let_cupti_go(run_app, way):
    program, env = way
    run, _ = both(run_app, [*program, "stays"], env={**env, "CUSTREAM_WINDOW": "profiler"})
    assert "told of 10\n" in run.stdout and not said(run)


@pytest.mark.parametrize("program", ["runtime_static", "runtime"])
@pytest.mark.parametrize("source", ["on", "cupti", "off"])
def test_work_of_calls_that_are_not_recorded(run_app, program, source):
    """It is not shown, also where it runs in the next window."""
    run, trace = both(run_app, [program, "behind"], env={**CUPTI, "CUSTREAM_RUNTIME": source, "CUSTREAM_WINDOW": "profiler"})
    assert trace.work_by_call() == {("Memset (Device)", "cuMemsetD8Async"): 2} and trace.totals["gpu"]["without_call"] == 0


def test_another_subscriber(run_app, way):
    """It gets the callbacks from then on; what is recorded of the driver, and the work's calls, go on."""
    program, env = way
    run, trace = both(run_app, [*program, "subscriber"], env=env)
    assert "told of 5\n" in run.stdout and not said(run)
    _, shared = both(run_app, ["runtime", "subscriber"], env={**CUPTI, "CUSTREAM_RUNTIME": "off"})
    assert calls_in(trace) == calls_in(shared) and trace.work_by_call() == shared.work_by_call()
    half = collections.Counter({name: count // 2 for name, count in made(run.stdout).items()})
    expected = half if program == ["runtime_static"] else made(run.stdout)  # a shared one's symbols take over again
    assert runtime_calls(trace) == expected


def test_in_ranges(run_app, way):
    """As with a shared one's symbols: calls nest in ranges, and opens clean (`custream check`)."""
    program, env = way
    run, trace = both(run_app, [*program, "ranges"], env=env)
    assert runtime_calls(trace) == made(run.stdout)
    calls = [(e["ts"], round(e["ts"] + e["dur"], 3)) for e in trace.host(cat="cuda_runtime")]
    ones = [(e["ts"], round(e["ts"] + e["dur"], 3)) for e in trace.host(cat="user_annotation") if e["name"] == "one"]
    assert len(ones) == 100 and all(sum(a <= c and d <= b for c, d in calls) == 2 for a, b in ones)


def test_losses(run_app, way):
    program, env = way
    run = run_app([*program, "many"], env={**env, "CUSTREAM_BUFFER": "64K"}).check()
    _, recorded, lost, expected = all_of(run, [run.trace])
    assert lost > 0 and recorded + lost >= 2 * expected


def test_parts(run_app, tmp_path, way):
    program, env = way
    run = run_app([*program, "many"], env={**env, "CUSTREAM_TRACE": tmp_path / "parts.json", "CUSTREAM_TRACE_MAX": "1M,rotate:50", "CUSTREAM_FULL": "block"}).check()
    parts = sorted(tmp_path.glob("parts*.json"))
    told, _, lost, expected = all_of(run, parts)
    assert len(parts) > 1 and lost == 0 and told == expected


@pytest.mark.parametrize("policy", [{"CUSTREAM_DEFAULT_STREAM": "per-thread"}, {"CUSTREAM_STREAMS": "pool:2"}, {"CUSTREAM_STREAMS": "sync"}],
                         ids=lambda p: "-".join(p.values()))
def test_policies_stay_at_the_drivers_level(run_app, way, policy):
    program, env = way
    bare = run_app([*program, "plain"], shim=False).check()
    run = run_app([*program, "plain"], env={**env, **policy}).check()
    assert run.stdout == bare.stdout
    assert runtime_calls(read(run.trace)) == made(run.stdout)


def test_errno_stays(run_app):
    run = run_app(["runtime_static", "keeps"], env=CUPTI).check()
    assert "errno kept 10\n" in run.stdout and not said(run)
