"""Multiply two matrices in JAX: jnp.matmul in a jitted function, on the GPU where there is one.

Framework: JAX
Runs on: NVIDIA GPU or CPU
Install: pip install "jax[cuda13]"
Follows: https://docs.jax.dev/en/latest/201/precision.html
Math: float32 (precision="highest"; JAX's default on a GPU is TF32), on a CPU denormals are zero

JAX takes three quarters of a GPU's memory when it first computes there, unless the environment variable
XLA_PYTHON_CLIENT_PREALLOCATE is false before jax is imported. gpu-cookbook sets it so.
"""

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit  # compiled at its first call, and again for each new shape
def product(a, b):
    return jnp.matmul(a, b, precision="highest")


def upload(*arrays):
    # jnp.array copies; jax.device_put keeps NumPy's own memory on a CPU, even with may_alias=False (JAX 0.11). To a
    # GPU, the copy goes on behind, while the caller may fill its array anew.
    return jax.block_until_ready(tuple(jnp.array(np.asarray(x, np.float32, order="C")) for x in arrays))


def matmul(a, b):
    if not (a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0] and a.dtype == b.dtype == np.float32):
        raise ValueError(f"matmul takes float32 arrays of M×K and K×N, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    return product(a, b)


def wait(c):
    c.block_until_ready()


def download(c):
    return np.asarray(c)  # read-only: on a CPU it is c's own memory, and c never changes


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 200, 200), np.float32)
    c = download(matmul(*upload(a, b)))
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=0, atol=1e-4)
    print(f"matmul, JAX on {jax.default_backend()}: 200×200×200, all right")
