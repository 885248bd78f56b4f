"""cuda.core's recipes run without a GPU, in front of a fake that does the work late and on the host."""

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import HANG

from gpu_cookbook import catalogue

RECIPES = [recipe for recipe in catalogue.recipes() if recipe.framework == "cuda.core"]
SCRIPT = Path(__file__).with_name("on_host.py")


def done(path):
    return subprocess.run([sys.executable, SCRIPT, path], capture_output=True, text=True, timeout=HANG)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: f"{recipe.workload}-{recipe.technique}")
def test_right_on_the_host(recipe):
    found = done(recipe.path)
    assert found.returncode == 0, found.stderr
    assert "sizes right" in found.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workload", "old", "new", "fault"),
    [
        ("multiply", "def wait(c):\n    stream.sync()", "def wait(c):\n    pass", "elements are wrong"),
        ("multiply", "np.int64(a.size))", "a.size)", "for long long n"),
        ("increment", "a.ptr, np.int64(a.size)", "a.ptr, np.int64(a.size - 1)", "elements are wrong"),
        ("subset_mean", "    partial.exporting_obj.fill(0, stream=stream)\n", "", "instead of"),
    ],
)
def test_the_fake_finds_what_is_wrong(workload, old, new, fault, tmp_path):
    (recipe,) = (each for each in RECIPES if each.workload == workload)
    text = recipe.path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    (tmp_path / "kernels").symlink_to(recipe.path.parents[2] / "kernels")
    (tmp_path / "recipes" / workload).mkdir(parents=True)
    changed = tmp_path / "recipes" / workload / recipe.path.name
    changed.write_text(text.replace(old, new), encoding="utf-8")
    assert fault in done(changed).stderr
