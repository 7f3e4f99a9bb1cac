"""PyTorch on two GPUs under torchrun, with DDP: what `custream fleet` says of the ranks, and what `custream recover` gives back when one is killed.

    python3 tests/gpu/torchrun.py train FOLDER       a run; rank 1 is slowed in some steps: FOLDER/rankN.json, and what the program did: FOLDER/rankN.did
    python3 tests/gpu/torchrun.py judge FOLDER       anywhere, with the wheel's extra `fleet`: straggler, share, order of the collectives, a shifted clock
    python3 tests/gpu/torchrun.py kill [KILLS] [AT_ONCE]     rank 1 is killed at a random moment, and torchrun ends the other; 10 kills if none are given

The exit status is 1 if something was wrong, and lines say what.
"""
import concurrent.futures
import ctypes
import json
import mmap
import os
import pathlib
import random
import re
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BUILD_DIR") or ROOT / "build")
STEPS, SLOW, SLOW_MS = 60, range(20, 50), 4.0
SHIFT_NS = 7_000_000
WIDTH = 2048


# ---- A rank ----

def model_of(torch, rank):
    """Of several buckets, so that a step has several all-reduces; and of so much work that the GPU is late, and not the host."""
    layers = [layer for _ in range(8) for layer in (torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU())]
    return torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers, torch.nn.Linear(WIDTH, 1)).cuda(), device_ids=[rank], bucket_cap_mb=32)


