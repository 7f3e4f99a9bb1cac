"""examples/ and docs/api.md: the programs do what they say, alone and under the preload library, installed by `make install`; the page is what is generated."""
import os
import re
import subprocess

import pytest

from tests.apprun import calls_in, read

EXAMPLES = {"streams": ["the second is current", "done"], "events": ["the host function was between the events", "done"], "graph": ["33", "done"],
            "hooks": ["the greatest priority", "done"]}


@pytest.fixture(scope="module")
def installed(make_install, tmp_path_factory):
    """A prefix that `make install` has filled."""
    prefix = tmp_path_factory.mktemp("prefix")
    make_install(f"PREFIX={prefix}")
    return prefix


def flags(prefix):
    env = dict(os.environ, PKG_CONFIG_PATH=str(prefix / "lib/pkgconfig"))
    return subprocess.run(["pkg-config", "--cflags", "--libs", "custream"], env=env, check=True, capture_output=True, text=True).stdout.split()


def run(command, root, prefix, **env):
    env = dict({k: v for k, v in os.environ.items() if not k.startswith(("CUSTREAM_", "LD_"))}, LD_LIBRARY_PATH=f"{prefix}/lib:{root}/build/fakecuda", **env)
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(root, installed, tmp_path, name):
    program, trace = tmp_path / name, tmp_path / "trace.json"
    subprocess.run(["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", root / f"examples/{name}.c", "-o", program, *flags(installed)], check=True)
    alone = run([program], root, installed).stdout.splitlines()
    assert alone == (["no preload library", "done"] if name == "hooks" else EXAMPLES[name])
    assert run([program], root, installed, LD_PRELOAD=str(installed / "lib/libcustream_shim.so"), CUSTREAM_TRACE=str(trace)).stdout.splitlines() == EXAMPLES[name]
    created = [e["args"] for e in read(trace).lives if e["args"].get("origin") == "created"]
    assert created and {args["library"] for args in created} == {name}, "streams that custream.h makes are the program's"


def guide(root):
    """The C sources of docs/custream-h.md."""
    return re.findall(r"^```c\n(.*?)^```$", (root / "docs/custream-h.md").read_text(encoding="utf-8"), flags=re.M | re.S)


def test_sources_of_the_guide_compile(root, installed):
    for source in guide(root):
        for language in ("c", "c++"):
            subprocess.run(["gcc", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", installed / "include", "-x", language, "-"], input=source, text=True, check=True)


def test_programs_of_the_guide_do_what_it_says(root, installed, tmp_path):
    first, hooks = [source for source in guide(root) if "int main" in source]
    for name, source in (("first", first), ("hooks", hooks)):
        subprocess.run(["gcc", "-x", "c", "-", "-o", tmp_path / name, *flags(installed)], input=source, text=True, check=True)
    shim, trace = str(installed / "lib/libcustream_shim.so"), tmp_path / "trace.json"
    assert run([tmp_path / "first"], root, installed).stdout == "CUSTREAM_SUCCESS\n"
    assert run([tmp_path / "first"], root, installed, LD_PRELOAD=shim, CUSTREAM_TRACE=str(trace)).stdout == "CUSTREAM_SUCCESS\n"
    assert '"name":"step"' in trace.read_text(encoding="utf-8") and "mine" in trace.read_text(encoding="utf-8")
    assert run([tmp_path / "hooks"], root, installed).stdout == "no preload library\n"
    said = run([tmp_path / "hooks"], root, installed, LD_PRELOAD=shim, CUSTREAM_TRACE="off").stdout
    assert re.fullmatch(r"cuStreamCreateWithPriority: stream 0x[0-9a-f]+, priority 0\n", said)


def test_plugin_of_the_examples(root, installed, tmp_path):
    plugin = tmp_path / "plugin_streams.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", root / "examples/plugin_streams.c", "-o", plugin, "-I", installed / "include"], check=True)
    done = run([root / "build/tests/demo"], root, installed, LD_PRELOAD=str(installed / "lib/libcustream_shim.so"), CUSTREAM_PLUGIN=str(plugin),
               CUSTREAM_TRACE=str(tmp_path / "trace.json"))
    lines = done.stderr.splitlines()
    made, ended = ([line for line in lines if word in line] for word in ("made by cuStreamCreateWithPriority", "destroyed after"))
    assert len(made) == len(ended) == len([e for e in read(tmp_path / "trace.json").lives if e["args"].get("origin") == "created"]) == 3


