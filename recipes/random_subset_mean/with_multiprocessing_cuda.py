"""Mean of a subset of random samples in multiprocessing: CuPy on every GPU, one process each.

Framework: multiprocessing
Runs on: every NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]"
Follows: https://docs.python.org/3/library/multiprocessing.html
Engine: multiprocessing, a pool per GPU

Each GPU has a generator of its own, and CuPy takes 32 bits for its seed: of n GPUs, two make the same samples with a
probability of n (n - 1) / 2 / 2**32. That is 6.5e-9 for 8 GPUs.
"""

import multiprocessing
from contextlib import ExitStack, contextmanager
from itertools import islice, product
from operator import index

import cupy as cp

pools = []  # one per GPU, of one process each, so that a task can be sent to a certain GPU


@contextmanager
def engine():
    context = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
    with ExitStack() as stack:
        gpus = range(cp.cuda.runtime.getDeviceCount())
        pools.extend([stack.enter_context(context.Pool(1, use, (gpu,))) for gpu in gpus])
        stack.callback(pools.clear)
        yield


def use(gpu):
    cp.cuda.Device(gpu).use()


def share(gpu, gpus, rows, columns, chunk, seed):
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
    if not pools:
        raise RuntimeError("random_subset_mean works on the GPUs that engine() has found, and there are none")
    arguments = len(pools), rows, columns, chunk, seed
    return [pool.apply_async(share, (gpu, *arguments)) for gpu, pool in enumerate(pools)]


def wait(shares):
    for share in shares:
        share.wait()


def download(shares):
    return sum(share.get() for share in shares)


def empty_round(n, payload=None):
    """n tasks that do nothing, each given the payload: what the engine takes by itself."""
    answers = [pools[i % len(pools)].apply_async(nothing, (payload,)) for i in range(n)]
    for answer in answers:
        answer.get()


def nothing(payload):
    pass


if __name__ == "__main__":
    with engine():
        mean = download(random_subset_mean(4_000, 4_000, chunk=1_000))
    assert abs(mean - 11) < 6 / 2_000, mean  # six standard errors of 2,000 × 2,000 samples
    print("random_subset_mean, multiprocessing and CuPy: 4,000 × 4,000 samples, all right")
