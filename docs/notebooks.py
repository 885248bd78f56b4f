"""A recipe as a notebook: what it needs, its functions, its run, and its times beside NumPy's in a chart."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import nbformat

from gpu_cookbook.catalogue import Recipe

STEPS = {  # what a recipe's functions are for, in the order in which they are called
    "upload": "copies NumPy's arrays to where the work is done.",
    "prepared": "takes the arrays once, and returns a function that does the work again in less of the CPU's time.",
    "wait": "returns when the work is done: on a GPU, a call may return long before.",
    "download": "brings the result back as NumPy's.",
}
TIME = "A first call, which may compile, is not timed. Each point is the median of ten calls."
WAIT = "A GPU works on its own, and most calls return before their result is there: the clock stops after `wait`. "
PLOT = """\
import statistics
import time

import matplotlib.pyplot as plt
import numpy as np


def seconds(call):
    times = []
    for _ in range(11):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return statistics.median(times[1:])


sizes = {sizes}
times = {{"the call alone": [], "with both transfers": [], "NumPy": []}}
for size in sizes:
    arrays = {arrays}
    there = upload(*arrays)
    times["the call alone"].append(seconds(lambda: wait({function}(*there))))
    times["with both transfers"].append(seconds(lambda: download({function}(*upload(*arrays)))))
    times["NumPy"].append(seconds(lambda: {numpy}))
for label, values in times.items():
    plt.loglog(sizes, values, "o-", label=label)
plt.xlabel("{axis}")
plt.ylabel("seconds")
plt.legend()
plt.show()"""


@dataclass(frozen=True)
class Timed:
    """How a notebook times a workload: the sizes, what they count, and NumPy's expressions."""

    sizes: tuple[int, ...]
    axis: str
    arrays: str
    numpy: str


LINE = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
NORMAL = "np.random.default_rng(0).standard_normal(({}), np.float32)"
TIMED = {
    "multiply": Timed(LINE, "elements", NORMAL.format("2, size"), "arrays[0] * arrays[1]"),
    "increment": Timed(LINE, "elements", NORMAL.format("1, size"), "arrays[0] + 1"),
    "norm": Timed(LINE, "elements", NORMAL.format("1, size"), "np.linalg.norm(arrays[0])"),
    "matmul": Timed(
        (64, 128, 256, 512, 1024), "rows and columns", NORMAL.format("2, size, size"), "arrays[0] @ arrays[1]"
    ),
    "subset_mean": Timed(
        (64, 256, 1024, 2048),
        "rows and columns",
        "np.random.default_rng(0).normal(10, 1, (1, size, size))",
        "(arrays[0][::2, ::2] + 1).mean()",
    ),
}
*FIRST, LAST = sorted(TIMED)
CHARTS = (  # which notebooks end with a chart: see _cells
    f"The notebooks of {', '.join(FIRST)} and {LAST} end with a chart of the times on your machine beside NumPy's,"
    " except NumPy's own and those that start a parallel engine."
)


def notebook(recipe: Recipe, name: str, script: str) -> str:
    """``name``: of its file, without the suffix. ``script``: the recipe as `gpu-cookbook show` prints it."""
    cells = [*_cells(recipe, name, script)]
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"  # otherwise nbformat makes a random one
    return nbformat.writes(nbformat.v4.new_notebook(cells=cells, metadata=_metadata(recipe))) + "\n"


def _metadata(recipe: Recipe) -> dict:
    python = {"display_name": "Python 3", "language": "python", "name": "python3"}
    known = {"kernelspec": python, "language_info": {"name": "python"}, "title": recipe.summary.rstrip(".")}
    # Colab gives the notebook such a machine by itself.
    return known | ({"accelerator": "GPU"} if "GPU" in recipe.runs_on else {})


def _cells(recipe: Recipe, name: str, script: str) -> Iterator[nbformat.NotebookNode]:
    text, code = nbformat.v4.new_markdown_cell, nbformat.v4.new_code_cell
    made, _, run = script.partition('\nif __name__ == "__main__":\n')
    alone = "import multiprocessing" in script  # its processes could not import a notebook's functions
    timed = None if recipe.technique == "numpy" or "engine" in recipe.functions else TIMED.get(recipe.workload)
    head, line, notes = f"# {recipe.workload} in {recipe.framework}", recipe.summary, recipe.notes
    yield text("\n\n".join(filter(None, (head, line, notes, f"Runs on: {recipe.runs_on}."))))
    yield code(f"%{recipe.install}" + (" matplotlib" if timed and "matplotlib" not in recipe.install else ""))
    functions = {name: STEPS[name] for name in STEPS if name in recipe.functions}
    steps = [f"- `{function}` {what}" for function, what in functions.items()]
    steps.insert(1 if "upload" in functions else 0, f"- `{recipe.workload}` does the work.")
    yield text("\n".join(["## The recipe", "", *steps]))
    if alone:
        yield code(f"%%writefile {name}.py\n{script.rstrip()}")
    else:
        yield code(made.rstrip())
    yield text("## Run it\n\nIt makes its input, does the work, and compares the result with NumPy's.")
    yield code(f"!python {name}.py" if alone else f'if __name__ == "__main__":\n{run.rstrip()}')
    if timed:
        yield text(f"## Time it\n\n{WAIT if recipe.runs_on != 'CPU' else ''}{TIME}")
        yield code(_plot(recipe, timed))


def _plot(recipe: Recipe, timed: Timed) -> str:
    return PLOT.format(
        sizes=re.sub(r"(\d)(?=(\d{3})+\b)", r"\1_", str(list(timed.sizes))),
        arrays=timed.arrays,
        function=recipe.workload,
        numpy=timed.numpy,
        axis=timed.axis,
    )
