"""Checks a recipe in this process: its answers at the edge sizes, in every layout and with special values; that wait()
waits; that nothing is remembered; and what it must refuse."""

import contextlib
import gc
import importlib
import inspect
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from types import ModuleType
from typing import Any, NamedTuple, cast

import numpy as np

from gpu_cookbook.results import Size
from gpu_cookbook.run import memory
from gpu_cookbook.run.contract import by_steps, flushes, for_out, repeats, round_trip, steps, takes_axes, takes_out
from gpu_cookbook.run.device import HELD, Device, has_processes, processes_held_up
from gpu_cookbook.run.expected import Expected
from gpu_cookbook.run.threads import Part, parts_of
from gpu_cookbook.scaling import SAME
from gpu_cookbook.words import reason

SENTINEL = -7  # what no recipe should compute or touch; NaN would hide an addition or a multiplication
CALLS = 1_024  # of check_often()
IN_A_ROW = 16  # calls that follow one another before the first is waited for
OFTEN = 1.0  # seconds after which check_often() ends if a call is slow, but not before the FEWEST calls
FEWEST = 32
MOST = 400_000  # elements: larger arrays are tried in one layout only, and not in check_often()
ARRIVAL = 0.3  # seconds for which an upload may still be under way
RELEASE = 5  # seconds in which threads that have given their results back let go of their arguments, on busy cores


