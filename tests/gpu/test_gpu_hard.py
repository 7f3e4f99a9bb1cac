"""On a real GPU: several GPUs, bad luck, and ten million kernels. See docs/check-gpu.md."""
import collections
import glob
import json
import os
import shutil
import subprocess
import sys
import threading
import time

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import observe  # noqa: E402
import times  # noqa: E402
from known import known_run  # noqa: E402
from times import GPUS, gpu_only, needs, program, real_only, report, run, run_well, script  # noqa: E402

pytestmark = gpu_only


# --- two GPUs: these tests are not collected where there are fewer ---

if GPUS >= 2:
    def test_work_stands_on_its_gpu():
        """Kernels on two devices: pid is the device; copies between them name both, and stand on the stream that they were put on."""
        done, trace = run_well("two-gpus", [program("two_gpu")], CUSTREAM_GPU="cupti")
        said = times.lines_of(done.stdout)
        calls, lanes = times.arrows(trace), times.stream_lanes(trace)
        lane_on = {s["device"]: lanes[s["handle"]] for s in said if s["what"] == "stream"}
        kernels = times.work_of(trace, "kernel")
        for k in (s for s in said if s["what"] == "kernel"):
            found = [e for e in kernels if e["args"]["grid"][0] == k["grid"]]
            assert len(found) == 1 and found[0]["pid"] == k["device"], (k, found)
            assert times.lane_of(found[0]) == lane_on[k["device"]], (k, found)
        copies = times.work_of(trace, "gpu_memcpy")
        of_call = collections.defaultdict(list)
        for e in copies:
            of_call[id(calls[id(e)])].append(e)
        host_calls = [e for e in trace.slices if e["name"].startswith("cuMemcpyPeerAsync")]
        assert len(host_calls) == sum(s["what"] == "copy" for s in said)
        for c, call in zip((s for s in said if s["what"] == "copy"), sorted(host_calls, key=lambda e: e["ts"])):
            found = of_call[id(call)]
            between = "with" if c["peer access"] else "without"
            report("two GPUs", f"copy {c['from']} -> {c['to']} on {c['on']}, {between} peer access",
                   "; ".join(f"{e['name']} on {e['pid']}, {e['args'].get('fromDevice', '-')} -> {e['args'].get('toDevice', '-')}" for e in found))
            assert found and {e["pid"] for e in found} <= {c["from"], c["to"]}, (c, found)
            if c["peer access"]:
                # Seen on an H200: the source's copy engine does it, on a stream of the driver's own where the program's is on the other GPU.
                does_it = c["on"] if observe.SIMULATED else c["from"]
                assert len(found) == 1 and found[0]["pid"] == does_it, (c, found)
                assert (times.lane_of(found[0]) == lane_on[does_it]) == (c["on"] == does_it), (c, found)
                assert (found[0]["args"]["fromDevice"], found[0]["args"]["toDevice"]) == (c["from"], c["to"]), (c, found)
                other = [e for e in trace.slices if e.get("cat") == "cs_peer" and e["args"]["correlation"] == found[0]["args"]["correlation"]]
                assert [(e["pid"], e["ts"], e["dur"]) for e in other] == [(c["from"] + c["to"] - does_it, found[0]["ts"], found[0]["dur"])], (c, other)
            # A copy that goes through the host may be shown as what it is, two of them.
            moved = sum(e["args"]["bytes"] for e in found)
            assert moved in (c["bytes"], 2 * c["bytes"]), (c, found)
        times.assert_whole(trace)
        times.assert_checked(trace)

    @real_only
    @needs("torch")
    def test_nccl_in_one_process():
        """All-reduces over both GPUs: a kernel of NCCL's on each, as many as there were."""
        done, trace = run_well("nccl-one", script("nccl", "one"), timeout=150, CUSTREAM_GPU="cupti")
        rounds = times.lines_of(done.stdout)[0]["rounds"]
        count = collections.Counter(e["pid"] for e in times.work_of(trace, "kernel") if e["name"].startswith("nccl"))
        report("NCCL, one process", "kernels on each GPU", str(dict(count)))
        assert set(count) == {0, 1} and count[0] == count[1] and count[0] >= rounds, count
        times.assert_whole(trace)
        times.assert_checked(trace)

    @real_only
    @needs("torch")
    def test_nccl_in_two_processes():
        """A trace a rank, each with its rank and its GPU; the two kernels of an all-reduce run at the same time of day."""
        env = observe.environment(times.Program("nccl", []), LD_PRELOAD=observe.SHIM, CUSTREAM_GPU="cupti", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1",
                                  MASTER_PORT=str(20000 + os.getpid() % 20000))
        ranks = []
        for rank in range(2):
            path = os.path.join(observe.TRACES, f"nccl-rank{rank}.json")
            ranks.append((path, subprocess.Popen(script("nccl", "rank"), env=dict(env, RANK=str(rank), LOCAL_RANK=str(rank), CUSTREAM_TRACE=path),
                                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)))
        try:
            outputs = [process.communicate(timeout=150)[0] for _, process in ranks]
        finally:
            for _, process in ranks:
                process.kill()
        assert all(process.returncode == 0 for _, process in ranks), "\n".join(o[-3000:] for o in outputs)
        traces = [times.Trace(path) for path, _ in ranks]
        rounds = times.lines_of(outputs[0])[0]["rounds"]
        spans = []
        for rank, trace in enumerate(traces):
            assert trace.json["distributedInfo"] == {"rank": rank, "world_size": 2}, trace.json["distributedInfo"]
            kernels = [e for e in times.work_of(trace, "kernel") if e["name"].startswith("nccl")]
            assert len(kernels) >= rounds and {e["pid"] for e in kernels} == {rank}, [(e["name"], e["pid"]) for e in kernels[:5]]
            reduces = [e for e in kernels if "AllReduce" in e["name"]][-rounds:]
            spans.append([(times.wall_ns(trace, e["ts"]), times.wall_ns(trace, times.end(e))) for e in reduces])
            times.assert_whole(trace)
            times.assert_checked(trace)
        together = [min(a[1], b[1]) - max(a[0], b[0]) for a, b in zip(*spans)]
        report("NCCL, two processes", f"least of the time that both kernels of {len(together)} all-reduces share", min(together) / 1000, "us")
        assert min(together) > 0, "the two kernels of an all-reduce do not run together"


