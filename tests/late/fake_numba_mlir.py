"""numba-cuda-mlir's names for device.py, which are those of fake_numba.py, and cuda.core's graphs, into which its
launches are recorded: ``install()`` puts both where they are found."""

import sys
from functools import partial
from types import ModuleType, SimpleNamespace

import fake_numba
import numpy as np
from device import Graph, current_stream, launch, legacy


class Kernel(fake_numba.Kernel):
    compiled = False

    def start(self, grid, block, stream, *arguments):
        for array in filter(fake_numba.is_foreign, arguments):
            # Before anything is launched, the host waits for the stream that the array names.
            fake_numba.as_cuda_array(array)
            stream = current_stream() if stream is None else stream
        if isinstance(stream, int):
            stream = fake_numba.stream_at(stream or 1)  # 0 is the default one
        if not (stream and stream.recording):
            self.compiled = True
            super().start(grid, block, stream, *arguments)
            return
        assert self.compiled, "a graph would have to load the kernel"
        run = partial(self.recorded, block, [x.size for x in arguments])
        launch(stream, run, grid, [(x.device_ctypes_pointer.value, True) for x in arguments])

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
