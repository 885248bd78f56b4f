"""Sum the arrays of all GPUs onto each of them in Ray: one actor per GPU, and NCCL through Ray's collective library.

Framework: Ray
Runs on: every NVIDIA GPU
Install: pip install ray "cupy-cuda13x[ctk]" nvidia-nccl-cu13
Follows: https://docs.ray.io/en/latest/ray-more-libs/ray-collective.html
"""

from contextlib import contextmanager
from unittest import mock

import cupy as cp
import ray
from ray.util import collective


@ray.remote(num_cpus=0, num_gpus=1)
class Gpu:
    """The one that Ray gives this actor to see."""

    def on_gpu(self, gpu, count):
        self.x = (cp.arange(count) % 1_000 + gpu).astype(cp.float32)
        cp.cuda.Device().synchronize()

    def all_reduce(self):
        collective.allreduce(self.x)
        cp.cuda.Device().synchronize()

    def download(self):
        return cp.asnumpy(self.x)


@contextmanager
def engine():
    """Yields the actors."""
    # On Linux, where other machines may join, Ray listens on all addresses; elsewhere on 127.0.0.1 only. No argument of
    # ray.init changes that, and the environment variable behind this constant is read when ray is imported.
    with mock.patch("ray._private.ray_constants.ENABLE_RAY_CLUSTER", False):
        ray.init(address="local", include_dashboard=False, logging_level="ERROR")
    try:
        gpus = [Gpu.remote() for _ in range(int(ray.cluster_resources().get("GPU", 0)))]
        collective.create_collective_group(gpus, len(gpus), list(range(len(gpus))), "nccl")
        yield gpus
    finally:
        ray.shutdown()


def on_gpus(gpus, count):
    """On each GPU, so many float32: 0, 1, … 999, 0, … and the number of the GPU added."""
    ray.get([gpu.on_gpu.remote(number, count) for number, gpu in enumerate(gpus)])
    return gpus


def all_reduce(gpus):
    """Returns when each GPU has the sum."""
    ray.get([gpu.all_reduce.remote() for gpu in gpus])
    return gpus


def download(gpus):
    """The arrays of all GPUs, one after the other."""
    for gpu in gpus:
        yield ray.get(gpu.download.remote())


if __name__ == "__main__":
    with engine() as gpus:
        for x in download(all_reduce(on_gpus(gpus, 1_000_000))):
            assert x[1_001] == len(gpus) * 1 + sum(range(len(gpus))), x
        print(f"all_reduce, Ray and NCCL: 1,000,000 elements on {len(gpus)} GPUs, all right")
