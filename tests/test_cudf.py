"""group_mean's recipes for GPUs run without one: in front of a fake of cuDF that is made of pandas, of one of CuPy that
is made of NumPy, and with Polars and PyTorch on the CPU."""

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import HANG

from gpu_cookbook import catalogue, machine
from gpu_cookbook.run import runner

RECIPES = {each.technique: each for each in catalogue.of_workload("group_mean") if each.runs_on == "NVIDIA GPU"}
SCRIPT = Path(__file__).with_name("cudf_on_host.py")
NEEDS_POLARS = pytest.mark.skipif(not machine.installed("polars"), reason="polars not installed")


def done(path, folder):
    settings = runner.environment(folder)
    return subprocess.run([sys.executable, SCRIPT, path], env=settings, capture_output=True, text=True, timeout=HANG)


def marked(technique, *values):
    marks = NEEDS_POLARS if technique == "cudf_polars" else ()
    return pytest.param(technique, *values, marks=marks)


@pytest.mark.parametrize("technique", [marked(technique) for technique in RECIPES])
def test_right_on_the_host(technique, tmp_path):
    found = done(RECIPES[technique].path, tmp_path)
    assert found.returncode == 0, found.stderr
    assert "sizes right" in found.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("technique", "old", "new", "fault"),
    [
        marked("cudf", ", sort=True", "", "elements are wrong"),
        marked("cudf", ', order="C"', "", "AssertionError"),
        marked("cudf_pandas", "cudf.pandas.install()\n", "", "AttributeError"),
        marked("cudf_polars", "raise_on_fail=True", "", "AssertionError"),
        marked("cudf_polars", '.sort("key")', '.sort("value")', "elements are wrong"),
        marked("dask_cudf", '["value"].mean()', '["value"].sum()', "elements are wrong"),
        marked("cupy", "if keys.size == 0:", "if False:", "CuPy looks for the largest number"),
        marked("torch", '"mean", include_self=False', '"mean"', "elements are wrong"),
    ],
)
def test_the_fake_finds_what_is_wrong(technique, old, new, fault, tmp_path):
    text = RECIPES[technique].path.read_text(encoding="utf-8")
    assert old in text
    changed = tmp_path / "group_mean" / RECIPES[technique].path.name
    changed.parent.mkdir()
    changed.write_text(text.replace(old, new), encoding="utf-8")
    assert fault in done(changed, tmp_path).stderr
