"""What the cores of a CPU and a GPU do together: ``python tests/at_once.py``.

Two page-locked float32 arrays on the host are multiplied into a third one. NumPy multiplies the first tenths of them on
all cores, a slice in each thread, while round_trip() of a recipe for the GPU multiplies the rest. Both use the same
memory of the host. A row is a share of the CPU: the median time until both are done, of calls whose results were right.
"""

import argparse
import itertools
import os
import statistics
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import numpy as np

from gpu_cookbook import catalogue, machine
from gpu_cookbook.run import measure
from gpu_cookbook.run.loader import Loader

TENTHS = range(11)
CORES = len(os.sched_getaffinity(0))


def times(module: ModuleType, size: int) -> Iterator[tuple[int, list[float]]]:
    """(the tenths of the elements that the CPU multiplies, the seconds of the calls)."""
    a, b, out = (module.pinned((size,)) for _ in range(3))
    rng = np.random.default_rng(0)
    for x in (a, b):
        rng.standard_normal(out=x, dtype=np.float32)
    right = a * b
    with ThreadPoolExecutor(CORES) as cores, ThreadPoolExecutor(1) as device:
        for tenths in TENTHS:
            cut = size * tenths // 10
            ends = [cut * part // CORES for part in range(CORES + 1)]
            slices = [slice(*each) for each in itertools.pairwise(ends)]

            def both(cut: int = cut, slices: list[slice] = slices) -> None:
                begun = []
                if cut < size:
                    begun.append(device.submit(module.round_trip, a[cut:], b[cut:], out=out[cut:]))
                begun += [cores.submit(np.multiply, a[each], b[each], out=out[each]) for each in slices]
                for each in begun:
                    each.result()

            out.fill(np.nan)
            both()
            np.testing.assert_array_equal(out, right)
            yield tenths, measure.sample(measure.clocked(both))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("technique", nargs="?", default="cupy_transfer_tuned", help="with pinned() and round_trip()")
    parser.add_argument("--elements", type=int, default=2**28, help="of each array (default: 2**28)")
    options = parser.parse_args()
    if options.elements < 1:
        parser.error("--elements takes 1 or more")
    try:
        (recipe,) = catalogue.choose(["multiply"], [options.technique])
    except catalogue.UnknownName as error:
        parser.error(str(error))
    if obstacle := machine.obstacle(recipe):
        parser.error(f"{options.technique}: {obstacle}")
    if not {"pinned", "round_trip"} <= recipe.functions.keys():
        parser.error(f"{options.technique} has no pinned() or no round_trip()")
    print(f"{options.elements:,} elements, {CORES} cores and {options.technique}")
    print("| CPU | median | calls |\n| ---: | ---: | ---: |")
    for tenths, seconds in times(Loader(recipe).execute(), options.elements):
        print(f"| {10 * tenths} % | {statistics.median(seconds) * 1e3:.2f} ms | {len(seconds)} |", flush=True)


if __name__ == "__main__":
    main()
