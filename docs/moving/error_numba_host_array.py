"""A host array is passed to a Numba kernel.

Framework: Numba
Runs on: NVIDIA GPU
Install: pip install "numba-cuda[cu13]" "numpy<2.5"

NumbaPerformanceWarning: Host array used in CUDA kernel will incur copy overhead to/from device.
"""

import warnings

import numpy as np
from numba import cuda

WARNING = "Host array used in CUDA kernel will incur copy overhead to/from device."


@cuda.jit
def twice(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= 2


def warned(x):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        twice[1_000, 256](x)
        cuda.synchronize()
    return any(WARNING in str(each.message) for each in found)  # "in", since with colorama the message is bold


# What goes wrong: the answer is right, but the array goes to the GPU and back at every launch.
host = np.ones(250_000, np.float32)
assert WARNING in __doc__ and warned(host)
assert (host == 2).all()

# The fix: call to_device once and copy_to_host once, with as many launches between them as you like.
x = cuda.to_device(host)
assert not warned(x)
assert (x.copy_to_host() == 4).all()
print("copied to the GPU once, and back once")
