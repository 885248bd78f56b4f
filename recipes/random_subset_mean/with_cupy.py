"""Mean of a subset of random samples in CuPy, chunk by chunk: cuRAND's XORWOW, through cupy.random.default_rng.

Framework: CuPy
Runs on: NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]"
Follows: https://docs.cupy.dev/en/stable/reference/random.html
"""

from operator import index

import cupy as cp


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    rows, columns, chunk, seed = map(index, (rows, columns, chunk, seed))  # of NumPy's integers, products may not fit
    if rows < 0 or columns < 0 or chunk < 1:
        raise ValueError(f"random_subset_mean takes chunks of 1 or more, not {rows} × {columns} in chunks of {chunk}")
    rng = cp.random.default_rng(seed)  # one: each chunk goes on where the one before it ended
    total = cp.zeros(())  # on the device: nothing waits for a chunk
    for row in range(0, rows, chunk):
        for column in range(0, columns, chunk):
            shape = min(chunk, rows - row), min(chunk, columns - column)
            x = rng.standard_normal(shape)
            x += 10
            total += (x[row % 2 :: 2, column % 2 :: 2] + 1).sum()
            del x  # before the next chunk is made
    count = ((rows + 1) // 2) * ((columns + 1) // 2)
    return total / count  # 0 / 0 is NaN on the device


def wait(mean):
    cp.cuda.get_current_stream().synchronize()


def download(mean):
    return float(mean)


if __name__ == "__main__":
    mean = download(random_subset_mean(4_000, 4_000, chunk=1_000))
    assert abs(mean - 11) < 6 / 2_000, mean  # six standard errors of 2,000 × 2,000 samples
    print("random_subset_mean, CuPy: 4,000 × 4,000 samples, all right")
