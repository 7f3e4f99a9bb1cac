"""block_until_ready() after each short step lets the host do its Python bookkeeping only while the GPU has nothing to
do. Mended: the host enqueues all steps, keeps its books meanwhile, and waits once after the loop."""
import json
import os
import random
import sys
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", ".10")
import jax
import jax.numpy as jnp

MENDED = "mended" in sys.argv[1:]
STEPS, N, LAYERS = 300, 2048, 6
rng = random.Random(1)


@jax.jit
def step(x, w):
    for _ in range(LAYERS):
        x = jnp.tanh(x @ w)
    return x


def bookkeeping(history):
    """A rolling median and tail of the last 5000 measurements, in plain Python."""
    history.append(rng.random())
    ordered = sorted(history[-5000:])
    return ordered[2500], ordered[4950]


def loop(x, w, steps, history):
    for _ in range(steps):
        x = step(x, w)
        if not MENDED:
            x.block_until_ready()
        bookkeeping(history)
    return x


key = jax.random.PRNGKey(1)
x = jax.random.normal(key, (N, N), dtype=jnp.bfloat16)
w = jax.random.normal(key, (N, N), dtype=jnp.bfloat16) / N ** 0.5
history = [rng.random() for _ in range(5000)]
loop(x, w, 10, history).block_until_ready()
start = time.perf_counter()
result = loop(x, w, STEPS, history)
result.block_until_ready()
ms = (time.perf_counter() - start) * 1e3
assert bool(jnp.isfinite(result.astype(jnp.float32)).all())
print(json.dumps({"name": "jax_block_each_step", "mended": MENDED, "loop_ms": round(ms, 3)}))
