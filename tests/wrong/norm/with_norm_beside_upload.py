"""Wrong: upload() computes the norm, and norm() looks for it.

Framework: JAX
Runs on: NVIDIA GPU or CPU
Install: pip install "jax[cuda13]"
"""

import threading

import jax
import jax.numpy as jnp
import numpy as np

here = threading.local()  # where each thread has its last array and the norm of it
norm_of_all = jax.jit(jnp.linalg.norm)


def upload(x):
    x = jax.block_until_ready(jnp.array(np.asarray(x, np.float32, order="C")))
    here.last = x, norm_of_all(x)
    return (x,)


def norm(x):
    if x.dtype != np.float32:
        raise ValueError(f"norm takes a float32 array, not {x.dtype} {x.shape}")
    return here.last[1].copy() if x is here.last[0] else norm_of_all(x)


def wait(norm):
    norm.block_until_ready()


def download(norm):
    return np.asarray(norm)
