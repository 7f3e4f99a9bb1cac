"""All-reduces by NCCL, then what the driver itself says of every stream that the trace has by then.

    nccl_priority.py FOLDER      RANK, WORLD_SIZE, LOCAL_RANK as a launcher sets them (one rank where they are missing); ranks meet in FOLDER

Under the shim, with CUSTREAM_TRACE the path of the trace, which may have %p for the process id. Prints JSON lines: of each live stream its handle, what the
trace says (the library that made it, the priority asked and given), and the priority by libcuda's own cuStreamGetPriority.
"""
import json
import os
import sys
import time

import torch
import torch.distributed as dist

from both_ways import BothWays

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))))
from tests.trace import Trace  # noqa: E402

ROUNDS = 5


def live_streams(path):
    """Created streams by device and handle, of a trace that is being written: those whose life has no end yet."""
    lives = Trace(path, judged=False).lives
    return {(life["pid"], life["args"]["handle"]): life for life in lives if life["dur"] is None and life["args"]["origin"] == "created"}


def streams_of_trace(path, library, seconds=10):
    """The same, waiting for streams of that library to be there."""
    until, streams = time.monotonic() + seconds, {}
    while time.monotonic() < until:
        time.sleep(0.7)  # the file is brought to a valid end twice a second
        try:
            streams = live_streams(path)
        except ValueError:
            continue  # read in the middle of a write
        if any(library in e["args"].get("library", "") for e in streams.values()):
            break
    return streams


def main():
    rank, size, device = (int(os.environ.get(name, default)) for name, default in (("RANK", "0"), ("WORLD_SIZE", "1"), ("LOCAL_RANK", "0")))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", store=dist.FileStore(os.path.join(sys.argv[1], "store"), size), rank=rank, world_size=size)
    tensor = torch.ones(1 << 20, device=f"cuda:{device}")
    for _ in range(ROUNDS):
        dist.all_reduce(tensor)
    torch.cuda.synchronize()
    right = bool(tensor[0].item() == float(size) ** ROUNDS)
    kept = [torch.cuda.Stream(), torch.cuda.Stream(priority=-1)]  # PyTorch makes its own at the latest here
    assert kept
    ways, trace = BothWays(), os.environ.get("CUSTREAM_TRACE", "").replace("%p", str(os.getpid()))
    if trace and os.path.exists(trace):
        print(json.dumps({"what": "range", "driver": ways.own_range()}))
        for (_, handle), e in sorted(streams_of_trace(trace, "nccl").items()):
            args = e["args"]
            print(json.dumps({"what": "stream", "handle": handle, "lane": e["tid"], "library": args.get("library"), "flags": args["flags"],
                              "asked": args["requested priority"], "given": args["priority"], "rule": args.get("rule"),
                              "driver": ways.own_priority(int(handle, 16))}))
    dist.barrier()
    torch.cuda.synchronize()
    dist.destroy_process_group()
    print(json.dumps({"what": "result", "right": right}), flush=True)


if __name__ == "__main__":
    main()
