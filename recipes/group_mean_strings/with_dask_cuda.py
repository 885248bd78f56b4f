"""Group mean by strings in Dask: a DataFrame with one cuDF partition on each GPU, in a worker process of dask-cuda.

Framework: Dask
Runs on: every NVIDIA GPU
Install: pip install "dask-cuda[cu13]" dask-cudf-cu13
Shapes: fewer than 2**31 rows for each GPU, and fewer than 2**31 means of all GPUs together
Environment: rapids
Follows: https://docs.rapids.ai/api/dask-cudf/stable/
Engine: Dask, futures

Each GPU adds up and counts its partition by key. One of them combines these, a row for each key of each GPU: it must
have room for all of them.
"""

from contextlib import contextmanager
from uuid import uuid4

import cudf
import cupy as cp
import dask_cudf
import distributed
import numpy as np
from dask_cuda import LocalCUDACluster


@contextmanager
def engine():
    # Start it before anything here uses CUDA.
    with (
        LocalCUDACluster(dashboard_address="127.0.0.1:0") as cluster,
        distributed.Client(cluster, direct_to_workers=True),  # or all data goes through the scheduler
    ):
        yield


def upload(keys, values):
    if not np.can_cast(np.asarray(keys).dtype, np.int64):  # 1.2 and 1.7 would become one key
        raise ValueError(f"group_mean_strings takes int64 keys, not {np.asarray(keys).dtype}")
    keys, values = np.asarray(keys, np.int64, order="C"), np.asarray(values, np.float64, order="C")
    if keys.ndim != 1 or keys.shape != values.shape:
        raise ValueError(f"group_mean_strings takes two flat arrays of one length, not {keys.shape} and {values.shape}")
    client = distributed.default_client()
    workers = list(client.nthreads())
    if keys.size > (2**31 - 1) * len(workers):
        raise ValueError(f"cuDF counts rows with 32 bits: {len(workers)} GPUs cannot take {keys.size:,}")
    count = max(1, min(len(workers), keys.size))
    # Scattered, because Dask warns of large data in a graph; with hash=False, or Dask hashes every byte.
    parts = [
        client.submit(to_table, *client.scatter([*part], workers=[w], hash=False), workers=[w], pure=False)
        for w, *part in zip(workers, np.array_split(keys, count), np.array_split(values, count), strict=False)
    ]
    types = to_table(keys[:0], values[:0])  # on a GPU of this process, too: Dask asks cuDF what each step will return
    # from_map would leave it to Dask which GPU gets which part.
    return (dask_cudf.from_delayed(parts, meta=types).persist(),)


def to_table(keys, values):
    strings = cudf.Series(keys).astype("str").str.zfill(20)
    return cudf.DataFrame({"key": strings, "value": values})


def group_mean_strings(table):
    # With a name of its own, or Dask answers a second call with the result of the first.
    table = table.map_partitions(lambda part, name: part, uuid4().hex)
    return distributed.default_client().compute(table.groupby("key", sort=True)["value"].mean())


def wait(means):
    distributed.wait(means)  # returns when the work is in the GPUs' queues
    distributed.default_client().run(lambda: cp.cuda.Device().synchronize())


def download(means):
    return distributed.default_client().submit(lambda x: x.to_numpy(), means).result()  # on its worker


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    keys, values = rng.integers(0, 1_000, 1_000_003), rng.standard_normal(1_000_003)
    with engine():
        result = download(group_mean_strings(*upload(keys, values)))
    np.testing.assert_allclose(result, np.bincount(keys, values) / np.bincount(keys), rtol=1e-9, atol=1e-12)
    print("group_mean_strings, Dask with cuDF on every GPU: 1,000,003 rows, 1,000 keys, all right")
