"""A recipe as one file that stands alone: what `gpu-cookbook show` prints."""

import ast
from pathlib import Path

from gpu_cookbook.catalogue import Recipe, kernel_readings


class CannotInline(ValueError):
    """A kernel that cannot be written into a Python file as it is."""


def script(recipe: Recipe) -> str:
    """The recipe's text with each kernel that it reads from kernels/ in the place of the reading. Nothing else
    changes, but for the import of Path, which goes when nothing needs it any more."""
    text = recipe.path.read_text(encoding="utf-8")
    tree = ast.parse(text, str(recipe.path))
    readings = kernel_readings(tree)
    changes: list[tuple[ast.expr | ast.stmt, str | None]] = [
        (node, _literal(_kernel(name, recipe.path))) for node, name in readings.items()
    ]
    inside = {id(part) for node in readings for part in ast.walk(node)}
    path_is_used = any(isinstance(n, ast.Name) and n.id == "Path" and id(n) not in inside for n in ast.walk(tree))
    if readings and not path_is_used:
        changes += [(node, None) for node in tree.body if _imports_only_path(node)]

    lines = text.splitlines(keepends=True)
    for node, new in sorted(changes, key=lambda change: change[0].lineno, reverse=True):
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        if new is None:
            # Nothing but standard imports stood here: without them the empty line after them goes too.
            alone = not lines[first - 1].strip() and last + 1 < len(lines) and not lines[last + 1].strip()
            del lines[first : last + 1 + alone]
        else:
            before = lines[first].encode()[: node.col_offset].decode()  # ast counts bytes, not characters
            after = lines[last].encode()[node.end_col_offset :].decode()
            lines[first : last + 1] = [before + new + after]
    return "".join(lines)


def _kernel(name: str, path: Path) -> str:
    """The text of the file that the recipe would read, found as the recipe finds it: from its own place."""
    file = path.parents[2] / "kernels" / name
    text = file.read_text(encoding="utf-8")
    if '"""' in text:
        raise CannotInline(f'{path} reads {file}, which has """ in it: it cannot stand in a Python string')
    return text


def _literal(kernel: str) -> str:
    return f'r"""\n{kernel.rstrip(chr(10))}\n"""'


def _imports_only_path(node: ast.AST) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "pathlib" and [a.name for a in node.names] == ["Path"]
