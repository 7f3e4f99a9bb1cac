"""torchvision's CUDA operators beside PyTorch: two libraries of kernels, with two copies of cudart where its wheel brings one. Prints results that any run gives."""
import re

import torch
import torchvision
from torchvision.ops import nms, roi_align, roi_pool


def cudarts():
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return sorted(set(re.findall(r"\S*/(libcudart[^/\s]*)", maps.read())))


def main():
    torch.manual_seed(7)
    boxes = torch.randint(0, 50, (200, 2), device="cuda").float()
    boxes = torch.cat([boxes, boxes + torch.randint(1, 30, (200, 2), device="cuda")], 1)
    scores = torch.arange(200, 0, -1, device="cuda").float()
    kept = nms(boxes, scores, 0.5)
    print("nms", len(kept), int(kept.sum()))
    image = torch.arange(3 * 32 * 32, device="cuda").float().reshape(1, 3, 32, 32)
    where = torch.tensor([[0, 0.0, 0.0, 16.0, 16.0], [0, 8.0, 8.0, 31.0, 31.0]], device="cuda")
    print("roi_pool", roi_pool(image, where, 4).double().sum().item())
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        aligned = roi_align(image, where, 4)
    torch.cuda.current_stream().wait_stream(stream)
    print("roi_align", round(aligned.double().sum().item(), 3))
    try:
        nms(boxes.half()[:, :3], scores, 0.5)
    except RuntimeError as error:
        print("refused", str(error)[:40])
    torch.cuda.synchronize()
    print("torchvision", torchvision.__version__, "cudarts", len(cudarts()))


if __name__ == "__main__":
    main()
