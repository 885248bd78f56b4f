"""Read Parquet in pandas on a GPU: with_pandas.py as it is, behind two lines that make cuDF do what pandas would.

Framework: cuDF
Runs on: NVIDIA GPU
Install: pip install cudf-cu13 pyarrow
Environment: rapids
Follows: https://docs.rapids.ai/api/cudf/stable/cudf_pandas/usage/

install() is for the whole process, and for what imports pandas after it; python -m cudf.pandas SCRIPT does the same
without the two lines. What cuDF cannot do is done by pandas, without a word. cudf.pandas takes managed memory unless
CUDF_PANDAS_RMM_MODE says otherwise before it is imported: gpu-cookbook runs this recipe with async.
"""

import cudf.pandas

cudf.pandas.install()

from io import BytesIO  # noqa: E402

import cupy as cp  # noqa: E402
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402


def upload(keys, values):
    keys, values = np.asarray(keys, np.int64), np.asarray(values, np.float64)
    if keys.ndim != 1 or keys.shape != values.shape:
        raise ValueError(f"read_parquet takes two flat arrays of one length, not {keys.shape} and {values.shape}")
    sink = BytesIO()
    pq.write_table(pa.table({"key": keys, "value": values}), sink)
    return (sink.getvalue(),)


def read_parquet(file):
    return pd.read_parquet(BytesIO(file))


def wait(table):
    cp.cuda.Device().synchronize()


def download(table):
    return np.array([table["key"].to_numpy(), table["value"].to_numpy()], np.float64)


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    keys, values = rng.integers(0, 1_000, 1_000_003), rng.standard_normal(1_000_003)
    result = download(read_parquet(*upload(keys, values)))
    np.testing.assert_array_equal(result, [keys, values])
    print("read_parquet, cudf.pandas: 1,000,003 rows, all right")
