"""All-reduces by NCCL over two GPUs.

    nccl.py one     both GPUs in one process
    nccl.py rank    one GPU a process, as a launcher starts them: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT

Prints how many there were behind a first one.
"""
import json
import os
import sys

import torch

ROUNDS = 5


def one():
    from torch.cuda import nccl
    tensors = [torch.ones(1 << 20, device=f"cuda:{d}") for d in range(2)]
    for _ in range(1 + ROUNDS):
        nccl.all_reduce(tensors)
    for d in range(2):
        torch.cuda.synchronize(d)
    assert all(t[0].item() == 2.0 ** (1 + ROUNDS) for t in tensors), [t[0].item() for t in tensors]


def rank():
    import torch.distributed as dist
    me = int(os.environ["RANK"])
    torch.cuda.set_device(me)
    dist.init_process_group("nccl")
    tensor = torch.ones(1 << 20, device=f"cuda:{me}")
    for _ in range(1 + ROUNDS):
        dist.all_reduce(tensor)
        torch.cuda.synchronize()
    assert tensor[0].item() == 2.0 ** (1 + ROUNDS), tensor[0].item()
    dist.destroy_process_group()


if __name__ == "__main__":
    {"one": one, "rank": rank}[sys.argv[1]]()
    print(json.dumps({"rounds": ROUNDS}), flush=True)
