"""CUDA in a process that was forked.

Framework: PyTorch
Runs on: NVIDIA GPU
Install: pip install torch

RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn'
    start method
"""

import multiprocessing

import torch


def work(n):
    try:
        return torch.ones(n, device="cuda").sum().item()
    except RuntimeError as error:
        return " ".join(f"RuntimeError: {error}".split())


if __name__ == "__main__":
    assert work(3) == 3  # CUDA has started in this process

    # What goes wrong: fork copies a process, and with it a CUDA context that the driver does not know.
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(work, (3,)) in " ".join(__doc__.split())

    # The fix: start fresh processes.
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(work, (3,)) == 3
    print("spawned: 3 elements added up")
