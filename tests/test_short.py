"""`gpu-cookbook show --short`: the lines of each recipe that one would type in a notebook."""

import ast
import re
import subprocess
import sys
from collections import defaultdict
from functools import cache

import alone
import pytest
from conftest import HANG, invoked, ran, starts_slowly, together

from gpu_cookbook import catalogue, machine, show
from gpu_cookbook.short import short as shorten
from gpu_cookbook.short.source import WIDTH

short = cache(shorten)
RECIPES = catalogue.recipes()
pytestmark = pytest.mark.usefixtures("kept_kernels")
every_recipe = pytest.mark.parametrize("recipe", RECIPES, ids=lambda r: f"{r.workload}-{r.technique}")
MOST = 15  # lines of an idiomatic elementwise recipe
LONGER = {  # technique -> why its elementwise recipes take more
    **dict.fromkeys(("cupy_raw", "pycuda", "pyopencl"), "its kernel in C alone takes 8 lines or more"),
    "cuda_core": "it has no arrays, besides a kernel in C",
    "triton": "four imports, and a kernel that masks what is outside",
    "cupy_jit": "its kernel spells out a 64-bit index",
    **dict.fromkeys(("numba_cupy", "numba_torch"), "it asks the other library for its stream"),
    **dict.fromkeys(("dask_cuda", "multiprocessing", "ray"), "it starts processes, and gives them their parts"),
    "joblib_cuda": "it gives a part to each GPU",
}
(ONLY_PREPARED,) = catalogue.choose(["matmul"], ["torch_tuned"])  # its kernel is in prepared() only, which is left out
GOLDEN = """\
# Left out: shape and dtype checks, conversions, out=, page-locked arrays.
import cupy as cp
import numpy as np

a, b = np.random.default_rng(0).standard_normal((2, 1_000_003), np.float32)
d_a, d_b = cp.asarray(a), cp.asarray(b)
d_c = cp.multiply(d_a, d_b)
c = cp.asnumpy(d_c)
np.testing.assert_array_equal(c, a * b)
"""


def lines_of(text):
    """How many lines there are, without the comment at the top and empty ones."""
    return sum(bool(line.strip()) for line in text.splitlines()) - 1


def runs_long(recipe):
    """Of PyOpenCL and Warp, which compile all kernels anew in an empty home folder, two are enough every time."""
    compiles = recipe.framework in ("PyOpenCL", "Warp") and recipe.workload not in ("multiply", "norm")
    imports = recipe.framework == "scikit-learn"
    return starts_slowly(recipe) or recipe.workload == "training" or recipe.lane == "tuned" or compiles or imports


def run(folder, texts):
    """What went wrong in running these scripts, one after the other, where nothing of this project is."""
    home, there = folder / "home", folder / "empty"
    home.mkdir(parents=True)
    there.mkdir()
    for name, text in texts.items():
        (there / f"{name}.py").write_text(text, encoding="utf-8")
    command = [sys.executable, "-P", "-c", alone.RUN_EACH, *(f"{name}.py" for name in texts)]
    done = subprocess.run(command, cwd=there, env=alone.environment(home), capture_output=True, text=True, timeout=HANG)
    return f"{done.stdout}\n{done.stderr}" if done.returncode else None


def name_of(recipe):
    return f"{recipe.workload}_{recipe.technique}"


HERE = [recipe for recipe in RECIPES if not machine.obstacle(recipe)]
SOON = [recipe for recipe in HERE if not runs_long(recipe)]
LATER = [recipe for recipe in HERE if runs_long(recipe)]


@pytest.mark.parametrize("recipes", together(SOON))
@pytest.mark.slow
def test_short_forms_run_in_an_empty_folder(recipes, tmp_path):
    assert run(tmp_path, {name_of(each): short(each) for each in recipes}) is None


@pytest.mark.slow
@pytest.mark.parametrize("recipes", together(LATER))
def test_short_forms_that_take_longer_run_in_an_empty_folder(recipes, tmp_path):
    assert run(tmp_path, {name_of(each): short(each) for each in recipes}) is None


