"""A recipe as one self-contained file, as `gpu-cookbook show` prints it."""

import ast

from gpu_cookbook.catalogue import Recipe, kernel_readings, kernel_text


def script(recipe: Recipe) -> str:
    """The recipe's source, in which each kernel replaces the expression that reads it from kernels/. Nothing else
    changes, except that the import of Path is removed if nothing else needs it."""
    text = recipe.path.read_text(encoding="utf-8")
    tree = ast.parse(text, str(recipe.path))
    readings = kernel_readings(tree)
    changes: list[tuple[ast.expr | ast.stmt, str | None]] = [
        (node, _literal(kernel_text(recipe.path, name))) for node, name in readings.items()
    ]
    inside = {id(part) for node in readings for part in ast.walk(node)}
    path_is_used = any(isinstance(n, ast.Name) and n.id == "Path" and id(n) not in inside for n in ast.walk(tree))
    if readings and not path_is_used:
        changes += [(node, None) for node in tree.body if _imports_only_path(node)]

    lines = text.splitlines(keepends=True)
    for node, new in sorted(changes, key=lambda change: change[0].lineno, reverse=True):
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        if new is None:
            # It was the only standard import: remove the empty line after it too.
            alone = not lines[first - 1].strip() and last + 1 < len(lines) and not lines[last + 1].strip()
            del lines[first : last + 1 + alone]
        else:
            before = lines[first].encode()[: node.col_offset].decode()  # ast counts bytes, not characters
            after = lines[last].encode()[node.end_col_offset :].decode()
            lines[first : last + 1] = [before + new + after]
    return "".join(lines)


def _literal(kernel: str) -> str:
    return f'r"""\n{kernel.rstrip(chr(10))}\n"""'


def _imports_only_path(node: ast.AST) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "pathlib" and [a.name for a in node.names] == ["Path"]