def variants(inputs: Sequence[Any], any_shape: bool = True) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """(description, inputs): the same values in other memory layouts and, of arrays with one dimension that may have
    ``any_shape``, in other numbers of dimensions."""
    yield "", tuple(inputs)
    arrays = [x for x in inputs if isinstance(x, np.ndarray)]
    if not arrays:
        return
    yield "negative strides: ", tuple(np.flip(x) for x in inputs)
    yield "every other element of a larger array: ", tuple(np.repeat(x, 2, axis=-1)[..., ::2] for x in inputs)
    if arrays[0].ndim == 2:
        yield "Fortran order: ", tuple(np.asfortranarray(x) for x in inputs)
    elif any_shape and arrays[0].size % 2 == 0:
        yield "two-dimensional, Fortran order: ", tuple(np.asfortranarray(x.reshape(2, -1)) for x in inputs)
    if arrays[0].ndim == 1 and any_shape:
        size = arrays[0].size
        shapes: list[tuple[int, ...]] = [()] * (size == 1) + [(size, 1, 1), (1, 2, size // 2, 1, 1)] * (size % 2 == 0)
        if size % 64 == 0:  # six axes of 2, and the rest
            shapes += [(4, size // 8, 2), (2, 2, 2, 2, 2, size // 64, 2)]
        for shape in shapes:
            yield f"{len(shape)} dimensions: ", tuple(x.reshape(shape) for x in inputs)
    fixed = tuple(x.copy() for x in inputs)
    for x in fixed:
        x.flags.writeable = False
    yield "read-only: ", fixed


def unaligned(x: np.ndarray) -> np.ndarray:
    memory = np.zeros(x.nbytes + 1, np.uint8)[1:]
    copy = memory.view(x.dtype).reshape(x.shape)
    np.copyto(copy, x)
    return copy


def _in_records(x: np.ndarray) -> np.ndarray:
    """Its strides are no multiples of the size of an element."""
    records = np.zeros(x.shape, [("value", x.dtype), ("flag", np.int8)])
    records["value"] = x
    return records["value"]


def _read_only(x: np.ndarray) -> np.ndarray:
    copy = np.array(x)
    copy.flags.writeable = False
    return copy


def _of_another_dtype(x: np.ndarray) -> np.ndarray:
    """Twice as many bits of float32, half as many of all others. The whole numbers of plain inputs fit."""
    return x.astype({"f4": np.float64, "f8": np.float32, "i8": np.int32}[x.dtype.str[1:]])


class _OfItsOwn(np.ndarray):
    """As arrays with units or masks have."""


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "Fortran order": np.asfortranarray,
    "read-only": _read_only,
    "negative strides": lambda x: np.flip(np.flip(x).copy()),
    "another dtype": _of_another_dtype,
    "every other element": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "the other byte order": lambda x: x.astype(x.dtype.newbyteorder()),
    "not aligned": unaligned,
    # A sum of one number again and again is rounded in one direction again and again.
    "one row again and again": lambda x: np.broadcast_to(x[:1], x.shape) if x.ndim > 1 else x,
    "a field of records": _in_records,
    "whole numbers": lambda x: x.astype(f"i{x.itemsize}"),
    "a class of its own": lambda x: x.view(np.matrix if x.ndim == 2 else _OfItsOwn),
}


def fault_of_layouts(workload: ModuleType, way: Callable, inputs: Sequence[np.ndarray]) -> str | None:
    """What is wrong, in one line, with a way from host arrays to a host result if these have another layout or dtype,
    or None. Several inputs have different ones, each of them every one."""
    for first in range(len(LAYOUTS)):
        names = [list(LAYOUTS)[(first + i) % len(LAYOUTS)] for i in range(len(inputs))]
        given = [LAYOUTS[name](x) for name, x in zip(names, inputs, strict=True)]
        expected = Expected(workload, [np.array(x, y.dtype, order="C") for x, y in zip(given, inputs, strict=True)])
        try:
            fault = expected.disagreement(way(*given))
        except Exception as error:  # a recipe may raise anything
            fault = reason(error)
        if not fault and not all(np.array_equal(x, y) for x, y in zip(given, expected.inputs, strict=True)):
            fault = "the caller's own array was changed"
        if fault:
            return f"{' and '.join(names)}: {fault}"
    return None


def tried(workload: ModuleType, size: Size, seed: int) -> Iterator[tuple[str, Sequence[Any]]]:
    """(description, inputs) at this size: plain values in every layout, and special ones, the first of them in every
    layout as well. Large arrays are there for the rounding of sums: plain values in one layout."""
    plain = workload.inputs(size, seed)
    if any(x.size > MOST for x in plain if isinstance(x, np.ndarray)):
        yield "", plain
        return
    any_shape = not hasattr(workload, "AXES")
    yield from variants(plain, any_shape)
    special = getattr(workload, "special_inputs", lambda size, seed: ())
    for number, (description, inputs) in enumerate(special(size, seed)):
        for layout, values in [("", inputs)] if number else variants(inputs, any_shape):
            yield description + layout, values


def _few_special(workload: ModuleType, size: Size) -> Iterator[tuple[str, Sequence[np.ndarray]]]:
    """The first and the last of the special inputs of each description. Few are held at a time: all of a large size
    may take a gigabyte."""
    last: dict[str, Sequence[np.ndarray] | None] = {}
    for what, values in getattr(workload, "special_inputs", lambda size, seed: ())(size, 1):
        if what not in last:
            yield what, values
        last[what] = values if what in last else None
    yield from ((what, values) for what, values in last.items() if values is not None)


def check_size(module: ModuleType, workload: ModuleType, size: Size, device: Device) -> str | None:
    """What is wrong with the recipe at this size, in one line, or None. ``device``: see gpu_cookbook.run.device."""
    upload, function, wait, download = steps(module, workload)

    def fault_of_call(inputs: Sequence[Any], expected: Expected, **options: Any) -> str | None:
        given = upload(*inputs)
        if not all(map(memory.is_in_order, given)):
            return "upload() returns an array that is not C-contiguous"
        result = function(*given, **options)
        wait(result)
        return expected.fault_of(result, download)

    def fault_of_round_trip(inputs: Sequence[Any], expected: Expected) -> str | None:
        result = module.round_trip(*inputs)
        kept.append((result, np.array(result)))
        return expected.disagreement(result)

    ways: dict[str, Callable[[Sequence[Any], Expected], str | None]] = {"": fault_of_call}
    if hasattr(module, "round_trip"):
        ways["round_trip: "] = fault_of_round_trip
    kept: list[tuple[Any, np.ndarray]] = []  # each result of round_trip, and a copy of it
    for seed in (1, 2):  # two inputs, so that a result kept from the first call is caught at the second
        for description, inputs in tried(workload, size, seed):
            if not takes_axes(module, inputs):
                if fault := _refusal(f"{description}upload", [str(inputs[0].shape)], partial(upload, *inputs)):
                    return fault
                continue
            before = [np.array(x) if isinstance(x, np.ndarray) else x for x in inputs]
            with np.errstate(all="ignore"):  # infinity times zero is intended
                expected = Expected(workload, before, flush=flushes(module))
                for way, fault_of in ways.items():
                    fault = fault_of(inputs, expected)
                    if fault:
                        return way + description + fault
                    if not all(np.array_equal(x, y, equal_nan=True) for x, y in zip(inputs, before, strict=True)):
                        return f"{way}{description}the caller's own array was changed"
    if not all(np.array_equal(result, copy, equal_nan=True) for result, copy in kept):
        return "round_trip: a later call changes the result of an earlier one"
    inputs = workload.inputs(size)
    if takes_out(function):
        expected = Expected(workload, inputs)
        out = for_out(upload, np.full(expected.answer.shape, np.nan, np.float32))
        fault = fault_of_call(inputs, expected, out=out) or expected.fault_of(out, download)
        if not fault:
            inputs = workload.inputs(size, 7)
            fault = fault_of_call(inputs, Expected(workload, inputs), out=out)
        for description, values in _few_special(workload, size) if not fault else ():
            with np.errstate(all="ignore"):  # infinity times zero is intended
                expected = Expected(workload, values, flush=flushes(module))
                fault = fault_of_call(values, expected, out=out) or expected.fault_of(out, download)
            if fault:
                return f"out=: {description}{fault}"
        if fault:
            return f"out=: {fault}"
        if fault := _fault_of_input_as_out(module, workload, inputs):
            return f"out= is one of the inputs: {fault}"
    if hasattr(module, "prepared"):
        fault = check_prepared(module, workload, size, inputs, device)
        if fault:
            return f"prepared: {fault}"
    fault = check_views(module, workload, inputs)
    flat = not hasattr(workload, "AXES") and all(isinstance(x, np.ndarray) and x.ndim == 1 for x in inputs)
    if not fault and flat and all(x.size % 2 == 0 for x in inputs):
        fault = check_views(module, workload, [x.reshape(2, -1) for x in inputs])
    if fault:
        return fault
    if not any(isinstance(x, np.ndarray) for x in inputs):
        fault = _seeds(module, workload, size)
        return fault or (check_engine(module, workload, size) if hasattr(module, "engine") else None)
    if size == workload.EDGE_SIZES[-1]:
        for call in (by_steps(module, workload), *[round_trip(module, workload)] * hasattr(module, "round_trip")):
            if fault := fault_of_layouts(workload, call, workload.inputs(size, 9)):
                return f"with transfer, {fault}"
        if fault := _fault_of_uploads(module, workload, size):
            return f"upload(): {fault}"
    if fault := _fault_of_one_twice(module, workload, inputs) or _fault_of_sharing(module, workload, inputs):
        return fault
    return check_memory(module, workload, size) or check_waiting(module, workload, size, device)


def _fault_of_uploads(module: ModuleType, workload: ModuleType, size: Size) -> str | None:
    """What is wrong, in one line, if upload() does some of the work, or None: what it computed is then kept beside the
    arrays, and belongs to those that were uploaded together."""
    upload, function, wait, download = steps(module, workload)
    first, second = workload.inputs(size, 10), workload.inputs(size, 11)
    given, others = upload(*first), upload(*second)
    if len(given) > len(first):
        return f"{len(given)} arguments are made of {len(first)}"
    one_each = len(given) == len(first)  # a table is made of several arrays
    for argument, x in zip(given, first, strict=False):
        try:
            held = memory.read(argument)
        except memory.Deferred:
            if memory.is_of_recipe(argument):
                return f"what a {type(argument).__name__} holds cannot be seen"
            continue
        if one_each and held is not None and held.size != x.size:
            return f"an array of {x.size:,} elements becomes one of {held.size:,}"
    if one_each and len(given) > 1:
        for one, another, x, y in ((given, others, first, second), (others, given, second, first)):
            result = function(one[0], *another[1:])
            wait(result)
            if fault := Expected(workload, (x[0], *y[1:])).fault_of(result, download):
                return f"with arrays of two uploads, {fault}"
    if all(map(memory.is_jax, given)):  # nobody can give these other values, to find out what was computed before

        def parts(x: Sequence[Any]) -> set[Part]:
            return parts_of(module, lambda: wait(function(*x)))

        given = upload(*first)
        copies = [x.copy() for x in given]
        parts(given), parts(copies)  # which compile
        if found := parts(given) ^ parts(copies):
            name, number, _ = min(found, key=itemgetter(1))
            return f"in line {number}, {name}() does something else with other arrays of the same values"
    return None


def _fault_of_input_as_out(module: ModuleType, workload: ModuleType, inputs: Sequence[np.ndarray]) -> str | None:
    """What is wrong if out is an input of the result's shape, each in turn, in one line, or None. A ValueError is
    accepted as well."""
    upload, function, wait, download = steps(module, workload)
    expected = Expected(workload, inputs)
    for place in [i for i, x in enumerate(inputs) if x.shape == expected.answer.shape]:
        given = upload(*(x.copy() for x in inputs))
        try:
            result = function(*given, out=given[place])
        except ValueError:
            continue
        wait(result)
        if fault := expected.fault_of(result, download) or expected.fault_of(given[place], download):
            return fault
        others = [i for i in range(len(inputs)) if i != place]
        if fault := _mismatch([given[i] for i in others], [inputs[i] for i in others]):
            return f"of the other input: {fault}"
    return None


def _fault_of_one_twice(module: ModuleType, workload: ModuleType, inputs: Sequence[np.ndarray]) -> str | None:
    """What is wrong if one array is both inputs, where these have the same shape, in one line, or None."""
    x, *others = inputs
    if [(each.shape, each.dtype) for each in others] != [(x.shape, x.dtype)]:
        return None
    upload, function, wait, download = steps(module, workload)
    expected = Expected(workload, (x, x))
    given = upload(x.copy(), x.copy())
    if len(given) != 2:  # a table
        return None
    twice = given[0], given[0]

    def out() -> Any:
        return for_out(upload, np.full(expected.answer.shape, np.nan, np.float32))

    calls: dict[str, Callable[[], Any]] = {"": lambda: function(*twice)}
    if takes_out(function):
        calls["out=: "] = lambda: function(*twice, out=out())
    if hasattr(module, "prepared"):
        calls["prepared: "] = lambda: module.prepared(*twice)()
    for way, call in calls.items():
        result = call()
        wait(result)
        fault = expected.fault_of(result, download)
        if fault := fault or _mismatch(twice[:1], [x]):
            return f"the same array twice: {way}{fault}"
    if takes_out(function) and expected.answer.shape == x.shape:
        with contextlib.suppress(ValueError):  # refused
            wait(function(*twice, out=twice[0]))
            if fault := expected.fault_of(twice[0], download):
                return f"the same array twice, and as out=: {fault}"
    if hasattr(module, "round_trip"):
        host = x.copy()
        fault = expected.disagreement(module.round_trip(host, host))
        if fault or not np.array_equal(host, x):
            return f"the same array twice: round_trip: {fault or 'it was changed'}"
    return None


def _neutral(workload: ModuleType, inputs: Sequence[np.ndarray]) -> Iterator[Expected]:
    """What is expected of two inputs one of which is all ones, the identity or a single 1, if the answer is then the
    other one: a recipe may give that back."""
    if len(inputs) != 2 or len({(x.ndim, x.dtype) for x in inputs}) > 1:
        return
    for place, x in enumerate(inputs):
        other = inputs[1 - place]
        factors = [np.ones(shape, x.dtype) for shape in dict.fromkeys([x.shape, (1,) * x.ndim])]
        if x.ndim == 2:
            factors.append(np.eye(other.shape[place], dtype=x.dtype))
        for factor in factors:
            try:
                expected = Expected(workload, (other, factor) if place else (factor, other))
            except ValueError:  # the work cannot be done with a factor of this shape
                continue
            if not expected.disagreement(other):
                yield expected
                break


def _fault_of_sharing(module: ModuleType, workload: ModuleType, inputs: Sequence[np.ndarray]) -> str | None:
    """What is wrong, in one line, where the answer is one of the inputs, or None: the result must be a copy of it, so
    that a caller who changes the result changes no input."""
    upload, function, wait, download = steps(module, workload)
    for expected in _neutral(workload, inputs):
        given = upload(*(x.copy() for x in expected.inputs))
        result = function(*given)
        wait(result)
        fault = expected.fault_of(result, download)
        if not fault and memory.write(result, np.full(expected.answer.shape, SENTINEL, np.float32)):
            fault = _mismatch(given, expected.inputs) and "a caller who changes the result changes an input"
        if not fault and takes_out(function):
            out = for_out(upload, np.full(expected.answer.shape, np.nan, np.float32))
            wait(function(*upload(*expected.inputs), out=out))
            fault = expected.fault_of(out, download)
            fault = fault and f"out=: {fault}"
        if not fault and hasattr(module, "round_trip"):
            host = module.round_trip(*expected.inputs)
            fault = expected.disagreement(host)
            if any(np.may_share_memory(host, x) for x in expected.inputs):
                fault = "round_trip: a caller who changes the result changes an input"
        if fault:
            return f"where the answer is one of the inputs: {fault}"
    return None


def check_call(module: ModuleType, workload: ModuleType, size: Size) -> str | None:
    """What is wrong with a call at this size, without and with transfer, in one line, or None."""
    upload, function, wait, download = steps(module, workload)
    inputs = workload.inputs(size)
    expected = Expected(workload, inputs)
    result = function(*upload(*(np.array(x) if isinstance(x, np.ndarray) else x for x in inputs)))
    wait(result)
    fault = expected.fault_of(result, download)
    if not fault and hasattr(module, "round_trip"):
        fault = expected.disagreement(module.round_trip(*inputs))
        return fault and f"round_trip: {fault}"
    return fault


def check_memory(module: ModuleType, workload: ModuleType, size: Size) -> str | None:
    """What is wrong, in one line, if the same arrays hold other values at the next call, or None: what was kept of the
    call before is then found out, and so is a result that the next call changes."""
    if fault := _fault_of_references(module, workload, size):
        return fault
    upload, function, wait, download = steps(module, workload)
    first, second = workload.inputs(size, 3), workload.inputs(size, 4)
    nearly = [x.copy() for x in first]
    for x in nearly:  # only one element differs: a recipe that compares a few values takes these for the first ones
        if x.size:
            x[tuple(n // 4 * 2 for n in x.shape)] = SENTINEL
    expected, others = Expected(workload, first), [(values, Expected(workload, values)) for values in (nearly, second)]
    arguments = upload(*(x.copy() for x in first))
    if fault := _mismatch(arguments, first):
        return f"upload(): {fault}"

    def done() -> Any:
        result = function(*arguments)
        wait(result)
        return result

    def rewritten(values: Sequence[Any]) -> bool:
        return memory.fill(arguments, values)

    looked = memory.looks(arguments)
    before = done()
    if not memory.unchanged(arguments, looked):
        return "after the call, the table that it was given does not look as before"
    del looked  # it may share memory with the table, which gets other values below
    if repeats(workload):
        held = None  # what is done in place changes
        changed = [expected.answer] if memory.is_changeable(arguments[0]) else []
    else:
        held, changed = expected.held(before), list(first)
    if fault := _mismatch(arguments[: len(changed)], changed):
        return f"after the call, the arrays that it was given: {fault}"
    host = download(before)
    if type(host) is type(before) is np.ndarray and not host.flags.writeable:
        return "the result is read-only, and nothing else has its memory"
    kept = np.array(host)
    for values, other in others:
        if not rewritten(values):
            again = done()
            same = memory.identity(before) & memory.identity(again)
            # The mean of one number may be that number, where Polars has it in the given table.
            if any(x.size for x in first) and same and same - memory.identity(memory.arrays(arguments)):
                return "the next call returns the same result again, and may have done nothing"
            if fault := expected.fault_of(again, download):
                return f"the same call again: {fault}"
            mixed = [*first[:-1], second[-1]]
            replaced = memory.replace_last(arguments, second[-1])
            if replaced and (fault := Expected(workload, mixed).fault_of(done(), download)):
                return f"the same table with other values: {fault}"
            break
        if fault := other.fault_of(done(), download):
            return f"the same arrays with other values: {fault}"
    else:
        overwritten = np.full(other.answer.shape, SENTINEL, first[-1].dtype)
        if not repeats(workload) and memory.write(done(), overwritten) and (fault := other.fault_of(done(), download)):
            return f"after the caller has changed a result: {fault}"
    if held is not None and not expected.holds(before):
        return "a later call changes the result of an earlier one"
    if not repeats(workload) and not np.array_equal(host, kept, equal_nan=True):
        return "a later call changes what download() returned before"
    del before
    hosts = [x.copy() for x in first]
    way = round_trip(module, workload)
    way(*hosts)
    for values, other in others:
        for x, each in zip(hosts, values, strict=True):
            x[...] = each
        if fault := other.disagreement(way(*hosts)):
            return f"with transfer, the same arrays with other values: {fault}"
    return None


def fault_of_contents(module: ModuleType, workload: ModuleType) -> str | None:
    """What is wrong, in one line, if a call with values that the one before had leaves out a part of the recipe that it
    does not leave out with others, or None: then what was computed is kept by what the arrays hold, which no caller
    could tell, and which no time tells the truth about."""
    upload, function, wait, _ = steps(module, workload)
    size = workload.EDGE_SIZES[-1 if hasattr(module, "upload") else -2]

    def parts(seed: int) -> set[Part]:
        given = upload(*workload.inputs(size, seed))
        gc.collect()  # rather than in the middle: a recipe may have finalizers
        return parts_of(module, lambda: wait(function(*given)))

    missing: set[Part] | None = None
    for seed in (70, 71, 72):
        new, again = parts(seed), parts(seed)
        missing = new - again if missing is None else missing & (new - again)
        if seed == 70:
            parts(seed)  # so that what goes two or three ways in turn is no fault
    if missing:
        name, number, _ = min(missing, key=itemgetter(1))
        return f"the same values again: {name}() leaves out a part of line {number}, so what it computed was kept"
    return None


def _fault_of_references(module: ModuleType, workload: ModuleType, size: Size) -> str | None:
    """Whether bytes or strings that upload() made, which nobody can fill anew, are kept from one call to the next."""
    upload, function, wait, download = steps(module, workload)
    arguments = upload(*workload.inputs(size, 6))
    given = [x for x in arguments if isinstance(x, bytes) or (type(x) is np.ndarray and x.dtype.kind == "S")]
    if not given:
        return None

    def references() -> int:
        return sum(map(sys.getrefcount, given))

    before = references()
    result = function(*arguments)
    wait(result)
    download(result)
    del result
    gc.collect()
    end = time.monotonic() + RELEASE
    while references() > before:
        if time.monotonic() > end:
            what = "file" if isinstance(given[0], bytes) else "strings"
            return f"after the call, something still refers to the {what} that it was given"
        time.sleep(0.1)  # to look for garbage takes a tenth of this
        gc.collect()
    return None


def _mismatch(arrays: Sequence[Any], values: Sequence[np.ndarray]) -> str | None:
    """How the arrays differ from these values, in one line; None if they do not, or if it cannot be seen. A copy to the
    device that is under way may still arrive: only the recipe's own stream waits for it."""
    found = memory.arrays(arrays)
    if len(found) != len(values):  # a handle of several arrays
        return None
    for x, expected in zip(found, values, strict=True):
        shape = tuple(getattr(x, "shape", expected.shape))
        if shape != expected.shape:
            return f"an array of shape {shape} instead of {expected.shape}"
        expected = memory.as_held(x, expected)
        end = time.monotonic() + ARRIVAL
        while (held := memory.held(x)) is not None and held.size == expected.size:
            if np.array_equal(held, expected.reshape(-1), equal_nan=True):
                break
            if time.monotonic() > end:
                return "wrong values"
            time.sleep(1e-3)
    return None


def check_waiting(module: ModuleType, workload: ModuleType, size: Size, device: Device) -> str | None:
    """What is wrong with wait() in one line, or None. For an engine's processes, see check_engine()."""
    upload, function, wait, _ = steps(module, workload)
    if hasattr(module, "engine") and has_processes():
        return check_engine(module, workload, size)
    inputs = workload.inputs(size, 5)  # which no call has seen: old memory does not hold the answer
    expected = Expected(workload, inputs)
    # Uploaded beforehand: a copy from the host would wait for the device and hide that wait() returns too early.
    arguments = upload(*inputs)

    def call() -> Any:
        if repeats(workload) and not memory.write(arguments[0], inputs[0]):
            return function(*upload(*inputs))
        return function(*arguments)

    if device.late(call, wait, expected.holds):
        return "wait() returns before the device is done"
    if size == workload.EDGE_SIZES[-1]:
        way, others = round_trip(module, workload), workload.inputs(size, 8)
        answer = Expected(workload, others)
        if device.late(lambda: way(*others), lambda result: None, lambda result: not answer.disagreement(result)):
            return "with transfer, the result is there before the device is done"
    return None


def check_engine(module: ModuleType, workload: ModuleType, size: Size) -> str | None:
    """What is wrong with the calls of an engine in one line, or None: with every other process stopped, and then the
    others, the result must be complete when wait() returns. With all of them stopped, no call can complete."""
    if size != workload.EDGE_SIZES[-1]:
        return None
    upload, function, wait, _ = steps(module, workload)
    for half in (0, 1):
        inputs = workload.inputs(size, 6 + half)
        expected = Expected(workload, inputs)
        arguments = upload(*inputs)
        for seconds in (HELD, 10 * HELD):
            with processes_held_up(seconds, half) as (_, released):
                result = function(*arguments)
                in_time = not released.is_set()
                wait(result)
                late = not expected.holds(result)
            if late:
                return "wait() returns before all processes are done"
            if in_time:
                break
    with processes_held_up(HELD) as (stopped, released):
        wait(function(*arguments))
        if stopped and not released.is_set():
            return "the same call again completes while every other process is stopped: its result was kept"
    return None


def _neighbours(workload: ModuleType) -> list[Size]:
    """Of arrays, the last edge size with one length less by one: what a recipe keeps for all sizes that have the other
    lengths is found out."""
    size = workload.EDGE_SIZES[-1]
    if isinstance(size, int) or not isinstance(workload.inputs(workload.EDGE_SIZES[0])[0], np.ndarray):
        return []
    return [(*size[:place], n - 1, *size[place + 1 :]) for place, n in enumerate(size) if n > 1]


def check_often(module: ModuleType, workload: ModuleType) -> str | None:
    """What is wrong with one of many calls, in one line, or None: all sizes in turn, several calls in a row before the
    first is waited for, and every result compared. Then the large sizes; and what was uploaded and computed first must
    be unchanged."""
    upload, function, wait, download = steps(module, workload)
    work, early = [], []  # early: what the caller still has when all is done
    sizes = (*workload.EDGE_SIZES, *getattr(workload, "MORE_SIZES", ()), *_neighbours(workload))
    for number, size in enumerate(sizes):
        inputs = workload.inputs(size, 10 + number)
        if all(x.size <= MOST for x in inputs if isinstance(x, np.ndarray)):
            work.append((workload.label(size), inputs, Expected(workload, inputs)))
            if isinstance(inputs[0], np.ndarray):
                other = Expected(workload, workload.inputs(size, 30 + number))
                given = upload(*other.inputs)
                early.append((work[-1][0], other, given, function(*given)))
                wait(early[-1][-1])
    means: dict[int, np.ndarray] = {}  # of the same seed, if there are no arrays
    done, begin = 0, time.monotonic()
    while work and done < CALLS and (time.monotonic() - begin < OFTEN or done < FEWEST):
        row = [(done + i) % len(work) for i in range(IN_A_ROW)]
        arguments = [upload(*work[i][1]) for i in row]
        results = [function(*each) for each in arguments]
        for i, result in zip(row, results, strict=True):
            label, inputs, expected = work[i]
            wait(result)
            fault = expected.fault_of(result, download)
            if not fault and not isinstance(inputs[0], np.ndarray):
                mean = np.asarray(download(result))
                if not np.allclose(mean, means.setdefault(i, mean), rtol=SAME, atol=0, equal_nan=True):
                    fault = f"{mean} instead of {means[i]} with the same seed"
            if fault:
                return f"one of many calls, at {label}: {fault}"
        done += IN_A_ROW
    for size in getattr(workload, "LARGE_SIZES", ()):
        inputs = workload.inputs(size, 50)
        result = function(*upload(*inputs))
        wait(result)
        if fault := Expected(workload, inputs).fault_of(result, download):
            return f"at {workload.label(size)}: {fault}"
        if size == workload.LARGE_SIZES[0] and takes_out(function):
            del result
            if fault := _fault_of_transposed_out(module, workload, inputs):
                return f"at {workload.label(size)}: out=: {fault}"
    for label, expected, given, result in early:
        if not expected.holds(result):
            return f"many later calls change the result of the first at {label}"
        if not repeats(workload) and (fault := _mismatch(given, expected.inputs)):
            return f"after many calls, what was uploaded first at {label}: {fault}"
    return None


def check_prepared(
    module: ModuleType, workload: ModuleType, size: Size, inputs: Sequence[Any], device: Device
) -> str | None:
    """What is wrong with what prepared() returns, in one line, or None. That is called three times, so what it
    does in place must have been done three times, and never by prepared() itself."""
    upload, _, wait, download = steps(module, workload)
    arguments, options = upload(*inputs), dict[str, Any]()
    if takes_out(module.prepared):
        options["out"] = for_out(upload, np.full(Expected(workload, inputs).answer.shape, np.nan, np.float32))
    replay = module.prepared(*arguments, **options)
    others = [-2 * x for x in inputs]  # of another norm, too
    another = module.prepared(*upload(*others))  # must not change what the first one does, nor its result
    for calls in (1, 2, 3):
        result = replay()
        wait(result)
        expected = Expected(workload, inputs, calls if repeats(workload) else 1)
        fault = expected.fault_of(result, download) or (
            "out" in options and expected.fault_of(options["out"], download)
        )
        if fault:
            return f"call {calls}: {fault}"
    own = (module.prepared(*arguments) if options else replay)()  # where prepared() chooses the place
    wait(own)
    wait(another())
    if fault := Expected(workload, inputs, 4 if repeats(workload) else 1).fault_of(own, download):
        return f"a call, and then one of another function: {fault}"
    values: Sequence[np.ndarray] = ()

    def call() -> Any:
        memory.fill(arguments, values)
        return replay()

    for place, x in enumerate(others):
        values = [*inputs[:place], x, *inputs[place + 1 :]]  # the others as they were: what was kept of one is found
        expected = Expected(workload, values)
        result = call()
        wait(result)
        if fault := expected.fault_of(result, download):
            return f"the same arrays with other values: {fault}"
    if device.late(call, wait, expected.holds):
        return "wait() returns before the device is done"
    for description, values in _few_special(workload, size):
        if not memory.fill(arguments, values):
            break
        result = replay()
        wait(result)
        with np.errstate(all="ignore"):  # infinity times zero is intended
            expected = Expected(workload, values, flush=flushes(module))
        if fault := expected.fault_of(result, download):
            return f"{description}{fault}"
    return None


class View(NamedTuple):
    """A way to be given an array on the device that is part of a larger one, or lies in memory in another order."""

    what: str
    around: Callable[[np.ndarray, float], np.ndarray]  # an array to upload, and the value for what is not the recipe's
    take: Callable[[Any, tuple[int, ...]], Any]  # the recipe's part of it, on the device, in this shape
    others: Callable[[np.ndarray], np.ndarray]  # the rest of it, on the host


def _interleaved(x: np.ndarray, value: float) -> np.ndarray:
    larger = np.full((*x.shape[:-1], 2 * x.shape[-1]), value, x.dtype)
    larger[..., ::2] = x
    return larger


VIEWS = (
    # Vector loads need an address that is a multiple of 16 bytes, and such a slice starts elsewhere. A matrix is a
    # reshaped slice, because one that starts at another row is aligned again if its rows are a multiple of 16 bytes.
    View(
        "a slice",
        lambda x, value: np.pad(x.reshape(-1), 1, constant_values=value),
        lambda whole, shape: whole[1:-1].reshape(shape),
        lambda whole: whole[[0, -1]],
    ),
    View(
        "every other element",
        _interleaved,
        lambda whole, shape: whole[..., ::2] if len(shape) > 1 else whole[::2],
        lambda whole: whole[..., 1::2],
    ),
    View(
        "the transpose",
        lambda x, value: np.array(x.T, order="C"),
        lambda whole, shape: whole.T,
        lambda whole: whole[:0],
    ),
)


def check_views(module: ModuleType, workload: ModuleType, inputs: Sequence[Any]) -> str | None:
    """What is wrong with parts of device arrays, in one line, or None: first all arrays are such a part, then each
    alone, including ``out`` if there is one. A ValueError is accepted as well, and so is a framework that has no such
    parts. What surrounds them is not the recipe's."""
    upload, function, wait, download = steps(module, workload)
    expected = Expected(workload, inputs)
    count = len(inputs)
    hosts: dict[int | str, Any] = dict(enumerate(inputs))
    if takes_out(function):
        hosts["out"] = np.full(expected.answer.shape, np.nan, np.float32)
    uploaded = upload(*inputs)
    if len(uploaded) != count or not all(hasattr(x, "__getitem__") for x in uploaded):
        return None  # a table, a number, or a handle to data in other processes

    def written(name: int | str) -> bool:
        return name == "out" or repeats(workload)

    def fault_of(view: View, names: Sequence[int | str]) -> str | None:
        def around(name: int | str, x: np.ndarray) -> np.ndarray:
            return view.around(x, SENTINEL if written(name) or x.dtype.kind == "i" else np.nan)

        larger = {n: around(n, x) if n in names else x for n, x in hosts.items()}
        whole: dict[int | str, Any] = dict(enumerate(upload(*(larger[i] for i in range(count)))))
        if "out" in names:
            whole["out"] = for_out(upload, larger["out"])
        given = dict(whole)
        for n in names:
            try:
                given[n] = view.take(whole[n], hosts[n].shape)
            except Exception:  # each framework has its own for what it cannot do
                return None
            if tuple(given[n].shape) != hosts[n].shape:
                return None
        options = {"out": given["out"]} if "out" in names else {}
        try:
            result = function(*(given[i] for i in range(count)), **options)
        except ValueError:
            return None  # refused
        wait(result)
        fault = expected.disagreement(download(result))
        for n in filter(written, names):
            after = download(whole[n])
            if not (view.others(after) == SENTINEL).all():
                return "the elements around it were overwritten"
            if (n == "out" or memory.is_changeable(whole[n])) and not fault:  # Numba's transpose is a copy
                fault = expected.disagreement(view.take(after, hosts[n].shape))
                fault = fault and expected.disagreement(np.array(download(given[n])))
        return fault

    for view in VIEWS:
        for names in dict.fromkeys([tuple(hosts), *((name,) for name in hosts)]):
            try:
                fault = fault_of(view, names)
            except Exception as error:  # a recipe may raise anything
                fault = reason(error)
            if fault:
                return f"{view.what} of a device array{' as out=' if names == ('out',) else ''}: {fault}"
    return None


def _fault_of_transposed_out(module: ModuleType, workload: ModuleType, inputs: Sequence[np.ndarray]) -> str | None:
    """What is wrong, in one line, if out is the transpose of an array, of which no flat view can be written to; or a
    whole array, where the recipe or its framework refuses that."""
    upload, function, wait, download = steps(module, workload)
    if not hasattr(workload, "AXES") and all(x.ndim == 1 for x in inputs):
        inputs = [x.reshape(2, -1) for x in inputs]
    expected, view = Expected(workload, inputs), VIEWS[-1]
    given, nothing = upload(*inputs), np.full(expected.answer.shape, np.nan, np.float32)
    for transposed in (True, False):
        try:
            whole = for_out(upload, view.around(nothing, SENTINEL) if transposed else nothing)
            out = view.take(whole, nothing.shape) if transposed else whole
            result = function(*given, out=out)
        except Exception:  # each framework has its own for what it cannot do
            if not transposed:
                raise
            continue
        wait(result)
        return expected.disagreement(download(result)) or expected.disagreement(np.array(download(out)))
    return None


def _seeds(module: ModuleType, workload: ModuleType, size: Size) -> str | None:
    upload, function, wait, download = steps(module, workload)

    def answer(seed: int) -> Any:
        result = function(*upload(*workload.inputs(size, seed)))
        wait(result)
        return download(result)

    names = "(rows, columns, chunk=10000, seed=0)"
    if (found := str(inspect.signature(function))) != names:
        return f"the function takes {found} instead of {names}"
    for seed in (0, 3):
        once, again, other = (answer(each) for each in (seed, seed, seed + 1))
        if not np.array_equal(once, again, equal_nan=True):
            return f"seed {seed} gave {once!r} the first time and {again!r} the second"
        if once == other:
            return f"seeds {seed} and {seed + 1} both gave {once!r}"
    numbers = workload.inputs(size, 3)
    if max(numbers) < 2**15:  # products of these do not fit, where a recipe leaves them to NumPy
        result = function(*map(np.int16, numbers))
        wait(result)
        if not np.array_equal(once, small := download(result), equal_nan=True):
            return f"numbers of np.int16 gave {small!r} instead of {once!r}"
    for wrong in ((-1, 1, 1), (1, -1, 1), (1, 1, 0), (1, 1, -1)):
        if fault := _refusal(f"rows, columns and chunk {wrong}", [str(min(wrong))], partial(function, *wrong)):
            return fault
    for i, (name, number) in enumerate(zip(("rows", "columns", "chunk", "seed"), numbers, strict=True)):
        try:
            wait(function(*numbers[:i], number + 0.5, *numbers[i + 1 :]))
        except (TypeError, ValueError):
            continue
        return f"{name}={number + 0.5}: no TypeError"
    return None


def _refusal(what: str, names: Sequence[str], call: Callable[[], Any], arrays: Sequence[Any] = ()) -> str | None:
    """What is wrong with how the call refuses bad input, in one line; None if a ValueError says these names, and these
    arrays are as before."""
    memory.settle(arrays)
    before = [memory.held(x) for x in arrays]
    try:
        call()
    except ValueError as error:
        if unnamed := [name for name in names if name not in str(error)]:
            return f"{what}: the ValueError does not name {unnamed[0]}: {error}"
        memory.settle(arrays)
        for x, old in zip(arrays, before, strict=True):
            if old is not None and not np.array_equal(old, cast("np.ndarray", memory.held(x)), equal_nan=True):
                return f"{what}: it was refused, and written to"
        return None
    return f"{what}: no ValueError"


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

    faults: list[str | None] = []
    wrong = workload.wrong_inputs()
    emptied = [(first[:0], *others) for first, *others in wrong if first.shape and first.size]
    for inputs in [*wrong, *emptied]:
        if any(faults):
            break
        shapes = [str(x.shape) for x in inputs]
        what = f"shapes {' and '.join(shapes)}"
        faults.append(_refusal(what, shapes, partial(upload_and_work, inputs)))
        if hasattr(module, "round_trip"):
            faults.append(_refusal(f"round_trip: {what}", shapes, partial(module.round_trip, *inputs)))
        if hasattr(module, "prepared"):
            faults.append(_refusal(f"prepared: {what}", shapes, partial(prepare, inputs)))
    empty = workload.inputs(workload.EDGE_SIZES[0])
    inputs = workload.inputs(workload.EDGE_SIZES[-1])
    for place, x in enumerate(inputs):
        if isinstance(x, np.ndarray) and x.dtype.kind == "i":
            for what, values in (
                ("fractions instead of whole numbers", x + 0.5),
                ("whole numbers beyond int64", x.astype(np.uint64) | np.uint64(2**63)),
            ):
                given = (*inputs[:place], values, *inputs[place + 1 :])
                names = str(x.dtype), str(values.dtype)
                faults.append(_refusal(what, names, partial(upload_and_work, given)))
    if any(isinstance(x, np.ndarray) for x in inputs):
        for few in (inputs, *[empty] * (not empty[0].size)):
            right = upload(*few)
            others = [in_other_dtypes(x) for x in right]
            alone = [(y, (*right[:i], y, *right[i + 1 :])) for i, each in enumerate(others) for y in each]
            for other, given in (*alone, *((each[0], each) for each in zip(*others, strict=False))):
                dtype = _dtype_name(other)
                what = f"{dtype}{'' if few is inputs else ' of no elements'} passed to the function itself"
                faults.append(_refusal(what, [dtype], partial(work, *given), given))
        if takes_out(function):
            right, shape = upload(*inputs), Expected(workload, inputs).answer.shape
            for each in ((5, 7), *of_other_shapes(shape)):
                out = for_out(upload, np.zeros(each, np.float32))
                faults.append(_refusal(f"out= of shape {each}", [str(each)], partial(work, *right, out=out), [out]))
            for out in in_other_dtypes(for_out(upload, np.zeros(shape, np.float32))):
                dtype = _dtype_name(out)
                faults.append(_refusal(f"out= of {dtype}", [dtype], partial(work, *right, out=out), [out]))
            for place, x in enumerate(right):
                for other in in_other_dtypes(x)[:1]:
                    given = (*right[:place], other, *right[place + 1 :])
                    out, dtype = for_out(upload, np.zeros(shape, np.float32)), _dtype_name(other)
                    what = f"{dtype} passed to the function itself, with out="
                    faults.append(_refusal(what, [dtype], partial(work, *given, out=out), [*given, out]))
        if takes_out(download):
            faults.append(_download_fault(module, workload, inputs))
    return next(filter(None, faults), None)


def of_other_shapes(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """One element more, one less, and one dimension more."""
    return [(*shape[:-1], shape[-1] + 1), (*shape[:-1], shape[-1] - 1), (*shape, 1)]


def _download_fault(module: ModuleType, workload: ModuleType, inputs: Sequence[np.ndarray]) -> str | None:
    """What is wrong with what download() makes of an array in another order or dtype, or of a read-only one, in one
    line, or None: it refuses that, or fills those in another order or dtype with the right values."""
    upload, function, wait, download = steps(module, workload)
    inputs = [x[:6].reshape(2, 3) if x.ndim == 1 else x for x in inputs]
    expected = Expected(workload, inputs)
    shape = expected.answer.shape
    read_only = np.zeros(shape, np.float32)
    read_only.flags.writeable = False
    in_order = np.zeros(shape, np.float32, order="F"), " in Fortran's order"
    for out, how in (in_order, (np.zeros(shape, np.int8), ""), (read_only, "")):
        result = function(*upload(*inputs))
        wait(result)
        try:
            download(result, out=out)
        except Exception:  # of the framework, or of the recipe
            continue
        if out is read_only:
            return "download into a read-only array: no error, instead of a ValueError"
        if fault := expected.disagreement(out):
            return f"download into {out.dtype}{how}: {fault}"
    return None


def _dtype_name(array: Any) -> str:
    """float16, without what the framework puts before it. Warp's dtypes are classes."""
    dtype = array.dtype
    return dtype.__name__ if isinstance(dtype, type) else str(dtype).removeprefix("torch.")


def in_other_dtypes(array: Any) -> list[Any]:
    """An array of the same shape on the same device in each of some dtypes that no recipe accepts, made by its own
    framework: float16, and the next larger or smaller one. None of a table, and of a handle that hides its dtype, as
    engines with several processes use."""
    kind = type(array).__module__.partition(".")[0]
    if not hasattr(array, "dtype"):
        return []
    other = {"float32": "float64", "float64": "float32", "int64": "int32"}.get(_dtype_name(array))
    if kind == "torch":
        return [array.half(), *([array.to(getattr(sys.modules["torch"], other))] if other else [])]
    names = ["float16", *([other] if other else [])]
    # In these two, astype() launches a kernel: it has none for float16, and none can run on no elements.
    if kind == "pycuda":
        return [type(array)(array.shape, np.dtype(name)) for name in names]
    if kind == "pyopencl":
        return [type(array)(array.queue, array.shape, np.dtype(name)) for name in names]
    if kind in ("numba", "numba_cuda_mlir"):
        to_device = importlib.import_module(f"{kind}.cuda").to_device
        return [to_device(np.zeros(array.shape, name)) for name in names]
    if kind == "warp":
        import warp

        return [warp.zeros(array.shape, dtype=getattr(warp, name), device=array.device) for name in names]
    if kind == "cuda":  # cuda.core's views have no conversion; the same bytes stand for another number
        return [array.view(dtype=np.dtype(f"i{array.dtype.itemsize}"))]
    if not hasattr(array, "astype"):
        return []
    with warnings.catch_warnings(action="ignore"):  # of JAX, which may have no float64
        converted = [array.astype(name) for name in names]
    return [each for each in converted if each.dtype != array.dtype]
