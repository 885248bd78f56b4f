"""JAX's arrays for other libraries, and theirs in JAX, which has streams of its own.

Framework: JAX
Runs on: NVIDIA GPU or CPU
Install: pip install "jax[cuda13]"
Environment: every
Follows: https://docs.jax.dev/en/latest/jax.dlpack.html
Follows: https://docs.jax.dev/en/latest/_autosummary/jax.numpy.asarray.html

An array of JAX's never changes: nobody who takes one may write into it, and add_one returns a new one.
"""

import jax
import jax.numpy as jnp
import numpy as np


def from_host(values):
    return jnp.array(values)


def to_host(x):
    return np.array(x)


def hand_out(x):
    return x


def from_dlpack(x):
    return jnp.from_dlpack(x)


def from_cuda_array_interface(x):
    return jnp.asarray(x)


@jax.jit
def add_one(x):
    return x + 1


def wait(x):
    x.block_until_ready()


def address(x):
    return x.unsafe_buffer_pointer()


if __name__ == "__main__":
    x = from_host(np.arange(1_000, dtype=np.float32))
    y = from_dlpack(hand_out(x))
    assert address(x) == address(y) and (to_host(add_one(y)) == np.arange(1, 1_001)).all()
    print(f"JAX on {jax.default_backend()}: 1,000 elements handed out and taken, all right")
