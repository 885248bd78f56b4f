"""Several GPUs for the scripts of docs/all-reduce, which are folders of the host's memory: the few of CuPy's names that
they use. What CUDA puts into a queue happens when the script waits for that queue, and not before. A kernel or a copy
that is put into the queue of another GPU than it belongs to is an error."""

import ctypes

import numpy as np
from gpu_memory import Array

from . import cuda

float32 = np.float32


def arange(count):
    return np.arange(count).view(Array)


def empty(count, dtype):
    return np.full(count, -1, dtype).view(Array)


def array(values, dtype):
    return np.array(values, dtype).view(Array)


def asarray(x):
    return np.array(x).view(Array)


def asnumpy(x):
    assert x.gpu == cuda.current, f"an array of GPU {x.gpu} is read while GPU {cuda.current} is the current one"
    return x.get()


def floats(address, count):
    """The memory at an address."""
    return np.ctypeslib.as_array(ctypes.cast(int(address), ctypes.POINTER(ctypes.c_float)), (int(count),))


class RawKernel:
    """docs/all-reduce/sum_part.cu in NumPy."""

    def __init__(self, source, name):
        assert name == "sum_part" and f"void {name}(" in source

    def __call__(self, grid, block, arguments):
        addresses, count, first, end, rest = arguments
        assert [type(each) for each in arguments[1:]] == [np.int32, np.int64, np.int64, np.int32]
        assert addresses.gpu == cuda.current and addresses.size == count
        assert {*range(count)} - {cuda.current} == cuda.peers[cuda.current], "the memory of another GPU is used"

        def run():
            arrays = [floats(address, 4 * end + rest)[4 * first :] for address in addresses]
            total = np.sum(arrays, axis=0, dtype=np.float32)
            for each in arrays:
                each[:] = total

        cuda.legacy[cuda.current].append(run)
