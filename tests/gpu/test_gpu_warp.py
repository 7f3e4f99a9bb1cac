"""On a real GPU: Warp's own CUDA tests have the same results under the library as alone. See docs/check-gpu.md.

    make gpu-warp && python3 -m pytest tests/gpu/test_gpu_warp.py
"""
import concurrent.futures
import functools
import os
import sys
import tempfile

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import observe  # noqa: E402
import times  # noqa: E402
from times import gpu_only, real_only, report, run, script  # noqa: E402

pytestmark = [gpu_only, real_only]

MODES = {
    "default": {},
    "nodes": {"CUSTREAM_GRAPH": "node"},
    "events": {"CUSTREAM_GPU": "events"},
    "per-thread": {"CUSTREAM_DEFAULT_STREAM": "per-thread"},
}
# test_async has graphs with copies inside one device: under CUPTI's fault they end with error 719 within a hundred tests.
MODULES = ("test_async", "test_array_fill_capture", "test_capture_mode", "test_conditional_captures", "test_ipc", "test_mempool", "test_multigpu",
           "test_peer", "test_pinned", "test_streams")
# Incorrect in that mode, by their source: these fill arrays on a blocking stream and read them on the legacy default stream, with no other wait between
# (ScopedStream waits as it is entered, and not as it is left). Under per-thread default streams they may read too early (docs/per-thread.md).
NEED_LEGACY_ORDER = {("per-thread", "test_stream_arg_explicit_sync"), ("per-thread", "test_stream_scope_implicit_sync")}


@functools.lru_cache(maxsize=None)
def warp_environment():
    """Warp from build/warp, else the one that is installed, and a folder for the kernels that it compiles, which all runs share."""
    folder = times.unpacked_warp()
    paths = [p for p in (folder, os.environ.get("PYTHONPATH")) if p]
    cache = os.environ.get("WARP_CACHE_PATH") or os.path.join(tempfile.gettempdir(), "custream-warp-kernels")
    return {"PYTHONPATH": os.pathsep.join(paths), "WARP_CACHE_PATH": cache}


@functools.lru_cache(maxsize=None)
def version():
    done, _ = run("warp-version", [sys.executable, "-c", "import warp.tests.cuda; print(warp.config.version)"], shim=False, **warp_environment())
    assert done.status == 0, "Warp with its tests is not there: make gpu-warp\n" + done.tail()
    return done.stdout.split()[-1]


def outcomes(module, mode, env=None):
    """What became of each test, and how the run ended. Without `env` alone."""
    name, shim = f"warp-{module}-{mode}", env is not None
    os.makedirs(observe.TRACES, exist_ok=True)
    to = os.path.join(observe.TRACES, name + ".txt")
    if os.path.exists(to):
        os.remove(to)
    with tempfile.TemporaryDirectory() as own:  # tests write files of one name there, and runs are beside each other
        done, trace = run(name, script("warp_tests", module, to), timeout=300, shim=shim, TMPDIR=own, **warp_environment(), **(env or {}))
    with open(to, encoding="utf-8") as file:
        return dict(line.rsplit("\n", 1)[0].split(" ", 1) for line in file), done, trace


def needs_legacy_order(mode, test):
    return any(mode == of and f".{name}_" in test for of, name in NEED_LEGACY_ORDER)


@pytest.mark.parametrize("module", MODULES)
def test_warp_tests(module):
    """Each of them, in every mode, becomes what it becomes alone. The modes run at the same time; what was compiled alone is there."""
    alone, done, _ = outcomes(module, "alone")
    name = f"Warp {version()}, {module}"
    good = sum(outcome == "ok" for outcome in alone.values())
    report(name, "alone: tests, of them ok, seconds", f"{len(alone)}, {good}, {done.seconds:.1f}")
    assert done.status == 0 and alone, done.tail()
    assert module != "test_async" or good == len(alone) > 1000, done.tail()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        runs = dict(zip(MODES, pool.map(lambda mode: outcomes(module, mode, MODES[mode]), MODES)))
    wrong = []
    for mode, (found, under, trace) in runs.items():
        others = [test for test in {**alone, **found} if found.get(test) != alone.get(test)]
        differing = [f"{test}: {alone.get(test)}, under the library {found.get(test)}" for test in others if not needs_legacy_order(mode, test)]
        report(name, f"{mode}: tests with another result, of them by its rule, seconds", f"{len(others)}, {len(others) - len(differing)}, {under.seconds:.1f}")
        if differing or under.status:
            wrong.append(f"--- {mode}: {len(differing)} tests have another result\n" + "\n".join(differing[:10]) + "\n" + under.tail())
        elif trace:
            times.assert_checked_file(trace)
    assert not wrong, "\n".join(wrong)
