"""cuTile's recipes without a GPU: their kernels compile for one generation, and NumPy runs them block by block."""

import ast
import contextlib
import io
import itertools
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from conftest import workloads_of_kernels
from seeds import fault_of_seeds

from gpu_cookbook import catalogue, machine
from gpu_cookbook.run import runner
from gpu_cookbook.run.check import check_prepared, check_refusals
from gpu_cookbook.run.device import Host
from gpu_cookbook.run.expected import Expected
from gpu_cookbook.run.launches import COUNTS
from gpu_cookbook.run.loader import Loader
from gpu_cookbook.run.precision import inexact, workload_for
from recipes.random_subset_mean import philox

RECIPES = [recipe for recipe in catalogue.recipes() if recipe.framework == "cuTile"]
# Each workload's kernel, and its arguments: arrays by their dtype and number of axes, scalars, and constants.
KERNELS = {
    "multiply": ("kernel", *("float32 1",) * 3, 1024),
    "increment": ("kernel", "float32 1", 1024),
    "matmul": ("kernel", *("float32 2",) * 3, 64, 64, 32),
    "subset_mean": ("add_subset", "float64 2", "float64 1", 512),
    "norm": ("add_squares", "float32 1", "float32 1", 1024),
    "random_subset_mean": ("add_subset", *("int64",) * 4, "float64 1", 512),
}
FACTORS = {"matmul_cutile_bf16": "bfloat16 2"}  # of recipes that take other arrays than their workload's
LAUNCHES = Path(__file__).parents[1] / "docs" / "launches" / "with_cutile.py"
HERE = machine.installed("cuda") and machine.installed("cuda.tile")


def test_there_is_a_recipe_of_each_workload():
    assert {recipe.workload for recipe in RECIPES} == workloads_of_kernels() == set(KERNELS)


def test_a_recipe_compiles_its_kernels_anew(monkeypatch):
    """Also where a user has named a folder for them, which counts more than XDG_CACHE_HOME."""
    monkeypatch.setenv("CUDA_TILE_CACHE_DIR", "/kept")
    assert runner.environment("folder")["CUDA_TILE_CACHE_DIR"].startswith("folder")


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: f"{recipe.workload}-{recipe.technique}")
def test_a_kernel_has_only_such_floats_as_float32_has_too(recipe):
    """cuTile rounds a float of Python's to float32, whatever it is multiplied with; ct.float64("0.1") is exact."""
    functions = [each for each in ast.parse(recipe.path.read_text("utf-8")).body if isinstance(each, ast.FunctionDef)]
    inside = [each for function in functions for each in ast.walk(function)]
    floats = [each.value for each in inside if isinstance(each, ast.Constant) and isinstance(each.value, float)]
    assert [value for value in floats if float(np.float32(value)) != value] == []
    assert [
        ast.unparse(each) for each in inside if isinstance(each, ast.Attribute) and "math." in ast.unparse(each)
    ] == []


def cubin_of(function, arguments):
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

    convention = compilation.CallingConvention.cutile_python_v1()
    signature = compilation.KernelSignature([constraint(each) for each in arguments], convention)
    cubin = io.BytesIO()
    compilation.export_kernel(function, [signature], cubin, gpu_code="sm_90", output_format="cubin")
    return cubin.getvalue()


@pytest.mark.skipif(not HERE, reason="cuda-tile not installed")
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: f"{recipe.workload}-{recipe.technique}")
def test_the_kernels_compile(recipe, monkeypatch):
    if not machine.installed("cupy"):
        monkeypatch.setitem(sys.modules, "cupy", ModuleType("cupy"))
    if not machine.installed("ml_dtypes"):
        monkeypatch.setitem(sys.modules, "ml_dtypes", SimpleNamespace(bfloat16=None))
    kernel, *arguments = KERNELS[recipe.workload]
    factors = FACTORS.get(f"{recipe.workload}_{recipe.technique}")
    arguments[:2] = [factors] * 2 if factors else arguments[:2]
    assert cubin_of(getattr(Loader(recipe).execute(), kernel), arguments)[:4] == b"\x7fELF"


@pytest.mark.skipif(not HERE, reason="cuda-tile not installed")
def test_the_kernels_of_the_launches_compile(monkeypatch):
    if not machine.installed("cupy"):
        monkeypatch.setitem(sys.modules, "cupy", ModuleType("cupy"))
    kernels = Loader(catalogue.read(LAUNCHES)).execute().kernels
    assert {*kernels} == {*COUNTS}
    for count, kernel in kernels.items():
        assert cubin_of(kernel, ["float32 1"] * count)[:4] == b"\x7fELF"


