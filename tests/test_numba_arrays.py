"""Recipes of Numba and numba-cuda-mlir on the arrays of CuPy and PyTorch, without a GPU: on a device whose streams are
as late as CUDA allows. late_arrays.py says how; that it finds what is wrong is proved by recipes that lack a line."""

import pytest
from conftest import altered, ran

from gpu_cookbook import catalogue

RECIPES = {
    (recipe.workload, recipe.technique): recipe
    for recipe in catalogue.recipes()
    if recipe.technique.removesuffix("_tuned") in ("numba_cupy", "numba_torch", "numba_mlir_cupy")
}


def found(path):
    done = ran("late_arrays.py", path)
    return done.stdout.strip() or done.stderr


def test_each_elementwise_workload_has_one_for_each_library():
    techniques = [library + ending for library in ("numba_cupy", "numba_torch") for ending in ("", "_tuned")]
    techniques.append("numba_mlir_cupy")
    assert {*RECIPES} == {(w, t) for w in ("multiply", "increment") for t in techniques}


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=map("-".join, RECIPES))
def test_right_in_any_stream(recipe):
    assert found(recipe.path) == "right"


@pytest.mark.parametrize(
    ("workload", "technique", "old", "new", "fault"),
    [
        ("multiply", "numba_cupy", ", stream and cuda.external_stream(stream)]", "]", "current stream"),
        ("multiply", "numba_torch", ", stream and cuda.external_stream(stream)]", "]", "current stream"),
        ("increment", "numba_cupy", ", sync=False", "", "the host waits"),
        ("increment", "numba_torch", "    flat = cuda", "    kernel[1, 1](a.reshape(-1))\n    flat = cuda", "elements"),
        ("increment", "numba_torch", "    if a.numel():  #", "    if True:  #", "no blocks"),
        ("increment", "numba_torch", "np.float32(1)", "np.float32(2)", "elements are wrong"),
        ("multiply", "numba_cupy", "    if any(place != here", "    if any(place == 2", "is not refused"),
        ("multiply", "numba_torch", "    torch.cuda.synchronize()", "    pass", "elements are wrong"),
        ("multiply", "numba_cupy", "x.flags.c_contiguous", "True", "a device array"),
        ("multiply", "numba_torch_tuned", "range(i, n, THREADS)", "range(i, n - 1, THREADS)", "elements are wrong"),
        ("multiply", "numba_mlir_cupy", "THREADS](*", "THREADS, 0](*", "current stream"),
        ("increment", "numba_mlir_cupy", "THREADS](", "THREADS, 0](", "current stream"),
        ("multiply", "numba_mlir_cupy", ", cp.cuda.get_current_stream().ptr]", "]", "prepared, current stream"),
        ("increment", "numba_mlir_cupy", ", sync=False", "", "the host waits"),
        ("multiply", "numba_mlir_cupy", ", sync=False", "", "the host waits"),
        ("increment", "numba_mlir_cupy", "    if place != here:", "    if place == 2:", "is not refused"),
        ("multiply", "numba_mlir_cupy", "    if a.size:  #", "    if True:  #", "no blocks"),
        ("increment", "numba_cupy_tuned", "// (4 * THREADS)", "// (5 * THREADS)", "elements are wrong"),
    ],
)
def test_what_is_wrong_is_found(workload, technique, old, new, fault, tmp_path):
    assert fault in found(altered(RECIPES[workload, technique].path, old, new, tmp_path / workload))
