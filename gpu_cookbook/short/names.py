"""The names and the calls in a piece of a program."""

import ast
import copy
from collections.abc import Iterable, Iterator
from typing import TypeVar, cast

N = TypeVar("N", bound=ast.AST)


class _Replace(ast.NodeTransformer):
    """Replaces expressions, which are named by their text, and where a name is assigned to or is a parameter, names."""

    def __init__(self, new: dict[str, ast.expr]) -> None:
        self.new = new

    def visit(self, node: ast.AST) -> ast.AST:
        match node:
            case ast.Name(name, ast.Load()) | ast.Name(name) if name in self.new:
                new = copy.deepcopy(self.new[name])
                if isinstance(new, ast.Name):
                    new.ctx = node.ctx
                return new
            case ast.Call() if (text := ast.unparse(node)) in self.new:
                return copy.deepcopy(self.new[text])
            case ast.FunctionDef() | ast.Lambda():
                inner = {arg.arg for arg in parameters_of(node)} | set(names_in([node], ast.Store))
                return _Replace({n: v for n, v in self.new.items() if n not in inner}).generic_visit(node)
        return self.generic_visit(node)


def replaced(new: dict[str, ast.expr], node: N) -> N:
    return cast(N, _Replace(new).visit(node))


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """As ast.walk(), but without the contexts of names, which are a third of what it finds."""
    found = [node]
    for each in found:
        for name in each._fields:
            value = getattr(each, name, None)
            if isinstance(value, list):
                found += [part for part in value if isinstance(part, ast.AST)]
            elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
                found.append(value)
        yield each


def dumped(node: object) -> str:
    """All of a syntax tree but its places, as from ast.dump(), in a third of the time."""
    if isinstance(node, ast.AST):
        return f"{type(node).__name__}({', '.join([dumped(getattr(node, name, None)) for name in node._fields])})"
    return f"[{', '.join(map(dumped, node))}]" if isinstance(node, list) else repr(node)


def names_in(nodes: Iterable[ast.AST], context: type = ast.Load) -> Iterator[str]:
    for node in nodes:
        for part in walk(node):
            if isinstance(part, ast.Name) and isinstance(part.ctx, context):
                yield part.id


def used_in(nodes: Iterable[ast.stmt]) -> Iterator[str]:
    """The names that statements take from elsewhere."""
    for node in nodes:
        own = (
            {each.arg for each in parameters_of(node)} | {*locals_of(node)}
            if isinstance(node, ast.FunctionDef)
            else set()
        )
        yield from (name for name in names_in([node]) if name not in own)


def parameters_of(node: ast.FunctionDef | ast.Lambda) -> list[ast.arg]:
    given = node.args
    return [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]


def locals_of(function: ast.FunctionDef) -> list[str]:
    """The names that its statements assign, without those of comprehensions."""
    found: dict[str, None] = {}

    def collect(node: ast.AST) -> None:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = None
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found[node.id] = None
        elif not isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp | ast.Lambda):
            for each in ast.iter_child_nodes(node):
                collect(each)

    for each in function.body:
        collect(each)
    return [*found]


def own_parts(node: ast.AST) -> Iterator[ast.AST]:
    """The node and what is in it, without what is in other functions."""
    yield node
    if not isinstance(node, ast.FunctionDef | ast.Lambda):
        for each in ast.iter_child_nodes(node):
            yield from own_parts(each)


def defined_by(node: ast.stmt) -> set[str]:
    """The names that a statement at the top gives, or changes the things of."""
    match node:
        case ast.FunctionDef() | ast.ClassDef():
            return {node.name}
        case ast.Import() | ast.ImportFrom():
            return set()
        case ast.For():
            return {next(names_in([node.iter]))}
        case ast.Assign(targets):
            return {*names_in(targets, ast.Store), *names_in(targets)}
        case ast.Expr():
            return {next(names_in([node]))}
    return {*names_in([node]), *names_in([node], ast.Store)}


def imported_by(nodes: list[ast.stmt]) -> set[str]:
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    return {bound_by(alias) for node in imports for alias in node.names}


def bound_by(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def sources_of(node: ast.stmt, needed: set[str]) -> list[str]:
    """The modules from which an import takes what is needed."""
    match node:
        case ast.Import(names):
            return [each.name for each in names if bound_by(each) in needed]
        case ast.ImportFrom(str(module), names) if any(bound_by(each) in needed for each in names):
            return [module]
    return []


def package_of(alias: ast.alias) -> str | None:
    """``a`` of ``import a.b``, which makes ``a.b`` usable under whatever name ``a`` has."""
    return alias.name.partition(".")[0] if "." in alias.name and not alias.asname else None


def calls_to(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def has_star(call: ast.Call) -> bool:
    return any(isinstance(each, ast.Starred) for each in call.args)


def argument_of(call: ast.Call, place: int, name: str, default: ast.expr | None) -> ast.expr | None:
    """What a call gives for a parameter. A starred argument fills those that have no default."""
    for each in call.keywords:
        if each.arg == name:
            return each.value
    if has_star(call):
        return default
    return call.args[place] if place < len(call.args) else default


def gives_back(body: list[ast.stmt], name: str) -> bool:
    """Whether a function only gives this parameter back."""
    match body:
        case [ast.Return(ast.Name(found))]:
            return found == name
    return False


def is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def assignment(targets: list[ast.expr], value: ast.expr) -> ast.Assign:
    return ast.Assign(targets, value, lineno=0)  # without a place in the file
