"""Wrong: PyArrow takes its memory from another pool, for all.

Framework: NumPy
Runs on: CPU
Install: pip install numpy pyarrow
Environment: main, rapids
"""

from io import BytesIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

pa.set_memory_pool(pa.system_memory_pool())


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
