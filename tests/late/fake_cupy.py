"""CuPy's names for device.py: ``install()`` puts them where ``import cupy`` finds them."""

import contextlib
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
from device import Event, OnDevice, Stream, current_stream, device, kernel, launch, legacy, using, value


class CupyStream(Stream):
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


class ndarray(OnDevice):
    data = property(lambda self: SimpleNamespace(ptr=self.a.ctypes.data))

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


def empty_pinned(shape, dtype=np.float64):
    return device.page_locked(shape, dtype)


class RawModule:
    def __init__(self, code, **options):
        self.code = code

    def get_function(self, name):
        run = kernel(self.code, name)

        def start(grid, block, arguments, stream=None):
            given = []
            for i, x in enumerate(arguments):
                pointer = isinstance(x, OnDevice) or (i == 0 and isinstance(x, int))
                given.append((x.a.ctypes.data if isinstance(x, OnDevice) else x, pointer))
            launch(stream or current_stream(), run, grid[0], given)

        return start


def _memcpy_async(target, source, count, kind, stream):
    stream = {id(each): each for each in device.streams}.get(stream, legacy)
    to, of = device.at(target)[:count], device.at(source)[:count]
    device.submit(stream, lambda: np.copyto(to, of), to, of)


def _over(shape, dtype, memory):
    """An array over page-locked memory."""
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return ndarray(device.at(memory)[:count].view(dtype).reshape(shape))


def _attributes(address):
    pinned = any(first <= address < first + size for first, size in list(device.pinned.items()))
    return SimpleNamespace(type=1 if pinned else 0, devicePointer=address)


def install():
    cupy, cupyx = ModuleType("cupy"), ModuleType("cupyx")
    for each in (add, multiply, asarray, empty, asnumpy, RawModule):
        setattr(cupy, each.__name__ if each not in (add, multiply) else "add" if each is add else "multiply", each)
    cupy.ndarray = _over
    cupy.nan, cupy.float32, cupy.float64 = np.nan, np.float32, np.float64
    cupy.array = lambda x: asarray(np.asarray(x))
    cupy.zeros = lambda shape, dtype=np.float64: asarray(np.zeros(shape, dtype))
    cupy.RawKernel = lambda code, name, **options: RawModule(code).get_function(name)

    class Gpu(contextlib.nullcontext):
        id = 0

        def __init__(self, number=0):
            super().__init__()

        def synchronize(self):
            device.synchronize()

    CupyStream.null, CupyStream.ptr = legacy, property(id)
    cupy.cuda = SimpleNamespace(
        Stream=CupyStream,
        Event=lambda *_, **__: Event(),
        Device=Gpu,
        UnownedMemory=lambda address, size, owner, device_id=-1: address,
        MemoryPointer=lambda address, offset: address + offset,
        get_current_stream=current_stream,
        runtime=SimpleNamespace(
            pointerGetAttributes=_attributes,
            memcpyAsync=_memcpy_async,
            memcpyHostToDevice=1,
            memcpyDeviceToHost=2,
            streamSynchronize=lambda pointer: device.synchronize(
                {id(each): each for each in device.streams}.get(pointer, legacy)
            ),
            deviceSynchronize=device.synchronize,
        ),
    )
    cupyx.empty_pinned = empty_pinned
    sys.modules |= {"cupy": cupy, "cupyx": cupyx}
