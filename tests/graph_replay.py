"""Whether a CUDA graph is faster than what ``prepared`` of multiply's recipes in Warp and Triton replays:
``python tests/graph_replay.py``, on an NVIDIA GPU. CuPy's recipe, which replays a graph, is beside them, and so is
CuPy's launch of an empty kernel, against which benchmarks/limits.py sets such calls.

Each time is the median of 2,000 calls on 40,000 elements, each with its wait, in microseconds. Everything runs in one
process. A result counts only if it is right.
"""

import statistics
import sys
import time
from functools import partial

import numpy as np

from gpu_cookbook import catalogue, machine
from gpu_cookbook.run.loader import Loader

SIZE, WARMING_UP, CALLS = 40_000, 200, 2_000


def timed(call, wait):
    for _ in range(WARMING_UP):
        wait(call())
    times = []
    for _ in range(CALLS):
        start = time.perf_counter()
        wait(call())
        times.append(time.perf_counter() - start)
    return 1e6 * statistics.median(times)


def warp_graph(call):
    import warp as wp

    with wp.ScopedCapture() as capture:
        result = call()

    def replay():
        wp.capture_launch(capture.graph)
        return result

    return replay


def triton_graph(call):
    import torch

    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = call()

    def replay():
        graph.replay()
        return result

    return replay


def empty_kernel():
    """Its median time."""
    import cupy as cp

    kernel, stream = cp.RawKernel('extern "C" __global__ void empty() {}', "empty"), cp.cuda.get_current_stream()
    return timed(partial(kernel, (1,), (1,), ()), lambda _: stream.synchronize())


def main():
    if not machine.gpus():
        sys.exit("A CUDA graph needs an NVIDIA GPU, but this machine has none.")
    print("| recipe | call | prepared | graph |")
    print("| --- | ---: | ---: | ---: |")
    print(f"| an empty kernel | {empty_kernel():.1f} | – | – |", flush=True)
    host = np.random.default_rng(0).random((2, SIZE), np.float32)
    for technique, graph_of in {"warp_tuned": warp_graph, "triton": triton_graph, "cupy_tuned": None}.items():
        recipe = catalogue.find("multiply", technique)
        if reason := machine.obstacle(recipe):
            sys.exit(f"{technique} {reason}")
        module = Loader(recipe).execute()
        arrays = module.upload(*host)
        out = module.multiply(*arrays)
        module.wait(out)
        ways = {"call": partial(module.multiply, *arrays, out), "prepared": module.prepared(*arrays)}
        if graph_of:
            ways["graph"] = graph_of(ways["call"])
        times = []
        for way in ways.values():
            times.append(f"{timed(way, module.wait):.1f}")
            np.testing.assert_array_equal(module.download(way()), host[0] * host[1])
        print(f"| {technique} | {' | '.join(times)} |{'' if graph_of else ' – |'}", flush=True)


if __name__ == "__main__":
    main()
