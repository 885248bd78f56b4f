"""Mean of a subset of random samples in Triton: a kernel in Python makes them with tl.randn, and stores none.

Framework: Triton
Runs on: NVIDIA GPU
Install: pip install triton torch
Needs: gcc
Follows: https://triton-lang.org/main/getting-started/tutorials/04-low-memory-dropout.html
Math: float64, but tl.randn makes float32 samples

All samples are made, those that the mean leaves out as well, and each is a function of the seed and of its place alone.
No two of them share a place, and so chunk has no say in what they are.
"""

import math
from operator import index

import torch
import triton
import triton.language as tl

device = torch.device("cuda")
PROGRAMS = 2**16  # at most: the last to end leave little of the GPU idle
BLOCK = 512  # samples that a program makes at a time; a power of two


# Of a size that is a multiple of 16, or 1, Triton would compile a kernel of its own, which is no faster here.
@triton.jit(do_not_specialize=["rows", "columns", "seed"])
def add_subset(rows, columns, seed, sums, BLOCK: tl.constexpr):
    rows, columns = rows.to(tl.int64), columns.to(tl.int64)  # a place among 2**31 samples and more has 64 bits
    program, programs = tl.program_id(0).to(tl.int64), tl.num_programs(0).to(tl.int64)
    total = tl.zeros([BLOCK], tl.float64)
    for row in range(program, rows, programs):
        for start in range(0, columns, BLOCK):
            column = start + tl.arange(0, BLOCK).to(tl.int64)
            x = 10 + tl.randn(seed, row * columns + column).to(tl.float64)
            subset = (column < columns) & (column % 2 == 0) & (row % 2 == 0)
            total += tl.where(subset, x + 1, 0.0)
    tl.store(sums + program, tl.sum(total))  # no atomics: the same answer every time


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    rows, columns, chunk, seed = map(index, (rows, columns, chunk, seed))  # of NumPy's integers, products may not fit
    if rows < 0 or columns < 0 or chunk < 1:
        raise ValueError(f"random_subset_mean takes chunks of 1 or more, not {rows} × {columns} in chunks of {chunk}")
    if not 0 <= seed < 2**64:
        raise ValueError(f"random_subset_mean takes seeds of 64 bits, not {seed}")
    count = ((rows + 1) // 2) * ((columns + 1) // 2)
    if count == 0:
        return torch.tensor(math.nan, dtype=torch.float64, device=device)
    programs = min(PROGRAMS, rows)
    sums = torch.empty(programs, dtype=torch.float64, device=device)
    add_subset[(programs,)](rows, columns, seed, sums, BLOCK)
    return sums.sum() / count


def wait(mean):
    torch.cuda.synchronize()


def download(mean):
    return float(mean)


if __name__ == "__main__":
    mean = download(random_subset_mean(4_000, 4_000))
    assert abs(mean - 11) < 6 / 2_000, mean  # six standard errors of 2,000 × 2,000 samples
    print("random_subset_mean, Triton: 4,000 × 4,000 samples, all right")
