"""A NumPy array is passed to a CuPy function.

Framework: CuPy
Runs on: NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]"

TypeError: Unsupported type <class 'numpy.ndarray'>
"""

import cupy as cp
import numpy as np

host = np.arange(3.0)

# What goes wrong: CuPy copies nothing to the GPU unless you ask for it.
try:
    cp.sqrt(host)
except TypeError as error:
    assert f"TypeError: {error}" in __doc__
else:
    raise AssertionError("no error")

# The fix: upload it once, beforehand. In code that takes either kind, get_array_module says which module to use.
x = cp.asarray(host)
np.testing.assert_allclose(cp.sqrt(x).get(), np.sqrt(host))
assert cp.get_array_module(x) is cp and cp.get_array_module(host) is np
print(f"on the GPU: {cp.sqrt(x)}")