# --- bad luck ---

def runs_on(name, source, **env):
    """The known program with a CUPTI that is none: it does what it does, the trace is valid, and says why GPU times are missing."""
    done, trace = run_well(name, [program("known-driver")], CUSTREAM_GPU=source, **env)
    assert len(times.lines_of(done.stdout)) == len(known_run("driver", "cupti", "graph").ops) + 9
    times.assert_checked(trace)
    assert trace.totals["recorded"] > 300 and trace.totals["complete"]
    return trace


def old_cuptis():
    """CUPTIs of other major versions, if any is installed."""
    places = ("/opt/nvidia/nsight-compute/*/host/target-linux-x64/libcupti.so.1[01].*", "/usr/local/cuda-1[01]*/extras/CUPTI/lib64/libcupti.so")
    return [path for place in places for path in sorted(glob.glob(place))][:1]


@pytest.mark.parametrize("kind", ["missing", "garbage", "empty", "another library"] + ["old"] * bool(old_cuptis()))
@pytest.mark.parametrize("source", ["cupti", "auto"])
def test_without_a_cupti_that_works(tmp_path, kind, source):
    path = {"missing": "/nonexistent/libcupti.so.13", "another library": program("libcupti_count.so"), "old": "".join(old_cuptis())}.get(kind)
    if path is None:
        path = str(tmp_path / "libcupti.so.13")
        with open(path, "wb") as file:
            file.write(b"\x7fELF this is no library\n" * 100 if kind == "garbage" else b"")
    trace = runs_on(f"no-cupti-{kind.replace(' ', '-')}-{source}", source, CUSTREAM_CUPTI=path)
    causes = times.losses(trace)
    report("a CUPTI that is no use", f"{kind}, CUSTREAM_GPU={source}: source {times.gpu_totals(trace)['source']}", "; ".join(sorted(set(causes))))
    assert causes and all(causes), "the trace does not say what is missing"
    if source == "auto":
        assert times.gpu_totals(trace)["source"] == "events"
        assert len(times.work_of(trace, "kernel")) == len(known_run("driver", "cupti", "graph").of_kind("kernel"))
    else:
        assert times.gpu_totals(trace)["source"] == trace.metadata["gpu_time_source"] == "none" and not times.work_of(trace)


@pytest.mark.parametrize("source", ["cupti", "events"])
@pytest.mark.parametrize("how", ["context", "reset"])
def test_contexts_that_end(how, source):
    """A context is destroyed with work outstanding; the primary one is reset in the middle. What was waited for is there, what was not is there or counted."""
    name = f"unlucky-{how}-{source}"
    done, trace = run_well(name, [program("unlucky"), how], CUSTREAM_GPU=source)
    kernels = collections.Counter(e["args"]["grid"][0] for e in times.work_of(trace, "kernel"))
    gpu, launched = times.gpu_totals(trace), 0
    for part in (p for p in times.lines_of(done.stdout) if "part" in p):
        grids = range(part["first"], part["first"] + part["kernels"])
        found = sum(kernels[g] for g in grids)
        launched += part["kernels"]
        report(name, part["part"], f"{found} of {part['kernels']} kernels")
        assert all(kernels[g] <= 1 for g in grids)
        assert found == part["kernels"] or not part["complete"], f"{part['part']}: {found} of {part['kernels']} kernels"
    assert len(times.work_of(trace, "kernel")) == sum(kernels.values())
    missing = launched - sum(kernels.values())
    report(name, "kernels without times, counted as lost or without times", f"{missing}, {gpu['lost'] + gpu['without_times']}")
    assert missing == 0 or times.losses(trace) or gpu["without_times"], "kernels are missing and the trace does not say so"
    times.assert_checked(trace)


