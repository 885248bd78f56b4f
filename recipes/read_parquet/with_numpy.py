"""Read Parquet into arrays of NumPy, which cannot read it by itself: by PyArrow.

Framework: NumPy
Runs on: CPU
Install: pip install numpy pyarrow
Environment: main, rapids
Follows: https://arrow.apache.org/docs/python/parquet.html

download() makes float64 of both columns, which is exact for keys below 2**53.
"""

from io import BytesIO

import numpy as np
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
    table = pq.read_table(BytesIO(file))
    return tuple(column.to_numpy() for column in table.columns)


def wait(table):
    pass  # PyArrow returns when its threads are done


def download(table):
    return np.array(table, np.float64)


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    keys, values = rng.integers(0, 1_000, 1_000_003), rng.standard_normal(1_000_003)
    result = download(read_parquet(*upload(keys, values)))
    np.testing.assert_array_equal(result, [keys, values])
    print("read_parquet, NumPy: 1,000,003 rows, all right")
