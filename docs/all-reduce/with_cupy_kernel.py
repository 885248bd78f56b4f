"""Sum the arrays of all GPUs onto each of them in CuPy: a kernel of our own on each GPU, which reads and writes the
memory of all.

Framework: CuPy
Runs on: every NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]"
Follows: https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#peer-to-peer-memory-access
"""

from contextlib import contextmanager
from itertools import permutations
from pathlib import Path

import cupy as cp
import numpy as np

GPUS = cp.cuda.runtime.getDeviceCount()
BLOCKS, THREADS = 1_024, 512

sum_part = cp.RawKernel(Path(__file__).with_name("sum_part.cu").read_text(), "sum_part")


@contextmanager
def engine():
    """Kernels of each GPU may use the memory of all others. RuntimeError where that cannot be."""
    enabled = []
    try:
        for gpu, peer in permutations(range(GPUS), 2):
            with cp.cuda.Device(gpu):
                if not cp.cuda.runtime.deviceCanAccessPeer(gpu, peer):
                    raise RuntimeError(f"GPU {gpu} cannot use the memory of GPU {peer}: take NCCL (with_cupy.py)")
                try:
                    cp.cuda.runtime.deviceEnablePeerAccess(peer)
                    enabled.append((gpu, peer))
                except cp.cuda.runtime.CUDARuntimeError as error:
                    if "AlreadyEnabled" not in str(error):  # by another library
                        raise
        yield
    finally:
        for gpu, peer in enabled:
            with cp.cuda.Device(gpu):
                cp.cuda.runtime.deviceDisablePeerAccess(peer)


def on_gpus(_, count):
    """On each GPU, so many float32: 0, 1, … 999, 0, … and the number of the GPU added. For the kernel, the
    addresses of all arrays as well."""
    arrays, addresses = [], []
    for gpu in range(GPUS):
        with cp.cuda.Device(gpu):
            arrays.append((cp.arange(count) % 1_000 + gpu).astype(cp.float32))
    for gpu in range(GPUS):
        with cp.cuda.Device(gpu) as device:
            addresses.append(cp.array([x.data.ptr for x in arrays], np.uint64))
            device.synchronize()
    return arrays, addresses


def all_reduce(arrays_and_addresses):
    """Returns when each GPU has the sum. The arrays must be complete, because no GPU waits for another one's queue, and
    from cudaMalloc, as CuPy's are by default: peer access is for its memory."""
    arrays, addresses = arrays_and_addresses
    count = arrays[0].size
    cuts = [count // 4 * gpu // GPUS for gpu in range(GPUS + 1)]
    for gpu in range(GPUS):
        with cp.cuda.Device(gpu):
            rest = count % 4 if gpu == GPUS - 1 else 0
            part = np.int64(cuts[gpu]), np.int64(cuts[gpu + 1]), np.int32(rest)
            sum_part((BLOCKS,), (THREADS,), (addresses[gpu], np.int32(GPUS), *part))
    for gpu in range(GPUS):
        cp.cuda.Device(gpu).synchronize()
    return arrays_and_addresses


def download(arrays_and_addresses):
    """The arrays of all GPUs, one after the other."""
    arrays, _ = arrays_and_addresses
    for gpu, x in enumerate(arrays):
        with cp.cuda.Device(gpu):
            yield cp.asnumpy(x)


if __name__ == "__main__":
    with engine() as none:
        for x in download(all_reduce(on_gpus(none, 1_000_003))):
            assert x[1_001] == GPUS * 1 + sum(range(GPUS)) and x[-1] == GPUS * 2 + sum(range(GPUS)), x
    print(f"all_reduce, a kernel of our own: 1,000,003 elements on {GPUS} GPUs, all right")
