"""Two tensors on different devices.

Framework: PyTorch
Runs on: NVIDIA GPU or CPU
Install: pip install torch

RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!
RuntimeError: Expected all tensors to be on the same device, but got mat2 is on cpu, different from other tensors on
    cuda:0 (when checking argument in method wrapper_CUDA_mm)
RuntimeError: Tensor on device cpu is not on the expected device meta!
"""

import torch

# On a machine without a GPU, a tensor on "meta", which has a shape but no data, takes the place of one on the GPU.
device = torch.device("cuda:0" if torch.cuda.is_available() else "meta")


def said(call):
    try:
        call()
    except RuntimeError as error:
        return " ".join(f"RuntimeError: {error}".split())
    raise AssertionError("no error")


# What goes wrong: one of the tensors was never moved.
a = torch.ones(3, 3, device=device)
b = torch.ones(3, 3)
quoted = " ".join(__doc__.split())
assert said(lambda: a * b) in quoted
if device.type == "cuda":
    assert said(lambda: a @ b) in quoted

# The fix: move it to where the other one is, and create new tensors there from the start.
c = a * b.to(a.device)
d = torch.zeros(3, 3, device=a.device)
assert c.device == d.device == a.device
print(f"both on {c.device}")
