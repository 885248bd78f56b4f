"""Norm of an array in Dask: a CuPy chunk on each GPU, by dask-cuda's workers.

Framework: Dask
Runs on: every NVIDIA GPU
Install: pip install "dask-cuda[cu13]" "cupy-cuda13x[ctk]" rmm-cu13
Follows: https://docs.rapids.ai/api/dask-cuda/stable/quickstart/
Follows: https://docs.dask.org/en/stable/generated/dask.array.linalg.norm.html
Engine: Dask, futures
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
    workers = list(client.nthreads())
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


def norm(x):
    if x.dtype != np.float32:
        raise ValueError(f"norm takes a float32 array, not {x.dtype} {x.shape}")
    result = da.linalg.norm(x.ravel())  # it takes two axes at most
    # A name of its own, or Dask answers a second call with the result of the first.
    return result.map_blocks(lambda chunk: chunk, name=f"norm-{uuid4()}").persist()


def wait(norm):
    distributed.wait(norm)  # returns when the work is in the GPUs' queues
    distributed.default_client().run(lambda: cp.cuda.Device().synchronize())


def download(norm):
    return norm.map_blocks(cp.asnumpy).compute()  # on the worker


if __name__ == "__main__":
    x = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    with engine():
        result = download(norm(*upload(x)))
    np.testing.assert_allclose(result, np.linalg.norm(x.astype(np.float64)), rtol=1e-6)
    print("norm, Dask with CuPy on every GPU: 1,000,003 elements, all right")
