"""The recipes of convolution, pca, regression and the workloads on tables for GPUs run without one: in front of a fake
of cuDF that is made of pandas, of one of CuPy that is made of NumPy, of one of cuML that is made of scikit-learn, and
with Polars, PyTorch, SciPy and scikit-learn on the CPU. So do those in Modin, in front of a fake that is made of
pandas."""

import multiprocessing
import os
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import HANG

from gpu_cookbook import catalogue, machine
from gpu_cookbook.run import runner

RECIPES = {
    (workload, each.technique): each
    for workload in ("convolution", "group_mean", "group_mean_strings", "pca", "read_parquet", "regression")
    for each in catalogue.of_workload(workload)
    if each.runs_on in ("NVIDIA GPU", "every NVIDIA GPU") or each.framework == "Modin"
}
SCRIPT = Path(__file__).with_name("cudf_on_host.py")
NEEDS = {"cudf_polars": "polars", "cuml": "sklearn", "cuml_accel": "sklearn", "sklearn_cupy": "sklearn"}


# What each process needs is imported once, which takes longer than most of what they do: they are forked from that.
START = multiprocessing.get_context("forkserver")
START.set_forkserver_preload(["pandas", "dask.dataframe", "scipy.signal", "gpu_cookbook.run.worker"])


def as_a_script(path, settings, output, errors):
    os.environ.clear()
    os.environ.update(settings)
    for number, file in enumerate((output, errors), 1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), number)
    sys.argv[1:] = [path]
    sys.path.insert(0, str(SCRIPT.parent))
    runpy.run_path(str(SCRIPT), run_name="__main__")


def done(path, folder):
    output, errors = folder / "output", folder / "errors"
    process = START.Process(target=as_a_script, args=(str(path), runner.environment(folder), output, errors))
    process.start()
    process.join(HANG)
    process.kill()  # if it hangs
    process.join()
    return SimpleNamespace(returncode=process.exitcode, stdout=output.read_text(), stderr=errors.read_text())


def marked(workload, technique, *values):
    package = NEEDS.get(technique)
    missing = package and not machine.installed(package)
    marks = pytest.mark.skipif(bool(missing), reason=f"{package} not installed")
    return pytest.param(workload, technique, *values, marks=marks)


@pytest.mark.parametrize(("workload", "technique"), [marked(*names) for names in RECIPES])
def test_right_on_the_host(workload, technique, tmp_path):
    found = done(RECIPES[workload, technique].path, tmp_path)
    assert found.returncode == 0, found.stderr
    assert "sizes right" in found.stdout


def changed(workload, technique, old, new, folder):
    """Its file, with other text in it."""
    path = RECIPES[workload, technique].path
    text = path.read_text(encoding="utf-8")
    assert old in text
    other = folder / workload / path.name
    other.parent.mkdir()
    other.write_text(text.replace(old, new), encoding="utf-8")
    return other


@pytest.mark.parametrize(
    ("workload", "rows", "few"), [("group_mean", "2**26", 40_000), ("group_mean_strings", "2**25", 400)]
)
def test_right_in_three_partitions(workload, rows, few, tmp_path):
    """At the largest of the edge sizes. None of them has as many rows as a partition."""
    found = done(changed(workload, "dask_cudf", f"ROWS = {rows}", f"ROWS = {few}", tmp_path), tmp_path)
    assert found.returncode == 0, found.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workload", "technique", "old", "new", "fault"),
    [
        marked("group_mean", "cudf", ", sort=True", "", "elements are wrong"),
        marked("group_mean", "cudf", ', order="C"', "", "AssertionError"),
        marked("group_mean", "cudf_pandas", "cudf.pandas.install()\n", "", "AttributeError"),
        marked("group_mean", "cudf_polars", "raise_on_fail=True", "", "AssertionError"),
        marked("group_mean", "cudf_polars", '.sort("key")', '.sort("value")', "elements are wrong"),
        marked("group_mean", "dask_cudf", '["value"].mean()', '["value"].sum()', "elements are wrong"),
        marked("group_mean", "dask_cuda", "uuid4().hex", '""', "the next call returns the same result again"),
        marked("group_mean", "dask_cuda", "to_table(keys[:0], values[:0])", "to_table(keys, values)", "No worker"),
        marked("group_mean", "modin", '"key")["value"]', '"key", sort=False)["value"]', "elements are wrong"),
        marked("group_mean", "modin", "        ray.init(", "        dict(", "Modin starts another engine"),
        marked("group_mean", "modin", 'CLUSTER", False', 'CLUSTER", True', "it is reached"),
        marked("group_mean", "modin", "    execute(table)", "    pass", "its parts are not in the object store yet"),
        marked("group_mean", "cupy", "if keys.size == 0:", "if False:", "CuPy looks for the largest number"),
        marked("group_mean", "torch", '"mean", include_self=False', '"mean"', "elements are wrong"),
        marked("group_mean_strings", "cudf", ", sort=True", "", "elements are wrong"),
        marked("group_mean_strings", "cudf", ".str.zfill(20)", "", "elements are wrong"),
        marked("group_mean_strings", "cudf_polars", '.sort("key")', '.sort("value")', "elements are wrong"),
        marked("group_mean_strings", "dask_cudf", ".str.zfill(20)", "", "elements are wrong"),
        marked("group_mean_strings", "dask_cuda", '["value"].mean()', '["value"].sum()', "elements are wrong"),
        marked("group_mean_strings", "modin", ".str.zfill(20)", "", "elements are wrong"),
        marked("read_parquet", "cudf", '[table["key"]', '[table["value"]', "elements are wrong"),
        marked("convolution", "cupy", 'mode="full"', 'mode="same"', "the result holds 1 numbers instead of 3"),
        marked("convolution", "scipy_cupy", 'mode="full"', 'mode="same"', "the result holds 1 numbers instead of 3"),
        marked("pca", "cuml", 'svd_solver="full"', 'svd_solver="jacobi"', "jacobi is not exact"),
        marked("pca", "cuml_accel", "cuml.accel.install()\n", "", "KeyError: 'PCA.fit'"),
        marked("pca", "cuml_accel", "quiet=True", "", "cuml.accel prints its profile"),
        marked("regression", "cuml", "if len(samples) == 1:", "if False:", "a minimum of 2 is required"),
        marked("regression", "cuml_accel", "if len(samples) == 1:", "if False:", "a minimum of 2 is required"),
        marked("regression", "cuml_accel", "alpha=ALPHA", "alpha=ALPHA, positive=True", "left Ridge to scikit-learn"),
        marked("pca", "sklearn_cupy", ', svd_solver="covariance_eigh"', "", "AssertionError"),
        marked("regression", "sklearn_cupy", ', solver="svd"', "", "AssertionError"),
    ],
)
def test_the_fake_finds_what_is_wrong(workload, technique, old, new, fault, tmp_path):
    assert fault in done(changed(workload, technique, old, new, tmp_path), tmp_path).stderr
