"""A literal that makes a Numba function compute in float64.

Framework: Numba
Runs on: CPU
Install: pip install numba

No error: the input is float32, but the computation is in float64.
"""

import numpy as np
from numba import vectorize

x = np.ones(3, np.float32)


# What goes wrong: in Python 0.1 is a float64, and float32 times float64 is float64.
@vectorize
def slow(x):
    return 0.1 * x


assert slow(x).dtype == np.float64


# The fix: a float32 constant. The rules are the same in cuda.jit, where the float64 result is stored as float32 in the
# end, so that only the time gives it away.
@vectorize
def fast(x):
    return np.float32(0.1) * x


assert fast(x).dtype == np.float32
print(f"0.1 * x: {slow(x).dtype}, np.float32(0.1) * x: {fast(x).dtype}")
