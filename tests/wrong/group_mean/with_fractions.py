"""Wrong: the fractions of keys are cut off in silence.

Framework: pandas
Runs on: CPU
Install: pip install pandas
"""

import numpy as np
import pandas as pd


def upload(keys, values):
    keys, values = np.asarray(keys, np.int64), np.asarray(values, np.float64)
    if keys.ndim != 1 or keys.shape != values.shape:
        raise ValueError(f"group_mean takes two flat arrays of one length, not {keys.shape} and {values.shape}")
    return (pd.DataFrame({"key": keys, "value": values}),)


def group_mean(table):
    return table.groupby("key")["value"].mean()


def wait(means):
    pass


def download(means):
    return np.array(means)
