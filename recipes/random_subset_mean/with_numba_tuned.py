"""Mean of a subset of random samples in Numba, tuned: one kernel that makes the samples in registers and adds them.

Framework: Numba
Runs on: NVIDIA GPU
Install: pip install "numba-cuda[cu13]" "numpy<2.5"
Math: float64, but the logarithm, sine and cosine are polynomials of our own, right to about one rounding

Sample (i, j) is a function of the seed, i and j alone (Philox), so only the samples of the subset are made, and none is
stored. What is left is instructions: the library's log, sqrt and sincospi branch for arguments that do not occur here,
Taylor's series do without. Four pairs of samples side by side load each coefficient once. The file is long because
Philox, logarithm, sine and cosine are written out: Numba's generator makes other samples.
"""

import math

import numpy as np
from numba import cuda

BLOCKS, THREADS = 2**16, 128  # at most; below that, one block per row: the last to end leave little of the GPU idle
# Numba makes a float of an np.uint64 and an int: constants of Philox4x32-10 (Salmon et al., 2011) as np.uint64.
M0, M1, STEP0, STEP1, LOW = map(np.uint64, (0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85, 2**32 - 1))
# Taylor's coefficients, the highest first, to where the next term is below 2**-54 of the whole: of 2 atanh(s) / s - 2
# in s**2 < 0.0295, and of sin(x) / x - 1 and cos(x) - 1 in x**2 < 0.617, each divided by its variable.
LOG = tuple(2 / n for n in range(21, 1, -2))
SINE, COSINE = (tuple((-1) ** (n // 2) / math.factorial(n) for n in range(m, m - 16, -2)) for m in (17, 16))


@cuda.jit(device=True)
def polynomial(coefficients, x):
    value = 0.0
    for coefficient in coefficients:
        value = value * x + coefficient
    return value


@cuda.jit(device=True)
def sum_of_pair(
    column, columns, row, seed
):  # two normal(0, 1) samples: of this column, a multiple of 4, and column + 2
    pair, row = np.uint64(column >> 1), np.uint64(row)
    c0, c1, c2, c3, k0, k1 = pair & LOW, pair >> 32, row & LOW, row >> 32, seed & LOW, seed >> 32
    for _ in range(10):
        product0, product1 = M0 * c0, M1 * c2
        c0, c1, c2, c3 = product1 >> 32 ^ c1 ^ k0, product1 & LOW, product0 >> 32 ^ c3 ^ k1, product0 & LOW
        k0, k1 = k0 + STEP0 & LOW, k1 + STEP1 & LOW
    u = (np.float64((c0 << 32 | c1) >> 11) + 0.5) * 2.0**-53  # in (0, 1]: log(0) is no number
    v = np.float64((c2 << 32 | c3) >> 11) * 2.0**-52  # in [0, 2), half turns
    # u = (1 + f) * 2**exponent with 1 + f from sqrt(1/2), whose bits these are, to sqrt(2); 1 + f = (1 + s) / (1 - s)
    bits = np.float64(u).view(np.int64)
    exponent = bits - 0x3FE6A09E667F3BCD >> 52
    f = np.int64(bits - (exponent << 52)).view(np.float64) - 1
    # 1 / (2 + f) and 1 / sqrt(t) in float32, and then two terms more of their series: right to float64's last bits
    inverse = np.float64(cuda.libdevice.fast_fdividef(np.float32(1), np.float32(2 + f)))
    error = 1 - (2 + f) * inverse
    s = f * (inverse + inverse * (error + error * error))
    log = exponent * math.log(2) + (f - s * (f - s * s * polynomial(LOG, s * s)))
    t = -2 * log + 1e-37  # which changes nothing, except where u is 1
    inverse = np.float64(cuda.libdevice.rsqrtf(np.float32(t)))
    error = 1 - t * inverse * inverse
    radius = t * inverse + t * inverse * error * (0.5 + 0.375 * error)
    quarter = cuda.libdevice.rint(2 * v)
    x = math.pi * (v - 0.5 * quarter)  # an eighth of a turn, or less, from a whole number of quarters
    sine, cosine = x + x * (x * x * polynomial(SINE, x * x)), 1 + x * x * polynomial(COSINE, x * x)
    if np.int32(quarter) & 1:
        cosine, sine = -sine, cosine
    radius = -radius if np.int32(quarter) & 2 else radius
    return (radius * cosine if column < columns else 0.0) + (radius * sine if column + 2 < columns else 0.0)


@cuda.jit(device=True)
def sum_of_block(x):  # over its threads; only thread 0 gets it
    sums = cuda.shared.array(THREADS, np.float64)
    sums[cuda.threadIdx.x] = x
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        for i in range(1, THREADS):
            x += sums[i]
    return x


@cuda.jit
def add_subset(rows, columns, seed, partial):  # rows are shared out among blocks, pairs of columns among threads
    total, step = 0.0, 4 * THREADS
    for row in range(2 * cuda.blockIdx.x, rows, 2 * cuda.gridDim.x):
        for column in range(4 * cuda.threadIdx.x, columns, 4 * step):
            two = sum_of_pair(column, columns, row, seed) + sum_of_pair(column + step, columns, row, seed)
            column += 2 * step
            total += two + (sum_of_pair(column, columns, row, seed) + sum_of_pair(column + step, columns, row, seed))
    total = sum_of_block(total)
    if cuda.threadIdx.x == 0:
        partial[cuda.blockIdx.x] = total  # no atomics: the same answer every time


@cuda.jit
def mean_of_sums(partial, count, result):
    total = 0.0
    for i in range(cuda.threadIdx.x, partial.size, THREADS):
        total += partial[i]
    total = sum_of_block(total)
    if cuda.threadIdx.x == 0:
        result[0] = 11 + total / count


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    if rows < 0 or columns < 0 or chunk < 1:  # chunk is not used, as nothing is stored
        raise ValueError(f"random_subset_mean takes chunks of 1 or more, not {rows} × {columns} in chunks of {chunk}")
    if not 0 <= seed < 2**64:
        raise ValueError(f"random_subset_mean takes seeds of 64 bits, not {seed}")
    count = int((rows + 1) // 2) * int((columns + 1) // 2)
    if count == 0:
        return cuda.to_device(np.array([np.nan]))
    blocks = min(BLOCKS, (rows + 1) // 2)
    partial = cuda.device_array(blocks, np.float64)
    result = cuda.device_array(1, np.float64)
    add_subset[blocks, THREADS](rows, columns, np.uint64(seed), partial)
    mean_of_sums[1, THREADS](partial, count, result)
    return result


def wait(mean):
    cuda.synchronize()


def download(mean):
    return float(mean.copy_to_host()[0])


if __name__ == "__main__":
    mean = download(random_subset_mean(4_000, 4_000, chunk=1_000))
    assert abs(mean - 11) < 6 / 2_000, mean  # six standard errors of 2,000 × 2,000 samples
    print("random_subset_mean, Numba tuned: 4,000 × 4,000 samples, all right")
