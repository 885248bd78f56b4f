"""Mean of a subset of random samples in cuTile: Philox in a kernel in Python, which stores no sample.

Framework: cuTile
Runs on: NVIDIA GPU
Install: pip install "cuda-tile[tileiras]" "cupy-cuda13x[ctk]"
Environment: cutile
Follows: https://docs.nvidia.com/cuda/cutile-python/quickstart.html

All samples are made, those that the mean leaves out as well. cuTile has no random numbers: what makes them here is
Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3"). Each sample is a function of the seed and
of its place alone, and so chunk has no say in what they are.
"""

from operator import index

import cuda.tile as ct
import cupy as cp

BLOCKS = 2**16  # at most: the last to end leave little of the GPU idle
TILE = 512  # samples that a block makes at a time; a power of two
WORD = 2**32 - 1


@ct.kernel
def add_subset(
    rows: ct.ScalarInt64,
    columns: ct.ScalarInt64,
    seed_low: ct.ScalarInt64,
    seed_high: ct.ScalarInt64,
    sums: ct.IndexedWithInt64,
    TILE: ct.Constant[int],
):
    word, half, lost = ct.uint64(WORD), ct.uint64(32), ct.uint64(11)  # a float64 has 53 bits: 11 of 64 are lost
    block, blocks = ct.int64(0) + ct.bid(0), ct.int64(0) + ct.num_blocks(0)
    total = ct.zeros((TILE,), ct.float64)
    for row in range(block, rows, blocks):
        for tile in range(ct.cdiv(columns, TILE)):
            column = ct.int64(TILE) * tile + ct.arange(TILE, dtype=ct.int64)
            c0, c1 = ct.astype(column & WORD, ct.uint64), ct.astype(column >> 32, ct.uint64)
            c2, c3 = ct.full((TILE,), row & WORD, ct.uint64), ct.full((TILE,), row >> 32, ct.uint64)
            k0, k1 = ct.full((TILE,), seed_low, ct.uint64), ct.full((TILE,), seed_high, ct.uint64)
            for _ in range(10):
                product, other = ct.uint64(0xD2511F53) * c0, ct.uint64(0xCD9E8D57) * c2
                c0, c1 = (other >> half) ^ c1 ^ k0, other & word
                c2, c3 = (product >> half) ^ c3 ^ k1, product & word
                k0, k1 = (k0 + ct.uint64(0x9E3779B9)) & word, (k1 + ct.uint64(0xBB67AE85)) & word
            # Box and Muller make a normal of them. There is no logarithm of 0.
            u = ct.astype((c0 << half | c1) >> lost, ct.float64) * 2.0**-53 + 2.0**-54
            turn = ct.astype((c2 << half | c3) >> lost, ct.float64) * 2.0**-53
            # 2 pi as text: cuTile rounds Python's floats to float32. Powers of two stay what they are.
            x = 10 + ct.sqrt(-2.0 * ct.log(u)) * ct.cos(ct.float64("6.283185307179586") * turn)
            subset = (column < columns) & (column % 2 == 0) & (row % 2 == 0)
            total = total + ct.where(subset, x + 1, 0.0)
    ct.store(sums, (ct.bid(0),), ct.sum(total))  # no atomics: the same answer every time


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    rows, columns, chunk, seed = map(index, (rows, columns, chunk, seed))  # of NumPy's integers, products may not fit
    if rows < 0 or columns < 0 or chunk < 1:
        raise ValueError(f"random_subset_mean takes chunks of 1 or more, not {rows} × {columns} in chunks of {chunk}")
    if not 0 <= seed < 2**64:
        raise ValueError(f"random_subset_mean takes seeds of 64 bits, not {seed}")
    count = ((rows + 1) // 2) * ((columns + 1) // 2)
    if count == 0:
        return cp.array(cp.nan)
    blocks = min(BLOCKS, rows)
    sums = cp.empty(blocks)
    arguments = rows, columns, seed & WORD, seed >> 32, sums, TILE
    ct.launch(cp.cuda.get_current_stream(), (blocks,), add_subset, arguments)
    return sums.sum() / count


def wait(mean):
    cp.cuda.get_current_stream().synchronize()


def download(mean):
    return float(mean)


if __name__ == "__main__":
    mean = download(random_subset_mean(4_000, 4_000, chunk=1_000))
    assert abs(mean - 11) < 6 / 2_000, mean  # six standard errors of 2,000 × 2,000 samples
    print("random_subset_mean, cuTile: 4,000 × 4,000 samples, all right")
