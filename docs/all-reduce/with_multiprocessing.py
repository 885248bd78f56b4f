"""Sum the arrays of all GPUs onto each of them in multiprocessing: one process per GPU, and memory of the host that all
of them share.

Framework: multiprocessing
Runs on: every NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]"
Follows: https://docs.python.org/3/library/multiprocessing.shared_memory.html
"""

import multiprocessing
from contextlib import contextmanager, suppress
from multiprocessing.connection import wait
from multiprocessing.shared_memory import SharedMemory

import cupy as cp
import numpy as np

GPUS = cp.cuda.runtime.getDeviceCount()


@contextmanager
def engine():
    """Yields a pipe to the process of each GPU, and where the memory will be that they share."""
    spawn = multiprocessing.get_context("spawn")  # CUDA does not work in a process that was forked
    ours, theirs = zip(*(spawn.Pipe() for _ in range(GPUS)), strict=True)
    processes = [spawn.Process(target=work, args=(gpu, pipe), daemon=True) for gpu, pipe in enumerate(theirs)]
    for process in processes:
        process.start()
    for pipe in theirs:
        pipe.close()  # so that ours ends when its process does
    memories = {}
    try:
        yield ours, memories
    finally:
        for pipe in ours:
            pipe.close()  # which ends the process
        for process in processes:
            process.join()
        for memory in memories.values():
            memory.close()
            memory.unlink()


def work(gpu, pipe):
    cp.cuda.Device(gpu).use()
    with suppress(EOFError, ConnectionError):  # the other end is closed
        while True:
            match pipe.recv():
                case "on_gpus", count, memory:
                    x = (cp.arange(count) % 1_000 + gpu).astype(cp.float32)
                    rows = np.ndarray((GPUS, count), np.float32, memory.buf)
                case "write":
                    rows[gpu] = x.get()
                case "add":
                    for other in {*range(GPUS)} - {gpu}:
                        x += cp.asarray(rows[other])
                case "download":
                    pipe.send(x.get())
            cp.cuda.Device().synchronize()
            pipe.send("done")


def on_gpus(state, count):
    """On each GPU, so many float32: 0, 1, … 999, 0, … and the number of the GPU added. On the host, room for all: in a
    container, docker's --shm-size must allow it."""
    pipes, memories = state
    if count not in memories:
        memories[count] = SharedMemory(create=True, size=4 * GPUS * count)
    ask(pipes, ("on_gpus", count, memories[count]))
    return state


def all_reduce(state):
    """Returns when each GPU has the sum: all write their arrays, then each reads those of the others."""
    pipes, _ = state
    ask(pipes, "write")
    ask(pipes, "add")
    return state


def ask(pipes, what):
    """Returns when all have done it. EOFError or BrokenPipeError if a process has ended."""
    for pipe in pipes:
        pipe.send(what)
    left = {*pipes}
    while left:
        for pipe in wait(left):
            pipe.recv()
            left.remove(pipe)


def download(state):
    """The arrays of all GPUs, one after the other."""
    pipes, _ = state
    for pipe in pipes:
        pipe.send("download")
        x, _ = pipe.recv(), pipe.recv()
        yield x


if __name__ == "__main__":
    with engine() as state:
        for x in download(all_reduce(on_gpus(state, 1_000_000))):
            assert x[1_001] == GPUS * 1 + sum(range(GPUS)), x
    print(f"all_reduce, multiprocessing: 1,000,000 elements on {GPUS} GPUs, all right")
