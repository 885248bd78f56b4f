"""Sum the arrays of all GPUs onto each of them in Dask: one worker per GPU, and arrays that go from worker to worker.

Framework: Dask
Runs on: every NVIDIA GPU
Install: pip install "dask-cuda[cu13]" "cupy-cuda13x[ctk]" rmm-cu13
Follows: https://docs.rapids.ai/api/dask-cuda/stable/quickstart/
Follows: https://distributed.dask.org/en/stable/locality.html
"""

from contextlib import contextmanager

import cupy as cp
import distributed
from dask_cuda import LocalCUDACluster


@contextmanager
def engine():
    """Yields a client. Before anything here uses CUDA: this process would take memory of a worker's GPU."""
    with LocalCUDACluster(dashboard_address="127.0.0.1:0") as cluster, distributed.Client(cluster) as client:
        yield client


def numbers(gpu, count):
    x = (cp.arange(count) % 1_000 + gpu).astype(cp.float32)
    cp.cuda.get_current_stream().synchronize()
    return x


def add_up(*arrays):
    total = arrays[0].copy()
    for x in arrays[1:]:
        total += x
    cp.cuda.get_current_stream().synchronize()  # a task ends when its result is there
    return total


def as_it_is(x):
    return x


def on_gpus(client, count):
    """On each GPU, so many float32: 0, 1, … 999, 0, … and the number of the GPU added."""
    workers = list(client.scheduler_info(n_workers=-1)["workers"])
    arrays = [client.submit(numbers, gpu, count, workers=[w], pure=False) for gpu, w in enumerate(workers)]
    distributed.wait(arrays)
    return client, workers, arrays


def all_reduce(state):
    """Returns when each GPU has the sum. The first worker fetches all arrays; the others fetch the sum."""
    client, workers, arrays = state
    total = client.submit(add_up, *arrays, workers=workers[:1], pure=False)
    sums = [client.submit(as_it_is, total, workers=[worker], pure=False) for worker in workers]
    distributed.wait(sums)
    return client, workers, sums


def download(state):
    """The arrays of all GPUs, one after the other."""
    client, workers, arrays = state
    for worker, x in zip(workers, arrays, strict=True):
        yield client.submit(cp.asnumpy, x, workers=[worker], pure=False).result()


if __name__ == "__main__":
    with engine() as client:
        state = all_reduce(on_gpus(client, 1_000_000))
        gpus = len(state[1])
        for x in download(state):
            assert x[1_001] == gpus * 1 + sum(range(gpus)), x
    print(f"all_reduce, Dask: 1,000,000 elements on {gpus} GPUs, all right")
