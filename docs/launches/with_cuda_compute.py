"""Launch a transformation of 1, 4 or 16 arrays in cuda.compute, on CuPy's arrays.

Framework: cuda.compute
Runs on: NVIDIA GPU
Install: pip install "cuda-cccl[cu13]" "cupy-cuda13x[ctk]"
Environment: cuda_compute
Follows: https://nvidia.github.io/cccl/unstable/python/compute.html
Follows: https://nvidia.github.io/cccl/unstable/python/compute_api.html
"""

import cupy as cp
import numpy as np
from cuda.compute import ZipIterator, make_unary_transform, unary_transform

ONE = np.float32(1)  # a plain 1 would make it float64 for a moment


def add_1(x):
    return (x[0] + ONE,)


def add_4(x):
    return x[0] + ONE, x[1] + ONE, x[2] + ONE, x[3] + ONE


def add_16(x):
    return (
        x[0] + ONE,
        x[1] + ONE,
        x[2] + ONE,
        x[3] + ONE,
        x[4] + ONE,
        x[5] + ONE,
        x[6] + ONE,
        x[7] + ONE,
        x[8] + ONE,
        x[9] + ONE,
        x[10] + ONE,
        x[11] + ONE,
        x[12] + ONE,
        x[13] + ONE,
        x[14] + ONE,
        x[15] + ONE,
    )


kernels = {1: add_1, 4: add_4, 16: add_16}


def zeros(n):
    return tuple(cp.zeros(1, cp.float32) for _ in range(n))


def add_one(arrays):
    both = ZipIterator(*arrays)  # which reads an element of each, and writes them
    stream = cp.cuda.get_current_stream()
    unary_transform(d_in=both, d_out=both, op=kernels[len(arrays)], num_items=1, stream=stream)
    return arrays


def prepared(arrays):
    op, both = kernels[len(arrays)], ZipIterator(*arrays)
    transform = make_unary_transform(d_in=both, d_out=both, op=op)

    def replay():
        transform(d_in=both, d_out=both, op=op, num_items=1, stream=cp.cuda.get_current_stream())
        return arrays

    return replay


def wait(arrays):
    cp.cuda.get_current_stream().synchronize()


def download(arrays):
    return [x.get()[0] for x in arrays]


if __name__ == "__main__":
    arrays = add_one(zeros(4))
    arrays = prepared(arrays)()
    assert download(arrays) == [2, 2, 2, 2]
    print("cuda.compute: 4 arguments, all right")