def test_a_wrong_short_form_fails(tmp_path):
    (recipe,) = catalogue.choose(["multiply"], ["numpy"])
    wrong = short(recipe).replace("np.multiply", "np.add")
    assert wrong != short(recipe)
    assert "AssertionError" in run(tmp_path, {"wrong": wrong})


@pytest.mark.slow
def test_short_forms_use_no_name_that_they_do_not_define(tmp_path):
    for recipe in RECIPES:
        (tmp_path / f"{name_of(recipe)}.py").write_text(short(recipe), encoding="utf-8")
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select", "F821,F811"]
    done = subprocess.run([*ruff, "--output-format", "concise", tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@every_recipe
def test_short_form_has_the_work_and_its_comparison(recipe):
    text, whole = short(recipe), show.script(recipe)
    tree = ast.parse(text)
    first, *rest = text.splitlines()
    assert first.startswith("# Left out: ") and first.endswith(".")
    kernels = [catalogue.kernel_text(recipe.path, name) for name in recipe.kernels]
    if recipe == ONLY_PREPARED:
        kernels.clear()
    assert all(kernel.rstrip() in text for kernel in kernels)
    theirs = {line for kernel in kernels for line in kernel.splitlines()}
    assert [line for line in (first, *rest) if len(line) > WIDTH and line not in theirs] == []
    end = tree.body[-1].body[-1] if isinstance(tree.body[-1], ast.If) else tree.body[-1]
    assert "assert" in ast.unparse(end)
    assert lines_of(text) < lines_of(whole)
    assert not any(name in text for name in ("__file__", "gpu_cookbook", "# noqa"))
    assert not re.search(r"\*\((\w+, )+\w+\)", text), "names in a tuple with a star, where an argument each would do"
    assert not any(isinstance(node, ast.Pass) for node in tree.body)


def called(node):
    """The last name of what is called."""
    match node.func:
        case ast.Attribute(attr=name) | ast.Name(name) | ast.Subscript(ast.Name(name)):
            return name


def calls_in(tree):
    """name -> the calls to it."""
    found = defaultdict(list)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            found[called(node)].append(node)
    return found


def has_star(call):
    return any(isinstance(each, ast.Starred) for each in call.args)


def misplaced(call, originals):
    """Whether it has fewer or more arguments than it had, but for an ``out`` at the end."""
    if has_star(call) or any(map(has_star, originals)):
        return False
    counts = {len(each.args) for each in originals}
    without_out = {len(each.args) - 1 for each in originals if each.args and ast.unparse(each.args[-1]) == "out"}
    return len(call.args) not in counts | without_out


def test_a_call_keeps_its_arguments_in_their_places():
    found = []
    for recipe in RECIPES:
        tree = ast.parse(show.script(recipe))
        own = {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}  # may lack parameters now
        whole = calls_in(tree)
        for name, calls in calls_in(ast.parse(short(recipe))).items():
            others = [each for each in calls if not (isinstance(each.func, ast.Name) and name in own)]
            found += [(name_of(recipe), ast.unparse(each)) for each in others if misplaced(each, whole[name])]
    assert found == []


def effects_of(nodes):
    """What statements do besides giving a value a name: what they call, or change in place."""
    for node in (part for each in nodes for part in ast.walk(each)):
        match node:
            case ast.Expr(ast.Call() as call):
                yield called(call) or ast.unparse(call.func)
            case ast.AugAssign():
                yield "+="
            case ast.Assign([ast.Subscript()]):
                yield "[]="


def reached(tree):
    """The statements of a file without functions that nothing calls."""
    functions = {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)}
    found = [each for each in tree.body if not isinstance(each, ast.FunctionDef)]
    for node in found:
        names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
        found += [functions.pop(name) for name in names & functions.keys()]
    return found


def test_what_a_statement_does_is_left_out_only_where_an_example_needs_none_of_it():
    """Whether ``out`` is filled, and a product of no columns and no rows; and the print at the end."""
    needless = {"print", "copy", "copy_", "copyto", "fill"}
    found = {}
    for recipe in RECIPES:
        whole = ast.parse(show.script(recipe))
        own = {each.name for each in whole.body if isinstance(each, ast.FunctionDef)}
        lost = {*effects_of(reached(whole))} - {*effects_of([ast.parse(short(recipe))])} - own - needless
        found |= {name_of(recipe): lost} if lost else {}
    assert found == {"increment_torch_cpu": {"add"}, "matmul_numba_tuned": {"[]="}}


def test_a_list_that_is_filled_has_a_name():
    for recipe in RECIPES:
        named = {ast.unparse(each) for each in ast.walk(ast.parse(show.script(recipe))) if isinstance(each, ast.Call)}
        for node in ast.walk(ast.parse(short(recipe))):
            if isinstance(node, ast.Call) and ast.unparse(node) not in named:
                receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
                literals = [each for each in (receiver, *node.args) if isinstance(each, ast.List | ast.Dict)]
                assert "[]" not in map(ast.unparse, literals) and receiver not in literals, ast.unparse(node)


def test_an_engines_process_may_get_nothing():
    text = shortened("random_subset_mean", "torch_distributed_tuned")
    assert "    if partial.size:  # not more GPUs than rows\n        add_subset(" in text


def test_no_array_outlives_the_context_that_its_pool_needs():
    """As globals, a script's arrays last longer than what PyCUDA does when Python ends: the process would be killed."""
    for recipe in RECIPES:
        assert recipe.framework != "PyCUDA" or "allocate" not in short(recipe)


ON_HOST = [  # late/ and fake_cuda_core.py have what these need
    recipe
    for recipe in RECIPES
    if recipe.framework == "cuda.core"
    or recipe.framework in ("CuPy", "PyCUDA", "Numba", "PyTorch")
    and (
        recipe.technique.endswith("_transfer_tuned")
        or recipe.workload in ("multiply", "increment", "matmul", "subset_mean")
        and recipe.technique in ("cupy", "cupy_tuned", "pycuda_tuned", "pycuda_blocked_tuned")
    )
]


@pytest.mark.parametrize("framework", sorted({recipe.framework for recipe in ON_HOST}))
@pytest.mark.slow
def test_short_forms_for_a_gpu_are_right_on_the_host(framework):
    paths = [recipe.path for recipe in ON_HOST if recipe.framework == framework]
    done = ran("short_on_host.py", *paths)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "recipe",
    [each for each in RECIPES if each.workload in ("multiply", "increment") and each.lane == "idiomatic"],
    ids=name_of,
)
def test_an_elementwise_recipe_is_a_few_lines(recipe):
    assert (lines_of(short(recipe)) > MOST) == (recipe.technique in LONGER)


