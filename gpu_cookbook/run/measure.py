"""Measures the metrics of one result in this process, in seconds and bytes; docs/how-we-measure.md defines them."""

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from types import ModuleType
from typing import Any, Self

import numpy as np

from gpu_cookbook import machine
from gpu_cookbook.results import FirstResult, Metric, Result, Size, Status, Timing
from gpu_cookbook.run.check import Expected, repeats, round_trip, steps, takes_out
from gpu_cookbook.run.device import Device, Host, Unmeasurable
from gpu_cookbook.run.loader import Loader

VERSION = "1"  # of the definition of the metrics: stored results of another version are not compared with these
BUDGET = 0.3  # seconds of calls per metric
MOST_SAMPLES = 10_000  # an increment stays exact for 65,535 calls
SAMPLES = 10  # the least number of samples, unless they take more than four budgets (then 3 are enough) or ten (then 1)
# In seconds. Without an upload, a first call that takes longer is the only sample: the check has compiled everything.
COLD_LIMIT = 5
# A fraction of the device time: a synchronised call cannot take less, apart from the spread of the clocks.
SIGNIFICANCE = 0.8
# How often both are measured again before a call that takes less is refused: a busy CPU may have delayed one.
AGAIN = 2


class Wrong(Exception):
    """An answer that differs from the reference; the message says where."""


def sample(call: Callable[[], Any]) -> list[float]:
    """Time calls until there are enough samples; return the seconds of each."""
    times = []
    begin = time.perf_counter()
    while True:
        start = time.perf_counter()
        call()
        end = time.perf_counter()
        times.append(end - start)
        spent, count = end - begin, len(times)
        if (
            count >= MOST_SAMPLES
            or (spent >= BUDGET and count >= SAMPLES)
            or (spent >= 4 * BUDGET and count >= 3)
            or spent >= 10 * BUDGET
        ):
            return times


def device_memory_used() -> int:
    return sum(used for used, _ in machine.device_memory())


class MemoryPeak:
    """The peak NVIDIA device memory in use while this is open, minus ``base``, summed over all GPUs."""

    def __init__(self, base: int) -> None:
        self.base = base
        self.bytes = 0

    def __enter__(self) -> Self:
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()
        return self

    def _watch(self) -> None:
        while not self.stop.wait(0.002):
            self.look()

    def look(self) -> None:
        self.bytes = max(self.bytes, device_memory_used() - self.base)

    def __exit__(self, *_: object) -> None:
        self.look()
        self.stop.set()
        self.thread.join()


def first_result(loader: Loader, workload: ModuleType, engine: ExitStack) -> tuple[ModuleType, FirstResult]:
    """The recipe's module, and what a fresh process spends until its first result, at the smallest published size.

    ``engine`` keeps what the recipe starts.
    """
    inputs = workload.inputs(workload.SIZES[0])
    marks = [time.perf_counter()]

    def mark() -> None:
        marks.append(time.perf_counter())

    loader.imports()
    mark()
    module = loader.execute()
    if hasattr(module, "engine"):
        engine.enter_context(module.engine())
    upload, function, wait, download = steps(module, workload)
    arguments = upload(*inputs)
    mark()
    result = function(*arguments)
    wait(result)
    mark()
    download(result)
    mark()
    parts = [end - begin for begin, end in zip(marks, marks[1:], strict=False)]
    return module, FirstResult(marks[-1] - marks[0], *parts)


def does_not_fit(workload: ModuleType, size: Size, device: Device) -> str | None:
    """Why this size does not fit into the free memory, with the numbers, or None."""
    needed = workload.footprint(size)
    free = device.free_bytes()
    if free is not None and needed > 0.9 * free:
        return f"needs {needed / 1e9:,.1f} GB on the device, but only {free / 1e9:,.1f} GB are free"
    if workload.bytes_moved(size):
        needed *= 3  # for the recipe, for the reference, and for the copy that an engine shares between processes
    elif isinstance(device, Host):
        needed *= device.cores  # no arrays are given; this is what each core makes at a time
    free = machine.host_memory_free()
    if needed > free:
        return f"needs {needed / 1e9:,.1f} GB of host memory, but only {free / 1e9:,.1f} GB are free"
    return None