def tool(name, *places):
    """A profiler's command, where it is installed."""
    found = subprocess.run(["sh", "-c", "command -v " + name], stdout=subprocess.PIPE, text=True).stdout.strip()
    return found or next((path for place in places for path in sorted(glob.glob(place))), None)


NSYS = tool("nsys", "/opt/nvidia/nsight-systems/*/bin/nsys", "/opt/nvidia/nsight-compute/*/host/target-linux-x64/nsys")
NCU = tool("ncu", "/usr/local/cuda/bin/ncu", "/opt/nvidia/nsight-compute/*/ncu")
TOOLS = {"nsys": [NSYS, "profile", "--trace=cuda", "--sample=none", "--cpuctxsw=none", "--force-overwrite=true", "-o"],
         "ncu": [NCU, "--clock-control=none", "--launch-count=2", "--force-overwrite", "-o"]}


@real_only
@pytest.mark.parametrize("which", [name for name, path in (("nsys", NSYS), ("ncu", NCU)) if path])
def test_under_a_profiler(tmp_path, which):
    """The program goes on under NVIDIA's profilers, and the trace is valid: with GPU times, or it says why not."""
    command = TOOLS[which] + [str(tmp_path / "report"), program("known-driver")]
    alone, _ = run(f"{which}-alone", command, timeout=120, shim=False)
    expected = len(known_run("driver", "cupti", "graph").ops)
    if sum(line.get("what") == "op" for line in times.lines_of(alone.stdout)) != expected:
        pytest.skip(f"{which} does not run the program here, without the shim either: {(alone.stderr or alone.stdout).strip()[-300:]}")
    # The tool itself is preloaded too, and its own child is the program: the trace is the program's.
    pattern = os.path.join(observe.TRACES, f"{which}-shim.%e.%p.json")
    for old in glob.glob(os.path.join(observe.TRACES, f"{which}-shim.*.json")):
        os.remove(old)
    done, _ = run(f"{which}-shim", command, timeout=120, shim=False, preload=[observe.SHIM], CUSTREAM_TRACE=pattern, CUSTREAM_GPU="cupti")
    assert sum(line.get("what") == "op" for line in times.lines_of(done.stdout)) == expected, done.tail()
    found = glob.glob(os.path.join(observe.TRACES, f"{which}-shim.known-driver.*.json"))
    assert len(found) == 1, f"traces: {glob.glob(os.path.join(observe.TRACES, which + '-shim.*'))}\n" + done.tail()
    trace = times.Trace(found[0])
    kernels = len(times.work_of(trace, "kernel"))
    report(f"under {which}", f"GPU times from {times.gpu_totals(trace)['source']}: kernels", kernels)
    report(f"under {which}", "what the trace says is missing", "; ".join(sorted(set(times.losses(trace)))) or "nothing")
    assert kernels >= len(known_run("driver", "cupti", "graph").of_kind("kernel")) or times.losses(trace), "GPU times are missing and the trace does not say so"
    times.assert_checked(trace)


# --- very many kernels ---

def watch_memory(pid, samples, stop):
    """(seconds, KiB) of the process, a few times a second."""
    begin = time.monotonic()
    while not stop.wait(0.05):
        try:
            with open(f"/proc/{pid}/status", encoding="ascii") as file:
                samples += [(time.monotonic() - begin, int(line.split()[1])) for line in file if line.startswith("VmRSS")]
        except (OSError, ProcessLookupError):
            return


def parts_of(path):
    """All files of a trace in parts that are left, in their order; the newest has no number."""
    stem = path[:-len(".json")]
    older = [p for p in glob.glob(glob.escape(stem) + ".*.json") if p[len(stem) + 1:-len(".json")].isdigit()]
    return sorted(older, key=lambda p: int(p[len(stem) + 1:-len(".json")])) + [path]


def last_lines(path, size=65536):
    with open(path, "rb") as file:
        file.seek(max(0, os.path.getsize(path) - size))
        return file.read().decode("utf-8", "replace")


