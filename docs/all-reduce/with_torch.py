"""Sum the arrays of all GPUs onto each of them in torch.distributed: one process per GPU, and NCCL.

Framework: PyTorch
Runs on: every NVIDIA GPU
Install: pip install torch
Follows: https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.all_reduce
"""

import os
import tempfile
from contextlib import contextmanager, suppress

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

GPUS = torch.cuda.device_count()


@contextmanager
def engine():
    """Yields a pipe to the process of each GPU."""
    ours, theirs = zip(*(mp.Pipe() for _ in range(GPUS)), strict=True)
    with tempfile.TemporaryDirectory() as folder:
        job = mp.spawn(work, (f"{folder}/ranks", theirs), GPUS, join=False, daemon=True)
        try:
            yield ours
        finally:
            for pipe in ours:
                pipe.close()  # which ends the process
            for process in job.processes:
                process.join()


def work(gpu, file, pipes):
    os.environ["NCCL_SOCKET_IFNAME"] = "lo"  # NCCL's ranks find each other through a file and 127.0.0.1
    torch.cuda.set_device(gpu)
    dist.init_process_group("nccl", f"file://{file}", rank=gpu, world_size=GPUS, device_id=torch.device("cuda", gpu))
    with suppress(EOFError):  # the other end is closed
        while True:
            match pipes[gpu].recv():
                case "on_gpus", count:
                    x = torch.arange(count, device="cuda").remainder_(1_000).float().add_(gpu)
                case "all_reduce":
                    dist.all_reduce(x)
                case "download":
                    pipes[gpu].send(x.numpy(force=True))
            torch.cuda.synchronize()
            pipes[gpu].send("done")
    dist.destroy_process_group()


def on_gpus(pipes, count):
    """On each GPU, so many float32: 0, 1, … 999, 0, … and the number of the GPU added."""
    return ask(pipes, ("on_gpus", count))


def all_reduce(pipes):
    """Returns when each GPU has the sum."""
    return ask(pipes, "all_reduce")


def ask(pipes, what):
    for pipe in pipes:
        pipe.send(what)
    for pipe in pipes:
        pipe.recv()
    return pipes


def download(pipes):
    """The arrays of all GPUs, one after the other."""
    for pipe in pipes:
        pipe.send("download")
        yield pipe.recv()
        pipe.recv()


if __name__ == "__main__":
    with engine() as pipes:
        for x in download(all_reduce(on_gpus(pipes, 1_000_000))):
            assert x[1_001] == GPUS * 1 + sum(range(GPUS)), x
    print(f"all_reduce, torch.distributed: 1,000,000 elements on {GPUS} GPUs, all right")
