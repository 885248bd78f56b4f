"""A matrix product that is less accurate on the GPU: TF32.

Framework: PyTorch
Runs on: NVIDIA GPU
Install: pip install torch numpy

No error and no warning: float32 results are correct to three digits instead of six.
"""

import numpy as np
import torch

a, b = np.random.default_rng(0).standard_normal((2, 512, 512), np.float32)
exact = a.astype(np.float64) @ b
x, y = (torch.from_numpy(m).cuda() for m in (a, b))


def error():
    return np.abs((x @ y).cpu().numpy() - exact).max() / np.abs(exact).max()


# What goes wrong: something, often an imported library, has allowed TF32. It has 10 bits of mantissa; float32 has 23.
before = torch.get_float32_matmul_precision()
torch.set_float32_matmul_precision("high")
loose = error()

# The fix: set the precision where it matters, and restore what was set before.
torch.set_float32_matmul_precision("highest")
tight = error()
torch.set_float32_matmul_precision(before)
assert tight < 1e-5 < loose, (tight, loose)
print(f"TF32: {loose:.1e}, float32: {tight:.1e}")
