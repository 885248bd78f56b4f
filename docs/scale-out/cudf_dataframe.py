"""A group-by on every GPU of this machine: Dask's DataFrame, with partitions in cuDF that are read or made there.

Install: pip install "dask-cuda[cu13]" dask-cudf-cu13
Run: python cudf_dataframe.py
"""

import tempfile

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask_cuda import LocalCUDACluster
from distributed import Client


def part(start):
    """A quarter of the table, as a worker makes it on its own GPU."""
    import cudf  # here: the client need not open a GPU

    x = np.arange(start, start + 250_000)
    return cudf.DataFrame({"key": x % 10, "x": x.astype(np.float64)})


if __name__ == "__main__":
    frame = pd.DataFrame({"key": np.arange(1_000_000) % 10, "x": np.arange(1_000_000, dtype=np.float64)})
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCUDACluster(dashboard_address="127.0.0.1:0", rmm_pool_size=0.5, enable_cudf_spill=True) as cluster,
        Client(cluster),
        dask.config.set({"dataframe.backend": "cudf"}),
    ):
        frame.to_parquet(f"{folder}/frame.parquet")
        read = dd.read_parquet(folder).groupby("key").x.mean().compute()
        made = dd.from_map(part, range(0, 1_000_000, 250_000)).groupby("key").x.mean().compute()

    expected = frame.groupby("key").x.mean()
    for means in (read, made):
        assert type(means).__module__.startswith("cudf"), type(means)
        np.testing.assert_allclose(means.to_pandas().sort_index(), expected)
    print(f"a mean for each of {len(read)} keys, with cuDF in Dask, all right")
