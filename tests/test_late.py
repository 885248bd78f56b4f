"""Recipes for NVIDIA GPUs from host to host, on a device whose streams are as late as CUDA allows: what they do not
wait for is found on any machine. late.py says how; that it finds it is proved by recipes that lack one line."""

import ast
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from gpu_cookbook import catalogue
from gpu_cookbook.run import check

ROOT = Path(__file__).parents[1]
RECIPES = [
    recipe
    for recipe in catalogue.recipes()
    if recipe.technique.endswith("_transfer_tuned") and recipe.runs_on == "NVIDIA GPU"
]


def late(path):
    command = [sys.executable, Path(__file__).with_name("late.py"), path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode < 0:  # what was not waited for may write into memory that was given back
        return f"ended by {signal.Signals(-done.returncode).name}: {done.stderr}"
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def parts(node):
    """Of a syntax tree, but for what handles exceptions."""
    yield node
    for each in ast.iter_child_nodes(node):
        if not isinstance(each, ast.ExceptHandler):
            yield from parts(each)


def waits(tree):
    """The lines that wait for a stream or take the lock, but for that of wait() itself, and for those after a second
    Ctrl-C, which never comes here."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name != "wait":
            for each in parts(node):
                call = each.value if isinstance(each, ast.Expr) else None
                if isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] in ("synchronize", "wait"):
                    yield each
                if isinstance(each, ast.With) and getattr(each.items[0].context_expr, "id", None) == "lock":
                    yield each


class Without(ast.NodeTransformer):
    def __init__(self, missing):
        self.missing = missing

    def visit(self, node):
        node = super().generic_visit(node)
        if node is not self.missing:
            return node
        if isinstance(node, ast.Expr):
            return ast.Pass()
        nothing = ast.withitem(ast.Name("lock_of_nobody", ast.Load()))
        return ast.With([nothing, *node.items[1:]], node.body)


def without(recipe, number, folder):
    """The recipe without one of these lines, in a file of its own."""
    tree = ast.parse(recipe.path.read_text())
    tree = Without(list(waits(tree))[number]).visit(tree)
    text = ast.unparse(ast.fix_missing_locations(tree))
    if "lock_of_nobody" in text:
        text = text.replace("\nimport numpy", "\nfrom contextlib import nullcontext\nimport numpy", 1)
        text = text.replace("with lock_of_nobody", "with nullcontext()")
    return written(text, recipe, folder)


def written(text, recipe, folder):
    """A file with this text, beside the recipe's kernels."""
    path = folder / "recipes" / recipe.workload / recipe.path.name
    path.parent.mkdir(parents=True)
    (folder / "kernels").symlink_to(ROOT / "kernels")
    path.write_text(text)
    return path


def named(recipe):
    return f"{recipe.workload}-{recipe.technique}"


def test_there_are_recipes_of_every_framework():
    assert {r.framework for r in RECIPES} == {"CuPy", "PyCUDA", "Numba", "PyTorch"}


def test_every_docstring_says_what_page_locked_memory_stays_and_until_when():
    """late.py holds those for an NVIDIA GPU to it."""
    every = [recipe for recipe in catalogue.recipes() if recipe.technique.endswith("_transfer_tuned")]
    assert {r.framework for r in every} > {r.framework for r in RECIPES}
    for recipe in every:
        words = " ".join(ast.get_docstring(ast.parse(recipe.path.read_text())).split())
        assert re.search(r"\d+ MiB[^.]* stay [^.]*\blanes?\.cache_clear", words), named(recipe)


@pytest.mark.parametrize(
    "recipe",
    [
        pytest.param(r, id=named(r), marks=[pytest.mark.slow] if named(r) != "increment-cupy_transfer_tuned" else [])
        for r in RECIPES
    ],
)
def test_right_however_late_the_device_is(recipe):
    assert late(recipe.path) == "right"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "number"),
    [
        pytest.param(recipe, number, id=f"{named(recipe)}, line {line.lineno}")
        for recipe in RECIPES
        if recipe.workload in ("increment", "matmul")  # one of a kind is enough to prove that the device finds it
        for number, line in enumerate(waits(ast.parse(recipe.path.read_text())))
    ],
)
def test_wrong_without_waiting(recipe, number, tmp_path):
    path = without(recipe, number, tmp_path)
    assert any(late(path) != "right" for _ in range(5))  # without the lock, two threads must meet by chance


