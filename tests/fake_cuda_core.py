"""cuda.core on the host, as far as its recipes use it: what is queued in a stream is done when that is waited for."""

import copy
import ctypes
import math
import re
import sys
from types import ModuleType, SimpleNamespace

import numpy as np

from gpu_cookbook.recipes.random_subset_mean import philox


class Stream:
    def __init__(self):
        self.queue = []

    def create_graph_builder(self):
        return GraphBuilder()

    def sync(self):
        while self.queue:
            self.queue.pop(0)()


class GraphBuilder:
    """A graph under construction, and then the graph: what was recorded, to be queued again and again."""

    def begin_building(self):
        self.queue = []
        return self

    def end_building(self):
        self.recorded = self.queue
        del self.queue  # nothing more is recorded
        return self

    def complete(self):
        return SimpleNamespace(launch=lambda stream: stream.queue.extend(self.recorded))


class Buffer:
    stream = None  # in which memory of the device is freed

    def __init__(self, address, size, owner):
        assert type(size) is int and size > 0, "no bytes are an error"
        self.address, self.size, self.owner = address, size, owner

    def __del__(self):
        if self.stream is not None:
            self.stream.queue.append(lambda owner=self.owner: None)

    @classmethod
    def new(cls, size):
        memory = np.full(size, 90, np.int8)  # what was there before
        return cls(memory.ctypes.data, size, memory)

    @classmethod
    def from_handle(cls, address, size, owner):
        return cls(address, size, owner)

    def copy_to(self, target, *, stream):
        assert target.size == self.size
        stream.queue.append(lambda: ctypes.memmove(target.address, self.address, self.size))

    def copy_from(self, source, *, stream):
        source.copy_to(self, stream=stream)

    def fill(self, value, *, stream):
        stream.queue.append(lambda: ctypes.memset(self.address, value, self.size))

    def __dlpack__(self, **options):
        return self.owner.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.owner.__dlpack_device__()


class StridedMemoryView:
    is_device_accessible, readonly = True, False

    @classmethod
    def from_buffer(cls, buffer, shape, *, dtype):
        self = cls()
        self.exporting_obj, self.ptr, self.shape, self.dtype = buffer, buffer.address, shape, dtype
        self.size, self.strides = math.prod(shape), None  # none: in C order
        assert isinstance(dtype, np.dtype) and self.size * dtype.itemsize <= buffer.size
        return self

    @classmethod
    def from_dlpack(cls, array, stream_ptr):
        """Of another library's array, which NumPy's stands for: it always has strides, except without an axis."""
        self = cls()
        self.exporting_obj, self.ptr, self.shape, self.dtype = array, array.ctypes.data, array.shape, array.dtype
        self.size, self.strides = array.size, tuple(step // array.itemsize for step in array.strides) or None
        self.readonly = not array.flags.writeable
        return self

    def view(self, *, dtype):
        assert dtype.itemsize == self.dtype.itemsize
        other = copy.copy(self)
        other.dtype = dtype
        return other


class Device:
    def set_current(self):
        pass

    def create_stream(self, *, options):
        assert options.nonblocking is False, "the clock that measures it would not wait for it"
        return Stream()

    def allocate(self, size, *, stream):
        buffer = Buffer.new(size)
        buffer.stream = stream
        return buffer


class Program:
    def __init__(self, code, kind):
        assert kind == "c++"
        self.code = code

    def compile(self, kind):
        assert kind == "cubin"
        return self

    def get_kernel(self, name):
        parameters = re.search(rf"__global__ void {name}\(([^)]*)\)", self.code)[1].split(",")
        return name, [" ".join(each.split()) for each in parameters]


def launch(stream, config, kernel, *arguments):
    name, parameters = kernel
    assert 0 < config.grid < 2**31
    for argument, parameter in zip(arguments, parameters, strict=True):
        kind = np.uint64 if parameter.startswith("unsigned long long") else np.int64
        kinds = (int, Buffer) if "*" in parameter else (kind,)
        assert type(argument) in kinds, f"{argument!r} for {parameter}"
    given = [int(each.address if isinstance(each, Buffer) else each) for each in arguments]
    stream.queue.append(lambda: KERNELS[name](config, *given))


def at(address, count, dtype=np.float64):
    return np.frombuffer((ctypes.c_char * (count * np.dtype(dtype).itemsize)).from_address(address), dtype)


def multiply(config, a, b, c, n):
    assert config.grid * config.block >= n
    at(c, n, np.float32)[:] = at(a, n, np.float32) * at(b, n, np.float32)


def increment(config, a, n):
    assert config.grid * config.block >= n
    at(a, n, np.float32)[:] += 1


def matmul(config, a, b, c, m, k, n):
    assert (config.grid, config.block) == (-(-m // 16) * -(-n // 16), (16, 16))
    left, right = at(a, m * k, np.float32).reshape(m, k), at(b, k * n, np.float32).reshape(k, n)
    at(c, m * n, np.float32)[:] = (left.astype(np.float64) @ right).ravel()


def add_subset(config, x, rows, columns, first_row, first_column, partial):
    subset = at(x, rows * columns).reshape(rows, columns)[first_row::2, first_column::2] + 1
    for block in range(min(config.grid, len(subset))):
        at(partial, config.grid)[block] += subset[block :: config.grid].sum()


def mean(config, partial, blocks, n, result):
    at(result, 1)[0] = at(partial, blocks).sum() / np.float64(n)


def fill_normal(config, x, rows, columns, first_row, first_column, seed):
    row = np.arange(first_row, first_row + rows, dtype=np.uint64)[:, None]
    column = np.arange(first_column, first_column + columns, dtype=np.uint64)
    words = philox((column % 2**32, column >> 32, row % 2**32, row >> 32), (seed % 2**32, seed >> 32))
    u, v = (((words[i] << 32 | words[i + 1]) >> 11) * 2.0**-53 for i in (0, 2))
    at(x, rows * columns)[:] = (10 + np.sqrt(-2 * np.log(u + 2.0**-54)) * np.cos(2 * np.pi * v)).ravel()


def add_one(config, *arrays):
    assert (config.grid, config.block) == (1, 1)
    for x in arrays:
        at(x, 1, np.float32)[:] += 1


KERNELS = {kernel.__name__: kernel for kernel in (multiply, increment, matmul, add_subset, mean, fill_normal)}
KERNELS |= {f"add_{n}": add_one for n in (1, 4, 16)}


def install():
    """Stands for cuda.core in this process."""
    core, utils = ModuleType("cuda.core"), ModuleType("cuda.core.utils")
    core.__path__ = []
    core.Buffer, core.Device, core.Program, core.launch = Buffer, Device, Program, launch
    core.LaunchConfig = core.StreamOptions = SimpleNamespace
    core.LegacyPinnedMemoryResource = lambda: SimpleNamespace(allocate=Buffer.new)
    utils.StridedMemoryView = StridedMemoryView
    sys.modules.update({"cuda.core": core, "cuda.core.utils": utils})
