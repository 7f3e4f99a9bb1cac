"""libcustream.so beside a preload library of another version: it takes over the functions that the other one's table has, and does without the rest."""
import os
import re
import subprocess

import pytest

SYSTEM = "-isystem"

# What the preload library's functions answer here, so that each is told from "nothing".
PRELOAD = r"""
#include "shim/api/link.h"
static int push(const char *text) { return (void)text, 40; }
static int pop(void) { return 41; }
static status record(bool on) { return (void)on, (status)42; }
static status flush(void) { return (status)43; }
static bool in_hook(void) { return true; }
static bool requested(void *handle, cs_u64 link, int *priority) { return (void)handle, (void)link, *priority = 44, true; }
static cs_u64 stream(void *handle) { return (void)handle, 45; }
static const struct api_link table = {
    .size = SIZE, .version = VERSION, .stream = stream, .requested = requested, .in_hook = in_hook, .push = push, .pop = pop, .record = record, FLUSH
};
const struct api_link *libcustream_link(void) { return &table; }
"""
PROGRAM = r"""
#include "shim/api/alone/link.c"
#include <stdio.h>
int main(void)
{
    int priority = 0, pushed = api_link->push("x"), popped = api_link->pop();
    api_link->requested(NULL, 0, &priority);
    printf("%d %d %d %d %d %d %d\n", pushed, popped, api_link->record(true), api_link->in_hook(), priority, (int)api_link->stream(NULL), ASKED);
    return 0;
}
"""
LAST = "    status (*flush)(void);\n"
NOTHING, ALL = "0 0 14 0 0 0 14", "40 41 42 1 44 0 43"

# The preload library: which version of the header it has, the size and version that it says, and what a libcustream.so of today answers beside it.
BESIDE = {
    "none": None,
    "same": ("same", "sizeof table", "API_LINK_VERSION", ALL),
    "older": ("older", "sizeof table", "API_LINK_VERSION", "40 41 42 1 44 0 14"),
    "much-older": ("same", "offsetof(struct api_link, push)", "API_LINK_VERSION", "0 0 14 1 44 0 14"),
    "newer": ("newer", "sizeof table", "API_LINK_VERSION", ALL),
    "another-version": ("same", "sizeof table", "API_LINK_VERSION + 1", NOTHING),
    "first-four-only": ("same", "offsetof(struct api_link, requested)", "API_LINK_VERSION", NOTHING),
    "no-size": ("same", "0", "API_LINK_VERSION", NOTHING),
}


def tree_of(root, folder, version):
    """link.h and alone/link.c as they are, with one function less at the end, or with one more."""
    header, alone = ((root / "shim/api" / name).read_text() for name in ("link.h", "alone/link.c"))
    assert header.count(LAST + "};") == 1 and alone.count(", .flush = no_flush") == 1
    if version == "older":
        header, alone = header.replace(LAST + "};", "};"), alone.replace(", .flush = no_flush", "")
    if version == "newer":
        header = header.replace(LAST + "};", LAST + "    status (*later)(void);\n};")
        alone = alone.replace(", .flush = no_flush", ", .flush = no_flush, .later = no_flush")
    (folder / "shim/api/alone").mkdir(parents=True)
    (folder / "shim/api/link.h").write_text(header)
    (folder / "shim/api/alone/link.c").write_text(alone)


def compiled(root, folder, cuda_include, name, text, *flags):
    (folder / f"{name}.c").write_text(text)
    subprocess.run(["gcc", "-std=gnu11", "-fPIC", "-fvisibility=hidden", f"-I{folder}", f"-I{root}", f"-I{root}/include", SYSTEM, cuda_include, folder / f"{name}.c",
                    "-o", folder / name, *flags], check=True)
    return folder / name


def answers(program, preload=None, **env):
    env = {**os.environ, **({"LD_PRELOAD": str(preload)} if preload else {}), **env}
    return subprocess.run([program], env=env, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def alone(root, tmp_path, cuda_include):
    """A program with the part of libcustream.so that is in question, of a version of the header."""
    def make(version):
        tree_of(root, tmp_path / version, version)
        asked = {"older": "14", "same": "api_link->flush()", "newer": "api_link->later() == 14 ? (int)api_link->flush() : -1"}[version]
        return compiled(root, tmp_path / version, cuda_include, "program", PROGRAM, f"-DASKED={asked}")
    return make


@pytest.mark.parametrize("beside", BESIDE)
def test_a_preload_library_of_another_version(root, tmp_path, cuda_include, alone, beside):
    preload, expected = None, NOTHING
    if BESIDE[beside]:
        version, size, number, expected = BESIDE[beside]
        (tmp_path / "beside").mkdir()
        tree_of(root, tmp_path / "beside", version)
        preload = compiled(root, tmp_path / "beside", cuda_include, "preload.so", PRELOAD, "-shared", f"-DSIZE={size}", f"-DVERSION={number}",
                           "-DFLUSH=" + ("" if version == "older" else ".flush = flush"))
    assert answers(alone("same"), preload) == expected


@pytest.mark.parametrize("version", ["older", "same", "newer"])
def test_the_preload_library_beside_another_version(build, tmp_path, alone, version):
    """The real one: a range nests, a pop without its push is refused, and a stream that nobody made has no priority."""
    env = {"CUSTREAM_TRACE": str(tmp_path / "t.json"), "LD_LIBRARY_PATH": str(build / "fakecuda")}
    push, pop, record, in_hook, priority, stream, flush = map(int, answers(alone(version), build / "libcustream_shim.so", **env).split())
    assert push >= 0 and pop >= 0
    assert (record, in_hook, priority, stream, flush) == (14, 0, 0, 0, 14)  # no driver is loaded


def test_the_table_only_grows(root):
    """Another order, or a function less, needs another version: then this list is written anew."""
    table = re.search(r"struct api_link \{(.*?)\n\};", (root / "shim/api/link.h").read_text(), re.DOTALL)[1]
    assert "API_LINK_VERSION = 1 }" in (root / "shim/api/link.h").read_text()
    first = ["stream", "event", "stream_ended", "event_ended", "requested", "named", "history", "hook", "unhook", "in_hook", "stays", "push", "pop", "mark", "record", "flush"]
    assert re.findall(r"\(\*(\w+)\)", table)[:len(first)] == first
