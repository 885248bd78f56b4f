"""The grid of frameworks and workloads: which result is in a cell, and what the cell says of it."""

from dataclasses import replace

from drawing import LARGE, SMALL, result
from PIL import Image

from gpu_cookbook import catalogue
from gpu_cookbook.render import speedups
from gpu_cookbook.results import completed

NUMPY = [result("numpy", size, 1.0) for size in (SMALL, LARGE)]


def of(workload, results):
    return [replace(each, workload=workload) for each in results]


def described(*results):
    *cells, absent = speedups.described(completed(results)).splitlines()
    assert absent.startswith("Not shown: ")
    return cells


def test_a_cell_has_the_plainest_recipe_at_the_largest_size_with_and_without_transfers():
    found = [
        *(result("cupy", SMALL, 0.5), result("cupy", LARGE, 0.01, transfer=4.0)),
        *(result("cupy_raw", LARGE, 0.001), result("cupy_tuned", LARGE, 0.0001)),
    ]
    assert described(*NUMPY, *found) == ["CuPy, multiply: 100 and 0.250"]


def test_the_cpu_has_its_fastest_recipe_and_is_last():
    cores = [
        replace(result(name, LARGE, time), framework="Dask", device="Xeon, 16 cores")
        for name, time in (("a", 0.5), ("bb", 0.1))
    ]
    assert described(*NUMPY, *cores, result("torch", LARGE, 0.01, framework="PyTorch")) == [
        "PyTorch, multiply: 100",
        "all CPU cores, multiply: 10.0",
    ]
    assert described(*NUMPY, *cores) == []


def test_what_does_not_count_is_left_out():
    """An engine, a recipe that rounds its factors, and a framework that is in few workloads."""
    cupy = result("cupy", LARGE, 0.01)
    found = [result("dask_cupy", LARGE, 0.1, framework="Dask"), result("a", LARGE, 0.1, framework="A", math="TF32")]
    rare = [result("b", LARGE, 0.1, framework="B")]
    many = [each for workload in ("increment", "matmul", "norm") for each in of(workload, [*NUMPY, cupy])]
    assert described(*NUMPY, cupy, *found, *rare, *many) == [
        "CuPy, increment: 100",
        "CuPy, matmul: 100",
        "CuPy, multiply: 100",
        "CuPy, norm: 100",
    ]


def test_all_are_compared_with_one_numpy():
    """Another environment has its own, which was slower at another time: a slower recipe gets no larger number."""
    there = [result("numpy", LARGE, 2.0), result("numba_mlir", LARGE, 0.02, framework="numba-cuda-mlir")]
    apart = [replace(each, environment="numba_mlir") for each in there]
    assert described(*NUMPY, *apart, result("cupy", LARGE, 0.01)) == [
        "CuPy, multiply: 100",
        "numba-cuda-mlir, multiply: 50.0",
    ]


def test_a_stale_result_is_marked():
    cupy = result("cupy", LARGE, 0.01)
    assert described(*NUMPY, replace(cupy, origin=replace(cupy.origin, stale=True))) == ["CuPy, multiply: †100"]


def test_it_says_which_workloads_are_not_in_it_and_why():
    cupy = result("cupy", LARGE, 0.01)
    others = set(catalogue.workloads()) - {"multiply", "norm", "pca"}
    found = [each for name in others for each in of(name, [*NUMPY, cupy])]
    absent = (
        "Not shown: multiply (measured in NumPy only); norm (no time of NumPy to compare with);"
        " pca (not measured on this machine)"
    )
    assert speedups.described(completed([*found, *NUMPY, *of("norm", [cupy])])).splitlines()[-1] == absent


def test_the_chart_and_the_file_say_the_same(tmp_path):
    found = completed([*NUMPY, result("cupy", LARGE, 0.01, transfer=4.0)])
    chart = speedups.speedups(found)
    assert [[entry.text for entry in row] for row in chart.table.rows] == [["CuPy", "100\n0.250"]]
    assert ">100</text>" in chart.svg and ">0.250</text>" in chart.svg
    assert "multiply 268,435,456" in chart.table.notes[0].text
    speedups.plot(found, tmp_path / "a.png", "here")
    assert Image.open(tmp_path / "a.png").info["Description"] == speedups.described(found)
    assert chart.text.endswith(f"{speedups.described(found).splitlines()[-1]}.")
    assert speedups.speedups(NUMPY) is None
