"""What works while nothing is recorded, before the first recording, and where there is no memory for one: the tables of a mode are made as it begins (base/memory.h)."""
import json
import pathlib
import re
import resource
import subprocess

import pytest

from tests.handmade import COMMAND
from tests.remote import Remote, ctl

RULES = json.dumps({"rules": [{"match": {"call": "cuStreamCreate*"}, "set": {"priority": -1}}]})
MODES = {
    "off": {"CUSTREAM_TRACE": "off"},
    "policy": {"CUSTREAM_TRACE": "off", "CUSTREAM_POLICY": RULES, "CUSTREAM_STREAMS": "pool:2", "CUSTREAM_JITTER": "seed=1,us=10"},
    "ctl": {"CUSTREAM_WINDOW": "ctl"},
    "profiler": {"CUSTREAM_WINDOW": "profiler"},
    "audit": {"CUSTREAM_WINDOW": "ctl", "CUSTREAM_DEFAULT_STREAM": "audit"},
    "sample": {"CUSTREAM_WINDOW": "profiler", "CUSTREAM_GPU": "sample:5"},
    "events": {"CUSTREAM_WINDOW": "ctl", "CUSTREAM_GPU": "events"},
    "packets": {"CUSTREAM_WINDOW": "ctl", "CUSTREAM_COUNTERS": "streams"},
    "parts": {"CUSTREAM_WINDOW": "ctl", "CUSTREAM_TRACE_MAX": "1M,rotate:3"},
}
FIRST = ["push before", "mark here", "create 1", "on 1 context set 0", "on 1 create 2", "on 1 push there", "launch 1 20 k", "on 1 launch 2 3", "copy 1", "host 1", "event 1", "record 1 1",
         "wait 1 1", "capture 1", "launch 1", "captured 1", "runtime 1 2", "context new 1", "context end 1", "context set 0", "all", "on 1 pop", "pop", "fork", "launch legacy", "launch own", "all"]


def asked(remote):
    """Everybody who asks a process."""
    for words in ("status",), ("flush",), ("policy", "{}"):
        ctl(remote.pid, *words)
    for words in ("ps",), ("hang", remote.pid), ("dump", "-p", remote.pid, "-o", remote.folder / "dumped.json"):
        done = subprocess.run([COMMAND, *map(str, words)], capture_output=True, text=True, timeout=100, check=False, cwd=remote.folder)
        assert done.returncode in (0, 1, 2, 3), (words, done)


def refused(remote):
    """The answer to `on` where the process can map no more than it has."""
    size = int(re.search(r"VmSize:\s+(\d+) kB", pathlib.Path(f"/proc/{remote.pid}/status").read_text())[1]) << 10
    before = resource.prlimit(remote.pid, resource.RLIMIT_AS)
    resource.prlimit(remote.pid, resource.RLIMIT_AS, (size, before[1]))
    answer = ctl(remote.pid, "on")
    asked(remote)
    resource.prlimit(remote.pid, resource.RLIMIT_AS, before)
    return answer


@pytest.mark.parametrize("mode", MODES)
def test_all_that_may_come_before(tmp_path, mode):
    env = {"CUSTREAM_CTL": "on", "CUSTREAM_METRICS": str(tmp_path / "metrics-%p.prom"), "CUSTREAM_TRIGGER": str(tmp_path / "trigger"), **MODES[mode]}
    with Remote(tmp_path, env=env, trace="t.pftrace" if mode == "packets" else "t.json") as remote:
        for _ in range(2):
            remote.do(*FIRST)
            asked(remote)
        rc, _, error = refused(remote)
        assert rc == 1 and "could not be opened" in error, (rc, error)
        for words in "on", "off":
            remote.do(*FIRST)
            asked(remote)
            remote.ctl(words)
        remote.do(*FIRST)
    assert remote.rc == 0, (remote.rc, remote.stderr)
    traces = [path for path in tmp_path.iterdir() if path.suffix in (".json", ".pftrace")]
    assert len(traces) > 1
    for path in traces:
        assert subprocess.run([COMMAND, "check", path], capture_output=True, timeout=100, check=False).returncode == 0
