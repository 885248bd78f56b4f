"""CuPy's names for device.py, and the few of cuda.bindings that scripts use beside them: ``install()`` puts them where
``import cupy`` finds them. Several GPUs are one here, which has the memory and the streams of all."""

import contextlib
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
from device import (
    MULTIPROCESSORS,
    Event,
    Graph,
    OnDevice,
    Stream,
    current_stream,
    device,
    kernel,
    launch,
    legacy,
    pointers,
    using,
    value,
)

PAGE = 4096  # bytes
HOST = 2  # cudaMemLocationTypeHost
registered = set()  # addresses of memory that is page-locked until somebody gives it back


class CupyDevice(contextlib.nullcontext):
    id = 0
    attributes = property(lambda self: {"MultiProcessorCount": MULTIPROCESSORS})

    def __init__(self, number=0):
        super().__init__(self)

    def synchronize(self):
        device.synchronize()


class CupyStream(Stream):
    ptr = property(id)

    def __init__(self, null=False, non_blocking=False, ptds=False):
        super().__init__(not non_blocking)

    def __enter__(self):
        self.context = using(self)
        return self.context.__enter__()

    def __exit__(self, *error):
        self.context.__exit__(*error)

    def record(self, event=None):
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event):
        event.wait(self)

    def begin_capture(self):
        self.record_into(CupyGraph())

    def end_capture(self):
        graph = self.recording
        self.record_into(None)
        return graph


class CupyGraph(Graph):
    def launch(self, stream=None):
        self.replay(stream or current_stream())


class ndarray(OnDevice):
    data = property(lambda self: SimpleNamespace(ptr=self.a.ctypes.data))
    device = property(lambda self: CupyDevice())

    def fill(self, number):
        self.queue(lambda a: a.fill(number))

    def set(self, host, stream=None):
        if host.dtype != self.dtype:
            raise TypeError(f"{host.dtype} array cannot be set to {self.dtype} array")
        if host.shape != self.shape:
            raise ValueError("Shape mismatch")
        device.upload(stream or current_stream(), self.a, np.ascontiguousarray(host))

    def get(self, stream=None, order="C", out=None, blocking=True):
        stream = stream or current_stream()
        if out is None:
            out = np.full(self.shape, np.nan, self.dtype)
        if out.dtype != self.dtype:
            raise TypeError(f"{out.dtype} array cannot be obtained from {self.dtype} array")
        if out.shape != self.shape:
            raise ValueError("Shape mismatch")
        device.download(stream, out, self.a)
        if blocking:
            stream.synchronize()
        return out

    def __iadd__(self, other):
        return add(self, other, out=self)

    def __add__(self, other):
        return add(self, other)

    def sum(self, out=None):
        out = ndarray.pooled((), self.dtype) if out is None else out
        return out.queue(lambda a, x: np.copyto(a, x.sum()), self)

    def mean(self):
        out = ndarray.pooled((), self.dtype)
        return out.queue(lambda a, x: np.copyto(a, x.mean()), self)

    def __float__(self):
        return float(self.get())


def _binary(function):
    def queued(x, y, out=None):
        out = (
            ndarray.pooled(np.broadcast_shapes(np.shape(value(x)), np.shape(value(y))), x.dtype) if out is None else out
        )
        return out.queue(lambda a, x, y: function(x, y, out=a), x, y)

    return queued


add, multiply = _binary(np.add), _binary(np.multiply)


def matmul(x, y, out=None):
    out = ndarray.pooled((len(x), y.shape[1]), x.dtype) if out is None else out
    return out.queue(lambda a, x, y: np.matmul(x, y, out=a), x, y)


def copyto(to, of):
    to.queue(np.copyto, of)


def asarray(host, blocking=False):
    host = np.asarray(host)
    array = ndarray.pooled(host.shape, host.dtype)
    array.set(host)
    if blocking:
        current_stream().synchronize()
    return array


def empty(shape, dtype=np.float64):
    return ndarray.pooled(shape, dtype)


def asnumpy(x, stream=None, order="C", out=None, blocking=True):
    return x.get(stream, order, out, blocking)


class PinnedMemoryPointer:
    def __init__(self, memory):
        self.memory, self.__array_interface__ = memory, memory.__array_interface__


def empty_pinned(shape, dtype=np.float64):
    return device.page_locked(shape, dtype, PinnedMemoryPointer)


