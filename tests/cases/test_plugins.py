"""Plug-ins and hooks seen from the program: what it must not notice, and what other threads and closed libraries do (docs/plugins.md)."""
import subprocess

import pytest

from tests.apprun import said

HEAD = """
#define _GNU_SOURCE
#include <cuda.h>
#include <custream.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#define INIT custream_status_t custream_plugin_init(const custream_plugin_api_t *api)
"""


@pytest.fixture
def compiled(root, build, cuda_include, tmp_path):
    """compiled(name, source) is a program linked to the simulated driver and libcustream.so.0, or a library if it is called lib*.so."""
    def compile_(name, source):
        library = ["-shared", "-fPIC"] if name.endswith(".so") else []
        subprocess.run(["gcc", "-Wall", "-Werror", *library, "-I", root / "include", "-isystem", cuda_include, "-x", "c", "-", "-x", "none", "-o", tmp_path / name, "-Wl,--no-as-needed",
                        build / "libcustream.so.0", build / "fakecuda/libcuda.so.1", "-pthread", f"-Wl,-rpath,{build}"], input=HEAD + source, text=True, check=True)
        return tmp_path / name
    return compile_


# ---- dlerror ----

LOOKS_UP = """
int main(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    const char *before = dlerror();
    void *found = dlsym(driver, "cuStreamCreate");
    const char *after = dlerror();
    printf("%s, %s\\n", found && !before ? "found" : "not found", after ? after : "no error");
}
"""
FAILS = 'INIT { (void)api; dlsym(RTLD_DEFAULT, "there_is_none"); return CUSTREAM_SUCCESS; }'


@pytest.mark.parametrize("plugins, lines", [("noinit", 1), ("fails", 0), ("missing", 1), ("noinit:fails:missing", 2), ("missing:noinit:fails", 2)])
def test_a_look_up_that_succeeds_has_no_error(run_app, compiled, tmp_path, plugins, lines):
    """It is the process's first of the driver, so the plug-ins are opened in it."""
    compiled("noinit.so", "int nothing;"), compiled("fails.so", FAILS)
    run = run_app([compiled("program", LOOKS_UP)], env={"CUSTREAM_PLUGIN": ":".join(f"{tmp_path}/{name}.so" for name in plugins.split(":"))}).check()
    assert run.stdout == "found, no error\n" and len(said(run)) == lines


def test_without_plug_ins_the_programs_error_stays(run_app, compiled):
    source = """int main(void) { dlsym(RTLD_DEFAULT, "there_is_none"); cuInit(0); CUstream s; cuStreamQuery(s = 0); const char *e = dlerror(); puts(e ? e : "none"); }"""
    assert "there_is_none" in run_app([compiled("program", source)]).check().stdout
