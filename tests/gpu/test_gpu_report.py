"""On a real GPU: `custream report` on tests/apps/planted and tests/gpu/planted.cu, programs that know why the GPU idles in them, and on their mended twins.
See docs/check-gpu.md."""
import json
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import observe  # noqa: E402
import times  # noqa: E402
from times import GPUS, gpu_only, program, report, run_well  # noqa: E402
from tests.report import Report  # noqa: E402

pytestmark = gpu_only

MIB = 1 << 20
SHARE = 0.1  # so far from what a program planted and measured may be what the report finds
OWN = {"graph_edge": {"CUSTREAM_GRAPH": "node"}, "unknown": {"CUSTREAM_WINDOW": "profiler"}}
# What is copied, so that a copy takes some milliseconds; and what is freed, so that it takes a while.
BYTES = {"copies": 128 * MIB, "one_engine": 128 * MIB, "synchronous_copies": 128 * MIB, "blocked_copy": 128 * MIB, "pageable_copies": 16 * MIB, "frees": 1024 * MIB}
TWO_GPUS = ("event_device", "event_chain", "blocked_copy")
PROGRAMS = [name for name in ("planted", *["planted-runtime"] * (not observe.SIMULATED)) if os.path.exists(program(name))]


def rows_of(binary):
    done, _ = times.run(f"{binary}-list", [program(binary)], shim=False)
    assert done.status == 0, done.tail()
    return {row["name"]: row for row in times.lines_of(done.stdout) if row["name"] not in TWO_GPUS or GPUS >= 2}


CASES = [(binary, name) for binary in PROGRAMS for name in (rows_of(binary) if GPUS else ())]


def planted(binary, name, *twin):
    """Runs a program under the users' defaults: what it says of itself, and the report on its trace."""
    env = dict(CUSTREAM_FAKE_COPY_NS="3000000", CUSTREAM_FAKE_COPY_ENGINES="1") if observe.SIMULATED else {}
    if observe.SIMULATED and name in ("many_streams", "device_full"):
        env.update({"many_streams": {"CUSTREAM_FAKE_QUEUES": "8"}, "device_full": {"CUSTREAM_FAKE_FULL": "1"}}[name])
    size = [str(BYTES[name])] if name in BYTES and not observe.SIMULATED else []
    done, trace = run_well("-".join((binary, name, *twin)), [program(binary), name, *twin, *size], **env, **OWN.get(name, {}))
    times.assert_checked(trace)
    found = Report(trace.path)
    with open(str(trace.path).replace(".json", ".report.txt"), "w", encoding="utf-8") as file:
        json.dump(found.tables, file, indent=1)
    (told,) = times.lines_of(done.stdout)
    for device in found["devices"]:
        assert sum(found.idle_ns(device["device"]).values()) == device["idle_ns"], device
    return told, found


def near(found, told):
    return abs(found - told) <= SHARE * told


@pytest.mark.parametrize("binary, name", CASES)
def test_planted(binary, name):
    """The cause that it planted has the time that it measured, within a tenth; its finding is there."""
    told, found = planted(binary, name)
    idle = found.idle_ns(0)
    findings = [(row["id"], row["gain_high_ns"]) for row in found["findings"]]
    report(f"{binary} {name}", "cause, planted idle and cost, ms", f"{told['cause']}, {told['idle_ns'] / 1e6:.2f}, {told['cost_ns'] / 1e6:.2f}")
    report(f"{binary} {name}", "idle time found by cause, ms", ", ".join(f"{k} {v / 1e6:.2f}" for k, v in idle.most_common()))
    report(f"{binary} {name}", "findings", findings)
    if told["idle_ns"]:
        assert near(idle[told["cause"]] + (idle["launch"] if name == "launch_bound" else 0), told["idle_ns"]), (idle, told)
    if told["finding"]:
        assert told["finding"] in [number for number, _ in findings], findings
    gain = max((gain for number, gain in findings if number == told["finding"] and gain), default=None)
    if gain and told["cost_ns"] and told["cost_ns"] != told["idle_ns"]:  # it loses time though the GPU is not idle
        assert near(gain, told["cost_ns"]), (findings, told)


@pytest.mark.parametrize("binary, name", CASES)
def test_mended_twin(binary, name):
    """Nothing of it is in the twin. Something else may be found there."""
    told, found = planted(binary, name, "mended")
    idle = found.idle_ns(0)
    report(f"{binary} {name} mended", "idle time found by cause, ms", ", ".join(f"{k} {v / 1e6:.2f}" for k, v in idle.most_common()))
    report(f"{binary} {name} mended", "findings", [row["id"] for row in found["findings"]])
    gains = [row["gain_high_ns"] or 0 for row in found["findings"] if row["id"] == told["finding"]]
    assert max(gains, default=0) <= 0.05 * found["run"][0]["wall_ns"], found["findings"]
    if told["cause"]:
        assert idle[told["cause"]] <= SHARE * 30_000_000, idle
