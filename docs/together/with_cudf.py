"""cuDF's columns for other libraries, and their arrays as columns of cuDF, in the default stream.

Framework: cuDF
Runs on: NVIDIA GPU
Install: pip install cudf-cu13
Environment: rapids
Follows: https://docs.rapids.ai/api/cudf/stable/user_guide/cupy-interop
Follows: https://docs.rapids.ai/api/cudf/stable/user_guide/api_docs/api/cudf.from_dlpack/

A column with missing values has no CUDA array interface: fill or drop them first. add_one returns a new column.
"""

import cudf
import cupy as cp
import numpy as np

LEGACY = 1  # what DLPack calls the default stream


def from_host(values):
    return cudf.Series(values)


def to_host(x):
    return x.to_numpy()


def hand_out(x):
    return x


def from_dlpack(x):
    return cudf.from_dlpack(x.__dlpack__(stream=LEGACY))


def from_cuda_array_interface(x):
    return cudf.Series(x)


def add_one(x):
    return x + np.float32(1)


def wait(x):
    cp.cuda.Stream.null.synchronize()


def address(x):
    return x.__cuda_array_interface__["data"][0]


if __name__ == "__main__":
    x = from_host(np.arange(1_000, dtype=np.float32))
    y = from_cuda_array_interface(hand_out(x))
    assert (to_host(add_one(y)) == np.arange(1, 1_001)).all()
    print("cuDF: 1,000 elements handed out and taken, all right")
