"""custream.h: every row of the table of stream APIs, with the library linked, opened and preloaded; what it exports; that its layout stays.

The programs of tests/api name their tests by rows. abi.txt is what programs that were built with the header rely on; after a change that keeps old
programs working, write it anew:

    build/venv/bin/python -m tests.cases.test_api > tests/api/abi.txt
"""
import pathlib
import re
import subprocess

import pytest

from tests import variants

ROOT = pathlib.Path(__file__).resolve().parents[2]
API = ROOT / "tests" / "api"

TESTS = [(path.stem, row) for path in sorted(API.glob("rows_*.c"))
         for row in re.findall(r"^ROW(?:_WITH|_SIMULATED)?\(\s*(\w+),\s*\"", path.read_text(), re.MULTILINE)]

# Rows without a test in C, and why.
NOT_IN_C = {
    13: "an int parameter takes no number of another type: the compiler converts 0.5",
    24: "a handle is a handle: objects with a protocol, and what may be wrong with them, are Python's",
    61: "C has no scopes that end by themselves: begin and end are rows 52 and 56",
    87: "objects are opaque, so that there is nothing to derive from",
}

LINKED, OPENED = "linked", "dlopen"
# how the program reaches the functions: its folder, whether the preload library is there, further settings
WAYS = {
    "linked": (LINKED, False, {}),
    "linked-preloaded": (LINKED, True, {}),
    "linked-not-recording": (LINKED, True, {"CUSTREAM_TRACE": "off"}),
    "opened": (OPENED, False, {}),
    "opened-preloaded": (OPENED, True, {}),
    "found-preloaded": (OPENED, True, {"API_DEFAULT": "1"}),
}


@pytest.fixture
def run_row(run_app, build):
    def run(program, arguments, way, env=None, **options):
        folder, shim, settings = WAYS[way]
        settings = {"LD_LIBRARY_PATH": f"{build}:{build}/fakecuda", **settings, **(env or {})}
        return run_app([build / "tests" / "api" / folder / program, *arguments], shim=shim, env=settings, **options)
    return run


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("program", sorted({program for program, _ in TESTS}))
def test_rows(run_row, tmp_path, program, way):
    """Each of the program's rows, in a process of its own."""
    fewer = {"ROWS_MANY": 10000} if variants.NAME == "tsan" else {}  # or the program's alarm ends it
    run = run_row(program, [], way, env=fewer, trace=tmp_path / "%p.json").check()
    assert run.stdout.splitlines() == [row for of, row in TESTS if of == program]


def test_a_late_hook_does_not_record(run_row, tmp_path):
    """CUSTREAM_TRACE=off stays, also when the library comes to keep objects, and the program calls cuProfilerStart."""
    run = run_row("rows_hooks", ["85_late"], "linked-not-recording", cwd=tmp_path).check()
    assert not list(tmp_path.iterdir()) and not run.stderr


@pytest.mark.parametrize("way", ["linked-preloaded", "linked-not-recording"])
def test_after_the_last_hook_calls_take_the_short_way(run_row, build, way):
    """The program reads the word that every wrapper reads first."""
    symbols = subprocess.run(["nm", build / "libcustream_shim.so"], check=True, capture_output=True, text=True).stdout
    run_row("rows_hooks", ["85_gone"], way, env={"MODE_OFFSET": re.search(r"^(\w+) \w cs_mode$", symbols, re.MULTILINE).group(1)}).check()


BESIDE_A_CALL = [{}, {"CUSTREAM_JITTER": "seed=1,percent=100"}, {"CUSTREAM_GPU": "events"}, {"CUSTREAM_STREAMS": "sync"}, {"CUSTREAM_STREAMS": "serial"},
                 {"CUSTREAM_STREAMS": "pool:1"}, {"CUSTREAM_DEFAULT_STREAM": "per-thread"}, {"CUSTREAM_DEFAULT_STREAM": "audit"}, {"CUSTREAM_TRACE": "off"}]


@pytest.mark.parametrize("settings", BESIDE_A_CALL, ids=lambda settings: " ".join(settings.values()) or "none")
def test_nothing_is_done_for_a_refused_call(run_row, tmp_path, settings):
    """Between the program's two queries every call is refused: the driver is asked for nothing, neither for the call nor beside it."""
    run_row("rows_refuse", ["85_nothing"], "linked-preloaded", env={**settings, "CUSTREAM_FAKE_JOURNAL": tmp_path / "journal"}).check()
    lines = [line for line in (tmp_path / "journal").read_text().splitlines() if line.startswith("1 ")]
    first, last = (at for at, line in enumerate(lines) if line.split()[1] == "cuStreamQuery")
    assert lines[first + 1:last] == []


