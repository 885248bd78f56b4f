"""Mean of every other row and column, plus one, in Dask: a CuPy chunk on each GPU, by dask-cuda's workers.

Framework: Dask
Runs on: every NVIDIA GPU
Install: pip install "dask-cuda[cu13]" "cupy-cuda13x[ctk]" rmm-cu13
Follows: https://docs.dask.org/en/stable/gpu.html
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
    # Before anything here uses CUDA. This process never does: it would take memory of a worker's GPU.
    with (
        LocalCUDACluster(dashboard_address="127.0.0.1:0") as cluster,
        distributed.Client(cluster, direct_to_workers=True),  # else all data goes through the scheduler
    ):
        yield


def upload(*arrays):
    return tuple(spread(np.asarray(x, np.float64, order="C")) for x in arrays)


def spread(x):
    client = distributed.default_client()
    workers = list(client.nthreads())
    axis = int(np.argmax(x.shape)) if x.ndim else 0  # the longest
    parts = np.array_split(x, min(len(workers), x.shape[axis]), axis) if x.size > 1 else [x]
    # Scattered: Dask warns of large data in a graph. hash=False: else it hashes every byte.
    futures = [
        client.submit(cp.asarray, client.scatter(p, workers=[w], hash=False), workers=[w], pure=False)
        for p, w in zip(parts, workers, strict=False)
    ]
    meta = np.empty((0,) * x.ndim, x.dtype)  # not a CuPy one: it would be on a GPU, from this process
    chunks = [da.from_delayed(f, p.shape, meta=meta) for f, p in zip(futures, parts, strict=True)]
    return (da.concatenate(chunks, axis) if len(chunks) > 1 else chunks[0]).persist()


def subset_mean(x):
    if x.ndim != 2 or x.dtype != np.float64:
        raise ValueError(f"subset_mean takes a two-dimensional float64 array, not {x.dtype} {x.shape}")
    if x.size == 0:  # NumPy warns
        return da.from_array(np.array(np.nan))
    # A name of its own, or Dask answers a second call with the result of the first.
    return (x[::2, ::2] + 1).mean().map_blocks(lambda chunk: chunk, name=f"subset_mean-{uuid4()}").persist()


def wait(mean):
    distributed.wait(mean)  # returns when the work is in the GPUs' queues
    distributed.default_client().run(lambda: cp.cuda.Device().synchronize())


def download(mean):
    return float(mean.map_blocks(cp.asnumpy).compute())  # on the worker


if __name__ == "__main__":
    x = np.random.default_rng(0).normal(10, 1, (333, 1_001))
    with engine():
        mean = download(subset_mean(*upload(x)))
    np.testing.assert_allclose(mean, (x[::2, ::2] + 1).mean(), rtol=1e-13)
    print("subset_mean, Dask with CuPy on every GPU: 333 × 1,001 elements, all right")
