"""One pool of memory for several libraries: each allocates from RMM's.

Framework: cuDF
Runs on: NVIDIA GPU
Install: pip install rmm-cu13 numpy
Environment: every
Follows: https://docs.rapids.ai/api/rmm/stable/user_guide/guide/
Follows: https://nvidia.github.io/warp/stable/api_reference/_generated/warp.utils.AllocatorRmm.html

A library is told before it allocates for the first time, and keeps to it for as long as the process lives. As a script,
it says which of the libraries that are installed took their memory from the pool.
"""

import importlib.util

import numpy as np
import rmm

SIZE = 2**20  # elements of float32


def make_pool():
    """A pool that counts what is taken from it."""
    pool = rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource(), initial_pool_size=2**28)
    counted = rmm.mr.StatisticsResourceAdaptor(pool)
    rmm.mr.set_current_device_resource(counted)
    return counted


def cudf_from_pool():
    import cudf  # it uses RMM in any case

    return cudf.Series(np.zeros(SIZE, np.float32))


def cupy_from_pool():
    import cupy as cp
    from rmm.allocators.cupy import rmm_cupy_allocator

    cp.cuda.set_allocator(rmm_cupy_allocator)
    return cp.zeros(SIZE, cp.float32)


def numba_from_pool():
    from numba import cuda
    from rmm.allocators.numba import RMMNumbaManager

    cuda.set_memory_manager(RMMNumbaManager)
    return cuda.device_array(SIZE, np.float32)


def torch_from_pool():
    import torch
    from rmm.allocators.torch import rmm_torch_allocator

    torch.cuda.memory.change_current_allocator(rmm_torch_allocator)
    return torch.zeros(SIZE, device="cuda")


def warp_from_pool():
    import warp as wp

    wp.set_cuda_allocator(wp.utils.AllocatorRmm())
    return wp.zeros(SIZE, dtype=wp.float32, device="cuda")


LIBRARIES = {
    "cudf": cudf_from_pool,
    "cupy": cupy_from_pool,
    "numba": numba_from_pool,
    "torch": torch_from_pool,
    "warp": warp_from_pool,
}


def took_from(pool, allocate):
    """Whether the array that this function allocates is in the pool."""
    before = pool.allocation_counts.total_bytes
    array = allocate()
    return pool.allocation_counts.total_bytes - before >= 4 * SIZE and array is not None


if __name__ == "__main__":
    pool = make_pool()
    installed = {name: each for name, each in LIBRARIES.items() if importlib.util.find_spec(name)}
    took = {name: took_from(pool, each) for name, each in installed.items()}
    assert all(took.values()), took
    print(f"one pool: {', '.join(took)}, all right")
