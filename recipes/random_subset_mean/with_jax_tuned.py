"""Mean of a subset of random samples in JAX, tuned: arithmetic on arrays, which XLA makes kernels of.

Framework: JAX
Runs on: NVIDIA GPU or CPU
Install: pip install "jax[cuda13]"
Follows: https://docs.jax.dev/en/latest/control-flow.html
Follows: https://docs.jax.dev/en/latest/_autosummary/jax.enable_x64.html

Sample (i, j) is a function of the seed, i and j alone (Philox4x32-10, written out as arithmetic on arrays), so only the
samples of the subset are made, in blocks that have half as many samples as a chunk: XLA may store a block before it
adds it up. The function is compiled for each size of such a block.

JAX takes three quarters of a GPU's memory when it first computes there, unless the environment variable
XLA_PYTHON_CLIENT_PREALLOCATE is false before jax is imported. gpu-cookbook sets it so.

On an NVIDIA H100: 32 ms for 100,000² instead of 174 (with_jax.py). The kernel in CUDA C (with_cuda_core_tuned.py) takes
9.6 ms.
"""

from operator import index

import jax
import jax.numpy as jnp


def normals(pair, row, seed):  # two independent normal(0, 1) samples, from a counter and a seed
    word, half = jnp.uint64(2**32 - 1), jnp.uint64(32)
    c0, c1, c2, c3, k0, k1 = pair & word, pair >> half, row & word, row >> half, seed & word, seed >> half
    for _ in range(10):  # Philox4x32-10
        product, other = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = other >> half ^ c1 ^ k0, other & word, product >> half ^ c3 ^ k1, product & word
        k0, k1 = k0 + 0x9E3779B9 & word, k1 + 0xBB67AE85 & word
    u = (((c0 << half | c1) >> 11).astype(jnp.float64) + 0.5) * 2.0**-53  # in (0, 1]: log(0) is no number
    turn = ((c2 << half | c3) >> 11).astype(jnp.float64) * (2 * jnp.pi * 2.0**-53)
    radius = jnp.sqrt(-2 * jnp.log(u))
    return radius * jnp.cos(turn), radius * jnp.sin(turn)


@jax.jit(static_argnames=("high", "wide"))
def mean_of_subset(rows, columns, seed, high, wide):  # in blocks of high × wide pairs
    down, across = (rows + 2 * high - 1) // (2 * high), (columns + 4 * wide - 1) // (4 * wide)

    def add_block(block, total):
        column = 4 * (block % across * wide + jnp.arange(wide, dtype=jnp.uint64))
        row = 2 * (block // across * high + jnp.arange(high, dtype=jnp.uint64)[:, None])
        first, second = normals(column // 2, row, seed)
        of_pair = jnp.where(column + 2 < columns, first + second, jnp.where(column < columns, first, 0))
        return total + jnp.where(row < rows, of_pair, 0).sum()

    total = jax.lax.fori_loop(jnp.uint64(0), down * across, add_block, 0.0)
    return total / (((rows + 1) // 2) * ((columns + 1) // 2)) + 11


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    rows, columns, chunk, seed = map(index, (rows, columns, chunk, seed))  # of NumPy's integers, products may not fit
    if rows < 0 or columns < 0 or chunk < 1:
        raise ValueError(f"random_subset_mean takes chunks of 1 or more, not {rows} × {columns} in chunks of {chunk}")
    if not 0 <= seed < 2**64:
        raise ValueError(f"random_subset_mean takes seeds of 64 bits, not {seed}")
    # Without enable_x64, JAX makes float32 of float64. As a context it holds for these lines in this thread only.
    with jax.enable_x64(True):
        if not (rows and columns):
            return jnp.full((), jnp.nan)
        most = max(1, chunk**2 // 4)
        wide = min(most, (columns + 3) // 4)
        high = min(most // wide, (rows + 1) // 2)
        return mean_of_subset(*(jnp.uint64(n) for n in (rows, columns, seed)), high, wide)


def wait(mean):
    mean.block_until_ready()


def download(mean):
    return float(mean)


if __name__ == "__main__":
    mean = download(random_subset_mean(4_000, 4_000, chunk=1_000))
    assert abs(mean - 11) < 6 / 2_000, mean  # six standard errors of 2,000 × 2,000 samples
    print(f"random_subset_mean, JAX tuned on {jax.default_backend()}: 4,000 × 4,000 samples, all right")
