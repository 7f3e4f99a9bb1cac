"""PyTorch: four threads on the default stream, each with a kernel that sleeps and additions. Prints milliseconds of one thread and of four, as JSON lines.

    torch_threads.py [ROUNDS]
"""
import json
import sys
import threading
import time

import torch

THREADS, CYCLES, ADDITIONS = 4, 40_000_000, 20


def work(number, x):
    torch.cuda._sleep(CYCLES)
    for _ in range(ADDITIONS):
        x.add_(number + 1)
    torch.cuda.current_stream().synchronize()


def together(tensors):
    """Milliseconds until the last of as many threads as tensors has seen the end of its work."""
    barrier, failed = threading.Barrier(len(tensors) + 1), []

    def run(number):
        try:
            torch.cuda.set_device(0)
            torch.cuda.current_stream().synchronize()  # the thread's first call
            barrier.wait()
            work(number, tensors[number])
        except Exception as error:
            failed.append(error)
            barrier.abort()

    threads = [threading.Thread(target=run, args=(n,), name=f"worker-{n}") for n in range(len(tensors))]
    for thread in threads:
        thread.start()
    barrier.wait()
    begin = time.perf_counter()
    for thread in threads:
        thread.join()
    ms = (time.perf_counter() - begin) * 1000
    assert not failed, failed
    return ms


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    tensors = [torch.zeros(1 << 16, device="cuda", dtype=torch.int64) for _ in range(THREADS)]
    torch.cuda._sleep(1000)
    tensors[0].add_(0)
    torch.cuda.synchronize()
    for _ in range(rounds):
        print(json.dumps({"what": "round", "threads": THREADS, "one_ms": together(tensors[:1]), "all_ms": together(tensors)}), flush=True)
    torch.cuda.synchronize()
    # The first thread's tensor has been there twice a round.
    right = [bool((x == rounds * (2 if n == 0 else 1) * ADDITIONS * (n + 1)).all().item()) for n, x in enumerate(tensors)]
    print(json.dumps({"what": "result", "right": all(right)}), flush=True)


if __name__ == "__main__":
    main()
