"""Checks a recipe that two threads call at once: what their calls share by mistake."""

import contextlib
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from types import FrameType, ModuleType
from typing import Any

import numpy as np

from gpu_cookbook.results import Size
from gpu_cookbook.run.contract import by_steps, for_out, round_trip, steps, takes_out, writes_into
from gpu_cookbook.run.device import Device, Host
from gpu_cookbook.run.expected import Expected
from gpu_cookbook.run.loader import executed_anew
from gpu_cookbook.scaling import SAME
from gpu_cookbook.words import reason

CALLS_BETWEEN = 4  # of another thread, while one is stopped
STEPS = 20_000  # bytecode instructions of a recipe before which a thread may be stopped
PLACES, FEWEST_PLACES = 256, 16  # instructions before which one is stopped: at most, and at least
AT_PLACES = 0.3  # seconds after which the fewest are enough
AT_OTHERS, AT_FIRST = 0.1, 0.1  # the same, of other ways than the plain one, and of first calls
FEWEST_FIRST = 64  # the same as FEWEST_PLACES, of first calls, whose places are more than those of other calls
QUICK = 0.03  # seconds of a processor: a first call that takes longer has compiled something
AT_A_LOCK = 0.05  # seconds after which a stopped thread is taken to hold what the other waits for
TURNS = re.compile(r"\bthreads\s+must\s+take\s+turns\b")  # in the docstring of a recipe that not every thread may call


def check_threads(module: ModuleType, workload: ModuleType, device: Device, first: float = np.inf) -> str | None:
    """What is wrong, in one line, with calls from two threads at once, or None. Only on the CPU: in PyCUDA, the steps
    need the context, which a thread has only if its code makes it current. ``first``: the seconds of a processor that
    the recipe's first call took; if it compiled something, first calls are not tried."""
    if not isinstance(device, Host) or TURNS.search(module.__doc__ or ""):
        return None
    way, (*_, other, last), few = by_steps(module, workload), workload.EDGE_SIZES, _few(workload)
    for size, another in ((last, other), (few, last)):
        if fault := fault_of_threads(module, workload, way, size, another):
            return fault
    if hasattr(module, "engine"):  # whose calls are slow
        return None
    others = _other_ways(module, workload)
    for name, each in others.items():
        if fault := fault_of_threads(module, workload, each, few, seconds=AT_OTHERS / len(others)):
            return f"{name}: {fault}"
    return _fault_of_first_calls(module, workload, few) if first < QUICK else None


def _other_ways(module: ModuleType, workload: ModuleType) -> dict[str, Callable]:
    """From host arrays to a host result, into an array that exists, by round_trip() and by prepared(), if the recipe
    has them."""
    upload, function, wait, download = steps(module, workload)

    def room(inputs: Sequence[np.ndarray]) -> np.ndarray:
        return np.full(np.shape(workload.reference(*inputs)), np.nan, np.float32)

    def into(*inputs: np.ndarray) -> Any:
        result = function(*upload(*inputs), out=for_out(upload, room(inputs)))
        wait(result)
        return download(result)

    def replayed(*inputs: np.ndarray) -> Any:
        result = module.prepared(*upload(*inputs))()
        wait(result)
        return download(result)

    way = round_trip(module, workload)
    ways: dict[str, tuple[bool, Callable]] = {
        "out=": (takes_out(function), into),
        "prepared": (hasattr(module, "prepared"), replayed),
        "round_trip": (hasattr(module, "round_trip"), way),
        "with transfer, into an array": (writes_into(module), lambda *inputs: way(*inputs, out=room(inputs))),
    }
    return {name: each for name, (there, each) in ways.items() if there}


def _fault_of_first_calls(module: ModuleType, workload: ModuleType, size: Size) -> str | None:
    """What is wrong, in one line, if the first call of all is stopped before an instruction of the recipe's own code
    while another thread makes a whole call, or None: what the first call sets up may be there by half. Each time the
    recipe's file is executed anew."""
    mine, other = (Expected(workload, workload.inputs(size, seed)) for seed in (63, 64))

    def fault_at(new: ModuleType, place: int) -> tuple[str | None, int]:
        """And how many instructions there were."""
        way, passed = by_steps(new, workload), 0
        between: list[Future[str | None]] = []

        def fault_of_call(expected: Expected) -> str | None:
            return expected.disagreement(way(*expected.inputs))

        def at_each() -> None:
            nonlocal passed
            if passed == place:
                between.append(pool.submit(fault_of_call, other))
                wait_for(between, AT_A_LOCK)
            passed += 1

        with stops(new, at_each):
            fault = fault_of_call(mine)
        return next(filter(None, [fault, *(call.result() for call in between)]), None), passed

    with ThreadPoolExecutor(1) as pool:
        try:
            begun = time.process_time()
            with executed_anew(module) as new:
                fault, count = fault_at(new, -1)
            if time.process_time() - begun > QUICK:  # the file itself compiles, or does other long work
                count = 0
            end = time.monotonic() + AT_FIRST
            for number, place in enumerate(spread(count)):
                if fault or (number >= FEWEST_FIRST and time.monotonic() > end):
                    break
                with executed_anew(module) as new:
                    fault, _ = fault_at(new, place)
        except Exception as error:  # a recipe may raise anything
            fault = reason(error)
    return fault and f"from two threads at once, at the first call: {fault}"


