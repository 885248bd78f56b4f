"""Statements as they stand in a file, or, where they were changed, as one would write them."""

import ast
import copy
import io
import re
import textwrap
import tokenize

from gpu_cookbook.short.names import dumped, names_in, walk

WIDTH = 120


class Source:
    """A file, and its syntax tree, whose statements know what they were."""

    def __init__(self, text: str) -> None:
        self.text, self.lines = text, text.splitlines()
        self.tree = ast.parse(text)
        self.comments = {
            token.start[0]: token.string
            for token in tokenize.generate_tokens(io.StringIO(text).readline)
            if token.type == tokenize.COMMENT and token.line[: token.start[1]].strip()
        }
        for node in walk(self.tree):
            if isinstance(node, ast.stmt | ast.JoinedStr):
                text = dumped(node)
                vars(node).update(before=text, form=_form(text))

    def gap(self, previous: ast.stmt | None, node: ast.stmt) -> list[str]:
        """The empty lines before a statement at the top: as many as before it in the file."""
        if previous is None:
            return []
        first = self.first_line(node)
        gap = 0
        while not self.lines[first - gap - 2].strip():
            gap += 1
        imports = isinstance(previous, ast.Import | ast.ImportFrom), isinstance(node, ast.Import | ast.ImportFrom)
        defined = isinstance(previous, ast.FunctionDef | ast.ClassDef)
        return [""] * (2 if defined else max(gap, imports[0] != imports[1]))

    def first_line(self, node: ast.stmt) -> int:
        """With its decorators, and the comments above it."""
        line = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
        while self.lines[line - 2].lstrip().startswith("#"):
            line -= 1
        return line

    def lines_of(self, node: ast.stmt, indent: int) -> list[str]:
        """A statement that is as it was, with its comments; or else one that is written anew."""
        text = dumped(node)
        if getattr(node, "before", "") == text:
            shift = indent - node.col_offset
            lines = self.lines[self.first_line(node) - 1 : node.end_lineno]
            return [" " * shift + line if shift > 0 and line else line[-shift if shift < 0 else 0 :] for line in lines]
        same = getattr(node, "form", "") == _form(text)
        body = getattr(node, "body", None)
        if body is None or getattr(node, "orelse", None) or isinstance(node, ast.Try):
            lines = self.unparsed(node, indent)
            if same and (comment := self.comments.get(getattr(node, "end_lineno", 0))):
                lines[-1] += f"  {comment}" * (len(lines[-1]) + 2 + len(comment) <= WIDTH)
            return lines
        header = copy.copy(node)
        header.body = [ast.Pass()]  # type: ignore[attr-defined]
        lines = self.unparsed(header, indent)[:-1]
        return lines + [line for each in body for line in self.lines_of(each, indent + 4)]

    def unparsed(self, node: ast.stmt, indent: int) -> list[str]:
        lines = textwrap.indent(_unparsed(node, self.text), " " * indent).splitlines()
        return [each for line in lines for each in _wrapped(line)]


def _form(text: str) -> str:
    """All of it but its names."""
    return re.sub(r"Name\('\w+'", "Name(", text)


class _AsWritten(ast.NodeTransformer):
    """Constants as they were written, in the form of names; and brackets where a person would put them."""

    def __init__(self, text: str) -> None:
        self.text = text

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        source = ast.get_source_segment(self.text, node) if hasattr(node, "lineno") else None
        return ast.Name(source, ast.Load()) if source and "\n" not in source else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        source = ast.get_source_segment(self.text, node) if getattr(node, "before", "") == dumped(node) else None
        return ast.Name(source, ast.Load()) if source and "\n" not in source else node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.slice, ast.Tuple) and len(node.slice.elts) == 1:
            node.slice = ast.Name(f"({ast.unparse(node.slice.elts[0])},)", ast.Load())
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.args[0] if len(node.args) == 1 else None, ast.GeneratorExp):
            node.args = [ast.Name(ast.unparse(node.args[0])[1:-1], ast.Load())]
        return node


def _unparsed(node: ast.stmt, text: str) -> str:
    node = _AsWritten(text).visit(copy.deepcopy(node))
    match node:
        case ast.Assign(targets, ast.Tuple([_, _, *_] as elts)):
            left = "".join(f"{ast.unparse(each).removeprefix('(').removesuffix(')')} = " for each in targets)
            line = left + ", ".join(map(ast.unparse, elts))
            match targets:
                case [ast.Tuple(names)] if (
                    len(line) > WIDTH
                    and len(names) == len(elts)
                    and not any(isinstance(each, ast.Starred) for each in (*names, *elts))
                    and not {*names_in(targets, ast.Store)} & {*names_in(elts)}
                ):
                    return "\n".join(f"{ast.unparse(x)} = {ast.unparse(y)}" for x, y in zip(names, elts, strict=True))
            return line
    return ast.unparse(node)


def _wrapped(line: str) -> list[str]:
    """A line that is too long, in several: what is in its longest brackets comes below it."""
    if len(line) <= WIDTH:
        return [line]
    indent = len(line) - len(line.lstrip())
    depth, opened, pairs, commas = 0, 0, [], []
    for token in tokenize.generate_tokens(io.StringIO(line.lstrip()).readline):
        place = token.start[1] + indent
        if token.type == tokenize.NEWLINE:
            break
        if token.string in ("(", "[", "{"):
            opened = place if depth == 0 else opened
            depth += 1
        elif token.string in (")", "]", "}"):
            depth -= 1
            pairs += [(opened, place)] * (depth == 0)
        elif token.string == "," and depth == 1:
            commas.append(place)
    if not pairs:
        return [line]
    first, last = max(pairs, key=lambda pair: pair[1] - pair[0])
    inner = " " * (indent + 4)
    body = line[first + 1 : last]
    if len(inner) + len(body) <= WIDTH:
        return [line[: first + 1], inner + body, " " * indent + line[last:]]
    ends = [place for place in commas if first < place < last] + [last]
    parts = [line[a + 1 : b].strip() for a, b in zip([first, *ends], ends, strict=False)]
    if len(parts) == 1 or " for " in parts[-1]:
        return [line[: first + 1], *_wrapped(inner + body), " " * indent + line[last:]]
    below = [each for part in parts if part for each in _wrapped(f"{inner}{part},")]
    return [line[: first + 1], *below, " " * indent + line[last:]]
