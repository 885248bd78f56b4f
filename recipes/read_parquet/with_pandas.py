"""Read Parquet in pandas, which leaves it to PyArrow, on all cores.

Framework: pandas
Runs on: CPU
Install: pip install pandas pyarrow
Environment: main, rapids
Follows: https://pandas.pydata.org/docs/user_guide/io.html#parquet

download() makes float64 of both columns, which is exact for keys below 2**53.
"""

from io import BytesIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq


def upload(keys, values):
    if not np.can_cast(np.asarray(keys).dtype, np.int64):  # 1.7 would become 1
        raise ValueError(f"read_parquet takes int64 keys, not {np.asarray(keys).dtype}")
    keys, values = np.asarray(keys, np.int64), np.asarray(values, np.float64)
    if keys.ndim != 1 or keys.shape != values.shape:
        raise ValueError(f"read_parquet takes two flat arrays of one length, not {keys.shape} and {values.shape}")
    sink = BytesIO()
    pq.write_table(pa.table({"key": keys, "value": values}), sink)
    return (sink.getvalue(),)


def read_parquet(file):
    return pd.read_parquet(BytesIO(file))


def wait(table):
    pass  # pandas returns when PyArrow's threads are done


def download(table):
    return np.array([table["key"].to_numpy(), table["value"].to_numpy()], np.float64)


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    keys, values = rng.integers(0, 1_000, 1_000_003), rng.standard_normal(1_000_003)
    result = download(read_parquet(*upload(keys, values)))
    np.testing.assert_array_equal(result, [keys, values])
    print("read_parquet, pandas: 1,000,003 rows, all right")