@pytest.mark.parametrize("streams", ["keep", "sync", "serial"])
def test_a_refused_end_of_a_capture_is_none(run_row, streams):
    """In the timeline the capture goes on to the end that was not refused, and the audit takes what was captured after the refusal for no work."""
    env = {"CUSTREAM_DEFAULT_STREAM": "audit", "CUSTREAM_STREAMS": streams}
    trace = run_row("rows_refuse", ["85_end"], "linked-preloaded", env=env).check().load()
    captures, ends = trace.gpu("capture", cat="cs_stream"), trace.host("cuStreamEndCapture")
    assert len(captures) == 8 and len(ends) == 16
    for capture, refused in zip(captures, ends[::2]):
        assert refused["args"]["cs.result"] != "CUDA_SUCCESS"
        assert capture["ts"] < refused["ts"] < capture["ts"] + capture["dur"]
    audit = trace.json["defaultStreamAudit"]
    assert (audit["verdict"], audit["hazards"]) == ("safe" if streams == "keep" else "cannot tell", [])


def test_a_hook_that_forks_is_not_recorded_in_the_child(run_row, tmp_path):
    run = run_row("rows_refuse", ["85_fork"], "linked-preloaded").check()
    assert list(tmp_path.glob("*.json*")) == [run.trace]
    assert run.load().count()["cuStreamSynchronize"] == 1


def test_every_row_is_tested_or_explained():
    tested = {int(row.split("_")[0]) for _, row in TESTS} - {0}
    assert not tested & set(NOT_IN_C)
    assert tested | set(NOT_IN_C) == set(range(1, 88))


@pytest.mark.parametrize("program", sorted({program for program, _ in TESTS}))
def test_programs_have_the_rows_of_their_sources(run_row, program):
    listed = [line.split("\t")[0] for line in run_row(program, ["list"], "linked").check().stdout.splitlines()]
    assert listed == [row for name, row in TESTS if name == program]
    assert run_row(program, ["88_none"], "linked").rc == 1


def test_a_failure_fails(run_app, build, tmp_path, cuda_include):
    """A check that does not hold, or a crash, ends the program with another status than 0; a status is named."""
    source = tmp_path / "rows_bad.c"
    source.write_text('#include "tests/api/rows.h"\n'
                      'ROW(1, "wrong") { GIVES(custream_query(NULL), CLOSED); }\nROW(2, "crash") { __builtin_trap(); }\n'
                      'ROW(3, "good") { GIVES(custream_query(NULL), INVALID_VALUE); }\n')
    subprocess.run(["gcc", "-std=gnu11", f"-I{ROOT}", f"-I{ROOT}/include", "-isystem", cuda_include, source, API / "rows.c", API / "gpu.c",
                    "-o", tmp_path / "bad", f"-L{build}", "-lcustream", f"-L{build}/fakecuda", "-lcuda", "-pthread"], check=True)
    env = {"LD_LIBRARY_PATH": f"{build}:{build}/fakecuda"}
    runs = {row: run_app([tmp_path / "bad", *row], shim=False, env=env) for row in ((), ("1",), ("2",), ("3",))}
    assert runs["1",].rc == 1 and "CUSTREAM_INVALID_VALUE, not CUSTREAM_CLOSED" in runs["1",].stderr
    assert runs["2",].rc < 0 and runs["3",].rc == 0
    assert runs[()].rc == 1 and "row 1, wrong: failed\nrow 2, crash: failed\n" in runs[()].stderr.partition("CLOSED\n")[2]


def counts_of(path):
    return {name: int(count) for name, count in (line.split() for line in path.read_text().splitlines())}


@pytest.mark.parametrize("way", WAYS)
def test_driver_calls_of_streams(run_row, tmp_path, way):
    """Row 2: five streams are five calls that make and five that destroy."""
    run_row("rows_create", ["2"], way, env={"CUSTREAM_FAKE_COUNTS": tmp_path / "counts"}).check()
    counts = counts_of(tmp_path / "counts")
    assert counts["cuStreamCreateWithPriority"] == 5 and "cuStreamCreate" not in counts
    assert sum(count for name, count in counts.items() if name.startswith("cuStreamDestroy")) == 5


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_destroyed_after_a_reset(run_row, tmp_path, way):
    """Row 86: a real driver may crash over an event or stream that a reset has ended."""
    run_row("rows_context", ["86_reset_objects"], way, env={"CUSTREAM_FAKE_COUNTS": tmp_path / "counts"}).check()
    counts = counts_of(tmp_path / "counts")
    assert counts["cuStreamCreateWithPriority"] == 2
    assert not [name for name in counts if name.startswith(("cuStreamDestroy", "cuEventDestroy"))]


@pytest.mark.parametrize("way", WAYS)
def test_the_last_reference_in_a_host_function(run_row, tmp_path, way):
    """Row 50: CUDA may not be called on the thread that it calls a host function on, so the stream is destroyed on another."""
    run_row("rows_host", ["50"], way, env={"CUSTREAM_FAKE_JOURNAL": tmp_path / "journal"}).check()
    lines = [line.split() for line in (tmp_path / "journal").read_text().splitlines()]
    (there,) = {thread for thread, call, *_ in lines if call.startswith("cuStreamQuery") and "s1" in _}
    destroyed = [thread for thread, call, *_ in lines if call.startswith("cuStreamDestroy") and "s2" in _]
    assert len(destroyed) == 1 and destroyed != [there], lines


