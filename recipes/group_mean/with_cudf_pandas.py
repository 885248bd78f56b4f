"""Group mean in pandas on a GPU: with_pandas.py as it is, behind two lines that make cuDF do what pandas would.

Framework: cuDF
Runs on: NVIDIA GPU
Install: pip install cudf-cu13
Environment: rapids
Follows: https://docs.rapids.ai/api/cudf/stable/cudf_pandas/usage/

install() is for the whole process, and for what imports pandas after it; python -m cudf.pandas SCRIPT does the same
without the two lines. What cuDF cannot do is done by pandas, without a word. cudf.pandas takes managed memory unless
CUDF_PANDAS_RMM_MODE says otherwise before it is imported: gpu-cookbook runs this recipe with async.
means.to_numpy() is done by cuDF. np.array(means) first makes a Series of pandas of it, on the host, where it stays.
"""

import cudf.pandas

cudf.pandas.install()

import cupy as cp  # noqa: E402
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402


def upload(keys, values):
    if not np.can_cast(np.asarray(keys).dtype, np.int64):  # 1.2 and 1.7 would become one key
        raise ValueError(f"group_mean takes int64 keys, not {np.asarray(keys).dtype}")
    keys, values = np.asarray(keys, np.int64), np.asarray(values, np.float64)
    if keys.ndim != 1 or keys.shape != values.shape:
        raise ValueError(f"group_mean takes two flat arrays of one length, not {keys.shape} and {values.shape}")
    return (pd.DataFrame({"key": keys, "value": values}),)  # a copy


def group_mean(table):
    return table.groupby("key")["value"].mean()  # in the order of the keys: sort=True is the default


def wait(means):
    cp.cuda.Device().synchronize()


def download(means):
    return np.array(means.to_numpy())


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    keys, values = rng.integers(0, 1_000, 1_000_003), rng.standard_normal(1_000_003)
    result = download(group_mean(*upload(keys, values)))
    np.testing.assert_allclose(result, np.bincount(keys, values) / np.bincount(keys), rtol=1e-9, atol=1e-12)
    print("group_mean, cudf.pandas: 1,000,003 rows, 1,000 keys, all right")
