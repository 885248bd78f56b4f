"""As much of CuPy as docs/transfers uses, on the host, with the least that CUDA promises: work in a stream runs as
late as it may, and in any order relative to other streams. What a script has not waited for is not there, memory that
it uses in another stream than it was allocated in is overwritten, and a kernel refuses memory that is not page-locked.

SEED chooses the order.
"""

import atexit
import ctypes
import os
import random
import sys
import threading
from types import SimpleNamespace

import numpy as np

float32 = np.float32
GPUS = int(os.environ.get("GPUS", "1"))
CHANCE = random.Random(int(os.environ.get("SEED", "0")))
lock = threading.RLock()
local = threading.local()
reachable = {}  # {address: bytes} of the host memory that the GPU reaches by itself
registered = {}


def reaches(x):
    start, end = x.ctypes.data, x.ctypes.data + x.nbytes
    known = [*reachable.items(), *registered.items()]
    return any(address <= start and end <= address + size for address, size in known)


class Stream:
    every = []

    def __init__(self, null=False, non_blocking=False):
        self.work, self.before, self.ptr = [], [], len(self.every)
        self.every.append(self)

    def __enter__(self):
        self.before.append(current())
        local.stream = self
        return self

    def __exit__(self, *error):
        local.stream = self.before.pop()

    def add(self, action):
        with lock:
            self.work.append(action)

    def synchronize(self):
        """Runs this stream's work, and as much of the others' as chance wants before it."""
        with lock:
            while self.work:
                CHANCE.choice([stream for stream in self.every if stream.work]).work.pop(0)()


null_stream = Stream()


def current():
    return getattr(local, "stream", null_stream)


class Device:
    def __init__(self, number=None):
        self.id = getattr(local, "device", 0) if number is None else number

    def __enter__(self):
        self.before, local.device = getattr(local, "device", 0), self.id
        return self

    def __exit__(self, *error):
        local.device = self.before

    def synchronize(self):
        for stream in Stream.every:
            stream.synchronize()


class ndarray:
    def __init__(self, shape, dtype, memptr=None, own=None):
        self.own = own if memptr is None else np.frombuffer(memptr.bytes, dtype)[: np.prod(shape)].reshape(shape)
        self.device = Device()

    @property
    def size(self):
        return self.own.size

    def part(self, own):
        found = ndarray(own.shape, own.dtype, own=own)
        found.device = self.device
        return found

    def __getitem__(self, key):
        return self.part(self.own[key])

    def __iter__(self):
        return (self.part(row) for row in self.own)

    def fill(self, value):
        current().add(lambda: self.own.fill(value))

    def set(self, x, stream=None):
        if x.shape != self.own.shape or x.dtype != self.own.dtype:
            raise ValueError("Shape mismatch")
        source = x if reaches(x) else x.copy()
        (stream or current()).add(lambda: np.copyto(self.own, source))

    def get(self, stream=None, out=None, blocking=True):
        out = np.empty_like(self.own) if out is None else out
        if out.shape != self.own.shape or out.dtype != self.own.dtype:
            raise ValueError("Shape mismatch")
        stream = stream or current()
        stream.add(lambda: np.copyto(out, self.own))
        if blocking or not reaches(out):
            stream.synchronize()
        return out


def empty(shape, dtype):
    """Memory of the current stream: work on it that was there before may still come."""
    x = ndarray(shape, dtype, own=np.full(shape, np.nan, dtype))
    x.fill(np.nan)
    return x


def multiply(x, y, out):
    if not x.own.shape == y.own.shape == out.own.shape:
        raise ValueError("operands could not be broadcast")
    current().add(lambda: np.multiply(x.own, y.own, out=out.own))
    return out


def copyto(out, x):
    current().add(lambda: np.copyto(out.own, x.own))


class UnownedMemory:
    def __init__(self, address, size, owner):
        if not any(start <= address and address + size <= start + room for start, room in reachable.items()):
            raise RuntimeError("an illegal memory access was encountered")
        self.bytes, self.owner = (ctypes.c_char * size).from_address(address), owner


def MemoryPointer(memory, offset):
    return memory


kept = []  # like CuPy's pools, so that an address stays what it is


def malloc_managed(size):
    memory = np.full(size, 0xFF, np.uint8)
    kept.append(memory)
    reachable[memory.ctypes.data] = size
    return SimpleNamespace(ptr=memory.ctypes.data)


def empty_pinned(shape, dtype):
    x = np.full(shape, np.nan, dtype)
    kept.append(x)
    reachable[x.ctypes.data] = x.nbytes
    return x


def host_register(address, size, flags):
    known = [*reachable.items(), *registered.items()]
    if any(start // 4096 <= (address + size) // 4096 and address // 4096 <= (start + n) // 4096 for start, n in known):
        raise RuntimeError("cudaErrorHostMemoryAlreadyRegistered")
    registered[address] = size


def prefetch(address, size, device, stream):
    assert any(start <= address and address + size <= start + room for start, room in reachable.items())
    assert 0 <= device < GPUS and stream in {each.ptr for each in Stream.every}


cuda = SimpleNamespace(
    Stream=Stream,
    Device=Device,
    get_current_stream=current,
    UnownedMemory=UnownedMemory,
    MemoryPointer=MemoryPointer,
    malloc_managed=malloc_managed,
    runtime=SimpleNamespace(
        hostRegister=host_register,
        hostUnregister=lambda address: registered.pop(address),
        memPrefetchAsync=prefetch,
        getDeviceCount=lambda: GPUS,
    ),
)


@atexit.register
def nothing_is_left():
    if registered:
        print("left registered", file=sys.stderr)
        os._exit(1)
