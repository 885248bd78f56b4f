"""PyTorch's names for device.py: ``install()`` puts them where ``import torch`` finds them."""

import sys
from contextlib import contextmanager
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


class CudaStream(Stream):
    cuda_stream = property(id)

    def __init__(self, device=None, priority=0):
        super().__init__(False)
        self.device = device

    def wait_event(self, event):
        event.wait(self)

    def record_event(self, event=None):
        event = event or CudaEvent()
        event.record(self)
        return event

    def wait_stream(self, stream):
        self.wait_event(CudaStream.record_event(stream))


class CudaEvent(Event):
    def __init__(self, **options):
        pass

    def record(self, stream=None):
        super().record(stream or current_stream())

    def wait(self, stream=None):
        super().wait(stream or current_stream())


class CUDAGraph(Graph):
    def replay(self):
        super().replay(current_stream())


@contextmanager
def recording(graph, pool=None, stream=None, capture_error_mode="global"):
    """torch.cuda.graph: in a stream of its own if there is none, after all work of the device."""
    device.synchronize()
    stream = stream or CudaStream()
    stream.record_into(graph)
    try:
        with using(stream):
            yield
    finally:
        stream.record_into(None)


class Tensor(OnDevice):
    """Of the device, or of the host, where it is not queued."""

    is_cuda = False
    device = property(lambda self: "cuda:0" if self.is_cuda else "cpu")

    @property
    def __array_interface__(self):
        if self.is_cuda:
            raise TypeError("can't convert cuda device type tensor to numpy")
        return self.a.__array_interface__

    def numpy(self):
        return np.asarray(self)

    def numel(self):
        return self.a.size

    def get_device(self):
        return 0 if self.is_cuda else -1

    def is_contiguous(self):
        return self.a.flags.c_contiguous

    def is_pinned(self):
        return not self.is_cuda and device.is_pinned(self.a)

    def view(self, *shape):
        return self.reshape(*shape)

    def view_as(self, other):
        return self.reshape(other.shape)

    def split(self, size, dim=0):
        count = max(1, -(-self.a.shape[dim] // size))
        return [self[(slice(None),) * dim + (slice(i * size, (i + 1) * size),)] for i in range(count)]

    def to(self, where, non_blocking=False):
        assert str(where).startswith("cuda")
        return CudaTensor.pooled(self.shape, self.dtype).copy_(self, non_blocking)

    cuda = to

    def copy_(self, other, non_blocking=False):
        if not self.is_cuda and not other.is_cuda:
            np.copyto(self.a, other.a)
        elif self.is_cuda and other.is_cuda:
            self.queue(np.copyto, other)
        else:
            stream, wait = current_stream(), not non_blocking
            host = other if self.is_cuda else self
            if not host.a.flags.c_contiguous:  # through memory of PyTorch's own
                wait, plain = True, np.ascontiguousarray(host.a)
            else:
                plain = host.a
            if self.is_cuda:
                device.upload(stream, self.a, plain)
            else:
                device.download(stream, plain, other.a)
            if wait:
                stream.synchronize()
            if not self.is_cuda and plain is not host.a:
                np.copyto(host.a, plain)
        return self

    def record_stream(self, stream):
        raise NotImplementedError("memory that another stream uses: nobody needed this yet")

    def new_like(self, shape=None):
        return type(self).pooled(self.shape if shape is None else shape, self.dtype)

    def do(self, run, *others):
        if self.is_cuda:
            return self.queue(run, *others)
        run(self.a, *map(value, others))
        return self

    def mul_(self, other):
        return self.do(lambda a, y: np.multiply(a, y, out=a), other)

    def add_(self, other):
        return self.do(lambda a, y: np.add(a, y, out=a), other)

    def __mul__(self, other):
        return binary("multiply")(self, other)

    def __add__(self, other):
        return binary("add")(self, other)

    def __matmul__(self, other):
        return matmul(self, other)

    def sum(self):
        out = self.new_like(())
        return out.do(lambda a, x: np.copyto(a, x.sum()), self)

    def mean(self):
        out = self.new_like(())
        return out.do(lambda a, x: np.copyto(a, x.mean()), self)

    def cpu(self):
        return Tensor(np.full(self.shape, np.nan, self.dtype)).copy_(self)

    def __float__(self):
        return float(self.cpu().a)

    item = __float__


class CudaTensor(Tensor):
    is_cuda = True

    @classmethod
    def pooled(cls, shape, dtype):
        if current_stream().recording:
            raise NotImplementedError("memory of a graph's own pool: nobody needed this yet")
        return super().pooled(shape, dtype)


def empty(shape, dtype=np.float32, device="cpu", pin_memory=False):
    if str(device).startswith("cuda"):
        return CudaTensor.pooled(shape if np.ndim(shape) else (shape,), dtype)
    return Tensor(pinned(shape, dtype) if pin_memory else np.full(shape, np.nan, dtype))


pinned = device.page_locked


def tensor(x, device="cpu"):
    found = Tensor(np.array(x, order="C"))
    return found.to(device) if str(device).startswith("cuda") else found


def stack(tensors):
    tensors = list(tensors)
    out = tensors[0].new_like((len(tensors), *tensors[0].shape))
    return out.do(lambda a, *arrays: np.stack(arrays, out=a), *tensors)


def as_tensor(x, device="cpu"):
    memory = x.__cuda_array_interface__
    count = int(np.prod(memory["shape"])) * np.dtype(memory["typestr"]).itemsize
    found = at(memory["data"][0])[:count]
    return CudaTensor(found.view(memory["typestr"]).reshape(memory["shape"]))


at = device.at


def binary(name):
    def function(x, y, out=None):
        out = x.new_like() if out is None else out
        return out.do(lambda a, x, y: getattr(np, name)(x, y, out=a), x, y)

    return function


def matmul(x, y, out=None):
    out = x.new_like((len(x), y.shape[1])) if out is None else out
    return out.do(lambda a, x, y: np.matmul(x, y, out=a), x, y)


def compile_kernel(source, name):
    run, kinds = kernel(source, name), pointers(source, name)

    def start(grid, block, args, shared_mem=0, stream=None):
        assert kinds == [isinstance(x, Tensor) for x in args], "an int has four bytes, and only a tensor is an address"
        given = [x.a.ctypes.data if pointer else x for x, pointer in zip(args, kinds, strict=True)]
        launch(stream or current_stream(), run, grid[0], zip(given, kinds, strict=True))

    return start


def install():
    torch = ModuleType("torch")
    vars(torch).update(
        float32=np.dtype("float32"),
        float64=np.dtype("float64"),
        Tensor=Tensor,
        device=str,
        empty=empty,
        from_numpy=Tensor,
        as_tensor=as_tensor,
        tensor=tensor,
        stack=stack,
        matmul=matmul,
        add=binary("add"),
        mul=binary("multiply"),
        cuda=SimpleNamespace(
            Stream=CudaStream,
            Event=CudaEvent,
            CUDAGraph=CUDAGraph,
            graph=recording,
            _compile_kernel=compile_kernel,
            get_device_properties=lambda number=None: SimpleNamespace(multi_processor_count=MULTIPROCESSORS),
            stream=using,
            current_stream=lambda device=None: current_stream(),
            current_device=lambda: 0,
            synchronize=lambda number=None: device.synchronize(),
            device=lambda number: using(current_stream()),
        ),
    )
    legacy.cuda_stream = 0
    legacy.wait_stream = lambda stream: CudaStream.wait_stream(legacy, stream)
    legacy.wait_event = lambda event: event.wait(legacy)
    sys.modules["torch"] = torch
