"""Read Parquet in Polars, by its own reader, on all cores.

Framework: Polars
Runs on: CPU
Install: pip install polars pyarrow numpy
Shapes: fewer than 2**32 rows
Environment: main, rapids
Follows: https://docs.pola.rs/user-guide/io/parquet/

download() makes float64 of both columns, which is exact for keys below 2**53.
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
    return pl.read_parquet(BytesIO(file))


def wait(table):
    pass  # Polars returns when its threads are done


def download(table):
    return np.array([table["key"].to_numpy(), table["value"].to_numpy()], np.float64)


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    keys, values = rng.integers(0, 1_000, 1_000_003), rng.standard_normal(1_000_003)
    result = download(read_parquet(*upload(keys, values)))
    np.testing.assert_array_equal(result, [keys, values])
    print("read_parquet, Polars: 1,000,003 rows, all right")
