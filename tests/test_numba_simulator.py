"""Numba's recipes run in its CUDA simulator, so that a machine without a GPU tests them too.

Not multiply/with_numba_vectorize.py: the simulator has no ufuncs. Blocks and tiles are smaller than the recipes' own
(simulate.py), as every thread is one of Python's: what is proved is the kernels' indexing, not their sizes.
"""

import pytest
from conftest import require_right_sizes

from gpu_cookbook import catalogue

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "recipe",
    [r for r in catalogue.recipes() if r.technique in ("numba", "numba_tuned")],
    ids=lambda recipe: f"{recipe.workload}-{recipe.technique}",
)
def test_right_in_the_simulator(recipe):
    require_right_sizes("simulate.py", recipe, limit=1500)
