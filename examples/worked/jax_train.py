"""A small network is trained on batches that the host makes.

    python3 jax_train.py            # as it was written first
    python3 jax_train.py mended     # as `custream report` made us write it: docs/worked/jax.md

The profiler's window (CUSTREAM_WINDOW=profiler) has the last steps.
"""
import ctypes
import sys

import jax
import jax.numpy as jnp
import numpy as np

MENDED = sys.argv[1:] == ["mended"]
WARM_UP, STEPS, BATCH, WIDTH, LAYERS = 6, 16, 2048, 2048, 6


def loss_of(weights, x, y):
    for w in weights[:-1]:
        x = jax.nn.gelu(x @ w)
    return jnp.mean((x @ weights[-1] - y) ** 2)


@jax.jit
def step(weights, x, y):
    loss, gradients = jax.value_and_grad(loss_of)(weights, x, y)
    return [w - 0.01 * g for w, g in zip(weights, gradients)], loss


def batch(random):
    return random.standard_normal((BATCH, WIDTH), dtype=np.float32), random.standard_normal((BATCH, 8), dtype=np.float32)


def train(weights, random, steps):
    """As a beginner writes it: a batch is made, copied and used, and the loss is looked at in every step."""
    losses = []
    for _ in range(steps):
        x, y = batch(random)
        weights, loss = step(weights, x, y)
        losses.append(float(loss))
    return weights, losses


def train_ahead(weights, random, steps):
    """The next batch is made and on its way while the GPU works; the losses are looked at in the end."""
    losses, following = [], jax.device_put(batch(random))
    for _ in range(steps):
        current = following
        weights, loss = step(weights, *current)
        following = jax.device_put(batch(random))
        losses.append(loss)
    return weights, [float(loss) for loss in losses]


def window(name):
    """cudaProfilerStart and cudaProfilerStop have no name in JAX."""
    getattr(ctypes.CDLL("libcuda.so.1"), "cuProfiler" + name)()


def main():
    random, key = np.random.default_rng(0), jax.random.key(0)
    sizes = [WIDTH] * LAYERS + [8]
    weights = [jax.random.normal(k, shape) / np.sqrt(shape[0]) for k, shape in zip(jax.random.split(key, LAYERS), zip(sizes, sizes[1:]))]
    run = train_ahead if MENDED else train
    weights, _ = run(weights, random, WARM_UP)
    jax.block_until_ready(weights)
    window("Start")
    weights, losses = run(weights, random, STEPS)
    jax.block_until_ready(weights)
    window("Stop")
    print("loss of the last step:", f"{losses[-1]:.4f}")


if __name__ == "__main__":
    main()
