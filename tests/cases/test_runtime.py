"""Slices of a shared runtime's calls: around the driver's, of the caller's own copy, and nothing else changed (docs/runtime-level.md)."""
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from tests.apprun import both, calls_in, read, said
from tests.perfetto import assert_clean


def made(stdout):
    """What the program says that it called; __cudaLaunchKernel is cudaLaunchKernel to everybody."""
    calls = collections.Counter()
    for name, count in re.findall(r"^runtime _*(\w+) (\d+)$", stdout, re.M):
        calls[name] += int(count)
    return calls


def runtime_calls(trace):
    return trace.count(cat="cuda_runtime")


def around(trace):
    """Each driver slice with the name of the runtime slice that holds it, on its thread; None where there is none."""
    found = []
    outer = collections.defaultdict(list)
    for e in trace.host(cat="cuda_runtime"):
        outer[e["tid"]].append(e)
    for e in trace.host(cat="cuda_driver"):
        holds = [o for o in outer[e["tid"]] if o["ts"] <= e["ts"] and round(e["ts"] + e["dur"], 3) <= round(o["ts"] + o["dur"], 3)]
        assert len(holds) < 2, "calls of the runtime do not overlap"
        found.append((e["name"], holds[0]["name"] if holds else None))
    return found


MADE_BY = {"cuLaunchKernel": "(__)?cudaLaunchKernel", "cuStreamSynchronize": "cudaStreamSynchronize", "cuMemsetD8Async": "cudaMemsetAsync",
           "cuMemsetD8_v2": "cudaMemset", "cuStreamWaitEvent": "cudaStreamWaitEvent", "cuEventRecord": "cudaEventRecord", "cuMemcpyDtoHAsync_v2": "cudaMemcpyAsync",
           "cuMemcpyDtoH_v2": "cudaMemcpy", "cuGraphLaunch": "cudaGraphLaunch", "cuStreamDestroy_v2": "cudaStreamDestroy"}


def test_each_call_once_around_the_drivers(run_app):
    run, trace = both(run_app, ["runtime", "plain"])
    run.check()
    calls = made(run.stdout)
    assert len(calls) > 30 and runtime_calls(trace) == calls and not said(run)
    pairs = around(trace)
    for driver, runtime in pairs:
        base = re.sub(r"_pt[sd][sz]$", "", driver)
        if base in MADE_BY:
            suffix = driver[len(base):]  # a sibling makes the sibling
            assert runtime and re.fullmatch(MADE_BY[base] + suffix, runtime), (driver, runtime)
    # Contexts and modules belong to the first call or to one without a row; all else to a call with a row.
    assert {driver for driver, runtime in pairs if not runtime} <= {"cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuLibraryGetKernel", "cuMemAlloc_v2", "cuMemFree_v2"}
    assert len({e["tid"] for e in trace.host(cat="cuda_runtime")}) == 2
    assert {e["name"] for e in trace.host(cat="cuda_runtime") if "correlation" in e["args"]} == set()
    failed = [(e["name"], e["args"]["cs.result"]) for e in trace.host(cat="cuda_runtime") if "cs.result" in e["args"]]
    assert len(failed) == 10 and set(failed) == {("cudaStreamQuery", 400), ("cudaLaunchKernel", 98)}
    assert trace.totals["recorded"] == sum(calls.values()) + sum(calls_in(trace).values()) and trace.totals["lost_records"] == 0


def test_the_driver_level_is_the_same(run_app):
    _, on = both(run_app, ["runtime", "plain"])
    run, off = both(run_app, ["runtime", "plain"], env={"CUSTREAM_RUNTIME": "off"})
    assert not runtime_calls(off) and calls_in(on) == calls_in(off) and not said(run)
    assert len(on.lanes) == len(off.lanes)


def test_streams_are_the_programs(run_app):
    """Who made a stream is looked for behind the runtime, and behind our function in front of that."""
    _, trace = both(run_app, ["runtime", "plain"])
    assert {e["args"]["library"] for e in trace.lives if e["args"].get("origin") == "created"} == {"runtime"}


