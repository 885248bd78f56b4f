"""A whole recipe: what is reached from its example, and its functions unfolded into it."""

import ast
import copy
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator

from gpu_cookbook.short.leave_out import CHECKS, LeaveOut
from gpu_cookbook.short.names import (
    argument_of,
    assignment,
    bound_by,
    calls_to,
    defined_by,
    dumped,
    gives_back,
    has_star,
    imported_by,
    is_docstring,
    locals_of,
    names_in,
    own_parts,
    package_of,
    parameters_of,
    replaced,
    sources_of,
    used_in,
    walk,
)
from gpu_cookbook.short.source import Source
from gpu_cookbook.short.tidy import tidied

OPTIONAL = {"pinned": "page-locked arrays", "prepared": "prepared()", "round_trip": "round_trip()"}
EFFECTS = {"autoprimaryctx"}  # imported for what the import does


class Program:
    def __init__(self, text: str, any_shape: bool) -> None:
        self.source, self.any_shape = Source(text), any_shape
        tree = self.source.tree
        self.read = set(names_in([tree]))
        self.top, example = tree.body[1:-1], tree.body[-1]
        assert isinstance(example, ast.If)
        self.main = example.body
        self.left_out: set[str] = set()
        floats = any(isinstance(each, ast.Attribute) and each.attr == "float32" for each in walk(example))
        self.dtypes = {"float32"} if floats else {"float64", "int64"}

    @property
    def functions(self) -> dict[str, ast.FunctionDef]:
        return {each.name: each for each in self.top if isinstance(each, ast.FunctionDef)}

    def shorten(self) -> None:
        if isinstance(end := self.main[-1], ast.Expr) and calls_to(end.value, "print"):
            self.main.pop()  # what was compared before it is right
        optional = self.functions.keys() & OPTIONAL
        self.main = self.leaving_out().statements(self.main)
        for _ in self.until_nothing_changes():
            self.shake()
            self.specialise()
            self.top = self.leaving_out().statements(self.top)
            for function in self.functions.values():
                if not function.decorator_list:
                    function.body = tidied(function.body, self.read) or [ast.Pass()]
            inline = _Inline(self.functions, self.count)
            self.top, self.main = ([inline.visit(each) for each in nodes] for nodes in (self.top, self.main))
        self.left_out |= {OPTIONAL[name] for name in optional - self.functions.keys()}
        if "engine" not in self.functions:
            own = set(names_in(self.main, ast.Store))
            for _ in self.until_nothing_changes():
                self.main = self.unfold(self.main)
                self.main = tidied(self.leaving_out().statements(self.main), self.read, own)
            self.shake()

    def until_nothing_changes(self) -> Iterator[None]:
        before = ""
        while before != (before := dumped(ast.Module([*self.top, *self.main], []))):
            yield

    def leaving_out(self) -> LeaveOut:
        return LeaveOut(self.left_out, self.dtypes, self.any_shape, self.functions)

    def shake(self) -> None:
        """Leaves out what nothing needs any more."""
        needed = set(names_in(self.main))
        imported = imported_by(self.top)
        needed |= {name for node in self.top if isinstance(node, ast.Expr) for name in defined_by(node) & imported}
        used = {node: set(used_in([node])) for node in self.top}
        known = -1
        while known != (known := len(needed)):
            for node in self.top:
                if not needed.isdisjoint(defined_by(node)):
                    needed |= used[node]
        needed |= EFFECTS
        roots = {name.partition(".")[0] for node in self.top for name in sources_of(node, needed)}
        kept: list[ast.stmt] = []
        for node in self.top:
            match node:
                case ast.Import() | ast.ImportFrom():
                    node.names = [
                        each
                        for each in node.names
                        if bound_by(each) in needed or isinstance(node, ast.Import) and package_of(each) in roots
                    ]
                    kept += [node] * bool(node.names)
                case _ if not needed.isdisjoint(defined_by(node)):
                    kept.append(node)
        self.top = kept

    def specialise(self) -> None:
        """Leaves out parameters that are always None."""
        every = [each for each in walk(ast.Module([*self.top, *self.main], [])) if isinstance(each, ast.Call)]
        counts = Counter(used_in([*self.top, *self.main]))
        for name, function in self.functions.items():
            calls = [each for each in every if calls_to(each, name)]
            if function.decorator_list or len(calls) != counts[name]:
                continue
            given = function.args
            required = len(given.args) - len(given.defaults)
            for place in reversed(range(len(given.args))):
                parameter = given.args[place].arg
                default = given.defaults[place - required] if place >= required else None
                values = [argument_of(call, place, parameter, default) for call in calls]
                if all(isinstance(value, ast.Constant) and value.value is None for value in values):
                    del given.args[place]
                    if place >= required:
                        del given.defaults[place - required]
                    for call in calls:
                        call.args = [each for i, each in enumerate(call.args) if i != place or has_star(call)]
                        call.keywords = [each for each in call.keywords if each.arg != parameter]
                    self.left_out.add(f"{parameter}=")
                    leaving = self.leaving_out()
                    leaving.none = {parameter}
                    function.body = leaving.statements(function.body)

    def count(self, name: str) -> int:
        return [*used_in([*self.top, *self.main])].count(name)

    def unfold(self, nodes: list[ast.stmt]) -> list[ast.stmt]:
        """The statements, with those of one function in the place of its call."""
        for i, node in enumerate(nodes):
            new: list[ast.stmt] = []
            match node:
                case ast.Assign([*others, target], ast.Call() as call) if function := self.opens(call):
                    new = self.opened(function, call, target)
                    if others:
                        new.append(assignment(others, ast.Name(ast.unparse(target), ast.Load())))
                case ast.Expr(ast.Call() as call) if function := self.opens(call):
                    new = self.opened(function, call, None)
                case ast.For() | ast.With() | ast.If():
                    node.body = self.unfold(node.body)
            if new:
                return [*nodes[:i], *new, *nodes[i + 1 :]]
        return nodes

    def opens(self, call: ast.Call) -> ast.FunctionDef | None:
        """The function that is called, if only here, and if its statements can take the place of the call."""
        function = self.functions.get(call.func.id) if isinstance(call.func, ast.Name) else None
        if function is None or function.decorator_list or self.count(function.name) > 1:
            return None
        stars = sum(isinstance(each, ast.Starred) for each in call.args)
        if stars > 1 or stars and len(call.args) > 1 and function.args.defaults:  # which parameter gets what?
            return None
        inner = [part for each in function.body for part in own_parts(each)]
        if any(isinstance(part, ast.Yield | ast.Global | ast.Nonlocal) for part in inner):
            return None
        returns = [part for part in inner if isinstance(part, ast.Return)]
        last = function.body[-1]
        while isinstance(last, ast.With):
            last = last.body[-1]
        return function if returns in ([], [last]) else None

    def opened(self, function: ast.FunctionDef, call: ast.Call, target: ast.expr | None) -> list[ast.stmt]:
        """The function's statements with its arguments, and ``target`` in the place of its return."""
        self.top.remove(function)
        given = function.args
        new: dict[str, ast.expr] = {}
        first: list[ast.stmt] = []
        taken = {*names_in([*self.main, target or call]), *names_in(self.main, ast.Store)}
        taken |= {name for each in self.top for name in defined_by(each)} | imported_by(self.top)

        def name(old: str) -> ast.Name:
            """The name, or one like it that nothing else has."""
            names = itertools.chain((old, f"d_{old}"), (f"{old}_{number}" for number in itertools.count(2)))
            found = next(each for each in names if each not in taken)
            taken.add(found)
            new[old] = ast.Name(found, ast.Load())
            return ast.Name(found, ast.Store())

        required, optional = given.args[: len(given.args) - len(given.defaults)], given.args[-len(given.defaults) :]
        values = {each.arg: default for each, default in zip(optional, given.defaults, strict=False)}
        if given.vararg:
            new[given.vararg.arg] = ast.Tuple(call.args, ast.Load())
        elif has_star(call):
            (place,) = (at for at, each in enumerate(call.args) if isinstance(each, ast.Starred))
            star, before, after = call.args[place], call.args[:place], call.args[place + 1 :]
            assert isinstance(star, ast.Starred)
            unpacked = required[place : len(required) - len(after)]
            values |= {each.arg: value for each, value in zip(required, before, strict=False)}
            values |= {each.arg: value for each, value in zip(reversed(required), reversed(after), strict=False)}
            there = ast.Tuple([name(each.arg) for each in unpacked], ast.Store())
            first.append(assignment([there], star.value))
        else:
            values |= {each.arg: value for each, value in zip(given.args, call.args, strict=False)}
        values |= {each.arg: each.value for each in call.keywords if each.arg}

        leaving = self.leaving_out()
        leaving.given = {each.arg for each in given.args}
        body = leaving.statements(function.body)
        assigned = set(names_in(body, ast.Store))
        bound = []
        for old in (each.arg for each in given.args if each.arg in values):
            value = values[old]
            if isinstance(value, ast.Name) and old not in assigned or gives_back(body, old):
                new[old] = value
            else:
                bound.append((name(old), value))
        if len(bound) > 1 and not any(isinstance(value, ast.Call) for _, value in bound):
            stores, loads = map(list, zip(*bound, strict=True))
            first.append(assignment([ast.Tuple(stores, ast.Store())], ast.Tuple(loads, ast.Load())))
        else:
            first += [assignment([store], value) for store, value in bound]
        for old in locals_of(function):
            if old not in new:
                name(old)
        return first + _ended([replaced(new, each) for each in body if not is_docstring(each)], target)

    def printed(self) -> str:
        checks = [what for what in CHECKS if what in self.left_out]
        others = [*self.left_out - CHECKS.keys()]
        words = [f"{' and '.join(', '.join(checks).rsplit(', ', 1))} checks"] * bool(checks) + sorted(others)
        parts = [f"# Left out: {', '.join(words)}." if words else "# Nothing is left out."]
        previous: ast.stmt | None = None
        for node in self.top:
            parts += self.source.gap(previous, node) + self.source.lines_of(node, 0)
            previous = node
        indent = 4 if "engine" in self.functions else 0
        parts += [""] * (2 if isinstance(previous, ast.FunctionDef | ast.ClassDef) or indent else 1)
        if indent:
            parts.append('if __name__ == "__main__":')
        previous = None
        for node in self.main:
            if previous and ast.FunctionDef in (type(previous), type(node)):
                parts += ["", ""]
            parts += self.source.lines_of(node, indent)
            previous = node
        return re.sub("  # noqa: .*", "", "\n".join(parts)) + "\n"


