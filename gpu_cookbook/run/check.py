"""Checks a recipe in this process: every layout and special value, at the sizes where kernels go wrong."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from types import ModuleType
from typing import Any

import numpy as np

from gpu_cookbook.results import Size
from gpu_cookbook.run.device import Device

# The value before and after a slice that is written to; NaN would hide an addition or a multiplication there.
NEIGHBOUR = -7


def steps(module: ModuleType, workload: ModuleType) -> tuple[Callable, Callable, Callable, Callable]:
    """(upload, function, wait, download) of a recipe. random_subset_mean has no arrays to upload."""
    return (
        getattr(module, "upload", lambda *arguments: arguments),
        getattr(module, workload.__name__.rpartition(".")[2]),
        module.wait,
        module.download,
    )


def round_trip(module: ModuleType, workload: ModuleType) -> Callable:
    """Host arrays in, host result out: the recipe's own round_trip if it has one, otherwise its steps."""
    upload, function, _, download = steps(module, workload)
    return getattr(module, "round_trip", lambda *inputs: download(function(*upload(*inputs))))


def takes_out(function: Callable) -> bool:
    return "out" in inspect.signature(function).parameters


def repeats(workload: ModuleType) -> bool:
    """Whether the work changes its input, so that the answer depends on how often it was done."""
    return "calls" in inspect.signature(workload.reference).parameters


class Expected:
    """The reference answer, with which results are compared. ``calls``: how often work in place was repeated."""

    def __init__(self, workload: ModuleType, inputs: Sequence[Any], calls: int = 1) -> None:
        self.workload, self.inputs = workload, inputs
        options = {"calls": calls} if repeats(workload) else {}
        self.answer = np.asarray(workload.reference(*inputs, **options))

    @cached_property
    def tolerance(self) -> Any:
        return self.workload.tolerance(self.answer, *self.inputs)

    def disagreement(self, result: Any) -> str | None:
        """What is wrong with a result, in one line, or None."""
        result, expected = np.asarray(result), self.answer
        if result.shape != expected.shape:
            return f"the result's shape is {result.shape} instead of {expected.shape}"
        dtype = next((x.dtype for x in self.inputs if isinstance(x, np.ndarray)), np.float64)
        if result.dtype != dtype:
            return f"the result's dtype is {result.dtype} instead of {dtype}"
        if _equal(result, expected):
            return None
        wrong = result != expected
        with np.errstate(invalid="ignore"):
            wrong &= ~(np.abs(result - expected) <= self.tolerance)
        wrong &= ~(np.isnan(result) & np.isnan(expected))
        if not wrong.any():
            return None
        if result.ndim == 0:
            return f"{result} instead of {expected}"
        at = tuple(int(i) for i in np.unravel_index(np.argmax(wrong), wrong.shape))
        return (
            f"{np.count_nonzero(wrong):,} of {wrong.size:,} elements are wrong, the first at {list(at)}:"
            f" {result[at]} instead of {expected[at]}"
        )


def _equal(a: np.ndarray, b: np.ndarray) -> bool:
    """np.array_equal on all cores: for 2**28 elements a single core takes half a second, and compare calls it four
    times."""
    if a.size < 2**20 or not (a.flags.c_contiguous and b.flags.c_contiguous):
        return np.array_equal(a, b)
    a, b = a.reshape(-1), b.reshape(-1)
    parts = [slice(start, start + 2**20) for start in range(0, a.size, 2**20)]
    with ThreadPoolExecutor() as pool:
        return all(pool.map(lambda part: np.array_equal(a[part], b[part]), parts))


