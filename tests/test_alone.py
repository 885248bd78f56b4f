"""tests/alone.py: recipes that run alone, and some that do not."""

import os
import subprocess
import sys
from pathlib import Path

import alone as running
import pytest
from conftest import HANG

from gpu_cookbook import catalogue

ROOT = Path(__file__).parents[1]
MADE_UP = '''"""Made up.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import os
import sys
import time
from pathlib import Path

import numpy as np

{does}
print("multiply, made up: 3 elements, all right")
'''


def alone(*words, **environment):
    return subprocess.run(
        [sys.executable, ROOT / "tests" / "alone.py", *words],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
        timeout=HANG,
    )


def test_recipes_run_alone():
    """Also where the project is on the path, with settings of its own."""
    recipes = [catalogue.find(workload, "numpy") for workload in ("multiply", "matmul", "norm")]
    done = alone(*(recipe.path for recipe in recipes), GPU_COOKBOOK_CACHE="/nowhere")
    first, *each, last = done.stdout.splitlines()
    assert done.returncode == 0, done.stdout + done.stderr
    assert first == "gpu_cookbook and recipes cannot be imported there."
    assert sorted(line.partition(",")[0] for line in each) == ["matmul/numpy", "multiply/numpy", "norm/numpy"]
    assert all(line.endswith(" s: ok") for line in each)
    assert last == "3 of 3 recipes run alone"


@pytest.mark.parametrize(
    ("does", "reason"),
    [
        ("from gpu_cookbook import catalogue", "ModuleNotFoundError: No module named 'gpu_cookbook'"),
        ("import recipes.multiply", "ModuleNotFoundError: No module named 'recipes'"),
        ("import numpy, gpu_cookbook.machine", "ModuleNotFoundError: No module named 'gpu_cookbook'"),
        ("assert not list(Path().glob('*.cu')) and not Path('recipes').exists(), 'beside it'", None),
        ("print(Path(__file__).with_name('beside.txt').read_text())", "No such file or directory: "),
        ("assert not [name for name in os.environ if name.startswith('GPU_COOKBOOK')], 'settings'", None),
        ("assert str(Path.cwd()) not in sys.path", None),
        ("raise SystemExit(3)", "exit code 3"),
        ("os.kill(os.getpid(), 9)", "killed by SIGKILL"),
        ("time.sleep(60)", "not done after 3 s"),
        ("print('one more')", "prints ['one more', 'multiply, made up: 3 elements, all right'] instead of one line"),
        ("sys.exit()", "prints [] instead of one line"),
    ],
)
def test_a_recipe_that_does_not_is_found(does, reason, tmp_path):
    path = tmp_path / "multiply" / "with_made_up.py"
    path.parent.mkdir()
    path.write_text(MADE_UP.format(does=does))
    (path.parent / "beside.txt").write_text("what a reader does not paste")
    done = alone(path, *(["--limit", "3"] if "sleep" in does else []), GPU_COOKBOOK_ENVIRONMENT="main")
    assert done.returncode == (reason is not None), done.stdout + done.stderr
    _, line, last = done.stdout.splitlines()
    assert line.startswith("multiply/made_up, ") and (reason or " s: ok") in line
    assert last == f"{int(reason is None)} of 1 recipes run alone"


def test_one_that_cannot_run_here_is_not_taken_for_right(tmp_path):
    path = tmp_path / "multiply" / "with_made_up.py"
    path.parent.mkdir()
    path.write_text(MADE_UP.format(does="import nosuch"))
    done = alone(path)
    assert done.returncode == 1 and "multiply/made_up: does not run here: imports nosuch: its Install" in done.stdout


@pytest.mark.parametrize(
    ("does", "reason"),
    [
        ("", None),
        ("raise SystemExit(3)", "multiply/with_second.py"),
        ("import gpu_cookbook", "ModuleNotFoundError: No module named 'gpu_cookbook'"),
        ("print('one more')", "'one more', 'multiply, made up: 3 elements, all right'] instead of one line"),
        ("import atexit; atexit.register(os._exit, 4)", "multiply/with_second.py"),
    ],
)
def test_one_of_several_in_a_process_that_is_wrong_is_found(does, reason, tmp_path):
    paths = [tmp_path / "multiply" / f"with_{name}.py" for name in ("first", "second")]
    paths[0].parent.mkdir()
    for path, text in zip(paths, ("", does), strict=True):
        path.write_text(MADE_UP.format(does=text))
    fault = running.fault([catalogue.read(path) for path in paths], tmp_path, HANG)
    assert fault is None if reason is None else reason in fault
