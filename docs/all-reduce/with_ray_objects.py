"""Sum the arrays of all GPUs onto each of them in Ray: one actor per GPU, and objects on the host.

Framework: Ray
Runs on: every NVIDIA GPU
Install: pip install ray "cupy-cuda13x[ctk]"
Follows: https://docs.ray.io/en/latest/ray-core/objects.html
"""

from contextlib import contextmanager
from unittest import mock

import cupy as cp
import ray


@ray.remote(num_cpus=0, num_gpus=1)
class Gpu:
    """The one that Ray gives this actor to see."""

    def on_gpu(self, gpu, count):
        self.x = (cp.arange(count) % 1_000 + gpu).astype(cp.float32)
        cp.cuda.Device().synchronize()

    def download(self):
        return cp.asnumpy(self.x)

    def add(self, *others):
        for y in others:
            self.x += cp.asarray(y)
        cp.cuda.Device().synchronize()


@contextmanager
def engine():
    """Yields the actors."""
    # On Linux, where other machines may join, Ray listens on all addresses; elsewhere on 127.0.0.1 only. No argument of
    # ray.init changes that, and the environment variable behind this constant is read when ray is imported.
    with mock.patch("ray._private.ray_constants.ENABLE_RAY_CLUSTER", False):
        ray.init(address="local", include_dashboard=False, logging_level="ERROR")
    try:
        gpus = [Gpu.remote() for _ in range(int(ray.cluster_resources().get("GPU", 0)))]
        yield gpus
    finally:
        ray.shutdown()


def on_gpus(gpus, count):
    """On each GPU, so many float32: 0, 1, … 999, 0, … and the number of the GPU added."""
    ray.get([gpu.on_gpu.remote(number, count) for number, gpu in enumerate(gpus)])
    return gpus


def all_reduce(gpus):
    """Returns when each GPU has the sum. Ray keeps what an actor returns in the host's memory, which all can read."""
    arrays = [gpu.download.remote() for gpu in gpus]
    ray.get([gpu.add.remote(*arrays[:number], *arrays[number + 1 :]) for number, gpu in enumerate(gpus)])
    return gpus


def download(gpus):
    """The arrays of all GPUs, one after the other."""
    for gpu in gpus:
        yield ray.get(gpu.download.remote())


if __name__ == "__main__":
    with engine() as gpus:
        for x in download(all_reduce(on_gpus(gpus, 1_000_000))):
            assert x[1_001] == len(gpus) * 1 + sum(range(len(gpus))), x
        print(f"all_reduce, Ray, objects: 1,000,000 elements on {len(gpus)} GPUs, all right")
