"""A Python loop computes a gain for each of 64 rows and launches one tiny Triton kernel per row, so the GPU waits for
Python most of the time. Mended: one launch covers all rows and the kernel computes the gains itself."""
import json
import sys
import time

import torch
import triton
import triton.language as tl

MENDED = "mended" in sys.argv[1:]
STEPS, ROWS, COLS, TERMS, BLOCK = 50, 64, 65536, 200, 1024


@triton.jit
def scale_row(x_ptr, y_ptr, gain, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=mask) * gain, mask=mask)


@triton.jit
def scale_all(x_ptr, y_ptr, n, ROWS: tl.constexpr, TERMS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(1)
    a = 1.0 + row.to(tl.float32) / ROWS
    term = a * 0.0 + 1.0
    gain = a * 0.0 + 1.0
    for k in range(1, TERMS):
        term = term * a / k
        gain += term
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(y_ptr + row * n + at, tl.load(x_ptr + row * n + at, mask=mask) * gain, mask=mask)


def gain_of(row):
    a, term, gain = 1.0 + row / ROWS, 1.0, 1.0
    for k in range(1, TERMS):
        term = term * a / k
        gain += term
    return gain


def loop(steps):
    blocks = triton.cdiv(COLS, BLOCK)
    for _ in range(steps):
        if MENDED:
            scale_all[(blocks, ROWS)](x, y, COLS, ROWS=ROWS, TERMS=TERMS, BLOCK=BLOCK)
        else:
            for row in range(ROWS):
                scale_row[(blocks,)](x[row], y[row], gain_of(row), COLS, BLOCK=BLOCK)


x = torch.randn(ROWS, COLS, device="cuda")
y = torch.empty_like(x)
loop(3)
torch.cuda.synchronize()
start = time.perf_counter()
loop(STEPS)
torch.cuda.synchronize()
ms = (time.perf_counter() - start) * 1e3
assert torch.allclose(y[5], x[5] * gain_of(5), rtol=1e-4)
print(json.dumps({"name": "triton_host_between", "mended": MENDED, "loop_ms": round(ms, 3)}))
