"""Other libraries that are preloaded and define some of CUDA's functions: behind us and in front of us, they see what they see without us."""
import os
import subprocess

import pytest

from tests.apprun import calls_in, notes_of, read, said

RUNTIME = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#define TOLD(name) static int name##_calls; __attribute__((destructor)) static void name##_said(void) { fprintf(stderr, "note " #name " %d\\n", name##_calls); }
#define FORWARD(name) TOLD(name) int name(void *a, unsigned long b, long c) { name##_calls++; return ((int (*)(void *, unsigned long, long))dlsym(RTLD_NEXT, #name))(a, b, c); }
"""
TOOL = RUNTIME + "FORWARD(cudaStreamCreateWithFlags) FORWARD(cudaStreamDestroy)"
DRIVER_TOOL = RUNTIME + "FORWARD(cuStreamCreate)"
ONLY_13 = "libcudart.so.13 { global: cudaStreamDestroy; local: cudaStreamCreateWithFlags; };"
ANOTHER = "TOOL_1 { global: cudaStreamCreateWithFlags; cudaStreamDestroy; };"


@pytest.fixture
def tool(tmp_path):
    """tool(source, version script) is a library to preload."""
    def compile_(source, versions=None):
        path = tmp_path / "libtool.so"
        script = []
        if versions:
            (tmp_path / "versions").write_text(versions)
            script = [f"-Wl,--version-script={tmp_path}/versions"]
        subprocess.run(["gcc", "-Wall", "-Werror", "-O2", "-shared", "-fPIC", "-x", "c", "-", "-o", path, *script, "-ldl"], input=source, text=True, check=True)
        return path
    return compile_


@pytest.mark.parametrize("versions", [None, ONLY_13, ANOTHER], ids=["unversioned", "libcudart.so.13", "another"])
@pytest.mark.parametrize("order", ["behind", "in-front"])
def test_functions_of_the_runtime(run_app, build, tool, order, versions):
    """Calls by symbol go through the tool as they do without us, and from it to the program's copy."""
    shim, other = build / "libcustream_shim.so", tool(TOOL, versions)
    bare = run_app(["runtime", "plain"], shim=other).check()
    seen = {name: count for name, count in notes_of(bare.stderr).items() if name.startswith("cudaStream")}
    assert any(count != "0" for count in seen.values()) == (versions != ANOTHER)
    run = run_app(["runtime", "plain"], shim=f"{shim} {other}" if order == "behind" else f"{other} {shim}").check()
    assert run.stdout == bare.stdout and not said(run)
    assert {name: count for name, count in notes_of(run.stderr).items() if name in seen} == seen
    calls, trace = run_app(["runtime", "plain"], shim=shim).check().load().count(cat="cuda_runtime"), read(run.trace)
    for name, count in seen.items():  # what a tool in front of us looks up by name has no slice
        calls[name] -= int(count) if order == "in-front" else 0
    assert trace.count(cat="cuda_runtime") == +calls


PROGRAM = """
#include <stdio.h>
int cuInit(unsigned), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *), cuStreamCreate(void **, unsigned), cuStreamSynchronize(void *);
int main(void)
{
    void *context, *stream;
    cuInit(0), cuDevicePrimaryCtxRetain(&context, 0), cuCtxSetCurrent(context);
    printf("%d ", cuStreamCreate(&stream, 1));
    printf("%d\\n", cuStreamSynchronize(stream));
}
"""


@pytest.mark.parametrize("order", ["behind", "in-front"])
def test_functions_of_the_driver(run_app, build, tool, tmp_path, order):
    """In front of us a tool sees them, and so do we. Behind us it does not, and that is said."""
    shim, other = build / "libcustream_shim.so", tool(DRIVER_TOOL)
    subprocess.run(["gcc", "-x", "c", "-", "-x", "none", "-o", tmp_path / "program", build / "fakecuda/libcuda.so.1"], input=PROGRAM, text=True, check=True)
    run = run_app([tmp_path / "program"], shim=f"{shim} {other}" if order == "behind" else f"{other} {shim}").check()
    assert run.stdout == "0 0\n" and calls_in(read(run.trace))["cuStreamCreate"] == 1
    assert notes_of(run.stderr)["cuStreamCreate"] == ("0" if order == "behind" else "1")
    line = "custream: warning: libtool.so stands behind this library and defines cuStreamCreate: calls of the driver pass it by; preload it in front"
    assert said(run) == ([line] if order == "behind" else [])


@pytest.mark.parametrize("before, after", [("libm.so.6:{shim}", "libm.so.6:{shim}"), ("libm.so.6 {shim}:libdl.so.2", "libm.so.6 {shim}:libdl.so.2"),
                                           ("/nowhere{shim}", "{shim}:/nowhere{shim}"), ("libm.so.6", "{shim}:libm.so.6")])
def test_custream_run_leaves_our_place_to_who_names_it(build, before, after):
    shim = (build / "libcustream_shim.so").resolve()
    env = {k: v for k, v in os.environ.items() if not k.startswith("CUSTREAM_")} | {"LD_PRELOAD": before.format(shim=shim)}
    done = subprocess.run([build / "custream", "run", "env"], env=env, capture_output=True, text=True, check=True)
    assert f"LD_PRELOAD={after.format(shim=shim)}\n" in done.stdout
