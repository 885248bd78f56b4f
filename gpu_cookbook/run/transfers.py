"""Checks what a recipe does from host array to host array: from page-locked arrays, into arrays that exist, and in
pieces."""

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from gpu_cookbook.results import Size
from gpu_cookbook.run.check import Expected, round_trip, takes_out
from gpu_cookbook.run.device import Cuda, Device

PAGE_LOCKED = 1  # CU_MEMORYTYPE_HOST


def writes_into(module: ModuleType) -> bool:
    """Whether the way from host to host takes out=."""
    return takes_out(getattr(module, "round_trip", module.download))


def check_transfers(module: ModuleType, workload: ModuleType, size: Size, device: Device) -> str | None:
    """What is wrong, in one line, with the way from host arrays to a host result at this size, or None, if the recipe
    does anything about it. After the last edge size, one is tried at which the work is done in many pieces."""
    if not (hasattr(module, "round_trip") or hasattr(module, "pinned") or writes_into(module)):
        return None
    last = size == workload.EDGE_SIZES[-1]
    for each in (size, *([workload.MANY_PIECES] if last and hasattr(workload, "MANY_PIECES") else [])):
        where = "" if each == size else f" at {workload.label(each)}"
        kinds: dict[str, Callable[[np.ndarray], np.ndarray]] = {"": np.array}
        if hasattr(module, "pinned"):
            if fault := _fault_of_pinned(module, workload, each, device):
                return f"pinned(){where}: {fault}"
            kinds["from page-locked arrays"] = lambda x: page_locked(module, x)
        for number, (kind, made) in enumerate(kinds.items()):
            if fault := _fault_of_way(module, workload, workload.inputs(each, 60 + number), made):
                return ", ".join(filter(None, ("with transfer", kind))) + f"{where}: {fault}"
            if last and each == size and (fault := _late(module, workload, made, device)):
                return ", ".join(filter(None, ("with transfer", kind))) + f": {fault}"
    return _fault_of_refusals(module, workload, size) if last else None


def page_locked(module: ModuleType, x: np.ndarray) -> np.ndarray:
    """A copy of an array in memory that the recipe's pinned() makes."""
    copy: np.ndarray = module.pinned(x.shape)
    np.copyto(copy, x)
    return copy


def _fault_of_pinned(module: ModuleType, workload: ModuleType, size: Size, device: Device) -> str | None:
    for x in workload.inputs(size):
        first, second = module.pinned(x.shape), module.pinned(x.shape)
        for each in (first, second):
            if not isinstance(each, np.ndarray):
                return f"{type(each).__name__} is not a NumPy array"
            if (each.shape, each.dtype) != (x.shape, x.dtype):
                return f"an array of {each.dtype} {each.shape} instead of {x.dtype} {x.shape}"
            if not (each.flags.c_contiguous and each.flags.writeable):
                return "the array is not C-contiguous and writeable"
            if isinstance(device, Cuda) and x.size and not is_page_locked(each):
                return "CUDA does not know its memory as page-locked"
        if x.size and np.may_share_memory(first, second):
            return "two arrays share their memory"
    return None


def is_page_locked(x: np.ndarray) -> bool:
    """Whether CUDA knows the memory of an array as page-locked, from its first byte to its last."""
    from cuda.bindings import driver

    kind = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    ends = (x.ctypes.data, x.ctypes.data + x.nbytes - 1)
    found = [driver.cuPointerGetAttribute(kind, end) for end in ends]
    return all(error == driver.CUresult.CUDA_SUCCESS and value == PAGE_LOCKED for error, value in found)


def _fault_of_way(
    module: ModuleType, workload: ModuleType, inputs: Sequence[Any], made: Callable[[np.ndarray], np.ndarray]
) -> str | None:
    way, expected = round_trip(module, workload), Expected(workload, inputs)
    given = [made(x) for x in inputs]
    first = way(*given)
    if fault := expected.disagreement(first):
        return fault
    if writes_into(module):
        out = made(np.full(expected.answer.shape, np.nan, np.float32))
        result = way(*given, out=out)
        if not np.shares_memory(result, out) and out.size:
            return "out=: the result is not in it"
        if fault := expected.disagreement(result) or expected.disagreement(out):
            return f"out=: {fault}"
    if not all(np.array_equal(x, y) for x, y in zip(given, inputs, strict=True)):
        return "the caller's own array was changed"
    # Only one element differs, and a view is where the array does not begin.
    if inputs[0].size > 2:
        given = [made(np.concatenate([x[:1], x])) for x in inputs]
        views = [x[1:] for x in given]
        views[0][tuple(n // 2 for n in views[0].shape)] = 3
        changed = [np.array(x) for x in views]
        if fault := Expected(workload, changed).disagreement(way(*views)):
            return f"a part of a larger array: {fault}"
    return None if expected.disagreement(first) is None else "a later call changes the result of an earlier one"


def _late(
    module: ModuleType, workload: ModuleType, made: Callable[[np.ndarray], np.ndarray], device: Device
) -> str | None:
    way, inputs = round_trip(module, workload), workload.inputs(workload.EDGE_SIZES[-1], 65)
    expected = Expected(workload, inputs)
    given = [made(x) for x in inputs]
    options = {}
    if writes_into(module):
        options["out"] = made(np.full(expected.answer.shape, np.nan, np.float32))
    if device.late(lambda: way(*given, **options), lambda _: None, lambda result: not expected.disagreement(result)):
        return "the result is there before the device is done"
    return None


def _fault_of_refusals(module: ModuleType, workload: ModuleType, size: Size) -> str | None:
    """Which out= is accepted although it does not fit."""
    if not writes_into(module):
        return None
    way, inputs = round_trip(module, workload), workload.inputs(size)
    expected = Expected(workload, inputs)
    shape = expected.answer.shape
    for what, out in (("(5, 7)", np.zeros((5, 7), np.float32)), ("int32", np.zeros(shape, np.int32))):
        try:
            way(*inputs, out=out)
        except ValueError as error:
            if what not in str(error):
                return f"round_trip(out=) of {what}: the ValueError does not name it: {error}"
        else:
            return f"round_trip(out=) of {what}: no ValueError"
    larger = np.full((*shape[:-1], 2 * shape[-1]), -7, np.float32)
    try:
        result = way(*inputs, out=larger[..., ::2])
    except ValueError:
        return None
    if expected.disagreement(result) or expected.disagreement(larger[..., ::2]) or (larger[..., 1::2] != -7).any():
        return "round_trip(out=) of every other element of an array: wrong, and no ValueError"
    return None
