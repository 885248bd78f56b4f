"""Multiply two matrices in Dask: rows of one and columns of the other on each GPU, with one dask-cuda worker per GPU.

Framework: Dask
Runs on: every NVIDIA GPU
Install: pip install "dask-cuda[cu13]" "cupy-cuda13x[ctk]" rmm-cu13
Follows: https://docs.rapids.ai/api/dask-cuda/stable/quickstart/
"""

from contextlib import contextmanager
from uuid import uuid4

import cupy as cp
import dask.array as da
import distributed
import numpy as np
from dask_cuda import LocalCUDACluster


@contextmanager
def engine():
    # Started before anything uses CUDA. This process never does: it would take memory of a worker's GPU.
    with (
        LocalCUDACluster(dashboard_address="127.0.0.1:0") as cluster,
        distributed.Client(cluster, direct_to_workers=True),  # otherwise all data goes through the scheduler
    ):
        yield


def upload(*arrays):
    # a is split by rows, b by columns: each pair of chunks gives one chunk of the product, with nothing to add up.
    return tuple(spread(np.asarray(x, np.float32, order="C"), i % 2) for i, x in enumerate(arrays))


def spread(x, axis):
    client = distributed.default_client()
    workers = sorted(client.nthreads())
    parts = np.array_split(x, min(len(workers), x.shape[axis]), axis) if x.ndim == 2 and x.size else [x]
    # Scattered, because Dask warns about large data in a graph. hash=False: otherwise it hashes every byte.
    futures = [
        client.submit(cp.asarray, client.scatter(p, workers=[w], hash=False), workers=[w], pure=False)
        for p, w in zip(parts, workers, strict=False)
    ]
    meta = np.empty((0,) * x.ndim, x.dtype)  # not a CuPy array: this process would then use a GPU
    chunks = [da.from_delayed(f, p.shape, meta=meta) for f, p in zip(futures, parts, strict=True)]
    return (da.concatenate(chunks, axis) if len(chunks) > 1 else chunks[0]).persist()


def matmul(a, b):
    if not (a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0] and a.dtype == b.dtype == np.float32):
        raise ValueError(f"matmul takes float32 arrays of M×K and K×N, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    # A name of its own: otherwise Dask answers a second call with the result that it keeps of the first.
    return (a @ b).map_blocks(lambda chunk: chunk, name=f"matmul-{uuid4()}").persist()


def wait(c):
    distributed.wait(c)  # returns when the work is in the GPUs' queues
    distributed.default_client().run(lambda: cp.cuda.Device().synchronize())


def download(c):
    return c.map_blocks(cp.asnumpy).compute()  # on the workers


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 200, 200), np.float32)
    with engine():
        c = download(matmul(*upload(a, b)))
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=0, atol=1e-4)
    print("matmul, Dask with CuPy on every GPU: 200×200×200, all right")
