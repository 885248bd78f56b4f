"""Copy the array of each GPU to the next GPU, all at the same time: what the connections between them can do.

Framework: CuPy
Runs on: every NVIDIA GPU
Install: pip install "cupy-cuda13x[ctk]"
Follows: https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#peer-to-peer-memory-copy
"""

from contextlib import contextmanager
from itertools import permutations

import cupy as cp

GPUS = cp.cuda.runtime.getDeviceCount()


@contextmanager
def engine():
    """Copies go directly from GPU to GPU, where that can be. Yields a stream of each GPU."""
    streams, enabled = [], []
    for gpu in range(GPUS):
        with cp.cuda.Device(gpu):
            streams.append(cp.cuda.Stream(non_blocking=True))
    try:
        for gpu, peer in permutations(range(GPUS), 2):
            with cp.cuda.Device(gpu):
                if cp.cuda.runtime.deviceCanAccessPeer(gpu, peer):
                    try:
                        cp.cuda.runtime.deviceEnablePeerAccess(peer)
                        enabled.append((gpu, peer))
                    except cp.cuda.runtime.CUDARuntimeError as error:
                        if "AlreadyEnabled" not in str(error):  # by another library
                            raise
        yield streams
    finally:
        for gpu, peer in enabled:
            with cp.cuda.Device(gpu):
                cp.cuda.runtime.deviceDisablePeerAccess(peer)


def on_gpus(streams, count):
    """On each GPU, so many float32: 0, 1, … 999, 0, … and the number of the GPU added. Also room for as many."""
    arrays = []
    for gpu in range(GPUS):
        with cp.cuda.Device(gpu) as device:
            arrays.append(((cp.arange(count) % 1_000 + gpu).astype(cp.float32), cp.empty(count, cp.float32)))
            device.synchronize()
    return streams, arrays


def copy_all(state):
    """Returns when each GPU has the array of the one before it, and the first that of the last. The arrays must be
    complete: these streams wait for no others."""
    streams, arrays = state
    for gpu, stream in enumerate(streams):
        following = (gpu + 1) % GPUS
        (x, _), (_, room) = arrays[gpu], arrays[following]
        cp.cuda.runtime.memcpyPeerAsync(room.data.ptr, following, x.data.ptr, gpu, x.nbytes, stream.ptr)
    for stream in streams:
        stream.synchronize()
    return state


def download(state):
    """What each GPU was given, one after the other."""
    _, arrays = state
    for gpu, (_, room) in enumerate(arrays):
        with cp.cuda.Device(gpu):
            yield cp.asnumpy(room)


if __name__ == "__main__":
    with engine() as streams:
        for gpu, x in enumerate(download(copy_all(on_gpus(streams, 1_000_000)))):
            assert x[1_001] == 1 + (gpu - 1) % GPUS, x
    print(f"copies between {GPUS} GPUs: 1,000,000 elements, all right")
