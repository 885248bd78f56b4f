"""Multiply two arrays in JAX: a jitted function of arrays, which XLA compiles, on the GPU where there is one.

Framework: JAX
Runs on: NVIDIA GPU or CPU
Install: pip install "jax[cuda13]"
Follows: https://docs.jax.dev/en/latest/201/jit.html
Math: float32, on a CPU denormals are zero (XLA sets its threads so)

JAX takes three quarters of a GPU's memory when it first computes there, unless the environment variable
XLA_PYTHON_CLIENT_PREALLOCATE is false before jax is imported. gpu-cookbook sets it so.
"""

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit  # compiled at its first call, and again for each new shape
def product(a, b):
    return a * b


def upload(*arrays):
    # jnp.array copies; jax.device_put keeps NumPy's own memory on a CPU, even with may_alias=False (JAX 0.11). To a
    # GPU, the copy goes on behind, while the caller may fill its array anew.
    return jax.block_until_ready(tuple(jnp.array(np.asarray(x, np.float32, order="C")) for x in arrays))


def multiply(a, b):
    if not (a.shape == b.shape and a.dtype == b.dtype == np.float32):
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    return product(a, b)


def wait(c):
    c.block_until_ready()


def download(c):
    return np.asarray(c)  # read-only: on a CPU it is c's own memory, and c never changes


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 1_000_003), np.float32)
    c = download(multiply(*upload(a, b)))
    np.testing.assert_array_equal(c, a * b)
    print(f"multiply, JAX on {jax.default_backend()}: 1,000,003 elements, all right")
