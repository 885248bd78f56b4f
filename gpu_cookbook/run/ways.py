"""The device time taken in other ways, which must agree with the first: by the host's clock, and in a CUDA graph."""

import contextlib
import ctypes
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gpu_cookbook.run.device import Cuda, Unmeasurable

# Two ways agree within this part of the device time, or within these seconds. A kernel in a graph begins sooner after
# the one before it than a kernel in a stream does, by 0.7 to 0.9 µs on an H200: up to SOONER less for each kernel.
APART, AT_LEAST, SOONER = 0.05, 5e-7, 1e-6
CALLS = 20  # in a graph
Launch = Callable[[], Any]


@dataclass(frozen=True)
class Way:
    """The seconds of a call taken in one way, and by how many seconds they may be less than by events."""

    seconds: float
    less: float = 0.0


def others(device: Cuda, framework: str, call: Launch, wall: float) -> dict[str, Way]:
    """{what it is called: the way} of those that work here. ``wall``: seconds of one synchronised call."""
    found = {}
    with contextlib.suppress(Unmeasurable):
        found["by the host's clock"] = Way(statistics.median(device.host_times(call, wall)))
    if framework in GRAPHS:
        # What a call does may not be possible in a graph: then there is no such way.
        with contextlib.suppress(Exception):
            launch, graph = GRAPHS[framework](call)
            seconds = statistics.median(device.device_times(launch, CALLS * wall)) / CALLS
            found["in a graph"] = Way(seconds, SOONER * _nodes(graph) / CALLS)
    return found


def disagreement(measured: float, found: dict[str, Way]) -> str | None:
    """Which ways disagree, in one line, or None."""
    apart = max(APART * measured, AT_LEAST)
    if all(measured - apart - each.less <= each.seconds <= measured + apart for each in found.values()):
        return None
    ways = {"by events": measured} | {way: each.seconds for way, each in found.items()}
    return "ambiguous: " + ", ".join(f"{seconds * 1e6:,.4g} µs {way}" for way, seconds in ways.items())


def _nodes(graph: int) -> int:
    """How many kernels and copies there are in a graph, by its address."""
    driver, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_size_t()
    if driver.cuGraphGetNodes(ctypes.c_void_p(graph), None, ctypes.byref(count)):
        raise Unmeasurable("the driver does not say what is in the graph")
    return count.value


def _of_cupy(call: Launch) -> tuple[Launch, int]:
    import cupy

    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        for _ in range(CALLS):  # takes the memory that it needs: none can be allocated during the capture
            call()
        stream.synchronize()
        stream.begin_capture()
        try:
            for _ in range(CALLS):
                call()
        finally:
            graph = stream.end_capture()
    return graph.launch, graph.graph


def _of_torch(call: Launch) -> tuple[Launch, int]:
    import torch

    graph = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            call()
    graph.instantiate()
    return graph.replay, graph.raw_cuda_graph()


# Triton launches in PyTorch's current stream.
GRAPHS: dict[str, Callable[[Launch], tuple[Launch, int]]] = {
    "CuPy": _of_cupy,
    "PyTorch": _of_torch,
    "Triton": _of_torch,
}
