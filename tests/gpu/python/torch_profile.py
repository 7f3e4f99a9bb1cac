"""A training loop of a small ResNet, plain or with torch.profiler around parts of it.

    torch_profile.py plain|profiled OUT.json

OUT.json gets a list of {"name", "begin_ns", "end_ns" (times of day), "events": [[category, name, begin_ns, ns], ...]} of the GPU's work: of all of the
loop, and, when profiled, of four more profiles: CUDA only twice, CPU and CUDA twice. Plain, the first has no events and the others are not there.
"""
import contextlib
import json
import os
import sys
import tempfile
import time

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

GPU = ("kernel", "gpu_memcpy", "gpu_memset")


class Block(nn.Module):
    def __init__(self, channels, out, stride):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(channels, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU(inplace=True),
                                  nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out))
        same = stride == 1 and channels == out
        self.short = nn.Identity() if same else nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        return torch.relu(self.body(x) + self.short(x))


def resnet():
    """ResNet-18 with a stem for small pictures."""
    layers = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True)]
    for channels, out, stride in ((64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)):
        layers += [Block(channels, out, stride), Block(out, out, 1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


class Loop:
    def __init__(self):
        torch.manual_seed(1)
        self.model = resnet().cuda()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        self.data, self.labels = torch.randn(8, 3, 32, 32).pin_memory(), torch.randint(10, (8,)).pin_memory()

    def steps(self, count):
        for _ in range(count):
            data, labels = self.data.cuda(non_blocking=True), self.labels.cuda(non_blocking=True)
            self.optimizer.zero_grad(set_to_none=True)
            loss = nn.functional.cross_entropy(self.model(data), labels)
            loss.backward()
            self.optimizer.step()
            loss.item()


def gpu_events(path):
    with open(path, encoding="utf-8") as file:
        whole = json.load(file)
    base = whole.get("baseTimeNanoseconds", 0)
    return [(e["cat"], e["name"], base + round(float(e["ts"]) * 1000), round(float(e["dur"]) * 1000)) for e in whole["traceEvents"] if e.get("cat") in GPU]


def profiled(name, work, activities, folder):
    """Runs the work in a profile; without activities, only with the times of day."""
    torch.cuda.synchronize()
    begin = time.time_ns()
    with profile(activities=activities) if activities else contextlib.nullcontext() as p:
        work()
        torch.cuda.synchronize()
    end = time.time_ns()
    events = []
    if activities:
        path = os.path.join(folder, name.replace(" ", "-") + ".json")
        p.export_chrome_trace(path)
        events = gpu_events(path)
    return {"name": name, "begin_ns": begin, "end_ns": end, "events": events}


def main():
    how, out = sys.argv[1:]
    cuda, both = [ProfilerActivity.CUDA], [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    loops = []

    def everything():
        loops.append(Loop())
        loops[0].steps(4)

    torch.empty(1, device="cuda")  # a context, and no work
    with tempfile.TemporaryDirectory() as folder:
        profiles = [profiled("all work", everything, cuda if how == "profiled" else None, folder)]
        if how == "profiled":
            for name, activities in (("CUDA 1", cuda), ("CUDA 2", cuda), ("CPU and CUDA 1", both), ("CPU and CUDA 2", both)):
                loops[0].steps(1)
                profiles.append(profiled(name, lambda: loops[0].steps(2), activities, folder))
            loops[0].steps(1)
            torch.cuda.synchronize()
    with open(out, "w", encoding="utf-8") as file:
        json.dump(profiles, file)


if __name__ == "__main__":
    main()
