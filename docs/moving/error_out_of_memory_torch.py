"""More than fits into the GPU's memory: PyTorch.

Framework: PyTorch
Runs on: NVIDIA GPU
Install: pip install torch

OutOfMemoryError: CUDA out of memory. Tried to allocate 4096.00 GiB.
"""

import torch

# What goes wrong: a tensor that does not fit. (The message says how much it tried to allocate, and how much was free.)
try:
    torch.empty(2**40, dtype=torch.float32, device="cuda")
except torch.OutOfMemoryError as error:
    assert f"OutOfMemoryError: {error}".partition(" GPU 0 ")[0] in __doc__
else:
    raise AssertionError("no error")

# The fix: work on one part at a time; and know what is free, and what PyTorch only keeps for reuse.
free, _ = torch.cuda.mem_get_info()
kept = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
size, chunk = 10_000_000, 3_000_000
total = sum(torch.ones(min(chunk, size - i), device="cuda").sum().item() for i in range(0, size, chunk))
assert total == size
torch.cuda.empty_cache()  # gives the memory kept for reuse back to others; what you still hold stays as it is
print(f"{free / 2**30:.1f} GiB free, {kept / 2**30:.1f} GiB kept, {total:,.0f} elements added up in parts")
