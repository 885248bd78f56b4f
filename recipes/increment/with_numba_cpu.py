"""Add one to an array in Numba on the CPU: a loop in Python, in place or from one array into another, with all cores.

Framework: Numba
Runs on: CPU
Install: pip install numba numpy
Follows: https://numba.readthedocs.io/en/stable/user/parallel.html#explicit-parallel-loops
Follows: https://numba.readthedocs.io/en/stable/user/threading-layer.html

Each process compiles anew; njit(cache=True) would keep the compiled loop in a file. A process that was forked after a
first call cannot make another, since GNU OpenMP's threads are the parent's: start it by multiprocessing's "spawn".
"""

from threading import Lock

import numpy as np
from numba import njit, prange

# A call uses all cores, so those of several threads take turns. Where libgomp is missing, they must: Numba then has
# threads of its own, and ends the process if two calls meet. Other parallel functions of Numba need this lock there.
TURN = Lock()


@njit(parallel=True)
def add_one(a, b):
    for i in prange(a.size):
        b[i] = a[i] + np.float32(1)  # Numba would add a plain 1 in float64


def upload(*arrays):
    # np.array copies: the work is in place, and the caller's arrays must not change.
    return tuple(np.array(x, np.float32, order="C") for x in arrays)


def increment(a):
    if a.dtype != np.float32:
        raise ValueError(f"increment takes a float32 array, not {a.dtype} {a.shape}")
    return round_trip(a, out=a)


def wait(a):
    pass  # the threads are done when add_one() returns


def download(a):
    return a


def round_trip(a, out=None):
    """a + 1 in a new array, or in out, which may be a itself."""
    a = np.asarray(a, np.float32, order="C")
    out = np.empty_like(a) if out is None else out
    if not (out.shape == a.shape and out.dtype == np.float32 and out.flags.carray):
        raise ValueError(f"out must be writeable C-contiguous float32 of {a.shape}, not {out.dtype} {out.shape}")
    with TURN:
        add_one(a.reshape(-1), out.reshape(-1))  # views: the loop is for one axis
    return out


if __name__ == "__main__":
    a = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    for b in (round_trip(a), download(increment(*upload(a)))):
        np.testing.assert_array_equal(b, a + 1)
    print("increment, Numba on the CPU: 1,000,003 elements, all right")
