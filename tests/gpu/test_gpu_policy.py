"""On a real GPU: what policies make of programs that know nothing of them. See docs/check-gpu.md.

    python3 -m pytest tests/gpu/test_gpu_policy.py
    CUSTREAM_GPU_SIMULATED=1 python3 -m pytest tests/gpu/test_gpu_policy.py    # of the tests what a simulated GPU can show
"""
import collections
import functools
import importlib.util
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import observe  # noqa: E402
import times  # noqa: E402
from policy_rules import best_round, lines_of, narrowed, only, right, wrong_priorities  # noqa: E402
from programs import BUILD, PROGRAMS  # noqa: E402
from times import GPUS, gpu_only, program, real_only, report, run, run_well, script  # noqa: E402

pytestmark = gpu_only
PER_THREAD = {"CUSTREAM_DEFAULT_STREAM": "per-thread"}
LEGACY = {"CUSTREAM_DEFAULT_STREAM": "legacy"}


def available(module):
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def need(*modules):
    missing = [m for m in modules if not available(m)]
    if missing:
        pytest.skip("not installed: " + ", ".join(missing))


def run_silent(name, command, timeout=60, **env):
    """A run under the shim that writes no trace: the policy alone."""
    done, path = run(name, command, timeout, CUSTREAM_TRACE="off", **env)
    assert done.status == 0 and path is None, f"{name}: " + done.tail()
    return done


# --- default streams: a program for nvcc's legacy default stream, and one for per-thread ones ---

BUILDS = ["shared"] if observe.SIMULATED else ["static", "shared"]  # a real cudart does not start on the simulated GPU
SPINS_MS = 50


def default_stream(build, *arguments):
    return [program(f"default_stream-{build}"), *arguments]


@functools.lru_cache(maxsize=None)
def default_stream_alone(build):
    done, _ = run_well(f"default-stream-{build}-alone", default_stream(build), shim=False)
    assert right(done.stdout), done.stdout
    return best_round(done.stdout)


def figure_of(name, done):
    one, together = best_round(done.stdout)
    assert right(done.stdout), done.stdout
    report(name, "one thread, four threads", f"{one:.1f}, {together:.1f}", "ms")
    report(name, "four threads over one", together / one, "ratio")
    return one, together


def long_kernels(trace):
    """Lanes of the kernels that spin, of the four threads, round by round."""
    found = [e for e in times.work_of(trace, "kernel") if "sleep_for" in e["name"] and e["args"]["grid"][0] > 1 and e["dur"] > SPINS_MS * 500]
    assert found and len(found) % 4 == 0, f"{len(found)} kernels that spin"
    return [[times.lane_of(e) for e in found[i:i + 4]] for i in range(0, len(found), 4)]


@pytest.mark.parametrize("build", BUILDS)
def test_threads_wait_for_each_other_without_a_policy(build):
    """What the other tests are held against: four threads take four times as long, and with per-thread default streams compiled in, no longer than one."""
    one, together = default_stream_alone(build)
    report(f"default stream, {build}, alone", "one thread, four threads", f"{one:.1f}, {together:.1f}", "ms")
    assert together > 3 * one
    one, together = default_stream_alone(build + "-ptds")
    report(f"default stream, {build}, compiled for per-thread, alone", "one thread, four threads", f"{one:.1f}, {together:.1f}", "ms")
    assert together < 2 * one


@pytest.mark.parametrize("build", BUILDS)
def test_per_thread_default_streams(build):
    """No thread waits for another any more, and each has a lane of its own."""
    _, before = default_stream_alone(build)
    name = f"default-stream-{build}-per-thread"
    done, trace = run_well(name, default_stream(build), CUSTREAM_GPU="cupti", **PER_THREAD)
    one, together = figure_of(name, done)
    report(name, "four threads, with the policy over without", together / before, "ratio")
    assert together < 0.6 * before and together < 2 * one
    for lanes in long_kernels(trace):
        assert len(set(lanes)) == 4, f"four threads' kernels on the lanes {lanes}"
        assert all("per-thread default" in trace.streams[0, lane] for lane in lanes), [trace.streams[0, lane] for lane in lanes]
    times.assert_whole(trace)
    times.assert_checked(trace)


