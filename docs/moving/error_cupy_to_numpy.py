"""A CuPy array is passed to NumPy.

Framework: CuPy
Runs on: NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]"

TypeError: Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy array
    explicitly.
"""

import cupy as cp
import numpy as np

# What goes wrong: NumPy, and everything built on it, asks for the array's memory, but that is on the GPU.
x = cp.arange(3.0)
try:
    np.asarray(x)
except TypeError as error:
    assert " ".join(f"TypeError: {error}".split()) in " ".join(__doc__.split())
else:
    raise AssertionError("no error")

# The fix: ask for the copy explicitly. (np.sqrt(x) needs none: NumPy hands it to CuPy, which returns a CuPy array.)
host = cp.asnumpy(x)  # or x.get(); asnumpy accepts NumPy arrays too
np.testing.assert_array_equal(host, [0, 1, 2])
assert isinstance(np.sqrt(x), cp.ndarray)
print(f"in NumPy: {host}")