def variants(inputs: Sequence[Any]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """(description, inputs): the same values in other memory layouts, and arrays with special values."""
    yield "", tuple(inputs)
    arrays = [x for x in inputs if isinstance(x, np.ndarray)]
    if not arrays:
        return
    yield "negative strides: ", tuple(np.flip(x) for x in inputs)
    yield "every other element of a larger array: ", tuple(np.repeat(x, 2, axis=-1)[..., ::2] for x in inputs)
    if arrays[0].ndim == 2:
        yield "Fortran order: ", tuple(np.asfortranarray(x) for x in inputs)
    elif arrays[0].size % 2 == 0:
        yield "two-dimensional, Fortran order: ", tuple(np.asfortranarray(x.reshape(2, -1)) for x in inputs)
    fixed = tuple(x.copy() for x in inputs)
    for x in fixed:
        x.flags.writeable = False
    yield "read-only: ", fixed
    if all(x.size for x in arrays):
        for value in (np.nan, np.inf):
            special = tuple(x.copy() for x in inputs)
            special[0].flat[0] = special[0].flat[-1] = value
            yield f"{value} in the input: ", special


def check_size(
    module: ModuleType, workload: ModuleType, size: Size, device: Device, layouts: bool = True
) -> str | None:
    """What is wrong with the recipe at this size, in one line, or None. ``device``: see gpu_cookbook.run.device.

    ``layouts``: also check the layouts and special values that upload() and the kernel must accept. This takes most of
    the time.
    """
    upload, function, wait, download = steps(module, workload)

    def answer(inputs: Sequence[Any], **options: Any) -> Any:
        result = function(*upload(*inputs), **options)
        wait(result)
        return download(result)

    ways: dict[str, Callable[[Sequence[Any]], Any]] = {"": answer}
    if hasattr(module, "round_trip"):
        ways["round_trip: "] = lambda inputs: module.round_trip(*inputs)
    kept = []  # each result of round_trip, and a copy of it
    for seed in (1, 2):  # two inputs, so that a result kept from the first call is caught at the second
        plain = workload.inputs(size, seed)
        for description, inputs in variants(plain) if layouts else [("", plain)]:
            before = [np.array(x) if isinstance(x, np.ndarray) else x for x in inputs]
            with np.errstate(all="ignore"):  # infinity times zero is intended
                expected = Expected(workload, before)
                for way, compute in ways.items():
                    result = compute(inputs)
                    fault = expected.disagreement(result)
                    if fault:
                        return way + description + fault
                    if not all(np.array_equal(x, y, equal_nan=True) for x, y in zip(inputs, before, strict=True)):
                        return f"{way}{description}the caller's own array was changed"
                    if way:
                        kept.append((result, np.array(result)))
    if not all(np.array_equal(result, copy, equal_nan=True) for result, copy in kept):
        return "round_trip: a later call changes the result of an earlier one"
    inputs = workload.inputs(size)
    if takes_out(function):
        expected = Expected(workload, inputs)
        (out,) = upload(np.full(expected.answer.shape, np.nan, np.float32))
        fault = expected.disagreement(answer(inputs, out=out))
        if fault:
            return f"out=: {fault}"
    if hasattr(module, "prepared"):
        fault = check_prepared(module, workload, inputs, device)
        if fault:
            return f"prepared: {fault}"
    if layouts:
        fault = check_slices(module, workload, inputs)
        if fault:
            return fault
    if not any(isinstance(x, np.ndarray) for x in inputs):
        return _seeds(workload, size, answer)
    # Uploaded beforehand: a copy from the host would wait for the device and hide that wait() returns too early.
    arguments = upload(*inputs)
    if device.late(lambda: function(*arguments), wait):
        return "wait() returns before the device is done"
    return None


def check_prepared(module: ModuleType, workload: ModuleType, inputs: Sequence[Any], device: Device) -> str | None:
    """What is wrong with what prepared() returns, in one line, or None. That is called three times, so what it
    does in place must have been done three times, and never by prepared() itself."""
    upload, _, wait, download = steps(module, workload)
    arguments, options = upload(*inputs), dict[str, Any]()
    if takes_out(module.prepared):
        (options["out"],) = upload(np.full(Expected(workload, inputs).answer.shape, np.nan, np.float32))
    replay = module.prepared(*arguments, **options)
    for calls in (1, 2, 3):
        result = replay()
        wait(result)
        expected = Expected(workload, inputs, calls if repeats(workload) else 1)
        fault = expected.disagreement(download(result))
        if fault:
            return f"call {calls}: {fault}"
    return "wait() returns before the device is done" if device.late(replay, wait) else None


def check_slices(module: ModuleType, workload: ModuleType, inputs: Sequence[Any]) -> str | None:
    """What is wrong with slices of device arrays, in one line, or None. Vector loads need an address that is a multiple
    of 16 bytes, and a slice starts elsewhere; the elements before and after it are not the recipe's. A matrix is a
    reshaped slice, because one that starts at another row is aligned again if its rows are a multiple of 16 bytes long.

    First all arrays are slices, then each alone, including ``out`` if there is one. A ValueError is accepted as well.
    """
    upload, function, wait, download = steps(module, workload)
    expected = Expected(workload, inputs)
    count = len(inputs)
    hosts: dict[int | str, Any] = dict(enumerate(inputs))
    if takes_out(function):
        hosts["out"] = np.full(expected.answer.shape, np.nan, np.float32)
    if not all(hasattr(x, "__getitem__") for x in upload(*inputs)):  # a number, or a handle to data in other processes
        return None

    def written(name: int | str) -> bool:
        return name == "out" or repeats(workload)

    def fault_of(names: Sequence[int | str]) -> str | None:
        padded = {
            n: np.pad(x.reshape(-1), 1, constant_values=NEIGHBOUR if written(n) else np.nan) if n in names else x
            for n, x in hosts.items()
        }
        whole: dict[int | str, Any] = dict(enumerate(upload(*(padded[i] for i in range(count)))))
        if "out" in names:
            (whole["out"],) = upload(padded["out"])
        given = {n: x[1:-1].reshape(hosts[n].shape) if n in names else x for n, x in whole.items()}
        options = {"out": given["out"]} if "out" in names else {}
        try:
            result = function(*(given[i] for i in range(count)), **options)
        except ValueError:
            return None  # refused
        wait(result)
        fault = expected.disagreement(download(result))
        for n in filter(written, names):
            after = download(whole[n])
            if not (after[[0, -1]] == NEIGHBOUR).all():
                return "the elements before or after it were overwritten"
            if n == "out":
                fault = fault or expected.disagreement(after[1:-1].reshape(hosts[n].shape))
        return fault

    for names in dict.fromkeys([tuple(hosts), *((name,) for name in hosts)]):
        try:
            fault = fault_of(names)
        except Exception as error:  # a recipe may raise anything
            fault = reason(error)
        if fault:
            return f"a slice of a device array{' as out=' if names == ('out',) else ''}: {fault}"
    return None


def reason(error: BaseException) -> str:
    """An exception as one line of a table."""
    lines = "".join(c if c.isprintable() or c == "\n" else " " for c in str(error)).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:300].strip()}" if lines else type(error).__name__