@pytest.mark.parametrize("threads, stack", [(600, 8), (100, 64)])
def test_a_crowd_of_threads(threads, stack):
    """As in tests/cases: each launch of some hundred threads has one kernel, on its stream."""
    name = f"crowd-{threads}"
    done, trace = run_well(name, [program("crowd"), str(threads), "50", str(stack)])
    assert done.stdout == "all right\n", done.tail()
    gpu = times.gpu_totals(trace)
    report(name, "kernels, lost, launches without kernel, work without call", f"{gpu['kernels']}, {gpu['lost']}, {gpu['launches_without_kernel']}, {gpu['without_call']}")
    assert gpu["lost"] == gpu["launches_without_kernel"] == gpu["without_call"] == 0 and gpu["kernels"] == threads * 50
    calls = times.arrows(trace)
    assert all(calls[id(e)]["args"]["cs.stream"] == times.lane_of(e) for e in times.work_of(trace, "kernel"))
    times.assert_checked(trace)


def totals_of(path):
    """A trace's totals, without reading it all."""
    text = last_lines(path)
    return json.loads("{" + text[text.rindex('"totals"'):])["totals"]


def test_very_many_kernels():
    """A rotating trace of CUSTREAM_GPU_MANY kernels (a million; ten for the record): memory stays flat, and every kernel is recorded or counted as lost."""
    count = int(os.environ.get("CUSTREAM_GPU_MANY", "200000" if observe.SIMULATED else "1000000"))
    folder = os.path.join(observe.TRACES, "many")
    os.makedirs(folder, exist_ok=True)
    for old in glob.glob(os.path.join(folder, "*.json")):
        os.remove(old)
    path = os.path.join(folder, "many.json")
    size = os.environ.get("CUSTREAM_GPU_MANY_MAX", "64M,rotate")
    env = observe.environment(times.Program("many", []), LD_PRELOAD=observe.SHIM, CUSTREAM_TRACE=path, CUSTREAM_TRACE_MAX=size, CUSTREAM_GPU="cupti",
                              CUSTREAM_FULL=os.environ.get("CUSTREAM_GPU_MANY_FULL", "drop"), **times.shared_environment())
    process = subprocess.Popen([program("many"), str(count)], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    samples, stop = [], threading.Event()
    watcher = threading.Thread(target=watch_memory, args=(process.pid, samples, stop))
    watcher.start()
    try:
        out, err = process.communicate(timeout=400)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    finally:
        stop.set()
        watcher.join()
    assert process.returncode == 0, err[-2000:]
    said, totals, gpu = times.lines_of(out)[0], totals_of(path), totals_of(path)["gpu"]
    name = f"{count} kernels"
    report(name, "ns a kernel under the shim", float(said["ns_per_kernel"]), "ns")
    report(name, "parts in all, left", f"{totals.get('part', 1)}, {len(parts_of(path))}")
    recorded, lost = totals.get("recorded_in_all_parts", totals["recorded"]), totals.get("lost_in_all_parts", totals["lost_records"])
    kernels, unseen = totals.get("gpu_work_in_all_parts", gpu["kernels"]), totals.get("gpu_work_lost_in_all_parts", gpu["lost"])
    report(name, "host calls recorded, lost; kernels, GPU records lost", f"{recorded}, {lost}; {kernels}, {unseen}")

    beside = recorded + lost - count - said["waits"]
    report(name, "calls beside launches and waits", beside)
    assert 0 <= beside <= 30, f"{recorded} recorded + {lost} lost calls, of {count} launches and {said['waits']} waits"
    # CUPTI's count of lost records has records of calls in it too.
    accounted = kernels + gpu["without_times"] + unseen
    assert accounted == count or (unseen and kernels <= count <= accounted), gpu

    tenth = [kib for second, kib in samples if second <= samples[-1][0] / 10]
    later = [kib for second, kib in samples if second > samples[-1][0] / 10]
    growth = (max(later) - max(tenth)) / 1024 if tenth and later else 0.0
    report(name, "memory after the first tenth, at most", max(kib for _, kib in samples) / 1024, "MiB")
    report(name, "its growth after the first tenth", growth, "MiB")
    late = later_growth(samples)
    report(name, "its growth in the last quarter", late, "MiB")
    assert late <= 16, f"memory grew by {late:.1f} MiB in the last quarter"
    if count >= 5000000:  # tables of the last 262,144 calls fill first
        assert growth <= 16, f"memory grew by {growth:.1f} MiB after the first tenth"
    for part in parts_of(path)[-2:]:
        if os.path.getsize(part) < 100 << 20:
            times.assert_checked_file(part)
    shutil.rmtree(folder)  # large, and of no further use


def later_growth(samples):
    """How much more memory the process had at most in the last quarter than in the one before, in MiB."""
    whole = samples[-1][0]
    third = [kib for second, kib in samples if whole / 2 <= second < whole * 3 / 4]
    fourth = [kib for second, kib in samples if second >= whole * 3 / 4]
    return (max(fourth) - max(third)) / 1024 if third and fourth else 0.0
