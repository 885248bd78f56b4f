"""Multiply two arrays in Dask: chunks of CuPy arrays on one GPU, one after the other.

Framework: Dask
Runs on: NVIDIA GPU
Install: pip install "dask[complete]" "cupy-cuda13x[ctk]"
Follows: https://docs.dask.org/en/stable/gpu.html
Math: float32, denormals are zero (CuPy compiles its kernels with -ftz=true)
"""

import cupy as cp
import dask.array as da
import numpy as np

# A GPU takes 0.1 ms for a chunk of Dask's usual 128 MiB, and Dask takes as long for a task: fewer and larger chunks.
CHUNK = "1 GiB"


def upload(*arrays):
    # name=False, or Dask hashes every byte, to recognise an array that it has seen before.
    arrays = (np.asarray(x, np.float32, order="C") for x in arrays)
    host = (da.from_array(x, CHUNK if x.size else x.shape, name=False) for x in arrays)
    # blocking: a page-locked array would still be read later, when the caller may have filled it anew.
    return tuple(x.map_blocks(cp.asarray, blocking=True).persist(scheduler="single-threaded") for x in host)


def multiply(a, b):
    if not (a.shape == b.shape and a.dtype == b.dtype == np.float32):  # Dask would broadcast
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    return (a * b).persist(scheduler="single-threaded")  # one GPU does not get faster with threads


def wait(c):
    cp.cuda.get_current_stream().synchronize()


def download(c):
    return c.map_blocks(cp.asnumpy).compute(scheduler="single-threaded")


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 1_000_003), np.float32)
    c = download(multiply(*upload(a, b)))
    np.testing.assert_array_equal(c, a * b)
    print("multiply, Dask with CuPy: 1,000,003 elements, all right")
