"""Computes the means that recipes/random_subset_mean/__init__.py stores: ``python benchmarks/means.py ROWS … COLUMNS``.

NumPy alone, from the definition of the samples, on every core: no recipe and no kernel takes part. 100,000² takes some
250 seconds on one core. A mean of fewer rows costs nothing more: python benchmarks/means.py 100000 200000 100000.
"""

import math
import os
import signal
from multiprocessing import Pool
from typing import Annotated

import numpy as np
import typer

from gpu_cookbook.script import run

MOST = 10_000_000  # rows or columns: that many of both take a core about a month
MULTIPLIERS, WEYL = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)  # of Philox4x32-10
LOW = np.uint64(2**32 - 1)


def row_sum(row: int, columns: int, seed: int) -> float:
    """The sum of the samples of x[row, ::2], each less 10."""
    count = (columns + 1) // 2
    c0 = np.arange(0, count + count % 2, 2, dtype=np.uint64)  # pair 2 q: columns 4 q and 4 q + 2
    c1, c2, c3 = np.zeros_like(c0), np.full_like(c0, row % 2**32), np.full_like(c0, row >> 32)
    c0, c1 = c0 & LOW, c0 >> np.uint64(32)
    k0, k1 = seed % 2**32, seed >> 32
    spare0, spare1 = np.empty_like(c0), np.empty_like(c0)
    for _ in range(10):
        product0 = np.multiply(c0, np.uint64(MULTIPLIERS[0]), out=spare0)
        product1 = np.multiply(c2, np.uint64(MULTIPLIERS[1]), out=spare1)
        np.right_shift(product1, np.uint64(32), out=c0)
        c0 ^= c1
        c0 ^= np.uint64(k0)
        np.right_shift(product0, np.uint64(32), out=c2)
        c2 ^= c3
        c2 ^= np.uint64(k1)
        np.bitwise_and(product1, LOW, out=c1)
        np.bitwise_and(product0, LOW, out=c3)
        k0, k1 = (k0 + WEYL[0]) % 2**32, (k1 + WEYL[1]) % 2**32
    u = (((c0 << np.uint64(32)) | c1) >> np.uint64(11)).astype(float)
    v = (((c2 << np.uint64(32)) | c3) >> np.uint64(11)).astype(float)
    radius = np.sqrt(-2 * np.log((u + 0.5) * 2.0**-53))
    angle = v * (np.pi * 2.0**-52)
    z0, z1 = radius * np.cos(angle), radius * np.sin(angle)
    return float(z0.sum() + z1[: count // 2].sum())


def sums(rows: range, columns: int, seed: int) -> list[float]:
    return [row_sum(row, columns, seed) for row in rows]


def obedient() -> None:
    """Only the first process hears of Ctrl-C, and ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def means(rows: list[int], columns: int, seed: int = 0) -> dict[int, float]:
    """{rows: the mean of x[::2, ::2] + 1} of the arrays with the first so many rows."""
    parts = [range(first, min(first + 400, max(rows)), 2) for first in range(0, max(rows), 400)]
    found: list[float] = []
    with Pool(len(os.sched_getaffinity(0)), obedient) as pool:
        for part in pool.starmap(sums, ((part, columns, seed) for part in parts), chunksize=1):
            found += part
    return {
        count: 11 + math.fsum(found[: (count + 1) // 2]) / ((count + 1) // 2 * ((columns + 1) // 2)) for count in rows
    }


def main(
    rows: Annotated[list[int], typer.Argument(metavar="ROWS", min=1, max=MOST, help="Of each array: all begin alike.")],
    columns: Annotated[int, typer.Argument(metavar="COLUMNS", min=1, max=MOST)],
):
    """Compute the means that random_subset_mean stores."""
    for count, mean in means(rows, columns).items():
        print(f"    ({count}, {columns}): {mean!r},")


if __name__ == "__main__":
    run(main)
