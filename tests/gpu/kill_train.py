"""PyTorch with data loader workers, killed at random moments: does `custream recover` give back each call that had returned?

    python3 tests/gpu/kill_train.py [KILLS] [AT_ONCE]        100 kills if none are given, 10 processes at once

The program trains a small model. Between the steps it calls cuStreamGetFlags by itself, and counts these calls in shared memory as they return. Prints one line for each kill that lost or made up calls, and a summary. The exit status is 1 if there was one.
"""
import concurrent.futures
import ctypes
import json
import mmap
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time

BUILD = os.environ.get("BUILD_DIR") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build")
CALL = "cuStreamGetFlags"


def train(counts):
    import torch
    driver = ctypes.CDLL("libcuda.so.1")
    with open(counts, "r+b") as file:
        returned = ctypes.c_int64.from_buffer(mmap.mmap(file.fileno(), 8))  # one store: struct.pack_into() writes zeros first
    data = torch.utils.data.TensorDataset(torch.randn(4096, 64), torch.randn(4096, 1))
    loader = torch.utils.data.DataLoader(data, batch_size=64, num_workers=2, persistent_workers=True)
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    flags, calls = ctypes.c_uint(), 0
    stream = ctypes.c_void_p(torch.cuda.Stream().cuda_stream)
    while True:
        for x, y in loader:
            loss = torch.nn.functional.mse_loss(model(x.cuda(non_blocking=True)), y.cuda(non_blocking=True))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            for _ in range(20):
                assert driver.cuStreamGetFlags(stream, ctypes.byref(flags)) == 0
                calls += 1
                returned.value = calls


def returned(path):
    with open(path, "rb") as file:
        return struct.unpack("q", file.read(8))[0]


def one_kill(folder, number):
    """(calls that had returned, calls in the recovered trace, what the trace says of its rings, the verdict, what recover said)"""
    counts, trace, whole = (os.path.join(folder, f"{number}.{kind}") for kind in ("counts", "json", "whole.json"))
    with open(counts, "wb") as file:
        file.write(bytes(8))
    env = {**os.environ, "LD_PRELOAD": os.path.join(BUILD, "libcustream_shim.so"), "CUSTREAM_TRACE": trace, "CUSTREAM_FULL": "block"}
    with subprocess.Popen([sys.executable, os.path.abspath(__file__), "train", counts], env=env, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        end = time.monotonic() + 60
        while not returned(counts) and process.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
        time.sleep(random.uniform(0, 1.5))
        process.send_signal(signal.SIGKILL)
    done = subprocess.run([os.path.join(BUILD, "custream"), "recover", "-o", whole, trace], capture_output=True, text=True, check=False)
    if done.returncode:
        return returned(counts), -1, "", {}, done.stderr
    with open(whole, encoding="utf-8") as file:
        made = json.load(file)
    calls = sum(row.get("name") == CALL for row in made["traceEvents"])
    os.unlink(trace)
    os.unlink(whole)
    return returned(counts), calls, made["metadata"].get("rings", ""), made["totals"].get("recovered", {}), done.stdout + done.stderr


def main(kills=100, at_once=10):
    wrong, kept = 0, 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        results = list(pool.map(lambda number: one_kill(folder, number), range(kills)))
    for number, (counted, found, rings, verdict, said) in enumerate(results):
        kept += bool(rings) and not rings.startswith("not kept")
        if not counted or not 0 <= found - counted <= 1:
            wrong += 1
            print(f"kill {number}: {counted} calls had returned, {found} are in the recovered trace; rings: {rings}; {verdict}; {said.strip()}")
    print(f"{kills} kills, rings kept in {kept}; {sum(r[0] for r in results)} calls had returned, {sum(r[1] for r in results)} recovered; {wrong} wrong")
    print(results[0][2:])
    return wrong > 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["train"]:
        train(sys.argv[2])
    sys.exit(main(*map(int, sys.argv[1:])))
