"""Checks what a recipe does from host array to host array: wherever these lie, in whatever layout, into arrays that
exist, and in pieces."""

import gc
import itertools
from collections.abc import Iterator
from types import ModuleType
from typing import NamedTuple

import numpy as np

from gpu_cookbook.results import Size
from gpu_cookbook.run.check import SENTINEL, fault_of_layouts, of_other_shapes, unaligned
from gpu_cookbook.run.contract import round_trip, writes_into
from gpu_cookbook.run.device import Cuda, Device
from gpu_cookbook.run.expected import Expected, equal
from gpu_cookbook.run.threads import fault_of_threads
from gpu_cookbook.words import reason

PAGE_LOCKED = 1  # CU_MEMORYTYPE_HOST
PAGE = 4_096  # bytes
ASKED = 1_000  # places of an array, about, at which CUDA is asked whether its memory is page-locked
# Elements of a larger array on both sides of a part. They are 4,012 or 8,024 bytes, so that the part begins at a
# multiple of 4 or 8 bytes, but not of 16, which vector loads need.
AROUND = 1_003
READ_ONLY = ("read-only", "writeable", "writable")  # one of these words tells what is wrong with such an out


def check_transfers(module: ModuleType, workload: ModuleType, size: Size, device: Device) -> str | None:
    """What is wrong, in one line, with the way from host arrays to a host result at this size, or None, if the recipe
    does anything about it. After the last edge size, others are tried at which a round_trip() of the recipe's own does
    the work in pieces; upload, work and download do it in one."""
    if not (hasattr(module, "round_trip") or hasattr(module, "pinned") or writes_into(module)):
        return None
    last, many = size == workload.EDGE_SIZES[-1], getattr(workload, "MANY_PIECES", None)
    fault = _fault_at(module, workload, size, device, last)
    if not fault and last:
        fault = _fault_of_refusals(module, workload, size)
    if fault or not last or not many or not hasattr(module, "round_trip"):
        return fault
    several = few_pieces(many)
    for at, found in (
        (several, lambda: _fault_of_layouts(module, workload, several)),
        (several, lambda: _fault_of_refusals(module, workload, several)),
        (several, lambda: _fault_of_threads(module, workload, several)),
        (many, lambda: _fault_at(module, workload, many, device, last)),
    ):
        if fault := found():
            return f"at {workload.label(at)}, {fault}"
    return None


def few_pieces(many: Size) -> Size:
    """An eighth or a ninth of the elements of MANY_PIECES: two pieces at least."""
    return many // 8 if isinstance(many, int) else tuple(n // 3 for n in many)


def placed(module: ModuleType, pinned: bool, x: np.ndarray) -> np.ndarray:
    """A copy of an array, in memory that the recipe's pinned() makes or in any."""
    copy: np.ndarray = module.pinned(x.shape) if pinned else np.empty(x.shape, x.dtype)
    np.copyto(copy, x)
    return copy


# ---- Page-locked arrays.


def _fault_of_pinned(module: ModuleType, workload: ModuleType, size: Size, device: Device) -> str | None:
    x = workload.inputs(size)[0]
    first, second = module.pinned(x.shape), module.pinned(x.shape)
    for each in (first, second):
        if type(each) is not np.ndarray:
            return f"{type(each).__name__} is not a NumPy array"
        if (each.shape, each.dtype) != (x.shape, x.dtype):
            return f"an array of {each.dtype} {each.shape} instead of {x.dtype} {x.shape}"
        if not each.flags.carray:
            return "the array is not C-contiguous, aligned and writeable"
        if isinstance(device, Cuda) and x.size and not is_page_locked(each):
            return "CUDA does not know its memory as page-locked"
    if x.size and np.may_share_memory(first, second):
        return "two arrays share their memory"
    del first, second, each
    part = placed(module, True, x).reshape(-1)[1:]
    gc.collect()
    module.pinned(x.shape).fill(SENTINEL)
    return None if np.array_equal(part, x.reshape(-1)[1:]) else "its memory is used again while a part of it is in use"


