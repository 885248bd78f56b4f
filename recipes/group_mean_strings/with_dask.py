"""Group mean by strings in Dask: its DataFrame, as in pandas, on partitions of pandas and the threads of one process.

Framework: Dask
Runs on: CPU
Install: pip install "dask[complete]"
Follows: https://docs.dask.org/en/stable/dataframe-groupby.html
Engine: Dask, threads
"""

import dask.dataframe as dd
import numpy as np
import pandas as pd

ROWS = 2**20  # of a partition


def upload(keys, values):
    if not np.can_cast(np.asarray(keys).dtype, np.int64):  # 1.2 and 1.7 would become one key
        raise ValueError(f"group_mean_strings takes int64 keys, not {np.asarray(keys).dtype}")
    keys, values = np.asarray(keys, np.int64), np.asarray(values, np.float64)
    if keys.ndim != 1 or keys.shape != values.shape:
        raise ValueError(f"group_mean_strings takes two flat arrays of one length, not {keys.shape} and {values.shape}")
    strings = pd.Series(keys).astype("str").str.zfill(20)
    table = dd.from_pandas(pd.DataFrame({"key": strings, "value": values}), chunksize=ROWS)
    return (table.persist(scheduler="threads"),)


def group_mean_strings(table):
    return table.groupby("key", sort=True)["value"].mean().compute(scheduler="threads")


def wait(means):
    pass  # compute() returns when the threads are done


def download(means):
    return np.array(means)


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    keys, values = rng.integers(0, 1_000, 1_000_003), rng.standard_normal(1_000_003)
    result = download(group_mean_strings(*upload(keys, values)))
    np.testing.assert_allclose(result, np.bincount(keys, values) / np.bincount(keys), rtol=1e-9, atol=1e-12)
    print("group_mean_strings, Dask: 1,000,003 rows, 1,000 keys, all right")
