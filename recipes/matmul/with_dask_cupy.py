"""Multiply two matrices in Dask: chunks of CuPy arrays, multiplied in pairs with cuBLAS on one GPU.

Framework: Dask
Runs on: NVIDIA GPU
Install: pip install "dask[complete]" "cupy-cuda13x[ctk]"
Follows: https://docs.dask.org/en/stable/gpu.html
"""

import cupy as cp
import dask.array as da
import numpy as np

# Large chunks, not the usual 128 MiB: they keep the GPU busy, and Dask spends about 0.1 ms on each task.
CHUNK = "1 GiB"


def upload(*arrays):
    # name=False: otherwise Dask hashes every byte, to recognise an array that it has seen before.
    arrays = (np.asarray(x, np.float32, order="C") for x in arrays)
    host = (da.from_array(x, CHUNK if x.size else x.shape, name=False) for x in arrays)
    # blocking: a page-locked array would still be read later, when the caller may have filled it anew.
    return tuple(x.map_blocks(cp.asarray, blocking=True).persist(scheduler="single-threaded") for x in host)


def matmul(a, b):
    if not (a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0] and a.dtype == b.dtype == np.float32):
        raise ValueError(f"matmul takes float32 arrays of M×K and K×N, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    return (a @ b).persist(scheduler="single-threaded")


def wait(c):
    cp.cuda.get_current_stream().synchronize()


def download(c):
    return c.map_blocks(cp.asnumpy).compute(scheduler="single-threaded")


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 200, 200), np.float32)
    c = download(matmul(*upload(a, b)))
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=0, atol=1e-4)
    print("matmul, Dask with CuPy: 200×200×200, all right")
