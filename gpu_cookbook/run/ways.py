"""The device time taken in other ways, which must agree with the first: by the host's clock, and in a CUDA graph."""

import contextlib
import statistics
from collections.abc import Callable
from typing import Any

from gpu_cookbook.run.device import Cuda, Unmeasurable

APART, AT_LEAST = 0.05, 5e-7  # ways agree within this part of the device time, or within these seconds
CALLS = 20  # in a graph
Launch = Callable[[], Any]


def others(device: Cuda, framework: str, call: Launch, wall: float) -> dict[str, float]:
    """{way: seconds of a call}, for each way that there is. ``wall``: seconds of one synchronised call."""
    found = {}
    with contextlib.suppress(Unmeasurable):
        found["by the host's clock"] = statistics.median(device.host_times(call, wall))
    if framework in GRAPHS:
        # What a call does may not be possible in a graph: then there is no such way.
        with contextlib.suppress(Exception):
            launch = GRAPHS[framework](call)
            found["in a graph"] = statistics.median(device.device_times(launch, CALLS * wall)) / CALLS
    return found


def disagreement(measured: float, found: dict[str, float]) -> str | None:
    """Which ways disagree, in one line, or None."""
    if all(abs(each - measured) <= max(APART * measured, AT_LEAST) for each in found.values()):
        return None
    ways = {"by events": measured} | found
    return "ambiguous: " + ", ".join(f"{seconds * 1e6:,.4g} µs {way}" for way, seconds in ways.items())


def _of_cupy(call: Launch) -> Launch:
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
    return graph.launch


def _of_torch(call: Launch) -> Launch:
    import torch

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            call()
    return graph.replay


GRAPHS: dict[str, Callable[[Launch], Launch]] = {"CuPy": _of_cupy, "PyTorch": _of_torch}
