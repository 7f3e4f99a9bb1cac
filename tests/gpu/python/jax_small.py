"""JAX: compiled functions, copies both ways, a small training; XLA makes its own streams."""
import jax
import jax.numpy as jnp
import numpy as np

from parts import checksum, in_threads, part


@jax.jit
def polynomial(x):
    return x * x * 3 + x * 2 + 1


@jax.jit
def step(weights, data):
    def loss(w):
        return jnp.mean((data @ w) ** 2)

    value, gradient = jax.value_and_grad(loss)(weights)
    return weights - 0.01 * gradient, value


def whole_numbers():
    return checksum(np.asarray(polynomial(jnp.arange(1000, dtype=jnp.int32)))[:256])


def copies():
    device = jax.devices("gpu")[0]
    arrays = [jax.device_put(np.full(1 << 16, k, np.int32), device) for k in range(8)]
    return [int(np.asarray(a + 1).sum()) for a in arrays]


def train():
    data = jnp.asarray(np.arange(32 * 16, dtype=np.float32).reshape(32, 16) / 512)
    weights = jnp.ones((16, 4), jnp.float32)
    losses = []
    for _ in range(5):
        weights, value = step(weights, data)
        losses.append(round(float(value), 3))
    return losses


def work(number):
    x = jnp.full(1000, number, jnp.int32)
    for _ in range(20):
        x = (polynomial(x) % 1000).block_until_ready()
    return int(x.sum())


if __name__ == "__main__":
    part("device", lambda: jax.devices()[0].platform)
    part("whole numbers", whole_numbers)
    part("copies", copies)
    part("train", train)
    part("threads", in_threads, 3, work)
