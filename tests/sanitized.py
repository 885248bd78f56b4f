"""The check of one recipe in this process, as compute-sanitizer runs it: ``python sanitized.py PATH TOOL``.

All sizes and layouts, refusals and many calls in a row. Left out is what takes too long there and launches nothing new:
most of the special values, holding up the device, the distribution of random samples, and the recipe's manners; and
under racecheck, which takes minutes for the layouts of a matrix product, all but one call where the work is MUCH, and
the many calls in a row: it looks at what threads of one launch share.
"""

import os
import sys
import time
import traceback
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

from gpu_cookbook import catalogue
from gpu_cookbook.run import check, memory
from gpu_cookbook.run.loader import Loader
from gpu_cookbook.run.precision import inexact, workload_for
from gpu_cookbook.words import reason

ENDED = "The check has ended: "
RIGHT = "all right"
ABOUT_MEMORY = ("memcheck", "initcheck")
MUCH = 10_000_000  # operations


def no_pools(packages):
    """Each array is allocated by the driver: these tools know neither where one ends in a pool's memory, nor that it is
    new."""
    os.environ["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"
    if "cupy" in packages:
        import cupy

        cupy.cuda.set_allocator(None)
    if "pycuda" in packages:
        from pycuda import driver, tools

        tools.DeviceMemoryPool = lambda: SimpleNamespace(allocate=driver.mem_alloc)


def settled(read):
    """The same function, when the device has done what it was given: that an upload is under way is no fault."""

    def read_later(array):
        memory.settle([array])
        return read(array)

    return read_later


def fault_of(recipe, tool):
    """What is wrong, in one line, or None."""
    workload = workload_for(recipe)
    special = getattr(workload, "special_inputs", lambda size, seed: ())
    workload.special_inputs = lambda size, seed=0: islice(special(size, seed), seed, None, 7)
    memory.held = settled(memory.held)
    check.FEWEST = check.IN_A_ROW  # calls in check_often(), which ends after a second
    device = SimpleNamespace(late=lambda *_: False)
    start = time.monotonic()
    with ExitStack() as engine:
        module = Loader(recipe).execute()
        if hasattr(module, "engine"):
            engine.enter_context(module.engine())
        for size in workload.EDGE_SIZES:
            print(f"{workload.label(size)}, after {time.monotonic() - start:.1f} s", flush=True)
            if tool == "racecheck" and workload.operations(size) > MUCH:
                fault = check.check_call(module, workload, size)
            else:
                fault = check.check_size(module, workload, size, device) or inexact(module, workload, size)
            if fault:
                return f"{workload.label(size)}: {fault}"
        print(f"refusals and many calls, after {time.monotonic() - start:.1f} s", flush=True)
        fault = check.check_refusals(module, workload)
        return fault or (None if tool == "racecheck" else check.check_often(module, workload))


def main():
    path, tool = sys.argv[1:]
    try:
        recipe = catalogue.read(Path(path))
        if tool in ABOUT_MEMORY:
            no_pools(recipe.packages)
        fault = fault_of(recipe, tool)
    except Exception as error:  # whatever a recipe raises once the tool has ended its context
        traceback.print_exc()
        fault = reason(error)
    print(f"{ENDED}{fault or RIGHT}", flush=True)
    return 1 if fault else 0


if __name__ == "__main__":  # processes that a recipe starts may import this
    sys.exit(main())
