"""Mean of a subset of random samples in joblib: CuPy on every GPU, one thread each.

Framework: joblib
Runs on: every NVIDIA GPU
Install: pip install joblib "cupy-cuda13x[ctk]"
Follows: https://joblib.readthedocs.io/en/stable/parallel.html
Engine: joblib, threads

Each GPU has a generator of its own, and CuPy takes 32 bits for its seed: of n GPUs, two make the same samples with a
probability of n (n - 1) / 2 / 2**32. That is 6.5e-9 for 8 GPUs. On more than one GPU, a call takes 10 ms at least:
joblib looks for results only that often.
"""

from itertools import islice, product
from operator import index

import cupy as cp
from joblib import Parallel, delayed

GPUS = cp.cuda.runtime.getDeviceCount()


def share(gpu, rows, columns, chunk, seed):
    """What one GPU adds to the mean: it makes every GPUS-th chunk."""
    with cp.cuda.Device(gpu):
        rng = cp.random.default_rng([gpu, seed])  # one per GPU: each chunk goes on where the one before it ended
        total = cp.zeros(())  # on the device: nothing waits for a chunk
        for row, column in islice(product(range(0, rows, chunk), range(0, columns, chunk)), gpu, None, GPUS):
            x = rng.standard_normal((min(chunk, rows - row), min(chunk, columns - column)))
            x += 10
            total += (x[row % 2 :: 2, column % 2 :: 2] + 1).sum()
            del x  # before the next chunk is made
        count = ((rows + 1) // 2) * ((columns + 1) // 2)
        return total / count  # 0 / 0 is NaN on the device


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    """Each GPU's share of the mean: they add up to it. Another number of GPUs makes other samples."""
    rows, columns, chunk, seed = map(index, (rows, columns, chunk, seed))  # of NumPy's integers, products may not fit
    if rows < 0 or columns < 0 or chunk < 1:
        raise ValueError(f"random_subset_mean takes chunks of 1 or more, not {rows} × {columns} in chunks of {chunk}")
    # Threads: each starts the work of its GPU, waits for nothing, and soon lets go of the GIL.
    return Parallel(n_jobs=GPUS, require="sharedmem")(
        delayed(share)(gpu, rows, columns, chunk, seed) for gpu in range(GPUS)
    )


def wait(shares):
    for share in shares:
        share.device.synchronize()


def download(shares):
    wait(shares)  # what is read here is read in a stream of the caller's, and the work was in those of other threads
    return sum(float(share) for share in shares)


if __name__ == "__main__":
    mean = download(random_subset_mean(4_000, 4_000, chunk=1_000))
    assert abs(mean - 11) < 6 / 2_000, mean  # six standard errors of 2,000 × 2,000 samples
    print(f"random_subset_mean, joblib and CuPy on {GPUS} GPUs: 4,000 × 4,000 samples, all right")