@pytest.mark.parametrize("build", BUILDS)
def test_per_thread_default_streams_without_a_trace(build):
    _, before = default_stream_alone(build)
    name = f"default-stream-{build}-per-thread-off"
    one, together = figure_of(name, run_silent(name, default_stream(build), **PER_THREAD))
    report(name, "four threads, with the policy over without", together / before, "ratio")
    assert together < 0.6 * before and together < 2 * one


@pytest.mark.parametrize("build", BUILDS)
def test_back_to_the_legacy_default_stream(build):
    """The program that was compiled for per-thread default streams."""
    name = f"default-stream-{build}-ptds-legacy"
    done, trace = run_well(name, default_stream(build + "-ptds"), CUSTREAM_GPU="cupti", **LEGACY)
    one, together = figure_of(name, done)
    assert together > 3 * one
    assert all(set(lanes) == {7} for lanes in long_kernels(trace)), long_kernels(trace)
    times.assert_whole(trace)
    times.assert_checked(trace)
    silent = name + "-off"
    one, together = figure_of(silent, run_silent(silent, default_stream(build + "-ptds"), **LEGACY))
    assert together > 3 * one


@real_only
def test_pytorch_on_the_default_stream():
    """Four threads of a PyTorch program."""
    need("torch")
    alone, _ = run_well("torch-threads-alone", script("torch_threads"), timeout=120, shim=False)
    _, before = figure_of("torch-threads-alone", alone)
    done, trace = run_well("torch-threads-per-thread", script("torch_threads"), timeout=120, **PER_THREAD)
    _, together = figure_of("torch-threads-per-thread", done)
    report("torch-threads-per-thread", "four threads, with the policy over without", together / before, "ratio")
    assert together < 0.6 * before
    sleeps = [e for e in times.work_of(trace, "kernel") if "spin_kernel" in e["name"]]
    report("torch-threads-per-thread", "lanes of the kernels that sleep", len({e["tid"] for e in sleeps}))
    times.assert_checked(trace)
    _, silent = figure_of("torch-threads-per-thread-off", run_silent("torch-threads-per-thread-off", script("torch_threads"), timeout=120, **PER_THREAD))
    assert silent < 0.6 * before


# --- a rule for a library: NCCL's own streams ---

NCCL_RULE = json.dumps({"rules": [{"match": {"library": "libnccl*"}, "set": {"priority": -5}}]})


def nccl_streams(name, stdout, wanted):
    """What the driver says of NCCL's streams and of all others; `wanted`: NCCL's priority, before the device's range. NCCL makes some streams of its own for
    each communicator, for a single rank too; its kernels run on the stream that PyTorch gives it, which is PyTorch's."""
    assert right(stdout), stdout
    rows, (least, greatest) = lines_of(stdout, "stream"), only(stdout, "range")["driver"]
    wanted = max(wanted, greatest)
    by_library = collections.defaultdict(collections.Counter)
    for row in rows:
        by_library[row["library"]][row["driver"]] += 1
    for library, priorities in sorted(by_library.items(), key=str):
        report(name, f"streams of {library} by their priority", str(dict(sorted(priorities.items(), key=str))))
    of_nccl = [row for row in rows if row["library"].startswith("libnccl")]
    others = [row for row in rows if not row["library"].startswith("libnccl")]
    assert of_nccl, "NCCL has made no stream that lives"
    assert all(row["asked"] == 0 and row["driver"] == row["given"] == wanted for row in of_nccl), of_nccl
    assert others and all(row["driver"] == row["given"] == max(min(row["asked"], least), greatest) and row["rule"] is None for row in others), others
    assert all(row["driver"] > -5 for row in others), others


def lanes_of_nccl_kernels(name, trace):
    names = collections.Counter(trace.lanes[e["pid"], e["tid"]] for e in times.work_of(trace, "kernel") if e["name"].startswith("nccl"))
    report(name, "NCCL's kernels by stream", str(dict(names)))


