"""cuTile's recipes without a GPU: their kernels compile for one generation, and NumPy makes the random samples."""

import io
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from seeds import fault_of_seeds

from gpu_cookbook import catalogue, machine
from gpu_cookbook.run.loader import Loader
from recipes.random_subset_mean import philox

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


@pytest.fixture
def on_host(monkeypatch):
    """The recipe of random_subset_mean, with NumPy in place of cuda.tile and CuPy: a tile is an array."""
    tile, cupy = ModuleType("cuda.tile"), ModuleType("cupy")
    grid = SimpleNamespace()

    def launch(stream, blocks, kernel, arguments):
        (grid.blocks,) = blocks
        for block in range(grid.blocks):
            grid.block = block
            kernel(*arguments)

    def store(array, index, value):
        array[index] = value

    for name in ("arange", "cos", "float64", "full", "int64", "log", "sqrt", "sum", "uint64", "where", "zeros"):
        setattr(tile, name, getattr(np, name))
    tile.kernel, tile.launch, tile.store = lambda function: function, launch, store
    tile.astype, tile.cdiv = np.ndarray.astype, lambda n, size: -(-n // size)
    tile.bid, tile.num_blocks = lambda axis: grid.block, lambda axis: grid.blocks
    tile.ScalarInt64 = tile.IndexedWithInt64 = None
    tile.Constant = {int: None}
    cupy.array, cupy.nan, cupy.empty = np.array, np.nan, np.empty
    cupy.cuda = SimpleNamespace(get_current_stream=lambda: SimpleNamespace(synchronize=lambda: None))
    monkeypatch.setitem(sys.modules, "cuda", ModuleType("cuda"))
    sys.modules["cuda"].tile = tile
    monkeypatch.setitem(sys.modules, "cuda.tile", tile)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    (recipe,) = (each for each in RECIPES if each.workload == "random_subset_mean")
    return Loader(recipe).execute()


def test_a_seed_gives_its_own_answer_or_is_refused(on_host):
    assert fault_of_seeds(on_host) is None


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (5, 9), (3, 1_030)])
def test_its_samples_are_those_of_philox(on_host, rows, columns):
    """Of which kernels/fill_normal.cu makes the same."""
    row, column = np.arange(rows, dtype=np.uint64)[:, None], np.arange(columns, dtype=np.uint64)
    words = philox((column, 0 * column, row, 0 * row), (7, 3))
    u, v = (((words[i] << 32 | words[i + 1]) >> 11) * 2.0**-53 for i in (0, 2))
    x = 10 + np.sqrt(-2 * np.log(u + 2.0**-54)) * np.cos(2 * np.pi * v)
    mean = on_host.download(on_host.random_subset_mean(rows, columns, 2, 3 * 2**32 + 7))
    assert mean == pytest.approx((x[::2, ::2] + 1).mean(), rel=1e-14)
