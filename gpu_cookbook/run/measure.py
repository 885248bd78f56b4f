"""Measures the metrics of one result in this process, in seconds and bytes; docs/how-we-measure.md defines them."""

import itertools
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from types import ModuleType
from typing import Any, Self

import numpy as np

from gpu_cookbook import machine, units
from gpu_cookbook.results import FirstResult, Metric, Result, Size, Status, Timing
from gpu_cookbook.run import answers, load, memory, ways
from gpu_cookbook.run.contract import for_out, repeats, round_trip, steps, takes_out, writes_into
from gpu_cookbook.run.device import Cuda, Device, Host, Unmeasurable
from gpu_cookbook.run.expected import Expected
from gpu_cookbook.run.loader import Loader
from gpu_cookbook.run.precision import error

# Of the definition of the metrics. Stored results of an older version are shown as stale.
VERSION = "2"
VERSIONS = ("1", VERSION)
BUDGET = 0.3  # seconds of calls per metric
MOST_SAMPLES = 10_000  # an increment stays exact for 65,535 calls
SAMPLES = 10  # the least number of samples, unless they take more than four budgets (then 3 are enough) or ten (then 1)
# The calls take so many sets of arguments in turn, and one call in EVERY is checked. Arrays that are LARGE together, in
# bytes, have one set: no cache keeps what the call before has left of them.
SETS, EVERY, LARGE = 3, 16, 2**28
# A check begins only while checks have taken at most this part of the time since the metric has begun. Where they take
# longer than the calls between them, the metric takes 1.5 times as long as its calls.
CHECKING = 1 / 3
# In seconds. Without an upload, a first call that takes longer is the only sample: the check has compiled everything.
COLD_LIMIT = 5
# A fraction of the device time: a synchronised call cannot take less, apart from the spread of the clocks.
SIGNIFICANCE = 0.8
# How often both are measured again before a call that takes less is refused: a busy CPU may have delayed one.
AGAIN = 2
TAKES = 2  # of a metric that something else disturbs
PAGEABLE, PINNED = "pageable", "pinned"  # kinds of host arrays
clock = time.perf_counter


class Wrong(Exception):
    """An answer that differs from the reference; the message says where."""


def sample(timed: Callable[..., float], between: Callable[[], tuple[Any, ...]] = tuple) -> list[float]:
    """The seconds of calls, until there are enough of them. ``timed`` makes a call and returns how long it took;
    ``between`` is called before each, and returns its arguments."""
    times: list[float] = []
    spent = 0.0
    while not (
        len(times) >= MOST_SAMPLES
        or (spent >= BUDGET and len(times) >= SAMPLES)
        or (spent >= 4 * BUDGET and len(times) >= 3)
        or spent >= 10 * BUDGET
    ):
        times.append(timed(*between()))
        spent += times[-1]
    return times


def clocked(call: Callable[[], Any]) -> Callable[[], float]:
    """The call for sample()."""

    def timed() -> float:
        start = clock()
        call()
        return clock() - start

    return timed


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
        return f"needs {units.memory(needed)} on the device, but only {units.memory(free)} are free"
    if workload.bytes_moved(size):
        needed *= 3  # for the recipe, for the reference, and for the copy that an engine shares between processes
    elif isinstance(device, Host):
        needed *= device.cores  # no arrays are given; this is what each core makes at a time
    free = machine.host_memory_free()
    if needed > free:
        return f"needs {units.memory(needed)} of host memory, but only {units.memory(free)} are free"
    return None


class Turn:
    """One set of arguments, what its arrays hold, and what came of it."""

    def __init__(self, number: int, arguments: tuple[Any, ...], **options: Any) -> None:
        self.number = number  # of the inputs that its arrays hold
        self.arguments, self.options = arguments, options
        self.calls = 0  # since its arrays were filled
        self.result: Any = None
        self.back: Callable[[], None] | None = None  # undoes what was changed for one call
        self.replay: Callable[[], Any]  # of prepared()


def expected_for(workload: ModuleType, size: Size, seed: int, folder: str | None = None) -> Expected:
    """The inputs of this seed with the answer, and all that is needed to compare with it. ``folder``: of answers."""
    if folder and (expected := answers.kept(folder, workload, size, seed)):
        return expected
    expected = Expected(workload, workload.inputs(size, seed))
    _ = expected.tolerance  # which is made when it is first asked for
    if folder:
        answers.keep(folder, workload, size, seed, expected)
    return expected


