"""Sum the arrays of all GPUs onto each of them in torch.distributed: one process per GPU, and NCCL.

Framework: PyTorch
Runs on: every NVIDIA GPU
Install: pip install torch
Follows: https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.all_reduce
"""

import multiprocessing
import os
import tempfile
from contextlib import contextmanager, suppress
from multiprocessing.connection import wait

import torch
import torch.distributed as dist

GPUS = torch.cuda.device_count()


@contextmanager
def engine():
    """Yields a pipe to the process of each GPU."""
    spawn = multiprocessing.get_context("spawn")  # CUDA does not work in a process that was forked
    ours, theirs = zip(*(spawn.Pipe() for _ in range(GPUS)), strict=True)
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/ranks"
        processes = [spawn.Process(target=work, args=(*each, file), daemon=True) for each in enumerate(theirs)]
        for process in processes:
            process.start()
        for pipe in theirs:
            pipe.close()  # so that ours ends when its process does
        try:
            yield ours
        finally:
            for pipe in ours:
                pipe.close()  # which ends the process
            for process in processes:
                process.join(10)
                process.kill()  # if it waits in NCCL for one that has ended


def work(gpu, pipe, file):
    os.environ["NCCL_SOCKET_IFNAME"] = "lo"  # NCCL's ranks find each other through a file and 127.0.0.1
    torch.cuda.set_device(gpu)
    dist.init_process_group("nccl", f"file://{file}", rank=gpu, world_size=GPUS, device_id=torch.device("cuda", gpu))
    with suppress(EOFError, ConnectionError):  # the other end is closed
        while True:
            match pipe.recv():
                case "on_gpus", count:
                    x = torch.arange(count, device="cuda").remainder_(1_000).float().add_(gpu)
                case "all_reduce":
                    dist.all_reduce(x)
                case "download":
                    pipe.send(x.numpy(force=True))
            torch.cuda.synchronize()
            pipe.send("done")
    dist.destroy_process_group()


def on_gpus(pipes, count):
    """On each GPU, so many float32: 0, 1, … 999, 0, … and the number of the GPU added."""
    ask(pipes, ("on_gpus", count))
    return pipes


def all_reduce(pipes):
    """Returns when each GPU has the sum."""
    ask(pipes, "all_reduce")
    return pipes


def ask(pipes, what):
    """Returns when all have done it. EOFError or BrokenPipeError if a process has ended."""
    for pipe in pipes:
        pipe.send(what)
    left = {*pipes}
    while left:
        for pipe in wait(left):
            pipe.recv()
            left.remove(pipe)


def download(pipes):
    """The arrays of all GPUs, one after the other."""
    for pipe in pipes:
        pipe.send("download")
        x, _ = pipe.recv(), pipe.recv()
        yield x


if __name__ == "__main__":
    with engine() as pipes:
        for x in download(all_reduce(on_gpus(pipes, 1_000_000))):
            assert x[1_001] == GPUS * 1 + sum(range(GPUS)), x
    print(f"all_reduce, torch.distributed: 1,000,000 elements on {GPUS} GPUs, all right")