class Tile(np.ndarray):
    def astype(self, dtype, *rest, **options):
        if dtype != "tfloat32":
            return super().astype(dtype, *rest, **options)
        return ((self.view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)  # rounded


def part(index, shape):
    """Where a tile lies in an array; behind its end, less of it."""
    return tuple(slice(i * n, (i + 1) * n) for i, n in zip(index, shape, strict=True))


def load(array, index, shape, padding_mode=np.nan):
    values = array[part(index, shape)]
    assert values.size, "a tile outside the array"
    tile = np.full(shape, padding_mode, array.dtype).view(Tile)
    tile[tuple(map(slice, values.shape))] = values
    return tile


def store(array, index, value):
    target = array[part(index, value.shape or (1,))]
    assert target.size, "a tile outside the array"
    target[...] = value[tuple(map(slice, target.shape))] if value.shape else value


def gather(array, index):
    row, columns = index
    return np.where(columns < array.shape[1], array[row, np.minimum(columns, array.shape[1] - 1)], 0)


@pytest.fixture
def on_host(monkeypatch):
    """A function that gives a recipe's module, with NumPy in place of cuda.tile and CuPy: a tile is an array."""
    tile, cupy = ModuleType("cuda.tile"), ModuleType("cupy")
    grid = SimpleNamespace()
    recorded = []  # the list that a stream records into, if one does

    def on_stream(work):
        """``work``, which is recorded while a stream is captured, and else done."""

        def call(*arguments):
            if recorded:
                recorded[-1].append((work, arguments))
            else:
                work(*arguments)

        return call

    class Stream(contextlib.nullcontext):
        def __init__(self, *, non_blocking):
            assert non_blocking
            super().__init__(self)

        def begin_capture(self):
            recorded.append([])

        def end_capture(self):
            graph = recorded.pop()
            return SimpleNamespace(launch=lambda: [work(*arguments) for work, arguments in graph])

    @on_stream
    def launch(stream, blocks, kernel, arguments):
        arrays = [each for each in arguments if isinstance(each, np.ndarray)]
        assert not any(itertools.starmap(np.shares_memory, itertools.combinations(arrays, 2))), "arrays overlap"
        (grid.blocks,) = blocks
        assert 0 < grid.blocks < 2**24
        for block in range(grid.blocks):
            grid.block = block
            kernel(*arguments)

    for name in ("float32", "float64", "int32", "int64", "uint32", "uint64", "arange", "full", "zeros"):
        setattr(tile, name, getattr(np, name))
    for name in ("cos", "log", "sqrt", "sum", "where"):
        setattr(tile, name, getattr(np, name))
    tile.kernel, tile.launch = lambda function: function, launch
    tile.load, tile.store, tile.gather = load, store, gather
    tile.astype, tile.cdiv = np.ndarray.astype, lambda n, size: -(-n // size)
    tile.bitcast, tile.rsqrt, tile.static_iter = np.ndarray.view, lambda x: 1 / np.sqrt(x), iter
    tile.truediv, tile.RoundingMode = lambda x, y, rounding_mode: x / y, SimpleNamespace(APPROX=None)
    tile.bid, tile.num_blocks = lambda axis: grid.block, lambda axis: grid.blocks
    tile.num_tiles = lambda array, axis, shape: -(-array.shape[axis] // shape[axis])
    tile.mma, tile.PaddingMode = lambda a, b, c: np.float32(a) @ np.float32(b) + c, SimpleNamespace(ZERO=0)
    tile.tfloat32 = "tfloat32"
    tile.ScalarInt64 = tile.IndexedWithInt64 = None
    tile.Constant = {int: None}
    for name in ("array", "empty", "empty_like", "may_share_memory", "nan", "sqrt", "zeros"):
        setattr(cupy, name, getattr(np, name))
    cupy.asarray, cupy.asnumpy = lambda array, *, blocking: np.array(array, order="C"), np.array
    cupy.copyto = on_stream(np.copyto)
    cupy.cuda = SimpleNamespace(Stream=Stream, get_current_stream=lambda: SimpleNamespace(synchronize=lambda: None))
    monkeypatch.setitem(sys.modules, "cuda", ModuleType("cuda"))
    sys.modules["cuda"].tile = tile
    monkeypatch.setitem(sys.modules, "cuda.tile", tile)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    return lambda workload, technique="cutile": Loader(catalogue.find(workload, technique)).execute()


@pytest.mark.parametrize("name", ["multiply", "increment", "matmul", "subset_mean", "norm"])
def test_right_on_the_host(on_host, name):
    module, workload = on_host(name), catalogue.workload_module(name)
    for size in workload.EDGE_SIZES:
        if name == "subset_mean" and size[0] > 1_000:
            continue  # a row at a time takes too long here
        inputs = workload.inputs(size)
        result = module.download(getattr(module, name)(*module.upload(*inputs)))
        expected = workload.reference(*inputs)
        close = abs(result - expected) <= workload.tolerance(expected, *inputs)
        assert np.all(close | (np.isnan(result) & np.isnan(expected))), workload.label(size)
        if hasattr(module, "prepared"):
            assert check_prepared(module, workload, size, inputs, Host()) is None, workload.label(size)
    assert check_refusals(module, workload) is None


def test_arrays_that_overlap_are_copied_first(on_host):
    """cuTile leaves undefined what a kernel does with them. In multiply, out may be an input."""
    module = on_host("multiply")
    values = np.random.default_rng(0).standard_normal((2, 3_001), np.float32)
    x, y = values.copy()
    left, right = x[1:], x[:-1]
    for a, b in ((x, y), (x, x), (left, right)):
        for out in (None, a, b):
            x[:], y[:] = values
            expected = a * b
            found = module.multiply(a, b, out=out)
            assert out is None or found is out
            np.testing.assert_array_equal(found, expected)
            replay = module.prepared(a, b, out=out)
            for _ in range(2):
                expected = a * b
                np.testing.assert_array_equal(replay(), expected)


@pytest.fixture(params=[recipe for recipe in RECIPES if recipe.workload == "matmul"], ids=lambda each: each.technique)
def matmul(request, on_host):
    """(workload, recipe) of a product."""
    if request.param.technique.endswith("bf16") and not machine.installed("ml_dtypes"):
        pytest.skip("ml_dtypes is not installed")
    return workload_for(request.param), on_host("matmul", request.param.technique)


@pytest.mark.parametrize("size", [(1, 1, 1), (17, 200, 3), (0, 5, 3), (5, 0, 3), (65, 97, 130)])
def test_a_product_is_as_exact_as_its_recipe_says(matmul, size):
    workload, recipe = matmul
    inputs = workload.inputs(size)
    given = recipe.upload(*inputs)
    for out in (None, np.full((size[0], size[2]), np.nan, np.float32)):
        result = recipe.matmul(*given, out)
        assert (out is None or result is out) and result.dtype == np.float32
        assert Expected(workload, inputs).disagreement(recipe.download(result)) is None
    assert inexact(recipe, workload, size) is None


def test_products_of_wrong_arrays_are_refused(matmul):
    assert check_refusals(*reversed(matmul)) is None


def test_factors_that_overlap_are_copied_first(matmul):
    _, recipe = matmul
    (square,) = recipe.upload(np.random.default_rng(0).standard_normal((50, 50), np.float32))
    for left in (square, square[1:]):
        expected = recipe.matmul(left.copy(), square.copy())
        np.testing.assert_array_equal(recipe.matmul(left, square), expected)
        replay = recipe.prepared(left, square)
        np.testing.assert_array_equal(replay(), expected)
        square *= 2
        np.testing.assert_array_equal(replay(), 4 * expected)
        square /= 2
    with pytest.raises(ValueError, match="matmul takes"):
        recipe.matmul(square, square.copy(), out=square)


@pytest.mark.parametrize("technique", ["cutile", "cutile_tuned"])
def test_a_seed_gives_its_own_answer_or_is_refused(on_host, technique):
    assert fault_of_seeds(on_host("random_subset_mean", technique)) is None


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (5, 9), (3, 1_030)])
def test_its_samples_are_those_of_philox(on_host, rows, columns):
    """Of which kernels/fill_normal.cu makes the same."""
    row, column = np.arange(rows, dtype=np.uint64)[:, None], np.arange(columns, dtype=np.uint64)
    words = philox((column, 0 * column, row, 0 * row), (7, 3))
    u, v = (((words[i] << 32 | words[i + 1]) >> 11) * 2.0**-53 for i in (0, 2))
    x = 10 + np.sqrt(-2 * np.log(u + 2.0**-54)) * np.cos(2 * np.pi * v)
    module = on_host("random_subset_mean")
    mean = module.download(module.random_subset_mean(rows, columns, 2, 3 * 2**32 + 7))
    assert mean == pytest.approx((x[::2, ::2] + 1).mean(), rel=1e-14)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 3), (5, 9), (3, 2_051), (4, 4_098)])
def test_the_tuned_ones_are_those_that_all_tuned_recipes_share(on_host, rows, columns):
    module, workload = on_host("random_subset_mean", "cutile_tuned"), catalogue.workload_module("random_subset_mean")
    for seed in (0, 1, 3 * 2**32 + 7):
        mean = module.download(module.random_subset_mean(rows, columns, 2, seed))
        expected = workload.shared_mean(rows, columns, seed)
        assert abs(mean - expected) <= workload.shared_tolerance(expected, rows, columns, 2, seed)