class Calls:
    """The timed calls of a recipe, and the checks that they did the work.

    The calls take a few sets of arguments in turn. Between two calls, outside of the clock, a set is given other values
    at the same place now and then, so that a call which remembers anything of an earlier one is found out. In between,
    one element of an array in the host's memory is another for each call, so that what was kept by its contents is of
    no use. Without arrays, each call has another seed, of which nothing can be remembered.
    """

    def __init__(self, module: ModuleType, workload: ModuleType, size: Size, folder: str | None = None) -> None:
        """``folder``: of answers."""
        self.upload, self.function, self.wait, self.download = steps(module, workload)
        self.round_trip = round_trip(module, workload)
        self.prepared, self.pinned = getattr(module, "prepared", None), getattr(module, "pinned", None)
        self.into = writes_into(module)
        self.workload, self.in_place = workload, repeats(workload)
        # More sets than one are for what a cache could keep.
        count = SETS if workload.footprint(size) <= LARGE else 1
        seeds = range(count + 1)  # one more, to fill a set with
        if workload.footprint(size) > memory.TOGETHER:
            with ThreadPoolExecutor(len(seeds)) as pool:
                self.expected = list(pool.map(lambda seed: expected_for(workload, size, seed, folder), seeds))
        else:
            self.expected = [expected_for(workload, size, seed, folder) for seed in seeds]
        self.inputs = [expected.inputs for expected in self.expected]
        self.arrays = any(isinstance(x, np.ndarray) for x in self.inputs[0])
        self.others = itertools.count(0.5)  # values that no element has
        # For copies of them, and for an array to write into, at the same place for each metric: new pages for gigabytes
        # take longer than their contents.
        self.room = [
            (
                [np.empty_like(x) if isinstance(x, np.ndarray) else x for x in inputs],
                np.empty(expected.answer.shape, np.float32),
            )
            for inputs, expected in zip(self.inputs, self.expected, strict=True)
        ]
        self.anew = None if self.arrays else (workload.inputs(size, seed) for seed in itertools.count(count + 1))
        self.turns: list[Turn] = []
        self.now: Turn  # one of them
        self.on_host = False

    def begin(self, what: str = "", only: int | None = None, host: str | None = None, poisoned: bool = False) -> None:
        """The sets of arguments for a metric, or so many ``only``. ``what``: comes before whatever is wrong with a
        result. ``host``: in host arrays of this kind, for there_and_back(); PINNED ones also have a result to write
        into. ``poisoned``: with an array to write into, if the recipe can, that is filled with NaN: what calls do not
        write stays NaN.

        Arrays on the device stay from one metric to the next, unless the work has changed them: to upload gigabytes
        takes longer than to measure what is done with them."""
        if self.turns and (host or self.on_host or self.in_place or self.anew):
            del self.now  # which has arrays, too
            self.turns = []
        if not self.turns:
            self.spare = len(self.inputs) - 1
        self.done, self.checking, self.what, self.on_host, self.refilled = 0, 0.0, what, host is not None, False
        for number in range(only or len(self.inputs) - 1):
            copies, out = self.room[number]  # upload() may not copy, and what is in a set changes
            if host == PINNED:
                assert self.pinned
                copies, out = [self.pinned(x.shape) for x in copies], self.pinned(out.shape)
            if number == len(self.turns):
                for copy, x in zip(copies, self.inputs[number], strict=True):
                    if isinstance(x, np.ndarray):
                        memory.put(copy, x)
                self.turns.append(Turn(number, tuple(copies) if host else self.upload(*copies)))
            turn = self.turns[number]
            turn.calls, turn.result = 0, None
            if host == PINNED and self.into:
                memory.put(out, np.nan)
                turn.options["out"] = out
            elif poisoned and takes_out(self.function):
                memory.put(out, np.nan)
                if "out" not in turn.options or not memory.write(turn.options["out"], out):
                    turn.options["out"] = for_out(self.upload, out)
        self.now = self.turns[0]
        undo = memory.change_one(self.now.arguments[0], 0) if host or not self.in_place else None
        self.alterable = bool(undo)
        if undo:
            undo()
        self.begun = time.perf_counter()

    def prepare(self) -> None:
        """From here on replayed() runs what prepared() returns for arguments that were filled anew."""
        assert self.prepared
        self.begin("prepared: ", poisoned=True)
        for turn in self.turns:
            turn.replay = self.prepared(*turn.arguments, **turn.options)

    def turn(self) -> tuple[Turn]:
        """The next set. One call in EVERY, at a place that changes, is checked, and the set after it is given other
        values, for as long as that takes no more than half as long as the calls."""
        before, self.done = self.now, self.done + 1
        self.now = self.turns[self.done % len(self.turns)]
        self.restore(self.now)
        start = time.perf_counter()
        due = self.due(self.done) or not self.refilled
        if due and self.now.calls and self.checking <= CHECKING * (start - self.begun):
            self.verify(before)
            self.refill()
            self.checking += time.perf_counter() - start
        if self.anew:
            self.now.arguments = next(self.anew)
        elif self.alterable and self.refilled and not self.due(self.done + 1):
            self.now.back = memory.change_one(self.now.arguments[0], next(self.others))
        self.now.result = None  # free the previous result first, so that only one of each set exists
        return (self.now,)

    def due(self, number: int) -> bool:
        """Whether to compare what the call before this one has returned: one in EVERY, not always the same one."""
        return number % EVERY == number // EVERY % EVERY

    def restore(self, turn: Turn) -> None:
        if turn.back:
            turn.back()
            turn.back = None

    def sampled(self, call: Callable[[Turn], float]) -> list[float]:
        """The seconds of calls, whose last results are then compared: in a set of which one element was another, those
        of one call more."""
        times = sample(call, self.turn)
        for turn in self.turns:
            if turn.back:
                self.restore(turn)
                turn.result = None
                call(turn)
        self.verify_all()
        return times

    def refill(self) -> None:
        """Gives the arrays of this set the values that no other set has, at the same place. Arrays that other processes
        hold stay as they are."""
        now, self.refilled = self.now, True
        if self.anew:
            now.arguments = next(self.anew)
            return
        values = self.inputs[self.spare]
        if memory.fill(now.arguments, values):
            now.number, self.spare, now.calls = self.spare, now.number, 0

    def call(self) -> Any:
        """One that is not waited for."""
        self.done += 1
        self.now = now = self.turns[self.done % len(self.turns)]
        now.result = None
        if self.anew:
            now.arguments = next(self.anew)
        now.result = result = self.function(*now.arguments, **now.options)
        now.calls += 1
        if self.in_place:
            now.arguments = (result,)
        return result

    # Each of these returns the seconds that the call took. Nothing else stands between the two looks at the clock, and
    # the result is freed after the second: tests/overhead.py measures what the harness adds all the same.

    def synchronised(self, now: Turn) -> float:
        function, wait, arguments, options = self.function, self.wait, now.arguments, now.options
        start = clock()
        result = function(*arguments, **options)
        wait(result)
        end = clock()
        now.result = result
        now.calls += 1
        if self.in_place:
            now.arguments = (result,)
        return end - start

    def replayed(self, now: Turn) -> float:
        replay, wait = now.replay, self.wait
        start = clock()
        result = replay()
        wait(result)
        end = clock()
        now.result = result
        now.calls += 1
        return end - start

    def there_and_back(self, now: Turn) -> float:
        round_trip, arguments, options = self.round_trip, now.arguments, now.options
        start = clock()
        result = round_trip(*arguments, **options)
        end = clock()
        now.result = result
        now.calls += 1
        return end - start

    def expectation(self, turn: Turn) -> Expected:
        """What the last result of a set should be."""
        if self.anew and turn.arguments != self.inputs[turn.number]:
            return Expected(self.workload, turn.arguments)
        if self.in_place and not self.on_host:
            return Expected(self.workload, self.inputs[turn.number], turn.calls)
        return self.expected[turn.number]

    def verify(self, turn: Turn) -> None:
        """Raises Wrong if the last result of a set is not what it should be."""
        expected = self.expectation(turn)
        fault = expected.disagreement(turn.result) if self.on_host else expected.fault_of(turn.result, self.download)
        if fault:
            raise Wrong(self.what + fault)

    def verify_all(self) -> None:
        for turn in self.turns:
            if turn.result is not None:
                self.verify(turn)

    def error(self) -> float | None:
        """How far the last result is from the reference: see precision.error()."""
        return error(self.expectation(self.now), lambda: self.download(self.now.result))

    def late(self, device: Device) -> bool:
        """Whether wait() returns before the device is done with a call on values that no call has seen."""

        def call() -> Any:
            self.refill()
            now = self.now
            now.calls += 1
            return self.function(*now.arguments, **now.options)

        return device.late(call, self.wait, lambda result: self.expectation(self.now).holds(result))