@pytest.mark.slow
@pytest.mark.parametrize(
    ("technique", "right", "wrong"),
    [
        ("cupy", "if not all(map(is_pinned, hosts))", "if not any(map(is_pinned, hosts))"),
        ("cupy", "[lane(device, number)", "[lane(device, 0)"),
        ("cupy", "out[before], z[before]", "out[block], z[block]"),
        ("torch", "return recorded, room, ", "return recorded, None, "),
        ("torch", "(torch.from_numpy(pinned(shape)) for", "(torch.from_numpy(np.empty(shape, np.float32)) for"),
        ("torch", "pinned(PIECE)) for", "room) for room in [pinned(PIECE)] for"),
        ("torch", "out[before], z[before]", "out[block], z[block]"),
        ("pycuda", "driver.Stream()", "driver.Stream(1)"),
        ("pycuda", "[inside(lane, number)", "[inside(lane, 0)"),
        ("pycuda", "with handle_lock:", "if True:"),
        ("pycuda", "            inside(wait, out)\n", ""),
        ("numba", "[lane(device, number)", "[lane(device, 0)"),
        ("numba", "launch(handle, its, u, u", "launch(handle, 0, u, u"),
        ("numba", "with handle_lock:  # to", "if True:  # to"),
        ("numba", "            cuda.synchronize()\n", ""),
    ],
)
def test_wrong_with_other_memory_of_matmul(technique, right, wrong, tmp_path):
    """Memory that a graph does not keep, that is not page-locked, or that several streams share; another stream, or
    the block that is still computed; cuBLAS whose stream another thread changes; and an error that nobody waits
    after."""
    assert late(mutant(f"matmul-{technique}", right, wrong, tmp_path)) != "right"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "right", "wrong", "found"),
    [
        ("multiply-cupy", "min(LANES, -(-a.size // PIECE))", "-(-a.size // PIECE)", "stay, not up to 6144"),
        ("matmul-cupy", "[lane(device, number)", "[lane(device, (number, len(to)))", "stay, not up to 1536"),
        ("matmul-torch", "@lru_cache(16)", "@lru_cache(None)", "stay, not up to 2464"),
        ("matmul-torch", "() and\ngraph.cache_clear();", "();", "stay after all"),
        ("subset_mean-numba", "in range(LANES)]", "in range(2 * LANES)]", "stay, not up to 3072"),
        ("increment-numba", "Up to 128 MiB", "Up to 64 MiB", "stay, not up to 512"),
        ("increment-torch", "Up to 96 MiB stay", "They stay", "does not say how many MiB stay"),
        (
            "increment-cupy",
            "(shape):\n    return empty_pinned(shape, np.float32)",
            "(shape, every=[]):\n    every.append(empty_pinned(shape, np.float32))\n    return every[-1]",
            "grows with each call",
        ),
    ],
)
def test_page_locked_memory_that_is_kept_has_a_bound_and_can_be_given_back(name, right, wrong, found, tmp_path):
    """Lanes without end, lanes or graphs of every size, a cache that nobody says how to clear, a bound that is too low
    or not stated, and memory that is kept at every call."""
    assert found in late(mutant(name, right, wrong, tmp_path))


def mutant(name, right, wrong, folder):
    """The file of a recipe in which one thing is wrong."""
    (recipe,) = (r for r in RECIPES if named(r) == f"{name}_transfer_tuned")
    text = recipe.path.read_text()
    assert text.count(right) == 1
    return written(text.replace(right, wrong), recipe, folder)


@pytest.mark.parametrize("when", ["before the call", "by the call"])
def test_of_refused_arrays_late_work_is_waited_for(when):
    """Where work is late, values that arrive before the call are not taken for what the call wrote, and what a refusal
    has written is found."""
    cl = pytest.importorskip("pyopencl")
    import pyopencl.array

    platforms = cl.get_platforms()
    if not platforms:
        pytest.skip('OpenCL has no platform here: pip install "pyopencl[pocl]"')
    context = cl.Context(platforms[0].get_devices()[:1])
    queue = cl.CommandQueue(context)
    out, ones = (pyopencl.array.to_device(queue, np.full(5, value, np.float32)) for value in (0, 1))
    queue.finish()

    def write():
        late = cl.UserEvent(context)
        cl.enqueue_copy(queue, out.base_data, ones.base_data, wait_for=[late])
        threading.Timer(0.2, late.set_status, [cl.command_execution_status.COMPLETE]).start()

    def refuse():
        if when == "by the call":
            write()
        else:
            queue.finish()
        raise ValueError("float16")

    if when == "before the call":
        write()
    fault = check._refusal("out=", ["float16"], refuse, [out])
    assert fault == (None if when == "before the call" else "out=: it was refused, and written to")