@pytest.mark.parametrize("source, said", [
    (None, "CUSTREAM_PLUGIN: "),
    ("int nothing;", "has no custream_plugin_init; the program goes on without it"),
    ("#include <custream.h>\ncustream_status_t custream_plugin_init(const custream_plugin_api_t *api) { (void)api; return CUSTREAM_CLOSED; }", "answers CUSTREAM_CLOSED"),
], ids=["missing", "none", "refuses"])
def test_plugin_that_is_no_use(root, installed, tmp_path, source, said):
    """One line, and the program goes on; the next one in the list is opened all the same."""
    plugin, other = tmp_path / "plugin.so", tmp_path / "other.so"
    build = ["gcc", "-shared", "-fPIC", "-I", installed / "include", "-x", "c", "-"]
    if source:
        subprocess.run([*build, "-o", plugin], input=source, text=True, check=True)
    subprocess.run([*build, "-o", other], text=True, check=True, input="#include <custream.h>\n#include <stdio.h>\ncustream_status_t custream_plugin_init("
                   "const custream_plugin_api_t *api) { puts(api->version_string()); return CUSTREAM_SUCCESS; }")
    done = run([root / "build/tests/demo"], root, installed, LD_PRELOAD=str(installed / "lib/libcustream_shim.so"), CUSTREAM_PLUGIN=f"{plugin}:{other}",
               CUSTREAM_TRACE=str(tmp_path / "trace.json"))
    (line,) = [line for line in done.stderr.splitlines() if "PLUGIN" in line]
    assert line.startswith("custream: warning: CUSTREAM_PLUGIN: ") and said in line
    assert "0.2.0" in done.stdout and "12 of 12" in done.stdout
    read(tmp_path / "trace.json")


def test_plugin_that_calls_cuda_when_it_is_opened(root, installed, tmp_path):
    """Its own call is in the trace, and so is each of the program's: the first is the one in which the plug-in is opened."""
    calls, program = {}, tmp_path / "program"
    build = ["gcc", "-I", installed / "include", "-x", "c", "-", f"-L{root}/build/fakecuda", "-l:libcuda.so.1"]
    subprocess.run([*build, "-o", program], input="int cuInit(unsigned), cuCtxSetCurrent(void *);\n"
                   "int main(void) { return cuInit(0) || cuCtxSetCurrent(0) || cuCtxSetCurrent(0); }", text=True, check=True)
    for name, call in (("quiet", ""), ("calls", "cuCtxSetCurrent(0);")):
        plugin, trace = tmp_path / f"{name}.so", tmp_path / f"{name}.json"
        source = f"""#include <custream.h>
            int cuCtxSetCurrent(void *);
            custream_status_t custream_plugin_init(const custream_plugin_api_t *api) {{ (void)api; {call} return CUSTREAM_SUCCESS; }}"""
        subprocess.run([*build, "-shared", "-fPIC", "-o", plugin], input=source, text=True, check=True)
        run([program], root, installed, LD_PRELOAD=str(installed / "lib/libcustream_shim.so"), CUSTREAM_PLUGIN=str(plugin), CUSTREAM_TRACE=str(trace))
        calls[name] = calls_in(read(trace))
    assert calls == {"quiet": {"cuCtxSetCurrent": 2}, "calls": {"cuCtxSetCurrent": 3}}


def test_the_page_is_what_is_generated(root):
    made = subprocess.run(["python3", "dev/api-doc/api-doc", "include/custream.h", "docs/api.md"], cwd=root, check=True, capture_output=True, text=True).stdout
    assert (root / "docs/api.md").read_text(encoding="utf-8") == made, "make docs writes it"


def test_the_page_has_every_function(root):
    page = (root / "docs/api.md").read_text(encoding="utf-8")
    symbols = subprocess.run(["nm", "-D", "--defined-only", root / "build/libcustream.so"], check=True, capture_output=True, text=True).stdout
    assert [line.split()[2] for line in symbols.splitlines() if f" {line.split()[2]}(" not in page.replace("*custream", "* custream")] == []
