"""Measures one script of docs/all-reduce in this process; docs/all-reduce.md defines what is measured."""

from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any

import numpy as np

from gpu_cookbook.results import Timing
from gpu_cookbook.run import measure
from gpu_cookbook.words import reason

MOST, LEAST = 100, 3  # calls for each number of elements
BUDGET = 2.0  # seconds for all of them, and for the arrays that each needs

Outcome = tuple[int, Timing | str]  # how many elements, and the time or why there is none


def check(arrays: Iterable[np.ndarray], count: int, gpus: int, copies: bool) -> None:
    """Raises Wrong if not each GPU has the sum; with ``copies``, the array of the GPU before it. Both are whole numbers
    that float32 has exactly."""
    base, found = np.resize(np.arange(1_000, dtype=np.float32), count), 0
    total = base * gpus + sum(range(gpus))
    for gpu, array in enumerate(arrays):
        if not np.array_equal(array, base + (gpu - 1) % gpus if copies else total):
            raise measure.Wrong(f"the array of GPU {gpu} is wrong")
        found += 1
    if found != gpus:
        raise measure.Wrong(f"there are arrays on {found} GPUs, not {gpus}")


def outcomes(module: ModuleType, gpus: int, counts: Iterable[int]) -> Iterator[Outcome]:
    """The time for each number of elements, or why it could not be taken. The arrays are made anew for each call, and
    what the last call leaves in them is compared."""
    copies = hasattr(module, "copy_all")
    call: Callable[[Any], Any] = module.copy_all if copies else module.all_reduce
    with module.engine() as engine:
        for count in counts:
            state: Any = None
            times: list[float] = []
            try:
                call(module.on_gpus(engine, count))  # which starts and compiles all that is needed
                until = measure.clock() + BUDGET
                while len(times) < LEAST or (len(times) < MOST and measure.clock() < until):
                    state = None  # before there are others
                    state = module.on_gpus(engine, count)
                    start = measure.clock()
                    state = call(state)
                    times.append(measure.clock() - start)
                check(module.download(state), count, gpus, copies)
                yield count, Timing.of(times)
            except Exception as error:  # a framework may raise anything
                yield count, str(error) if isinstance(error, measure.Wrong) else reason(error)
