"""A new file is a new recipe, and nothing else is edited: a framework that the tool has never heard of, in a package of
its own with an engine of its own, is seen everywhere."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cloning import drawing_only, require_clone
from conftest import HANG, MADE_UP, git

ROOT = Path(__file__).parents[1]
PACKAGE = """
import numpy as np

def asarray(x):
    return np.array(x, np.float32, order="C")

def multiply(a, b):
    return a * b
"""
MULTIPLY = '''"""Multiply two arrays in Frobnicate: its own routine.

Framework: Frobnicate
Runs on: CPU
Install: pip install frobnicate numpy
Follows: https://example.org/frobnicate
"""

import frobnicate
import numpy as np


def upload(*arrays):
    return tuple(frobnicate.asarray(x) for x in arrays)


def multiply(a, b):
    if not (a.shape == b.shape and a.dtype == b.dtype == np.float32):
        raise ValueError(f"multiply takes float32 arrays of one shape, not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    return frobnicate.multiply(a, b)


def wait(c):
    pass


def download(c):
    return c


if __name__ == "__main__":
    a, b = np.random.default_rng(0).standard_normal((2, 1_000_003), np.float32)
    np.testing.assert_array_equal(download(multiply(*upload(a, b))), a * b)
    print("multiply, Frobnicate: 1,000,003 elements, all right")
'''
SHARED_OUT = '''"""Mean of a subset of random samples in Frobnicate: NumPy on its strands.

Framework: Frobnicate
Runs on: CPU
Install: pip install frobnicate numpy
Follows: https://example.org/frobnicate
Engine: Frobnicate, strands
"""

from contextlib import contextmanager
from operator import index

import frobnicate
import numpy as np


@contextmanager
def engine():
    yield frobnicate


def random_subset_mean(rows, columns, chunk=10_000, seed=0):
    rows, columns, chunk, seed = map(index, (rows, columns, chunk, seed))
    if rows < 0 or columns < 0 or chunk < 1:
        raise ValueError(f"random_subset_mean takes chunks of 1 or more, not {rows} × {columns} in chunks of {chunk}")
    if rows * columns == 0:
        return np.nan
    return (np.random.default_rng(seed).normal(10, 1, (rows, columns))[::2, ::2] + 1).mean()


def wait(mean):
    pass


def download(mean):
    return float(mean)


def empty_round(n, payload=None):
    for _ in range(n):
        pass


if __name__ == "__main__":
    assert abs(download(random_subset_mean(4_000, 4_000)) - 11) < 6 / 2_000
    print("random_subset_mean, Frobnicate: 4,000 × 4,000 samples, all right")
'''
PAGES = f"""
import sys
sys.path[:0] = ["docs", "benchmarks"]
import pages
{drawing_only("multiply, resident")}
pages.write()
"""


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A clone of this repository with two new files, and the package that they import beside it."""
    require_clone()
    folder = tmp_path_factory.mktemp("frobnicate")
    git(folder, "clone", "--quiet", ROOT, "clone")
    (folder / "packages").mkdir()
    (folder / "packages" / "frobnicate.py").write_text(PACKAGE)
    clone = folder / "clone"
    for name in git(ROOT, "diff", "--name-only", "HEAD").splitlines():  # while something is being changed
        if (ROOT / name).exists():
            (clone / name).write_bytes((ROOT / name).read_bytes())
    (clone / "recipes" / "multiply" / "with_frobnicate.py").write_text(MULTIPLY)
    (clone / "recipes" / "random_subset_mean" / "with_frobnicate.py").write_text(SHARED_OUT)
    # As setup.cfg maps them, without an installation.
    for name in ("recipes", "kernels"):
        (clone / "gpu_cookbook" / name).symlink_to(clone / name)
    with (clone / ".gitignore").open("a") as ignored:
        ignored.write("gpu_cookbook/recipes\ngpu_cookbook/kernels\n")
    git(clone, "add", "--all")
    git(clone, "commit", "--quiet", "--message=Two recipes in Frobnicate")
    return clone


