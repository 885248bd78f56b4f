"""Group mean by strings in Modin: groupby and mean as in pandas, on every core of the CPU.

Framework: Modin
Runs on: CPU
Install: pip install "modin[ray]"
Environment: modin
Follows: https://modin.readthedocs.io/en/stable/getting_started/using_modin/using_modin_locally.html
Engine: Modin, on Ray

In a program of pandas, only the import changes: import modin.pandas as pd. Its DataFrame() takes NumPy's arrays, too,
but warns that it may take some time; from_pandas() does not. What Modin cannot do itself it leaves to pandas, with a
warning.

Modin takes the Ray that engine() has started. Outside of engine(), it starts one of its own, which listens on all
addresses until the process ends. When it first uses Ray, it sets OMP_NUM_THREADS and RAY_IGNORE_UNHANDLED_ERRORS to 1
in this process. It keeps objects of a Ray that has ended, and cannot work with another one.

Modin 0.37 has pandas 2, whose strings are objects of Python: pandas 3 has them in Arrow's arrays.
"""

import os
from contextlib import contextmanager
from threading import Lock
from unittest import mock

import numpy as np
import pandas as pd
import ray
from modin.config import Engine
from modin.pandas.io import from_pandas
from modin.utils import execute

CORES = len(os.sched_getaffinity(0))  # those that this process may use
# The first two are what Modin sets for a Ray of its own, whose processes import all of pandas before they begin.
FOR_PROCESSES = {"__MODIN_AUTOIMPORT_PANDAS__": "1", "PYTHONWARNINGS": "ignore::FutureWarning", "MODIN_ENGINE": "ray"}
one_ray = Lock()  # which the only Ray of this process keeps


@contextmanager
def engine():
    if not one_ray.acquire(blocking=False):
        raise RuntimeError("Modin works with one Ray in a process: keep engine() open until the last call")
    Engine.put("Ray")  # whatever MODIN_ENGINE says
    # On Linux Ray listens on all addresses; patched, on 127.0.0.1 only. The environment variable for it has to be set
    # before anything imports Ray, and would stay set: RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0.
    local = mock.patch("ray._private.ray_constants.ENABLE_RAY_CLUSTER", False)
    with local, mock.patch.dict(os.environ, FOR_PROCESSES):
        ray.init(address="local", num_cpus=CORES, include_dashboard=False, logging_level="ERROR")
    try:
        yield
    finally:
        ray.shutdown()


def upload(keys, values):
    if not np.can_cast(np.asarray(keys).dtype, np.int64):  # 1.2 and 1.7 would become one key
        raise ValueError(f"group_mean_strings takes int64 keys, not {np.asarray(keys).dtype}")
    keys, values = np.asarray(keys, np.int64), np.asarray(values, np.float64)
    if keys.ndim != 1 or keys.shape != values.shape:
        raise ValueError(f"group_mean_strings takes two flat arrays of one length, not {keys.shape} and {values.shape}")
    strings = pd.Series(keys).astype("str").str.zfill(20)
    table = from_pandas(pd.DataFrame({"key": strings, "value": values}))
    execute(table)  # until its parts are in Ray's object store
    return (table,)


def group_mean_strings(table):
    return table.groupby("key")["value"].mean().modin.to_pandas()  # in the order of the keys: sort=True is the default


def wait(means):
    pass  # to_pandas() returns when the parts are done and in one table of pandas


def download(means):
    return np.array(means)


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    keys, values = rng.integers(0, 1_000, 1_000_003), rng.standard_normal(1_000_003)
    with engine():
        result = download(group_mean_strings(*upload(keys, values)))
    np.testing.assert_allclose(result, np.bincount(keys, values) / np.bincount(keys), rtol=1e-9, atol=1e-12)
    print("group_mean_strings, Modin: 1,000,003 rows, 1,000 keys, all right")
