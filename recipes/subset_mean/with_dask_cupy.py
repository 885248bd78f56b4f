"""Mean of every other row and column, plus one, in Dask: chunks of CuPy arrays on one GPU, one after the other.

Framework: Dask
Runs on: NVIDIA GPU
Install: pip install "dask[complete]" "cupy-cuda13x[ctk]"
Follows: https://docs.dask.org/en/stable/gpu.html
"""

import cupy as cp
import dask.array as da
import numpy as np

# A GPU needs 0.1 ms for a chunk of Dask's usual 128 MiB, and Dask needs as long for a task: so, few large chunks.
CHUNK = "1 GiB"


def upload(*arrays):
    # name=False: otherwise Dask hashes every byte, to recognise an array that it has seen before.
    arrays = (np.asarray(x, np.float64, order="C") for x in arrays)
    host = (da.from_array(x, CHUNK if x.size else x.shape, name=False) for x in arrays)
    # blocking: a page-locked array would still be read later, when the caller may have filled it anew.
    return tuple(x.map_blocks(cp.asarray, blocking=True).persist(scheduler="single-threaded") for x in host)


def subset_mean(x):
    if x.ndim != 2 or x.dtype != np.float64:
        raise ValueError(f"subset_mean takes a two-dimensional float64 array, not {x.dtype} {x.shape}")
    if x.size == 0:  # NumPy warns
        return da.from_array(np.array(np.nan))
    return (x[::2, ::2] + 1).mean().persist(scheduler="single-threaded")


def wait(mean):
    cp.cuda.get_current_stream().synchronize()


def download(mean):
    return float(mean.compute(scheduler="single-threaded"))


if __name__ == "__main__":
    x = np.random.default_rng(0).normal(10, 1, (333, 1_001))
    mean = download(subset_mean(*upload(x)))
    np.testing.assert_allclose(mean, (x[::2, ::2] + 1).mean(), rtol=1e-13)
    print("subset_mean, Dask with CuPy: 333 × 1,001 elements, all right")
