"""Norm of an array in JAX: its own function, as in NumPy, jitted, on the GPU where there is one.

Framework: JAX
Runs on: NVIDIA GPU or CPU
Install: pip install "jax[cuda13]"
Follows: https://docs.jax.dev/en/latest/_autosummary/jax.numpy.linalg.norm.html
Follows: https://docs.jax.dev/en/latest/201/jit.html

JAX takes three quarters of a GPU's memory when it first computes there, unless the environment variable
XLA_PYTHON_CLIENT_PREALLOCATE is false before jax is imported. gpu-cookbook sets it so.
"""

import jax
import jax.numpy as jnp
import numpy as np

norm_of_all = jax.jit(jnp.linalg.norm)  # compiled at its first call, and again for each new shape


def upload(*arrays):
    # jnp.array copies; jax.device_put keeps NumPy's own memory on a CPU, even with may_alias=False (JAX 0.11). To a
    # GPU, the copy goes on behind, while the caller may fill its array anew.
    return jax.block_until_ready(tuple(jnp.array(np.asarray(x, np.float32, order="C")) for x in arrays))


def norm(x):
    if x.dtype != np.float32:
        raise ValueError(f"norm takes a float32 array, not {x.dtype} {x.shape}")
    return norm_of_all(x)


def wait(norm):
    norm.block_until_ready()


def download(norm):
    return np.asarray(norm)  # read-only: on a CPU it is the result's own memory, which never changes


if __name__ == "__main__":
    x = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    result = download(norm(*upload(x)))
    np.testing.assert_allclose(result, np.linalg.norm(x.astype(np.float64)), rtol=1e-6)
    print(f"norm, JAX on {jax.default_backend()}: 1,000,003 elements, all right")