def test_it_reads_as_one_would_type_it():
    assert invoked("show", "multiply", "cupy", "--short")[0] == GOLDEN


def shortened(workload, technique):
    (recipe,) = catalogue.choose([workload], [technique])
    return short(recipe)


def test_a_conversion_stays_where_the_example_needs_it():
    assert "np.asarray(weights, np.float32, order" in shortened("training", "numpy")
    assert "np.asarray" not in shortened("regression", "numpy")
    assert "index" not in shortened("random_subset_mean", "numpy")


def test_a_call_in_a_condition_stays_where_it_is_not_a_check_of_arguments():
    text = shortened("matmul", "numba_transfer_tuned")
    assert "cublasCreate_v2" in text and "cublasSgemm" in text and "raise RuntimeError" in text


def test_what_is_imported_or_called_for_its_effect_stays():
    assert "import cudf.pandas\n\ncudf.pandas.install()\n" in shortened("group_mean", "cudf_pandas")
    assert "import autoprimaryctx, gpuarray" in shortened("matmul", "pycuda")
    assert "import pyopencl.array\n" in shortened("multiply", "pyopencl")
    assert "\ndevice.set_current()\n" in shortened("multiply", "cuda_core")
    assert "\nfor kernel in kernels.values():\n" in shortened("matmul", "pyopencl_tuned")


def test_a_pool_of_processes_keeps_its_functions_and_its_guard():
    text = shortened("random_subset_mean", "multiprocessing")
    assert 'if __name__ == "__main__":\n    with engine():\n' in text and "\ndef chunk_sum(" in text
