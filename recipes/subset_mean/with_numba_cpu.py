"""Mean of every other row and column, plus one, in Numba on the CPU: loops in Python, with all cores.

Framework: Numba
Runs on: CPU
Install: pip install numba numpy
Follows: https://numba.readthedocs.io/en/stable/user/parallel.html#explicit-parallel-loops
Follows: https://numba.readthedocs.io/en/stable/user/threading-layer.html

Each process compiles anew; njit(cache=True) would keep the compiled loops in a file. A process that was forked after a
first call cannot make another, since GNU OpenMP's threads are the parent's: start it by multiprocessing's "spawn".
"""

from threading import Lock

import numpy as np
from numba import njit, prange

# A call uses all cores, so those of several threads take turns. Where libgomp is missing, they must: Numba then has
# threads of its own, and ends the process if two calls meet. Other parallel functions of Numba need this lock there.
TURN = Lock()


@njit(parallel=True)
def sum_of_subset(x):
    total = 0.0
    for i in prange((x.shape[0] + 1) // 2):  # prange takes steps of 1 only
        for j in range(0, x.shape[1], 2):
            total += x[2 * i, j] + 1  # each thread adds to a total of its own
    return total


def upload(*arrays):
    return tuple(np.asarray(x, np.float64, order="C") for x in arrays)


def subset_mean(x):
    if x.ndim != 2 or x.dtype != np.float64:
        raise ValueError(f"subset_mean takes a two-dimensional float64 array, not {x.dtype} {x.shape}")
    count = ((x.shape[0] + 1) // 2) * ((x.shape[1] + 1) // 2)
    if count == 0:
        return np.nan
    with TURN:
        return sum_of_subset(x) / count


def wait(mean):
    pass  # the threads are done when sum_of_subset() returns


def download(mean):
    return float(mean)


if __name__ == "__main__":
    x = np.random.default_rng(0).normal(10, 1, (333, 1_001))
    mean = download(subset_mean(*upload(x)))
    np.testing.assert_allclose(mean, (x[::2, ::2] + 1).mean(), rtol=1e-13)
    print("subset_mean, Numba on the CPU: 333 × 1,001 elements, all right")