@pytest.mark.parametrize("policy", [{"CUSTREAM_DEFAULT_STREAM": "per-thread"}, {"CUSTREAM_DEFAULT_STREAM": "audit"}, {"CUSTREAM_STREAMS": "pool:2"},
                                    {"CUSTREAM_STREAMS": "sync"}, {"CUSTREAM_JITTER": "seed=1,us=20"}], ids=lambda p: "-".join(p.values()))
def test_policies_stay_at_the_drivers_level(run_app, policy):
    """The same with and without the slices of the runtime, which are as many as ever."""
    bare = run_app(["runtime", "plain"], shim=False).check()
    on, off = (run_app(["runtime", "plain"], env={**policy, "CUSTREAM_RUNTIME": word}).check() for word in ("on", "off"))
    assert on.stdout == off.stdout == bare.stdout
    trace, without = read(on.trace), read(off.trace)
    assert calls_in(trace) == calls_in(without) and runtime_calls(trace) == made(on.stdout) and not runtime_calls(without)


def test_opens_clean(run_app, trace_processor):
    for what in ("plain", "ranges"):
        run, trace = both(run_app, ["runtime", what])
        trace_processor.load(run.trace)
        assert_clean(trace_processor)
        count = trace_processor.query("SELECT count(*) AS n FROM slice WHERE category = 'cuda_runtime'")[0]["n"]
        inside = trace_processor.query("SELECT count(*) AS n FROM slice s JOIN slice p ON s.parent_id = p.id WHERE s.category = 'cuda_driver' AND p.category = 'cuda_runtime'")
        assert count == sum(runtime_calls(trace).values()) == sum(made(run.stdout).values())
        assert inside[0]["n"] == sum(1 for _, runtime in around(trace) if runtime) > 100


def test_the_first_call(run_app):
    """Made before there is a driver, a ring or a clock."""
    run, trace = both(run_app, ["runtime", "first"])
    (call,) = trace.host(cat="cuda_runtime")
    assert call["name"] == "cudaStreamCreate" and set(around(trace)) >= {("cuStreamCreate", "cudaStreamCreate")}
    assert all(runtime for _, runtime in around(trace)) and not said(run)


def test_in_ranges(run_app):
    """A range holds the calls made in it, and what was pushed before the first call holds that too."""
    run, trace = both(run_app, ["runtime", "ranges"])
    assert runtime_calls(trace) == made(run.stdout)
    ranges = collections.defaultdict(list)
    for e in trace.host(cat="user_annotation"):
        ranges[e["name"]].append((e["ts"], round(e["ts"] + e["dur"], 3)))
    assert len(ranges["one"]) == 100 and len(ranges["outer"]) == len(ranges["inner"]) == 1
    calls = [(e["ts"], round(e["ts"] + e["dur"], 3)) for e in trace.host(cat="cuda_runtime")]
    within = [sum(a <= c and d <= b for c, d in calls) for name in ("outer", "inner") for a, b in ranges[name]]
    assert within == [203, 2] and all(sum(a <= c and d <= b for c, d in calls) == 2 for a, b in ranges["one"])


@pytest.mark.parametrize("env", [{}, {"CUSTREAM_TRACE": "off"}, {"CUSTREAM_RUNTIME": "off"}], ids=["on", "trace-off", "runtime-off"])
def test_errno_stays(run_app, env):
    bare = run_app(["runtime", "keeps"], shim=False).check()
    run = run_app(["runtime", "keeps"], env=env).check()
    assert run.stdout == bare.stdout and "errno kept 10\n" in run.stdout and not said(run)
    assert run.trace.exists() == ("CUSTREAM_TRACE" not in env)


def test_driver_calls_alone_have_none(run_app):
    _, trace = both(run_app, ["runtime", "driver"])
    assert not runtime_calls(trace) and calls_in(trace)["cuStreamCreate"] == 1
    _, trace = both(run_app, ["timeline"])
    assert not runtime_calls(trace)


def test_look_ups_by_name_get_the_real_functions(run_app, build):
    """Each library's own: no slice, and the driver's calls as ever."""
    run, trace = both(run_app, ["runtimes", build / "fakecuda/libcudart.so.13", build / "tests/copies/libcudart-0123abcd.so.13"])
    assert run.check().stdout.count("results 0\n") == 3
    assert not runtime_calls(trace) and calls_in(trace)["cuMemsetD8Async"] == 12


