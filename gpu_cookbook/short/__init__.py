"""The short form of a recipe, as `gpu-cookbook show --short` prints it: the lines that one would type in a notebook.

It is made from the recipe's own file. Each rule here leaves out something that only a caller with other arrays needs:
those of the recipe's example fit, are not empty, and there is no ``out``. The functions then are unfolded into the
example, unless they are used twice, return from their middle, or have to be found by an engine's processes. Those may
get parts that are empty, so that with an engine nothing is left out that looks for them.
"""

from gpu_cookbook import show
from gpu_cookbook.catalogue import Recipe
from gpu_cookbook.short.program import Program

ANY_SHAPE = {"multiply", "increment", "norm"}  # workloads of arrays of any shape; those of the example have one axis


def short(recipe: Recipe) -> str:
    """The recipe in few lines, under a comment that says what they leave out."""
    program = Program(show.script(recipe), recipe.workload in ANY_SHAPE)
    program.shorten()
    return program.printed()
