"""Mean of a subset of random samples in PyTorch, tuned: one Triton kernel makes the samples in registers and adds them.

Framework: PyTorch
Runs on: NVIDIA GPU
Install: pip install torch triton
Math: float64, but the logarithm, sine and cosine are polynomials of our own, right to about one rounding

Only the samples of the subset are made, by Philox, and none is stored. The file is long because the library's log, sqrt
and sincospi branch for arguments that do not occur here, and because Triton's own randn makes float32 samples only.
"""

import math
from operator import index

import torch
import triton
import triton.language as tl

BLOCKS = 2**16  # at most; below that, one block per row. Many are short: the last to end leave little of the GPU idle
PAIRS = 512  # of samples that a block makes at a time: four for each of its 128 threads share the coefficients
# Taylor's coefficients, the highest first, to where the next term is below 2**-54 of the whole: of 2 atanh(s) / s - 2
# in s**2 < 0.0295, and of sin(x) / x - 1 and cos(x) - 1 in x**2 < 0.617, each divided by its variable.
LOG = tl.constexpr(tuple(2 / n for n in range(21, 1, -2)))
SINE = tl.constexpr(tuple((-1) ** (n // 2) / math.factorial(n) for n in range(17, 1, -2)))
COSINE = tl.constexpr(tuple((-1) ** (n // 2) / math.factorial(n) for n in range(16, 0, -2)))


@triton.jit
def polynomial(x, coefficients: tl.constexpr):
    value = tl.zeros_like(x)
    for i in tl.static_range(len(coefficients)):
        value = value * x + tl.full([], coefficients[i], tl.float64)
    return value


@triton.jit
def normals(pair, row, seed):  # two independent normal(0, 1) samples
    low, high = pair.to(tl.uint32), (pair >> 32).to(tl.uint32)
    c0, c1, c2, c3 = tl.philox(seed, low, high, row.to(tl.uint32), (row >> 32).to(tl.uint32))
    u = (((c0.to(tl.uint64) << 32 | c1) >> 11).to(tl.float64) + 0.5) * 2.0**-53  # in (0, 1]: log(0) is no number
    v = ((c2.to(tl.uint64) << 32 | c3) >> 11).to(tl.float64) * 2.0**-52  # in [0, 2), half turns
    # u = (1 + f) * 2**exponent with 1 + f from sqrt(1/2), whose bits these are, to sqrt(2); 1 + f = (1 + s) / (1 - s)
    bits = u.to(tl.int64, bitcast=True)
    exponent = (bits - 0x3FE6A09E667F3BCD) >> 52
    f = (bits - (exponent << 52)).to(tl.float64, bitcast=True) - 1
    # 1 / (2 + f) and 1 / sqrt(t) in float32, and then two terms more of their series: right to float64's last bits
    inverse = (1 / (2 + f).to(tl.float32)).to(tl.float64)
    error = 1 - (2 + f) * inverse
    s = f * (inverse + inverse * (error + error * error))
    log = exponent.to(tl.float64) * 0.6931471805599453 + (f - s * (f - s * s * polynomial(s * s, LOG)))
    t = -2 * log + 1e-37  # which changes nothing, except where u is 1
    inverse = tl.rsqrt(t.to(tl.float32)).to(tl.float64)
    error = 1 - t * inverse * inverse
    radius = t * inverse + t * inverse * error * (0.5 + 0.375 * error)
    quarter = (2 * v + 0.5).to(tl.int32)  # the nearest: v is not negative
    x = 3.141592653589793 * (v - 0.5 * quarter.to(tl.float64))  # an eighth of a turn from it, or less
    sine, cosine = x + x * (x * x * polynomial(x * x, SINE)), 1 + x * x * polynomial(x * x, COSINE)
    cosine, sine = tl.where((quarter & 1) == 1, -sine, cosine), tl.where((quarter & 1) == 1, cosine, sine)
    radius = tl.where((quarter & 2) == 2, -radius, radius)
    return radius * cosine, radius * sine


@triton.jit(do_not_specialize=["rows", "columns", "seed"])
def add_subset(rows, columns, seed, partial, PAIRS: tl.constexpr):
    total = tl.zeros([PAIRS], tl.float64)
    rows, columns = rows.to(tl.int64), columns.to(tl.int64)
    for i in range(tl.program_id(0).to(tl.int64), (rows + 1) // 2, tl.num_programs(0).to(tl.int64)):
        for first in range(0, columns, 4 * PAIRS):
            column = first + 4 * tl.arange(0, PAIRS).to(tl.int64)
            z0, z1 = normals(column >> 1, 2 * i, seed)
            total += tl.where(column + 2 < columns, z0 + z1, tl.where(column < columns, z0, 0.0))
    tl.store(partial + tl.program_id(0), tl.sum(total))


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    rows, columns, chunk, seed = map(index, (rows, columns, chunk, seed))  # of NumPy's integers, products may not fit
    if rows < 0 or columns < 0 or chunk < 1:  # chunk is not used, as nothing is stored
        raise ValueError(f"random_subset_mean takes chunks of 1 or more, not {rows} × {columns} in chunks of {chunk}")
    if not 0 <= seed < 2**64:
        raise ValueError(f"random_subset_mean takes seeds of 64 bits, not {seed}")
    count = ((rows + 1) // 2) * ((columns + 1) // 2)
    if count == 0:
        return torch.tensor(math.nan, dtype=torch.float64, device="cuda")
    partial = torch.empty(min(BLOCKS, (rows + 1) // 2), dtype=torch.float64, device="cuda")
    add_subset[(len(partial),)](rows, columns, seed, partial, PAIRS)
    return partial.sum() / count + 11


def wait(mean):
    torch.cuda.synchronize()


def download(mean):
    return float(mean)


if __name__ == "__main__":
    mean = download(random_subset_mean(4_000, 4_000))
    assert abs(mean - 11) < 6 / 2_000, mean  # six standard errors of 2,000 × 2,000 samples
    print("random_subset_mean, PyTorch tuned: 4,000 × 4,000 samples, all right")
