"""A small transformer is trained: tokens come from a data loader, a side stream fetches the next batch, the model runs in bfloat16.

    python3 torch_transformer.py            # as it was written first
    python3 torch_transformer.py mended     # as `custream report` made us write it: docs/worked/pytorch.md
    python3 torch_transformer.py graphed    # and what its next report says: a step is one CUDA graph

The profiler's window (CUSTREAM_WINDOW=profiler) has the last steps.
"""
import sys

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

HOW = " ".join(sys.argv[1:])
if HOW not in ("", "mended", "graphed"):
    sys.exit(f"{sys.argv[0]}: {HOW}: not known; mended or graphed")
MENDED, GRAPHED = HOW != "", HOW == "graphed"
WARM_UP, STEPS, BATCH, LENGTH, WORDS, WIDTH, LAYERS = 8, 6, 16, 256, 8192, 512, 4


class Text(Dataset):
    """Sequences of tokens, and for each token a row of features, as a tokenizer of another kind would add them."""

    def __len__(self):
        return (WARM_UP + STEPS + 2) * BATCH

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.randint(WORDS, (LENGTH + 1,), generator=generator), torch.randn(LENGTH, WIDTH, generator=generator)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.places = nn.Embedding(LENGTH, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, tokens, features):
        x = self.words(tokens) + self.places.weight + features
        mask = nn.Transformer.generate_square_subsequent_mask(LENGTH, device=tokens.device, dtype=x.dtype)
        return self.head(self.layers(x, mask=mask, is_causal=True))


class Prefetcher:
    """The next batch is copied on a stream of its own, while the model works on this one."""

    def __init__(self, loader):
        self.batches, self.stream = iter(loader), torch.cuda.Stream()
        self.fetch()

    def fetch(self):
        with torch.cuda.stream(self.stream), torch.cuda.nvtx.range("fetch"):
            self.next = [tensor.to("cuda", non_blocking=True) for tensor in next(self.batches)]

    def take(self):
        torch.cuda.current_stream().wait_stream(self.stream)
        batch = self.next
        for tensor in batch:
            tensor.record_stream(torch.cuda.current_stream())
        self.fetch()
        return batch


class Training:
    """The model, and one step of its training."""

    def __init__(self):
        self.model = Model().cuda()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-4, fused=MENDED, capturable=GRAPHED)

    def step(self, tokens, features):
        with torch.autocast("cuda", torch.bfloat16):
            logits = self.model(tokens[:, :-1], features)
            loss = functional.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.detach()


class Graphed:
    """A step of the training as one CUDA graph. It reads the batch from where it was when the step was captured, so each batch is copied there."""

    def __init__(self, training, batch):
        self.batch = [torch.empty_like(tensor) for tensor in batch]
        self.graph = torch.cuda.CUDAGraph()
        training.optimizer.zero_grad(set_to_none=True)  # the gradients that the graph uses are made while it is captured
        # thread_local: the loader's thread, which pins memory, may go on meanwhile.
        with torch.cuda.graph(self.graph, capture_error_mode="thread_local"):
            self.loss = training.step(*self.batch)

    def step(self, *batch):
        for place, tensor in zip(self.batch, batch):
            place.copy_(tensor)
        self.graph.replay()
        return self.loss.clone()


def train(step, batches, steps):
    losses = []
    for _ in range(steps):
        with torch.cuda.nvtx.range("step"):
            loss = step(*batches.take())
            losses.append(loss if MENDED else loss.item())
    return losses


def warmed_up(training, batches):
    """The step as it is measured. Before a capture PyTorch wants some steps on a stream that is not the default one."""
    if not GRAPHED:
        train(training.step, batches, WARM_UP)
        return training.step
    side, here = torch.cuda.Stream(), torch.cuda.current_stream()
    side.wait_stream(here)
    with torch.cuda.stream(side):
        train(training.step, batches, WARM_UP - 1)
    here.wait_stream(side)
    batch = batches.take()
    graphed = Graphed(training, batch)
    graphed.step(*batch)
    return graphed.step


def main():
    torch.manual_seed(0)
    training = Training()
    batches = Prefetcher(DataLoader(Text(), BATCH, num_workers=4, pin_memory=MENDED, prefetch_factor=4))
    step = warmed_up(training, batches)
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    losses = train(step, batches, STEPS)
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()
    print("loss of the last step:", f"{float(losses[-1]):.3f}")


if __name__ == "__main__":
    main()
