"""cuBLAS as recipes call it through ctypes, on a device such as device.py: ``install()`` puts it where they look for
the library."""

import ctypes
import sys
from types import ModuleType, SimpleNamespace

import numpy as np

PATH = "cublas"  # no library of the system: what ctypes is given instead
DONE, NOT_INITIALIZED, INVALID_VALUE = 0, 1, 7  # cublasStatus_t


class Library:
    """Each handle has a stream, which is the legacy default stream at first. That of a handle which two threads use may
    change in between."""

    def __init__(self, device, legacy):
        self.device, self.legacy, self.streams = device, legacy, {}

    def cublasCreate_v2(self, handle):
        handle._obj.value = len(self.streams) + 1
        self.streams[handle._obj.value] = self.legacy
        return DONE

    def cublasSetStream_v2(self, handle, stream):
        if handle.value not in self.streams:
            return NOT_INITIALIZED
        found = [each for each in self.device.streams if id(each) == stream.value]
        self.streams[handle.value] = found[0] if stream.value else self.legacy
        return DONE

    def cublasSgemm_v2_64(self, handle, _, __, m, n, k, one, a, a_rows, b, b_rows, zero, c, c_rows):
        """Of matrices that are stored column by column."""
        if handle.value not in self.streams:
            return NOT_INITIALIZED
        if not (m.value and n.value and k.value) or (a_rows.value, b_rows.value, c_rows.value) != (
            m.value,
            k.value,
            m.value,
        ):
            return INVALID_VALUE
        assert (one._obj.value, zero._obj.value) == (1, 0)

        def matrix(address, rows, columns):
            count = rows.value * columns.value
            return self.device.at(address.value)[: 4 * count].view(np.float32).reshape(columns.value, rows.value)

        x, y, z = matrix(a, m, k), matrix(b, k, n), matrix(c, m, n)
        self.device.submit(self.streams[handle.value], lambda: np.matmul(y, x, out=z), x, y, z)
        return DONE


def install(device, legacy):
    library, load = Library(device, legacy), ctypes.CDLL
    ctypes.CDLL = lambda path, *rest, **options: library if path == PATH else load(path, *rest, **options)
    pathfinder = ModuleType("cuda.pathfinder")
    pathfinder.load_nvidia_dynamic_lib = lambda name: SimpleNamespace(abs_path=PATH)
    sys.modules["cuda.pathfinder"] = pathfinder
