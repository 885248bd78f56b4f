"""A reversed NumPy array is passed to PyTorch.

Framework: PyTorch
Runs on: CPU
Install: pip install torch numpy

ValueError: At least one stride in the given numpy array is negative, and tensors with negative strides are not
    currently supported. (You can probably work around this by making a copy of your array with array.copy().)
"""

import numpy as np
import torch

# What goes wrong: x[::-1] copies nothing: it is a view that runs backwards through the memory.
x = np.arange(4.0)[::-1]
try:
    torch.from_numpy(x)
except ValueError as error:
    assert " ".join(f"ValueError: {error}".split()) in " ".join(__doc__.split())
else:
    raise AssertionError("no error")

# The fix: make a copy that runs forwards.
t = torch.from_numpy(np.ascontiguousarray(x))
assert t.tolist() == [3, 2, 1, 0]
print(f"contiguous: {t.tolist()}")