def step_of(torch, model, optimizer, gathered, noted):
    loss = model(torch.randn(2 * WIDTH, WIDTH, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    torch.distributed.all_gather_into_tensor(gathered, loss.detach().reshape(1))
    noted.append(("AllGather", 1))
    optimizer.step()


def cycles_of(torch, ms):
    """For torch.cuda._sleep; and what these take, ms."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    cycles = 1_000_000
    for _ in range(3):
        begin.record()
        torch.cuda._sleep(cycles)
        end.record()
        end.synchronize()
        cycles, took = int(cycles * ms / begin.elapsed_time(end)), begin.elapsed_time(end)
    return cycles, took


def rank_main(what, folder):
    import torch
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
    rank, noted = int(os.environ["RANK"]), []
    torch.cuda.set_device(rank)
    torch.distributed.init_process_group("nccl")
    model = model_of(torch, rank)

    def hook(state, bucket):
        noted.append(("AllReduce", bucket.buffer().numel()))
        return allreduce_hook(state, bucket)
    model.register_comm_hook(None, hook)
    optimizer, gathered = torch.optim.SGD(model.parameters(), lr=0.01), torch.zeros(2, device="cuda")
    cycles, took = cycles_of(torch, SLOW_MS)
    if what == "endless":
        return endless(torch, folder, rank, lambda: step_of(torch, model, optimizer, gathered, noted))
    for step in range(STEPS):
        torch.cuda.nvtx.range_push("step")
        if rank == 1 and step in SLOW:
            torch.cuda._sleep(cycles)
        step_of(torch, model, optimizer, gathered, noted)
        torch.cuda.synchronize()
        torch.cuda.nvtx.range_pop()
    (folder / f"rank{rank}.did").write_text(json.dumps({"collectives": noted, "slow_ms": took, "slow_steps": len(SLOW)}))
    torch.distributed.destroy_process_group()


def endless(torch, folder, rank, step):
    """Calls cuStreamGetFlags by itself, and counts these calls in shared memory as they return. Beside the count is the process id."""
    driver, flags, calls = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint(), 0
    stream = ctypes.c_void_p(torch.cuda.Stream().cuda_stream)
    with open(folder / f"rank{rank}.counts", "r+b") as file:
        returned = (ctypes.c_int64 * 2).from_buffer(mmap.mmap(file.fileno(), 16))  # one store each: struct.pack_into() writes zeros first
    returned[1] = os.getpid()
    while True:
        step()
        for _ in range(20):
            assert driver.cuStreamGetFlags(stream, ctypes.byref(flags)) == 0
            calls += 1
            returned[0] = calls


def torchrun(what, folder):
    ranks = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", pathlib.Path(__file__).resolve(), "rank", what, folder]
    argv = [BUILD / "custream", "run", "--full=block", "-o", folder / "rank%r.json", "--", *ranks]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)


def train(folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    process = torchrun("steps", folder)
    said, _ = process.communicate(timeout=200)
    print(said[-3000:], sorted(path.name for path in folder.iterdir()))
    return process.returncode != 0


# ---- What custream says of it ----

def fleet_of(traces, to):
    """What relates the ranks, and the answers by their names."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "CUSTREAM_PYTHON": sys.executable}
    subprocess.run([BUILD / "custream", "export", "--parquet", to, *traces], check=True, env=env, stdout=subprocess.DEVNULL)
    sys.path.insert(0, str(ROOT / "python"))
    from custream import fleet
    _, together, answers = fleet.ask(to)
    return together, {answer.name: answer for answer in answers}


def collectives_in(trace):
    """Of the steps, in the order of the GPU: (kind, ms)."""
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    since = min(event["ts"] for event in events if event["name"] == "step" and event["cat"] == "user_annotation")
    kernels = sorted((event["ts"], event["name"], event["dur"]) for event in events if event["cat"] == "kernel" and event["ts"] >= since)
    return [(match[1], dur / 1000) for _, name, dur in kernels if (match := re.match(r"ncclDevKernel_(AllReduce|AllGather)", name))]


def judge(folder):
    folder, wrong = pathlib.Path(folder), []

    def expect(that, what):
        print("ok   " if that else "WRONG", what)
        wrong.extend([] if that else [what])
    did = [json.loads((folder / f"rank{rank}.did").read_text()) for rank in range(2)]
    texts = [(folder / f"rank{rank}.json").read_text(encoding="utf-8") for rank in range(2)]
    ran = [collectives_in(json.loads(text)) for text in texts]
    for rank in range(2):
        asked = [name for name, _ in did[rank]["collectives"]]
        expect([name for name, _ in ran[rank]] == asked, f"rank {rank}: its {len(ran[rank])} collectives on the GPU are the {len(asked)} that the program asked for, in their order")
    # They end together, so rank 0 waits in its kernel for as long as it takes longer than rank 1's. What counts as late is a millisecond, a twentieth of a step.
    waits = [first - second for (_, first), (_, second) in zip(*ran) if first - second > 1]
    most = statistics.median(sorted(waits)[-len(SLOW):])
    expect(abs(most - did[1]["slow_ms"]) < 0.15 * did[1]["slow_ms"], f"in each slow step rank 0 waits {most:.3f} ms at one collective; planted {did[1]['slow_ms']:.3f}")
    with tempfile.TemporaryDirectory() as there:
        there = pathlib.Path(there)
        shifted = there / "rank1.json"
        shifted.write_text(re.sub(r'("baseTimeNanoseconds": ?)(\d+)', lambda match: match[1] + str(int(match[2]) + SHIFT_NS), texts[1], count=1), encoding="utf-8")
        for name, second, shift in (("as they are", folder / "rank1.json", 0), ("with one clock shifted", shifted, SHIFT_NS)):
            together, answers = fleet_of([folder / "rank0.json", second], there / str(shift))
            one, other = together.clocks[0], together.clocks[1]
            at, error = other.at_ns, one.error_ns + other.error_ns
            apart = float(other.ahead(at) - one.ahead(at))
            expect(abs(apart - shift) <= error < 50_000, f"{name}: clock 1 is {apart / 1e3:.1f} us ahead of clock 0, +- {error / 1e3:.1f}, truly {shift / 1e3:.0f}")
            rows = answers["stragglers"].rows
            expect([(row["rank"], row["class"]) for row in rows] == [(1, "kernels")], f"{name}: {answers['stragglers'].says}")
            for row in rows[:1]:
                by, lost = statistics.median(waits), sum(waits)
                expect(abs(row["late"] - len(waits)) <= 2 and abs(row["by_ms"] - by) < 0.05 * by, f"{name}: {row['late']} times, by {row['by_ms']:.3f} ms; by the kernels' times {len(waits)}, {by:.3f}")
                expect(abs(row["others_waited_ms"] - lost) < 0.05 * lost, f"{name}: the other waited {row['others_waited_ms']:.1f} ms; by the kernels' times {lost:.1f}")
            for answer in answers.values():
                print(f"    {answer.name}: " + " | ".join(answer.says[:4]))
    return bool(wrong)


# ---- A rank is killed ----

def returned(path, at=0):
    with open(path, "rb") as file:
        return struct.unpack_from("q", file.read(16), at)[0]


def one_kill(folder, number):
    """For each rank (calls that had returned, calls in its recovered trace, what recover said)"""
    folder = pathlib.Path(folder) / str(number)
    folder.mkdir()
    counts = [folder / f"rank{rank}.counts" for rank in range(2)]
    for path in counts:
        path.write_bytes(bytes(16))
    with torchrun("endless", folder) as process:
        end = time.monotonic() + 120
        while not all(map(returned, counts)) and process.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(random.uniform(0, 1.5))
        if pid := returned(counts[1], 8):
            os.kill(pid, signal.SIGKILL)
        try:
            said, _ = process.communicate(timeout=90)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            said = "torchrun did not end\n" + process.communicate()[0]
    found = []
    for rank, path in enumerate(counts):
        trace, whole = folder / f"rank{rank}.json", folder / f"rank{rank}.whole.json"
        done = subprocess.run([BUILD / "custream", "recover", "-o", whole, trace], capture_output=True, text=True, check=False)
        if done.returncode:
            found.append((returned(path), -1, done.stderr + said[-2000:]))
            continue
        made = json.loads(whole.read_text(encoding="utf-8"))
        found.append((returned(path), sum(row.get("name") == "cuStreamGetFlags" for row in made["traceEvents"]), done.stdout + done.stderr))
    if number == 0:
        for rank in range(2):
            print(f"rank {rank} at the end:", subprocess.run([BUILD / "custream", "report", folder / f"rank{rank}.whole.json"], capture_output=True, text=True, check=False).stdout[:4000])
    return found


def kill(kills=10, at_once=3):
    wrong, counted, recovered = 0, 0, 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        results = list(pool.map(lambda number: one_kill(folder, number), range(kills)))
    for number, ranks in enumerate(results):
        for rank, (calls, found, said) in enumerate(ranks):
            counted, recovered = counted + calls, recovered + found
            if not calls or not 0 <= found - calls <= 1:
                wrong += 1
                print(f"kill {number}, rank {rank}: {calls} calls had returned, {found} are in the recovered trace; {said.strip()}")
    print(f"{kills} kills of two ranks: {counted} calls had returned, {recovered} recovered; {wrong} wrong; rank 0 of the first: {results[0][0][2].strip()}")
    return wrong > 0


def main(what=None, *more):
    if what == "rank":
        return rank_main(more[0], pathlib.Path(more[1]))
    if what in ("train", "judge") and len(more) == 1:
        return {"train": train, "judge": judge}[what](*more)
    if what == "kill":
        return kill(*map(int, more))
    return __doc__


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
