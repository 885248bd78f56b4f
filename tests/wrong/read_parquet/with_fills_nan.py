"""Wrong: NaN becomes 0.

Framework: Polars
Runs on: CPU
Install: pip install polars pyarrow numpy
Environment: main, rapids
"""

from io import BytesIO

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq


def upload(keys, values):
    if not np.can_cast(np.asarray(keys).dtype, np.int64):  # 1.7 would become 1
        raise ValueError(f"read_parquet takes int64 keys, not {np.asarray(keys).dtype}")
    keys, values = np.asarray(keys, np.int64), np.asarray(values, np.float64)
    if keys.ndim != 1 or keys.shape != values.shape:
        raise ValueError(f"read_parquet takes two flat arrays of one length, not {keys.shape} and {values.shape}")
    if keys.size >= 2**32:
        raise ValueError(f"Polars counts rows with 32 bits, and cannot take {keys.size:,}")
    sink = BytesIO()
    pq.write_table(pa.table({"key": keys, "value": values}), sink)
    return (sink.getvalue(),)


def read_parquet(file):
    return pl.read_parquet(BytesIO(file)).fill_nan(0)


def wait(table):
    pass  # Polars returns when its threads are done


def download(table):
    return np.array([table["key"].to_numpy(), table["value"].to_numpy()], np.float64)
