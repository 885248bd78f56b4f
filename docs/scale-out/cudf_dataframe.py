"""A group-by on every GPU of this machine: Dask's DataFrame, with partitions in cuDF.

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

if __name__ == "__main__":
    frame = pd.DataFrame({"key": np.arange(1_000_000) % 10, "x": np.arange(1_000_000, dtype=np.float64)})
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCUDACluster(dashboard_address="127.0.0.1:0", rmm_pool_size=0.5, enable_cudf_spill=True) as cluster,
        Client(cluster),
        dask.config.set({"dataframe.backend": "cudf"}),
    ):
        frame.to_parquet(f"{folder}/frame.parquet")
        means = dd.read_parquet(folder).groupby("key").x.mean().compute()

    assert type(means).__module__.startswith("cudf"), type(means)
    expected = frame.groupby("key").x.mean()
    np.testing.assert_allclose(means.to_pandas().sort_index(), expected)
    print(f"a mean for each of {len(means)} keys, with cuDF in Dask, all right")
