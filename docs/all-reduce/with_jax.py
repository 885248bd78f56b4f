"""Sum the arrays of all GPUs onto each of them in JAX: one process, and NCCL, which XLA calls.

Framework: JAX
Runs on: NVIDIA GPU or CPU
Install: pip install "jax[cuda13]"
Follows: https://docs.jax.dev/en/latest/notebooks/shard_map.html
"""

from contextlib import contextmanager
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

GPUS = jax.local_device_count()
mesh = jax.make_mesh((GPUS,), ("gpu",), devices=jax.local_devices())
rows = PartitionSpec("gpu")  # a row of the array on each GPU


@contextmanager
def engine():
    yield


@partial(jax.jit, static_argnums=0, out_shardings=NamedSharding(mesh, rows))
def numbers(count):
    return (jnp.arange(count) % 1_000 + jnp.arange(GPUS)[:, None]).astype(jnp.float32)


@jax.jit
@partial(jax.shard_map, mesh=mesh, in_specs=rows, out_specs=rows)
def add_up(x):
    return jax.lax.psum(x, "gpu")


def on_gpus(_, count):
    """On each GPU, so many float32: 0, 1, … 999, 0, … and the number of the GPU added."""
    return jax.block_until_ready(numbers(count))


def all_reduce(x):
    """Returns when each GPU has the sum."""
    return jax.block_until_ready(add_up(x))


def download(x):
    """The arrays of all GPUs, one after the other."""
    for shard in x.addressable_shards:
        yield np.asarray(shard.data)[0]


if __name__ == "__main__":
    with engine() as none:
        for x in download(all_reduce(on_gpus(none, 1_000_000))):
            assert x[1_001] == GPUS * 1 + sum(range(GPUS)), x
    print(f"all_reduce, JAX: 1,000,000 elements on {GPUS} devices, all right")