def run(clone, *command, code=0, **variables):
    paths = os.pathsep.join([str(clone), str(clone.parent / "packages")])
    settings = {**os.environ, "PYTHONPATH": paths, "HOME": str(clone.parent), **variables}
    done = subprocess.run(
        [sys.executable, *command], cwd=clone, env=settings, capture_output=True, text=True, timeout=HANG
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def cookbook(clone, *arguments, **options):
    return run(clone, "-c", MADE_UP, *arguments, **options)


def test_list_has_it(clone):
    rows = [row for row in json.loads(cookbook(clone, "list", "--format", "json")) if row["technique"] == "frobnicate"]
    assert [(row["workload"], row["framework"], row["runs_here"]) for row in rows] == [
        ("multiply", "Frobnicate", True),
        ("random_subset_mean", "Frobnicate", True),
    ]


@pytest.mark.slow
def test_check_checks_it(clone):
    out = cookbook(clone, "check", "-t", "frobnicate")
    assert out.count("correct") == 2


@pytest.mark.slow
def test_compare_measures_it_and_tables_and_the_asv_suite_have_it(clone):
    saved = cookbook(clone, "compare", "multiply", "-t", "frobnicate", "--save", "--machine", "m", "--format", "json")
    assert {row["technique"] for row in json.loads(saved)} == {"numpy", "frobnicate"}
    shown = json.loads(cookbook(clone, "tables", "--machine", "m", "--format", "json"))
    assert "frobnicate" in {row.get("technique") for table in shown for row in table["rows"]}
    suite = json.loads((clone / "benchmarks" / "results" / "benchmarks.json").read_text())
    techniques, _ = suite["workloads.multiply.time_resident"]["params"]
    assert "'frobnicate'" in techniques


@pytest.mark.slow
def test_scale_has_it_with_what_its_engine_costs(clone):
    out = cookbook(clone, "scale", "-t", "frobnicate", "--cores", "1", "-s", "2000", "--format", "json")
    rows = [row for table in json.loads(out) for row in table["rows"]]
    assert {(row["engine"], row["mode"]) for row in rows} == {
        ("Frobnicate, strands", "strong"),
        ("Frobnicate, strands", "empty"),
    }


@pytest.mark.slow
def test_the_site_has_it_and_goes_on_without_a_broken_recipe(clone):
    cupy = clone / "recipes" / "multiply" / "with_cupy.py"
    text = cupy.read_text()
    cupy.write_text("def (")
    try:
        run(clone, "-c", PAGES)
    finally:
        cupy.write_text(text)
    page = (clone / "docs" / "recipes" / "multiply.md").read_text(encoding="utf-8")
    assert "{tab-item} Frobnicate" in page and "pip install frobnicate numpy" in page
    assert (clone / "docs" / "recipes" / "multiply" / "multiply_frobnicate.py").read_text() == MULTIPLY
    assert "{tab-item} cupy_raw" in page and "{tab-item} cupy\n" not in page


# ---- A recipe whose packages exclude those of others.


@pytest.fixture
def apart(clone):
    """The same recipe, in the environment "frob"."""
    file = clone / "recipes" / "multiply" / "with_frobnicate.py"
    file.write_text(MULTIPLY.replace("Follows:", "Environment: frob\nFollows:"))
    yield clone
    file.write_text(MULTIPLY)


def test_another_environment_is_named_and_not_missed_by_strict(apart):
    rows = {(row["workload"], row["technique"]): row for row in json.loads(cookbook(apart, "list", "--format", "json"))}
    mine = rows["multiply", "frobnicate"]
    assert (mine["environment"], mine["runs_here"]) == ("frob", False)
    assert mine["reason"] == "belongs to the environment frob: make compare ENVIRONMENT=frob"
    cookbook(apart, "check", "multiply", "-t", "frobnicate", "-t", "numpy", "--strict")


def test_an_unknown_environment_names_those_that_there_are():
    settings = {**os.environ, "GPU_COOKBOOK_ENVIRONMENT": "nosuch"}
    done = subprocess.run(
        [Path(sys.executable).with_name("gpu-cookbook"), "list"],
        env=settings,
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    assert done.returncode == 2
    there = "main, cuda_compute, cutile, modin, numba_mlir, nvmath, rapids"
    assert done.stderr == f"GPU_COOKBOOK_ENVIRONMENT: Unknown environment 'nosuch'. There are: {there}.\n"


@pytest.mark.slow
def test_in_its_environment_it_runs_with_numpy_and_the_others_do_not(apart):
    here = {"GPU_COOKBOOK_ENVIRONMENT": "frob"}
    rows = json.loads(cookbook(apart, "list", "--format", "json", **here))
    assert {row["technique"] for row in rows if row["runs_here"]} == {"numpy", "frobnicate"}
    checked = json.loads(cookbook(apart, "check", "multiply", "--strict", "--format", "json", **here))
    ran = {row["technique"]: row["environment"] for row in checked if row["status"] == "ok"}
    assert ran == {"numpy": "frob", "frobnicate": "frob"}
