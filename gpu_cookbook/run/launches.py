"""Measures the launches of one script of docs/launches in this process; docs/launches.md defines what is measured."""

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from gpu_cookbook import machine
from gpu_cookbook.catalogue import Recipe
from gpu_cookbook.results import Timing
from gpu_cookbook.run import measure, memory
from gpu_cookbook.words import reason

RESIDENT, ISSUED, PREPARED = "resident", "issued", "prepared"  # what is timed
COUNTS = (1, 4, 16)  # arguments
BATCH = 200  # launches in a row: a queue of CUDA's has room for 1,024

Outcome = tuple[int, str, Timing | str]  # how many arguments, what was timed, and its time or why there is none


class Launches:
    """The launches of a script with as many arrays, and how often each array was added to."""

    def __init__(self, module: ModuleType, arrays: Any) -> None:
        self.module, self.arrays, self.done = module, arrays, 0
        self.resident()  # which compiles the kernel

    # Each returns the seconds between two looks at the clock; between them, only the script's functions are called.

    def resident(self) -> float:
        add_one, wait, arrays = self.module.add_one, self.module.wait, self.arrays
        start = measure.clock()
        arrays = add_one(arrays)
        wait(arrays)
        end = measure.clock()
        self.arrays, self.done = arrays, self.done + 1
        return end - start

    def issued(self) -> float:
        """Of BATCH launches."""
        add_one, arrays = self.module.add_one, self.arrays
        start = measure.clock()
        for _ in range(BATCH):
            arrays = add_one(arrays)
        end = measure.clock()
        self.module.wait(arrays)
        self.arrays, self.done = arrays, self.done + BATCH
        return end - start

    def replaying(self) -> Callable[[], float]:
        replay, wait = self.module.prepared(self.arrays), self.module.wait

        def prepared() -> float:
            start = measure.clock()
            arrays = replay()
            wait(arrays)
            end = measure.clock()
            self.arrays, self.done = arrays, self.done + 1
            return end - start

        prepared()
        return prepared

    def check(self) -> None:
        """Raises Wrong if anything but one for each launch was added to an array."""
        for number, value in enumerate(self.module.download(self.arrays), 1):
            if value != self.done:
                raise measure.Wrong(f"argument {number} holds {value} after {self.done} launches")


def device_of(recipe: Recipe, array: Any) -> str:
    """The name of the device in whose memory an array is."""
    if memory.is_opencl(array):
        name: str = array.queue.device.name
        return name.strip()
    on_gpu = memory.is_cuda(array) or recipe.runs_on == "NVIDIA GPU"
    return machine.gpus()[0].name if on_gpu else machine.processor()


def outcomes(module: ModuleType, zeros: Callable[[int], Any]) -> Iterator[Outcome]:
    """Every time, and why it could not be taken where that failed. ``zeros``: makes so many arrays of one element."""
    for count in COUNTS:
        for what in (RESIDENT, ISSUED, *[PREPARED] * hasattr(module, PREPARED)):
            try:
                launches = Launches(module, zeros(count))
                timed = launches.replaying() if what == PREPARED else getattr(launches, what)
                times = measure.sample(timed)
                launches.check()
                yield count, what, Timing.of([each / (BATCH if what == ISSUED else 1) for each in times])
            except Exception as error:  # a framework may raise anything
                yield count, what, str(error) if isinstance(error, measure.Wrong) else reason(error)
