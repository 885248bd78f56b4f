"""Group mean by strings in Dask: its DataFrame, in partitions of cuDF on one GPU, one after the other.

Framework: Dask
Runs on: NVIDIA GPU
Install: pip install dask-cudf-cu13
Shapes: fewer than 2**31 rows
Environment: rapids
Follows: https://docs.rapids.ai/api/dask-cudf/stable/

from_cudf() makes a Python list of the whole index, to see where partitions begin, and hashes all values. Tables that
Dask reads from files do not need it.
"""

import cudf
import cupy as cp
import dask_cudf
import numpy as np

ROWS = 2**25  # of a partition, 0.9 GiB: fewer and larger ones than on a CPU, as a GPU is quick and Dask's tasks are not


def upload(keys, values):
    if not np.can_cast(np.asarray(keys).dtype, np.int64):  # 1.2 and 1.7 would become one key
        raise ValueError(f"group_mean_strings takes int64 keys, not {np.asarray(keys).dtype}")
    keys, values = np.asarray(keys, np.int64, order="C"), np.asarray(values, np.float64, order="C")
    if keys.ndim != 1 or keys.shape != values.shape:
        raise ValueError(f"group_mean_strings takes two flat arrays of one length, not {keys.shape} and {values.shape}")
    if keys.size >= 2**31:
        raise ValueError(f"cuDF counts rows with 32 bits, and cannot take {keys.size:,}")
    strings = cudf.Series(keys).astype("str").str.zfill(20)
    table = dask_cudf.from_cudf(cudf.DataFrame({"key": strings, "value": values}), chunksize=ROWS)
    return (table.persist(scheduler="single-threaded"),)


def group_mean_strings(table):
    return table.groupby("key", sort=True)["value"].mean().compute(scheduler="single-threaded")


def wait(means):
    cp.cuda.Device().synchronize()


def download(means):
    return means.to_numpy()


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    keys, values = rng.integers(0, 1_000, 1_000_003), rng.standard_normal(1_000_003)
    result = download(group_mean_strings(*upload(keys, values)))
    np.testing.assert_allclose(result, np.bincount(keys, values) / np.bincount(keys), rtol=1e-9, atol=1e-12)
    print("group_mean_strings, Dask with cuDF: 1,000,003 rows, 1,000 keys, all right")
