"""Wrong: an option of pandas is set for all.

Framework: pandas
Runs on: CPU
Install: pip install pandas
Environment: main, rapids
"""

import numpy as np
import pandas as pd

pd.set_option("display.max_rows", None)


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