@real_only
@pytest.mark.parametrize("policy", [None, NCCL_RULE], ids=["without", "with-the-rule"])
def test_nccl_by_a_rule(tmp_path, policy):
    """On one GPU, a single rank: with the rule NCCL's streams have -5, without it 0; PyTorch's are as they are."""
    need("torch")
    name, env = ("nccl-rule", {"CUSTREAM_POLICY": policy}) if policy else ("nccl-no-rule", {})
    done, trace = run_well(name, script("nccl_priority", str(tmp_path)), timeout=120, RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", **env)
    nccl_streams(name, done.stdout, -5 if policy else 0)
    created = [e for e in trace.lives if e["args"].get("origin") == "created" and e["args"]["library"].startswith("libnccl")]
    assert all((e["args"].get("rule") == "rules[0]") == bool(policy) for e in created), created
    lanes_of_nccl_kernels(name, trace)
    times.assert_checked(trace)


if GPUS >= 2 and not observe.SIMULATED:
    def test_nccl_by_a_rule_on_two_gpus(tmp_path):
        """Two ranks: the same, and NCCL's sums are right."""
        need("torch")
        ranks = []
        for rank in range(2):
            path = os.path.join(observe.TRACES, f"nccl-rule-rank{rank}.json")
            os.makedirs(observe.TRACES, exist_ok=True)
            env = observe.environment(times.Program("nccl-rule", []), LD_PRELOAD=observe.SHIM, CUSTREAM_POLICY=NCCL_RULE, CUSTREAM_TRACE=path, RANK=str(rank),
                                      WORLD_SIZE="2", LOCAL_RANK=str(rank))
            ranks.append((path, subprocess.Popen(script("nccl_priority", str(tmp_path)), env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)))
        try:
            outputs = [process.communicate(timeout=150) for _, process in ranks]
        finally:
            for _, process in ranks:
                process.kill()
        assert all(process.returncode == 0 for _, process in ranks), "\n".join(out[-1500:] + err[-3000:] for out, err in outputs)
        for rank, (path, _) in enumerate(ranks):
            nccl_streams(f"nccl-rule-rank{rank}", outputs[rank][0], -5)
            trace = times.Trace(path)
            kernels = [e for e in times.work_of(trace, "kernel") if e["name"].startswith("nccl")]
            assert kernels, "no kernel of NCCL's"
            lanes_of_nccl_kernels(f"nccl-rule-rank{rank}", trace)
            times.assert_checked(trace)


# --- priorities, by each library's own rule ---

LIBRARIES = {"bindings": "cuda.bindings", "cuda_core": "cuda.core", "cupy": "cupy", "torch": "torch", "warp": "warp"}


@pytest.mark.parametrize("library", LIBRARIES)
def test_priorities(library):
    """Without a policy each library makes of all requests what it makes of them alone; under a narrowed range what its rule says for a GPU of that range."""
    env = {}
    if not available(LIBRARIES[library]):
        if library != "warp" or not times.unpacked_warp():
            pytest.skip(f"not installed: {LIBRARIES[library]}" + (", and not in build/: make gpu-warp" if library == "warp" else ""))
        env["PYTHONPATH"] = os.pathsep.join(p for p in (times.unpacked_warp(), os.environ.get("PYTHONPATH")) if p)
    name = "priorities-" + library
    alone, _ = run(name + "-alone", script("priorities", library), timeout=120, shim=False, **env)
    if library == "warp" and alone.status:
        pytest.skip("Warp does not run here, without the shim either: " + alone.stderr[-300:])
    assert alone.status == 0, alone.tail()
    device_range = only(alone.stdout, "range")["driver"]
    rows = lines_of(alone.stdout, "stream")
    report(name, "the device's range", str(device_range))
    report(name, "asked: given", ", ".join(f"{r['asked']}: {r['error'] or r['given']}" for r in rows))
    by_rule = wrong_priorities(library, alone.stdout, alone.stdout, device_range)
    report(name, "alone, otherwise than documented", "; ".join(by_rule) or "nothing")

    under, trace = run_well(name, script("priorities", library), timeout=120, **env)
    assert under.stdout == alone.stdout, observe.differing_lines(alone.stdout, under.stdout)
    assert not [e for e in trace.lives if e["args"].get("changed by policy")]
    silent = run_silent(name + "-off", script("priorities", library), timeout=120, **env)
    assert silent.stdout == alone.stdout, observe.differing_lines(alone.stdout, silent.stdout)

    for policy in ("0:-3", "0:-1"):
        own_range = narrowed(policy, device_range)
        done, trace = run_well(f"{name}-{policy.replace(':', 'to')}", script("priorities", library), timeout=120, CUSTREAM_PRIORITY=policy, **env)
        changed = [f"{r['asked']}: {r['error'] or r['given']}" for r, a in zip(lines_of(done.stdout, "stream"), rows) if r != a]
        report(name, f"under {policy}: its own range {only(done.stdout, 'range')['library']}, otherwise than without", ", ".join(changed) or "nothing")
        wrong = wrong_priorities(library, done.stdout, alone.stdout, own_range)
        assert not wrong, f"under {policy}: " + "; ".join(wrong)
        created = [e["args"] for e in trace.lives if e["args"].get("origin") == "created"]
        assert created and all(own_range[1] <= a["priority"] <= own_range[0] for a in created), created
        assert all((a["priority"] != max(min(a["requested priority"], device_range[0]), device_range[1])) <= bool(a.get("changed by policy")) for a in created)
        times.assert_checked(trace)


# --- the audit of the default stream ---

def test_what_the_null_stream_waits_for():
    """Synchronisations, events and waits on the legacy default stream, which put no work on it: as the audit takes them."""
    done, _ = run_well("null-stream", [program("null_stream")])
    assert done.stdout.endswith("14 cases, 0 wrong\n"), done.stdout


@pytest.mark.parametrize("build", BUILDS)
def test_audit_finds_the_planted_orders(build):
    """Three orders that only the legacy default stream gives: found, named, and as long as the program measured."""
    name = f"hazards-{build}"
    done, trace = run_well(name, [program(name)], CUSTREAM_GPU="cupti", CUSTREAM_DEFAULT_STREAM="audit")
    audit, orders = trace.json["defaultStreamAudit"], lines_of(done.stdout, "order")
    assert (audit["verdict"], audit["complete"], audit["lost_orders"], audit["unseen"]) == ("not safe", True, 3, 0), audit
    assert audit["gpu_times"] and audit["without_times"] == 0, audit
    assert len(audit["hazards"]) == len(orders) == 3, audit["hazards"]
    for order, pair in zip(orders, audit["hazards"]):
        first, second = pair["first"], pair["second"]
        waited = pair["waited_us"] / 1000
        what = " ".join(filter(None, (second["operation"], second.get("kernel"))))
        report(name, f"{first['kernel']} -> {what} at {second.get('site', '?')}", f"{waited:.3f} of {order['ms']:.3f}", "ms")
        assert pair["count"] == 1 and order["first"] in first["kernel"] and second["operation"].startswith(order["second"]), pair
        assert all(side["site"].startswith(name + "+") for side in (first, second)), pair
        if build == "shared":  # behind a static runtime the place is the runtime's, which is in the program itself
            assert order["site"] in second["site"], pair
        assert abs(waited - order["ms"]) <= 0.2 * order["ms"], f"waited {waited:.3f} ms, by the program {order['ms']:.3f} ms"
    total = sum(pair["waited_us"] for pair in audit["hazards"])
    assert abs(audit["waited_us"] - total - audit["unneeded"].get("waited_us", 0)) < 1, audit
    shown = [e for e in trace.slices if e.get("cat") == "cs_audit" and e["args"].get("verdict") == "hazard"]
    assert len(shown) == 3 and abs(sum(e["dur"] for e in shown) - total) < 1, shown
    assert "NOT SAFE" in done.stderr and all(order["first"] in done.stderr for order in orders), done.stderr
    if not observe.SIMULATED:  # whose kernels write nothing
        assert only(done.stdout, "result")["seen"] == [1, 5, 0x07070707], done.stdout
    times.assert_checked(trace)


@pytest.mark.parametrize("build", BUILDS)
def test_audit_of_a_program_with_its_own_orders(build):
    name = f"hazards-{build}"
    done, trace = run_well(name + "-none", [program(name), "none"], CUSTREAM_GPU="cupti", CUSTREAM_DEFAULT_STREAM="audit")
    audit = trace.json["defaultStreamAudit"]
    report(name + "-none", "the audit", json.dumps({k: v for k, v in audit.items() if k != "hazards"}).replace("|", "/"))
    assert (audit["verdict"], audit["complete"], audit["lost_orders"], audit["hazards"]) == ("cannot tell", True, 0, []), audit
    assert any("several threads" in doubt for doubt in audit["doubts"]), audit  # it joins them, which the audit does not see
    assert audit["ordered_anyway"]["event"] >= 3, audit
    assert "NOT SAFE" not in done.stderr, done.stderr
    times.assert_checked(trace)


@pytest.mark.parametrize("build", BUILDS)
def test_a_program_with_its_own_orders_is_right(build):
    """The program with orders of its own does the same under per-thread default streams."""
    if observe.SIMULATED:
        pytest.skip("its kernels write nothing")
    done, _ = run_well(f"hazards-{build}-none-per-thread", [program(f"hazards-{build}"), "none"], **PER_THREAD)
    assert only(done.stdout, "result")["seen"] == [1, 5, 0x07070707], done.stdout


# --- policies that share, serialise, wait and delay ---

POLICIES = {"sync": {"CUSTREAM_STREAMS": "sync"}, "serial": {"CUSTREAM_STREAMS": "serial"}, "pool": {"CUSTREAM_STREAMS": "pool:4"},
            "jitter": {"CUSTREAM_JITTER": "seed=11,us=300"}}
MANY = 8  # streams of each kind in shared_work


@pytest.mark.parametrize("policy", [None, "sync", "serial", "pool:1", "pool:2", "jitter"])
def test_streams_that_are_shared(policy):
    """A program that knows what it relies on: its results are right, and its work takes as long as the policy says."""
    env = POLICIES.get(policy) or ({"CUSTREAM_STREAMS": policy} if policy else {})
    name = "shared-work-" + (policy or "no policy").replace(":", "").replace(" ", "-")
    done, trace = run_well(name, [program("shared_work")], **env)
    parts, launch, overlap = lines_of(done.stdout, "part"), only(done.stdout, "launch"), only(done.stdout, "overlap")
    report(name, "a launch, and two kernels of 30 ms on two streams", f"{launch['ms']:.2f}, {overlap['ms']:.1f}", "ms")
    assert len(parts) == 5 and all(part["right"] for part in parts), parts
    for handles in lines_of(done.stdout, "handles"):
        wanted = int(policy[5:]) if policy and policy.startswith("pool:") else handles["created"]
        assert handles["different"] == wanted, handles
    kernel = launch["kernel_ms"]
    assert launch["ms"] > 0.9 * kernel if policy == "sync" else launch["ms"] < 0.5 * kernel, launch
    if policy in ("sync", "serial", "pool:1"):
        assert overlap["ms"] > 1.8 * kernel, overlap
    else:
        assert overlap["ms"] < 1.6 * kernel, overlap
    if policy == "serial":
        spans = sorted((e["ts"], times.end(e)) for e in times.work_of(trace, "kernel"))
        together = [(a, b) for a, b in zip(spans, spans[1:]) if b[0] < a[1] - 1]
        report(name, "kernels that overlap", len(together))
        assert not together, together[:3]
    times.assert_checked(trace)


@functools.lru_cache(maxsize=None)
def alone(name):
    (of,) = [p for p in PROGRAMS if p.name == name]
    need(*of.modules)
    done = observe.plain(of)
    assert done.status == 0, done.tail()
    return of, done


@real_only
@pytest.mark.parametrize("name", ["streams-static", "streams-shared", "cupy-streams", "torch-streams"])
@pytest.mark.parametrize("policy", POLICIES)
def test_results_are_the_same(name, policy):
    """Programs that need nothing of what a policy changes print what they print alone."""
    of, before = alone(name)
    done, path = run(f"{name}-{policy}", of.command, of.timeout, **of.env, **POLICIES[policy])
    report(f"{name}, {policy}", "seconds alone, under the policy", f"{before.seconds:.1f}, {done.seconds:.1f}", "s")
    assert done.status == 0, done.tail()
    assert done.stdout == before.stdout, observe.differing_lines(before.stdout, done.stdout) + "\n" + done.stderr[-2000:]
    times.assert_checked_file(path)


@pytest.mark.parametrize("seed", ["3", "4"])
def test_jitter_repeats_itself(seed):
    """The same delays for the same seed: as many calls in the trace, on the same streams, run after run."""
    env = {"CUSTREAM_JITTER": f"seed={seed},us=400,percent=30,at=stream", "CUSTREAM_GPU": "off"}
    traces = [run_well(f"jitter-{seed}-{n}", [program("shared_work")], **env) for n in range(2)]
    for done, _ in traces:
        assert all(part["right"] for part in lines_of(done.stdout, "part")), done.stdout
    first, second = (collections.Counter((e["name"], e["args"].get("cs.stream")) for e in trace.host(cat="cuda_driver")) for _, trace in traces)
    assert first == second, times.differing(first, second)


# --- windows ---

WAYS = [w for w in ("bindings", "torch") if w == "bindings" or not observe.SIMULATED]


def between(trace):
    """The program's calls between cuProfilerStart and cuProfilerStop, by category, and the GPU's work that they made."""
    (start,), (stop,) = trace.host("cuProfilerStart"), trace.host("cuProfilerStop")
    calls, runtime = ([e for e in trace.host(cat=cat) if start["ts"] < e["ts"] < stop["ts"] and e["tid"] == start["tid"]] for cat in ("cuda_driver", "cuda_runtime"))
    numbers, origin = {id(e) for e in calls}, times.arrows(trace)
    return calls, runtime, [e for e in times.work_of(trace) if id(origin.get(id(e))) in numbers]


def marks(slices):
    """How often each grid of both_ways.mark() is there."""
    return collections.Counter(e["args"]["grid"][0] for e in slices if "grid" in e["args"] and e["args"]["grid"][0] > 100)


@pytest.mark.parametrize("way, runtime", [(way, "on") for way in WAYS] + [("torch", "cupti")] * ("torch" in WAYS))
def test_window_of_the_profiler(way, runtime):
    """Recorded are exactly the calls, of the driver and of the runtime, and the work between cudaProfilerStart and cudaProfilerStop."""
    need({"bindings": "cuda.bindings"}.get(way, way))
    name, env = f"window-{way}-{runtime}", {"CUSTREAM_GPU": "cupti", "CUSTREAM_RUNTIME": runtime}
    all_of_it, whole = run_well(name + "-all", script("window", way), timeout=120, **env)
    done, trace = run_well(name, script("window", way), timeout=120, CUSTREAM_WINDOW="profiler", **env)
    assert done.stdout == all_of_it.stdout
    expected_calls, expected_runtime, expected_work = between(whole)
    calls = [e for e in trace.host(cat="cuda_driver") if not e["name"].startswith("cuProfiler")]
    of_runtime, work = trace.host(cat="cuda_runtime"), times.work_of(trace)
    report(name, "calls of driver and runtime and pieces of work, of all",
           f"{len(calls)} of {len(whole.host(cat='cuda_driver'))}, {len(of_runtime)} of {len(whole.host(cat='cuda_runtime'))}, {len(work)} of {len(times.work_of(whole))}")
    for what, some, expected in (("calls", calls, expected_calls), ("calls of the runtime", of_runtime, expected_runtime)):
        a, b = (collections.Counter(e["name"] for e in found) for found in (some, expected))
        assert a == b and (a or way == "bindings"), f"{what} in the window / between the two calls of the whole trace\n" + times.differing(a, b)
    a, b = (collections.Counter((e["cat"], times.plain_name(e["name"])) for e in some) for some in (work, expected_work))
    assert a == b and a, "work in the window / between the two calls of the whole trace\n" + times.differing(a, b)
    kernels, origin = times.work_of(trace, "kernel"), times.arrows(trace)
    assert marks(kernels) == {grid: 1 for grid in range(201, 208)}
    assert {id(origin[id(e)]) for e in kernels} <= {id(e) for e in calls}
    times.assert_whole(trace)
    times.assert_checked(trace)


# --- custream ctl ---

class Loop:
    """ctl_loop.py under the shim, asked line by line."""

    def __init__(self, name, way, **env):
        self.name, self.path = name, os.path.join(observe.TRACES, name + ".%p.json")
        os.makedirs(observe.TRACES, exist_ok=True)
        env = observe.environment(times.Program(name, []), **times.shared_environment(), LD_PRELOAD=observe.SHIM,
                                  **{"CUSTREAM_TRACE": self.path, **env})
        self.errors = tempfile.TemporaryFile("w+", errors="replace")
        self.process = subprocess.Popen(script("ctl_loop", way), env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True)
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.read()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def _said(self):
        self.errors.seek(0)
        return self.errors.read()[-3000:]

    def read(self):
        try:
            line = self.lines.get(timeout=90)
        except queue.Empty:
            line = None
        if line is None:
            self.process.kill()
            raise AssertionError(f"{self.name} has ended or hangs\n" + self._said())
        return json.loads(line)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.read()

    def rounds(self, numbers):
        return [self.ask(f"round {n}") for n in numbers]

    def ctl(self, word):
        command, env = [os.path.join(BUILD, "custream"), "ctl", str(self.process.pid), word], observe.environment(times.Program("ctl", []))
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=40)
        assert done.returncode == 0, f"custream ctl {word}: {done.stdout}\n" + self._said()
        return done.stdout.strip()

    def end(self):
        """The result, and the trace's path, None where there is none."""
        result = self.ask("end")
        assert self.process.wait(timeout=60) == 0, self._said()
        return result, observe.keep(self.name + ".%p.json", self.process.pid, self.name + ".json")

    def close(self):
        self.process.kill()
        self.process.wait()
        self.errors.close()


