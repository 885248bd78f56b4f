"""Tuned matrix products are right around the edges of their tiles, whichever of their kernels a size would take."""

import gc
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import product

import numpy as np
import pytest
from conftest import recipes

from gpu_cookbook import catalogue
from gpu_cookbook.run.contract import steps
from gpu_cookbook.run.expected import Expected
from gpu_cookbook.run.worker import Loader

MATMUL = catalogue.workload_module("matmul")
TUNED = [lambda recipe: recipe.workload == "matmul" and recipe.lane == "tuned"]
OPENCL = [*TUNED, lambda recipe: recipe.technique == "pyopencl_tuned"]
PREPARED = [*TUNED, lambda recipe: "\ndef prepared(" in recipe.path.read_text(encoding="utf-8")]
INTO = [*TUNED, lambda recipe: "\ndef matmul(a, b, out=None)" in recipe.path.read_text(encoding="utf-8")]
FROM_HOST = [*TUNED, lambda recipe: "\ndef round_trip(" in recipe.path.read_text(encoding="utf-8")]

# Tiles have 16, 20, 64 or 128 rows or columns, a load has four elements, and a small kernel takes K up to 256.
EDGES = (1, 2, 3, 4, 5, 15, 16, 17, 19, 20, 21, 63, 64, 65, 127, 128, 129, 255, 256, 257)
SIZES = [
    *((edge, 37, 18) for edge in EDGES),
    *((23, edge, 18) for edge in EDGES),
    *((23, 37, edge) for edge in EDGES),
    *((edge, edge, edge) for edge in EDGES),
    *((130, edge, 132) for edge in EDGES),
    *product((0, 1, 20, 21), (0,), (0, 1, 16, 17)),
    *product((0, 20, 200), (4, 200), (0, 16, 200)),
    *((1, 1_003, 1), (1_003, 1, 1), (1, 1, 1_003), (3, 1_024, 5), (300, 300, 4), (4, 300, 300), (200, 200, 200)),
]


@cache
def module_of(recipe):
    return Loader(recipe).execute()


def fault(recipe, a, b, **options):
    upload, matmul, wait, download = steps(module_of(recipe), MATMUL)
    c = matmul(*upload(a, b), **{name: upload(array)[0] for name, array in options.items()})
    wait(c)
    return Expected(MATMUL, (a, b)).disagreement(download(c))


@pytest.mark.parametrize("recipe", recipes(*TUNED))
def test_right_around_the_edges_of_tiles(recipe):
    for size in SIZES:
        assert fault(recipe, *MATMUL.inputs(size)) is None, size


@pytest.mark.parametrize("recipe", recipes(*TUNED))
def test_right_for_parts_of_larger_arrays(recipe):
    a, b = MATMUL.inputs((300, 300, 300))
    for top, left, (m, k, n) in product((0, 1), (0, 1, 2, 3, 4), ((1, 3, 4), (20, 256, 16), (129, 257, 130))):
        part = a[top : top + m, left : left + k], b[top : top + k, left : left + n]
        assert fault(recipe, *part) is None, (top, left, m, k, n)


@pytest.mark.parametrize("recipe", recipes(*INTO))
def test_out_is_overwritten_whatever_it_holds(recipe):
    for m, k, n in ((21, 0, 17), (20, 256, 16), (200, 200, 200), (129, 257, 131)):
        a, b = MATMUL.inputs((m, k, n))
        assert fault(recipe, a, b, out=np.full((m, n), np.nan, np.float32)) is None, (m, k, n)


@pytest.mark.parametrize("recipe", recipes(*TUNED))
def test_nan_and_infinity_stay_in_their_row_and_column(recipe):
    """Zeros beyond the edge of a tile, times infinity, would be NaN."""
    for size in ((21, 37, 18), (130, 37, 131), (130, 300, 131)):
        a, b = MATMUL.inputs(size)
        a[-1, -1], b[0, 0] = np.inf, np.nan
        with np.errstate(invalid="ignore"):
            assert fault(recipe, a, b) is None, size