class _Inline(ast.NodeTransformer):
    """Puts the expression that a function returns in the place of its only call, within another expression."""

    def __init__(self, functions: dict[str, ast.FunctionDef], count: Callable[[str], int]) -> None:
        self.functions, self.count = functions, count
        self.locals = {
            name
            for each in functions.values()
            for name in [*locals_of(each), *(arg.arg for arg in parameters_of(each))]
        }

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        function = self.functions.get(node.func.id) if isinstance(node.func, ast.Name) else None
        if function is None or function.decorator_list or node.keywords:
            return node
        match function:
            case ast.FunctionDef(
                args=ast.arguments(args=given, vararg=None, defaults=[]), body=[ast.Return(value)]
            ) if (
                value
                and len(given) == len(node.args)
                and all(isinstance(each, ast.Name | ast.Attribute) for each in node.args)
                and (self.count(function.name) == 1 or isinstance(value, ast.Name))
                and self.locals.isdisjoint({*names_in([value])} - {each.arg for each in given})
            ):
                new = {each.arg: argument for each, argument in zip(given, node.args, strict=True)}
                return replaced(new, copy.deepcopy(value))
        return node


def _ended(body: list[ast.stmt], target: ast.expr | None) -> list[ast.stmt]:
    """The statements of a function, in which its return becomes an assignment."""
    *first, last = body
    match last:
        case ast.Return(ast.expr() as value):
            return [*first, assignment([target], value) if target else ast.Expr(value)]
        case ast.With():
            last.body = _ended(last.body, target)
    return body