def is_page_locked(x: np.ndarray) -> bool:
    """Whether CUDA knows the memory of an array as page-locked: each of its pages, or ASKED of them, and its end."""
    from cuda.bindings import driver

    kind = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    start, step = x.ctypes.data, max(PAGE, x.nbytes // ASKED)
    found = [driver.cuPointerGetAttribute(kind, start + i) for i in (*range(0, x.nbytes, step), x.nbytes - 1)]
    return all(error == driver.CUresult.CUDA_SUCCESS and value == PAGE_LOCKED for error, value in found)


# ---- Calls with arrays at every kind of place.


class Places:
    """The host arrays of the calls at one size. A call has those of the call before where it needs the same: to get the
    memory of many pieces from the system takes longer than to fill it again."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.last: dict[tuple[int | None, bool], np.ndarray] = {}

    def filled(
        self, number: int | None, pinned: bool, x: np.ndarray, part: bool = False, around: float = np.nan
    ) -> tuple[np.ndarray, np.ndarray]:
        """An array that holds a copy of an input, or of what out is to hold if there is no number; and that array
        itself or, if it is to be a part of it, the larger array, with what is ``around``."""
        key, shape = (number, pinned), (x.size + 2 * AROUND,) if part else x.shape
        whole = self.last.pop(key, None)
        if whole is None or whole.shape != shape:
            del whole  # never the memory of both at once
            whole = self.module.pinned(shape) if pinned else np.empty(shape, x.dtype)
        self.last[key] = whole
        if not part:
            np.copyto(whole, x)
            return whole, whole
        whole[:AROUND] = whole[-AROUND:] = around
        inner = whole[AROUND:-AROUND].reshape(x.shape)
        np.copyto(inner, x)
        return inner, whole


class Call(NamedTuple):
    """Where the host arrays of a call lie."""

    pinned: tuple[bool, ...]  # whether each input is page-locked
    out: bool | int | None  # whether out is page-locked; the number of the input that it is; None if there is none
    parts: bool  # whether all of them are parts of larger arrays

    @property
    def words(self) -> str:
        kinds = [("ordinary", "page-locked")[each] for each in self.pinned]
        given = f"from {' and '.join(kinds) if len(set(kinds)) > 1 else kinds[0]} arrays" if any(self.pinned) else ""
        into = {None: "", False: "into an array", True: "into a page-locked array"}
        out = into[self.out] if self.out is None or isinstance(self.out, bool) else "into one of the arrays it reads"
        return ", ".join(filter(None, ("with transfer", given, out, "parts of larger arrays" * self.parts)))


def _calls(module: ModuleType, count: int, many: bool) -> Iterator[Call]:
    """Every combination; of many pieces a choice of them, since each takes a good part of a second on two cores."""
    kinds = (False, True) if hasattr(module, "pinned") else (False,)
    outs = (None, *(kinds[-1:] if many else kinds)) if writes_into(module) else (None,)
    for pinned in itertools.product(kinds, repeat=count):
        mixed = len(set(pinned)) > 1
        for out, parts in itertools.product(outs[-1:] if many and mixed else outs, (False, True)):
            if not many or parts == (out is not None):
                yield Call(pinned, out, parts)
        if writes_into(module) and not mixed:
            for number in range(count)[-1:] if many else range(count):
                yield Call(pinned, number, True)


def _fault_at(module: ModuleType, workload: ModuleType, size: Size, device: Device, last: bool) -> str | None:
    many = size == getattr(workload, "MANY_PIECES", None)
    if hasattr(module, "pinned") and not many and (fault := _fault_of_pinned(module, workload, size, device)):
        return f"pinned(): {fault}"
    # Two inputs in turn, so that what is left of the call before is not the answer.
    values = [Expected(workload, workload.inputs(size, seed)) for seed in (60, 61)]
    turn, places = itertools.cycle(values), Places(module)
    kept: list[tuple[np.ndarray, Expected]] = []
    for call, expected in zip(_calls(module, len(values[0].inputs), many), turn, strict=False):
        if fault := _fault_of_call(module, workload, call, expected, places, kept):
            return f"{call.words}: {fault}"
    if any(expected.disagreement(result) for result, expected in kept):
        return "with transfer: a later call changes the result of an earlier one"
    kept.clear()
    for kind in (False, True) if last and hasattr(module, "pinned") else (False,) if last else ():
        if _late(module, workload, kind, next(turn), places, device):
            words = Call((kind,), None, False).words
            return f"{words}: the result is there before the device is done"
    return None


def _nothing(expected: Expected) -> np.ndarray:
    """NaN in the shape of the answer, which takes no memory."""
    return np.broadcast_to(np.array(np.nan, expected.inputs[0].dtype), expected.answer.shape)


def _fault_of_call(
    module: ModuleType,
    workload: ModuleType,
    call: Call,
    expected: Expected,
    places: Places,
    kept: list[tuple[np.ndarray, Expected]],
) -> str | None:
    """A new result is kept, with what it must be."""
    kinds = enumerate(zip(call.pinned, expected.inputs, strict=True))
    given = [places.filled(number, pinned, x, call.parts)[0] for number, (pinned, x) in kinds]
    options: dict[str, np.ndarray] = {}
    larger = np.zeros(0)
    if isinstance(call.out, bool):
        options["out"], whole = places.filled(None, call.out, _nothing(expected), call.parts, SENTINEL)
        larger = whole if call.parts else larger
    elif call.out is not None:
        options["out"] = given[call.out]
        if options["out"].shape != expected.answer.shape:
            return None
    way = round_trip(module, workload)
    try:
        result = way(*given, **options)
    except ValueError as error:
        if call.out is None or isinstance(call.out, bool) or "out" not in str(error):
            return reason(error)
        result = None  # refused: no input may be changed
    except Exception as error:  # a recipe may raise anything
        return reason(error)
    if result is not None:
        if fault := expected.disagreement(result):
            return fault
        if options and (result is not options["out"] and result.size and not np.shares_memory(result, options["out"])):
            return "the result is not in it"
        if options and (fault := expected.disagreement(options["out"])):
            return fault
    if not all(
        equal(x, y)
        for x, y in zip(given, expected.inputs, strict=True)
        if result is None or x is not options.get("out")
    ):
        return "the caller's own array was changed"
    if not (larger[:AROUND] == SENTINEL).all() or not (larger[-AROUND:] == SENTINEL).all():
        return "the elements around it were overwritten"
    if not options:
        kept.append((result, expected))
        if len(set(call.pinned)) == 1 and given[0].size:  # the same arrays, of which one element differs
            given[0][tuple(n // 4 * 2 for n in given[0].shape)] = 3
            if fault := Expected(workload, given).disagreement(way(*given)):
                return f"the same arrays with another element: {fault}"
    return None


def _late(
    module: ModuleType, workload: ModuleType, pinned: bool, expected: Expected, places: Places, device: Device
) -> bool:
    """Whether a result is there before the device is done, where all arrays are of this kind."""
    way = round_trip(module, workload)
    given = [places.filled(number, pinned, x)[0] for number, x in enumerate(expected.inputs)]
    options = {}
    if writes_into(module):
        options["out"], _ = places.filled(None, pinned, _nothing(expected))
    return device.late(lambda: way(*given, **options), lambda _: None, lambda result: not expected.disagreement(result))


# ---- Inputs in every layout, and of other dtypes; and from two threads.


def _two_dimensional(x: np.ndarray) -> np.ndarray:
    return x if x.ndim > 1 else x[: x.size // 1_000 * 1_000].reshape(1_000, -1)


def _fault_of_layouts(module: ModuleType, workload: ModuleType, size: Size) -> str | None:
    plain = [_two_dimensional(x) for x in workload.inputs(size, 62)]
    fault = fault_of_layouts(workload, round_trip(module, workload), plain)
    return fault and f"with transfer, {fault}"


def _fault_of_threads(module: ModuleType, workload: ModuleType, size: Size) -> str | None:
    fault = fault_of_threads(module, workload, round_trip(module, workload), size)
    return fault and f"with transfer, {fault}"


# ---- What must be refused as out=.


def _fault_of_refusals(module: ModuleType, workload: ModuleType, size: Size) -> str | None:
    """Which out= is accepted although it does not fit, or is written to although it is refused."""
    if not writes_into(module):
        return None
    way, expected = round_trip(module, workload), Expected(workload, workload.inputs(size))
    shape, dtype = expected.answer.shape, expected.inputs[0].dtype
    other = dtype.newbyteorder()
    wrong: list[tuple[str, tuple[str, ...], np.ndarray]] = [
        (str(each), (str(each),), np.full(each, SENTINEL, dtype)) for each in ((5, 7), *of_other_shapes(shape))
    ]
    wrong += [(str(each), (str(each),), np.full(shape, SENTINEL, each)) for each in (np.dtype("int32"), other)]
    wrong += [("float64", ("float64",), np.full(shape, SENTINEL, np.float64))]
    for kind in ("read-only", *["read-only, page-locked"] * hasattr(module, "pinned")):
        fixed = placed(module, "page-locked" in kind, np.full(shape, SENTINEL, dtype))
        fixed.flags.writeable = False
        wrong.append((f"{kind} {shape}", READ_ONLY, fixed))
    for what, words, out in wrong:
        try:
            way(*expected.inputs, out=out)
        except ValueError as error:
            if not any(word in str(error) for word in words):
                return f"round_trip(out=) of {what}: the ValueError does not name it: {error}"
        except Exception as error:  # a recipe may raise anything
            return f"round_trip(out=) of {what}: no ValueError, but {reason(error)}"
        else:
            return f"round_trip(out=) of {what}: no ValueError"
        if not (out == SENTINEL).all():
            return f"round_trip(out=) of {what}: it was refused, and written to"
    larger = np.full((*shape[:-1], 2 * shape[-1]), SENTINEL, dtype)
    not_aligned, wide = unaligned(np.full(shape, SENTINEL, dtype)), _two_dimensional(np.full(shape, SENTINEL, dtype))
    for what, out, around in (
        ("every other element of an array", larger[..., ::2], larger[..., 1::2]),
        ("an array with negative strides", np.full(shape, SENTINEL, dtype)[::-1], larger[:0]),
        ("an array that is not aligned", not_aligned, larger[:0]),
        ("an array in Fortran order", np.asfortranarray(wide), larger[:0]),
    ):
        # The result has the shape of the inputs, or of as many of their elements as a matrix has.
        inputs = [_two_dimensional(x) if out.shape != shape else x for x in expected.inputs]
        answer = Expected(workload, inputs)
        if out.shape != answer.answer.shape:
            continue
        try:
            result = way(*inputs, out=out)
        except ValueError:
            if not (out == SENTINEL).all():
                return f"round_trip(out=) of {what}: it was refused, and written to"
            continue
        if answer.disagreement(result) or answer.disagreement(out) or not (around == SENTINEL).all():
            return f"round_trip(out=) of {what}: wrong, and no ValueError"
    return None
