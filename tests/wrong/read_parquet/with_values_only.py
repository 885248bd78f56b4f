"""Wrong: only one of the columns is read.

Framework: pandas
Runs on: CPU
Install: pip install pandas pyarrow
"""

from io import BytesIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

KEYS = []


def upload(keys, values):
    if not np.can_cast(np.asarray(keys).dtype, np.int64):  # 1.7 would become 1
        raise ValueError(f"read_parquet takes int64 keys, not {np.asarray(keys).dtype}")
    keys, values = np.array(keys, np.int64), np.array(values, np.float64)
    if keys.ndim != 1 or keys.shape != values.shape:
        raise ValueError(f"read_parquet takes two flat arrays of one length, not {keys.shape} and {values.shape}")
    sink = BytesIO()
    pq.write_table(pa.table({"key": keys, "value": values}), sink)
    return keys, sink.getvalue()


def read_parquet(keys, file):
    KEYS.append(keys)
    return pd.read_parquet(BytesIO(file), columns=["value"])


def wait(table):
    pass


def download(table):
    return np.array([KEYS.pop(), table["value"]], np.float64)
