"""A Dask array whose shape is not known yet.

Framework: Dask
Runs on: CPU
Install: pip install "dask[complete]"

ValueError: Arrays chunk sizes are unknown: (nan,)
"""

import dask.array as da
import numpy as np

x = da.from_array(np.arange(10), chunks=4)

# What goes wrong: the number of even elements is known only after looking at them, and Dask has not looked yet.
even = x[x % 2 == 0]
try:
    even[1:3]
except ValueError as error:
    assert f"ValueError: {error}".splitlines()[0] in __doc__
else:
    raise AssertionError("no error")

# The fix: count them, which computes everything up to here; or keep the shape, and put a neutral element where you
# would have cut something out.
even.compute_chunk_sizes()
np.testing.assert_array_equal(even[1:3].compute(), [2, 4])
assert da.where(x % 2 == 0, x, 0).sum().compute() == 20
print(f"shape {even.shape}")
