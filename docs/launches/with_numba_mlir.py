"""Launch a kernel of 1, 4 or 16 arguments in numba-cuda-mlir.

Framework: numba-cuda-mlir
Runs on: NVIDIA GPU
Install: pip install "numba-cuda-mlir[cu13]" "cuda-core[cu13]"
Environment: numba_mlir
Follows: https://nvidia.github.io/numba-cuda-mlir/latest/user/kernels.html
Follows: https://nvidia.github.io/cuda-python/cuda-core/latest/generated/cuda.core.graph.GraphBuilder.html
"""

import numpy as np
from cuda.core import Device
from numba_cuda_mlir import cuda

ONE = np.float32(1)  # numba-cuda-mlir would add a plain 1 in float64


@cuda.jit
def add_1(a):
    a[0] += ONE


@cuda.jit
def add_4(a, b, c, d):
    a[0] += ONE
    b[0] += ONE
    c[0] += ONE
    d[0] += ONE


@cuda.jit
def add_16(a, b, c, d, e, f, g, h, i, j, k, m, n, o, p, q):
    a[0] += ONE
    b[0] += ONE
    c[0] += ONE
    d[0] += ONE
    e[0] += ONE
    f[0] += ONE
    g[0] += ONE
    h[0] += ONE
    i[0] += ONE
    j[0] += ONE
    k[0] += ONE
    m[0] += ONE
    n[0] += ONE
    o[0] += ONE
    p[0] += ONE
    q[0] += ONE


kernels = {1: add_1, 4: add_4, 16: add_16}


def zeros(n):
    return tuple(cuda.to_device(np.zeros(1, np.float32)) for _ in range(n))


def add_one(arrays):
    kernels[len(arrays)][1, 1](*arrays)
    return arrays


def prepared(arrays):
    add_one(zeros(len(arrays)))  # the first launch compiles the kernel, which a capture may not
    device = Device()
    device.set_current()
    builder = device.create_graph_builder().begin_building()
    stream = cuda.external_stream(int(builder.stream.handle))
    kernels[len(arrays)][1, 1, stream](*arrays)  # recorded, not run
    graph = builder.end_building().complete()

    def replay():
        graph.launch(device.default_stream)
        return arrays

    return replay


def wait(arrays):
    cuda.synchronize()


def download(arrays):
    return [x.copy_to_host()[0] for x in arrays]


if __name__ == "__main__":
    arrays = add_one(zeros(4))
    arrays = prepared(arrays)()
    assert download(arrays) == [2, 2, 2, 2]
    print("numba-cuda-mlir: 4 arguments, all right")
