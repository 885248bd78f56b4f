"""Triton's recipes run in its interpreter, so that a machine without a GPU tests them too.

Blocks and tiles are smaller than the recipes' own (interpret.py), as every program is one of Python's: what is proved
is the kernels' indexing and arithmetic, not that they compile.
"""

import importlib.metadata

import pytest
from conftest import require_right_sizes
from packaging.version import Version

from gpu_cookbook import catalogue, machine

RECIPES = [recipe for recipe in catalogue.recipes() if recipe.framework == "Triton"]
# The interpreter of Triton 3.6 fails with NumPy 2.4 at every loop: it makes an index of an array of one element.
OLD = not machine.installed("triton") or Version(importlib.metadata.version("triton")) < Version("3.7")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(OLD, reason="triton 3.7 or newer is not installed")]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: f"{recipe.workload}-{recipe.technique}")
def test_right_in_the_interpreter(recipe):
    require_right_sizes("interpret.py", recipe, limit=1500)
