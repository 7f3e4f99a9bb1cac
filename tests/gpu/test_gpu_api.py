"""On a real GPU: custream.h, row by row, and together with what Python's libraries make of streams. See docs/check-gpu.md.

The programs are those of tests/cases/test_api.py; what needs the simulated GPU (failures on demand, no device, handles that are gone) stays there.
"""
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import observe  # noqa: E402
import times  # noqa: E402
from programs import BUILD, ROOT  # noqa: E402
from times import GPUS, gpu_only, report, run_well, script  # noqa: E402

pytestmark = gpu_only
API = os.path.join(ROOT, "tests", "api")
ROW = re.compile(r'^ROW(?:_WITH)?\((\w+), "[^"]*"(?:, "([^"]*)")?\)', re.MULTILINE)
WAYS = {"alone": {}, "not recording": {"LD_PRELOAD": observe.SHIM, "CUSTREAM_TRACE": "off"}, "recorded": {"LD_PRELOAD": observe.SHIM}}


def rows():
    """(program, row, settings) of all rows that this machine can show."""
    for name in sorted(os.listdir(API)):
        if not (name.startswith("rows_") and name.endswith(".c")):
            continue
        with open(os.path.join(API, name), encoding="utf-8") as file:
            for row, settings in ROW.findall(file.read()):
                settings = dict(pair.split("=", 1) for pair in settings.split())
                devices = int(settings.pop("CUSTREAM_FAKE_DEVICES", "1"))
                if devices <= GPUS and not any(key.startswith(("CUSTREAM_FAKE_", "LD_")) for key in settings):
                    yield name[:-2], row, settings


def run_row(way, program, row, settings, folder):
    """What went wrong, as text; empty: nothing."""
    env = observe.environment(times.Program("api", []), **WAYS[way], **settings)
    if way == "recorded":
        env["CUSTREAM_TRACE"] = os.path.join(folder, f"{program}-{row}-%p.json")
    if not observe.SIMULATED:
        env["ROWS_MANY"] = "5000"
    env["LD_LIBRARY_PATH"] = os.pathsep.join(p for p in (BUILD, env.get("LD_LIBRARY_PATH")) if p)
    try:
        done = subprocess.run([os.path.join(BUILD, "tests/api/linked", program), row], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=40)
    except subprocess.TimeoutExpired:
        return f"{program} {row}: hangs"
    return f"{program} {row}: {done.returncode}\n{done.stdout[-600:]}" if done.returncode else ""


@pytest.mark.parametrize("way", WAYS)
def test_rows(way, tmp_path):
    todo = list(rows())
    with ThreadPoolExecutor(6) as pool:
        failed = [text for text in pool.map(lambda one: run_row(way, *one, tmp_path), todo) if text]
    report(f"custream.h, {way}", "rows shown, failed", f"{len(todo)}, {len(failed)}")
    assert todo and not failed, "\n".join(failed)


def warp():
    """Where Warp is to be found, as settings of a run."""
    folder = times.unpacked_warp()
    if not folder:
        pytest.skip("not in build/: make gpu-warp")
    return {"PYTHONPATH": os.pathsep.join(p for p in (folder, os.environ.get("PYTHONPATH")) if p)}


@pytest.mark.parametrize("library", ["cupy", "torch", "cuda_core", "warp"])
@pytest.mark.parametrize("way", ["opened", "preloaded"])
def test_exchange(library, way):
    """Streams made by one side are used by the other, in one process: the same handle, work and completion."""
    shim = way == "preloaded"
    path, env = "-" if shim else os.path.join(BUILD, "libcustream.so.0"), warp() if library == "warp" else {}
    done, trace = run_well(f"exchange-{library}-{way}", script("api_exchange", library, path), timeout=120, shim=shim, **env)
    assert done.stdout.splitlines()[-1] == "done", done.stdout
    report(f"exchange-{library}-{way}", "shown", ", ".join(done.stdout.splitlines()[:-1]))
    if shim:
        times.assert_checked(trace)


@times.real_only
def test_streams_of_warp():
    """Warp's own ways with streams, events and captures, under the preload library as without."""
    env = warp()
    alone, _ = run_well("warp-streams-alone", script("warp_streams"), timeout=120, shim=False, **env)
    done, trace = run_well("warp-streams", script("warp_streams"), timeout=120, **env)
    assert alone.stdout.endswith("done\n") and done.stdout == alone.stdout, observe.differing_lines(alone.stdout, done.stdout)
    report("warp-streams", "says", alone.stdout.replace("\n", "; "))
    times.assert_whole(trace)
    times.assert_checked(trace)


@times.needs("cuda")
@pytest.mark.parametrize("source", ["cupti", "events"])
def test_a_capture_is_a_streams_first_use(source):
    """What the recorder asks of a stream that it meets then must not break the capture."""
    done, _ = run_well(f"captured-first-{source}", script("captured_first"), CUSTREAM_GPU=source)
    assert done.stdout == "nodes 2 2 2\n"


@times.needs("cuda")
def test_what_breaks_a_capture():
    """The driver's answers that the library goes by: docs/measurements.md has the table."""
    done, _ = run_well("capture-questions", script("capture_questions"), shim=False)
    broken, implicit = "900 901 901", "906 0 0"
    expected = [f"{flags} {mode} {name}: {answers}" for flags in (0, 1) for mode in (0, 1, 2) for name, answers in (
        ("cuStreamGetFlags", broken), ("cuStreamGetId", broken), ("cuStreamIsCapturing of the legacy stream", implicit), ("cuEventQuery", broken))
        if not (name == "cuEventQuery" and mode == 2) and not (answers == implicit and flags == 1)]
    assert done.stdout.splitlines() == expected


@times.real_only
def test_events_between_processes():
    """Row 69, which the simulated GPU cannot show."""
    done, _ = run_well("api-ipc", script("api_ipc", os.path.join(BUILD, "libcustream.so.0")), timeout=120, shim=False)
    assert done.stdout == "done\n", done.stdout