@pytest.mark.parametrize("recipe", recipes(*OPENCL))
def test_every_kernel_keeps_inside_the_arrays(recipe, monkeypatch):
    """Each kernel at the sizes that another one would take too. What lies behind a and b is NaN, which any use of it
    would spread; what lies behind c stays as it was."""
    module = module_of(recipe)
    arrays = module.cl.array

    def part(array, filler):
        buffer = arrays.to_device(module.queue, np.append(array.ravel(), np.full(5_000, filler, np.float32)))
        return arrays.Array(module.queue, array.shape, np.float32, data=buffer.base_data), buffer

    for tile, (m, k, n) in product(module.kernels, SIZES):
        if 0 in (m, n) or (tile == module.SMALL and k > module.MOST_K):
            continue
        a, b = MATMUL.inputs((m, k, n))
        out, buffer = part(np.full((m, n), np.nan, np.float32), -7)
        monkeypatch.setattr(module, "tile_for", lambda *size, tile=tile: tile)
        c = module.matmul(part(a, np.nan)[0], part(b, np.nan)[0], out)
        assert Expected(MATMUL, (a, b)).disagreement(module.download(c)) is None, (tile, m, k, n)
        assert np.all(module.download(buffer)[m * n :] == -7), (tile, m, k, n)


@pytest.mark.parametrize("recipe", recipes(*OPENCL))
def test_a_kernel_for_each_kind_of_size(recipe, monkeypatch):
    module = module_of(recipe)
    monkeypatch.setattr(module, "units", 132)
    sizes = (200, 200, 200), (200, 256, 200), (200, 257, 200), (1_000,) * 3, (4_096,) * 3, (100_003, 1, 1)
    tiles = [module.tile_for(*size) for size in sizes]
    assert tiles == [module.SMALL, module.SMALL, module.MIDDLE, module.MIDDLE, module.LARGE, module.LARGE]
    assert module.tiles(module.SMALL, 200, 200) == 130
    assert module.tiles(module.LARGE, 2**20, 2**20) == 2**26


@pytest.mark.parametrize("recipe", recipes(*PREPARED))
def test_prepared_multiplies_what_its_arrays_hold(recipe):
    module = module_of(recipe)
    for m, k, n in ((1, 1, 1), (0, 5, 3), (5, 0, 3), (17, 200, 3), (200, 200, 200), (300, 300, 300)):
        a, b = MATMUL.inputs((m, k, n))
        x, y = module.upload(a, b)
        multiply = module.prepared(x, y)
        c = multiply()
        module.wait(c)
        assert Expected(MATMUL, (a, b)).disagreement(module.download(c)) is None, (m, k, n)

        changed, _ = MATMUL.inputs((m, k, n), seed=1)
        if changed.size:
            module.matmul(*module.upload(changed, np.eye(k)), out=x)
        del x, y
        gc.collect()
        assert multiply() is c
        module.wait(c)
        assert Expected(MATMUL, (changed, b)).disagreement(module.download(c)) is None, (m, k, n)


@pytest.mark.parametrize("recipe", recipes(*PREPARED))
def test_prepared_writes_into_out(recipe):
    module = module_of(recipe)
    for m, k, n in ((0, 5, 3), (5, 0, 3), (20, 256, 16), (300, 300, 300)):
        a, b = MATMUL.inputs((m, k, n))
        (out,) = module.upload(np.full((m, n), np.nan, np.float32))
        c = module.prepared(*module.upload(a, b), out)()
        module.wait(c)
        assert c is out
        assert Expected(MATMUL, (a, b)).disagreement(module.download(out)) is None, (m, k, n)


@pytest.mark.parametrize("recipe", recipes(*PREPARED))
def test_prepared_refuses_what_matmul_refuses(recipe):
    module = module_of(recipe)
    for a, b in MATMUL.wrong_inputs():
        with pytest.raises(ValueError, match="matmul takes float32 arrays of M×K and K×N"):
            module.prepared(*module.upload(a, b))
    a, b = module.upload(*MATMUL.inputs((5, 5, 5)))
    with pytest.raises(ValueError, match="neither a nor b"):
        module.prepared(a, b, a)
    with pytest.raises(ValueError, match="into .*float32"):
        module.prepared(a, b, *module.upload(np.zeros((5, 7))))


