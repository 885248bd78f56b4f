"""Sum the arrays of all GPUs onto each of them in CuPy: one process, and NCCL.

Framework: CuPy
Runs on: every NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]" nvidia-nccl-cu13
Follows: https://docs.cupy.dev/en/stable/reference/generated/cupy.cuda.nccl.NcclCommunicator.html
Follows: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/usage/groups.html
"""

from contextlib import contextmanager

import cupy as cp
from cupy.cuda import nccl

GPUS = cp.cuda.runtime.getDeviceCount()


@contextmanager
def engine():
    """Yields a communicator and a stream for each GPU."""
    streams = []
    for gpu in range(GPUS):
        with cp.cuda.Device(gpu):
            streams.append(cp.cuda.Stream(non_blocking=True))
    ranks = nccl.NcclCommunicator.initAll(GPUS)
    try:
        yield list(zip(ranks, streams, strict=True))
    finally:
        for rank in ranks:
            rank.destroy()


def on_gpus(ranks, count):
    """On each GPU, so many float32: 0, 1, … 999, 0, … and the number of the GPU added."""
    arrays = []
    for gpu in range(GPUS):
        with cp.cuda.Device(gpu) as device:
            arrays.append((cp.arange(count) % 1_000 + gpu).astype(cp.float32))
            device.synchronize()
    return ranks, arrays


def all_reduce(ranks_and_arrays):
    """Returns when each GPU has the sum. The arrays must be complete: these streams wait for no others."""
    ranks, arrays = ranks_and_arrays
    nccl.groupStart()  # one thread calls all ranks, which would otherwise wait for each other
    try:
        for gpu, ((rank, stream), x) in enumerate(zip(ranks, arrays, strict=True)):
            with cp.cuda.Device(gpu):
                rank.allReduce(x.data.ptr, x.data.ptr, x.size, nccl.NCCL_FLOAT32, nccl.NCCL_SUM, stream.ptr)
    finally:
        nccl.groupEnd()
    for _, stream in ranks:
        stream.synchronize()
    return ranks, arrays


def download(ranks_and_arrays):
    """The arrays of all GPUs, one after the other."""
    _, arrays = ranks_and_arrays
    for gpu, x in enumerate(arrays):
        with cp.cuda.Device(gpu):
            yield cp.asnumpy(x)


if __name__ == "__main__":
    with engine() as ranks:
        for x in download(all_reduce(on_gpus(ranks, 1_000_000))):
            assert x[1_001] == GPUS * 1 + sum(range(GPUS)), x
    print(f"all_reduce, CuPy and NCCL: 1,000,000 elements on {GPUS} GPUs, all right")
