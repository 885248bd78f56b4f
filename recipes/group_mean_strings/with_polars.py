"""Group mean by strings in Polars: group_by, mean and sort, on all cores.

Framework: Polars
Runs on: CPU
Install: pip install polars numpy
Shapes: fewer than 2**32 rows
Environment: main, rapids
Follows: https://docs.pola.rs/user-guide/expressions/aggregation/
"""

import numpy as np
import polars as pl


def upload(keys, values):
    if not np.can_cast(np.asarray(keys).dtype, np.int64):  # 1.2 and 1.7 would become one key
        raise ValueError(f"group_mean_strings takes int64 keys, not {np.asarray(keys).dtype}")
    keys, values = np.array(keys, np.int64, order="C"), np.array(values, np.float64, order="C")  # or they are shared
    if keys.ndim != 1 or keys.shape != values.shape:
        raise ValueError(f"group_mean_strings takes two flat arrays of one length, not {keys.shape} and {values.shape}")
    if keys.size >= 2**32:
        raise ValueError(f"Polars counts rows with 32 bits, and cannot take {keys.size:,}")
    table = pl.DataFrame({"key": keys, "value": values})
    return (table.with_columns(pl.col("key").cast(pl.String).str.zfill(20)),)


def group_mean_strings(table):
    return table.group_by("key").agg(pl.col("value").mean()).sort("key")


def wait(means):
    pass  # Polars returns when its threads are done


def download(means):
    return means["value"].to_numpy()


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    keys, values = rng.integers(0, 1_000, 1_000_003), rng.standard_normal(1_000_003)
    result = download(group_mean_strings(*upload(keys, values)))
    np.testing.assert_allclose(result, np.bincount(keys, values) / np.bincount(keys), rtol=1e-9, atol=1e-12)
    print("group_mean_strings, Polars: 1,000,003 rows, 1,000 keys, all right")
