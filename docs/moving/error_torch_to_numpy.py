"""A tensor on the GPU is passed to NumPy.

Framework: PyTorch
Runs on: NVIDIA GPU or CPU
Install: pip install torch numpy

TypeError: can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.
TypeError: can't convert meta device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.
RuntimeError: Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.
"""

import numpy as np
import torch


def said(call):
    try:
        call()
    except (RuntimeError, TypeError) as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError("no error")


# What goes wrong. On a machine without a GPU, a tensor on "meta", which has no data, takes the place of one on the GPU.
x = torch.arange(3.0, device="cuda:0" if torch.cuda.is_available() else "meta")
assert said(lambda: np.asarray(x)) in __doc__
weight = torch.ones(3, requires_grad=True)
assert said(lambda: weight.numpy()) in __doc__

# The fix: call detach() if there is a gradient, then cpu(), then numpy().
host = (x if x.is_cuda else torch.arange(3.0)).detach().cpu().numpy()
np.testing.assert_array_equal(host, [0, 1, 2])
np.testing.assert_array_equal(weight.detach().cpu().numpy(), [1, 1, 1])
print(f"in NumPy: {host}")