def _few(workload: ModuleType) -> Size:
    """The first edge size of which each array has several elements: a recipe may treat few in a way of their own."""
    for size in workload.EDGE_SIZES:
        sizes = [x.size for x in workload.inputs(size) if isinstance(x, np.ndarray)]
        if sizes and min(sizes) > 1:
            return size
    return workload.EDGE_SIZES[-2]


def expected_of(workload: ModuleType, way: Callable, size: Size, seed: int) -> Expected:
    """The answer to the inputs of this seed. Where there are no arrays, of which a seed has only one: the recipe's own,
    called alone."""
    inputs = workload.inputs(size, seed)
    if isinstance(inputs[0], np.ndarray):
        return Expected(workload, inputs)
    answer = np.asarray(way(*inputs))
    return Expected.known(workload, inputs, answer, SAME * np.abs(answer))


def fault_of_threads(
    module: ModuleType,
    workload: ModuleType,
    way: Callable,
    size: Size,
    other: Size | None = None,
    seconds: float = AT_PLACES,
) -> str | None:
    """What is wrong, in one line, with a way from host arrays to a host result that two threads take at once, each with
    inputs of its own, or None. First both run freely. Then one is stopped before an instruction of the recipe's own
    code, while the other makes whole calls, the last of them of the ``other`` size: so what they share is found on any
    machine, however busy."""
    others = [expected_of(workload, way, size, seed) for seed in range(63, 63 + CALLS_BETWEEN)]
    mine = others[0]  # the other thread reads the same arrays, and others later
    others += [expected_of(workload, way, other, 63)] if other is not None else []

    def fault_of_calls(those: Sequence[Expected]) -> str | None:
        return next(filter(None, (each.disagreement(way(*each.inputs)) for each in those)), None)

    def fault_at(place: int) -> str | None:
        """With one thread stopped before the instruction of this number."""
        passed = 0
        between: list[Future[str | None]] = []

        def at_each() -> None:
            nonlocal passed
            if passed == place:
                between.append(pool.submit(fault_of_calls, others))
                wait_for(between, AT_A_LOCK)  # which this thread may hold
            passed += 1

        with stops(module, at_each):
            fault = fault_of_calls([mine])
        return next(filter(None, [fault, *(call.result() for call in between)]), None)

    def faults() -> Iterator[str | None]:
        yield from [call.result() for call in [pool.submit(fault_of_calls, [each] * 3) for each in others[:2]]]
        steps: list[None] = []
        with stops(module, lambda: steps.append(None)):
            yield fault_of_calls([mine])
        end = time.monotonic() + seconds
        for number, place in enumerate(spread(len(steps))):
            if number >= FEWEST_PLACES and time.monotonic() > end:
                break
            yield fault_at(place)

    with ThreadPoolExecutor(2) as pool:
        try:
            fault = next(filter(None, faults()), None)
        except Exception as error:  # a recipe may raise anything
            fault = reason(error)
    return fault and f"from two threads at once: {fault}"


@contextlib.contextmanager
def stops(module: ModuleType, then: Callable[[], None]) -> Iterator[None]:
    """Calls ``then`` before each of the first STEPS bytecode instructions that this thread runs of the recipe's own
    code."""
    left = STEPS

    def trace(frame: FrameType, event: str, _: object) -> Callable | None:
        nonlocal left
        if frame.f_code.co_filename != module.__file__ or not left:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            then()
        return trace

    before = sys.gettrace()
    sys._getframe().f_trace_opcodes = True  # without it, Python 3.12 reports lines only
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


Part = tuple[str, int, int]  # of a recipe: a function, a line, and an instruction in that function


def parts_of(module: ModuleType, call: Callable[[], object]) -> set[Part]:
    """What this thread runs of the recipe's own code in a call."""
    found: set[Part] = set()

    def trace(frame: FrameType, event: str, _: object) -> Callable | None:
        if frame.f_code.co_filename != module.__file__:
            return None
        frame.f_trace_opcodes = True  # one line may have several ways
        found.add((frame.f_code.co_name, frame.f_lineno, frame.f_lasti))
        return trace

    before = sys.gettrace()
    sys._getframe().f_trace_opcodes = True  # without it, Python 3.12 reports lines only
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return found


def spread(count: int) -> list[int]:
    """Up to PLACES of the numbers below ``count``, those that are far from each other first: the first and the last of
    them, and some in between."""
    part = PLACES // 3
    between = (count * i // part for i in range(part))
    chosen = {*range(part), *range(count - part, count), *between} if count > PLACES else set(range(count))
    return [number for start in range(16) for number in sorted(chosen)[start::16]]
