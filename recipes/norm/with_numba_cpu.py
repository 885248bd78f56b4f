"""Norm of an array in Numba on the CPU: a loop in Python, with all cores.

Framework: Numba
Runs on: CPU
Install: pip install numba numpy
Follows: https://numba.readthedocs.io/en/stable/user/parallel.html#explicit-parallel-loops
Follows: https://numba.readthedocs.io/en/stable/user/performance-tips.html#fastmath
Follows: https://numba.readthedocs.io/en/stable/user/threading-layer.html

Each process compiles anew; njit(cache=True) would keep the compiled loop in a file. A process that was forked after a
first call cannot make another, since GNU OpenMP's threads are the parent's: start it by multiprocessing's "spawn".
"""

import math
from threading import Lock

import numpy as np
from numba import njit, prange

# A call uses all cores, so those of several threads take turns. Where libgomp is missing, they must: Numba then has
# threads of its own, and ends the process if two calls meet. Other parallel functions of Numba need this lock there.
TURN = Lock()


# reassoc: a core may add several elements at once, in any order. fastmath=True would also forget NaN and infinity.
@njit(parallel=True, fastmath={"reassoc"})
def root_of_sum(x):
    total = 0.0  # float64; each thread adds to a total of its own
    for i in prange(x.size):
        total += np.float64(x[i]) * np.float64(x[i])
    return np.float32(math.sqrt(total))


def upload(*arrays):
    return tuple(np.asarray(x, np.float32, order="C") for x in arrays)


def norm(x):
    if x.dtype != np.float32:
        raise ValueError(f"norm takes a float32 array, not {x.dtype} {x.shape}")
    with TURN:
        return np.float32(root_of_sum(x.reshape(-1)))  # a view: the loop is for one axis


def wait(norm):
    pass  # the threads are done when root_of_sum() returns


def download(norm):
    return norm


if __name__ == "__main__":
    x = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    result = download(norm(*upload(x)))
    np.testing.assert_allclose(result, np.linalg.norm(x.astype(np.float64)), rtol=1e-6)
    print("norm, Numba on the CPU: 1,000,003 elements, all right")