def measure(
    module: ModuleType,
    workload: ModuleType,
    result: Result,
    device: Device,
    memory_base: int | None,
    folder: str | None = None,
) -> Result:
    """The result with its metrics; refused if a time cannot be true. Raises Wrong, or whatever the recipe raises.

    ``memory_base``: bytes that were in use on the GPUs before; None if no GPU is involved. ``folder``: of answers.
    """
    calls = Calls(module, workload, result.size, folder)
    doubts = dict(result.doubts)

    def undisturbed(metric: Metric, take: Callable[[], Timing]) -> Timing:
        """What ``take()`` measures; it is taken again if something disturbed it, and doubtful if that does so again."""
        for _ in range(TAKES):
            with load.watched() as watched:
                taken = take()
            if not watched.seen:
                doubts.pop(metric, None)
                return taken
            doubts[metric] = watched.seen
        return taken

    with MemoryPeak(memory_base) if memory_base is not None else nullcontext() as peak, load.watched() as watched:
        calls.begin(only=1)
        start = time.perf_counter()
        calls.synchronised(calls.now)
        cold = time.perf_counter() - start
    if peak:
        result = replace(result, peak_memory=peak.bytes)
    if not calls.arrays:  # only seed 0 has a stored mean for this many samples
        calls.verify_all()
        result = replace(result, error=calls.error())
    timings = {}

    def resident() -> Timing:
        calls.begin(poisoned=True)
        calls.synchronised(calls.now)
        return Timing.of(calls.sampled(calls.synchronised))

    def own(wall: Timing) -> Timing:
        calls.begin("with the queue kept full: ", poisoned=True)
        times = device.device_times(calls.call, wall.median)
        calls.wait(calls.now.result)
        calls.verify_all()
        return Timing.of(times)

    def replayed() -> Timing:
        calls.prepare()
        calls.replayed(calls.now)
        return Timing.of(calls.sampled(calls.replayed))

    def there_and_back(host: str) -> Timing:
        calls.begin("with transfer: " if host == PAGEABLE else "with transfer, page-locked: ", host=host)
        return Timing.of(calls.sampled(calls.there_and_back))

    if cold <= COLD_LIMIT or calls.arrays:  # the first call also waits for an upload that has only been started
        timings[Metric.RESIDENT] = undisturbed(Metric.RESIDENT, resident)
    else:
        timings[Metric.RESIDENT] = Timing.of([cold])
        if watched.seen:
            doubts[Metric.RESIDENT] = watched.seen
    if calls.arrays:
        result = replace(result, error=calls.error())

    try:
        measured = undisturbed(Metric.DEVICE, lambda: own(timings[Metric.RESIDENT]))
        for _ in range(AGAIN):
            if not _too_fast(timings[Metric.RESIDENT], measured):
                break
            timings[Metric.RESIDENT] = undisturbed(Metric.RESIDENT, resident)
            measured = undisturbed(Metric.DEVICE, lambda: own(timings[Metric.RESIDENT]))
    except Unmeasurable as reason:
        result = replace(result, no_device_time=str(reason))
    else:
        wall = timings[Metric.RESIDENT]
        if not _too_fast(wall, measured):
            timings[Metric.DEVICE] = measured
        elif not calls.late(device):
            # The calls in the queue keep their results, so that each takes new memory: PyOpenCL's arrays on a CPU.
            slower = "calls in a full queue, whose results all take new memory, are slower than a synchronised one"
            result = replace(result, no_device_time=slower)
        else:
            fault = (
                f"one synchronised call takes {wall.median * 1e3:,.4g} ms, but the device's own clock says"
                f" {measured.median * 1e3:,.4g} ms: the call did not wait for the device"
            )
            return replace(result, status=Status.REFUSED, reason=fault)

    if calls.prepared:
        timings[Metric.PREPARED] = undisturbed(Metric.PREPARED, replayed)
    if isinstance(device, Cuda) and Metric.DEVICE in timings and Metric.DEVICE not in doubts:
        calls.begin(poisoned=True)
        calls.synchronised(calls.now)
        found = ways.others(device, result.framework, calls.call, timings[Metric.RESIDENT].median)
        if ambiguous := ways.disagreement(timings[Metric.DEVICE].median, found):
            doubts[Metric.DEVICE] = ambiguous
    if calls.arrays and not hasattr(workload, "GIVEN"):  # upload() would be measured, which does not only upload
        timings[Metric.TRANSFER] = undisturbed(Metric.TRANSFER, lambda: there_and_back(PAGEABLE))
    if calls.pinned and device.page_locks:
        timings[Metric.PINNED] = undisturbed(Metric.PINNED, lambda: there_and_back(PINNED))
    doubts = {metric: doubt for metric, doubt in doubts.items() if metric in (*timings, Metric.FIRST)}
    return replace(result, timings=timings, doubts=doubts)


def _too_fast(wall: Timing, own: Timing) -> bool:
    return wall.median < SIGNIFICANCE * own.median
