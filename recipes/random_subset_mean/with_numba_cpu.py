"""Mean of a subset of random samples in Numba on the CPU: a loop that stores no sample, on every core, in threads.

Framework: Numba
Runs on: CPU
Install: pip install numba numpy
Follows: https://numba.readthedocs.io/en/stable/user/jit.html#nogil
Follows: https://numba.readthedocs.io/en/stable/reference/numpysupported.html
Engine: threads

Each chunk has a generator of its own, and NumPy takes 128 bits for its seed: of n chunks, two have the same samples
with a probability of n (n - 1) / 2 / 2**128. That is 1.5e-35 for the 100 chunks of 100,000².
"""

import os
from concurrent.futures import ThreadPoolExecutor
from operator import index

import numpy as np
from numba import njit

CORES = len(os.sched_getaffinity(0))  # those that this process may use


@njit(nogil=True)  # it lets go of the GIL, so that all threads run
def sum_of_chunk(rng, first_row, end_row, first_column, end_column):
    total = 0.0
    for row in range(first_row, end_row):
        for column in range(first_column, end_column):
            sample = rng.normal(10, 1)
            if row % 2 == 0 and column % 2 == 0:
                total += sample + 1
    return total


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    rows, columns, chunk, seed = map(index, (rows, columns, chunk, seed))  # of NumPy's integers, products may not fit
    if rows < 0 or columns < 0 or chunk < 1:
        raise ValueError(f"random_subset_mean takes chunks of 1 or more, not {rows} × {columns} in chunks of {chunk}")

    def chunk_sum(place):
        row, column = place
        rng = np.random.default_rng([row, column, seed])  # another one for each chunk
        return sum_of_chunk(rng, row, min(row + chunk, rows), column, min(column + chunk, columns))

    places = [(row, column) for row in range(0, rows, chunk) for column in range(0, columns, chunk)]
    with ThreadPoolExecutor(CORES) as threads:
        total = sum(threads.map(chunk_sum, places))  # in the order of the chunks, whoever is first
    count = ((rows + 1) // 2) * ((columns + 1) // 2)
    return total / count if count else np.nan


def wait(mean):
    pass  # the threads are done


def download(mean):
    return float(mean)


def empty_round(n, payload=None):
    """n tasks that do nothing, each given the payload: what the engine takes by itself."""
    with ThreadPoolExecutor(CORES) as threads:
        list(threads.map(nothing, [payload] * n))


def nothing(payload):
    pass


if __name__ == "__main__":
    mean = download(random_subset_mean(4_000, 4_000, chunk=1_000))
    assert abs(mean - 11) < 6 / 2_000, mean  # six standard errors of 2,000 × 2,000 samples
    print("random_subset_mean, Numba on the CPU: 4,000 × 4,000 samples, all right")
