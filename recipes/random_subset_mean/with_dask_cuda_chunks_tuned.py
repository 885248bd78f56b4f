"""Mean of a subset of random samples in Dask, tuned: chunks of CuPy arrays by cuRAND's Philox, on every GPU.

Framework: Dask
Runs on: every NVIDIA GPU
Install: pip install "dask-cuda[cu13]" "cupy-cuda13x[ctk]" rmm-cu13
Engine: Dask, futures
Samples: CuPy's Philox, a stream per chunk

Dask takes longer over a task than a GPU over its work: so there is one task per chunk, all tasks are sent at once, and
all sums are added in one step. Philox starts faster than the XORWOW that da.random would take. No two chunks share
samples: seeds that repeat another's are left out. The file is long because Dask leaves all this to the caller;
with_dask_cuda.py is what Dask does by itself.
"""

from contextlib import contextmanager, nullcontext
from operator import index
from uuid import uuid4

import cupy as cp
import dask
import dask.array as da
import distributed
import numpy as np
from dask_cuda import LocalCUDACluster


@contextmanager
def engine(address=None):
    """One worker per GPU of this machine; or those of the scheduler at this address, one GPU each."""
    # Before anything here uses CUDA. This process never does: it would take memory of a worker's GPU.
    with dask.config.set({"distributed.scheduler.worker-saturation": "inf"}):  # all tasks at once: else one per message
        start = LocalCUDACluster(dashboard_address="127.0.0.1:0") if address is None else nullcontext(address)
    with start as cluster, distributed.Client(cluster):
        yield


def left_out(seed, count):
    """Of the numbers 0, 1, … for that many chunks, those whose seed, 32 bits of a SeedSequence, repeats another's."""
    seen, repeats = set(), []
    while len(seen) < count:
        number = len(seen) + len(repeats)
        bits = np.random.SeedSequence(seed, spawn_key=(number,)).generate_state(1)[0]
        if bits in seen:
            repeats.append(number)
        seen.add(bits)
    return repeats


def samples(seed, repeats, block_info):
    """normal(10, 1) of one chunk. Dask sends a function of a module by name, a nested one each time with its code."""
    chunk = block_info[None]
    number = int(np.ravel_multi_index(chunk["chunk-location"], chunk["num-chunks"]))
    for repeat in repeats:  # in order: each number that is left out before a chunk's own moves that on by one
        number += repeat <= number
    # da.random starts an XORWOW for each chunk, and in the client too; CuPy's Generator has no normal(10, 1).
    sequence = np.random.SeedSequence(seed, spawn_key=(number,))
    x = cp.random.Generator(cp.random.Philox4x3210(sequence)).standard_normal(chunk["chunk-shape"])
    x += 10
    return x


def subset(x, block_info):
    (row, _), (column, _) = block_info[0]["array-location"]
    return x[row % 2 :: 2, column % 2 :: 2] + 1


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    rows, columns, chunk, seed = map(index, (rows, columns, chunk, seed))  # of NumPy's integers, products may not fit
    if rows < 0 or columns < 0 or chunk < 1:
        raise ValueError(f"random_subset_mean takes chunks of 1 or more, not {rows} × {columns} in chunks of {chunk}")
    if not (rows and columns):
        return distributed.default_client().compute(da.from_array(np.array(np.nan)))
    chunks = da.core.normalize_chunks(chunk, (rows, columns))
    repeats = left_out(seed, len(chunks[0]) * len(chunks[1]))
    halves = tuple(tuple(np.diff((np.cumsum((0, *sizes)) + 1) // 2).tolist()) for sizes in chunks)
    meta = np.empty((0, 0))
    x = da.map_blocks(samples, seed=seed, repeats=repeats, chunks=chunks, meta=meta)
    # Functions of chunks only: Dask makes one task of all work on a chunk, which x[::2, ::2] would split.
    x = x.map_blocks(subset, chunks=halves, meta=meta)
    mean = x.mean(split_every=dict(enumerate(x.numblocks)))  # in one step, not in rounds of four
    # To the host on the worker. A name of its own, or Dask answers a second call with the result of the first.
    mean = mean.map_blocks(cp.asnumpy, name=f"random_subset_mean-{uuid4()}")
    # Fusing afterwards would leave a second task for each chunk, which gives it its old name.
    with dask.config.set({"optimization.fuse.active": False}):
        return distributed.default_client().compute(mean)


def wait(mean):
    distributed.wait(mean)


def download(mean):
    return float(mean.result())


if __name__ == "__main__":
    with engine():
        mean = download(random_subset_mean(4_000, 4_000, chunk=1_000))
    assert abs(mean - 11) < 6 / 2_000, mean  # six standard errors of 2,000 × 2,000 samples
    print("random_subset_mean, Dask with CuPy's chunks, tuned: 4,000 × 4,000 samples, all right")