def test_nothing_with_tracing_off_or_in_closed_windows(run_app):
    run = run_app(["runtime", "plain"], env={"CUSTREAM_TRACE": "off"}).check()
    assert run.stdout == run_app(["runtime", "plain"], shim=False).stdout and not run.trace.exists() and not said(run)
    run = run_app(["runtime", "plain"], env={"CUSTREAM_WINDOW": "profiler"}).check()
    assert not run.trace.exists() or not runtime_calls(run.load())


def all_of(run, paths):
    """Calls in the files, of the runtime and in all; records lost; and how many calls of the runtime the program made. Each has at least one of the driver."""
    traces = [read(path) for path in paths]
    runtime = sum(sum(runtime_calls(t).values()) for t in traces)
    return runtime, runtime + sum(sum(calls_in(t).values()) for t in traces), sum(t.totals["lost_records"] for t in traces), sum(made(run.stdout).values())


def test_losses(run_app):
    """With a ring too small the slices still nest (`custream check`), and the sums still are right."""
    run = run_app(["runtime", "many"], env={"CUSTREAM_BUFFER": "64K"}).check()
    _, recorded, lost, expected = all_of(run, [run.trace])
    assert lost > 0 and recorded + lost >= 2 * expected


def test_parts(run_app, tmp_path):
    """With files too short, too."""
    run = run_app(["runtime", "many"], env={"CUSTREAM_TRACE": tmp_path / "parts.json", "CUSTREAM_TRACE_MAX": "1M,rotate:50", "CUSTREAM_FULL": "block"}).check()
    parts = sorted(tmp_path.glob("parts*.json"))
    runtime, _, lost, expected = all_of(run, parts)
    assert len(parts) > 1 and lost == 0 and runtime == expected


@pytest.mark.parametrize("variant", ["plain", "asan"])
def test_a_coarse_clock(build, tmp_path, variant):
    """Calls that begin and end in one tick of the clock follow each other and hold each other all the same."""
    path = tmp_path / "trace.json"
    env = {k: v for k, v in os.environ.items() if not k.startswith("CUSTREAM_")} | {"CUSTREAM_TRACE": str(path)}
    done = subprocess.run([build / "tests/unit" / variant / "tool_runtime"], env=env, capture_output=True, text=True, check=True)
    driver, runtime = map(int, re.findall(r"\d+", done.stdout))
    trace = read(path)
    assert calls_in(trace) == {"cuStreamQuery": driver} and runtime_calls(trace) == {"cudaStreamQuery": runtime}
    lane = sorted(trace.host(), key=lambda e: (e["ts"], -e["dur"]))
    assert sum(e["dur"] == 0.001 for e in lane) > 100, "the clock was too fine to show anything"
    ends = []  # of the slices that are open
    for e in lane:
        end = round(e["ts"] + e["dur"], 3)
        while ends and ends[-1] <= e["ts"]:
            ends.pop()
        assert not ends or end <= ends[-1], e
        ends.append(end)


# ---- Several copies ----

USERS = ["libruntime_user.so", "copies/libruntime_user_own.so", "copies/libruntime_user_12.so"]


@pytest.mark.parametrize("bind", ["lazy", "now"])
@pytest.mark.parametrize("users", [USERS, USERS[::-1], USERS[:2], USERS[1:], USERS[:1]], ids=["three", "reversed", "two", "12-13", "one"])
def test_each_library_reaches_its_own_copy(run_app, build, users, bind):
    """A kernel is known to one copy, an error stands in one: the program prints both, and they are what they are without us."""
    env = {"LD_BIND_NOW": "1"} if bind == "now" else {}
    run, trace = both(run_app, ["runtime_copies", *(build / "tests" / user for user in users)], env=env)
    lines = run.check().stdout.splitlines()
    for i in range(len(users)):
        assert lines.count(f"{i} launch 0 sync 0") == 3
        assert lines.count(f"{i} fails 400 and then of all" + "".join(" 400" if k == i else " 0" for k in range(len(users)))) == 3
        knows = ["0" if k == i else "98" for k in range(len(users))]
        assert lines.count(f"kernel of {i} by each {' '.join(knows)} and then of all {' '.join(knows)}") == 3
        assert lines.count(f"{i} by pointer 0") == 3
    calls = runtime_calls(trace)
    assert calls["cudaLaunchKernel"] == (7 + 3 * len(users)) * len(users) and calls["cudaDeviceSynchronize"] == 3 * len(users)
    assert calls["cudaStreamSynchronize"] == 3 * len(users) + 3
    assert calls_in(trace)["cuLaunchKernel"] == 9 * len(users)


