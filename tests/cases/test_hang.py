"""custream hang, and the report of a process that was killed: what was running, and what it waited for. The programs are those of tests/apps/hangs.c."""
import json
import os
import re
import signal
import subprocess

import pytest

from tests.apprun import read
from tests.cases.conftest import app_environment
from tests.handmade import custream
from tests.remote import BUILD, until

STREAM = re.compile(r"stream (\d+)")
NOTHING = "nothing that the trace shows: it runs, or is about to"
MISSING = "not all calls are here, and more may run: "
NOBODY = "a value at 0x, which no call in the trace is to write; if the host or a kernel has written it, what is behind it runs"


class Hangs:
    """One of the programs, once it has done what it is to hang in. Leaving the block kills it."""

    def __init__(self, folder, name, env=None):
        self.trace = folder / f"{name}.json"
        env = app_environment(BUILD, self.trace, True, {"CUSTREAM_QUIET": "on", **(env or {})})
        self.process = subprocess.Popen([BUILD / "tests" / "hangs", name], env=env, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        word, pid = self.process.stdout.readline().split()
        assert word == "ready"
        self.pid = int(pid)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.kill()

    def kill(self):
        try:
            if self.process.returncode is None:
                os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()

    def hang_of(self, *words):
        """What custream hang says of it, as data."""
        rc, out, err = hang("-p", self.pid, *words)
        assert (rc, err) == (0, ""), (rc, out, err)
        (process,) = json.loads(out)["processes"]
        assert process["pid"] == self.pid
        return process

    def hang(self):
        """As tables."""
        process = self.hang_of("--json")
        assert process["partly"] is False
        return process["tables"]

    def until(self, threads):
        """The same, once so many threads have been seen in their calls, and all short work has been told of."""
        tables = {}

        def settled():
            tables.update(self.hang())
            running = tables["running"][0]
            return len(tables["running_threads"]) == threads and (running["ended_ago_ns"] is None or running["ended_ago_ns"] > 50e6)
        until(settled)
        return tables


def hang(*words, **options):
    done = subprocess.run([BUILD / "custream", "hang", *map(str, words)], capture_output=True, text=True, timeout=60, check=False, **options)
    return done.returncode, done.stdout, done.stderr


def number(name):
    return int(STREAM.search(name).group(1)) if name else None


def streams_of(tables):
    """(stream, circle, the last that ended, call, kernel, operations behind it, what holds it, on which stream) of each."""
    return [(number(row["stream"]), row["circle"], row["last"], row["call"], row["kernel"], row["behind"], row["held_by"], number(row["on"]))
            for row in tables["running_streams"]]


def waits_of(tables):
    """Each stream's words, without addresses and what names have besides the number."""
    return {number(row["stream"]): re.sub(r"0x[0-9a-f]+", "0x", re.sub(r"(stream \d+) (nb )?· hangs", r"\1", row["waits_for"])) for row in tables["running_streams"]}


def chains_of(tables):
    return {number(row["stream"]): re.sub(r"(stream \d+) (nb )?· hangs", r"\1", row["chain"]) for row in tables["running_streams"] if row["chain"]}


def threads_of(tables):
    return [(row["thread"].split()[0], re.sub(r"0x[0-9a-f]+", "0x", row["call"]), number(row["stream"]), row["event"], row["waits_for"].split(": ")[-1])
            for row in tables["running_threads"]]


WAIT_VALUE, WAIT_EVENT = "cuStreamWaitValue32_v2", "cuStreamWaitEvent"
# Of each program: the verdict, idle streams, its streams, what they wait for in words, threads.
EXPECTED = {
    "kernel": ("unfinished", 2, [(13, None, "sleep_first", "cuLaunchKernel", "sleep_second", 2, "nothing", None)], {13: NOTHING},
               [("waiter", "cuStreamSynchronize", 13, None, "sleep_second")]),
    "value": ("unfinished", 2, [(13, None, "sleep_first", WAIT_VALUE, "", 1, "value", None)], {13: NOBODY},
              [("waiter", "cuCtxSynchronize", None, None, "all streams of its context")]),
    "host_function": ("unfinished", 2, [(13, None, "sleep_first", "cuLaunchHostFunc", "", 1, "host_function", None)],
                      {13: "its host function, which has not returned"}, [("hangs", "host function 0x", 13, None, "")]),
    "circle": ("circle", 0, [(13, 1, "sleep_first", WAIT_VALUE, "", 2, "value", 14), (14, 1, "sleep_second", WAIT_EVENT, "", 3, "event", 13),
                             (15, None, "sleep_third", WAIT_EVENT, "", 1, "event", 14)],
               {13: f"a value at 0x, which stream 14 is to write behind {WAIT_EVENT}", 14: f"event 1, recorded on stream 13 behind {WAIT_VALUE}",
                15: f"event 2, recorded on stream 14 behind {WAIT_EVENT}"}, [("waiter", "cuEventSynchronize", None, 2, WAIT_EVENT)]),
    "legacy": ("unfinished", 2, [(16, None, "", WAIT_VALUE, "", 1, "value", None), (7, None, "", "cuLaunchKernel", "sleep_second", 0, "legacy", 16),
                                 (17, None, "", "cuEventRecord", "", 1, "legacy", 7), (14, None, "sleep_second", WAIT_EVENT, "", 1, "event", 17)],
               {16: NOBODY, 7: f"blocking stream 16: {WAIT_VALUE}", 17: "the legacy default stream, stream 7 legacy default: sleep_second",
                14: "event 1, recorded on stream 17 behind cuEventRecord"}, []),
    "order": ("unfinished", 3, [(16, None, "", "cuLaunchKernel", "sleep_first", 0, "nothing", None),
                                (7, None, "", "cuLaunchKernel", "sleep_second", 0, "nothing_or_legacy", None)],
              {16: NOTHING, 7: "not known: it runs, or waits in the order of the legacy default stream; which streams are of its context is not in the trace"}, []),
    "chain": ("unfinished", 0, [(13, None, "sleep_first", "cuLaunchKernel", "sleep_first", 1, "nothing", None),
                                (14, None, "sleep_second", WAIT_EVENT, "", 2, "event", 13), (15, None, "sleep_third", WAIT_EVENT, "", 1, "event", 14)],
              {13: NOTHING, 14: "event 1, recorded on stream 13 behind sleep_first", 15: f"event 2, recorded on stream 14 behind {WAIT_EVENT}"}, []),
    "copy": ("unfinished", 3, [(16, None, "", WAIT_VALUE, "", 1, "value", None)], {16: NOBODY}, [("reader", "cuMemcpyDtoH_v2", None, None, WAIT_VALUE)]),
    "capture": ("idle", 3, [], {}, []),
    "gone": ("idle", 3, [], {}, []),
    "contexts": ("unfinished", 3, [(16, None, "", WAIT_VALUE, "", 0, "value", None)], {16: NOBODY}, []),
    "node": ("unfinished", 1, [(14, None, "sleep_second", "cuGraphLaunch", "", 0, "nothing", None), (13, None, "sleep_first", WAIT_EVENT, "", 1, "event", None)],
             {14: NOTHING, 13: "event 1, which a graph, a launch or another process records; if it has, what is behind the wait runs"},
             [("waiter", "cuEventSynchronize", None, 1, "")]),
    "busy": ("unfinished", 0, [(13, None, "sleep_first", "cuLaunchKernel", "sleep_first", 0, "nothing", None),
                               (14, None, "sleep_second", "cuLaunchKernel", "sleep_second", 0, "nothing", None),
                               (15, None, "sleep_third", "cuLaunchKernel", "sleep_third", 0, "nothing", None)], {n: NOTHING for n in (13, 14, 15)}, []),
    "done": ("idle", 3, [], {}, []),
    "opened": ("idle", 3, [], {}, []),
}
ONE = "1 x 1 x 1, 32 x 1 x 1"
GRIDS = {"order": [ONE, ONE], "kernel": ["3 x 4 x 5, 64 x 2 x 3"], "legacy": [ONE], "chain": [ONE], "busy": [ONE, ONE, ONE]}
CHAINS = {
    "circle": {13: "stream 13 waits for stream 14, which waits for stream 13", 14: "stream 14 waits for stream 13, which waits for stream 14",
               15: "stream 15 waits for stream 14, which waits for stream 13, and so on"},
    "chain": {14: "stream 14 waits for stream 13, which runs sleep_first",
              15: "stream 15 waits for stream 14, which waits for stream 13, which runs sleep_first"},
    "legacy": {7: "stream 7 legacy default waits for stream 16, which waits for a value in memory",
               17: "stream 17 waits for stream 7 legacy default, which waits for stream 16, which waits for a value in memory",
               14: "stream 14 waits for stream 17, which waits for stream 7 legacy default, which waits for stream 16, which waits for a value in memory"},
}


def judge(name, tables, threads=True):
    verdict, idle, streams, waits, inside = EXPECTED[name]
    (running,) = tables["running"]
    assert (running["verdict"], running["unfinished_streams"], running["idle_streams"]) == (verdict, len(streams), idle)
    assert running["circles"] == (verdict == "circle")
    assert streams_of(tables) == streams
    assert waits_of(tables) == waits
    assert chains_of(tables) == CHAINS.get(name, {})
    if threads:
        assert threads_of(tables) == inside and running["threads"] == len(inside)
        assert all(row["for_ns"] > 0 for row in tables["running_threads"])


@pytest.mark.parametrize("name", EXPECTED)
def test_hang_and_report(tmp_path, name):
    """Exactly that, of the process while it lives, of its trace once it was killed, of a torn one, and of one that was recovered."""
    with Hangs(tmp_path, name) as program:
        tables = program.until(len(EXPECTED[name][4]))
        judge(name, tables)
        assert tables["running"][0]["gpu_age_ns"] < 5e9 and tables["running"][0]["not_known"] == ""
        assert bool(tables["running"][0]["capturing"]) == (name == "capture")
    judge(name, tables := report_of(program.trace))
    assert [row["grid"] for row in tables["running_streams"] if row["kernel"]] == GRIDS.get(name, [])
    assert read(program.trace).verdict == "incomplete: the process had not ended when the trailer was written"
    whole = program.trace.read_bytes()
    torn = tmp_path / "torn.json"
    torn.write_bytes(whole[:whole.rindex(b"\n],") - 1])
    judge(name, report_of(torn, "truncated"), threads=False)
    assert custream("recover", torn, "-o", tmp_path / "recovered.json").returncode == 0
    judge(name, report_of(tmp_path / "recovered.json"), threads=False)


def report_of(path, said=""):
    done = custream("report", "--json", path)
    assert done.returncode == 0 and said in done.stderr and bool(done.stderr) == bool(said), done.stderr
    return json.loads(done.stdout)["tables"]


def test_words(tmp_path):
    """What people read: of the process, and at the top of the report of its trace."""
    with Hangs(tmp_path, "circle") as program:
        program.until(1)
        rc, out, err = hang("-p", program.pid)
        assert (rc, err) == (0, "")
        assert out.startswith(f"process {program.pid} (hangs circle), by {program.trace}\n")
    time = r"\d[\d.]* (?:ns|us|ms|s)\b"
    words = re.sub(time, "TIME", re.sub(r"0x[0-9a-f]+", "0x", re.sub(r"\s+", " ", out.split("\n", 1)[1])))
    words = re.sub(r"waiter \d+|hangs \d+", lambda found: found.group().split()[0], words)
    assert words.startswith("3 streams had unfinished work; 0 had none. 1 circle: streams that wait for each other, and cannot go on. "
                            "The last GPU work that was reported ended TIME before. GPU work was last reported TIME before; what has ended since is not known. "
                            f"waiter has been in cuEventSynchronize of event 2 for TIME; it waits for stream 14 nb · hangs: {WAIT_EVENT} "
                            f"stream 13 nb · hangs, GPU 0, in circle 1 Ended: sleep_first, TIME before Unfinished: {WAIT_VALUE}, called TIME before by hangs; "
                            f"2 operations behind it Waits for: a value at 0x, which stream 14 nb · hangs is to write behind {WAIT_EVENT} "
                            "Chain: stream 13 nb · hangs waits for stream 14 nb · hangs, which waits for stream 13 nb · hangs stream 14"), words
    text = custream("report", "--brief", program.trace).stdout
    assert "\nWhat was running\n3 streams had unfinished work" in text and "cuEventSynchronize of event 2" in text


@pytest.mark.parametrize("env", [{}, {"CUSTREAM_GRAPH": "node"}], ids=["graph", "node"])
def test_graph(tmp_path, env):
    """A graph whose first launch ended; its second never does. Node by node, what of it has ended does not make it end."""
    with Hangs(tmp_path, "graph", env) as program:
        tables = program.until(0)
    assert [(row[0], row[3], row[6]) for row in streams_of(tables)] == [(13, "cuGraphLaunch", "nothing")]
    assert streams_of(tables)[0][5] == 1 and tables["running"][0]["verdict"] == "unfinished"


@pytest.mark.parametrize("gpu, held_by, verdict, said", [("off", "not_known", "not_known", "no GPU times were taken"), ("events", "nothing", "unfinished", ""),
                                                         ("sample:1", "nothing", "unfinished", ""), ("sample:1000", "not_known", "not_known", "one call in 1000")])
def test_without_cupti(tmp_path, gpu, held_by, verdict, said):
    """What waits of the host have shown to be over is over; of the rest it is said that it is not known."""
    with Hangs(tmp_path, "kernel", {"CUSTREAM_GPU": gpu}) as program:
        tables = program.until(1)
    (running,) = tables["running"]
    assert running["verdict"] == verdict and said in running["not_known"] and bool(said) == bool(running["not_known"])
    assert streams_of(tables) == [(13, None, "sleep_first", "cuLaunchKernel", "sleep_second", 2, held_by, None)]
    assert threads_of(tables) == [("waiter", "cuStreamSynchronize", 13, None, "sleep_second")]


@pytest.mark.parametrize("policy", [{}, {"CUSTREAM_STREAMS": "serial"}, {"CUSTREAM_STREAMS": "pool:2"}, {"CUSTREAM_JITTER": "seed=1,us=50,percent=20"}],
                         ids=["none", "serial", "pool", "jitter"])
def test_a_launch_that_waits_for_its_own_lock(tmp_path, policy):
    """The queue is full behind a host function that wants what the launching thread holds. Both sides are named, and what is not known is not said."""
    with Hangs(tmp_path, "host_lock", policy) as program:
        tables = program.until(2)
        rc, out, err = hang("-p", program.pid)
        assert (rc, err) == (0, "")
    function, launch = sorted(tables["running_threads"], key=lambda row: row["call"].startswith("cu"))
    (stream,) = tables["running_streams"]
    assert tables["running"][0]["verdict"] == "unfinished" and tables["running"][0]["circles"] == 0
    assert (stream["held_by"], stream["call"]) == ("host_function", "cuLaunchHostFunc")
    assert stream["behind"] > 500 if "CUSTREAM_JITTER" in policy else stream["behind"] == 1023  # its own host functions take room too
    assert (launch["call"], launch["thread"].split()[0]) == ("cuLaunchKernel", "launcher") and launch["for_ns"] > 0
    assert launch["stream"] == function["stream"] == stream["stream"] and function["call"].startswith("host function 0x")
    assert launch["waits_for"] == (f"room in the launch queue, it seems: {stream['behind'] + 1} operations of {stream['stream']} are unfinished, first cuLaunchHostFunc. That is behind the "
                                   f"host function in which {function['thread'].split()[0]} {function['tid']} is. If the function waits for what this thread holds, such "
                                   "as a lock, neither goes on")
    assert function["waits_for"] == f"what the trace does not show; launcher {launch['tid']} is in cuLaunchKernel meanwhile, perhaps because of this, and may hold it"
    assert "neither goes on" in " ".join(out.split()) and "and may hold it" in " ".join(out.split())


def test_a_call_that_waits_for_the_driver(tmp_path):
    """Who holds the lock that the host function wants is in cuStreamCreate, and the driver keeps that waiting for another thread's launch. All three are named."""
    with Hangs(tmp_path, "driver_lock") as program:
        tables = program.until(3)
    threads = {row["call"].split()[0]: row for row in tables["running_threads"]}
    function, launch, create = threads["host"], threads["cuLaunchKernel"], threads["cuStreamCreate"]
    behind = (f". That is behind the host function in which {function['thread'].split()[0]} {function['tid']} is. If the function waits for what this thread holds, such "
              "as a lock, neither goes on")
    assert launch["waits_for"].startswith("room in the launch queue, it seems: 1024 operations of ") and launch["waits_for"].endswith(behind)
    assert create["waits_for"] == f"the driver, it seems: launcher {launch['tid']} is in cuLaunchKernel meanwhile, which waits for room in a launch queue{behind}"
    assert set(function["waits_for"].removeprefix("what the trace does not show; ").removesuffix(" meanwhile, perhaps because of this, and may hold it").split(", ")) == {
        f"launcher {launch['tid']} is in cuLaunchKernel", f"creator {create['tid']} is in cuStreamCreate"}


def test_a_call_that_waits_though_no_queue_is_full(tmp_path):
    """Who holds the lock that the host function wants is in cuMemFree. What that waits for is not in the trace. Both are named."""
    with Hangs(tmp_path, "free_lock") as program:
        threads = {row["call"].split()[0]: row for row in program.until(2)["running_threads"]}
    function, free = threads["host"], threads["cuMemFree_v2"]
    assert free["waits_for"] == (f"what the trace does not show. Meanwhile {function['thread'].split()[0]} {function['tid']} is in a host function. If that waits for what this "
                                 "thread holds, such as a lock, neither goes on")
    assert function["waits_for"] == f"what the trace does not show; freer {free['tid']} is in cuMemFree_v2 meanwhile, perhaps because of this, and may hold it"


def test_a_host_function_beside_a_full_queue(tmp_path):
    """That the queue is behind it is not in the trace. Both are named."""
    with Hangs(tmp_path, "lock_beside") as program:
        threads = {row["call"].split()[0]: row for row in program.until(2)["running_threads"]}
    function, launch = threads["host"], threads["cuLaunchKernel"]
    assert launch["waits_for"].endswith(f", first sleep_first. Meanwhile {function['thread'].split()[0]} {function['tid']} is in a host function. If that waits for what this "
                                        "thread holds, such as a lock, neither goes on")
    assert function["waits_for"] == f"what the trace does not show; launcher {launch['tid']} is in cuLaunchKernel meanwhile, perhaps because of this, and may hold it"


def test_a_queue_that_is_full_is_no_deadlock(tmp_path):
    with Hangs(tmp_path, "full_queue") as program:
        tables = program.until(1)
        words = " ".join(hang("-p", program.pid)[1].split())
    (row,), (stream,) = tables["running_threads"], tables["running_streams"]
    assert row["waits_for"] == f"room in the launch queue, it seems: 1024 operations of {stream['stream']} are unfinished, first sleep_first"
    assert (row["call"], row["stream"], stream["held_by"]) == ("cuLaunchKernel", stream["stream"], "nothing") and "neither" not in words and "a lock" not in words


def test_a_launch_among_many_waits(tmp_path):
    """Sixty threads wait for the stream, of which the trailer has room for half. The launch and the host function are there."""
    with Hangs(tmp_path, "lock_of_many") as program:
        calls = []
        while set(calls) != {"host", "cuLaunchKernel", "cuStreamSynchronize"}:  # until then, some of the sixty begin
            tables = program.until(32)
            calls = [row["call"].split()[0] for row in tables["running_threads"]]
    first, second, *waits = tables["running_threads"]
    assert {first["call"].split()[0], second["call"].split()[0]} == {"host", "cuLaunchKernel"} and {row["call"] for row in waits} == {"cuStreamSynchronize"}
    assert "neither goes on" in first["waits_for"] + second["waits_for"]


def test_a_long_copy_is_no_full_queue(tmp_path):
    """A host function sleeps on one stream. Another thread copies ordinary memory on another one, which takes long, and goes on: nobody waits for anybody."""
    with Hangs(tmp_path, "beside") as program:
        while True:
            threads = {row["call"].split()[0]: row["waits_for"] for row in program.hang()["running_threads"]}
            if len(threads) == 2 and "cuMemcpyHtoDAsync_v2" in threads:
                break
    assert threads == {"host": "", "cuMemcpyHtoDAsync_v2": ""}


def test_gpu_off_knows_who_waits(tmp_path):
    """Order needs no GPU times."""
    with Hangs(tmp_path, "circle", {"CUSTREAM_GPU": "off"}) as program:  # order alone is the matter
        judge("circle", program.until(1))


def test_thousands_of_streams(tmp_path):
    """Those with unfinished work, the first 20 in words, and a number for the others."""
    with Hangs(tmp_path, "streams") as program:
        tables = program.until(0)
        assert len(tables["running_streams"]) == 20 and tables["running"][0]["idle_streams"] == 1983
        rc, out, err = hang("-p", program.pid)
        assert (rc, err) == (0, "") and out.count("Unfinished: ") == 20 and "20 streams had unfinished work; 1983 had none." in out


def test_child(tmp_path):
    """A forked child is a process of its own."""
    with Hangs(tmp_path, "child", {"CUSTREAM_TRACE": tmp_path / "child-%p.json"}) as program:
        assert program.pid != program.process.pid
        judge("kernel", program.until(1))


def test_formats(tmp_path):
    """Perfetto's own format and compressed files say the same."""
    for extension in "pftrace", "json.gz":
        with Hangs(tmp_path, "chain", {"CUSTREAM_TRACE": tmp_path / f"chain.{extension}"}) as program:
            judge("chain", program.until(0))
        judge("chain", report_of(tmp_path / f"chain.{extension}"))


def test_ended_by_itself(tmp_path, run_app):
    """Of a process that has ended well nothing is asked, whatever it left unfinished."""
    done = subprocess.run([BUILD / "tests" / "hangs", "busy"], env=app_environment(BUILD, tmp_path / "t.json", True, {}), stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=60, check=True)
    assert done.stdout.startswith(b"ready")
    tables = report_of(tmp_path / "t.json")
    assert not tables["running"] and not tables["running_streams"] and not tables["running_threads"]
    assert "What was running" not in custream("report", tmp_path / "t.json").stdout


def test_killed_under_run(tmp_path):
    """custream run --report says it of a program that was killed."""
    env = app_environment(BUILD, tmp_path / "t.json", False, {})
    run = subprocess.Popen([BUILD / "custream", "run", "--report", "-o", tmp_path / "t.json", "--", BUILD / "tests" / "hangs", "chain"], env=env,
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    pid = int(run.stdout.readline().split()[1])
    until(lambda: hang("-p", pid, "--json")[1].count('"held_by"') == 3)
    os.kill(pid, signal.SIGKILL)
    out, err = run.communicate(timeout=60)
    assert "What was running\n3 streams had unfinished work" in out + err
    judge("chain", report_of(tmp_path / "t.json"))


def test_long_trace(tmp_path):
    """Of a long file the header and the end are read, which is said; --whole reads all."""
    with Hangs(tmp_path, "long", {"CUSTREAM_FULL": "block"}) as program:
        until(lambda: program.hang_of("--json")["tables"]["running"][0]["unfinished_streams"] == 3)
        process = program.hang_of("--json")
        assert program.trace.stat().st_size > 65 << 20 and process["partly"] is True
        assert streams_of(process["tables"]) == EXPECTED["chain"][2] and waits_of(process["tables"]) == EXPECTED["chain"][3]
        assert process["tables"]["running"][0]["not_known"] == MISSING + "only the end of the trace was read"
        assert "Only the last 64 MiB of the trace were read: --whole reads all of it." in hang("-p", program.pid)[1]
        process = program.hang_of("--json", "--whole")
        assert process["partly"] is False and streams_of(process["tables"]) == EXPECTED["chain"][2] and process["tables"]["running"][0]["not_known"] == ""


def idle_but(tables, why):
    """Nothing unfinished is known, and calls are missing."""
    (running,) = tables["running"]
    assert (running["verdict"], running["unfinished_streams"], running["threads"]) == ("not_known", 0, 0)
    assert running["not_known"] == MISSING + why


@pytest.mark.parametrize("parts", [3, 20])
def test_what_hangs_is_in_a_part_that_is_not_read(tmp_path, parts):
    """The newest two parts have nothing of it; all that are there do, unless it was deleted. The trailer knows the launch that waits."""
    why = "parts of the trace were deleted, or not read; of stream 14 nb · hangs, the trailer has a launch whose kernel has not come"
    with Hangs(tmp_path, "early", {"CUSTREAM_FULL": "block", "CUSTREAM_TRACE_MAX": f"1M,rotate:{parts}"}) as program:
        idle_but(program.until(0), why)
        assert "Nothing unfinished is in the trace, which has not all calls." in hang("-p", program.pid)[1]
        whole = program.hang_of("--json", "--whole")["tables"]
    files = [program.trace, *tmp_path.glob("early.*.json")]
    killed = json.loads(custream("report", "--json", *files).stdout)["tables"]
    for tables in whole, killed:
        if parts == 3:
            idle_but(tables, why)
        else:
            assert [row[0] for row in streams_of(tables)] == [13, 14] and tables["running"][0]["not_known"] == ""


def test_nothing_is_recorded_any_more(tmp_path):
    """What was called since is not known."""
    with Hangs(tmp_path, "done") as program:
        assert program.until(0)["running"][0]["verdict"] == "idle"
        assert custream("ctl", program.pid, "off").returncode == 0
        idle_but(program.until(0), "calls outside of windows are not recorded")
    idle_but(report_of(program.trace), "calls outside of windows are not recorded")


def test_calls_were_lost(tmp_path):
    with Hangs(tmp_path, "done") as program:
        program.until(0)
    text = program.trace.read_text()
    for lost, words in (1, "1 call was lost"), (7, "7 calls were lost"):
        row = {"ph": "X", "cat": "cs_loss", "name": "lost calls", "pid": program.pid, "tid": 1, "ts": 1, "dur": 1, "args": {"count": lost}}
        program.trace.write_text(text.replace("\n],", f",\n{json.dumps(row)}\n],", 1))
        idle_but(report_of(program.trace), words)


def test_who_cannot_be_asked(tmp_path):
    with Hangs(tmp_path, "done", {"CUSTREAM_CTL": "off"}) as program:
        rc, out, err = hang("-p", program.pid)
        assert (rc, out) == (2, "") and "does not listen" in err
    with Hangs(tmp_path, "done", {"CUSTREAM_WINDOW": "ctl", "CUSTREAM_CTL": "on"}) as program:
        rc, out, err = hang("-p", program.pid)
        assert (rc, out) == (2, "") and "has recorded nothing, so nothing is known of it" in err
    assert hang("trace.json")[0] == 2 and hang()[0] == 2 and hang("--help")[0] == 0


def test_captured_calls_say_so(tmp_path):
    """What goes into a graph, on the capture's own stream and on those that have joined it, is no work of its own."""
    with Hangs(tmp_path, "capture") as program:
        program.until(0)
    said = [(e["name"], e["args"]["cs.stream"]) for e in read(program.trace).host() if e["args"].get("cs.captured")]
    assert said == [("cuLaunchKernel", 13), ("cuEventRecord", 13), ("cuStreamWaitEvent", 14), ("cuLaunchKernel", 14)]
