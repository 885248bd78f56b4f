"""What one library hands to another: docs/together has a script for each library, with its ways out and in."""

from collections.abc import Iterable
from dataclasses import dataclass

from gpu_cookbook.results import keyed

LIBRARIES = {  # the scripts' names, in the order of the tables
    "numpy": "NumPy",
    "cupy": "CuPy",
    "torch": "PyTorch",
    "triton": "Triton",
    "jax": "JAX",
    "numba": "Numba",
    "pycuda": "PyCUDA",
    "cuda_core": "cuda.core",
    "warp": "Warp",
    "cudf": "cuDF",
    "pyopencl": "PyOpenCL",
}
DLPACK, INTERFACE, HOST = "dlpack", "cuda_array_interface", "host"
WAYS = (DLPACK, INTERFACE, HOST)
GPU, NOBODY = "GPU", "nobody"  # who waits; the third is HOST


@dataclass(frozen=True)
class Handover:
    """An array of one library in another one, in one of WAYS.

    ``reason``: why there is none. ``shared``: it is at the same address in both. ``right``: both have the same numbers.
    ``seen``: what one of them writes is seen by the other one; None if nothing is shared, or neither may write.
    ``waits``: who waits for what the producer's stream has still to do; None if that could not be told."""

    producer: str
    consumer: str
    way: str
    reason: str = ""
    shared: bool = False
    right: bool = False
    seen: bool | None = None
    waits: str | None = None


def by_pair(handovers: Iterable[Handover]) -> dict[tuple[str, str], list[Handover]]:
    """{(producer, consumer): its handovers}."""
    return keyed(handovers, lambda each: (each.producer, each.consumer))
