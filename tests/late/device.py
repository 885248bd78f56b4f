"""A GPU whose streams are late: what is queued runs when somebody waits, in each stream in its order, and of several
streams in a random one. A host array that is filled again or read too early then gives a wrong answer on any machine.

Memory is NumPy's. The framework's names for all this are in the other files of this folder.
"""

import ctypes
import random
import re
import threading
import time
import weakref
from contextlib import contextmanager
from functools import partial

import matmul
import numpy as np

EAGER = 0.2  # how often something that was queued before runs when more is queued
SWITCH = 1e-5  # seconds for which a thread of the host then lets others go on
MULTIPROCESSORS = 132  # an H200's


class Failed(Exception):
    """What a framework raises if the device fails."""


class Stream:
    """Work in its order. ``blocking``: whether it waits for the legacy default stream, and that for it."""

    recording = None  # the graph to which kernels are added instead of being queued, if there is one

    def __init__(self, blocking):
        self.queue, self.blocking = [], blocking
        device.streams.append(self)

    def synchronize(self):
        if self.recording:
            raise RuntimeError("a stream that records cannot be waited for")
        device.synchronize(self)

    def record_into(self, graph):
        """From now on, into this graph; None ends it."""
        if self is legacy or bool(graph) == bool(self.recording):
            raise RuntimeError("the default stream cannot record, nor can one that does, and only that can end it")
        self.recording = graph


class Graph:
    """Kernels, whose arguments are addresses: what is there when they run, if anything is."""

    def __init__(self):
        self.kernels = []

    def replay(self, stream):
        for each in self.kernels:
            launch(stream, *each)


class Work:
    def __init__(self, run, arrays, after):
        self.run, self.arrays, self.after, self.done = run, arrays, after, False

    @property
    def ready(self):
        return all(each.done for each in self.after)


class Event:
    """Done when all that was in a stream at this moment is."""

    last = ()

    def record(self, stream=None):
        self.last = [*stream.queue[-1:]] if stream else [work for each in device.streams for work in each.queue[-1:]]

    def wait(self, stream):
        device.submit(stream, lambda: None, after=self.last)

    def query(self):
        return all(each.done for each in self.last)

    def synchronize(self):
        device.until(self.query)


class Memory:
    """Bytes of the device, filled with ones, which is NaN. Those of a stream's pool are handed out again as soon as
    nothing of the host refers to them, for as many bytes or fewer: what is queued in that stream may still write there,
    and so they are filled after it."""

    def __init__(self, size, pool=None):
        with device.lock:
            free = device.pools.setdefault(pool, []) if pool else []  # without a pool, it is never used again
            enough = [i for i, each in enumerate(free) if each.nbytes >= size]
            if enough:
                self.bytes = free.pop(enough[0])
            else:
                self.bytes = np.empty(max(1, size), np.uint8)
                device.known.append((self.bytes.ctypes.data, self.bytes))
            device.live.add(self.bytes.ctypes.data)
        weakref.finalize(self, self.release, self.bytes, free).atexit = False
        if pool is not None and pool.queue:
            device.submit(pool, partial(self.bytes.fill, 0xFF), self.bytes)
        else:
            self.bytes.fill(0xFF)

    @staticmethod
    def release(memory, free):
        device.live.remove(memory.ctypes.data)
        free.append(memory)


class Device:
    def __init__(self):
        self.random, self.lock = random.Random(0), threading.RLock()
        self.streams, self.pools, self.known, self.live, self.pinned = [], {}, [], set(), {}
        self.fails_after = None  # so many things that are queued from now on

    def may_fail(self):
        with self.lock:
            if self.fails_after is not None:
                self.fails_after -= 1
                if self.fails_after < 0:
                    raise Failed

    def submit(self, stream, run, *arrays, after=()):
        """Queues work that reads or writes these arrays of the host or the device."""
        if stream.recording:
            raise NotImplementedError("a graph of more than kernels: nobody needed this yet")
        with self.lock:
            self.may_fail()
            if stream is legacy:
                after = [*after, *(work for each in self.streams if each.blocking for work in each.queue[-1:])]
            elif stream.blocking:
                after = [*after, *legacy.queue[-1:]]
            stream.queue.append(Work(run, arrays, after))
            if eager := self.random.random() < EAGER:
                self.step()
        time.sleep(SWITCH * eager)

    def step(self):
        """Runs the first work of a stream, any one."""
        with self.lock:
            work = self.random.choice([each for each in self.streams if each.queue and each.queue[0].ready]).queue
            work[0].run()
            work.pop(0).done = True

    def until(self, condition):
        while True:
            with self.lock:  # given back after each step, so that other threads of the host go on meanwhile
                if condition():
                    return
                self.step()

    def synchronize(self, stream=None):
        waiting = [stream] if stream else self.streams
        self.until(lambda: not any(each.queue for each in waiting))

    def leave_work(self):
        """Work of the default stream, whose pool may then hand out memory that is still in use."""
        for _ in range(4):
            self.submit(legacy, lambda: None)

    def under_way(self, arrays):
        """Whether any of these arrays of the host is still to be read or written."""
        with self.lock:
            touched = [x for each in self.streams for work in each.queue for x in work.arrays]
            return any(np.may_share_memory(x, y) for x in touched for y in arrays)

    def page_locked(self, shape, dtype, owner=None):
        """An array of the host that the device reaches by itself, full of NaN. Its base is of the class ``owner``."""
        memory = np.full(shape, np.nan, dtype)
        self.pinned[memory.ctypes.data] = memory.nbytes
        weakref.finalize(memory, self.pinned.pop, memory.ctypes.data).atexit = False
        return memory if owner is None else np.asarray(owner(memory))

    def is_pinned(self, x):
        start = x.ctypes.data  # below, a copy: other threads may add to it, and the end of an array take from it
        return any(first <= start and start + x.nbytes <= first + size for first, size in self.pinned.copy().items())

    def upload(self, stream, to, host):
        """Bytes of the host, which are read now if they are not page-locked."""
        source = bytes_of(host if self.is_pinned(host) else np.array(host, order="K"))
        target = bytes_of(to)[: source.size]
        self.submit(stream, lambda: np.copyto(target, source), source, target)

    def download(self, stream, host, source):
        """The host goes on at once only if its memory is page-locked."""
        target, data = bytes_of(host), bytes_of(source)[: host.nbytes]
        self.submit(stream, lambda: np.copyto(target, data), target, data)
        if not self.is_pinned(host):
            self.synchronize(stream)

    def at(self, address):
        """The bytes from an address of the device, or of page-locked memory, to the end of that memory."""
        for first, memory in reversed(self.known):
            if first <= address < first + memory.nbytes and first in self.live:
                return memory[address - first :]
        for first, size in self.pinned.copy().items():
            if first <= address < first + max(1, size):
                return np.ctypeslib.as_array((ctypes.c_uint8 * (first + size - address)).from_address(address))
        raise ValueError(f"an illegal memory access, at {address}")


