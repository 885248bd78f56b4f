"""cuTile's kernels compile for one GPU generation, without a GPU."""

import io
import sys
from types import ModuleType

import pytest

from gpu_cookbook import catalogue, machine
from gpu_cookbook.run.loader import Loader

RECIPES = [recipe for recipe in catalogue.recipes() if recipe.framework == "cuTile"]
# Each workload's kernel, and its arguments: arrays by their dtype and number of axes, scalars, and constants.
KERNELS = {
    "multiply": ("kernel", *("float32 1",) * 3, 1024),
    "increment": ("kernel", "float32 1", 1024),
    "matmul": ("kernel", *("float32 2",) * 3, 64, 64, 32),
    "subset_mean": ("add_subset", "float64 2", "float64 1", 512),
    "random_subset_mean": ("add_subset", *("int64",) * 4, "float64 1", 512),
}
HERE = machine.installed("cuda") and machine.installed("cuda.tile")


def test_there_is_a_recipe_of_each_workload():
    assert {recipe.workload for recipe in RECIPES} == set(catalogue.workloads()) == set(KERNELS)


@pytest.mark.skipif(not HERE, reason="cuda-tile not installed")
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.workload)
def test_the_kernels_compile(recipe, monkeypatch):
    import cuda.tile as ct
    from cuda.tile import compilation

    def constraint(argument):
        if isinstance(argument, int):
            return compilation.ConstantConstraint(argument)
        dtype, *axes = argument.split()
        if not axes:
            return compilation.ScalarConstraint(getattr(ct, dtype))
        strides = (*(None,) * (int(axes[0]) - 1), 1)
        return compilation.ArrayConstraint(
            getattr(ct, dtype),
            int(axes[0]),
            index_dtype=ct.int64,
            stride_lower_bound_incl=0,
            alias_groups=(),
            may_alias_internally=False,
            stride_constant=strides,
        )

    if not machine.installed("cupy"):
        monkeypatch.setitem(sys.modules, "cupy", ModuleType("cupy"))
    kernel, *arguments = KERNELS[recipe.workload]
    convention = compilation.CallingConvention.cutile_python_v1()
    signature = compilation.KernelSignature([constraint(each) for each in arguments], convention)
    cubin = io.BytesIO()
    function = getattr(Loader(recipe).execute(), kernel)
    compilation.export_kernel(function, [signature], cubin, gpu_code="sm_90", output_format="cubin")
    assert cubin.getvalue()[:4] == b"\x7fELF"