@pytest.mark.parametrize("recipe", recipes(*FROM_HOST))
def test_a_round_trip_is_right_for_every_kind_of_memory(recipe):
    """Each factor and the result in page-locked memory or not; some begin within a larger array."""
    module = module_of(recipe)

    def page_locked(array):
        larger = module.pinned((array.shape[0] + 1, array.shape[1]))
        larger[1:] = array
        return larger[1:]

    sizes = (1, 1, 1), (17, 200, 3), (200, 3, 199), (200, 200, 200), (5, 0, 3), (0, 5, 3), (20, 257, 16), (3, 1, 70_001)
    for m, k, n in sizes:
        for kinds in product((np.array, page_locked), repeat=3):
            a, b = MATMUL.inputs((m, k, n))
            expected, (x, y) = Expected(MATMUL, (a, b)), (kind(each) for kind, each in zip(kinds, (a, b), strict=False))
            out = kinds[2](np.full((m, n), np.nan, np.float32))
            assert module.round_trip(x, y, out=out) is out
            for result in (out, module.round_trip(x, y)):
                assert expected.disagreement(result) is None, (m, k, n, kinds)


@pytest.mark.parametrize("recipe", recipes(*FROM_HOST))
def test_results_belong_to_the_caller(recipe):
    """Results that are kept, of which only a part is kept, and that are given up, from several threads."""
    module = module_of(recipe)
    sizes = [(size, 200, 200 - size) for size in (1, 20, 40) for _ in range(20)]
    inputs = [MATMUL.inputs(size, seed) for seed, size in enumerate(sizes)]

    def last_row(arrays):
        module.round_trip(*arrays)
        return module.round_trip(*arrays)[-1:]

    with ThreadPoolExecutor(4) as pool:
        rows, results = (
            list(pool.map(last_row, inputs)),
            list(pool.map(lambda arrays: module.round_trip(*arrays), inputs)),
        )
    for given, row, result in zip(inputs, rows, results, strict=True):
        assert Expected(MATMUL, given).disagreement(result) is None
        np.testing.assert_array_equal(row, result[-1:])


@pytest.mark.parametrize("recipe", recipes(*FROM_HOST))
def test_a_round_trip_refuses_an_out_that_does_not_fit(recipe):
    module = module_of(recipe)
    for size in ((200, 200, 200), (300, 300, 300)):
        a, b = MATMUL.inputs(size)
        shape = a.shape
        fixed, bytes_ = np.zeros(shape, np.float32), np.zeros(a.nbytes + 1, np.uint8)
        fixed.flags.writeable = False
        misaligned = bytes_[1:].view(np.float32).reshape(shape)
        wrong = np.zeros((5, 7), np.float32), np.zeros(shape), np.zeros(shape, np.float32, order="F"), fixed, misaligned
        for out in (*wrong, np.zeros((*shape, 2), np.float32)[..., 0]):
            with pytest.raises(ValueError, match=rf"not {out.dtype} \({out.shape[0]}, {out.shape[1]}\)"):
                module.round_trip(a, b, out=out)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", recipes(*FROM_HOST))
def test_out_may_overlap_a_factor(recipe):
    module = module_of(recipe)
    for n, rows in product((40, 1_100), (-1, 0, 1)):
        for memory in (np.empty((n + 2, n), np.float32), module.pinned((n + 2, n))):
            memory[:], other = MATMUL.inputs((n + 2, n, n))
            given, out = memory[1:-1], memory[1 + rows : 1 + rows + n]
            expected = Expected(MATMUL, (given.copy(), other))
            assert expected.disagreement(module.round_trip(given, other, out=out)) is None, (n, rows)
            given[:] = expected.inputs[0]
            expected = Expected(MATMUL, (other, given.copy()))
            assert expected.disagreement(module.round_trip(other, given, out=out)) is None, (n, rows)
