"""A worker for each of several GPUs, in a process of its own, and how Dask sends their arrays."""

import distributed
import numpy as np
from cupy.cuda import COUNT
from distributed.protocol import dask_deserialize, dask_serialize
from gpu_memory import Array


def LocalCUDACluster(dashboard_address):
    return distributed.LocalCluster(n_workers=COUNT, threads_per_worker=1, dashboard_address=dashboard_address)


@dask_serialize.register(Array)
def sent(x):
    return {"dtype": x.dtype.str}, [x.tobytes()]


@dask_deserialize.register(Array)
def received(header, frames):
    return np.frombuffer(bytearray(frames[0]), header["dtype"]).view(Array)
