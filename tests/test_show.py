"""`gpu-cookbook show`: every recipe as one file that needs nothing of this project."""

import ast
import difflib
from pathlib import Path

import alone
import pytest
from conftest import HANG, recipes, starts_slowly, together

from gpu_cookbook import catalogue, machine, show

RECIPES = catalogue.recipes()
pytestmark = pytest.mark.usefixtures("kept_kernels")
every_recipe = pytest.mark.parametrize("recipe", RECIPES, ids=lambda r: f"{r.workload}-{r.technique}")


def recipe_of(folder, text, kernel):
    """The Recipe of a file with this text, beside a kernel."""
    path = folder / "recipes" / "multiply" / "with_made_up.py"
    path.parent.mkdir(parents=True)
    path.write_text('"""Made up.\n\nFramework: NumPy\nRuns on: CPU\nInstall: pip install numpy\n"""\n\n' + text)
    (folder / "kernels").mkdir()
    (folder / "kernels" / "made_up.cu").write_text(kernel)
    return catalogue.read(path)


READ = 'KERNEL = (Path(__file__).parents[2] / "kernels" / "made_up.cu").read_text()\n'


@every_recipe
def test_script_compiles_and_reads_no_file_of_ours(recipe):
    text = show.script(recipe)
    compile(text, str(recipe.path), "exec")
    assert "kernels" not in {node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)}
    assert "__file__" not in text
    assert "gpu_cookbook" not in text


@every_recipe
def test_only_the_kernel_and_the_import_of_path_differ(recipe):
    before, after = recipe.path.read_text(), show.script(recipe)
    gone = [line[2:] for line in difflib.ndiff(before.splitlines(), after.splitlines()) if line.startswith("- ")]
    readings = [line for line in before.splitlines() if '"kernels"' in line]
    assert [line for line in gone if line and line != "from pathlib import Path"] == readings
    if not readings:
        assert after == before
    most = len(before.splitlines())
    for reading in readings:
        name = reading.split('"kernels" / "')[1].split('"')[0]
        kernel = (catalogue.FOLDER.parent / "kernels" / name).read_text().rstrip("\n")
        variable = reading.split(" = ")[0]
        assert f'{variable} = r"""\n{kernel}\n"""\n' in after
        most += len(kernel.splitlines()) + 1
    assert len(after.splitlines()) <= most


SLOW = ("PyTorch", "JAX", "Warp", "PyOpenCL", "Numba", "scikit-learn")


def imports_slowly(recipe):
    return starts_slowly(recipe) or recipe.framework in SLOW


HERE = [recipe for recipe in RECIPES if not machine.obstacle(recipe)]


@pytest.mark.parametrize("recipe", recipes(lambda recipe: not imports_slowly(recipe)))
def test_script_runs_in_an_empty_folder(recipe, tmp_path):
    assert alone.fault([recipe], tmp_path, HANG) is None


@pytest.mark.slow
@pytest.mark.parametrize("mine", together(recipe for recipe in HERE if imports_slowly(recipe)))
def test_scripts_of_a_slow_framework_run_in_an_empty_folder(mine, tmp_path):
    """In one process. That each runs in its own, too, is seen by tests/test_recipes.py."""
    assert alone.fault(mine, tmp_path, HANG) is None


def test_of_dasks_log_only_a_last_heartbeat_is_left_out():
    beat = "12:00:00,000 - distributed.worker - ERROR - Failed to communicate with scheduler during heartbeat.\n"
    trace = 'Traceback (most recent call last):\n  File "tcp.py", line 1, in read\n    await x\nStreamClosedError\n'
    why = "\nThe above exception was the direct cause of the following exception:\n\n"
    assert alone.HEARTBEAT.sub("", f"{beat}{trace}{why}{trace}") == ""
    assert alone.HEARTBEAT.sub("", f"{beat}{trace}a task failed\n{trace}") == f"a task failed\n{trace}"
    assert alone.HEARTBEAT.sub("", trace) == trace


def test_kernel_stands_where_it_was_read(tmp_path):
    text = "from pathlib import Path\n\nimport numpy as np\n\n" + READ + "N = 3\n"
    kernel = 'printf("a\\n");  // 2 µs\n'
    shown = show.script(recipe_of(tmp_path, text, kernel))
    assert shown.endswith('"""\n\nimport numpy as np\n\nKERNEL = r"""\nprintf("a\\n");  // 2 µs\n"""\nN = 3\n')
    space = {}
    exec(shown, space)
    assert space["KERNEL"] == "\n" + kernel


def test_what_is_around_the_reading_stays(tmp_path):
    text = 'from pathlib import Path\nµ = f((Path(__file__).parents[2] / "kernels" / "made_up.cu").read_text(), 1)\n'
    assert show.script(recipe_of(tmp_path, text, "x\n")).endswith('\nµ = f(r"""\nx\n""", 1)\n')


def test_other_standard_imports_stay_as_they_are(tmp_path):
    text = "import os\nfrom pathlib import Path\n\nimport numpy as np\n\n" + READ
    assert '"""\n\nimport os\n\nimport numpy as np\n\nKERNEL = r"""' in show.script(recipe_of(tmp_path, text, "x\n"))


def test_path_stays_where_it_has_another_use(tmp_path):
    text = "from pathlib import Path\n\n" + READ + 'HERE = Path(".")\n'
    assert "from pathlib import Path\n" in show.script(recipe_of(tmp_path, text, "x\n"))


def test_two_kernels(tmp_path):
    shown = show.script(
        recipe_of(tmp_path, "from pathlib import Path\n\n" + READ + READ.replace("KERNEL", "TWO"), "x\n")
    )
    assert shown.endswith('\n\nKERNEL = r"""\nx\n"""\nTWO = r"""\nx\n"""\n')


def test_kernel_with_three_quotes_is_refused(tmp_path):
    with pytest.raises(catalogue.BrokenRecipe, match=r"made_up\.cu"):
        show.script(recipe_of(tmp_path, "from pathlib import Path\n\n" + READ, '/* """ */\n'))


def test_no_kernel_of_ours_has_three_quotes():
    kernels = [file for file in Path(catalogue.FOLDER.parent / "kernels").iterdir() if file.suffix in (".cu", ".cl")]
    assert kernels
    assert not [file for file in kernels if '"""' in file.read_text()]