def test_a_global_copy_takes_all_of_its_version(run_app, build):
    """The loader binds a library to a copy in the global scope, whatever it is linked to; so do we. One of another version stays with its own."""
    shim, copy = build / "libcustream_shim.so", build / "fakecuda/libcudart.so.13"
    argv = ["runtime_copies", *(build / "tests" / user for user in USERS)]
    bare = run_app(argv, shim=copy).check()
    assert "1 fails 400 and then of all 400 0 0" in bare.stdout and "2 fails 400 and then of all 0 0 400" in bare.stdout
    run = run_app(argv, shim=f"{shim} {copy}").check()
    assert run.stdout == bare.stdout and runtime_calls(read(run.trace))["cudaLaunchKernel"] == 48


BY_HANDLE = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.user_bound.restype = ctypes.c_void_p
print(library.user_bound() == ctypes.cast(library.cudaGetLastError, ctypes.c_void_p).value)
"""


@pytest.mark.parametrize("user", USERS)
def test_the_loader_does_not_tell_which_copy_it_has_bound(build, user):
    """Why relocations are read (wrap/runtime_copy.c). By a library's handle the loader names the copy that it is linked to, and not always the one that it has."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("CUSTREAM_")}
    for preloaded in ("", str(build / "fakecuda/libcudart.so.13")):
        done = subprocess.run([sys.executable, "-c", BY_HANDLE, build / "tests" / user], capture_output=True, text=True, check=True,
                              env=env | {"LD_LIBRARY_PATH": str(build / "fakecuda"), "LD_PRELOAD": preloaded})
        assert done.stdout == f"{not (preloaded and 'own' in user)}\n"


RETURNS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
int cudaEventSynchronize(void *event)
{
    Dl_info where;
    (void)event;
    dladdr(__builtin_return_address(0), &where);
    printf("returns to %s\\n", strrchr(where.dli_fname, '/') + 1);
    return 0;
}
"""


def test_the_stack_does_not_tell_who_has_called(run_app, build, tmp_path):
    """Why the instruction in front of the return address is read. The last call of a function returns to the function's caller, here in another library."""
    (tmp_path / "returns.c").write_text(RETURNS)
    subprocess.run(["gcc", "-shared", "-fPIC", "returns.c", "-o", "libreturns.so"], cwd=tmp_path, check=True)
    lines = run_app(["runtime_copies", *(build / "tests" / user for user in USERS)], shim=tmp_path / "libreturns.so").check().stdout.splitlines()
    through = [before for before, line in zip(lines, lines[1:]) if line.startswith("through another")]
    assert through == ["returns to libruntime_user_12.so"] * 3, "libruntime_user_own.so has made these calls"


def test_libraries_move(run_app, build, tmp_path):
    """The same program with copies of the libraries elsewhere: nothing is remembered by name."""
    for folder in ("copies", "."):
        (tmp_path / folder).mkdir(exist_ok=True)
    for user in USERS:
        shutil.copy(build / "tests" / user, tmp_path / user)
    for copy in ("libcudart-0123abcd.so.13", "libcudart.so.12"):
        shutil.copy(build / "tests/copies" / copy, tmp_path / "copies" / copy)
    run, _ = both(run_app, ["runtime_copies", *(tmp_path / user for user in USERS)])
    assert "2 fails 400 and then of all 0 0 400" in run.check().stdout


@pytest.mark.parametrize("mode", ["deep", "wraps"])
def test_a_copy_that_moves_without_our_hearing_of_it(run_app, build, mode):
    """Closed by a library that calls the C library's dlclose, or so often that a short count is the same again: the next call goes where the copy lies now."""
    run, trace = both(run_app, ["runtime_moves", mode, build / "tests/libruntime_user.so", build / "tests/libruntime_deep.so"])
    assert run.check().stdout == "sync 0\n" * 3
    assert runtime_calls(trace)["cudaStreamSynchronize"] == 3 and not said(run)


