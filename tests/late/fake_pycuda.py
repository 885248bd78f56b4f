"""PyCUDA's names for device.py: ``install()`` puts them where ``import pycuda`` finds them."""

import sys
from types import ModuleType, SimpleNamespace

import fake_cublas
import numpy as np
from device import MULTIPROCESSORS, Event, Memory, OnDevice, Stream, device, kernel, launch, legacy


class DriverStream(Stream):
    handle = property(id)

    def __init__(self, flags=0):
        super().__init__(not flags)

    def wait_for_event(self, event):
        event.wait(self)

    def is_done(self):
        return not self.queue


class DriverEvent(Event):
    def __init__(self, flags=0):
        pass

    def record(self, stream=None):
        super().record(stream or legacy)
        return self


class DeviceAllocation(Memory):
    """Freeing waits for the device, so that there is no pool."""

    def __int__(self):
        return self.bytes.ctypes.data

    __index__ = __int__

    def free(self):
        device.synchronize()


class PagelockedHostAllocation:
    def __init__(self, memory):
        self.memory = memory
        self.__array_interface__ = memory.__array_interface__

    def free(self):
        device.synchronize()


def pagelocked_empty(shape, dtype, order="C", mem_flags=0):
    return device.page_locked(shape, dtype, PagelockedHostAllocation)


def _on_device(x, count=None):
    address = int(x) if not isinstance(x, OnDevice) else x.a.ctypes.data
    return device.at(address)[:count]


def memcpy_htod_async(to, host, stream=None):
    device.upload(stream or legacy, _on_device(to, host.nbytes), host)


def memcpy_dtoh_async(host, source, stream=None):
    if not device.is_pinned(host):
        raise ValueError("PyCUDA waits for no copy into memory that is not page-locked")
    device.download(stream or legacy, host, _on_device(source, host.nbytes))


def memcpy_htod(to, host):
    """Of memory that is not page-locked, it returns when all is read, which is before all has arrived."""
    device.upload(legacy, _on_device(to, host.nbytes), host)
    if device.is_pinned(host):
        device.synchronize(legacy)


def memcpy_dtoh(host, source):
    device.download(legacy, host, _on_device(source, host.nbytes))
    device.synchronize(legacy)


class Address(int):
    def free(self):
        device.synchronize()


class GPUArray(OnDevice):
    """Its own work goes into the legacy default stream."""

    def __init__(self, a, dtype=None, gpudata=None, memory=None):
        if gpudata is not None:
            a = device.at(int(gpudata))[: int(np.prod(a)) * np.dtype(dtype).itemsize].view(dtype).reshape(a)
        super().__init__(a, memory if memory is not None else dtype if isinstance(dtype, Memory) else None)

    gpudata = property(lambda self: Address(self.a.ctypes.data))

    def get(self, ary=None):
        ary = np.full(self.shape, np.nan, self.dtype) if ary is None else ary
        if ary.shape != self.shape or ary.dtype != self.dtype:
            raise ValueError("self and ary must have the same size and dtype")
        if ary.size:
            memcpy_dtoh(ary, self)
        return ary

    def __mul__(self, other):
        out = GPUArray.new(self.shape, self.dtype)
        return out.queue(lambda a, x, y: np.multiply(x, y, out=a), self, other)

    def __iadd__(self, number):
        return self.queue(lambda a: np.add(a, number, out=a))


def to_gpu(host):
    array = GPUArray.new(host.shape, host.dtype)
    if host.size:
        memcpy_htod(array, np.ascontiguousarray(host))
    return array


class Function:
    def __init__(self, source, name):
        self.run = kernel(source, name)

    def __call__(self, *arrays, grid=(1, 1), block):
        launch(legacy, self.run, grid[0], [(x.gpudata, True) for x in arrays])

    def prepare(self, kinds):
        self.kinds = kinds
        return self

    def prepared_async_call(self, grid, block, stream, *arguments, shared_size=0):
        assert len(arguments) == len(self.kinds)
        given = [(x, kind == "P") for x, kind in zip(arguments, self.kinds, strict=True)]
        launch(stream or legacy, self.run, grid[0], given)

    def prepared_call(self, grid, block, *arguments, shared_size=0):
        self.prepared_async_call(grid, block, None, *arguments)


def install():
    context = SimpleNamespace(push=lambda: None, pop=lambda: None, synchronize=device.synchronize)
    modules = {name: ModuleType(name) for name in ("pycuda", "pycuda.autoprimaryctx", "pycuda.compiler")}
    modules |= {name: ModuleType(name) for name in ("pycuda.driver", "pycuda.gpuarray")}
    modules["pycuda.autoprimaryctx"].context = context
    modules["pycuda.autoprimaryctx"].device = SimpleNamespace(multiprocessor_count=MULTIPROCESSORS)
    modules["pycuda.compiler"].SourceModule = lambda source, **options: SimpleNamespace(
        get_function=lambda name: Function(source, name)
    )
    vars(modules["pycuda.driver"]).update(
        Stream=DriverStream,
        Event=DriverEvent,
        mem_alloc=DeviceAllocation,
        pagelocked_empty=pagelocked_empty,
        PagelockedHostAllocation=PagelockedHostAllocation,
        memcpy_htod_async=memcpy_htod_async,
        memcpy_dtoh_async=memcpy_dtoh_async,
        memcpy_htod=memcpy_htod,
        memcpy_dtoh=memcpy_dtoh,
        Context=SimpleNamespace(synchronize=device.synchronize),
    )
    vars(modules["pycuda.gpuarray"]).update(
        GPUArray=GPUArray, to_gpu=to_gpu, empty=GPUArray.new, zeros=lambda shape, dtype: to_gpu(np.zeros(shape, dtype))
    )
    for name, module in modules.items():
        if "." in name:
            setattr(modules["pycuda"], name.partition(".")[2], module)
    sys.modules |= modules
    fake_cublas.install(device, legacy)
