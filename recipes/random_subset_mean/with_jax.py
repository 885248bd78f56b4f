"""Mean of a subset of random samples in JAX, chunk by chunk: jax.random's Threefry, on the GPU where there is one.

Framework: JAX
Runs on: NVIDIA GPU or CPU
Install: pip install "jax[cuda13]"
Follows: https://docs.jax.dev/en/latest/101/random.html
Follows: https://docs.jax.dev/en/latest/_autosummary/jax.enable_x64.html

No two chunks share samples: under one key, fold_in makes different keys of different numbers below 2**32. JAX takes
three quarters of a GPU's memory when it first computes there, unless the environment variable
XLA_PYTHON_CLIENT_PREALLOCATE is false before jax is imported. gpu-cookbook sets it so.
"""

from operator import index

import jax
import jax.numpy as jnp


@jax.jit(static_argnames="shape")  # compiled for each shape: those of whole chunks, and of the last ones
def samples(key, number, shape):
    return 10 + jax.random.normal(jax.random.fold_in(key, number), shape, jnp.float64)


# Not in one function with samples(), in which XLA may leave out the samples that the mean does not use.
@jax.jit(static_argnames="first")
def add_subset(total, x, first):
    return total + (x[first[0] :: 2, first[1] :: 2] + 1).sum()


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    rows, columns, chunk, seed = map(index, (rows, columns, chunk, seed))  # of NumPy's integers, products may not fit
    if rows < 0 or columns < 0 or chunk < 1:
        raise ValueError(f"random_subset_mean takes chunks of 1 or more, not {rows} × {columns} in chunks of {chunk}")
    if not 0 <= seed < 2**64:
        raise ValueError(f"random_subset_mean takes seeds of 64 bits, not {seed}")
    # Without enable_x64, JAX makes float32 of float64. As a context it holds for these lines in this thread only;
    # jax.config.update("jax_enable_x64", True) would change the rest of the program.
    with jax.enable_x64(True):
        key = jax.random.key(jnp.uint64(seed), impl="threefry2x32")
        total = jnp.zeros(())  # on the device: nothing waits for a chunk
        number = 0
        for row in range(0, rows, chunk):
            for column in range(0, columns, chunk):
                x = samples(key, number, (min(chunk, rows - row), min(chunk, columns - column)))
                total = add_subset(total, x, (row % 2, column % 2))
                del x  # before the next chunk is made
                number += 1
        count = ((rows + 1) // 2) * ((columns + 1) // 2)
        return total / count  # 0 / 0 is NaN in an array


def wait(mean):
    mean.block_until_ready()


def download(mean):
    return float(mean)


if __name__ == "__main__":
    mean = download(random_subset_mean(4_000, 4_000, chunk=1_000))
    assert abs(mean - 11) < 6 / 2_000, mean  # six standard errors of 2,000 × 2,000 samples
    print(f"random_subset_mean, JAX on {jax.default_backend()}: 4,000 × 4,000 samples, all right")
