"""An array on a GPU. Not in ``cupy``, of whose arrays Dask believes to know how they are sent."""

from types import SimpleNamespace

import cupy
import numpy as np


class Array(np.ndarray):
    """``gpu``: the one that was current when it was made."""

    def __array_finalize__(self, other):
        self.gpu = cupy.cuda.current

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data)

    def get(self):
        return np.array(self, subok=False)
