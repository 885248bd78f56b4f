"""The notebooks that are made from recipes, as Jupyter runs them, but for the installing, and with smaller sizes."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import alone
import nbformat
import pytest
from conftest import HANG

from gpu_cookbook import catalogue, machine, show
from gpu_cookbook.run import runner

ROOT = Path(__file__).parents[1]
# Every workload with a chart, in every framework that needs no GPU and makes one; one without; and one whose recipe is
# a file of its own, since that starts processes.
RUN = {
    "torch_cpu": ("matmul",),
    "pyopencl": ("multiply",),
    "jax": ("subset_mean", "convolution"),
    "numba_cpu": ("norm",),
    "warp": ("increment",),
    "multiprocessing": ("multiply",),
}
# What IPython does for %%writefile and !python.
WRITE, RUN_IT = r"\A%%writefile (\S+)\n(.*)", r"\A!python (\S+)"


@pytest.fixture
def notebooks(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    return importlib.import_module("notebooks")


def cells_of(notebooks, recipe):
    """The code, without the cell that installs."""
    written = notebooks.notebook(recipe, f"{recipe.workload}_{recipe.technique}", show.script(recipe))
    install, *cells = [each.source for each in nbformat.reads(written, 4).cells if each.cell_type == "code"]
    assert install.startswith("%pip install ")
    return cells


def as_python(cell):
    """What the cell does, without IPython."""
    if file := re.match(WRITE, cell, re.DOTALL):
        return f"import pathlib\npathlib.Path({file[1]!r}).write_text({file[2]!r}, encoding='utf-8')"
    if file := re.match(RUN_IT, cell):
        return f"import subprocess, sys\nsubprocess.run([sys.executable, {file[1]!r}], check=True)"
    return re.sub(r"^sizes = .*", "sizes = [16, 32]", cell, flags=re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("technique", RUN)
def test_notebooks_run_to_their_charts(notebooks, tmp_path, technique):
    """One after the other in one process."""
    recipes = [catalogue.find(workload, technique) for workload in RUN[technique]]
    if obstacle := machine.obstacle(recipes[0]):
        pytest.skip(obstacle)
    charts = []
    for number, recipe in enumerate(recipes):
        code = "\n\n".join(map(as_python, cells_of(notebooks, recipe)))
        if "plt.show()" in code:
            charts.append(tmp_path / f"{number}.png")
            code = code.replace("plt.show()", f"plt.savefig('{number}.png'); plt.close()")
        (tmp_path / f"{number}.py").write_text(code, encoding="utf-8")
    command = [sys.executable, "-P", "-c", alone.RUN_EACH, *(f"{number}.py" for number in range(len(recipes)))]
    environment = runner.environment(tmp_path) | {"MPLBACKEND": "Agg"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(f"{recipe.workload}, " in done.stdout for recipe in recipes)
    assert all(chart.stat().st_size > 5_000 for chart in charts)
    assert len(charts) == (technique != "multiprocessing")


def test_the_notebooks_with_a_chart_are_those_that_the_site_names(notebooks):
    named = set(re.findall(r"\w+", notebooks.CHARTS))
    for recipe in catalogue.recipes():
        chart = any("plt.show()" in cell for cell in cells_of(notebooks, recipe))
        others = recipe.technique == "numpy" or "engine" in recipe.functions
        assert chart == (recipe.workload in named and not others), recipe.path


def test_a_notebook_of_every_workload_with_a_chart_is_run(notebooks):
    assert {workload for workloads in RUN.values() for workload in workloads} >= set(notebooks.TIMED)
