"""Mean of a subset of random samples in PyTorch, chunk by chunk, on the GPU where there is one.

Framework: PyTorch
Runs on: NVIDIA GPU or CPU
Install: pip install torch
Follows: https://docs.pytorch.org/docs/stable/generated/torch.Generator.html
"""

from operator import index

import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    rows, columns, chunk, seed = map(index, (rows, columns, chunk, seed))  # of NumPy's integers, products may not fit
    if rows < 0 or columns < 0 or chunk < 1:
        raise ValueError(f"random_subset_mean takes chunks of 1 or more, not {rows} × {columns} in chunks of {chunk}")
    bits = 64 if device.type == "cuda" else 32  # the generator of the CPU leaves out all others
    if not 0 <= seed < 2**bits:
        raise ValueError(f"random_subset_mean takes seeds of {bits} bits on {device.type}, not {seed}")
    rng = torch.Generator(device=device).manual_seed(seed)  # one: each chunk goes on where the one before it ended
    total = torch.zeros((), dtype=torch.float64, device=device)  # on the device: nothing waits for a chunk
    for row in range(0, rows, chunk):
        for column in range(0, columns, chunk):
            shape = min(chunk, rows - row), min(chunk, columns - column)
            x = torch.randn(shape, dtype=torch.float64, device=device, generator=rng).add_(10)
            total += (x[row % 2 :: 2, column % 2 :: 2] + 1).sum()
            del x  # before the next chunk is made
    count = ((rows + 1) // 2) * ((columns + 1) // 2)
    return total / count  # 0 / 0 is NaN in a tensor


def wait(mean):
    if device.type == "cuda":
        torch.cuda.synchronize()


def download(mean):
    return float(mean)


if __name__ == "__main__":
    mean = download(random_subset_mean(4_000, 4_000, chunk=1_000))
    assert abs(mean - 11) < 6 / 2_000, mean  # six standard errors of 2,000 × 2,000 samples
    print(f"random_subset_mean, PyTorch on {device.type}: 4,000 × 4,000 samples, all right")
