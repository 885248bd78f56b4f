"""Read Parquet in cuDF: the file goes to the GPU as it is, and is decoded there.

Framework: cuDF
Runs on: NVIDIA GPU
Install: pip install cudf-cu13 pyarrow
Shapes: fewer than 2**31 rows
Environment: rapids
Follows: https://docs.rapids.ai/api/cudf/stable/user_guide/io/
Follows: https://docs.rapids.ai/api/cudf/stable/user_guide/api_docs/api/cudf.read_parquet/

download() makes float64 of both columns, which is exact for keys below 2**53.
"""

from io import BytesIO

import cudf
import cupy as cp
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def upload(keys, values):
    if not np.can_cast(np.asarray(keys).dtype, np.int64):  # 1.7 would become 1
        raise ValueError(f"read_parquet takes int64 keys, not {np.asarray(keys).dtype}")
    keys, values = np.asarray(keys, np.int64), np.asarray(values, np.float64)
    if keys.ndim != 1 or keys.shape != values.shape:
        raise ValueError(f"read_parquet takes two flat arrays of one length, not {keys.shape} and {values.shape}")
    if keys.size >= 2**31:
        raise ValueError(f"cuDF counts rows with 32 bits, and cannot take {keys.size:,}")
    sink = BytesIO()
    pq.write_table(pa.table({"key": keys, "value": values}), sink)
    return (sink.getvalue(),)


def read_parquet(file):
    return cudf.read_parquet(file)  # a BytesIO of these bytes would be copied first: cuDF calls its getbuffer()


def wait(table):
    cp.cuda.Device().synchronize()


def download(table):
    return np.array([table["key"].to_numpy(), table["value"].to_numpy()], np.float64)


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    keys, values = rng.integers(0, 1_000, 1_000_003), rng.standard_normal(1_000_003)
    result = download(read_parquet(*upload(keys, values)))
    np.testing.assert_array_equal(result, [keys, values])
    print("read_parquet, cuDF: 1,000,003 rows, all right")