def least(rounds, key):
    return min(r[key] for r in rounds)


def report_rounds(name, when, rounds):
    for call in ("query", "launch"):
        through, own = least(rounds, call + "_ns"), least(rounds, call + "_own_ns")
        report(name, f"{when}: {call}, through the shim and past it", f"{through:.0f}, {own:.0f}", "ns")
        report(name, f"{when}: {call}, over the driver's own entry", through / own, "ratio")


@functools.lru_cache(maxsize=None)
def passthrough(way):
    """The same loop with tracing off from the start."""
    loop = Loop(f"ctl-{way}-passthrough", way, CUSTREAM_TRACE="off")
    try:
        rounds = loop.rounds(range(1001, 1004))
        loop.end()
    finally:
        loop.close()
    return rounds


def launched(trace):
    """Each launch, and the first number of its grid: its kernel's slice has it, or where no GPU times came its own."""
    origin = times.arrows(trace)
    return [(e, e["args"]["grid"][0]) for e in trace.host(cat="cuda_driver") if "grid" in e["args"]] + [
        (origin[id(e)], e["args"]["grid"][0]) for e in times.work_of(trace, "kernel") if id(e) in origin and "grid" not in origin[id(e)]["args"]]


def lacking_work(trace, grid):
    """Launches without their kernel, the library's own too, from the first with this grid on."""
    calls, have = trace.host(cat="cuda_driver"), {id(call) for call in times.arrows(trace).values()}
    since = min(call["ts"] for call, first in launched(trace) if first == grid)
    return [e for e in calls if e["ts"] >= since and e["name"].startswith("cuLaunchKernel") and id(e) not in have]