def bytes_of(x):
    assert x.flags.c_contiguous, "a copy of bytes takes contiguous arrays"
    return x.reshape(-1).view(np.uint8)


device = Device()
legacy = Stream(True)  # the default stream
current = threading.local()


def current_stream():
    return getattr(current, "stream", legacy)


@contextmanager
def using(stream):
    before, current.stream = current_stream(), stream
    try:
        yield stream
    finally:
        current.stream = before


class OnDevice:
    """An array of the device, of which every framework's is a kind. Work on it goes into the current stream."""

    def __init__(self, a, memory=None):
        self.a, self.memory = a, memory

    @classmethod
    def new(cls, shape, dtype, pool=None):
        count = int(np.prod(shape))
        memory = Memory(count * np.dtype(dtype).itemsize, pool)
        return cls(np.ndarray(shape, dtype, memory.bytes), memory)

    @classmethod
    def pooled(cls, shape, dtype):
        return cls.new(shape, dtype, current_stream())

    shape = property(lambda self: self.a.shape)
    dtype = property(lambda self: self.a.dtype)
    size = property(lambda self: self.a.size)
    ndim = property(lambda self: self.a.ndim)
    nbytes = property(lambda self: self.a.nbytes)
    flags = property(lambda self: self.a.flags)
    strides = property(lambda self: self.a.strides)

    def __len__(self):
        return len(self.a)

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        return type(self)(self.a[*index, ...], self.memory)  # a view, also of one element

    def reshape(self, *shape):
        return type(self)(self.a.reshape(*shape), self.memory)

    def ravel(self):
        return self.reshape(-1)

    def queue(self, run, *others):
        """Queues run(a, …) with the plain arrays and numbers: what is queued keeps no memory from going back to a
        pool."""
        a, values = self.a, [value(x) for x in others]
        touched = [x for x in values if isinstance(x, np.ndarray)]
        device.submit(current_stream(), lambda: run(a, *values), a, *touched)
        return self


def value(x):
    return x.a if isinstance(x, OnDevice) else x


# ---- The kernels of kernels/*.cu and of docs/launches/add_one.cu, in NumPy: whole grids.


def _subset(first_row, first_column, x, rows, columns):
    return x[: 8 * rows * columns].view(np.float64).reshape(rows, columns)[first_row::2, first_column::2]


def _floats(x, n, dtype=np.float32):
    return x[: np.dtype(dtype).itemsize * n].view(dtype)


def multiply(grid, a, b, c, n):
    np.multiply(_floats(a, n), _floats(b, n), out=_floats(c, n))


def increment(grid, a, n):
    a = _floats(a, n)
    a += 1


def add_subset(grid, x, rows, columns, *rest):
    if len(rest) == 1:  # subset_mean_tuned.cu
        _floats(rest[0], grid, np.float64)[:] = 0
        _floats(rest[0], 1, np.float64)[0] = _subset(0, 0, x, rows, columns).sum()
    else:
        first_row, first_column, partial = rest
        _floats(partial, 1, np.float64)[0] += (_subset(first_row, first_column, x, rows, columns) + 1).sum()


def mean(grid, partial, blocks, n, result, plus):
    _floats(result, 1, np.float64)[0] = _floats(partial, blocks, np.float64).sum() / n + plus


def add_one(grid, *arrays):
    for x in arrays:
        _floats(x, 1)[0] += 1


def kernel(source, name):
    """The function of this name of a kernel's source."""
    if name == "mean":
        plus = "sum / n + 1" in source
        return lambda *arguments: mean(*arguments, plus)
    own = {"multiply": multiply, "increment": increment, "add_subset": add_subset, "empty": lambda grid: None}
    own |= {f"add_{n}": add_one for n in (1, 4, 16)}
    return (own | matmul.KERNELS)[name]


def pointers(source, name):
    """Whether each argument of this function is an address."""
    found = re.search(rf"void[^;{{]*?\b{name}\(([^)]*)\)", source)[1]
    return ["*" in each for each in found.split(",") if each]


def launch(stream, run, grid, arguments):
    """Queues a kernel. Numbers that are addresses, which all pointers are, become the bytes there."""
    if stream.recording:
        device.may_fail()
        stream.recording.kernels.append((run, grid, list(arguments)))
        return
    given = [device.at(int(x)) if pointer else int(x) for x, pointer in arguments]
    device.submit(stream, lambda: run(grid, *given), *(x for x in given if isinstance(x, np.ndarray)))
