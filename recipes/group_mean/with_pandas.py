"""Group mean in pandas: groupby and mean, on one core.

Framework: pandas
Runs on: CPU
Install: pip install pandas
Environment: main, rapids, modin
Follows: https://pandas.pydata.org/docs/user_guide/groupby.html
"""

import numpy as np
import pandas as pd


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
    pass  # pandas returns when it is done


def download(means):
    return np.array(means.to_numpy())


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    keys, values = rng.integers(0, 1_000, 1_000_003), rng.standard_normal(1_000_003)
    result = download(group_mean(*upload(keys, values)))
    np.testing.assert_allclose(result, np.bincount(keys, values) / np.bincount(keys), rtol=1e-9, atol=1e-12)
    print("group_mean, pandas: 1,000,003 rows, 1,000 keys, all right")
