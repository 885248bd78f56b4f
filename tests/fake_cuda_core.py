"""cuda.core on the host, as far as its recipes use it: what is queued in a stream is done when that is waited for."""

import copy
import ctypes
import math
import re
import sys
from collections import deque
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from weakref import WeakValueDictionary

import numpy as np

import gpu_cookbook.kernels
from gpu_cookbook.recipes.random_subset_mean import philox, samples

LAUNCHES = Path(__file__).parents[1] / "docs" / "launches"
MULTIPROCESSORS = 132  # an H200's
BEFORE = 90  # each byte of memory that was used before
streams = []
known = WeakValueDictionary()  # address -> an array of NumPy, which is memory of the device
freed = deque(maxlen=16)  # memory that was freed last: who still has its address finds BEFORE there


class Stream:
    handle = property(id)

    def __init__(self):
        self.queue = []
        streams.append(self)

    def sync(self):
        while self.queue:
            self.queue.pop(0)()


legacy = Stream()  # the default stream, for which nobody waits here


def submit(stream, run, *arrays):
    stream.queue.append(run)


class GraphBuilder:
    """A graph under construction, into which is recorded what is launched. It has addresses, and keeps no memory."""

    def begin_building(self):
        self.queue = []
        return self

    def end_building(self):
        self.recorded = self.queue
        del self.queue  # nothing more is recorded
        return self

    def complete(self):
        return Graph(self.recorded)


class Graph:
    def __init__(self, recorded):
        self.recorded = recorded

    def launch(self, stream):
        stream.queue.extend(self.recorded)


