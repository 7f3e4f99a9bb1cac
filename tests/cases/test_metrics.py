"""CUSTREAM_METRICS: counters in Prometheus' format say what the process did and what its trace has, and nothing that is not known; the file is whole at any time."""
import collections
import json
import os
import re
import signal
import socket
import stat
import subprocess
import threading

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.apprun import calls_in, read, said
from tests.cases.test_trigger import put
from tests.gputrace import works
from tests.handmade import custream
from tests.remote import Remote, ctl, until

NAME = re.compile(r"custream_[a-z_]+")


def parse(text):
    """{name: {labels besides pid, rank, job: value}} of a text that keeps the format's rules: one family each, help and type in front, counters end in _total."""
    found, seen = {}, set()
    assert text.endswith("\n") and text.startswith("# custream metrics ")
    for family in text_string_to_metric_families(text):
        assert family.documentation and family.type in ("counter", "gauge") and family.samples, family
        for sample in family.samples:
            assert NAME.fullmatch(sample.name) and sample.name.endswith("_total") == (family.type == "counter"), sample
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in seen and "pid" in sample.labels
            seen.add(key)
            own = tuple(value for name, value in sample.labels.items() if name not in ("pid", "rank", "job"))
            found.setdefault(sample.name.removeprefix("custream_"), {})[own[0] if len(own) == 1 else own] = sample.value
    heads = re.findall(r"^# (HELP|TYPE) (\w+) ", text, flags=re.M)
    assert len(heads) == len(set(heads)) and [kind for kind, _ in heads] == ["HELP", "TYPE"] * (len(heads) // 2)
    return found


def flushed(program, path):
    """As of now: whoever has the trace brought up to date has this too."""
    program.ctl("flush")
    return parse(path.read_text(encoding="utf-8"))


def of_gpus(found):
    return {name for name in found if name.startswith("gpu_")}


@pytest.fixture
def path(tmp_path):
    folder = tmp_path / "metrics"
    folder.mkdir()
    return folder / "custream.prom"


def env(path, **more):
    return {"CUSTREAM_METRICS": path, **more}


# ---- Numbers ----

def test_numbers_are_those_of_the_program_and_of_the_trace(tmp_path, path):
    with Remote(tmp_path, env(path, RANK=5, SLURM_JOB_ID='a "job" \\ of\nmine'), trace="t.json") as program:
        program.do("create 1", "create 2", "launch 1 20", "launch legacy 3", "launch own 2", "copy 1", "copy 1", "gate 2", "launch 2 4 sleep_us_2000", "event 1",
                   "record 1 2", "wait 1 1", "launch 1", "open", "sync 1", "sync 2", "all")
        found = flushed(program, path)
        labels = re.search(r"custream_calls_total\{(.*)\} ", path.read_text())[1]
        trace = read(program.trace)
    assert labels == f'pid="{program.pid}",rank="5",job="a \\"job\\" \\\\ of?mine"'
    assert found["recording"] == {(): 1} and found["lost_records_total"] == {(): 0}
    assert found["calls_total"][()] == sum(calls_in(trace).values()) == trace.totals["calls"]
    assert found["work_calls_total"] == {"launch": 30, "copy": 2, "memset": 0, "graph": 0} and calls_in(trace)["cuLaunchKernel"] == 30
    assert found["stream_work_calls_total"] == {"legacy": 3, "per_thread": 2, "other": 27}
    copied = sum(e["args"]["bytes"] for e in trace.host(cat="cuda_driver") if e["name"].startswith("cuMemcpy"))
    assert found["copy_calls_total"] == {"HtoD": 2} and found["copy_bytes_total"] == {"HtoD": copied} and copied
    blocked = collections.Counter()
    for e in trace.host(cat="cuda_driver"):
        blocked[{"cuStreamSynchronize": "stream", "cuCtxSynchronize": "context", "cuEventSynchronize": "event"}.get(e["name"])] += e["args"].get("blocked_us", 0)
    assert found["host_blocked_seconds_total"] == pytest.approx({"stream": blocked["stream"] / 1e6, "context": blocked["context"] / 1e6, "event": 0, "copy": 0}, abs=1e-9)
    assert blocked["stream"]
    gpu = trace.totals["gpu"]
    assert found["gpu_operations_total"] == {"kernel": gpu["kernels"], "copy": gpu["copies"], "memset": gpu["memsets"], "graph": gpu["graphs"]}
    assert found["gpu_operations_lost_total"] == {(): 0} and found["gpu_streams"] == {"0": 4}
    assert found["gpu_busy_seconds_total"]["0"] == pytest.approx(union(works(trace)) / 1e6, abs=1e-9) and found["gpu_busy_seconds_total"]["0"] >= 0.008
    waited = collections.Counter()
    for e in works(trace):
        waited[e["args"].get("waited for", "").replace("default stream", "default_stream")] += e["args"].get("waited_us", 0)
    assert {cause for _, cause in found["gpu_wait_seconds_total"]} == {"launch", "stream", "event", "default_stream", "unknown"}
    assert found["gpu_wait_seconds_total"]["0", "event"] == pytest.approx(waited["event"] / 1e6, abs=1e-9) and waited["event"]
    assert program.rc == 0 and not program.said() and not path.exists() and list(path.parent.iterdir()) == []


def union(slices):
    """How much time they cover."""
    total = until_us = 0
    for e in sorted(slices, key=lambda e: e["ts"]):
        total += max(0, e["ts"] + e["dur"] - max(until_us, e["ts"]))
        until_us = max(until_us, e["ts"] + e["dur"])
    return total


def test_parts_are_counted_together(tmp_path, path):
    with Remote(tmp_path, env(path, CUSTREAM_TRACE_MAX="1M,rotate:2", CUSTREAM_FULL="block"), trace="t.json") as program:
        program.do("create 1", *["launch 1 1000"] * 9)
        found = flushed(program, path)
    totals = json.loads(sorted(tmp_path.glob("t*.json"), key=lambda p: p.stat().st_mtime)[-1].read_text())["totals"]
    assert totals["part"] > 2 and found["work_calls_total"]["launch"] == 9000 and found["calls_total"][()] <= totals["calls_in_all_parts"]


def test_losses(tmp_path, path):
    with Remote(tmp_path, env(path, CUSTREAM_TRACE_MAX="1M"), trace="t.json") as program:
        program.do("create 1", *["launch 1 1000"] * 6, "all")
        found = flushed(program, path)
        program.ctl("flush")
        totals = read(program.trace).totals
    assert found["recording"] == {(): 0} and found["lost_records_total"][()] > 0 and not of_gpus(found)
    assert (found["calls_total"][()], found["lost_records_total"][()]) == (totals["calls"], totals["lost_records"])


@pytest.mark.parametrize("more, names", [
    ({"CUSTREAM_GPU": "off"}, set()),  # what is not known is not 0
    ({"CUSTREAM_GPU": "sample:2"}, set()),
    ({"CUSTREAM_GPU": "events"}, {"gpu_operations_total", "gpu_operations_lost_total", "gpu_busy_seconds_total", "gpu_streams"}),
    ({"CUSTREAM_COUNTERS": "off"}, {"gpu_operations_total", "gpu_operations_lost_total", "gpu_busy_seconds_total", "gpu_streams", "gpu_wait_seconds_total"}),
], ids=["off", "sample", "events", "no counters"])
def test_what_is_not_known_is_not_there(tmp_path, path, more, names):
    with Remote(tmp_path, env(path, **more), trace="t.json") as program:
        program.do("create 1", "launch 1 5", "all")
        until(lambda: not names or flushed(program, path).get("gpu_operations_total", {}).get("kernel") == 5)
        found = flushed(program, path)
    assert found["work_calls_total"]["launch"] == 5 and of_gpus(found) == names and "copy_calls_total" not in found


def test_closed_windows(tmp_path, path):
    """Nothing is said of GPUs meanwhile; calls that were recorded stay counted."""
    trigger = tmp_path / "trigger"
    with Remote(tmp_path, env(path, CUSTREAM_WINDOW="ctl", CUSTREAM_TRIGGER=trigger), trace="t.json") as program:
        program.do("create 1", "launch 1 5", "all")
        found = flushed_without_file(program, path)
        assert found["recording"] == {(): 0} and found["calls_total"] == {(): 0} and not of_gpus(found) and not program.trace.exists()
        put(trigger)
        until(lambda: program.status()["recording"] == "on")
        program.do("launch 1 3", "all")
        found = flushed(program, path)
        assert found["recording"] == {(): 1} and found["work_calls_total"]["launch"] == 3 and found["gpu_operations_total"]["kernel"] == 3
        program.ctl("off")
        program.do("launch 1 9", "all")
        found = flushed(program, path)
        assert found["recording"] == {(): 0} and found["work_calls_total"]["launch"] == 3 and not of_gpus(found)
    assert program.end().rc == 0 and not program.said()


def flushed_without_file(program, path):
    assert ctl(program.pid, "flush")[0] == 1  # there is no trace yet
    return parse(path.read_text())


# ---- The file ----

def test_a_reader_never_sees_half_of_it(tmp_path, path):
    with Remote(tmp_path, env(path), trace="t.json") as program:
        program.do("create 1", "launch 1 5", "all")
        flushed(program, path)
        over, texts = threading.Event(), collections.Counter()

        def look():
            while not over.is_set():
                texts[path.read_text()] += 1  # never missing
        readers = [threading.Thread(target=look) for _ in range(2)]
        for reader in readers:
            reader.start()
        for _n in range(40):
            program.do("launch 1")
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
                peer.connect(f"\0custream/{os.readlink(f'/proc/{program.pid}/ns/pid')}/{program.pid}")
                peer.send(b"flush")
                assert peer.recv(1 << 16).startswith(b"ok")
        over.set()
        for reader in readers:
            reader.join()
    launches = [parse(text)["work_calls_total"]["launch"] for text in texts]
    assert len(launches) > 1 and all(5 <= n <= 45 for n in launches)


def test_two_processes_with_one_path(tmp_path, path):
    with Remote(tmp_path, env(path), trace="a.json") as first:
        first.do("create 1", "launch 1 3", "all")
        flushed(first, path)
        with Remote(tmp_path, env(path), trace="b.json") as second:
            second.do("create 1", "launch 1 7", "all")
            beside = path.with_name(f"custream-{second.pid}.prom")
            assert flushed(second, beside)["work_calls_total"]["launch"] == 7
            assert flushed(first, path)["work_calls_total"]["launch"] == 3
        assert sorted(p.name for p in path.parent.iterdir()) == ["custream.prom"]
    assert not list(path.parent.iterdir())


def test_names(tmp_path, path):
    name = path.with_name("m-%h-%p-%r-%e.prom")
    with Remote(tmp_path, env(name, RANK=2), trace="t.json") as program:
        program.do("create 1")
        program.ctl("flush")
        assert [p.name for p in path.parent.iterdir()] == [f"m-{os.uname().nodename}-{program.pid}-2-remote.prom"]
    assert not list(path.parent.iterdir())


def test_fork_and_exec(tmp_path, path):
    """A child has a file of its own. What a process was before exec is nobody's any more, and what it becomes has the file anew."""
    with Remote(tmp_path, env(path), trace="t.json") as program:
        program.do("create 1", "launch 1 3", "all")
        flushed(program, path)
        (child,) = program.do("fork 600000")
        beside = path.with_name(f"custream-{child}.prom")
        until(beside.exists)
        assert flushed(program, path)["work_calls_total"]["launch"] == 3
        assert program.do("exec") == ["exec"] and program._answer() == [str(program.pid)]
        program.do("create 1", "launch 1 4", "all")
        assert flushed(program, path)["work_calls_total"]["launch"] == 4
        os.kill(int(child), signal.SIGKILL)
        assert program.do("exec /bin/sleep 0.01") == ["exec"]
        until(lambda: not path.exists())
        program.process.wait(30)
    assert program.end().rc == 0 and [p.name for p in path.parent.iterdir()] == [beside.name], "one that is killed leaves it"


def test_the_file_of_one_that_was_killed_is_taken_over(tmp_path, path):
    with Remote(tmp_path, env(path), trace="a.json") as program:
        program.do("create 1")
        program.ctl("flush")
        beside = path.with_name(f"{path.name}.{program.pid}.tmp")
        os.kill(program.pid, signal.SIGKILL)
    assert path.exists() and not beside.exists()
    with Remote(tmp_path, env(path), trace="b.json") as program:
        program.do("create 1")
        assert flushed(program, path)["recording"] == {(): 1}
    assert not path.exists() and not program.said()


@pytest.mark.parametrize("mask, mode", [(0, 0o644), (0o022, 0o644), (0o077, 0o600)])
def test_the_mode_is_the_umasks(tmp_path, path, mask, mode):
    """A collector is another user. Whoever sets a umask that keeps others out means it."""
    before = os.umask(mask)
    try:
        with Remote(tmp_path, env(path), trace="t.json") as program:
            program.do("create 1")
            program.ctl("flush")
            assert stat.S_IMODE(path.stat().st_mode) == mode
    finally:
        os.umask(before)


def planted(path, kind):
    if kind == "text":
        path.write_text("node_load1 3\n")
    elif kind == "link":  # which a folder of one's own may have, to what is no file of metrics
        path.with_name("target").write_text("mine\n")
        path.symlink_to("target")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "shared link":
        path.parent.chmod(0o1777)
        path.symlink_to("/nowhere/at/all.prom")
    elif kind == "shared other":
        path.parent.chmod(0o1777)
        path.write_text("# custream metrics 0\n")
        os.chown(path, 4711, 4711)
    elif kind == "shared names":
        path.parent.chmod(0o1777)
        path.write_text("# custream metrics 0\n")
        os.link(path, path.with_name("other"))


@pytest.mark.parametrize("kind, words", [("text", "the file has no metrics of custream's"), ("link", "the file has no metrics of custream's"), ("pipe", "it is a device, a pipe or a socket"),
                                         ("folder", "it is a directory"), ("shared link", "it is a symbolic link"), ("shared other", "the file is somebody else's"),
                                         ("shared names", "the file has other names")])
def test_a_file_of_others_stays(tmp_path, path, kind, words):
    planted(path, kind)
    before = sorted((p.name, p.lstat().st_ino, p.lstat().st_mtime_ns) for p in path.parent.iterdir())
    with Remote(tmp_path, env(path), trace="t.json") as program:
        program.do("create 1", "launch 1 50")
        program.ctl("flush")
        program.ctl("flush")
    (line,) = program.said()
    assert line.startswith("custream: error: cannot write ") and words in line and line.endswith("; it is tried again every ten seconds"), line
    assert sorted((p.name, p.lstat().st_ino, p.lstat().st_mtime_ns) for p in path.parent.iterdir()) == before
    assert program.rc == 0 and calls_in(read(program.trace))["cuLaunchKernel"] == 50


def test_a_link_in_ones_own_folder_leads_on(tmp_path, path):
    path.symlink_to("target.prom")
    with Remote(tmp_path, env(path), trace="t.json") as program:
        program.do("create 1")
        program.ctl("flush")
        assert path.is_symlink() and parse(path.with_name("target.prom").read_text())
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_file_that_comes_meanwhile_stays(tmp_path, path):
    """And one that somebody has removed is there again."""
    with Remote(tmp_path, env(path), trace="t.json") as program:
        program.do("create 1")
        program.ctl("flush")
        path.unlink()
        assert flushed(program, path)
        path.unlink()
        path.write_text("node_load1 3\n")
        program.ctl("flush")
        program.ctl("flush")
    assert path.read_text() == "node_load1 3\n" and [p.name for p in path.parent.iterdir()] == [path.name]
    (line,) = program.said()
    assert "the file has no metrics of custream's" in line


def test_no_room(tmp_path, path):
    """The old file stays, whole; once there is room the next one comes. One line."""
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", path.parent], capture_output=True, check=False)
    if mounted.returncode:  # no rights to mount: a folder that is gone is the same to it
        with Remote(tmp_path, env(path), trace="t.json") as program:
            program.do("create 1")
            program.ctl("flush")
            path.parent.rename(tmp_path / "gone")
            program.ctl("flush")
            (tmp_path / "gone").rename(path.parent)
            assert flushed(program, path)
        assert len(program.said()) <= 1
        return
    try:
        with Remote(tmp_path, env(path), trace="t.json") as program:
            program.do("create 1", "launch 1 3", "all")
            flushed(program, path)
            filler = path.with_name("filler")
            with pytest.raises(OSError):
                filler.write_bytes(bytes(1 << 20))
            program.do("launch 1 3", "all")
            program.ctl("flush")
            program.ctl("flush")
            assert parse(path.read_text())["work_calls_total"]["launch"] == 3 and sorted(p.name for p in path.parent.iterdir()) == ["custream.prom", "filler"]
            filler.unlink()
            assert flushed(program, path)["work_calls_total"]["launch"] == 6
        (line,) = program.said()
        assert program.rc == 0 and "No space left on device" in line
    finally:
        subprocess.run(["umount", path.parent], check=True)


# ---- Who has one ----

def test_off_is_off(run_app, path):
    run = run_app(["burst", "1", "50"], env=env(path, CUSTREAM_TRACE="off")).check()
    assert said(run) == ["custream: warning: CUSTREAM_METRICS tells of what is recorded: with CUSTREAM_TRACE=off nothing is"] and not list(path.parent.iterdir())


def test_no_cuda_no_file(run_app, path):
    run_app(["/bin/true"], env=env(path)).check()
    assert not list(path.parent.iterdir())


@pytest.mark.parametrize("value", ["metrics.txt", "m-%x.prom", "%", "a\nb.prom"])
def test_wrong_names(run_app, path, value):
    run = run_app(["burst", "1", "50"], env=env(value)).check()
    (line,) = [line for line in run.stderr.splitlines() if "allowed is" in line]
    assert "allowed is a path ending in .prom (%p pid, %e executable, %h host, %r rank, %% percent)" in line


def test_run_refuses_what_cannot_be_had(path):
    path.write_text("node_load1 3\n")
    for name, words in ((path, "the file has no metrics of custream's"), (path.parent / "nowhere/x.prom", "metrics need a folder that is there"),
                        (path.parent / "nowhere/%p.prom", "metrics need a folder that is there"), ("x.txt", "allowed is a path ending in .prom")):
        done = custream("run", f"--metrics={name}", "true", cwd=path.parent)
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and words in done.stderr, done.stderr
    assert path.read_text() == "node_load1 3\n"


def test_the_number_of_series_is_bounded(tmp_path, path, root):
    """Many streams, kernels and threads make no more of them. docs/metrics.md says how many there may be."""
    with Remote(tmp_path, env(path), trace="t.json") as program:
        program.do("create 1", "launch 1", "all")
        few = sum(map(len, flushed(program, path).values()))
        program.do(*(f"create {n}" for n in range(2, 16)), *(f"launch {n} 3 sleep_us_{n}" for n in range(1, 16)), "loop on", "wave 1 3", "loop off", "all")
        assert sum(map(len, flushed(program, path).values())) == few
    most = re.search(r"at most (\d+) series, and (\d+) more for each GPU", (root / "docs/metrics.md").read_text())
    assert few <= int(most[1]) + int(most[2])
