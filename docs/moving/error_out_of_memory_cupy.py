"""More than fits into the GPU's memory: CuPy.

Framework: CuPy
Runs on: NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]"

OutOfMemoryError: Out of memory allocating 4,398,046,511,104 bytes (allocated so far: 0 bytes).
"""

import cupy as cp

# What goes wrong: an array that does not fit.
try:
    cp.empty(2**40, cp.float32)
except cp.cuda.memory.OutOfMemoryError as error:
    assert f"OutOfMemoryError: {error}" in __doc__
else:
    raise AssertionError("no error")

# The fix: work on one part at a time. Freed memory stays in CuPy's pool until you give it back.
size, chunk = 10_000_000, 3_000_000
total = sum(float(cp.ones(min(chunk, size - i)).sum()) for i in range(0, size, chunk))
assert total == size
pool = cp.get_default_memory_pool()
kept = pool.total_bytes()
pool.free_all_blocks()
assert pool.total_bytes() < kept
print(f"{total:,.0f} elements added up in parts")
