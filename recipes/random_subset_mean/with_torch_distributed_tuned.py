"""Mean of a subset of random samples in torch.distributed, tuned: one process per GPU, whose sums NCCL adds up.

Framework: PyTorch
Runs on: every NVIDIA GPU
Install: pip install torch "cupy-cuda13x[ctk]"
Engine: torch.distributed, NCCL
Math: float64, but the logarithm, sine and cosine are polynomials of our own, right to about one rounding

The samples are those of with_cupy_tuned.py, which a counter defines: each GPU makes the rows of its part, and they do
not depend on the number of GPUs, tasks or processes. NCCL's sum stays on the GPUs; only rank 0's goes to the host. The
file is long because processes, pipes and the loss of a process are all its own: the standard library's executors would
be shorter, and put two more threads between a request and its answer.
"""

import multiprocessing
import os
import tempfile
from contextlib import contextmanager
from multiprocessing import connection
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
    context = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
    with tempfile.TemporaryDirectory() as folder:
        try:
            for gpu in range(GPUS):
                pipe, end = context.Pipe()
                ranks[pipe] = context.Process(target=run, args=(gpu, f"{folder}/ranks", end), daemon=True)
                ranks[pipe].start()
                end.close()  # ours: so that the process sees when we are gone, and we see when it is
            answers()  # each says that it is ready
            yield
        finally:
            for pipe in ranks:
                pipe.close()  # which ends the process
            for process in ranks.values():
                process.join()
            ranks.clear()


def run(gpu, file, pipe):
    """The process of one GPU: answers each request with the sum over all GPUs."""
    os.environ["NCCL_SOCKET_IFNAME"] = "lo"  # NCCL's ranks find each other through a file and 127.0.0.1
    torch.cuda.set_device(gpu)
    cp.cuda.Device(gpu).use()
    dist.init_process_group("nccl", f"file://{file}", rank=gpu, world_size=GPUS, device_id=torch.device("cuda", gpu))
    dist.barrier()
    pipe.send(None)
    try:
        while True:
            # The same memory as a tensor. CuPy's stream and PyTorch's are the same one: the device's default.
            total = torch.as_tensor(share(*pipe.recv()), device="cuda")
            dist.all_reduce(total)
            pipe.send(float(total))
    except EOFError:  # the other end is closed
        dist.destroy_process_group()


def answers():
    """What each process sends. RuntimeError where one has ended: then all are, which would wait for it in NCCL."""
    waiting = dict(ranks)
    received = []
    while waiting:
        for pipe in connection.wait(waiting):
            try:
                received.append(pipe.recv())
            except EOFError:
                ended = waiting[pipe]
                ended.join()
                for process in ranks.values():
                    process.kill()  # they do not see that their pipe is closed before NCCL's sum has come
                raise RuntimeError(f"the process of a GPU ended with exit code {ended.exitcode}") from None
            del waiting[pipe]
    return received


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


def parts(rows, count):
    """[(first, end), …]: the rows cut into that many parts, which begin at even rows and differ by two rows at most."""
    pairs = int(rows + 1) // 2
    cuts = [2 * (pairs * i // count) for i in range(count + 1)]
    return list(zip(cuts, cuts[1:], strict=False))


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
    for pipe, part in zip(ranks, parts(rows, GPUS), strict=True):
        pipe.send((*part, columns, seed))
    return 11 + answers()[0] / count


def wait(mean):
    pass  # NCCL's sum has come


def download(mean):
    return float(mean)


def empty_round():
    """One empty request to all ranks and a sum by NCCL, whatever n is: there are no single tasks."""
    for pipe in ranks:
        pipe.send((0, 0, 0, 0))
    answers()


if __name__ == "__main__":
    with engine():
        mean = download(random_subset_mean(4_000, 4_000))
    assert abs(mean - 11) < 6 / 2_000, mean  # six standard errors of 2,000 × 2,000 samples
    print("random_subset_mean, torch.distributed and CuPy, tuned: 4,000 × 4,000 samples, all right")
