"""Mean of a subset of random samples in Ray: CuPy on every GPU, one actor each.

Framework: Ray
Runs on: every NVIDIA GPU
Install: pip install ray "cupy-cuda13x[ctk]"
Follows: https://docs.ray.io/en/latest/ray-core/scheduling/accelerators.html
Engine: Ray, actors

Each GPU has a generator of its own, and CuPy takes 32 bits for its seed: of n GPUs, two make the same samples with a
probability of n (n - 1) / 2 / 2**32. That is 6.5e-9 for 8 GPUs.
"""

from contextlib import contextmanager, nullcontext
from itertools import islice, product
from operator import index
from unittest import mock

import cupy as cp
import ray

workers = []


@contextmanager
def engine(address="local"):
    """Ray on this machine; or the one that runs at this address."""
    # On Linux, where other machines may join, Ray listens on all addresses; elsewhere on 127.0.0.1 only. No argument of
    # ray.init changes that, and the environment variable behind this constant is read when ray is imported.
    alone = mock.patch("ray._private.ray_constants.ENABLE_RAY_CLUSTER", False)
    with alone if address == "local" else nullcontext():
        ray.init(address=address, include_dashboard=False, logging_level="ERROR")
    try:
        workers.extend(Worker.remote() for _ in range(int(ray.cluster_resources().get("GPU", 0))))
        yield
    finally:
        workers.clear()
        ray.shutdown()


@ray.remote(num_cpus=0, num_gpus=1)
class Worker:
    """Sees one GPU. An actor, as a task would have to start CUDA each time."""

    def share(self, gpu, gpus, rows, columns, chunk, seed):
        """What one GPU adds to the mean: it makes every gpus-th chunk."""
        rng = cp.random.default_rng([gpu, seed])  # one per GPU: each chunk goes on where the one before it ended
        total = cp.zeros(())  # on the device: nothing waits for a chunk
        for row, column in islice(product(range(0, rows, chunk), range(0, columns, chunk)), gpu, None, gpus):
            x = rng.standard_normal((min(chunk, rows - row), min(chunk, columns - column)))
            x += 10
            total += (x[row % 2 :: 2, column % 2 :: 2] + 1).sum()
            del x  # before the next chunk is made
        count = ((rows + 1) // 2) * ((columns + 1) // 2)
        return float(total / count)  # 0 / 0 is NaN on the device


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    """Each GPU's share of the mean: they add up to it. Another number of GPUs makes other samples."""
    rows, columns, chunk, seed = map(index, (rows, columns, chunk, seed))  # of NumPy's integers, products may not fit
    if rows < 0 or columns < 0 or chunk < 1:
        raise ValueError(f"random_subset_mean takes chunks of 1 or more, not {rows} × {columns} in chunks of {chunk}")
    if not workers:
        raise RuntimeError("random_subset_mean works on the GPUs that engine() has found, and there are none")
    arguments = len(workers), rows, columns, chunk, seed
    return [worker.share.remote(gpu, *arguments) for gpu, worker in enumerate(workers)]


def wait(shares):
    ray.wait(shares, num_returns=len(shares))


def download(shares):
    return sum(ray.get(shares))


if __name__ == "__main__":
    with engine():
        mean = download(random_subset_mean(4_000, 4_000, chunk=1_000))
    assert abs(mean - 11) < 6 / 2_000, mean  # six standard errors of 2,000 × 2,000 samples
    print("random_subset_mean, Ray and CuPy: 4,000 × 4,000 samples, all right")
