"""Multiply two arrays in Dask: a CuPy chunk on each GPU, with dask-cuda's worker process for each.

Framework: Dask
Runs on: every NVIDIA GPU
Install: pip install "dask-cuda[cu13]" "cupy-cuda13x[ctk]" rmm-cu13
Follows: https://docs.rapids.ai/api/dask-cuda/stable/quickstart/
Math: float32, denormals are zero (CuPy compiles its kernels with -ftz=true)
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
    # Start it before anything here uses CUDA. This process never does, or it would hold memory of a worker's GPU.
    with (
        LocalCUDACluster(dashboard_address="127.0.0.1:0") as cluster,
        distributed.Client(cluster, direct_to_workers=True),  # or all data goes through the scheduler
    ):
        yield


def upload(*arrays):
    return tuple(spread(np.asarray(x, np.float32, order="C")) for x in arrays)


def spread(x):
    client = distributed.default_client()
    workers = sorted(client.nthreads())  # always in one order: chunks that meet in an operation are on one GPU
    axis = int(np.argmax(x.shape)) if x.ndim else 0  # the longest
    parts = np.array_split(x, min(len(workers), x.shape[axis]), axis) if x.size > 1 else [x]
    # Scattered, as Dask warns of large data in a graph; hash=False, or it hashes every byte.
    futures = [
        client.submit(cp.asarray, client.scatter(p, workers=[w], hash=False), workers=[w], pure=False)
        for p, w in zip(parts, workers, strict=False)
    ]
    meta = np.empty((0,) * x.ndim, x.dtype)  # not a CuPy one: this process would use a GPU
    chunks = [da.from_delayed(f, p.shape, meta=meta) for f, p in zip(futures, parts, strict=True)]
    return (da.concatenate(chunks, axis) if len(chunks) > 1 else chunks[0]).persist()


def multiply(a, b):
    if not (a.shape == b.shape and a.dtype == b.dtype == np.float32):  # Dask would broadcast
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    # A name of its own, or Dask answers a second call with the result of the first.
    return (a * b).map_blocks(lambda chunk: chunk, name=f"multiply-{uuid4()}").persist()


def wait(c):
    distributed.wait(c)  # returns when the work is in the GPUs' queues
    distributed.default_client().run(lambda: cp.cuda.Device().synchronize())


def download(c):
    return c.map_blocks(cp.asnumpy).compute()  # on the workers


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 1_000_003), np.float32)
    with engine():
        c = download(multiply(*upload(a, b)))
    np.testing.assert_array_equal(c, a * b)
    print("multiply, Dask with CuPy on every GPU: 1,000,003 elements, all right")
