"""numba-cuda-mlir's names for device.py, which are those of fake_numba.py, and cuda.core's graphs, into which its
launches are recorded: ``install()`` puts both where they are found."""

import sys
from functools import partial
from types import ModuleType, SimpleNamespace

import fake_numba
import numpy as np
from device import Graph, launch, legacy


class Kernel(fake_numba.Kernel):
    compiled = False

    def __getitem__(self, configuration):
        queued = super().__getitem__(configuration)
        grid, block, *rest = configuration
        if not (rest and rest[0].recording):
            self.compiled = True
            return queued
        assert self.compiled, "a graph would have to load the kernel"

        def record(*arrays):
            run = partial(self.recorded, block, [x.size for x in arrays])
            launch(rest[0], run, grid, [(x.device_ctypes_pointer.value, True) for x in arrays])

        return record

    def recorded(self, block, sizes, grid, *memory):
        self.run(grid, block, [each[: 4 * n].view(np.float32) for each, n in zip(memory, sizes, strict=True)])


class RecordedGraph(Graph):
    def launch(self, stream):
        self.replay(stream)


class GraphBuilder:
    def __init__(self):
        self.stream = fake_numba.CudaStream()

    def begin_building(self):
        self.stream.record_into(RecordedGraph())
        return self

    def end_building(self):
        self.graph = self.stream.recording
        self.stream.record_into(None)
        return self

    def complete(self):
        return self.graph


class Device:
    default_stream = legacy

    def set_current(self):
        pass

    def create_graph_builder(self):
        return GraphBuilder()


def install():
    fake_numba.install()
    mlir, core = ModuleType("numba_cuda_mlir"), ModuleType("cuda.core")
    mlir.cuda = SimpleNamespace(**vars(sys.modules["numba.cuda"]))
    mlir.cuda.jit, core.Device = Kernel, Device
    cuda = sys.modules.setdefault("cuda", ModuleType("cuda"))
    cuda.core = sys.modules["cuda.core"] = core
    sys.modules["numba_cuda_mlir"] = mlir
