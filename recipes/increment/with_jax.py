"""Add one to an array in JAX: a new array, since JAX's arrays never change, on the GPU where there is one.

Framework: JAX
Runs on: NVIDIA GPU or CPU
Install: pip install "jax[cuda13]"
Follows: https://docs.jax.dev/en/latest/201/jit.html
Follows: https://docs.jax.dev/en/latest/101/arrays.html

With jax.jit(donate_argnums=0) the result would take the memory of a, which the caller then no longer has. JAX takes
three quarters of a GPU's memory when it first computes there, unless the environment variable
XLA_PYTHON_CLIENT_PREALLOCATE is false before jax is imported. gpu-cookbook sets it so.
"""

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit  # compiled at its first call, and again for each new shape
def plus_one(a):
    return a + 1


def upload(*arrays):
    # jnp.array copies; jax.device_put keeps NumPy's own memory on a CPU, even with may_alias=False (JAX 0.11). To a
    # GPU, the copy goes on behind, while the caller may fill its array anew.
    return jax.block_until_ready(tuple(jnp.array(np.asarray(x, np.float32, order="C")) for x in arrays))


def increment(a):
    if a.dtype != np.float32:
        raise ValueError(f"increment takes a float32 array, not {a.dtype} {a.shape}")
    return plus_one(a)


def wait(a):
    a.block_until_ready()


def download(a):
    return np.asarray(a)  # read-only: on a CPU it is a's own memory, and a never changes


if __name__ == "__main__":
    a = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    b = download(increment(*upload(a)))
    np.testing.assert_array_equal(b, a + 1)
    print(f"increment, JAX on {jax.default_backend()}: 1,000,003 elements, all right")
