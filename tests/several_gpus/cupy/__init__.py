"""Several GPUs for the scripts of docs/all-reduce, which are folders of the host's memory: the few of CuPy's names that
they use. What CUDA puts into a queue happens when the script waits for that queue, and not before. A kernel or a copy
that is put into the queue of another GPU than it belongs to is an error."""

import ctypes
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from gpu_memory import Array

from . import cuda

float32, ndarray = np.float32, Array


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


ON_HOST = """
#include <algorithm>
#define __global__
struct float4 { float x, y, z, w; };
struct { int x; } gridDim, blockDim, blockIdx, threadIdx;
%s
extern "C" void launch(
    int blocks, int threads, float* const* arrays, int count, long long first, long long end, int rest)
{
    gridDim.x = blocks, blockDim.x = threads;
    for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++)
        for (threadIdx.x = 0; threadIdx.x < threads; threadIdx.x++)
            sum_part(arrays, count, first, end, rest);
}
"""


class RawKernel:
    """docs/all-reduce/sum_part.cu, which g++ compiles: its threads run one after the other."""

    def __init__(self, source, name):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "kernel.cpp").write_text(ON_HOST % source, encoding="utf-8")
            command = ["g++", "-O1", "-shared", "-fPIC", "-o", f"{folder}/kernel.so", f"{folder}/kernel.cpp"]
            subprocess.run(command, check=True)
            self.launch = ctypes.CDLL(f"{folder}/kernel.so").launch

    def __call__(self, grid, block, arguments):
        addresses, count, first, end, rest = arguments
        assert [type(each) for each in arguments[1:]] == [np.int32, np.int64, np.int64, np.int32]
        assert addresses.gpu == cuda.current and addresses.size == count
        assert {*range(count)} - {cuda.current} == cuda.peers[cuda.current], "the memory of another GPU is used"
        numbers = ctypes.c_int(count), ctypes.c_longlong(first), ctypes.c_longlong(end), ctypes.c_int(rest)
        pointers = ctypes.c_void_p(addresses.data.ptr)
        cuda.legacy[cuda.current].append(lambda: self.launch(grid[0], block[0], pointers, *numbers))
