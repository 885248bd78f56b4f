"""Mean of a subset of random samples in Ray, tuned, on every GPU: one task each.

Framework: Ray
Runs on: every NVIDIA GPU
Install: pip install ray "cupy-cuda13x[ctk]"
Engine: Ray, tasks
Math: float64, but the logarithm, sine and cosine are polynomials of our own, right to about one rounding

The samples are those of with_cupy_tuned.py, which a counter defines: each GPU makes the rows of its part, and they do
not depend on the number of GPUs, tasks or processes. Ray repeats the task of a worker that is lost. The file is long
because each GPU's work is spelled out: its part of the rows, its launch, and the sum of what comes back.
"""

import os
from contextlib import contextmanager, nullcontext
from operator import index
from pathlib import Path
from unittest import mock

import cupy as cp
import numpy as np
import ray

KERNEL = (Path(__file__).parents[2] / "kernels" / "random_subset_mean_tuned.cu").read_text()
BLOCKS, THREADS = 2**16, 128  # at most; below that, one block per row: the last to end leave little of the GPU idle


@contextmanager
def engine(address="local"):
    """Ray on this machine; or the one that runs at this address."""
    # On Linux, where other machines may join, Ray listens on all addresses; elsewhere on 127.0.0.1 only. No argument of
    # ray.init changes that, and the environment variable behind this constant is read when ray is imported.
    alone = mock.patch("ray._private.ray_constants.ENABLE_RAY_CLUSTER", False)
    with alone if address == "local" else nullcontext():
        ray.init(address=address, include_dashboard=False, logging_level="ERROR")
    try:
        yield
    finally:
        ray.shutdown()


# Ray would end a process after each task on a GPU (max_calls), and start CUDA anew for the next. One that is kept may
# get another GPU with its next task, too late for CUDA_VISIBLE_DEVICES: so it sees all of them, and is told which.
@ray.remote(
    num_cpus=0,
    num_gpus=1,
    max_calls=0,
    runtime_env={"env_vars": {"RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES": "1"}},
)
def share(first, end, columns, seed):
    """The sum of the subset's samples, as normal(0, 1), in the rows from first, an even one, to end."""
    blocks = min(BLOCKS, (end - first + 1) // 2)
    if blocks == 0:  # more GPUs than rows
        return 0.0
    # If CUDA_VISIBLE_DEVICES is set, Ray answers with one of its entries, and CUDA counts them from 0.
    gpu, visible = str(ray.get_gpu_ids()[0]), os.environ.get("CUDA_VISIBLE_DEVICES")
    with cp.cuda.Device(visible.split(",").index(gpu) if visible else int(gpu)):
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
    gpus = int(ray.cluster_resources().get("GPU", 0))
    if not gpus:
        raise RuntimeError("random_subset_mean works on the GPUs that engine() has found, and there are none")
    return [share.remote(*part, columns, seed) for part in parts(rows, gpus)], count


def wait(result):
    sums, _ = result
    ray.wait(sums, num_returns=len(sums))


def download(result):
    sums, count = result
    return 11 + sum(ray.get(sums)) / count if count else np.nan


if __name__ == "__main__":
    with engine():
        mean = download(random_subset_mean(4_000, 4_000))
    assert abs(mean - 11) < 6 / 2_000, mean  # six standard errors of 2,000 × 2,000 samples
    print("random_subset_mean, Ray's tasks and CuPy, tuned: 4,000 × 4,000 samples, all right")
