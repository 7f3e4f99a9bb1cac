"""A small transformer is trained: tokens come from a data loader, a side stream fetches the next batch, the model runs in bfloat16.

    python3 torch_transformer.py            # as it was written first
    python3 torch_transformer.py mended     # as `custream report` made us write it: docs/worked/pytorch.md

The profiler's window (CUSTREAM_WINDOW=profiler) has the last steps.
"""
import sys

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

MENDED = sys.argv[1:] == ["mended"]
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


def main():
    torch.manual_seed(0)
    model = Model().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=MENDED)
    batches = Prefetcher(DataLoader(Text(), BATCH, num_workers=4, pin_memory=MENDED, prefetch_factor=4))
    losses = []
    for step in range(WARM_UP + STEPS):
        if step == WARM_UP:
            torch.cuda.synchronize()
            torch.cuda.profiler.start()
        with torch.cuda.nvtx.range("step"):
            tokens, features = batches.take()
            with torch.autocast("cuda", torch.bfloat16):
                logits = model(tokens[:, :-1], features)
                loss = functional.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach() if MENDED else loss.item())
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()
    print("loss of the last step:", f"{float(losses[-1]):.3f}")


if __name__ == "__main__":
    main()
