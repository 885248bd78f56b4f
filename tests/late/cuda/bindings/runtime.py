"""What docs/transfers uses of cuda.bindings.runtime."""

import enum

import cupy


class cudaError_t(enum.IntEnum):
    cudaSuccess = 0


class cudaMemLocationType(enum.IntEnum):
    cudaMemLocationTypeDevice = 1
    cudaMemLocationTypeHost = 2


class cudaMemLocation:
    type = id = 0


def cudaMemPrefetchAsync(address, size, location, flags, stream):
    assert location.type == cudaMemLocationType.cudaMemLocationTypeHost and flags == 0
    cupy.prefetch(address, size, 0, stream)
    return (cudaError_t.cudaSuccess,)
