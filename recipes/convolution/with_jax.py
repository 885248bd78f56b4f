"""Convolution in JAX: fftconvolve of jax.scipy, jitted, on the GPU where there is one.

Framework: JAX
Runs on: NVIDIA GPU or CPU
Install: pip install "jax[cuda13]"
Follows: https://docs.jax.dev/en/latest/_autosummary/jax.scipy.signal.fftconvolve.html
Follows: https://docs.jax.dev/en/latest/_autosummary/jax.jit.html
Math: float32, on a CPU denormals are zero (XLA sets its threads so)

JAX does not pad to a fast length: it transforms as many values as there are results, which takes longer where that
number has large prime factors.

JAX takes three quarters of a GPU's memory when it first computes there, unless the environment variable
XLA_PYTHON_CLIENT_PREALLOCATE is false before jax is imported. gpu-cookbook sets it so.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.signal import fftconvolve

convolve = jax.jit(fftconvolve)  # compiled at its first call, and again for each new shape


def upload(*arrays):
    # jnp.array copies; jax.device_put keeps NumPy's own memory on a CPU, even with may_alias=False (JAX 0.11). To a
    # GPU, the copy goes on behind, while the caller may fill its array anew.
    return jax.block_until_ready(tuple(jnp.array(np.asarray(x, np.float32, order="C")) for x in arrays))


def convolution(signal, kernel):
    if not (signal.ndim == kernel.ndim == 1 and signal.dtype == kernel.dtype == np.float32):
        raise ValueError(
            f"convolution takes one-dimensional float32 arrays, not {signal.dtype} {signal.shape} and"
            f" {kernel.dtype} {kernel.shape}"
        )
    if not (signal.size and kernel.size):
        return jnp.empty(0, jnp.float32)
    return convolve(signal, kernel)


def wait(result):
    result.block_until_ready()


def download(result):
    return np.asarray(result)  # read-only: on a CPU it is the result's own memory, which never changes


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    signal, kernel = rng.standard_normal(10_007, np.float32), rng.standard_normal(101, np.float32)
    expected = np.convolve(signal.astype(np.float64), kernel)
    np.testing.assert_allclose(download(convolution(*upload(signal, kernel))), expected, rtol=0, atol=1e-4)
    print(f"convolution, JAX on {jax.default_backend()}: 10,007×101, all right")
