"""Mean of a subset of random samples in Dask: chunks of CuPy arrays by cuRAND's Philox, on one GPU.

Framework: Dask
Runs on: NVIDIA GPU
Install: pip install "dask[complete]" "cupy-cuda13x[ctk]"
"""

import itertools

import cupy as cp
import dask.array as da
import numpy as np


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
    return (x[::2, ::2] + 1).mean().persist(scheduler="single-threaded")


def wait(mean):
    cp.cuda.get_current_stream().synchronize()


def download(mean):
    return float(mean.compute(scheduler="single-threaded"))


if __name__ == "__main__":
    mean = download(random_subset_mean(4_000, 4_000, chunk=1_000))
    assert abs(mean - 11) < 6 / 2_000, mean  # six standard errors of 2,000 × 2,000 samples
    print("random_subset_mean, Dask with CuPy: 4,000 × 4,000 samples, all right")
