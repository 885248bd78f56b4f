"""Wrong: the means of a table are kept, and returned again.

Framework: pandas
Runs on: CPU
Install: pip install pandas
"""

import numpy as np
import pandas as pd

KEPT = {}


def upload(keys, values):
    if not np.can_cast(np.asarray(keys).dtype, np.int64):  # 1.2 and 1.7 would become one key
        raise ValueError(f"group_mean takes int64 keys, not {np.asarray(keys).dtype}")
    keys, values = np.array(keys, np.int64, order="C"), np.array(values, np.float64, order="C")
    if keys.ndim != 1 or keys.shape != values.shape:
        raise ValueError(f"group_mean takes two flat arrays of one length, not {keys.shape} and {values.shape}")
    return (pd.DataFrame({"key": keys, "value": values}),)


def group_mean(table):
    if id(table) not in KEPT:
        KEPT.clear()
        KEPT[id(table)] = table, table.groupby("key")["value"].mean()
    return KEPT[id(table)][1]


def wait(means):
    pass


def download(means):
    return np.array(means)
