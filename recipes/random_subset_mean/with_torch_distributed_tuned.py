"""Mean of a subset of random samples in torch.distributed, tuned: one process per GPU, whose sums NCCL adds up.

Framework: PyTorch
Runs on: every NVIDIA GPU
Install: pip install torch "cupy-cuda13x[ctk]"
Engine: torch.distributed, NCCL
Math: float64, but the logarithm, sine and cosine are polynomials of our own, right to about one rounding

The samples are those of with_cupy_tuned.py, which a counter defines: each GPU makes the rows of its part, and they do
not depend on the number of GPUs, tasks or processes. Their sum stays on the GPUs until rank 0 sends it to the host.
"""

import os
import tempfile
from contextlib import contextmanager, suppress
from multiprocessing import connection
from operator import index
from pathlib import Path
from threading import Lock

import cupy as cp
import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

KERNEL = (Path(__file__).parents[2] / "kernels" / "random_subset_mean_tuned.cu").read_text()
BLOCKS, THREADS = 2**16, 128  # at most; below that, one block per row: the last to end leave little of the GPU idle
GPUS = cp.cuda.runtime.getDeviceCount()

add_subset = cp.RawKernel(KERNEL, "add_subset")
pipes, job = [], None  # a pipe to the process of each GPU, and what looks after all of them
TURN = Lock()  # each process gets the sums in the same order, and each answer goes to its own caller


@contextmanager
def engine():
    global job
    ours, theirs = zip(*(mp.Pipe() for _ in range(GPUS)), strict=True)
    with tempfile.TemporaryDirectory() as folder:
        job = mp.spawn(run, (f"{folder}/ranks", theirs), GPUS, join=False, daemon=True)
        pipes.extend(ours)
        try:
            total(0, 0, 0)  # all are ready
            yield
        finally:
            for pipe in ours:
                pipe.close()  # which ends the process
            pipes.clear()
            for process in job.processes:
                process.join()


def run(gpu, file, pipes):
    """The process of one GPU: adds its part to each sum over all GPUs, which rank 0 sends."""
    os.environ["NCCL_SOCKET_IFNAME"] = "lo"  # NCCL's ranks find each other through a file and 127.0.0.1
    torch.cuda.set_device(gpu)
    cp.cuda.Device(gpu).use()
    dist.init_process_group("nccl", f"file://{file}", rank=gpu, world_size=GPUS, device_id=torch.device("cuda", gpu))
    with suppress(EOFError):  # the other end is closed
        while True:
            # The same memory as a tensor. CuPy's stream and PyTorch's are the same one: the device's default.
            share = torch.as_tensor(part(gpu, *pipes[gpu].recv()), device="cuda")
            dist.all_reduce(share)
            if gpu == 0:
                pipes[gpu].send(float(share))
    dist.destroy_process_group()


def part(gpu, rows, columns, seed):
    """One GPU's part of the sum: of the pairs of an even row, which the subset has, and the one below."""
    first, end = (2 * ((rows + 1) // 2 * i // GPUS) for i in (gpu, gpu + 1))
    partial = cp.empty(min(BLOCKS, (end - first) // 2))
    rows = np.int64(first), np.int64(end), np.int64(columns)
    if partial.size:  # not more GPUs than rows
        add_subset((partial.size,), (THREADS,), (*rows, np.uint64(seed), partial))
    return partial.sum()


def total(rows, columns, seed):
    """The sum of the subset's samples, as normal(0, 1). If a process has ended, job.join() ends the others, which would
    wait for it in NCCL, and raises torch.multiprocessing.ProcessExitedException."""
    with TURN:
        try:
            for pipe in pipes:
                pipe.send((rows, columns, seed))
            if connection.wait([pipes[0], *job.sentinels]) != [pipes[0]]:
                job.join()
            return pipes[0].recv()
        except BaseException:  # even Ctrl-C: the answer that is still to come would be taken for the next call's
            pipes.clear()
            for process in job.processes:
                process.kill()
            raise


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    rows, columns, chunk, seed = map(index, (rows, columns, chunk, seed))  # of NumPy's integers, products may not fit
    if rows < 0 or columns < 0 or chunk < 1:  # chunk is not used, as nothing is stored
        raise ValueError(f"random_subset_mean takes chunks of 1 or more, not {rows} × {columns} in chunks of {chunk}")
    if not 0 <= seed < 2**64:
        raise ValueError(f"random_subset_mean takes seeds of 64 bits, not {seed}")
    count = ((rows + 1) // 2) * ((columns + 1) // 2)
    if count == 0:
        return np.nan
    if not pipes:
        raise RuntimeError("random_subset_mean works on the GPUs that engine() has found, and there are none")
    return 11 + total(rows, columns, seed) / count


def wait(mean):
    pass  # NCCL's sum has come


def download(mean):
    return float(mean)


def empty_round():
    """One request for nothing to all ranks and a sum by NCCL, whatever n is: there are no single tasks."""
    total(0, 0, 0)


if __name__ == "__main__":
    with engine():
        mean = download(random_subset_mean(4_000, 4_000))
    assert abs(mean - 11) < 6 / 2_000, mean  # six standard errors of 2,000 × 2,000 samples
    print("random_subset_mean, torch.distributed and CuPy, tuned: 4,000 × 4,000 samples, all right")
