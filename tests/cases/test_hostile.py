"""Programs and other libraries that make it hard: sanitizers, other preloads, forks and ends at bad moments, locks that somebody holds."""
import contextlib
import subprocess
import threading

import pytest

from tests import BUILD
from tests.apprun import both, calls_in, calls_of, notes_of, read, said
from tests.perfetto import assert_clean
from tests.remote import Remote
from tests.trace import check_file

HOST = {"CUSTREAM_GPU": "off"}  # what is asked for is about our own threads and memory, and CUPTI has some too


def others_beside(run):
    """The traces of the run's other processes."""
    return sorted(path for path in run.trace.parent.glob(run.trace.name.replace(".json", "*.json")) if path != run.trace)


@contextlib.contextmanager
def asked_meanwhile():
    """Every process is asked for its state all the time."""
    over = threading.Event()

    def ask():
        while not over.wait(0.1):
            subprocess.run([BUILD / "custream", "ps"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60, check=False)

    asker = threading.Thread(target=ask)
    asker.start()
    yield
    over.set()
    asker.join()


def preloaded(build, *others):
    """The shim with other preloads behind it."""
    return ":".join(str(path) for path in (build / "libcustream_shim.so", *others))


@pytest.fixture
def other(build):
    """The library that somebody else preloads."""
    return build / "tests" / "libother_preload.so"


# ---- Sanitizers ----

@pytest.mark.parametrize("sanitizer", ["asan", "tsan"])
def test_program_with_a_sanitizer(run_app, sanitizer):
    """Its runtime asks our dlsym for the C library's functions that it stands in front of, and cannot be called before it has them."""
    env = {"ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0", "TSAN_OPTIONS": "report_bugs=0"}
    run, trace = both(run_app, [f"burst_{sanitizer}", 2, 500], env=env)
    assert calls_in(trace) == calls_of(run.check().stdout) and run.stderr == ""


def test_thread_sanitizer_finds_no_race_in_what_the_library_does(run_app):
    """It does not see the atomics that order our calls of the C library. The default options: a report would be lines on standard error, and status 66."""
    run, _ = both(run_app, "timeline_tsan", env={"TSAN_OPTIONS": "exitcode=66"})
    assert [line for line in run.check().stderr.splitlines() if not line.startswith("note ")] == []


def test_thread_sanitizer_and_the_product_with_look_ups_alone(run_app, build):
    run = run_app("timeline_tsan", shim=build / "libcustream_shim_dlsym.so", env={"TSAN_OPTIONS": "exitcode=66"})
    assert [line for line in run.check().stderr.splitlines() if not line.startswith("note ")] == []


# ---- Other preloads ----

@pytest.mark.parametrize("script, seen", [("exec /bin/true", "execve"), ("exit 0", "_exit")])
def test_other_preloads_see_their_calls(build, run_app, other, script, seen):
    """A shell that replaces itself, and one whose child leaves by _exit."""
    line = f"other preload: {seen}\n"
    argv = ["/bin/sh", "-c", f"({script}); true"]
    bare = run_app(argv, shim=str(other)).check()
    run = run_app(argv, shim=preloaded(build, other)).check()
    assert line in bare.stderr and run.stderr == bare.stderr


@pytest.mark.parametrize("how", ["return", "destructor", "thread-exit", "quick_exit", "_exit"])
@pytest.mark.parametrize("env", [{}, {"CUSTREAM_GPU": "events", "CUSTREAM_METRICS": "m.prom", "CUSTREAM_LOG": "info"}], ids=["default", "more"])
def test_a_preload_in_front_is_destroyed_first(build, run_app, tmp_path, how, env):
    """What it stands in front of can't be called any more when the library ends."""
    front = build / "tests/libfront_preload.so"
    bare = run_app(["ending", how], shim=str(front), cwd=tmp_path)
    run = run_app(["ending", how], shim=f"{front}:{build / 'libcustream_shim.so'}", cwd=tmp_path, env=env)
    assert (run.rc, run.stdout) == (bare.rc, bare.stdout) and bare.rc in (5, 6), run.stderr
    assert calls_in(read(run.trace))["cuLaunchKernel"] >= 100


@pytest.mark.parametrize("env", [{}, {"CUSTREAM_TRACE": "off"}, {"CUSTREAM_TRACE": "off", "CUSTREAM_JITTER": "seed=7,us=100"}, {"CUSTREAM_GPU": "events"}],
                         ids=["trace", "off", "jitter", "events"])
def test_a_preload_stops_the_clock(build, run_app, env):
    """The library's clock is the kernel's: a trace has the true times."""
    shim = f"{build / 'tests/libfront_preload.so'}:{build / 'libcustream_shim.so'}"
    run = run_app(["burst", 1, 100], shim=shim, env={"FRONT_FROZEN": 1} | env, timeout=60).check()
    if "CUSTREAM_TRACE" not in env:
        trace = read(run.trace)
        assert calls_in(trace)["cuLaunchKernel"] == 100
        assert len({e["ts"] for e in trace.host(cat="cuda_driver")}) > 50


# ---- The environment ----

@pytest.mark.parametrize("app", [["burst", 2, 500], ["forks", "mixed"]], ids=["burst", "forks"])
def test_no_thread_of_the_library_reads_the_environment(build, run_app, other, tmp_path, app):
    """The program may change it meanwhile. Rank, job and toolkit go into the trace, metrics, the answer to `ps`, and the trigger is looked at."""
    (tmp_path / "trigger.json").write_text('{"from": 0, "seconds": 1000, "ranks": [3]}')
    env = {"RANK": 3, "WORLD_SIZE": 8, "SLURM_JOB_ID": "77", "CUSTREAM_METRICS": tmp_path / "m-%p-%r.prom", "CUSTREAM_TRIGGER": tmp_path / "trigger.json",
           "CUSTREAM_TRACE_MAX": "1M,rotate", "LANGUAGE": "de"}
    with asked_meanwhile():
        run = run_app(app, shim=preloaded(build, other), env=env).check()
    assert notes_of(run.stderr)["asked_environment"] == "nothing"
    trace = read(run.trace)
    assert trace.json["distributedInfo"] == {"rank": 3, "world_size": 8} and trace.metadata["job"] == "77"


# ---- fork and exec ----

def test_fork_with_locks_of_the_programs_own(run_app):
    """Its fork handlers take a lock that it holds while it calls CUDA."""
    run, _ = both(run_app, ["hostile", "atfork"])
    assert run.check().stdout == "atfork done\n"


def test_exec_in_a_child_while_the_loader_was_busy(run_app):
    """The loader's lock stays taken for ever in a child whose parent had another thread in there."""
    run = run_app(["hostile", "forks-execs"], timeout=100).check()
    assert run.stdout == "children 100\nforks-execs done\n"


def test_fork_while_another_thread_makes_the_first_call(build, run_app, other):
    bare = run_app(["hostile", "forks-early"], shim=False).check()
    run = run_app(["hostile", "forks-early"], shim=preloaded(build, other), env={"OTHER_SLOW_MAPS": 1}).check()
    assert run.stdout == bare.stdout == "child 11\nforks-early done\n"


def test_exec_while_another_thread_records(run_app):
    """What was recorded is brought into the file, and not what comes meanwhile too."""
    run, trace = both(run_app, ["hostile", "replaces"], env={**HOST, "CUSTREAM_FULL": "drop", "CUSTREAM_BUFFER": "64K"})
    assert run.check().stdout == "exec failed at once\n" * 3 + "replaces done\n"
    assert calls_in(trace)["cuStreamQuery"] == 3


def test_child_has_nothing_of_its_parents(run_app):
    """Neither arrows nor streams, their work, or what was never destroyed."""
    run, trace = both(run_app, ["hostile", "inherits"])
    run.check()
    assert len(trace.flows("cs_dep")) == 1000 and trace.totals["leaked_streams"] == 22 and trace.totals["leaked_events"] == 50
    children = others_beside(run)
    assert len(children) == 20
    for path in children:
        child = read(path)
        assert calls_in(child) == {"cuStreamQuery": 1} and not child.flows() and not child.lives and not child.lanes
        assert (child.totals["leaked_streams"], child.totals["leaked_events"], child.json["neverDestroyed"]) == (0, 0, [])


# ---- Ends ----

@pytest.mark.parametrize("after", [0, 5, 20, 50, 100, 200])
def test_two_threads_end_the_process(run_app, after):
    """exit in one and _exit in another: the second waits for what the first began."""
    run = run_app(["hostile", "ends", after])
    assert run.rc == 7 and not said(run)
    assert check_file(run.trace) == "ok" and run.trace.read_bytes().count(b'"name":"cuLaunchKernel"') == 60001


# ---- The loader's lock ----

@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_calls_in_a_constructor_with_a_small_ring(build, run_app, tmp_path, name):
    """The writer cannot load zlib meanwhile: calls are lost then, even where the program should wait for room."""
    argv = ["hostile", "constructor", build / "tests" / "libin_constructor.so"]
    env = {"CUSTREAM_TRACE": tmp_path / name, "CUSTREAM_BUFFER": "64K", "CUSTREAM_FULL": "block"}
    run = run_app(argv, env=env, timeout=30).check()
    assert run.stdout == "constructor done\nconstructor done\n"
    trace = read(tmp_path / name)
    assert trace.totals["recorded"] + trace.totals["lost_records"] == 3000
    assert name.endswith(".gz") or not trace.totals["lost_records"]


# ---- Descriptors ----

def test_child_keeps_the_programs_descriptors(run_app):
    """The number of ours may be the program's by then."""
    run = run_app(["hostile", "number"]).check()
    assert run.stdout == "descriptors gone in the child: 0\nnumber done\n"


def test_relative_path_in_a_program_that_moves(run_app, tmp_path):
    """A daemon changes directory and closes all descriptors: the file is found again."""
    run = run_app(["hostile", "moves"], env={"CUSTREAM_TRACE": "here.json"}, cwd=tmp_path).check()
    trace = read(tmp_path / "here.json")
    assert calls_in(trace)["cuLaunchKernel"] == 101 and trace.totals["complete"] is True and not said(run)


# ---- Objects that come and go ----

def test_destroyed_event_shows_its_own_number(run_app):
    """Its handle may be another event's before the call returns."""
    _, trace = both(run_app, ["churn", "events"], env={"CUSTREAM_FULL": "block"})
    numbers = [e["args"].get("event") for e in trace.host("cuEventDestroy_v2")]
    assert len(numbers) == 40000 and sorted(numbers) == list(range(1, 40001))


def test_refused_events_are_counted_once(run_app):
    room, more = 1 << 17, 1000
    run, trace = both(run_app, ["churn", "refused", room + more, more], env={"CUSTREAM_FULL": "block"})
    assert calls_in(trace)["cuEventRecord"] == 3 * more and trace.totals["untracked_objects"] == more


def driver_calls(path):
    return {name: int(count) for name, count in (line.split() for line in path.read_text().splitlines())}


def test_destroyed_stream_is_not_asked_about(run_app, tmp_path):
    """A call returns long after its stream was destroyed by another thread: a real driver may crash on the handle."""
    env = {"CUSTREAM_FAKE_COUNTS": tmp_path / "counts"}
    run, trace = both(run_app, ["churn", "sync"], env=env)
    assert not {"cuStreamGetFlags", "cuStreamGetCtx_ptsz"} & set(driver_calls(tmp_path / "counts"))
    assert "adopted: first seen in use" not in {e["args"]["origin"] for e in trace.lives}


def test_stream_that_was_only_destroyed(run_app, tmp_path):
    """Made out of sight and first seen when it is gone."""
    run, trace = both(run_app, ["adopt", "destroy"], env={"CUSTREAM_FAKE_COUNTS": tmp_path / "counts"})
    assert driver_calls(tmp_path / "counts")["cuStreamGetFlags"] == 2
    assert len([e for e in trace.lives if e["args"]["origin"].startswith("adopted")]) == 2
    assert ["cs.stream" in e["args"] for e in sorted(trace.host("cuStreamDestroy_v2"), key=lambda e: e["ts"])] == [True, True, False]


def test_threads_do_not_share_default_streams(run_app):
    """In more contexts than a thread's state keeps in mind: all of them end with the thread."""
    run, trace = both(run_app, ["churn", "contexts"])
    own = [e for e in trace.lives if e["args"]["origin"] == "per-thread default"]
    names = [e["name"].rpartition(" · ")[2] for e in own]
    assert sorted(names) == ["first"] * 12 + ["second"] * 12


def test_default_streams_of_contexts_that_come_and_go(run_app):
    """The table of handles, which has room for 98,304, has one place for all default streams of a thread in contexts that were there one after the other."""
    with asked_meanwhile():
        run = run_app(["churn", "defaults", 60000], env={"CUSTREAM_FULL": "block", "CUSTREAM_BUFFER": "64K", "CUSTREAM_TRACE_MAX": "1M,rotate"}).check()
    assert run.load().totals["untracked_objects"] == 0


def test_short_threads_take_little_memory(build, run_app, other):
    """The pages of a ring are made ahead for a busy thread only, however often its state was used before."""
    run = run_app(["churn", "threads"], shim=preloaded(build, other), env=HOST | {"CUSTREAM_KEEP": "off"}).check()
    check_file(run.trace)
    assert "populated" not in notes_of(run.stderr)
    run = run_app(["churn", "threads"], shim=preloaded(build, other), env=HOST).check()
    check_file(run.trace)
    assert int(notes_of(run.stderr)["populated"]) <= 800  # of the file of rings its head and the buffer, and 20 KiB for each state


def test_no_call_waits_for_much_memory(build, run_app, other):
    """A thread that is faster than the writer makes the pages of its ring itself, a few at a time."""
    run = run_app(["burst", 1, 100000], shim=preloaded(build, other), env=HOST).check()
    check_file(run.trace)
    assert int(notes_of(run.stderr)["awaited_at_once"]) <= 128


def test_the_writer_makes_the_memory_of_a_busy_thread(build, tmp_path, other):
    """A thread of 80,000 calls, of whose ring of 4 MiB it makes what the first 2,000 take."""
    rings = tmp_path / "rings"  # a small /dev/shm has too little room for them
    rings.mkdir()
    with Remote(tmp_path, env={**HOST, "CUSTREAM_KEEP": rings}, preload=preloaded(build, other)) as program:
        program.do("create 1")
        for _ in range(40):
            program.do("launch 1 2000")
            program.ctl("flush")
    notes = notes_of(program.stderr)
    assert int(notes["populated"]) > 4096 and int(notes["awaited"]) < 700 and calls_in(program.load())["cuLaunchKernel"] == 80000


@pytest.mark.parametrize("calls", [300, 700, 1500])
def test_losses_in_callbacks(run_app, trace_processor, calls):
    """A gap that began before a callback and ended in it."""
    env = {"CUSTREAM_FULL": "drop", "CUSTREAM_BUFFER": "64K"}
    run, trace = both(run_app, ["churn", "callbacks", calls], env=env)
    assert trace.totals["lost_records"] > 0
    trace_processor.load(run.trace)
    assert_clean(trace_processor)


def test_unload_with_an_old_driver(build, run_app):
    """It cannot be asked for a kernel's name: what was known stays known."""
    run, trace = both(run_app, ["churn", "unload"], env={"LD_LIBRARY_PATH": build / "fakecuda12.0"})
    assert [e["args"]["kernel"] for e in trace.host("cuLaunchKernel")] == ["my_kernel", "my_kernel"]
