"""No NVIDIA driver, one that is too old, or a PyTorch without CUDA.

Framework: PyTorch
Runs on: CPU
Install: pip install torch

AssertionError: Torch not compiled with CUDA enabled
RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver
    from http://www.nvidia.com/Download/index.aspx
RuntimeError: No CUDA GPUs are available
"""

import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""  # so that a machine with a GPU shows the error too

import torch  # noqa: E402

# What goes wrong. The first line is of a build for CPUs, the second of one for CUDA, where there is no driver.
try:
    torch.ones(3, device="cuda")
except (AssertionError, RuntimeError) as error:
    assert " ".join(f"{type(error).__name__}: {error}".split()) in " ".join(__doc__.split())
else:
    raise ValueError("no error")

# The fix: the build for the driver's CUDA, which torch.version.cuda names (None: a build for CPUs). And for code that
# shall run without a GPU too, ask first.
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
assert torch.ones(3, device=device).sum().item() == 3
print(f"PyTorch for CUDA {torch.version.cuda}, computed on {device}")
