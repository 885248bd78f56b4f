"""Numba's names for device.py: ``install()`` puts them where ``from numba import cuda`` finds them. Kernels run thread
by thread, as Python."""

import contextlib
import sys
import threading
from functools import partial
from types import ModuleType, SimpleNamespace

import fake_cublas
import numpy as np
from device import Event, OnDevice, Stream, current_stream, device, legacy

here = threading.local()  # where in its grid a thread of a kernel is


class CudaStream(Stream):
    handle = property(id)

    def __init__(self):
        super().__init__(True)

    @contextlib.contextmanager
    def auto_synchronize(self):
        yield self
        self.synchronize()


class CudaEvent(Event):
    def __init__(self, timing=True):
        pass

    def record(self, stream=0):
        super().record(stream or legacy)


class PinnedMemory:
    def __init__(self, memory):
        self.memory, self.__array_interface__ = memory, memory.__array_interface__


class DeviceNDArray(OnDevice):
    """Freeing is late, and waits for the device, so that there is no pool."""

    device_ctypes_pointer = property(lambda self: SimpleNamespace(value=self.a.ctypes.data))

    def is_c_contiguous(self):
        return self.a.flags.c_contiguous

    def copy_to_host(self, ary=None, stream=0):
        out = np.full(self.shape, np.nan, self.dtype) if ary is None else ary
        if out.shape != self.shape or out.dtype != self.dtype:
            raise ValueError("incompatible shape or dtype")
        device.download(stream or legacy, out, self.a)
        if not stream or ary is None:
            device.synchronize(stream or legacy)
        return out

    def copy_to_device(self, ary, stream=0):
        if ary.shape != self.shape or ary.dtype != self.dtype:
            raise ValueError("incompatible shape or dtype")
        device.upload(stream or legacy, self.a, ary)
        if not stream:
            device.synchronize(legacy)


def is_foreign(x):
    return isinstance(x, OnDevice) and not isinstance(x, DeviceNDArray)


class Kernel:
    def __init__(self, function):
        self.function = function

    def __getitem__(self, configuration):
        grid, block, *rest = configuration
        return partial(self.start, int(grid), int(block), rest[0] if rest else None)

    def start(self, grid, block, stream, *arguments):
        if not grid:
            raise RuntimeError("a grid of no blocks")
        given = [x.a if isinstance(x, OnDevice) else x for x in arguments]
        touched = [x for x in given if isinstance(x, np.ndarray)]
        # For the arrays of another library, the kernel's stream waits for the current one of that: DLPack's rule.
        after = current_stream().queue[-1:] if any(map(is_foreign, arguments)) else ()
        device.submit(stream or legacy, lambda: self.run(grid, block, given), *touched, after=after)

    def run(self, grid, block, arguments):
        together = "syncthreads" in self.function.__code__.co_names
        for number in range(grid):
            barrier, shared = threading.Barrier(block), {}

            def thread(i, number=number, barrier=barrier, shared=shared):
                vars(here).update(block=number, thread=i, grid=grid, size=block, barrier=barrier, shared=shared)
                self.function(*arguments)

            if together:
                threads = [threading.Thread(target=thread, args=(i,)) for i in range(block)]
                for each in threads:
                    each.start()
                for each in threads:
                    each.join()
            else:
                for i in range(block):
                    thread(i)


class Place:
    def __init__(self, name):
        self.name = name

    x = property(lambda self: getattr(here, self.name))


def pinned_array(shape, dtype=np.float64, strides=None, order="C"):
    return device.page_locked(shape, dtype, PinnedMemory)


def to_device(host, stream=0):
    host = np.asarray(host)
    array = DeviceNDArray.new(host.shape, host.dtype)
    if host.size:
        array.copy_to_device(np.ascontiguousarray(host).reshape(host.shape), stream)
    return array


def from_interface(interface):
    address, shape, dtype = interface["data"][0], interface["shape"], np.dtype(interface["typestr"])
    return DeviceNDArray(device.at(address)[: int(np.prod(shape)) * dtype.itemsize].view(dtype).reshape(shape))


def as_cuda_array(x, sync=True):
    """It keeps x, and waits for the stream that x names, if x names one."""
    interface = x.__cuda_array_interface__
    if sync and interface.get("stream"):
        stream_at(interface["stream"]).synchronize()
    array = from_interface(interface)
    array.memory = x
    return array


class Driver:
    """The copies between addresses."""

    def cuMemcpyHtoDAsync(self, to, host, size, stream):
        device.upload(stream_at(stream), device.at(to)[:size], device.at(host)[:size])

    def cuMemcpyDtoHAsync(self, host, source, size, stream):
        device.download(stream_at(stream), device.at(host)[:size], device.at(source)[:size])


def stream_at(handle):
    return legacy if handle == 1 else next(each for each in device.streams if id(each) == handle)


def install():
    numba, cuda = ModuleType("numba"), ModuleType("numba.cuda")
    low_level = ModuleType("numba.cuda.cudadrv.driver")
    low_level.driver = Driver()
    numba.cuda = cuda
    gpu = SimpleNamespace(id=0)
    vars(cuda).update(
        jit=lambda function=None, **options: Kernel(function) if function else Kernel,
        grid=lambda _: here.block * here.size + here.thread,
        gridsize=lambda _: here.grid * here.size,
        threadIdx=Place("thread"),
        blockIdx=Place("block"),
        gridDim=Place("grid"),
        blockDim=Place("size"),
        shared=SimpleNamespace(array=lambda n, dtype: here.shared.setdefault(0, np.full(n, np.nan, dtype))),
        syncthreads=lambda: here.barrier.wait(),
        stream=CudaStream,
        event=CudaEvent,
        synchronize=device.synchronize,
        default_stream=lambda: legacy,
        device_array=lambda shape, dtype=np.float64, **options: DeviceNDArray.new(shape, dtype),
        to_device=to_device,
        pinned_array=pinned_array,
        PinnedMemory=PinnedMemory,
        from_cuda_array_interface=from_interface,
        as_cuda_array=as_cuda_array,
        external_stream=stream_at,
        get_current_device=lambda: gpu,
        gpus=[contextlib.nullcontext(gpu)],
        current_context=lambda: SimpleNamespace(deallocations=SimpleNamespace(clear=device.synchronize)),
    )
    sys.modules |= {"numba": numba, "numba.cuda": cuda, "numba.cuda.cudadrv.driver": low_level}
    fake_cublas.install(device, legacy)
