"""Norm of an array in joblib: NumPy on every core of the CPU, one thread each.

Framework: joblib
Runs on: CPU
Install: pip install joblib numpy
Follows: https://joblib.readthedocs.io/en/stable/parallel.html#thread-based-parallelism-vs-process-based-parallelism
Engine: joblib, threads
"""

import numpy as np
from joblib import Parallel, cpu_count, delayed

BLOCK = 2**16  # elements; a block stays in a core's cache


def upload(*arrays):
    return tuple(np.asarray(x, np.float32, order="C") for x in arrays)


def part_norm(part):
    # BLAS adds in float32, which of more squares would lose too much.
    norms = [np.linalg.norm(part[i : i + BLOCK]) for i in range(0, part.size, BLOCK)]
    return np.linalg.norm(np.array(norms, np.float32))


def norm(x):
    if x.dtype != np.float32:
        raise ValueError(f"norm takes a float32 array, not {x.dtype} {x.shape}")
    # Slices are views of the same memory. Threads, not processes: they share it, nothing is copied, and NumPy releases
    # the GIL while BLAS adds, so that all of them run.
    parts = np.array_split(x.reshape(-1), cpu_count())
    return part_norm(np.array(Parallel(n_jobs=-1, require="sharedmem")(delayed(part_norm)(part) for part in parts)))


def wait(norm):
    pass  # Parallel returns when all its threads are done


def download(norm):
    return norm


if __name__ == "__main__":
    x = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    result = download(norm(*upload(x)))
    np.testing.assert_allclose(result, np.linalg.norm(x.astype(np.float64)), rtol=1e-6)
    print("norm, joblib: 1,000,003 elements, all right")
