"""No NVIDIA driver, a driver that is too old, or a PyTorch without CUDA.

Framework: PyTorch
Runs on: CPU
Install: pip install torch

AssertionError: Torch not compiled with CUDA enabled
RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver
    from http://www.nvidia.com/Download/index.aspx
RuntimeError: No CUDA GPUs are available
"""

import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""  # so that the error also occurs on a machine with a GPU

import torch  # noqa: E402

# What goes wrong. The first message comes from a CPU build, the second from a CUDA build without a driver.
try:
    torch.ones(3, device="cuda")
except (AssertionError, RuntimeError) as error:
    assert " ".join(f"{type(error).__name__}: {error}".split()) in " ".join(__doc__.split())
else:
    raise ValueError("no error")

# The fix: install the build that fits the driver's CUDA; torch.version.cuda says which one you have (None means a CPU
# build). And in code that must also run without a GPU, ask first.
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
assert torch.ones(3, device=device).sum().item() == 3
print(f"PyTorch for CUDA {torch.version.cuda}, computed on {device}")
