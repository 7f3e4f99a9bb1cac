"""Plug-ins and hooks seen from the program: what it must not notice, and what other threads and closed libraries do (docs/plugins.md)."""
import os
import re
import subprocess

import pytest

from tests.apprun import said

HEAD = """
#define _GNU_SOURCE
#include <cuda.h>
#include <custream.h>
#include <dlfcn.h>
#include <fcntl.h>
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


# ---- Other threads, while plug-ins come up ----

TWO_THREADS = """
static pthread_barrier_t both;
static int priority[2];
static void *begins(void *which)
{
    int *mine = which;
    CUcontext context;
    CUstream s;
    pthread_barrier_wait(&both);
    while (mine == &priority[1] && access("begun", F_OK)) usleep(1000);
    cuDevicePrimaryCtxRetain(&context, 0), cuCtxSetCurrent(context);
    cuStreamCreateWithPriority(&s, 1, 0);
    cuStreamGetPriority(s, mine);
    return NULL;
}
int main(void)
{
    pthread_t threads[2];
    cuInit(0); pthread_barrier_init(&both, NULL, 2);
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, begins, &priority[i]);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%d %d\\n", priority[0], priority[1]);
}
"""
RAISES = """
static void hook(custream_hook_info_t *info, void *arg) { (void)arg; if (!info->after) info->priority = -3; }
static void *uses_cuda(void *unused) { CUcontext c; cuDevicePrimaryCtxRetain(&c, 0); return unused; }
INIT
{
    custream_hook_t hook_;
    pthread_t thread;
    close(creat("begun", 0600));
    if (getenv("PLUGIN_WAITS")) pthread_create(&thread, NULL, uses_cuda, NULL), pthread_join(thread, NULL);
    else usleep(300000);
    return api->register_hook(CUSTREAM_HOOK_CREATE, hook, NULL, &hook_);
}
"""


def test_a_plug_in_has_its_hooks_before_other_threads_go_on(run_app, compiled):
    run = run_app([compiled("program", TWO_THREADS)], env={"CUSTREAM_PLUGIN": compiled("raises.so", RAISES)}).check()
    assert run.stdout == "-3 -3\n" and not said(run)


def test_a_fifo_is_no_plug_in(run_app, tmp_path):
    """Opened, it would hold the loader's lock until somebody writes to it."""
    os.mkfifo(tmp_path / "fifo")
    run = run_app(["burst", 1, 2], env={"CUSTREAM_PLUGIN": tmp_path / "fifo"}).check()
    assert said(run) == [f"custream: warning: CUSTREAM_PLUGIN: {tmp_path}/fifo: not a file; the program goes on without it"]


def test_a_plug_in_that_waits_for_another_thread(run_app, compiled):
    """That one is not held for ever."""
    run = run_app([compiled("program", TWO_THREADS)], env={"CUSTREAM_PLUGIN": compiled("raises.so", RAISES), "PLUGIN_WAITS": 1}).check()
    assert run.stdout.startswith("-3 ") and any("have not come up in 2 s" in line for line in said(run))


# ---- A library with a hook that is closed ----

CLOSES = """
int main(int argc, char **argv)
{
    CUcontext context;
    CUstream s;
    int calls = 0;
    custream_hook_t hook;
    cuInit(0), cuDevicePrimaryCtxRetain(&context, 0), cuCtxSetCurrent(context), cuStreamCreate(&s, 1);
    void *library = dlopen(argv[1], RTLD_NOW);
    custream_hook_t (*registers)(int *) = (custream_hook_t (*)(int *))dlsym(library, "registers");
    hook = registers(&calls);
    cuStreamSynchronize(s);
    printf("closed %d, ", dlclose(library));
    fflush(stdout);
    cuStreamSynchronize(s);
    printf("calls %d, unregistered %d\\n", calls, custream_unregister_hook(hook));
}
"""
REGISTERS = """
static void hook(custream_hook_info_t *info, void *calls) { (void)info; ++*(int *)calls; }
custream_hook_t registers(int *calls)
{
    custream_hook_t made = NULL;
    custream_register_hook(CUSTREAM_HOOK_SYNCHRONIZE, hook, calls, &made);
    return dlerror() ? NULL : made;
}
"""