class Calls:
    """The timed calls of a recipe on one input, and the checks that they did the work."""

    def __init__(self, module: ModuleType, workload: ModuleType, size: Size) -> None:
        self.upload, self.function, self.wait, self.download = steps(module, workload)
        self.round_trip = round_trip(module, workload)
        self.prepared = getattr(module, "prepared", None)
        self.workload = workload
        self.inputs = workload.inputs(size)
        self.expected = Expected(workload, self.inputs)
        self.in_place = repeats(workload)  # looked up once, so that a timed call does nothing but the work

    arguments: tuple[Any, ...]
    result: Any
    back: Any
    replay: Callable[[], Any]

    def begin(self) -> None:
        """Upload the arguments and reset the count of calls."""
        self.arguments = ()  # freed before new ones are made
        self.result = self.back = None
        self.options: dict[str, Any] = {}
        self.calls = 0
        self.arguments = self.upload(*self.inputs)

    def poison(self) -> None:
        """If the recipe can write into an existing array, fill that array with NaN: what later calls do not write stays
        NaN."""
        if takes_out(self.function):
            self.result = None
            self.options.clear()
            # A new array each time: upload() may not copy, and then the calls write into this very array.
            (self.options["out"],) = self.upload(np.full(self.expected.answer.shape, np.nan, np.float32))

    def call(self) -> Any:
        self.result = None  # free the previous result first, so that only one exists
        self.result = result = self.function(*self.arguments, **self.options)
        self.calls += 1
        if self.in_place:
            self.arguments = (result,)
        return result

    def synchronised(self) -> None:
        self.wait(self.call())

    def prepare(self) -> None:
        """Calls prepared() with new arguments, which no call has seen; replayed() runs what it returns."""
        assert self.prepared
        self.begin()
        self.poison()
        self.replay = self.prepared(*self.arguments, **self.options)

    def replayed(self) -> None:
        self.result = result = self.replay()
        self.calls += 1
        self.wait(result)

    def verify(self, what: str = "") -> None:
        """Raises Wrong if the result is not what all calls so far should have produced."""
        expected = Expected(self.workload, self.inputs, self.calls) if self.in_place else self.expected
        fault = expected.disagreement(self.download(self.result))
        if fault:
            raise Wrong(what + fault)

    def there_and_back(self) -> None:
        self.back = None  # free the previous result first, so that only one exists
        self.back = self.round_trip(*self.inputs)

    def verify_back(self) -> None:
        fault = self.expected.disagreement(self.back)
        if fault:
            raise Wrong(f"with transfer: {fault}")


def measure(
    module: ModuleType, workload: ModuleType, result: Result, device: Device, memory_base: int | None
) -> Result:
    """The result with its metrics; refused if a time cannot be true. Raises Wrong, or whatever the recipe raises.

    ``memory_base``: bytes that were in use on the GPUs before; None if no GPU is involved.
    """
    calls = Calls(module, workload, result.size)
    with MemoryPeak(memory_base) if memory_base is not None else nullcontext() as peak:
        calls.begin()
        start = time.perf_counter()
        calls.synchronised()
        cold = time.perf_counter() - start
    if peak:
        result = replace(result, peak_memory=peak.bytes)
    uploaded = any(isinstance(x, np.ndarray) for x in calls.inputs)
    timings = {}
    if cold <= COLD_LIMIT or uploaded:  # the first call also waits for an upload that has only been started
        calls.poison()
        timings[Metric.RESIDENT] = Timing.of(sample(calls.synchronised))
    else:
        timings[Metric.RESIDENT] = Timing.of([cold])
    calls.verify()

    try:
        calls.poison()
        own = Timing.of(device.device_times(calls.call, timings[Metric.RESIDENT].median))
        for _ in range(AGAIN):
            if not _too_fast(timings[Metric.RESIDENT], own):
                break
            calls.poison()
            timings[Metric.RESIDENT] = Timing.of(sample(calls.synchronised))
            calls.verify()
            calls.poison()
            own = Timing.of(device.device_times(calls.call, timings[Metric.RESIDENT].median))
    except Unmeasurable as reason:
        result = replace(result, no_device_time=str(reason))
    else:
        calls.wait(calls.result)
        calls.verify("with the queue kept full: ")
        wall = timings[Metric.RESIDENT]
        if not _too_fast(wall, own):
            timings[Metric.DEVICE] = own
        elif not device.late(calls.call, calls.wait):
            # The calls in the queue keep their results, so that each takes new memory: PyOpenCL's arrays on a CPU.
            slower = "calls in a full queue, whose results all take new memory, are slower than a synchronised one"
            result = replace(result, no_device_time=slower)
        else:
            fault = (
                f"one synchronised call takes {wall.median * 1e3:,.4g} ms, but the device's own clock says"
                f" {own.median * 1e3:,.4g} ms: the call did not wait for the device"
            )
            return replace(result, status=Status.REFUSED, reason=fault)

    if calls.prepared:
        calls.prepare()
        calls.replayed()
        timings[Metric.PREPARED] = Timing.of(sample(calls.replayed))
        calls.verify("prepared: ")
        del calls.replay  # and what it keeps on the device

    if uploaded:
        calls.options.clear()
        calls.arguments, calls.result = (), None
        timings[Metric.TRANSFER] = Timing.of(sample(calls.there_and_back))
        calls.verify_back()
    return replace(result, timings=timings)


def _too_fast(wall: Timing, own: Timing) -> bool:
    return wall.median < SIGNIFICANCE * own.median
