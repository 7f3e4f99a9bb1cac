"""Python programs of others' libraries (cuda.bindings, cuda.core) under the shim. The simulated driver counts what they called without it."""
import collections
import subprocess

import pytest

from tests.apprun import calls_in, read, said, wrapped_calls
from tests.cases.conftest import app_environment

PROGRAMS = ["bindings_streams", "cuda_core_streams"]


@pytest.fixture(params=PROGRAMS)
def client(once, build, root, request):
    """(name, wrapped calls that the program makes of itself, its trace); it runs once for all tests."""
    def make(folder):
        argv = [build / "venv" / "bin" / "python", root / "tests" / "apps" / "clients" / f"{request.param}.py"]

        def run(shim, **env):
            return subprocess.run(argv, env=app_environment(build, folder / "t.json", shim, env), cwd=folder, capture_output=True, text=True, timeout=60, check=False)
        bare = run(False, CUSTREAM_FAKE_COUNTS=folder / "counts")
        assert bare.returncode == 0 and bare.stdout.endswith("ok\n")
        recorded = run(True)
        assert (recorded.returncode, recorded.stdout, recorded.stderr) == (bare.returncode, bare.stdout, bare.stderr) and not said(recorded)
        made = {name: int(n) for name, n in (line.split() for line in (folder / "counts").read_text().splitlines()) if name in wrapped_calls()}
        return collections.Counter(made), folder / "t.json"
    made, path = once(f"client-{request.param}", make)
    return request.param, made, read(path)


def test_every_call_is_there(client):
    _, made, trace = client
    assert made and calls_in(trace) == made
    assert trace.totals["lost_records"] == 0 and trace.totals["complete"] is True


def test_streams_and_their_makers(client):
    """Each stream is there with the extension module that made it. There is only one such module, so lanes do not name it."""
    name, made, trace = client
    created = [e for e in trace.lives if e["args"].get("origin") == "created"]
    assert len(created) == 2 == made["cuStreamCreate"] + made["cuStreamCreateWithPriority"]
    assert all(e["args"]["library"].endswith(".so") and not e["args"]["library"].startswith(("libcuda", "libpython")) for e in created)
    assert all(e["args"]["destroyed"] for e in created) and trace.totals["leaked_streams"] == 0
    priorities = sorted(e["args"]["priority"] for e in created)
    assert priorities == ([-5, 0] if name == "bindings_streams" else [-1, 0])
    assert "adopted: first seen in use" not in {e["args"].get("origin") for e in trace.lives}
    flags = {e["args"]["priority"]: e["args"]["flags"] for e in created}
    assert flags == ({0: "blocking", -5: "non-blocking"} if name == "bindings_streams" else {0: "blocking", -1: "non-blocking"})
    for e in created:
        short = f" p{e['args']['priority']} nb" if e["args"]["priority"] else ""
        assert trace.streams[e["pid"], e["tid"]] == e["name"] == f"stream {e['args']['cs.stream']}{short} · python"


def test_waits_point_at_records(client):
    """Every wait and synchronisation on an event that was recorded has its arrow."""
    _, made, trace = client
    flows = trace.flows("cs_dep")
    waits = [e for name in ("cuStreamWaitEvent", "cuEventSynchronize") for e in trace.host(name)]
    assert len(waits) == made["cuStreamWaitEvent"] + made["cuEventSynchronize"] > 0
    assert sorted(f.finish["ts"] for f in flows) == sorted(e["ts"] for e in waits)
    for f in flows:
        assert f.start["name"].startswith("cuEventRecord") and f.start["args"]["event"] == f.finish["args"]["event"]


def test_copies_have_bytes(client):
    name, _, trace = client
    copies = [e["args"]["bytes"] for e in trace.host() if e["name"].startswith("cuMemcpy")]
    assert copies and set(copies) == ({4096} if name == "bindings_streams" else {1024})


def test_callbacks_of_python(client):
    name, made, trace = client
    assert len(trace.host("callback", cat="cs_callback")) == made["cuLaunchHostFunc"] == (1 if name == "bindings_streams" else 0)

# ---- Streams between cuda.core and custream.h ----

@pytest.mark.parametrize("way", ["opened", "opened-under-the-shim", "preloaded"])
def test_streams_go_both_ways(run_app, root, build, way):
    """By `__cuda_stream__`: theirs is an object of ours, with its history where that is kept; ours is a stream of theirs, with the same handle."""
    library = "-" if way == "preloaded" else build / "libcustream.so.0"
    run = run_app([build / "venv/bin/python", root / "tests/gpu/python/api_exchange.py", "cuda_core", library], shim=way != "opened").check()
    lines = run.stdout.splitlines()
    history = [line for line in lines if line.startswith("history: ")]
    assert [line for line in lines if line not in history] == ["their stream is an object of ours", "we wait for their work", "our stream does their work", "each waits for the other", "done"]
    assert bool(history) == (way != "opened") and all("1 records, 1 waits; made by" in line for line in history) and not said(run)
    if way != "opened":
        created = [e for e in read(run.trace).lives if e["args"].get("origin") == "created"]
        assert len(created) == 2 and all(e["args"]["destroyed"] for e in created)