ON, OFF, AGAIN = range(1001, 1004), range(2001, 2004), range(3001, 3004)


@pytest.mark.parametrize("way", WAYS)
def test_ctl_off_and_on(way):
    """A running program is recorded, not recorded, and recorded again; while it is not, a call costs what it costs with tracing off."""
    need({"bindings": "cuda.bindings"}.get(way, way))
    name = f"ctl-{way}"
    loop = Loop(name, way)
    try:
        on = loop.rounds(ON)
        report(name, "ctl off answers", loop.ctl("off"))
        off = loop.rounds(OFF[:1])
        time.sleep(1)  # the profiler is let go of behind the program's back
        off += loop.rounds(OFF[1:])
        report(name, "ctl on answers", loop.ctl("on"))
        again = loop.rounds(AGAIN)
        result, path = loop.end()
    finally:
        loop.close()
    for when, rounds in (("recorded", on), ("off", off[1:]), ("recorded again", again), ("CUSTREAM_TRACE=off", passthrough(way))):
        report_rounds(name, when, rounds)
    assert result["value"] == result["steps"], result
    assert path, "no trace was written"
    trace = times.Trace(path)
    found = collections.Counter(grid for call, grid in launched(trace) if call["name"].startswith("cuLaunchKernel") and grid > 100)
    kernels = marks(times.work_of(trace, "kernel"))
    report(name, "launches by round", str(dict(sorted(found.items()))))
    report(name, "their kernels by round", str(dict(sorted(kernels.items()))))
    expected = {r["number"]: r["marks"] for r in on + again}
    assert found == expected, found
    assert not [n for n in kernels if n in OFF], kernels
    assert all(kernels[n] == expected[n] for n in (*ON, AGAIN[-1])), kernels
    assert not lacking_work(trace, AGAIN[-1]), lacking_work(trace, AGAIN[-1])[:3]
    times.assert_checked(trace)
    if observe.SIMULATED:
        return
    for call in ("query", "launch"):
        through, own = least(off[1:], call + "_ns"), least(off[1:], call + "_own_ns")
        before = least(passthrough(way), call + "_ns")
        report(name, f"off over CUSTREAM_TRACE=off: {call}", through / before, "ratio")
        assert through < 1.4 * own, f"{call}: {through:.0f} ns through the shim, {own:.0f} ns past it"
        assert through < 2 * before, f"{call}: {through:.0f} ns after ctl off, {before:.0f} ns with CUSTREAM_TRACE=off"