class Buffer:
    stream = None  # in which memory of the device is freed

    def __init__(self, address, size, owner):
        assert type(size) is int and size > 0, "no bytes are an error"
        self.address, self.size, self.owner = address, size, owner

    def __del__(self):
        if self.stream is not None:
            self.stream.queue.append(partial(self.free, self.owner))

    @staticmethod
    def free(memory):
        memory.fill(BEFORE)
        freed.append(memory)

    @classmethod
    def new(cls, size):
        memory = np.full(size, BEFORE, np.int8)
        known[memory.ctypes.data] = memory
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
        known[self.ptr] = array
        self.size, self.strides = array.size, tuple(step // array.itemsize for step in array.strides) or None
        self.readonly = not array.flags.writeable
        return self

    def view(self, *, dtype):
        assert dtype.itemsize == self.dtype.itemsize
        other = copy.copy(self)
        other.dtype = dtype
        return other


class Device:
    properties = SimpleNamespace(multiprocessor_count=MULTIPROCESSORS)

    def set_current(self):
        pass

    def create_stream(self, *, options):
        assert options.nonblocking is False, "the clock that measures it would not wait for it"
        return Stream()

    def create_graph_builder(self):
        return GraphBuilder()

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
        kernels = Path(next(iter(gpu_cookbook.kernels.__path__)))
        (run,) = (run for file, run in KERNELS[name].items() if (kernels / file).read_text() in self.code)
        parameters = re.search(rf"__global__ void[^;{{]*?\b{name}\(([^)]*)\)", self.code)[1].split(",")
        return SimpleNamespace(run=run, parameters=[" ".join(each.split()) for each in parameters], loaded=False)


TYPES = {"int": np.int32, "long long": np.int64, "unsigned long long": np.uint64}  # of a kernel's parameters


def launch(where, config, kernel, *arguments):
    """``where``: a stream, or the builder of a graph."""
    assert 0 < config.grid < 2**31
    # CUDA loads a kernel when it is first launched, and drivers older than 12.3 cannot while a stream is captured.
    assert kernel.loaded or not isinstance(where, GraphBuilder), "a graph would have to load the kernel"
    kernel.loaded = True
    for argument, parameter in zip(arguments, kernel.parameters, strict=True):
        kinds = (int, Buffer) if "*" in parameter else (TYPES[parameter.rpartition(" ")[0]],)
        assert type(argument) in kinds, f"{argument!r} for {parameter}"
    given = [int(each.address if isinstance(each, Buffer) else each) for each in arguments]
    where.queue.append(partial(kernel.run, config, *given))


def at(address, size=None):
    """So many bytes from this address on, or all up to the end of that memory."""
    for first, memory in list(known.items()):
        left = first + memory.nbytes - address
        if first <= address and (size or 0) <= left:
            return np.frombuffer((ctypes.c_char * (left if size is None else size)).from_address(address), np.uint8)
    raise RuntimeError(f"an illegal memory access: {size} bytes at {address}")


def floats(address, *shape):
    return at(address, 4 * math.prod(shape)).view(np.float32).reshape(shape)


def doubles(address, *shape):
    return at(address, 8 * math.prod(shape)).view(np.float64).reshape(shape)


# ---- The kernels of kernels/*.cu and of docs/launches/add_one.cu, in NumPy: whole grids.


def multiply(each, config, a, b, c, n):
    """``each``: elements per thread, here and in the next one."""
    assert each * config.grid * config.block >= n
    floats(c, n)[:] = floats(a, n) * floats(b, n)


def increment(each, config, a, n):
    assert each * config.grid * config.block >= n
    floats(a, n)[:] += 1


def matmul(rows, columns, block, most_k, config, a, b, c, m, k, n):
    """``rows``, ``columns``: of the tile of one block of threads."""
    assert (config.grid, config.block) == (-(-m // rows) * -(-n // columns), block) and k <= most_k
    floats(c, m, n)[:] = floats(a, m, k).astype(np.float64) @ floats(b, k, n)


def add_to_partial(config, x, rows, columns, first_row, first_column, partial):
    subset = doubles(x, rows, columns)[first_row::2, first_column::2] + 1
    for block in range(min(config.grid, len(subset))):
        doubles(partial, config.grid)[block] += subset[block :: config.grid].sum()


def sums_of(subset, config, partial):
    doubles(partial, config.grid)[:] = [subset[block :: config.grid].sum() for block in range(config.grid)]


def add_subset(config, x, rows, columns, partial):
    sums_of(doubles(x, rows, columns)[::2, ::2], config, partial)


def add_samples(config, first, end, columns, seed, partial):
    sums_of(samples(end, columns, seed)[first::2, ::2] - 10, config, partial)


def mean(plus, config, partial, blocks, n, result):
    doubles(result)[()] = plus + doubles(partial, blocks).sum() / np.float64(n)


def add_squares_to_total(config, x, n, total):
    assert config.grid * config.block >= n
    doubles(total)[()] += np.square(floats(x, n), dtype=np.float64).sum()


def add_squares(config, x, n, partial):
    squares = np.square(floats(x, n))
    floats(partial, config.grid)[:] = [squares[block :: config.grid].sum() for block in range(config.grid)]


def root(config, total, norm):
    floats(norm)[()] = np.sqrt(doubles(total))


def root_of_sum(config, partial, blocks, norm):
    floats(norm)[()] = np.sqrt(floats(partial, blocks).sum())


def fill_normal(config, x, rows, columns, first_row, first_column, seed):
    row = np.arange(first_row, first_row + rows, dtype=np.uint64)[:, None]
    column = np.arange(first_column, first_column + columns, dtype=np.uint64)
    words = philox((column % 2**32, column >> 32, row % 2**32, row >> 32), (seed % 2**32, seed >> 32))
    u, v = (((words[i] << 32 | words[i + 1]) >> 11) * 2.0**-53 for i in (0, 2))
    doubles(x, rows, columns)[:] = 10 + np.sqrt(-2 * np.log(u + 2.0**-54)) * np.cos(2 * np.pi * v)


def add_one(config, *arrays):
    assert (config.grid, config.block) == (1, 1)
    for x in arrays:
        floats(x, 1)[:] += 1


KERNELS = {  # by name, and by the file in which it is
    "multiply": {"multiply.cu": partial(multiply, 1), "multiply_tuned.cu": partial(multiply, 4)},
    "increment": {"increment.cu": partial(increment, 1), "increment_tuned.cu": partial(increment, 4)},
    "matmul": {
        "matmul.cu": partial(matmul, 16, 16, (16, 16), math.inf),
        "matmul_tuned.cu": partial(matmul, 20, 16, 224, 256),
    },
    "add_subset": {
        "subset_mean.cu": add_to_partial,
        "subset_mean_tuned.cu": add_subset,
        "random_subset_mean_tuned.cu": add_samples,
    },
    "mean": {
        "subset_mean.cu": partial(mean, 0),
        "subset_mean_tuned.cu": partial(mean, 1),
        "random_subset_mean_tuned.cu": partial(mean, 11),
    },
    "add_squares": {"norm.cu": add_squares_to_total, "norm_tuned.cu": add_squares},
    "root": {"norm.cu": root, "norm_tuned.cu": root_of_sum},
    "fill_normal": {"fill_normal.cu": fill_normal},
    **{f"add_{n}": {LAUNCHES / "add_one.cu": add_one} for n in (1, 4, 16)},
}


def install():
    """Stands for cuda.core in this process."""
    core, utils = ModuleType("cuda.core"), ModuleType("cuda.core.utils")
    core.__path__ = []
    core.Buffer, core.Device, core.Program, core.launch = Buffer, Device, Program, launch
    core.LaunchConfig = core.StreamOptions = SimpleNamespace
    core.LegacyPinnedMemoryResource = lambda: SimpleNamespace(allocate=Buffer.new)
    utils.StridedMemoryView = StridedMemoryView
    sys.modules.update({"cuda.core": core, "cuda.core.utils": utils})
