"""Norm of an array in Dask: chunks of CuPy arrays on one GPU, one after the other.

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


def norm(x):
    if x.dtype != np.float32:
        raise ValueError(f"norm takes a float32 array, not {x.dtype} {x.shape}")
    return da.linalg.norm(x.ravel()).persist(scheduler="single-threaded")  # ravel: it takes two axes at most


def wait(norm):
    cp.cuda.get_current_stream().synchronize()


def download(norm):
    return cp.asnumpy(norm.compute(scheduler="single-threaded"))


if __name__ == "__main__":
    x = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    result = download(norm(*upload(x)))
    np.testing.assert_allclose(result, np.linalg.norm(x.astype(np.float64)), rtol=1e-6)
    print("norm, Dask with CuPy: 1,000,003 elements, all right")
