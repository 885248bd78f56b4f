"""Mean of a subset of random samples in Dask: chunks of CuPy arrays by cuRAND's Philox, shared out among the GPUs.

Framework: Dask
Runs on: every NVIDIA GPU
Install: pip install "dask-cuda[cu13]" "cupy-cuda13x[ctk]" rmm-cu13
"""

import itertools
from contextlib import contextmanager
from uuid import uuid4

import cupy as cp
import dask.array as da
import distributed
import numpy as np
from dask_cuda import LocalCUDACluster


@contextmanager
def engine():
    # Before anything here uses CUDA. This process never does: it would hold memory of a worker's GPU.
    with (
        LocalCUDACluster(dashboard_address="127.0.0.1:0") as cluster,
        distributed.Client(cluster, direct_to_workers=True),  # else all data goes through the scheduler
    ):
        yield


def streams(seed, shape):
    """A number for each chunk. CuPy takes 32 bits of a SeedSequence: numbers whose 32 repeat are left out."""
    distinct, numbers = {}, itertools.count()
    while len(distinct) < shape[0] * shape[1]:
        number = next(numbers)
        distinct.setdefault(np.random.SeedSequence(seed, spawn_key=(number,)).generate_state(1)[0], number)
    return np.array(list(distinct.values())).reshape(shape)


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    if rows < 0 or columns < 0 or chunk < 1:
        raise ValueError(f"random_subset_mean takes chunks of 1 or more, not {rows} × {columns} in chunks of {chunk}")
    if rows * columns == 0:
        return da.from_array(np.array(np.nan))

    def samples(stream, block_info):
        # da.random makes a RandomState for each chunk, which is slow; CuPy's Generator has no normal(10, 1).
        sequence = np.random.SeedSequence(seed, spawn_key=(int(stream[0, 0]),))
        x = cp.random.Generator(cp.random.Philox4x3210(sequence)).standard_normal(block_info[None]["chunk-shape"])
        x += 10
        return x

    chunks = da.core.normalize_chunks(chunk, (rows, columns))
    numbers = da.from_array(streams(seed, [len(sizes) for sizes in chunks]), chunks=1)
    x = numbers.map_blocks(samples, chunks=chunks, meta=np.empty((0, 0)))
    # A name of its own: else Dask answers a second call with what it keeps of the first.
    return (x[::2, ::2] + 1).mean().map_blocks(lambda chunk: chunk, name=f"random_subset_mean-{uuid4()}").persist()


def wait(mean):
    distributed.wait(mean)  # returns when the work is in the GPUs' queues
    distributed.default_client().run(lambda: cp.cuda.Device().synchronize())


def download(mean):
    return float(mean.map_blocks(cp.asnumpy).compute())  # on the worker


if __name__ == "__main__":
    with engine():
        mean = download(random_subset_mean(4_000, 4_000, chunk=1_000))
    assert abs(mean - 11) < 6 / 2_000, mean  # six standard errors of 2,000 × 2,000 samples
    print("random_subset_mean, Dask with CuPy on every GPU: 4,000 × 4,000 samples, all right")
