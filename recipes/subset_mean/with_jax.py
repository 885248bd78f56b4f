"""Mean of every other row and column, plus one, in JAX: slices and methods, jitted, on the GPU where there is one.

Framework: JAX
Runs on: NVIDIA GPU or CPU
Install: pip install "jax[cuda13]"
Follows: https://docs.jax.dev/en/latest/101/arrays.html
Follows: https://docs.jax.dev/en/latest/_autosummary/jax.enable_x64.html

JAX takes three quarters of a GPU's memory when it first computes there, unless the environment variable
XLA_PYTHON_CLIENT_PREALLOCATE is false before jax is imported. gpu-cookbook sets it so.
"""

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit  # compiled at its first call, and again for each new shape
def mean_of_subset(x):
    return (x[::2, ::2] + 1).mean()


def upload(*arrays):
    # Without enable_x64, JAX makes float32 of float64. As a context it holds for these lines in this thread only;
    # jax.config.update("jax_enable_x64", True) would change the rest of the program.
    with jax.enable_x64(True):
        # jnp.array copies; jax.device_put keeps NumPy's own memory on a CPU, even with may_alias=False (JAX 0.11). To a
        # GPU, the copy goes on behind, while the caller may fill its array anew.
        return jax.block_until_ready(tuple(jnp.array(np.asarray(x, np.float64, order="C")) for x in arrays))


def subset_mean(x):
    if x.ndim != 2 or x.dtype != np.float64:
        raise ValueError(f"subset_mean takes a two-dimensional float64 array, not {x.dtype} {x.shape}")
    with jax.enable_x64(True):
        return mean_of_subset(x)


def wait(mean):
    mean.block_until_ready()


def download(mean):
    return float(mean)


if __name__ == "__main__":
    x = np.random.default_rng(0).normal(10, 1, (333, 1_001))
    mean = download(subset_mean(*upload(x)))
    np.testing.assert_allclose(mean, (x[::2, ::2] + 1).mean(), rtol=1e-13)
    print(f"subset_mean, JAX on {jax.default_backend()}: 333 × 1,001 elements, all right")