@pytest.mark.parametrize("path", ["whole", "relative"])
def test_a_library_with_a_hook_stays(run_app, compiled, tmp_path, path):
    library = compiled("registers.so", REGISTERS)
    run = run_app([compiled("program", CLOSES), library if path == "whole" else "./registers.so"], cwd=tmp_path).check()
    assert run.stdout == "closed 0, calls 4, unregistered 0\n" and not said(run)


# ---- A hook that does not return, and one that sends work elsewhere ----

LEAPS = """
#include <setjmp.h>
static jmp_buf back;
static int leaps_after = -1, launched;
static CUfunction kernel;
static CUstream s;
static void hook(custream_hook_info_t *info, void *unused)
{
    (void)unused;
    if (info->after == leaps_after) leaps_after = -1, longjmp(back, 1);
}
static void launches(int n) { while (n--) launched += cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, s, NULL, NULL) == 0; }
static void *other(void *context)
{
    cuCtxSetCurrent(context);
    launches(4);
    return NULL;
}
int main(int argc, char **argv)
{
    CUcontext context;
    CUmodule module;
    custream_hook_t made;
    pthread_t thread;
    cuInit(0), cuDevicePrimaryCtxRetain(&context, 0), cuCtxSetCurrent(context), cuStreamCreate(&s, 1);
    cuModuleLoadData(&module, ""), cuModuleGetFunction(&kernel, module, "empty");
    launches(2);
    if (custream_register_hook(CUSTREAM_HOOK_ENQUEUE, hook, NULL, &made)) return 1;
    launches(2);
    leaps_after = argc > 1 ? atoi(argv[1]) : -1;
    if (!setjmp(back)) launches(1);
    launches(3);
    pthread_create(&thread, NULL, other, context), pthread_join(thread, NULL);
    const int status = custream_unregister_hook(made);
    launches(5);
    printf("launched %d, unregistered %d\\n", launched, status);
}
"""


@pytest.mark.parametrize("gpu", ["auto", "off"])
@pytest.mark.parametrize("leaps, launched, recorded", [("-1", 17, 17), ("0", 16, 2 + 2 + 4), ("1", 16, 2 + 2 + 1 + 4)], ids=["returns", "before", "after"])
def test_a_hook_that_leaves_by_longjmp(run_app, compiled, leaps, launched, recorded, gpu):
    """Its thread's calls go on and are not recorded. Another thread's are, while there is the hook. The call that it left after was made and recorded."""
    run = run_app([compiled("program", LEAPS), leaps], env={"CUSTREAM_GPU": gpu}).check()
    assert run.stdout == f"launched {launched}, unregistered 0\n" and not said(run)
    assert run.load().count()["cuLaunchKernel"] == recorded


MOVES = """
static void hook(custream_hook_info_t *info, void *to) { info->stream = to; }
int main(int argc, char **argv)
{
    CUcontext context;
    CUmodule module;
    CUfunction kernel;
    CUstream s;
    custream_hook_t made;
    cuInit(0), cuDevicePrimaryCtxRetain(&context, 0), cuCtxSetCurrent(context), cuStreamCreate(&s, 1);
    cuModuleLoadData(&module, ""), cuModuleGetFunction(&kernel, module, "empty");
    if (custream_register_hook(CUSTREAM_HOOK_ENQUEUE, hook, NULL, &made)) return 1;
    for (int i = 0; i < 2; i++) cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, s, NULL, NULL);
    custream_unregister_hook(made);
    cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, s, NULL, NULL);
}
"""


@pytest.mark.parametrize("trace", ["t.json", "off"])
@pytest.mark.parametrize("policy, stream", [("per-thread", "per-thread"), ("keep", "legacy")])
def test_a_hook_moves_work_to_the_default_stream_and_a_policy_on(run_app, compiled, tmp_path, policy, stream, trace):
    """Whether the stream that the program named is one on which the policy has a say does not matter."""
    journal = tmp_path / "journal"
    run_app([compiled("program", MOVES)], env={"CUSTREAM_DEFAULT_STREAM": policy, "CUSTREAM_FAKE_JOURNAL": journal, "CUSTREAM_TRACE": trace}).check()
    assert re.findall(r"^\d+ cuLaunchKernel\S* (legacy|per-thread|s\d+)", journal.read_text(), re.MULTILINE) == [stream] * 2 + ["s1"]
