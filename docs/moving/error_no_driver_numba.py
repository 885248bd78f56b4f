"""Numba finds no NVIDIA driver, or no visible GPU.

Framework: Numba
Runs on: CPU
Install: pip install numba

CudaSupportError: Error at driver init: CUDA driver library cannot be found. Ensure that a compatible NVIDIA driver is
    installed and available on your system path.
CudaSupportError: Error at driver init: CUDA driver library cannot be found. If you are sure that a CUDA driver is
    installed, try setting environment variable NUMBA_CUDA_DRIVER with the file path of the CUDA driver shared library.
CudaSupportError: Error at driver init: Call to cuInit results in CUDA_ERROR_NO_DEVICE (<CUresult.CUDA_ERROR_NO_DEVICE:
    100>)
"""

import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""  # so that the error also occurs on a machine with a GPU

import numpy as np  # noqa: E402
from numba import cuda, njit  # noqa: E402
from numba.cuda.cudadrv.error import CudaSupportError  # noqa: E402

# What goes wrong. Without a driver, the first message is numba-cuda's, and the second is that of Numba alone.
try:
    cuda.to_device(np.ones(3))
except CudaSupportError as error:
    assert " ".join(f"CudaSupportError: {error}".split()).rstrip(" :") in " ".join(__doc__.split())
else:
    raise AssertionError("no error")


# The fix: install the driver, or start the container with --gpus all. And in code that must also run without a GPU, ask
# first: njit compiles the same loop for the CPU. NUMBA_ENABLE_CUDASIM=1 runs kernels in a simulator, for debugging.
@njit
def total(x):
    found = 0.0
    for value in x:
        found += value
    return found


assert not cuda.is_available()
assert total(np.ones(3)) == 3
print("computed by njit")
