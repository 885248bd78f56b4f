"""Multiply two arrays in joblib: NumPy on every core of the CPU, one thread each.

Framework: joblib
Runs on: CPU
Install: pip install joblib numpy
Follows: https://joblib.readthedocs.io/en/stable/parallel.html#thread-based-parallelism-vs-process-based-parallelism
"""

import numpy as np
from joblib import Parallel, cpu_count, delayed


def upload(*arrays):
    return tuple(np.asarray(x, np.float32, order="C") for x in arrays)


def multiply(a, b, out=None):
    out = np.empty_like(a) if out is None else out
    if not (a.shape == b.shape == out.shape and a.dtype == b.dtype == out.dtype == np.float32):
        raise ValueError(
            f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}"
            f" into {out.dtype} {out.shape}"
        )
    # Slices along the first axis are views of the same memory. Threads, not processes: they share it, nothing is
    # copied, and NumPy releases the GIL while it multiplies, so that all of them run.
    slices = zip(*(np.array_split(np.atleast_1d(x), cpu_count()) for x in (a, b, out)), strict=True)
    Parallel(n_jobs=-1, require="sharedmem")(delayed(np.multiply)(x, y, out=z) for x, y, z in slices)
    return out


def wait(c):
    pass  # Parallel returns when all its threads are done


def download(c):
    return c


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 1_000_003), np.float32)
    c = download(multiply(*upload(a, b)))
    np.testing.assert_array_equal(c, a * b)
    print("multiply, joblib: 1,000,003 elements, all right")