RECORDED = [way for way, (_, shim, settings) in WAYS.items() if shim and "CUSTREAM_TRACE" not in settings]


@pytest.mark.parametrize("way", RECORDED)
def test_names_in_the_timeline(run_row, way):
    """Row 82: the name that a stream is given here is what its lane is called."""
    trace = run_row("rows_life", ["82"], way).check().load()
    (life,) = trace.lives
    assert trace.streams[0, life["tid"]] == life["name"] == "stream 13 p-1 nb · copies"


@pytest.mark.parametrize("way", RECORDED)
def test_annotations_in_the_timeline(run_row, way):
    trace = run_row("rows_hooks", ["0_annotations"], way).check().load()
    (outer,), (inner,), (mark,) = ([e for e in trace.events if e["name"] == name] for name in ("outer", "inner", "here"))
    assert (outer["ph"], inner["ph"], mark["ph"]) == ("X", "X", "i")
    assert outer["ts"] <= inner["ts"] <= mark["ts"] <= inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"]


@pytest.mark.parametrize("way", WAYS)
def test_threads(run_row, way):
    run_row("threads", [], way).check()


@pytest.mark.parametrize("sanitizer", ["asan", "tsan"])
def test_threads_sanitized(run_app, build, sanitizer):
    """The library's own sources in the program; its objects live till the end of the process, which is no leak to look for here."""
    run_app([build / "tests" / "api" / sanitizer / "threads"], shim=False, env={"ASAN_OPTIONS": "detect_leaks=0"}, timeout=110).check()


# --- the header ---

HEADER = ROOT / "include" / "custream.h"


@pytest.mark.parametrize("compiler", [["gcc", "-x", "c", "-std=c99"], ["clang", "-x", "c", "-std=c99"], ["gcc", "-x", "c", "-std=gnu11"],
                                      ["clang", "-x", "c++", "-std=c++11"], ["clang", "-x", "c++", "-std=c++20"]],
                         ids=lambda c: f"{c[0]}-{c[-1]}")
def test_header_compiles(tmp_path, compiler):
    """Alone, twice, and beside cuda.h in no need of it."""
    (tmp_path / "user").write_text("#include <custream.h>\n#include <custream.h>\nint user(custream_t s);\nint user(custream_t s) { return s == 0; }\n")
    done = subprocess.run([*compiler, "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{HEADER.parent}", tmp_path / "user"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_header_includes():
    assert re.findall(r"^ *# *include *(.*)", HEADER.read_text(), re.MULTILINE) == ["<stddef.h>", "<stdint.h>"]


# --- the libraries ---

LIBRARIES = ["libcustream.so", "libcustream_shim.so"]


def exported(path):
    """The custream_ functions and data that a library exports, without versions."""
    lines = subprocess.run(["nm", "-D", "--defined-only", path], check=True, capture_output=True, text=True).stdout.splitlines()
    return sorted(line.split()[-1].split("@")[0] for line in lines if line.split()[-1].startswith("custream_"))


def declared(build):
    return sorted((build / "tests" / "api" / "functions.txt").read_text().split())


@pytest.mark.parametrize("library", LIBRARIES)
def test_what_is_declared_is_exported_and_nothing_else(build, library):
    assert exported(build / library) == declared(build)


def test_declared_functions_are_found_in_the_header(build):
    """The list that these tests rest on: by another reading of the header."""
    lines = re.findall(r"^(?!typedef)\w[\w *]*\b(custream_\w+)\(", HEADER.read_text(), re.MULTILINE)
    assert sorted(lines) == declared(build)


def test_library_on_its_own(build):
    """It needs the C library alone, of which glibc 2.28 has two parts in files of their own. CUDA's driver it finds when it is called. The soname has the
    number of its interface."""
    text = subprocess.run(["readelf", "-d", build / "libcustream.so"], check=True, capture_output=True, text=True).stdout
    assert "soname: [libcustream.so.0]" in text
    assert set(re.findall(r"Shared library: \[([^\].]*)", text)) <= {"libc", "libdl", "libpthread", "ld-linux-x86-64"}
    lines = subprocess.run(["nm", "-D", "--defined-only", build / "libcustream.so"], check=True, capture_output=True, text=True).stdout.splitlines()
    assert [line for line in lines if "custream_" not in line] == []
    undefined = subprocess.run(["nm", "-D", "-u", build / "libcustream.so"], check=True, capture_output=True, text=True).stdout
    assert not re.findall(r"\bcu[A-Z]\w*", undefined)


def abi(build):
    """What programs rely on, as text."""
    lines = [f"{library} {name}" for library in LIBRARIES for name in exported(build / library)]
    return "\n".join(lines) + "\n" + subprocess.run([build / "tests" / "api" / "abi"], check=True, capture_output=True, text=True).stdout


def test_abi(build):
    assert abi(build) == (API / "abi.txt").read_text(), \
        "the interface changed; if that is meant: build/venv/bin/python -m tests.cases.test_api > tests/api/abi.txt"


if __name__ == "__main__":
    print(abi(ROOT / "build"), end="")
