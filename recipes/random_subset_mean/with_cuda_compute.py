"""Mean of a subset of random samples in cuda.compute: Philox in a Python function, chunk by chunk, and CUB's reduction.

Framework: cuda.compute
Runs on: NVIDIA GPU
Install: pip install "cuda-cccl[cu13]" "cupy-cuda13x[ctk]"
Environment: cuda_compute
Follows: https://nvidia.github.io/cccl/unstable/python/compute.html

It has no random numbers. What makes them here is Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1,
2, 3"): a sample is a function of the seed and of its place alone.

cuda.compute itself keeps a reference to the array of the last call, and so the memory of a chunk, until the next call
of the same kind in the same thread, or until cuda.compute.clear_all_caches().
"""

import math
from operator import index

import cupy as cp
import numpy as np
from cuda.compute import (
    ConstantIterator,
    CountingIterator,
    OpKind,
    PermutationIterator,
    TransformIterator,
    ZipIterator,
    make_reduce_into,
    unary_transform,
)
from cuda.compute.types import float64, int64

# With a plain integer, a uint64 would become a float64.
WORD, HALF, LOST = np.uint64(2**32 - 1), np.uint64(32), np.uint64(11)  # a float64 has 53 bits: 11 of 64 are lost
FACTORS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
STEPS = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)


def sample(item):  # Box and Muller make it of the four words of Philox
    k, columns, first_row, first_column, seed = item[0], item[1], item[2], item[3], item[4]
    row, column = first_row + k // columns, first_column + k % columns
    c0, c1, c2, c3 = column & WORD, column >> HALF, row & WORD, row >> HALF
    k0, k1 = seed & WORD, seed >> HALF
    for _ in range(10):
        product, other = FACTORS[0] * c0, FACTORS[1] * c2
        c0, c1, c2, c3 = (other >> HALF) ^ c1 ^ k0, other & WORD, (product >> HALF) ^ c3 ^ k1, product & WORD
        k0, k1 = (k0 + STEPS[0]) & WORD, (k1 + STEPS[1]) & WORD
    u = ((c0 << HALF | c1) >> LOST) * 2.0**-53 + 2.0**-54  # above 0, of which there is no logarithm
    turn = ((c2 << HALF | c3) >> LOST) * 2.0**-53
    return 10.0 + math.sqrt(-2.0 * math.log(u)) * math.cos(2.0 * math.pi * turn)


def place(item):  # of the k-th element of the subset, in the whole array
    k, across, columns, first = item[0], item[1], item[2], item[3]
    return first + k // across * 2 * columns + k % across * 2


def add_one(x):
    return x + 1.0


def add_subset(x, first_row, first_column):
    """The sum over x[first_row::2, first_column::2] + 1, an array of one element."""
    rows, columns = x.shape
    down, across = (rows - first_row + 1) // 2, (columns - first_column + 1) // 2
    # Zipped with a count, they are what a kernel's arguments are: no other shape needs another compilation.
    numbers = [ConstantIterator(np.int64(n)) for n in (across, columns, first_row * columns + first_column)]
    places = TransformIterator(ZipIterator(CountingIterator(np.int64(0)), *numbers), place, int64)
    values = TransformIterator(PermutationIterator(x.reshape(-1), places), add_one, float64)
    total, zero = cp.empty(1), np.zeros(1)
    reduce = make_reduce_into(d_in=values, d_out=total, op=OpKind.PLUS, h_init=zero)
    given = {"d_in": values, "d_out": total, "op": OpKind.PLUS, "num_items": down * across, "h_init": zero}
    # reduce_into() would take this room from CUDA's default pool, and change how much that pool keeps.
    room = cp.empty(reduce(temp_storage=None, **given), np.uint8)
    reduce(temp_storage=room, **given, stream=cp.cuda.get_current_stream())
    return total


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    rows, columns, chunk, seed = map(index, (rows, columns, chunk, seed))  # of NumPy's integers, products may not fit
    if rows < 0 or columns < 0 or chunk < 1:
        raise ValueError(f"random_subset_mean takes chunks of 1 or more, not {rows} × {columns} in chunks of {chunk}")
    if not 0 <= seed < 2**64:
        raise ValueError(f"random_subset_mean takes seeds of 64 bits, not {seed}")
    total = cp.zeros(1)  # on the device: nothing waits for a chunk
    samples = cp.empty(min(chunk, rows) * min(chunk, columns))
    for row in range(0, rows, chunk):
        for column in range(0, columns, chunk):
            shape = min(chunk, rows - row), min(chunk, columns - column)
            x = samples[: shape[0] * shape[1]].reshape(shape)
            numbers = [ConstantIterator(np.uint64(n)) for n in (x.shape[1], row, column, seed)]
            items = ZipIterator(CountingIterator(np.uint64(0)), *numbers)
            stream = cp.cuda.get_current_stream()  # its own default is the legacy default stream
            unary_transform(d_in=items, d_out=x, op=sample, num_items=x.size, stream=stream)
            if x[row % 2 :: 2, column % 2 :: 2].size:
                total += add_subset(x, row % 2, column % 2)
    count = ((rows + 1) // 2) * ((columns + 1) // 2)
    return total / count  # 0 / 0 is NaN on the device


def wait(mean):
    cp.cuda.get_current_stream().synchronize()


def download(mean):
    return float(mean[0])


if __name__ == "__main__":
    mean = download(random_subset_mean(4_000, 4_000, chunk=1_000))
    assert abs(mean - 11) < 6 / 2_000, mean  # six standard errors of 2,000 × 2,000 samples
    print("random_subset_mean, cuda.compute: 4,000 × 4,000 samples, all right")
