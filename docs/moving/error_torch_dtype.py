"""float32 meets NumPy's float64.

Framework: PyTorch
Runs on: CPU
Install: pip install torch numpy

RuntimeError: expected m1 and m2 to have the same dtype, but got: float != double
RuntimeError: mat1 and mat2 must have the same dtype, but got Double and Float
"""

import numpy as np
import torch


def said(call):
    try:
        call()
    except RuntimeError as error:
        return f"RuntimeError: {error}"
    raise AssertionError("no error")


# What goes wrong: NumPy makes float64 by default, and PyTorch makes float32.
x = torch.from_numpy(np.ones((3, 3)))
weight = torch.ones(3, 3)
layer = torch.nn.Linear(3, 3)
assert said(lambda: weight @ x) in __doc__
assert said(lambda: layer(x)) in __doc__

# The fix: set the dtype when the data comes in; a GPU is much faster in float32.
x = torch.from_numpy(np.ones((3, 3))).to(torch.float32)
assert (weight @ x).dtype == layer(x).dtype == torch.float32
print(f"both {x.dtype}")
