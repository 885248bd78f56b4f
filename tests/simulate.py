"""A recipe in Numba's CUDA simulator, at the sizes that it can do in seconds: ``python simulate.py PATH``. One of
numba-cuda-mlir, too, which has none. With an expression after PATH, it prints the value of that."""

import ctypes
import os
import sys
import warnings
from pathlib import Path
from types import ModuleType, SimpleNamespace

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"  # read when numba.cuda is imported

import numpy as np  # noqa: E402
from fewer import require_right, with_few_special_values  # noqa: E402
from numba import cuda  # noqa: E402
from numba.cuda.simulator.cudadrv import devicearray  # noqa: E402
from numba.cuda.simulator.kernel import BlockThread, FakeCUDAKernel  # noqa: E402
from numba.cuda.simulator.kernelapi import FakeCUDAModule  # noqa: E402
from seeds import fault_of_seeds  # noqa: E402

from gpu_cookbook import catalogue  # noqa: E402
from gpu_cookbook.run import memory  # noqa: E402
from gpu_cookbook.run.device import Host  # noqa: E402
from gpu_cookbook.run.worker import Loader  # noqa: E402

kind_of = memory._kind


def simulated(value):
    """The simulator's arrays are NumPy's, in memory of the host."""
    if type(value).__name__ != "FakeCUDAArray":
        return kind_of(value)
    return memory._Kind(lambda array: np.array(array._ary), lambda array, values: np.copyto(array._ary, values))


memory._kind = simulated


SIZES = {
    "multiply": (0, 1, 2, 31, 33, 257),
    "increment": (0, 1, 2, 31, 33, 257),
    "matmul": ((1, 1, 1), (5, 6, 3), (0, 5, 3), (5, 0, 3)),
    "subset_mean": ((0, 0), (1, 1), (1, 2), (5, 3), (1, 131)),
    "norm": (0, 1, 33, 131),
    "random_subset_mean": ((0, 0), (1, 1), (5, 7)),
}


def sgemm(handle, _, __, m, n, k, alpha, a, a_rows, b, b_rows, beta, c, c_rows):
    """cuBLAS's product of matrices that are stored column by column, on addresses of the host."""
    assert (a_rows.value, b_rows.value, c_rows.value) == (m.value, k.value, m.value) and k.value

    def matrix(address, rows, columns):
        floats = (ctypes.c_float * (rows.value * columns.value)).from_address(address.value)
        return np.ctypeslib.as_array(floats).reshape(columns.value, rows.value).T

    matrix(c, m, n)[:] = matrix(a, m, k) @ matrix(b, k, n)
    return 0


# The simulator has no cuda.libdevice: NumPy's functions of the same meaning for those that recipes call.
FakeCUDAModule.libdevice = SimpleNamespace(
    rsqrtf=lambda x: 1 / np.sqrt(x), sincospi=lambda x: (np.sin(np.pi * x), np.cos(np.pi * x))
)
# Nor what the tuned recipes ask of arrays and of the device.
devicearray.FakeCUDAArray.device_ctypes_pointer = property(lambda self: SimpleNamespace(value=self.ctypes.data))
cuda.stream.handle = 0
# And it compares the strides of empty arrays, which may differ.
compatible = devicearray.check_array_compatibility
devicearray.check_array_compatibility = lambda a, b: a.size and compatible(a, b)


def is_alive(thread, alive=BlockThread.is_alive):
    """The simulator asks all threads of a block in turn, again and again, which takes more time than they do. Here it
    lets those that are at work go on meanwhile."""
    if not thread.syncthreads_blocked:
        thread.join(0.0005)
    return alive(thread)


BlockThread.is_alive = is_alive
warnings.filterwarnings("ignore", "overflow encountered", RuntimeWarning)  # NumPy's integers warn where a GPU's wrap


class Driver:
    """The driver's graphs: a kernel that is launched during a capture is recorded, and runs when the graph does."""

    CUstreamCaptureMode = SimpleNamespace(CU_STREAM_CAPTURE_MODE_RELAXED=None)
    recording = None

    def cuStreamBeginCapture(self, stream, mode):
        self.recording = []

    def cuStreamEndCapture(self, stream):
        recorded, self.recording = self.recording, None
        return recorded

    def cuGraphInstantiate(self, graph, flags):
        return graph

    def cuGraphLaunch(self, graph, stream):
        for launch in graph:
            launch()

    def cuCtxSynchronize(self):
        pass

    def cuGraphDestroy(self, graph):
        pass

    cuGraphExecDestroy = cuGraphDestroy


def configured(kernel, configuration, configure=FakeCUDAKernel.__getitem__):
    if driver.recording is None:
        return configure(kernel, configuration)
    return lambda *arguments: driver.recording.append(lambda: configure(kernel, configuration)(*arguments))


driver = Driver()
FakeCUDAKernel.__getitem__ = configured


class Simulator(Host):
    """Every launch is over when it returns: nothing can be late. Threads that sleep, as for other devices of the host,
    would only be waited for, and the simulator keeps a core busy meanwhile."""

    def late(self, *_):
        return False


successor = ModuleType("numba_cuda_mlir")
successor.cuda = cuda
sys.modules["numba_cuda_mlir"] = successor
recipe = catalogue.read(Path(sys.argv[1]))
workload = catalogue.workload_module(recipe.workload)
module = Loader(recipe).execute()
if hasattr(module, "cublas"):
    cuda.get_current_device = lambda: SimpleNamespace(id=0)  # which the simulator does not have
    module.cublas = lambda gpu: (SimpleNamespace(cublasSgemm_v2_64=sgemm), None)
# Every thread is one of Python's here: fewer of them, and one special value in seven, so that it ends in seconds.
vars(module).update(BLOCKS=2, THREADS=8, TILE=4)
module.checked = lambda answer: answer
module.cu = driver
with_few_special_values(workload)
workload.EDGE_SIZES = SIZES[recipe.workload]
if len(sys.argv) > 2:
    print(eval(sys.argv[2]))
    sys.exit()
require_right(module, workload, Simulator())
if recipe.workload == "random_subset_mean":
    fault = fault_of_seeds(module)
    assert fault is None, fault
if recipe.workload == "random_subset_mean" and recipe.lane == "tuned":  # tests/test_samples.py is for where it runs
    for rows, columns, seed in ((5, 7, 2**64 - 1), (2, 6, 1), (3, 1_030, 2**32 + 1)):
        found = module.download(module.random_subset_mean(rows, columns, seed=seed))
        expected = workload.samples(rows, columns, seed)[::2, ::2].mean() + 1
        assert abs(found - expected) < 1e-13, f"{rows} × {columns}: {found} instead of {expected}"
print(f"{len(workload.EDGE_SIZES)} sizes right")
