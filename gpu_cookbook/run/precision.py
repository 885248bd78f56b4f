"""How exact a recipe must be, as its docstring declares, and how exact its results are."""

from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from gpu_cookbook import catalogue
from gpu_cookbook.catalogue import Recipe
from gpu_cookbook.results import FACTOR_BITS, Size, mode_of
from gpu_cookbook.run.contract import steps
from gpu_cookbook.run.expected import Expected

SHARED = "shared_"  # functions of a workload for the recipes that average the samples that the tuned lane shares


def workload_for(recipe: Recipe) -> ModuleType:
    """The recipe's workload, with the reference and the tolerance that its docstring asks for: those of the samples
    that it shares, or of the arithmetic that it declares."""
    workload = catalogue.workload_module(recipe.workload)
    facts = dict(vars(workload))
    if recipe.shares_samples:
        facts |= {name.removeprefix(SHARED): facts[name] for name in list(facts) if name.startswith(SHARED)}
    if "exact_inputs" in facts and (bits := FACTOR_BITS.get(mode_of(recipe.math))):
        facts["tolerance"] = partial(workload.tolerance, factors=2.0**-bits)
        facts["exact_inputs"] = partial(workload.exact_inputs, bits=bits)
    adapted = ModuleType(workload.__name__)
    vars(adapted).update(facts)
    return adapted


def inexact(module: ModuleType, workload: ModuleType, size: Size) -> str | None:
    """What is wrong with the answers to inputs that have only one, with as many bits as the recipe says that it keeps,
    in one line, or None."""
    upload, function, wait, download = steps(module, workload)
    for what, inputs in getattr(workload, "exact_inputs", lambda size: ())(size):
        expected = workload.reference(*inputs)
        result = function(*upload(*inputs))
        wait(result)
        wrong = np.asarray(download(result)) != expected
        if wrong.any():
            return f"{what}{np.count_nonzero(wrong):,} of {wrong.size:,} elements are not exact"
    return None


def error(expected: Expected, download: Callable[[], Any]) -> float | None:
    """The largest difference of an element from the reference, divided by the workload's error_scale(); None if that
    is unknown. ``download`` gives the result, which was found to be right, and is called only if that leaves it a
    choice."""
    if not expected.answer.size:
        return None
    if expected.exact:
        return 0.0
    answer, result = expected.answer, download()
    scale = expected.workload.error_scale(answer, *expected.inputs)
    if scale is None:
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(np.nanmax(np.where(result == answer, 0, np.abs(result - answer) / scale)))
