"""Mean of a subset of random samples in Triton, tuned: made in registers and added there, nothing is stored.

Framework: Triton
Runs on: NVIDIA GPU
Install: pip install triton torch
Needs: gcc
Math: float64, but the logarithm, sine and cosine are polynomials of our own, right to about two roundings

Sample (i, j) is a function of the seed, i and j alone (Philox), so only the samples of the subset are made, and none is
stored. What is left is instructions. These are fewer than in kernels/random_subset_mean_tuned.cu: polynomials fit their
interval, conversions are saved, sine and cosine are not exchanged where both are added. Polynomials make the file long.
"""

import torch
import triton
import triton.language as tl

device = torch.device("cuda")
PROGRAMS = 2**16  # at most; below that, one per row: the last to end leave little of the GPU idle
BLOCK = 512  # pairs that a program makes at a time: four for each of its 128 threads share the coefficients
# fdlibm's, the highest first: of -2 log((1 + s) / (1 - s)) / s in s**2; of sin / d and cos in d**2, d quarter turns
LOG = tl.constexpr((-0.2959639721023317, -0.30627675398418747, -0.363671443232361, -0.4444439686429957,
    -0.5714285748732478, -0.7999999999881884, -1.333333333333347, -4))  # fmt: skip
SINE = tl.constexpr((5.6347041138847485e-08, -3.5986495702406905e-06, 0.0001604411526673809, -0.004681754132625933,
    0.07969262624606334, -0.6459640975062448, 1.5707963267948966))  # fmt: skip
COSINE = tl.constexpr((-6.324746678866067e-09, 4.710641505803499e-07, -2.520203791691773e-05, 0.000919260274390553,
    -0.020863480763330756, 0.2536695079010476, -1.2337005501361697, 1.0))  # fmt: skip


@triton.jit
def polynomial(x, coefficients: tl.constexpr, count: tl.constexpr):
    value = tl.full(x.shape, coefficients[0], tl.float64)
    for i in tl.static_range(1, count):
        value = value * x + tl.full([], coefficients[i], tl.float64)
    return value


@triton.jit
def normals(pair, high, row, seed):  # two normal(0, 1) samples, and whether they are to be swapped
    c = tl.philox(seed, pair.to(tl.uint32), high.to(tl.uint32), row.to(tl.uint32), (row >> 32).to(tl.uint32))
    u = (c[0].to(tl.uint64) << 32 | c[1] & 0xFFFFF800).to(tl.float64) * 2.0**-64 + 2.0**-54  # in (0, 1]
    v = (c[2].to(tl.uint64) << 32 | c[3] & 0xFFFFF800).to(tl.float64) * 2.0**-62  # in [0, 4), quarter turns
    # u = (1 + f) * 2**exponent, 1 + f from sqrt(1/2), whose high word this is, to sqrt(2); power = exponent * 2**20
    bits = u.to(tl.int64, bitcast=True)
    power = ((bits >> 32).to(tl.int32) - 0x3FE6A09E) & -0x100000
    m = (bits - (power.to(tl.int64) << 32)).to(tl.float64, bitcast=True)
    # 1 / (2 + f) and 1 / sqrt(t) in float32, then two terms more of their series; a division would scale its operands
    inverse = tl.rsqrt(((m + 1) * (m + 1)).to(tl.float32)).to(tl.float64)
    error = 1 - (m + 1) * inverse
    s = (m - 1) * (inverse + inverse * (error + error * error))
    t = s * polynomial(s * s, LOG, 8) + (power.to(tl.float64) * (-1.3862943611198906 * 2.0**-20) + 1e-37)  # not 0
    inverse = tl.rsqrt(t.to(tl.float32)).to(tl.float64)
    error = 1 - t * inverse * inverse
    radius = (t * inverse + t * inverse * error * (0.5 + 0.375 * error)).to(tl.int64, bitcast=True)
    nearest = v + 1.5 * 2.0**52  # where a float64's last bit is worth 1: the nearest quarter is in its last two bits
    quarter, d = nearest.to(tl.int64, bitcast=True), v - (nearest - 1.5 * 2.0**52)
    z0 = (radius ^ ((quarter >> 1) << 63)).to(tl.float64, bitcast=True) * polynomial(d * d, COSINE, 8)
    z1 = (radius ^ (((quarter + 1) >> 1) << 63)).to(tl.float64, bitcast=True) * (d * polynomial(d * d, SINE, 7))
    return z0, z1, (quarter & 1) == 1


@triton.jit(do_not_specialize=["rows", "columns", "seed"])
def add_subset(rows, columns, seed, sums, BLOCK: tl.constexpr):
    rows, columns, total = rows.to(tl.int64), columns.to(tl.int64), tl.zeros([BLOCK], tl.float64)
    for row in range(2 * tl.program_id(0).to(tl.int64), rows, 2 * tl.num_programs(0).to(tl.int64)):
        for first in range(0, columns, 4 * BLOCK):
            # high is the same for all of these pairs: their number is a power of two
            column, high = first + 4 * tl.arange(0, BLOCK).to(tl.int64), tl.cast(first, tl.int64) >> 33
            z0, z1, swapped = normals(column >> 1, high, tl.cast(row, tl.int64), seed)
            only = tl.where(column < columns, tl.where(swapped, z1, z0), 0.0)
            total += tl.where(column + 2 < columns, z0 + z1, only)
    tl.store(sums + tl.program_id(0), tl.sum(total))  # no atomics: the same answer every time


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    if rows < 0 or columns < 0 or chunk < 1:  # chunk is not used, as nothing is stored
        raise ValueError(f"random_subset_mean takes chunks of 1 or more, not {rows} × {columns} in chunks of {chunk}")
    if not 0 <= seed < 2**64:
        raise ValueError(f"random_subset_mean takes seeds of 64 bits, not {seed}")
    count = int((rows + 1) // 2) * int((columns + 1) // 2)
    if count == 0:
        return torch.tensor(float("nan"), dtype=torch.float64, device=device)
    programs = min(PROGRAMS, (rows + 1) // 2)
    sums = torch.empty(programs, dtype=torch.float64, device=device)
    add_subset[(programs,)](rows, columns, seed, sums, BLOCK)
    return sums.sum() / count + 11


def wait(mean):
    torch.cuda.synchronize()


def download(mean):
    return float(mean)


if __name__ == "__main__":
    mean = download(random_subset_mean(4_000, 4_000))
    assert abs(mean - 11) < 6 / 2_000, mean  # six standard errors of 2,000 × 2,000 samples
    print("random_subset_mean, Triton tuned: 4,000 × 4,000 samples, all right")
