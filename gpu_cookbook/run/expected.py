"""What a recipe must answer, by the reference of its workload, and how what it answers is compared with that."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from types import ModuleType
from typing import Any, Self

import numpy as np

from gpu_cookbook.run import memory
from gpu_cookbook.run.contract import repeats

LARGE = 2**20  # elements: arrays of fewer are compared on one core
PART = 2**16  # elements of a large array whose difference is looked at together: it stays in a core's cache
OVERFLOWING = 2.0**-20  # relative: where a tolerance is infinite, a result must be this near, or infinite


def flushed(values: Any) -> Any:
    """Denormals as zeros of the same sign."""
    small = np.abs(values) < np.finfo(np.asarray(values).dtype).tiny
    return np.where(small, np.copysign(np.zeros_like(values), values), values)


class Expected:
    """The reference answer, with which results are compared. ``calls``: how often work in place was repeated."""

    def __init__(self, workload: ModuleType, inputs: Sequence[Any], calls: int = 1, flush: bool = False) -> None:
        """``flush``: denormals may be taken for zero, in the inputs and in the answer."""
        self.workload, self.inputs = workload, inputs
        options = {"calls": calls} if repeats(workload) else {}
        self.answer = np.asarray(workload.reference(*inputs, **options))
        self.flushed = flushed(workload.reference(*map(flushed, inputs), **options)) if flush else self.answer

    @classmethod
    def known(cls, workload: ModuleType, inputs: Sequence[Any], answer: np.ndarray, tolerance: Any) -> Self:
        """The same of inputs whose answer and tolerance are known already."""
        expected = cls.__new__(cls)
        expected.workload, expected.inputs = workload, inputs
        expected.answer = expected.flushed = answer
        expected.tolerance = tolerance
        return expected

    @cached_property
    def tolerance(self) -> Any:
        return self.workload.tolerance(self.answer, *self.inputs)

    @cached_property
    def exact(self) -> bool:
        """Whether there is only one right answer, down to the sign of a zero."""
        return isinstance(self.tolerance, int) and self.tolerance == 0

    @cached_property
    def has_zero(self) -> bool:
        return bool((self.answer == 0).any())

    def held(self, result: Any) -> np.ndarray | None:
        """What the memory of a result holds, in the shape of the answer; None if that cannot be seen. Deferred if there
        is no result yet."""
        held = memory.read(result, len(self.answer) if self.answer.ndim == 2 else 1)
        if held is not None and held.dtype.kind in "iu" and not self.answer.ndim and np.isfinite(self.answer):
            raise memory.Deferred("the result holds whole numbers, and no sum or mean: work is left to download()")
        given = sum(x.size for x in self.inputs if isinstance(x, np.ndarray))
        if held is None or (held.ndim and not self.answer.ndim and (held.size < 64 or held.size < given / 1_000)):
            return None  # a number in a few parts, one for each worker, is assembled by download()
        if held.size != self.answer.size:
            raise memory.Deferred(f"the result holds {held.size:,} numbers instead of {self.answer.size:,}")
        return held.reshape(self.answer.shape)

    def fault_of(self, result: Any, download: Callable[[Any], Any]) -> str | None:
        """What is wrong, in one line, with a result that was waited for, or None: with what its memory holds, and with
        what download() makes of it."""
        try:
            held = self.held(result)
        except memory.Deferred as fault:
            return str(fault)
        fault_of_memory = None if held is None else self.disagreement(held)
        return fault_of_memory or self.disagreement(download(result))

    def holds(self, result: Any) -> bool:
        """Whether the memory of a result holds the answer at this moment; True if it cannot be seen."""
        try:
            held = self.held(result)
        except memory.Deferred:
            return False
        return held is None or self.disagreement(held) is None

    def disagreement(self, result: Any) -> str | None:
        """What is wrong with a result on the host, in one line, or None."""
        if not memory.is_on_host(result):
            return f"{memory.kind_of(result)} is not a NumPy array or a number: its values may not be computed yet"
        result, expected = np.asarray(result), self.answer
        if result.shape != expected.shape:
            return f"the result's shape is {result.shape} instead of {expected.shape}"
        dtype = next((x.dtype for x in reversed(self.inputs) if isinstance(x, np.ndarray)), np.float64)
        if result.dtype != dtype:
            return f"the result's dtype is {result.dtype} instead of {dtype}"
        if equal(result, expected) and not (self.exact and self.has_zero):
            return None
        wrong = self._wrong(result)
        if not wrong.any():
            return None
        if result.ndim == 0:
            return f"{result} instead of {expected}"
        at = tuple(int(i) for i in np.unravel_index(np.argmax(wrong), wrong.shape))
        return (
            f"{np.count_nonzero(wrong):,} of {wrong.size:,} elements are wrong, the first at {list(at)}:"
            f" {result[at]} instead of {expected[at]}"
        )

    def _wrong(self, result: np.ndarray) -> np.ndarray:
        """Which elements of a result differ from the answer by more than they may."""
        tolerance = np.broadcast_to(self.tolerance, result.shape)

        def of(part: Any) -> np.ndarray:
            given, expected = result[part], self.answer[part]
            with np.errstate(invalid="ignore"):
                error, allowed = np.abs(given - expected), tolerance[part]
                overflowed = np.isinf(given) & (np.signbit(given) == np.signbit(expected))
                near = (error <= allowed) & np.isfinite(expected)
                near &= np.isfinite(allowed) | overflowed | (error <= OVERFLOWING * np.abs(expected))
                wrong = (given != expected) & ~near
                wrong &= given != expected.astype(result.dtype)  # beyond the largest number there is only infinity
            wrong &= ~(np.isnan(given) & np.isnan(expected))
            if self.exact:
                wrong |= (given == 0) & (np.signbit(given) != np.signbit(expected)) & ~np.isnan(expected)
            if self.flushed is not self.answer:
                flushed = self.flushed[part]
                same = (given == flushed) & (np.signbit(given) == np.signbit(flushed))
                wrong &= ~(same | (np.isnan(given) & np.isnan(flushed)))
            return wrong

        if result.size < LARGE:
            return of(...)
        step = max(1, PART * len(result) // result.size)
        parts = [slice(start, start + step) for start in range(0, len(result), step)]
        with ThreadPoolExecutor() as pool:
            return np.concatenate(list(pool.map(of, parts)))


def equal(a: np.ndarray, b: np.ndarray) -> bool:
    """np.array_equal on all cores: for 2**28 elements a single core takes half a second, and compare calls it four
    times."""
    if a.size < LARGE or not (a.flags.c_contiguous and b.flags.c_contiguous):
        return np.array_equal(a, b)
    a, b = a.reshape(-1), b.reshape(-1)
    parts = [slice(start, start + LARGE) for start in range(0, a.size, LARGE)]
    with ThreadPoolExecutor() as pool:
        return all(pool.map(lambda part: np.array_equal(a[part], b[part]), parts))
