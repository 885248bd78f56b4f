"""Launch a kernel of 1, 4 or 16 arguments in PyCUDA.

Framework: PyCUDA
Runs on: NVIDIA GPU
Install: pip install pycuda numpy
Needs: nvcc
Follows: https://documen.tician.de/pycuda/tutorial.html
Follows: https://documen.tician.de/pycuda/driver.html#pycuda.driver.Function.prepare
"""

from pathlib import Path

import numpy as np
from pycuda import autoprimaryctx, gpuarray
from pycuda.compiler import SourceModule

module = SourceModule(Path(__file__).with_name("add_one.cu").read_text(), no_extern_c=True)
kernels = {n: module.get_function(f"add_{n}") for n in (1, 4, 16)}


def zeros(n):
    return tuple(gpuarray.to_gpu(np.zeros(1, np.float32)) for _ in range(n))


def add_one(arrays):
    kernels[len(arrays)](*arrays, grid=(1, 1), block=(1, 1, 1))
    return arrays


def prepared(arrays):
    kernel = kernels[len(arrays)].prepare("P" * len(arrays))  # the types of the arguments, once: pointers
    addresses = [x.gpudata for x in arrays]

    def replay():
        kernel.prepared_call((1, 1), (1, 1, 1), *addresses)
        return arrays

    return replay


def wait(arrays):
    autoprimaryctx.context.synchronize()


def download(arrays):
    return [x.get()[0] for x in arrays]


if __name__ == "__main__":
    arrays = add_one(zeros(4))
    arrays = prepared(arrays)()
    assert download(arrays) == [2, 2, 2, 2]
    print("PyCUDA: 4 arguments, all right")
