"""The directive {pair}: the same work in two frameworks side by side, with the lines marked that only one of them has.

    ```{pair} increment
    cupy: increment
    jax: plus_one, increment
    ```

shows these functions of the workload's recipes, each under a link to its recipe.
"""

import difflib
from pathlib import Path

from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective

RECIPES = Path(__file__).parents[1] / "recipes"
LEAST = 0.2  # of the lines: where fewer are the same, marks would say nothing


class Pair(SphinxDirective):
    required_arguments = 1
    has_content = True

    def run(self):
        (workload,) = self.arguments
        named = (line.partition(": ") for line in self.content)
        sides = [(technique, functions.split(", ")) for technique, _, functions in named]
        code = [[self.code(workload, technique, name) for name in functions] for technique, functions in sides]
        lines = ["::::{grid} 1 1 1 2", ":gutter: 2", ""]
        for (technique, functions), marked in zip(sides, marks(*code), strict=True):
            lines += [":::{grid-item}", f"{{recipe}}`{workload} {technique}`", ""]
            for name, numbers in zip(functions, marked, strict=True):
                lines += [f"```{{literalinclude}} ../recipes/{workload}/with_{technique}.py", ":language: python"]
                lines += [f":pyobject: {name}"]
                lines += [f":emphasize-lines: {','.join(map(str, numbers))}"] * bool(numbers)
                lines += ["```", ""]
            lines += [":::", ""]
        return self.parse_text_to_nodes("\n".join([*lines, "::::"]))

    def code(self, workload, technique, name):
        """The lines of a function, its decorators too."""
        path = RECIPES / workload / f"with_{technique}.py"
        self.env.note_dependency(str(path))
        _, start, end = ModuleAnalyzer.for_file(path, "").find_tags()[name]
        return path.read_text("utf-8").splitlines()[start - 1 : end]


def marks(*sides):
    """For each side, and each function of it, the numbers of the lines that the other side has not, from 1 on."""
    one, other = ([line.strip() for function in side for line in function] for side in sides)
    blocks = difflib.SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    found = []
    for place, side in enumerate(sides):
        same = {block[place] + n for block in blocks for n in range(block.size)}
        few = len(same) < LEAST * sum(map(len, side))
        begin, marked = 0, []
        for function in side:
            differ = [n for n, line in enumerate(function, 1) if line.strip() and begin + n - 1 not in same]
            marked.append([] if few else differ)
            begin += len(function)
        found.append(marked)
    return found


def setup(app):
    app.add_directive("pair", Pair)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
