"""Mean of a subset of random samples in torch.distributed, tuned: one process per GPU, whose sums NCCL adds up.

Framework: PyTorch
Runs on: every NVIDIA GPU
Install: pip install torch "cupy-cuda13x[ctk]"
Engine: torch.distributed, NCCL
Math: float64, but the logarithm, sine and cosine are polynomials of our own, right to about one rounding

The samples are those of with_cupy_tuned.py, which a counter defines: each GPU makes the rows of its part, and they do
not depend on the number of GPUs. NCCL's sum stays on the GPUs; only rank 0's goes to the host. The file is long because
the processes, their pipes and the loss of a process are its own: an executor would put its threads between.
"""

import os
import tempfile
from contextlib import contextmanager, suppress
from multiprocessing import connection, get_context
from pathlib import Path

import cupy as cp
import numpy as np
import torch
import torch.distributed as dist

KERNEL = (Path(__file__).parents[2] / "kernels" / "random_subset_mean_tuned.cu").read_text()
BLOCKS, THREADS = 2**16, 128  # at most; below that, one block per row: the last to end leave little of the GPU idle
GPUS = cp.cuda.runtime.getDeviceCount()

ranks = {}  # the pipe to each process of a GPU: the process


@contextmanager
def engine():
    spawn = get_context("spawn")  # CUDA does not survive a fork
    with tempfile.TemporaryDirectory() as folder:
        try:
            for gpu in range(GPUS):
                pipe, end = spawn.Pipe()
                ranks[pipe] = spawn.Process(target=run, args=(gpu, f"file://{folder}/ranks", end), daemon=True)
                ranks[pipe].start()
                end.close()  # ours: so that the process sees when we are gone
            if ranks:
                empty_round(1)  # its sum comes when all are ready
            yield
        finally:
            for pipe in ranks:
                pipe.close()  # which ends the process
            for process in ranks.values():
                process.join()
            ranks.clear()


def run(gpu, file, pipe):
    """The process of one GPU: rank 0 answers each request with the sum over all GPUs."""
    os.environ["NCCL_SOCKET_IFNAME"] = "lo"  # NCCL's ranks find each other through a file and 127.0.0.1
    torch.cuda.set_device(gpu)
    cp.cuda.Device(gpu).use()
    dist.init_process_group("nccl", file, rank=gpu, world_size=GPUS, device_id=torch.device("cuda", gpu))
    with suppress(EOFError):  # the other end is closed
        while True:
            # The same memory as a tensor. CuPy's stream and PyTorch's are the same one: the device's default.
            total = torch.as_tensor(share(*pipe.recv()), device="cuda")
            dist.all_reduce(total)
            if gpu == 0:
                pipe.send(float(total))
    dist.destroy_process_group()


def sum_of(requests):
    """One request to each process, and rank 0's answer. RuntimeError where a process has ended."""
    first, ends = next(iter(ranks)), [process.sentinel for process in ranks.values()]
    with suppress(ConnectionError, EOFError):  # as from a process that has ended
        for pipe, request in zip(ranks, requests, strict=True):
            pipe.send(request)
        connection.wait([first, *ends])
        if first.poll():
            return first.recv()
    connection.wait(ends)
    code = next(process.exitcode for process in ranks.values() if process.exitcode is not None)
    for process in ranks.values():
        process.kill()  # the others would wait in NCCL for the one that has ended
    raise RuntimeError(f"the process of a GPU ended with exit code {code}")


def share(first, end, columns, seed):
    """The sum of the subset's samples, as normal(0, 1), in the rows from first, an even one, to end."""
    blocks = min(BLOCKS, (end - first + 1) // 2)
    if blocks == 0:  # more GPUs than rows
        return cp.zeros(())
    add_subset = cp.RawKernel(KERNEL, "add_subset")  # compiled once per process: CuPy keeps it
    partial = cp.empty(blocks)
    rows = np.int64(first), np.int64(end), np.int64(columns)
    add_subset((blocks,), (THREADS,), (*rows, np.uint64(seed), partial))
    return partial.sum()


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    if rows < 0 or columns < 0 or chunk < 1:  # chunk is not used, as nothing is stored
        raise ValueError(f"random_subset_mean takes chunks of 1 or more, not {rows} × {columns} in chunks of {chunk}")
    if not 0 <= seed < 2**64:
        raise ValueError(f"random_subset_mean takes seeds of 64 bits, not {seed}")
    count = int((rows + 1) // 2) * int((columns + 1) // 2)
    if count == 0:
        return np.nan
    if not ranks:
        raise RuntimeError("random_subset_mean works on the GPUs that engine() has found, and there are none")
    pairs = (int(rows) + 1) // 2
    cuts = [2 * (pairs * i // GPUS) for i in range(GPUS + 1)]  # each part of the rows begins at an even one
    return 11 + sum_of([(*part, columns, seed) for part in zip(cuts, cuts[1:], strict=False)]) / count


def wait(mean):
    pass  # NCCL's sum has come


def download(mean):
    return float(mean)


def empty_round(n, payload=None):
    """One empty request to all ranks and a sum by NCCL, whatever n is: there are no single tasks."""
    sum_of([(0, 0, 0, 0)] * GPUS)


if __name__ == "__main__":
    with engine():
        mean = download(random_subset_mean(4_000, 4_000))
    assert abs(mean - 11) < 6 / 2_000, mean  # six standard errors of 2,000 × 2,000 samples
    print("random_subset_mean, torch.distributed and CuPy, tuned: 4,000 × 4,000 samples, all right")
