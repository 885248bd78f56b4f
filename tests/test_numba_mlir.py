"""numba-cuda-mlir's recipes without a GPU: in Numba's simulator, as it has none, and compiled for one generation.
Those on CuPy's arrays run in test_numba_arrays.py instead."""

import ast
from pathlib import Path

import numpy as np
import pytest
from conftest import ran, require_right_sizes, workloads_of_kernels

from gpu_cookbook import catalogue, machine
from gpu_cookbook.run.launches import COUNTS
from gpu_cookbook.run.loader import Loader
from recipes.random_subset_mean import philox

RECIPES = [recipe for recipe in catalogue.recipes() if recipe.framework == "numba-cuda-mlir"]
LAUNCHES = Path(__file__).parents[1] / "docs" / "launches" / "with_numba_mlir.py"
# Of each kernel, its arguments: arrays by their dtype and number of axes.
KERNELS = {
    "multiply": {"kernel": ("float32 1",) * 3},
    "increment": {"kernel": ("float32 1",)},
    "matmul": {"kernel": ("float32 2",) * 3},
    "subset_mean": {
        "add_subset": ("float64 2", "int64", "int64", "float64 1"),
        "mean_of_sums": ("float64 1", "int64", "float64 1"),
    },
    "norm": {"add_squares": ("float32 1",) * 2, "root": ("float32 1",) * 2},
    "random_subset_mean": {
        "add_subset": ("float64 2", "int64", "int64", "float64 1"),
        "mean_of_sums": ("float64 1", "int64", "float64 1"),
        "fill_normal": ("float64 2", "int64", "int64", "uint64"),
    },
}
TUNED = KERNELS | {
    "subset_mean": {"add_subset": ("float64 2", "float64 1"), "mean_of_sums": ("float64 1", "int64", "float64 1")},
    "random_subset_mean": {
        "add_subset": ("int64", "int64", "uint64", "float64 1"),
        "mean_of_sums": ("float64 1", "int64", "float64 1"),
    },
}


def test_there_is_a_recipe_of_each_workload():
    assert {recipe.workload for recipe in RECIPES} == workloads_of_kernels() == set(KERNELS)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: f"{recipe.workload}-{recipe.technique}")
def test_no_index_has_32_bits(recipe):
    """In versions 0.5 and 0.6, cuda.grid and cuda.gridsize multiply 32-bit integers, unlike Numba's."""
    nodes = ast.walk(ast.parse(recipe.path.read_bytes()))
    assert not {"cuda.grid", "cuda.gridsize"} & {ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)}


@pytest.mark.slow
@pytest.mark.parametrize(
    "recipe",
    [recipe for recipe in RECIPES if "cupy" not in recipe.packages],
    ids=lambda recipe: f"{recipe.workload}-{recipe.technique}",
)
def test_right_in_the_simulator(recipe):
    require_right_sizes("simulate.py", recipe)


@pytest.mark.slow
def test_its_samples_are_those_of_philox():
    """Of which kernels/fill_normal.cu makes the same."""
    row, column = np.arange(5, dtype=np.uint64)[:, None], np.arange(9, dtype=np.uint64)
    words = philox((column, 0 * column, row, 0 * row), (7, 3))
    u, v = (((words[i] << 32 | words[i + 1]) >> 11) * 2.0**-53 for i in (0, 2))
    x = 10 + np.sqrt(-2 * np.log(u + 2.0**-54)) * np.cos(2 * np.pi * v)
    call = f"module.download(module.random_subset_mean(5, 9, 2, {3 * 2**32 + 7}))"
    done = ran("simulate.py", catalogue.find("random_subset_mean", "numba_mlir").path, call)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == pytest.approx((x[::2, ::2] + 1).mean(), rel=1e-14)


def check_compiled(kernel, arguments):
    """``arguments``: the kinds of the kernel's, as in KERNELS."""
    from numba_cuda_mlir import cuda, types

    parts = (argument.split() for argument in arguments)
    kinds = ((getattr(types, dtype), *axes) for dtype, *axes in parts)
    signature = tuple(types.Array(kind, int(axes[0]), "C") if axes else kind for kind, *axes in kinds)
    assert cuda.compile_cubin(kernel.py_func, signature)[:4] == b"\x7fELF"
    ptx, _ = cuda.compile_ptx(kernel.py_func, signature, cc=(9, 0))
    assert "mad.lo.s32" not in ptx, "an index of 32 bits: beyond 2**31 elements it is that of another one"
    assert ("f64" in ptx) == any("float64" in argument for argument in arguments), "float32 must stay float32"


@pytest.fixture
def generation(monkeypatch):
    from numba_cuda_mlir import tools

    monkeypatch.setattr(tools, "_cached_cc", (9, 0))  # it would ask the GPU


@pytest.mark.parametrize(
    "recipe",
    [
        pytest.param(
            recipe,
            id=f"{recipe.workload}-{recipe.technique}",
            marks=[pytest.mark.skip(reason=reason)] if reason else [],
        )
        for recipe in RECIPES
        for reason in [machine.missing(recipe)]
    ],
)
def test_the_kernels_compile(recipe, generation):
    module = Loader(recipe).execute()
    for name, arguments in (TUNED if recipe.lane == "tuned" else KERNELS)[recipe.workload].items():
        check_compiled(getattr(module, name), arguments)


@pytest.mark.skipif(not machine.installed("numba_cuda_mlir"), reason="numba-cuda-mlir not installed")
def test_the_kernels_of_the_launches_compile(generation):
    kernels = Loader(catalogue.read(LAUNCHES)).execute().kernels
    assert {*kernels} == {*COUNTS}
    for count, kernel in kernels.items():
        check_compiled(kernel, ["float32 1"] * count)
