"""Launch a kernel of 1, 4 or 16 arguments in Numba, on its own arrays, on CuPy's, or on PyTorch's tensors.

Framework: Numba
Runs on: NVIDIA GPU
Install: pip install "numba-cuda[cu13]" "numpy<2.5"
Follows: https://nvidia.github.io/numba-cuda/user/kernels.html
Follows: https://nvidia.github.io/numba-cuda/user/cuda_array_interface.html
"""

import numpy as np
from numba import cuda


@cuda.jit
def add_1(a):
    a[0] += 1


@cuda.jit
def add_4(a, b, c, d):
    a[0] += 1
    b[0] += 1
    c[0] += 1
    d[0] += 1


@cuda.jit
def add_16(a, b, c, d, e, f, g, h, i, j, k, m, n, o, p, q):
    a[0] += 1
    b[0] += 1
    c[0] += 1
    d[0] += 1
    e[0] += 1
    f[0] += 1
    g[0] += 1
    h[0] += 1
    i[0] += 1
    j[0] += 1
    k[0] += 1
    m[0] += 1
    n[0] += 1
    o[0] += 1
    p[0] += 1
    q[0] += 1


kernels = {1: add_1, 4: add_4, 16: add_16}


def zeros(n):
    return tuple(cuda.to_device(np.zeros(1, np.float32)) for _ in range(n))


def zeros_of_cupy(n):
    import cupy as cp

    return tuple(cp.zeros(1, cp.float32) for _ in range(n))


def zeros_of_torch(n):
    import torch

    return tuple(torch.zeros(1, device="cuda") for _ in range(n))


def add_one(arrays):
    kernels[len(arrays)][1, 1](*arrays)
    return arrays


def wait(arrays):
    cuda.synchronize()


def download(arrays):
    return [cuda.as_cuda_array(x).copy_to_host()[0] for x in arrays]


if __name__ == "__main__":
    arrays = add_one(zeros(4))
    assert download(arrays) == [1, 1, 1, 1]
    print("Numba: 4 arguments, all right")
