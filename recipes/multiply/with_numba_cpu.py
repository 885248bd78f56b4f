"""Multiply two arrays in Numba on the CPU: a loop in Python, compiled at its first call, with all cores.

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
def products(a, b, c):
    for i in prange(c.size):
        c[i] = a[i] * b[i]


def upload(*arrays):
    return tuple(np.asarray(x, np.float32, order="C") for x in arrays)


def multiply(a, b, out=None):
    out = np.empty_like(a) if out is None else out
    if not (a.shape == b.shape == out.shape and a.dtype == b.dtype == out.dtype == np.float32):
        raise ValueError(
            f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}"
            f" into {out.dtype} {out.shape}"
        )
    if not (a.flags.c_contiguous and b.flags.c_contiguous and out.flags.carray):
        raise ValueError("multiply takes C-contiguous arrays, as upload() makes them, and a writeable out")
    with TURN:
        products(a.reshape(-1), b.reshape(-1), out.reshape(-1))  # views: the loop is for one axis
    return out


def wait(c):
    pass  # the threads are done when products() returns


def download(c):
    return c


def round_trip(a, b, out=None):
    return multiply(*upload(a, b), out=out)


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 1_000_003), np.float32)
    c = round_trip(a, b)
    np.testing.assert_array_equal(c, a * b)
    print("multiply, Numba on the CPU: 1,000,003 elements, all right")