def test_the_loaders_lock_is_not_waited_for(run_app, build):
    """Another thread holds it until the call has returned."""
    run, _ = both(run_app, ["runtime_moves", "loading", build / "tests/libruntime_user.so", build / "tests/libruntime_deep.so"])
    assert run.check().stdout == "loaded behind the call\nsync 0\n"


# ---- The other architecture ----

@pytest.mark.parametrize("argv", [["runtime", "plain"], ["runtime", "ranges"], ["runtime_copies", *USERS],
                                  ["runtime_moves", "deep", "libruntime_user.so", "libruntime_deep.so"]], ids=lambda argv: "-".join(argv[:2])[:20])
def test_on_aarch64(aarch64_build, qemu, tmp_path, argv):
    """The same as there without us, and as many slices as calls."""
    tests = aarch64_build / "tests"
    command = [*qemu, tests / argv[0], *(tests / a if a.endswith(".so") else a for a in argv[1:])]
    guest = f"LD_LIBRARY_PATH={aarch64_build}/fakecuda"
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("CUSTREAM_", "LD_", "QEMU_"))}
    bare = subprocess.run(command, env={**clean, "QEMU_SET_ENV": guest}, capture_output=True, text=True, check=True)
    path = tmp_path / "trace.json"
    run = subprocess.run(command, env={**clean, "QEMU_SET_ENV": f"{guest},LD_PRELOAD={aarch64_build}/libcustream_shim.so", "CUSTREAM_TRACE": str(path)},
                         capture_output=True, text=True, check=True)
    assert run.stdout == bare.stdout
    calls = runtime_calls(read(path))
    if argv[0] == "runtime":
        assert calls == made(run.stdout)
    elif argv[0] == "runtime_copies":
        assert calls["cudaLaunchKernel"] == 16 * len(USERS)
    else:
        assert run.stdout == "sync 0\n" * 3 and calls["cudaStreamSynchronize"] == 3


# ---- The real library, without a GPU ----

PROGRAM = """
#include <cuda_runtime_api.h>
#include <stdio.h>
int main(void)
{
    cudaStream_t stream = 0;
    void *memory;
    int created = cudaStreamCreate(&stream), got = cudaMalloc(&memory, 4), waited = cudaStreamSynchronize(0);
    printf("%d %d %d %d\\n", created, got, waited, cudaGetLastError());
    return 0;
}
"""


@pytest.mark.parametrize("driver", ["none", "refuses"])
def test_the_real_library(run_app, build, tmp_path, cuda_include, real_cudart, driver):
    """The loader binds a program to us and us to nobody; the library fails as it does alone: without a driver, and with one that it unloads again."""
    (tmp_path / "program.c").write_text(PROGRAM)
    (tmp_path / "driver").mkdir()
    if driver == "refuses":
        for name in ("libcuda.so.1", "libcupti.so.13"):
            (tmp_path / "driver" / name).symlink_to(build / "fakecuda" / name)
    subprocess.run(["gcc", "program.c", "-o", "program", "-isystem", cuda_include, real_cudart], cwd=tmp_path, check=True)
    env = {"LD_LIBRARY_PATH": f"{tmp_path}/driver:{real_cudart.parent}"}
    bare = run_app([tmp_path / "program"], shim=False, env=env).check()
    for gpu in ("off", "auto"):
        run = run_app([tmp_path / "program"], env={**env, "CUSTREAM_GPU": gpu, "CUSTREAM_CTL": "off"}).check()
        assert run.stdout == bare.stdout != "0 0 0 0\n" and not said(run)
    traced = run_app([tmp_path / "program"], env={**env, "LD_DEBUG": "bindings"}).check()
    bound = {name: pathlib.Path(file).name for file, name in re.findall(
        r"binding file \S*/program \[0\] to (\S+) \[0\]: normal symbol `cuda(\w+)' \[libcudart\.so\.13\]", traced.stderr)}
    ours = dict.fromkeys(["StreamCreate", "StreamSynchronize"], "libcustream_shim.so")
    assert bound == {**ours, "Malloc": "libcudart.so.13", "GetLastError": "libcudart.so.13"}
