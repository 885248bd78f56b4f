"""Add one to an array in Dask, chunks of CuPy arrays on one GPU: a new array, since Dask has no in-place.

Framework: Dask
Runs on: NVIDIA GPU
Install: pip install "dask[complete]" "cupy-cuda13x[ctk]"
Follows: https://docs.dask.org/en/stable/gpu.html
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


def increment(a):
    if a.dtype != np.float32:
        raise ValueError(f"increment takes a float32 array, not {a.dtype} {a.shape}")
    return (a + 1).persist(scheduler="single-threaded")


def wait(a):
    cp.cuda.get_current_stream().synchronize()


def download(a):
    return a.map_blocks(cp.asnumpy).compute(scheduler="single-threaded")


if __name__ == "__main__":
    a = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    b = download(increment(*upload(a)))
    np.testing.assert_array_equal(b, a + 1)
    print("increment, Dask with CuPy: 1,000,003 elements, all right")
