"""No NVIDIA driver, a driver that is too old, or no visible GPU: CuPy.

Framework: CuPy
Runs on: CPU
Install: pip install "cupy-cuda13x[ctk]"

CUDARuntimeError: cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version
CUDARuntimeError: cudaErrorNoDevice: no CUDA-capable device is detected
"""

import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""  # so that the error also occurs on a machine with a GPU

import cupy as cp  # noqa: E402
import numpy as np  # noqa: E402

# What goes wrong. The first message also appears if there is no driver at all.
try:
    cp.zeros(3)
except cp.cuda.runtime.CUDARuntimeError as error:
    assert f"CUDARuntimeError: {error}" in __doc__
else:
    raise AssertionError("no error")

# The fix: install a driver as new as the CUDA in the package's name, or the package for the driver's CUDA, which
# nvidia-smi shows. And in code that must also run without a GPU, ask first.
xp = cp if cp.is_available() else np
assert float(xp.ones(3).sum()) == 3
print(f"computed in {xp.__name__}")
