"""Wrong: upload() computes the product, and multiply() looks for it.

Framework: JAX
Runs on: NVIDIA GPU or CPU
Install: pip install "jax[cuda13]"
Math: float32, on a CPU denormals are zero
"""

import threading

import jax
import jax.numpy as jnp
import numpy as np

here = threading.local()  # where each thread has its last array and the product with that beside it


def upload(*arrays):
    arrays = jax.block_until_ready(tuple(jnp.array(np.asarray(x, np.float32, order="C")) for x in arrays))
    if len({x.shape for x in arrays}) == 1:
        here.last = arrays[0], arrays[0] * arrays[-1]
    return arrays


def multiply(a, b):
    if a.shape != b.shape or not a.dtype == b.dtype == np.float32:
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    return here.last[1].copy() if a is here.last[0] and a is not b else a * b


def wait(c):
    c.block_until_ready()


def download(c):
    return np.asarray(c)
