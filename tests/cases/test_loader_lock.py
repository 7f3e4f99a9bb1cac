"""A library's constructor holds the loader's lock, and may wait for any thread: no wrapper takes it (dev/check-loader)."""
import shutil
import subprocess
import sys

import pytest

from tests.apprun import read


RULES = '{"rules": [{"match": {"library": "libnccl*"}, "set": {"priority": -1}}, {"match": {"library": "held"}, "set": {"name": "of a rule"}}]}'
OPTIONS = {
    "policy": {"CUSTREAM_POLICY": RULES},
    "audit": {"CUSTREAM_DEFAULT_STREAM": "audit"},
    "per-thread": {"CUSTREAM_DEFAULT_STREAM": "per-thread"},
    "events": {"CUSTREAM_GPU": "events"},
    "cupti": {"CUSTREAM_GPU": "cupti", "CUSTREAM_RUNTIME": "cupti"},
    "no GPU times": {"CUSTREAM_GPU": "off"},  # without the GPU thread
    "jitter": {"CUSTREAM_JITTER": "seed=1,percent=5,us=1"},
    "priority": {"CUSTREAM_PRIORITY": "shift:-1"},
    "ctl": {"CUSTREAM_CTL": "on"},
    "no trace": {"CUSTREAM_TRACE": "off", "CUSTREAM_PRIORITY": "shift:-1"},
    "window": {"CUSTREAM_WINDOW": "profiler"},
}


def held(run_app, build, program, how, env=None):
    """The program ends as it does alone: one that waits for the lock says where, and fails."""
    run = run_app([program, how, build / "tests" / "libheld.so"], env={"CUSTREAM_GPU": "auto", **(env or {})}).check()
    assert run.stdout.endswith("held done\n") and "not applied" not in run.stderr
    return run


# ---- What a program calls while the lock is held ----

@pytest.mark.parametrize("how", ["first", "nvtx", "runtime", "cupti"])
def test_calls(run_app, build, how):
    held(run_app, build, "held", how)


@pytest.mark.parametrize("how", ["base", "sibling"])
def test_all_calls_of_the_table(run_app, build, how):
    bare = run_app(["held_siblings", how, build / "tests" / "libheld.so"], shim=False).check()
    assert held(run_app, build, "held_siblings", how).stdout == bare.stdout


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_first_calls_with_options(run_app, build, options):
    held(run_app, build, "held", "first", options)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_runtime_with_options(run_app, build, options):
    held(run_app, build, "held", "runtime", options)


def test_a_writer_that_waits_for_zlib(run_app, build, tmp_path):
    """An exec has all written before, and does not wait long for a thread that waits for the loader."""
    held(run_app, build, "held", "execs", {"CUSTREAM_TRACE": tmp_path / "trace.json.gz"})


def test_plug_ins(run_app, build):
    """The aide opens them, and waits for the lock. The program does not wait for ever: the call that has them opened goes on before they are."""
    run = held(run_app, build, "held", "first", {"CUSTREAM_PLUGIN": "./nothing.so"})
    assert "have not come up" in run.stderr and "nothing.so" in run.stderr


def test_library_rules(run_app, build):
    """Who calls is told without the loader."""
    run = held(run_app, build, "held", "runtime", OPTIONS["policy"])
    names = read(run.trace).streams.values()
    assert any("of a rule" in name for name in names), names


@pytest.mark.parametrize("name", ["per-thread", "audit", "events", "jitter"])
def test_all_calls_with_options(run_app, build, name):
    held(run_app, build, "held_siblings", "base", OPTIONS[name])


# ---- The sources ----

def check(root, tree):
    done = subprocess.run([sys.executable, root / "dev/check-loader", tree], capture_output=True, text=True, check=False)
    assert done.returncode == bool(done.stdout) and not done.stderr, done.stderr
    return done.stdout.splitlines()


def test_sources_take_the_lock_only_where_it_is_harmless(root):
    assert check(root, root) == []


@pytest.mark.parametrize("path, text, line", [
    ("shim/object/planted.c", "#include <dlfcn.h>\nvoid *f(const void *p) { Dl_info i; return dladdr(p, &i) ? i.dli_fbase : 0; }\n", 2),
    ("shim/wrap/planted.c", "/* dlopen\n */ static void *(*open_it)(const char *, int) = &dlopen;\n", 2),
    ("shim/trace/planted.h", "static inline const char *why(int e) { return strerror(e); }\n", 1),
    ("shim/wrap/nvtx.c", "void f(void) { backtrace(0, 0); }\n", 1),
    ("shim/gpu/planted.c", '/* dladdr */ // dlopen\nconst char *s = "dlopen(", *t = "\\"dladdr"; void f(struct s *s) { s->dlopen(); real_dlsym(); }\n', None),
])
def test_planted_call(root, tmp_path, path, text, line):
    shutil.copytree(root / "shim", tmp_path / "shim")
    (tmp_path / path).write_text(text)
    found = [one for one in check(root, tmp_path) if one.startswith(path)]
    assert len(found) == bool(line) and all(one.startswith(f"{path}:{line}: ") for one in found)


def test_a_reason_that_is_gone(root, tmp_path):
    shutil.copytree(root / "shim", tmp_path / "shim")
    (tmp_path / "shim/out/gzip.c").write_text("")
    assert [one for one in check(root, tmp_path) if "has no dlopen any more" in one]


def test_no_call_is_bound_late(build):
    """The first call of a symbol that is bound late goes through the loader."""
    flags = subprocess.run(["readelf", "-dW", build / "libcustream_shim.so"], capture_output=True, text=True, check=True).stdout
    assert "BIND_NOW" in flags
