"""What the recipes use of cuda.compute and CuPy, on the host and on NumPy's arrays: test_cuda_compute.py runs them.
A Python function is given whole arrays instead of single items."""

import sys
import weakref
from types import ModuleType, SimpleNamespace

import numpy as np


class Iterator:
    def __init__(self, first):
        assert isinstance(first, np.generic)
        self.first = first


class CountingIterator(Iterator):
    def items(self, n):
        return self.first + np.arange(n, dtype=self.first.dtype)


class ConstantIterator(Iterator):
    def items(self, n):
        return np.full(n, self.first)


class ZipIterator:
    def __init__(self, *parts):
        self.parts = parts

    def items(self, n):
        return [part.items(n) for part in self.parts]


class TransformIterator:
    def __init__(self, given, op, dtype):
        self.given, self.op, self.dtype = given, op, dtype

    def items(self, n):
        found = self.op(items(self.given, n))
        assert found.dtype == self.dtype
        return found


class PermutationIterator:
    def __init__(self, values, places):
        assert values.ndim == 1
        self.values, self.places = values, places

    def items(self, n):
        places = self.places.items(n)
        assert places.min() >= 0, "before the array"
        return self.values[places]


def items(given, n):
    if isinstance(given, np.ndarray):
        assert given.flags.c_contiguous and given.size >= n
        return given.reshape(-1)[:n]
    return given.items(n)


def write(out, values):
    assert out.flags.c_contiguous and values.dtype == out.dtype
    out.reshape(-1)[: values.size] = values


KEPT = {}  # the arrays of the last call of each algorithm, as cuda.compute keeps them
MADE, ALIVE = [], []  # arrays of CuPy's; how many bytes they had whenever one was made


def empty(shape, dtype=np.float64):
    array = np.empty(shape, dtype)
    MADE[:] = [each for each in MADE if each() is not None] + [weakref.ref(array)]
    ALIVE.append(sum(each().nbytes for each in MADE))
    return array


def binary_transform(*, d_in1, d_in2, d_out, op, num_items, stream):
    assert stream is STREAM and num_items > 0
    KEPT["binary_transform"] = d_in1, d_in2, d_out
    write(d_out, op(items(d_in1, num_items), items(d_in2, num_items)))


def unary_transform(*, d_in, d_out, op, num_items, stream):
    assert stream is STREAM and num_items > 0
    KEPT["unary_transform"] = d_in, d_out
    write(d_out, op(items(d_in, num_items)))


def made(transform, *arrays):
    """What makes a transform of these arrays for later calls, each of which is given them, too."""

    def make(**kinds):
        assert set(kinds) == {*arrays, "op"}
        return transform

    return make


def make_reduce_into(**kinds):
    def reduce(*, temp_storage, d_in, d_out, op, num_items, h_init, stream=None):
        assert set(kinds) == {"d_in", "d_out", "op", "h_init"} and num_items > 0
        if temp_storage is None:
            return 99
        assert temp_storage.nbytes >= 99 and stream is STREAM
        write(d_out, np.array([op.reduce(items(d_in, num_items), initial=h_init[0])]))
        return 99

    return reduce


STREAM = SimpleNamespace(synchronize=lambda: None)


def install():
    """Stands for cuda.compute and CuPy in this process."""
    compute, types, cupy = ModuleType("cuda.compute"), ModuleType("cuda.compute.types"), ModuleType("cupy")
    compute.__path__ = []
    for each in (CountingIterator, ConstantIterator, ZipIterator, TransformIterator, PermutationIterator):
        setattr(compute, each.__name__, each)
    compute.binary_transform, compute.unary_transform = binary_transform, unary_transform
    compute.make_binary_transform = made(binary_transform, "d_in1", "d_in2", "d_out")
    compute.make_unary_transform = made(unary_transform, "d_in", "d_out")
    compute.make_reduce_into = make_reduce_into
    compute.OpKind = SimpleNamespace(MULTIPLIES=np.multiply, PLUS=np.add)
    types.float32, types.float64, types.int64 = np.float32, np.float64, np.int64
    cupy.empty, cupy.empty_like, cupy.zeros, cupy.full, cupy.nan = empty, np.empty_like, np.zeros, np.full, np.nan
    cupy.sqrt = np.sqrt
    cupy.asarray = lambda array, *, blocking: np.array(array, order="C")
    cupy.asnumpy = np.array
    cupy.cuda = SimpleNamespace(get_current_stream=lambda: STREAM)
    sys.modules.update({"cuda.compute": compute, "cuda.compute.types": types, "cupy": cupy})
