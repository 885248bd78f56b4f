"""Mean of a subset of random samples in joblib, tuned, on every GPU: one thread each.

Framework: joblib
Runs on: every NVIDIA GPU
Install: pip install joblib "cupy-cuda13x[ctk]"
Engine: joblib, threads
Math: float64, but the logarithm, sine and cosine are polynomials of our own, right to about one rounding

The samples are those of with_cupy_tuned.py, which a counter defines: each GPU makes the rows of its part, and they do
not depend on the number of GPUs, tasks or processes. Threads: a launch and a wait release the GIL quickly, and nothing
is pickled. On more than one GPU, a call takes 10 ms at least, because joblib looks for results only that often:
with_cupy_threads_tuned.py has no such delay. The file is long because each GPU's work is spelled out: its part of the
rows, its launch, and the sum of what comes back.
"""

from operator import index
from pathlib import Path

import cupy as cp
import numpy as np
from joblib import Parallel, delayed

KERNEL = (Path(__file__).parents[2] / "kernels" / "random_subset_mean_tuned.cu").read_text()
BLOCKS, THREADS = 2**16, 128  # at most; below that, one block per row: the last to end leave little of the GPU idle
GPUS = cp.cuda.runtime.getDeviceCount()


def share(gpu, first, end, columns, seed):
    """The sum of the subset's samples, as normal(0, 1), in the rows from first, an even one, to end."""
    blocks = min(BLOCKS, (end - first + 1) // 2)
    if blocks == 0:  # more GPUs than rows
        return 0.0
    with cp.cuda.Device(gpu):
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
    count = ((rows + 1) // 2) * ((columns + 1) // 2)
    sums = Parallel(n_jobs=GPUS, require="sharedmem")(
        delayed(share)(gpu, *part, columns, seed) for gpu, part in enumerate(parts(rows, GPUS))
    )
    return 11 + sum(sums) / count if count else np.nan


def wait(mean):
    pass  # Parallel returns when all tasks are done


def download(mean):
    return float(mean)


if __name__ == "__main__":
    mean = download(random_subset_mean(4_000, 4_000))
    assert abs(mean - 11) < 6 / 2_000, mean  # six standard errors of 2,000 × 2,000 samples
    print(f"random_subset_mean, joblib and CuPy, tuned, on {GPUS} GPUs: 4,000 × 4,000 samples, all right")