class RawModule:
    def __init__(self, code, **options):
        self.code = code

    def get_function(self, name):
        run, kinds = kernel(self.code, name), pointers(self.code, name)

        def start(grid, block, arguments, stream=None):
            given = [x.a.ctypes.data if isinstance(x, OnDevice) else x for x in arguments]
            launch(stream or current_stream(), run, grid[0], zip(given, kinds, strict=True))

        return start


def _stream(pointer):
    return {each.ptr: each for each in device.streams}[pointer]


def _memcpy_async(target, source, count, kind, stream):
    to, of = device.at(target)[:count], device.at(source)[:count]
    device.submit(_stream(stream), lambda: np.copyto(to, of), to, of)


def _over(shape, dtype, memory):
    """An array over page-locked memory."""
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return ndarray(device.at(memory)[:count].view(dtype).reshape(shape))


def _malloc_managed(size):
    """Unified memory: the host and the device reach it at one address, as they do page-locked memory."""
    memory = device.page_locked(-(-size // 4), np.float32)
    return SimpleNamespace(ptr=memory.ctypes.data, memory=memory)


def _prefetch(address, size, number, stream):
    """Pages that are sent ahead change nothing, but take their turn in a stream. CuPy sends them to a GPU only."""
    memory = device.at(address)[:size]
    assert memory.size == size and number >= 0
    device.submit(_stream(stream), lambda: None, memory)


def _prefetch_to_host(address, size, location, flags, stream):
    """The way of cuda.bindings, which returns errors."""
    assert location.type == HOST and flags == 0
    _prefetch(address, size, 0, stream)
    return (0,)


def _host_register(address, size, flags):
    """CUDA knows page-locked memory by its pages, and refuses one that it knows."""
    first, last = address // PAGE, (address + size - 1) // PAGE
    if any(start // PAGE <= last and first <= (start + n - 1) // PAGE for start, n in list(device.pinned.items())):
        raise RuntimeError("cudaErrorHostMemoryAlreadyRegistered")
    device.pinned[address] = size
    registered.add(address)


def _host_unregister(address):
    if device.under_way([device.at(address)]):
        raise RuntimeError("pages that the device still reads or writes may move")
    del device.pinned[address]
    registered.remove(address)


def _attributes(address):
    pinned = any(first <= address < first + size for first, size in list(device.pinned.items()))
    return SimpleNamespace(type=1 if pinned else 0, devicePointer=address)


def install(gpus=1):
    cupy, cupyx, bindings = ModuleType("cupy"), ModuleType("cupyx"), ModuleType("cuda.bindings")
    for each in (asarray, empty, asnumpy, copyto, matmul, RawModule):
        setattr(cupy, each.__name__, each)
    cupy.add, cupy.multiply, cupy.ndarray = add, multiply, _over
    cupy.nan, cupy.float32, cupy.float64 = np.nan, np.float32, np.float64
    cupy.array = lambda x: asarray(np.asarray(x))
    cupy.zeros = lambda shape, dtype=np.float64: asarray(np.zeros(shape, dtype))
    cupy.RawKernel = lambda code, name, **options: RawModule(code).get_function(name)
    CupyStream.null, legacy.ptr = legacy, 0
    cupy.cuda = SimpleNamespace(
        Stream=CupyStream,
        Event=lambda *_, **__: Event(),
        Device=CupyDevice,
        PinnedMemoryPointer=PinnedMemoryPointer,
        UnownedMemory=lambda address, size, owner, device_id=-1: address,
        MemoryPointer=lambda address, offset: address + offset,
        malloc_managed=_malloc_managed,
        get_current_stream=current_stream,
        runtime=SimpleNamespace(
            pointerGetAttributes=_attributes,
            memcpyAsync=_memcpy_async,
            memcpyHostToDevice=1,
            memcpyDeviceToHost=2,
            memPrefetchAsync=_prefetch,
            hostRegister=_host_register,
            hostUnregister=_host_unregister,
            streamSynchronize=lambda pointer: device.synchronize(_stream(pointer)),
            deviceSynchronize=device.synchronize,
            getDevice=lambda: 0,
            getDeviceCount=lambda: gpus,
        ),
    )
    cupyx.empty_pinned = empty_pinned
    bindings.runtime = SimpleNamespace(
        cudaMemLocation=SimpleNamespace,
        cudaMemLocationType=SimpleNamespace(cudaMemLocationTypeHost=HOST),
        cudaMemPrefetchAsync=_prefetch_to_host,
    )
    sys.modules |= {"cupy": cupy, "cupy.cuda": cupy.cuda, "cupyx": cupyx, "cuda.bindings": bindings}
