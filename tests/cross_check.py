"""The device time of the same calls, taken in every way that there is, and by NVIDIA's cuda-bench:
``python tests/cross_check.py``.

It needs an NVIDIA GPU, the frameworks of CASES, and ``pip install "cuda-bench[cu13]"``. cuda-bench's batch keeps the
queue full, as gpu-cookbook does; its single calls each begin with empty caches.
"""

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from cuda import bench

from gpu_cookbook import catalogue
from gpu_cookbook.run import measure, ways
from gpu_cookbook.run.device import Cuda
from gpu_cookbook.run.loader import Loader
from gpu_cookbook.run.precision import workload_for

CASES = {
    f"{workload} of {size:,}, {technique}": (workload, technique, size)
    for workload, technique, size in (
        ("multiply", "cupy", 1_000_000),
        ("multiply", "torch", 1_000_000),
        ("multiply", "pycuda_tuned", 2**28),
        ("multiply", "torch", 2**28),
        ("increment", "numba_tuned", 2**28),
        ("matmul", "torch", 200),
        ("matmul", "cupy", 4_096),
        ("subset_mean", "cupy_tuned", 10_000),
        ("random_subset_mean", "cupy_tuned", 20_000),
    )
}
WAYS = ("by events", "by the host's clock", "in a graph", "cuda-bench, batch", "cuda-bench, single")
TAGS = {"cuda-bench, batch": "nv/batch/time/gpu/mean", "cuda-bench, single": "nv/cold/time/gpu/mean"}

found = {}  # {case: {way: seconds}}


def work(state):
    """One case: in our ways, then by cuda-bench."""
    case = state.get_string("case")
    workload, technique, size = CASES[case]
    (recipe,) = catalogue.choose([workload], [technique])
    calls = measure.Calls(Loader(recipe).execute(), workload_for(recipe), size)
    calls.begin(poisoned=True)
    for _ in range(10):
        start = time.perf_counter()
        calls.wait(calls.call())
        wall = time.perf_counter() - start
    device = Cuda()
    mine = found[case] = {WAYS[0]: statistics.median(device.device_times(calls.call, wall))}
    others = ways.others(device, recipe.framework, calls.call, wall)
    mine |= {way: each.seconds for way, each in others.items()}
    state.set_stream(device.stream)
    state.exec(lambda launch: calls.call(), batched=True)
    calls.verify_all()


def main():
    bench.register(work).add_string_axis("case", list(CASES))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "results.json")
        bench.run_all_benchmarks([sys.argv[0], "--devices", "0", "--json", str(path)])
        (benchmark,) = json.loads(path.read_text())["benchmarks"]
    for state in benchmark["states"]:
        (case,) = (axis["value"] for axis in state["axis_values"])
        values = {each["tag"]: each["data"][0]["value"] for each in state.get("summaries") or ()}
        found.setdefault(case, {}).update({way: float(values[tag]) for way, tag in TAGS.items() if tag in values})
        if state["is_skipped"]:
            print(f"{case}: cuda-bench has none: {state['skip_reason']}")
    print(f"{'in µs':<44}", *(f"{way:>{len(way) + 2}}" for way in WAYS))
    for case, times in found.items():
        cells = (f"{1e6 * times[way]:,.2f}" if way in times else "–" for way in WAYS)
        print(f"{case:<44}", *(f"{cell:>{len(way) + 2}}" for way, cell in zip(WAYS, cells, strict=True)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
