"""A recipe's upload, work, wait and download, and what its docstring and its workload say about them."""

import inspect
import re
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from gpu_cookbook.run import memory


def steps(module: ModuleType, workload: ModuleType) -> tuple[Callable, Callable, Callable, Callable]:
    """(upload, function, wait, download) of a recipe. random_subset_mean has no arrays to upload."""
    return (
        getattr(module, "upload", lambda *arguments: arguments),
        getattr(module, workload.__name__.rpartition(".")[2]),
        module.wait,
        module.download,
    )


def by_steps(module: ModuleType, workload: ModuleType) -> Callable:
    """Host arrays in, host result out, step by step."""
    upload, function, _, download = steps(module, workload)
    return lambda *inputs, **out: download(function(*upload(*inputs)), **out)


def round_trip(module: ModuleType, workload: ModuleType) -> Callable:
    """The same by the recipe's own round_trip, if it has one."""
    return getattr(module, "round_trip", None) or by_steps(module, workload)


def for_out(upload: Callable, values: np.ndarray) -> Any:
    """These values on the device, in float32, for out=: upload() may round them to bfloat16."""
    (array,) = upload(values)
    if memory.is_bfloat16(array):
        array = array.float() if hasattr(array, "float") else array.astype(np.float32)
    return array


def takes_out(function: Callable) -> bool:
    return "out" in inspect.signature(function).parameters


def repeats(workload: ModuleType) -> bool:
    """Whether the work changes its input, so that the answer depends on how often it was done."""
    return "calls" in inspect.signature(workload.reference).parameters


def flushes(module: ModuleType) -> bool:
    """Whether the recipe's Math line says that denormals are zero."""
    return bool(re.search("^Math:.*denormals are zero", module.__doc__ or "", re.MULTILINE))


def takes_axes(module: ModuleType, inputs: Sequence[Any]) -> bool:
    """Whether the recipe takes arrays of so many dimensions: if it does not take all, its Shapes line says which."""
    limits = re.search(r"^Shapes: (\d+) to (\d+) dimensions", module.__doc__ or "", re.MULTILINE)
    if not limits:
        return True
    least, most = map(int, limits.groups())
    return all(least <= x.ndim <= most for x in inputs if isinstance(x, np.ndarray))


def writes_into(module: ModuleType) -> bool:
    """Whether the way from host to host takes out=."""
    return takes_out(getattr(module, "round_trip", module.download))
