"""Mean of a subset of random samples in Dask, tuned, on every GPU: one task each.

Framework: Dask
Runs on: every NVIDIA GPU
Install: pip install "dask-cuda[cu13]" "cupy-cuda13x[ctk]" rmm-cu13
Engine: Dask, futures
Math: float64, but the logarithm, sine and cosine are polynomials of our own, right to about one rounding

The samples are those of with_cupy_tuned.py, which a counter defines: each GPU makes the rows of its part, and they do
not depend on the number of GPUs, tasks or processes. One task per GPU and the sum that comes back are all that Dask
moves. The task of a lost worker is done by another one. The file is long because each GPU's work is spelled out: its
part of the rows, its launch, and the sum of what comes back.
"""

from contextlib import contextmanager, nullcontext
from operator import index
from pathlib import Path

import cupy as cp
import distributed
import numpy as np
from dask_cuda import LocalCUDACluster

KERNEL = (Path(__file__).parents[2] / "kernels" / "random_subset_mean_tuned.cu").read_text()
BLOCKS, THREADS = 2**16, 128  # at most; below that, one block per row: the last to end leave little of the GPU idle

workers = []  # their addresses


@contextmanager
def engine(address=None):
    """One worker per GPU of this machine; or those of the scheduler at this address, one GPU each."""
    # Before anything here uses CUDA. This process never does: it would take memory of a worker's GPU.
    start = LocalCUDACluster(dashboard_address="127.0.0.1:0") if address is None else nullcontext(address)
    with start as cluster, distributed.Client(cluster) as client:
        workers.extend(client.scheduler_info(n_workers=-1)["workers"])
        try:
            yield
        finally:
            workers.clear()


def share(first, end, columns, seed):
    """The sum of the subset's samples, as normal(0, 1), in the rows from first, an even one, to end."""
    blocks = min(BLOCKS, (end - first + 1) // 2)
    if blocks == 0:  # more GPUs than rows
        return 0.0
    add_subset = cp.RawKernel(KERNEL, "add_subset")  # compiled once per process and GPU: CuPy keeps it
    partial = cp.empty(blocks)
    rows = np.int64(first), np.int64(end), np.int64(columns)
    add_subset((blocks,), (THREADS,), (*rows, np.uint64(seed), partial))
    return float(partial.sum())


def parts(rows, count):
    """[(first, end), …]: the rows cut into that many parts, which begin at even rows and differ by two rows at most."""
    pairs = (rows + 1) // 2
    cuts = [2 * (pairs * i // count) for i in range(count + 1)]
    return list(zip(cuts, cuts[1:], strict=False))


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    rows, columns, chunk, seed = map(index, (rows, columns, chunk, seed))  # of NumPy's integers, products may not fit
    if rows < 0 or columns < 0 or chunk < 1:  # chunk is not used, as nothing is stored
        raise ValueError(f"random_subset_mean takes chunks of 1 or more, not {rows} × {columns} in chunks of {chunk}")
    if not 0 <= seed < 2**64:
        raise ValueError(f"random_subset_mean takes seeds of 64 bits, not {seed}")
    if not workers:
        raise RuntimeError("random_subset_mean works on the GPUs that engine() has found, and there are none")
    count = ((rows + 1) // 2) * ((columns + 1) // 2)
    client = distributed.default_client()
    # Each on a worker of its own. Not pure, or Dask answers a second call with the result of the first.
    sums = [
        client.submit(share, *part, columns, seed, workers=[worker], allow_other_workers=True, pure=False)
        for worker, part in zip(workers, parts(rows, len(workers)), strict=True)
    ]
    return sums, count


def wait(result):
    sums, _ = result
    distributed.wait(sums)


def download(result):
    sums, count = result
    return 11 + sum(distributed.default_client().gather(sums)) / count if count else np.nan


if __name__ == "__main__":
    with engine():
        mean = download(random_subset_mean(4_000, 4_000))
    assert abs(mean - 11) < 6 / 2_000, mean  # six standard errors of 2,000 × 2,000 samples
    print("random_subset_mean, Dask and CuPy, tuned: 4,000 × 4,000 samples, all right")
