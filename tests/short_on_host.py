"""Short forms of recipes for a GPU, on the host: ``python short_on_host.py PATH …``, all of one framework. That is the
one of late/ or fake_cuda_core.py, and the examples and their pieces have few elements. It prints each recipe's name."""

import ast
import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).with_name("late")))

import fake_cublas  # noqa: E402
import fake_cuda_core  # noqa: E402

from gpu_cookbook import catalogue  # noqa: E402
from gpu_cookbook.short import short  # noqa: E402

FAKES = {"CuPy": "fake_cupy", "PyCUDA": "fake_pycuda", "Numba": "fake_numba", "PyTorch": "fake_torch"}
# Of the late frameworks, as in late.py: each thread of a kernel may be one of Python's. The examples have many pieces.
SMALLER = {"PIECE": 32, "THREADS": 4, "BLOCKS": 2, "multiprocessors": 2}
SIZES = {
    "5_000_011": "955",
    "1_000_003": "955",
    "4_003, 2_003": "31, 30",
    "2_003, 503": "30, 31",
    "3_333, 3_001": "61, 61",
}


def parts(text):
    """The functions and constants, and the example, which begins with an array of random numbers or their count."""
    lines = text.splitlines(keepends=True)
    start = next(
        node.lineno - 1
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign) and any(each in ast.unparse(node) for each in ("np.random", "4000"))
    )
    return "".join(lines[:start]), "".join(lines[start:])


recipes = [catalogue.read(Path(path)) for path in sys.argv[1:]]
(framework,) = {recipe.framework for recipe in recipes}
if framework == "cuda.core":
    SMALLER, SIZES = {}, {}
    fake_cuda_core.install()
    fake_cublas.install(fake_cuda_core, fake_cuda_core.legacy)
else:
    importlib.import_module(FAKES[framework]).install()
for recipe in recipes:
    print(recipe.workload, recipe.technique, flush=True)
    beginning, example = parts(short(recipe))
    for old, new in SIZES.items():
        example = example.replace(old, new)
    names = {}
    exec(beginning, names)
    names |= {name: n for name, n in SMALLER.items() if isinstance(names.get(name), int)}
    exec(example, names)