def _seeds(workload: ModuleType, size: Size, answer: Callable[[Sequence[Any]], Any]) -> str | None:
    once, again, other = (answer(workload.inputs(size, seed)) for seed in (3, 3, 4))
    if not np.array_equal(once, again, equal_nan=True):
        return f"seed 3 gave {once!r} the first time and {again!r} the second"
    if once == other:
        return f"seeds 3 and 4 both gave {once!r}"
    return None


def check_refusals(module: ModuleType, workload: ModuleType) -> str | None:
    """Which bad input the recipe accepts without a ValueError that names it, in one line, or None."""
    upload, function, wait, download = steps(module, workload)

    def work(*arguments: Any, **options: Any) -> None:
        result = function(*arguments, **options)
        wait(result)
        download(result)

    def upload_and_work(inputs: Sequence[Any]) -> None:
        work(*upload(*inputs))

    def prepare(inputs: Sequence[Any]) -> None:
        module.prepared(*upload(*inputs))

    def refusal(what: str, names: Sequence[str], call: Callable[[], Any]) -> str | None:
        try:
            call()
        except ValueError as error:
            unnamed = [name for name in names if name not in str(error)]
            return f"{what}: the ValueError does not name {unnamed[0]}: {error}" if unnamed else None
        return f"{what}: no ValueError"

    faults = []
    for inputs in workload.wrong_inputs():
        shapes = [str(x.shape) for x in inputs]
        what = f"shapes {' and '.join(shapes)}"
        faults.append(refusal(what, shapes, partial(upload_and_work, inputs)))
        if hasattr(module, "round_trip"):
            faults.append(refusal(f"round_trip: {what}", shapes, partial(module.round_trip, *inputs)))
        if hasattr(module, "prepared"):
            faults.append(refusal(f"prepared: {what}", shapes, partial(prepare, inputs)))
    inputs = workload.inputs(workload.EDGE_SIZES[-1])
    if any(isinstance(x, np.ndarray) for x in inputs):
        right = upload(*inputs)
        other = in_another_dtype(right[0])
        if other is not None:
            dtype = str(other.dtype).removeprefix("torch.")
            faults.append(refusal(f"{dtype} passed to the function itself", [dtype], lambda: work(other, *right[1:])))
        if takes_out(function):
            (out,) = upload(np.zeros((5, 7), np.float32))
            faults.append(refusal("out= of shape (5, 7)", ["(5, 7)"], lambda: work(*right, out=out)))
    return next(filter(None, faults), None)


def in_another_dtype(array: Any) -> Any:
    """The same array on the same device in a dtype that no recipe accepts, made by its own framework; None for a handle
    that hides its dtype, as engines with several processes use."""
    kind = type(array).__module__.partition(".")[0]
    if kind == "torch":
        return array.half()
    if kind == "numba":
        from numba import cuda

        return cuda.to_device(np.zeros(array.shape, np.float16))
    if hasattr(array, "astype"):
        # PyCUDA and PyOpenCL convert with a kernel that they compile, and that does not support float16.
        return array.astype(np.int32 if kind in ("pycuda", "pyopencl") else np.float16)
    return None
