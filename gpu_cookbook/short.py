"""The short form of a recipe, as `gpu-cookbook show --short` prints it: the lines that one would type in a notebook.

It is made from the recipe's own file. Each rule here leaves out something that only a caller with other arrays needs:
those of the recipe's example fit, are not empty, and there is no ``out``. The functions then are unfolded into the
example, unless they are used twice, return from their middle, or have to be found by an engine's processes.
"""

import ast
import copy
import io
import itertools
import re
import textwrap
import tokenize
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar, cast

from gpu_cookbook import show
from gpu_cookbook.catalogue import Recipe

N = TypeVar("N", bound=ast.AST)
WIDTH = 120
OPTIONAL = {"pinned": "page-locked arrays", "prepared": "prepared()", "round_trip": "round_trip()"}
EFFECTS = {"autoprimaryctx"}  # imported for what the import does
ANY_SHAPE = {
    "multiply",
    "increment",
    "norm",
}  # workloads that take arrays of any shape; those of the example have one axis
COUNTS = {"rows", "columns", "count", "k"}  # what recipes call a number of elements
CHECKS = {  # what is looked at -> the words in a check that tell it
    "shape": ("shape", "ndim", "chunk", "size", "rows"),
    "dtype": ("dtype",),
    "layout": ("contiguous", "carray", "offset", "fits", "strides"),
    "device": ("device", "place", "GPU"),
    "other": (),  # others
}


def short(recipe: Recipe) -> str:
    """The recipe in few lines, under a comment that says what they leave out."""
    program = _Program(show.script(recipe), recipe.workload in ANY_SHAPE)
    program.shorten()
    return program.printed()


# ---- What an example does not need.


class _LeaveOut(ast.NodeTransformer):
    """Leaves out, below a statement, what an example does not need, and notes what that is."""

    def __init__(self, left_out: set[str], dtypes: set[str], any_shape: bool) -> None:
        self.left_out = left_out
        self.dtypes = dtypes  # of the example's arrays: conversions to these change nothing
        self.any_shape = any_shape
        self.none: set[str] = set()  # parameters that are None, up to their first assignment
        self.given: set[str] = set()  # parameters that are not

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if node.decorator_list:  # a kernel, or what an engine runs
            return node
        self.generic_visit(node)
        node.body = node.body or [ast.Pass()]
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Constant(None, kind="out") if node.id in self.none and isinstance(node.ctx, ast.Load) else node

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        node.value = self.visit(node.value)
        self.none -= set(_names(node.targets, ast.Store))
        match node:
            case ast.Assign([ast.Tuple([target])], ast.Tuple([value])):
                node.targets, node.value = [target], value
            case ast.Assign([ast.Tuple(targets)], ast.List(elts)) if list(map(ast.unparse, targets)) == list(
                map(ast.unparse, elts)
            ):
                return None
        same = [ast.unparse(target) for target in node.targets] == [ast.unparse(node.value)]
        return None if same else node

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        test = self.fold(self.visit(node.test))
        if isinstance(test, ast.Constant):
            return self.statements(node.body if test.value else node.orelse)
        if _refuses(node):
            self.note_check(node)
            return self.statements(node.orelse)
        node.test, node.body, node.orelse = test, self.statements(node.body), self.statements(node.orelse)
        return node if node.body else []

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        match node.iter:
            case ast.Tuple([_, _, *_]) as ways if "round_trip" in _names([ways]):  # two ways to one result
                ways.elts = [way for way in ways.elts if "round_trip" not in _names([way])]
        match node.iter:
            case ast.Tuple([value]):
                return [_assignment([node.target], value), *node.body]
        return node if node.body else []

    def visit_With(self, node: ast.With) -> ast.AST | None:
        self.generic_visit(node)
        return node if node.body else None

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        test = self.fold(node.test)
        return (node.body if test.value else node.orelse) if isinstance(test, ast.Constant) else node

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.AST:
        self.generic_visit(node)
        elements = _unrolled(node)
        return ast.Tuple(elements, ast.Load()) if elements else _iterated(node)

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        self.generic_visit(node)
        elements = _unrolled(node)
        return ast.List(elements, ast.Load()) if elements else _iterated(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Subscript(ast.Tuple(elts), ast.Constant(int(place))):
                return elts[place]
        return node

    def visit_Tuple(self, node: ast.Tuple) -> ast.AST:
        self.generic_visit(node)
        node.elts = _spliced(node.elts)
        return node

    def visit_List(self, node: ast.List) -> ast.AST:
        self.generic_visit(node)
        node.elts = _spliced(node.elts)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        node.args = _spliced(node.args)
        # blocking=True: no array is page-locked, and so none is read after the call.
        node.keywords = [each for each in node.keywords if ast.unparse(each) != "blocking=True"]
        if not isinstance(node.func, ast.Name):
            node.args = [each for each in node.args if not _is_none(each)]
            node.keywords = [each for each in node.keywords if not _is_none(each.value)]
        match node:
            case (
                ast.Call(ast.Attribute(x, "ravel"), [])
                | ast.Call(ast.Attribute(x, "reshape" | "view"), [ast.UnaryOp(ast.USub(), ast.Constant(1))])
                | ast.Call(ast.Attribute(ast.Name("np"), "atleast_1d"), [x])
            ) if self.any_shape:
                self.left_out.add("other shapes")
                return x
            case ast.Call(
                ast.Attribute(ast.Name("np"), "asarray" | "require"), [ast.Name() as x, ast.Attribute() as to, *_]
            ):
                if to.attr in self.dtypes:
                    self.left_out.add("conversions")
                    return x
            case ast.Call(ast.Name("tuple"), [ast.Tuple() | ast.List() as literal]):
                return ast.Tuple(literal.elts, ast.Load())
            case ast.Call(ast.Attribute(attr="block_until_ready"), [ast.Tuple() as there]):  # as blocking=True
                return there
            case ast.Call(
                ast.Attribute(made, "reshape"),
                [ast.Attribute(ast.Name(x), "shape") | ast.Call(ast.Attribute(ast.Name("np"), "shape"), [ast.Name(x)])],
            ):
                # Made flat first, since some libraries refuse odd strides.
                first = made.args[0] if isinstance(made, ast.Call) and made.args else made
                if ast.unparse(first) in (x, f"{x}.ravel()") or ast.unparse(made) == f"{x}.ravel()":
                    return _replaced({f"{x}.ravel()": ast.Name(x, ast.Load())}, made)
        return node

    def statements(self, nodes: list[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for node in nodes:
            new = self.visit(node)
            found += new if isinstance(new, list) else [new] if new else []
            if found and isinstance(found[-1], ast.Return):  # what follows is never reached
                break
        return found

    def note_check(self, node: ast.If) -> None:
        text = ast.unparse(node)
        self.left_out |= {what for what, words in CHECKS.items() if any(word in text for word in words)} or {"other"}

    def fold(self, test: ast.expr) -> ast.expr:
        """A condition without the parts that are known, and a Constant if all are."""
        match test:
            case ast.UnaryOp(ast.Not(), operand):
                inner = self.fold(operand)
                return ast.Constant(not inner.value) if isinstance(inner, ast.Constant) else test
            case ast.BoolOp(op, values):
                decides = isinstance(op, ast.Or)
                left = []
                for value in map(self.fold, values):
                    if not isinstance(value, ast.Constant):
                        left.append(value)
                    elif bool(value.value) == decides:
                        return ast.Constant(decides)
                return left[0] if len(left) == 1 else ast.BoolOp(op, left) if left else ast.Constant(not decides)
            case ast.Compare(ast.Constant(None), [ast.Is() | ast.IsNot() as op], [ast.Constant(None)]):
                return ast.Constant(isinstance(op, ast.Is))
            case ast.Compare(ast.Name(name), [ast.Is() | ast.IsNot() as op], [ast.Constant(None)]) if (
                name in self.given
            ):
                return ast.Constant(isinstance(op, ast.IsNot))
            case ast.Compare(ast.Attribute(attr="ndim"), [ast.Eq()], [ast.Constant(1)]):
                self.left_out.add("other shapes")
                return ast.Constant(True)
            case ast.Compare(left, [ast.Eq()], [ast.Constant(0)]) if _counts(left):
                self.left_out.add("empty arrays")
                return ast.Constant(False)
            case ast.Call(ast.Attribute(attr="may_share_memory")):
                self.left_out.add("overlaps")
                return ast.Constant(False)
        if _counts(test):
            self.left_out.add("empty arrays")
            return ast.Constant(True)
        return test


def _refuses(node: ast.If) -> bool:
    """Whether it is a check of arguments. Other errors are answers of the work itself."""
    match node.body[-1]:
        case ast.Raise(ast.Call(ast.Name("ValueError"))):
            return not any(isinstance(part, ast.NamedExpr) for part in ast.walk(node.test))
    return False


def _is_none(node: ast.expr) -> bool:
    """Whether it stood for a parameter that is None."""
    return isinstance(node, ast.Constant) and node.kind == "out"


def _counts(node: ast.expr) -> bool:
    """Whether it counts elements or axes, and so is not 0."""
    match node:
        case ast.Attribute(attr="size" | "ndim") | ast.Call(ast.Attribute(attr="numel"), []):
            return True
        case ast.Name(name):
            return name in COUNTS
        case ast.BinOp(left, ast.Mult(), right):
            return _counts(left) and _counts(right)
    return False


def _unrolled(node: ast.GeneratorExp | ast.ListComp) -> list[ast.expr]:
    """The elements, if there are few and they are known."""
    match node.generators:
        case [ast.comprehension(ast.Name(name), ast.Tuple(elts) | ast.List(elts), [])] if (
            all(isinstance(each, ast.Name) for each in elts) or [*_names([node.elt])].count(name) == 1
        ) and not any(isinstance(each, ast.Starred) for each in elts):
            return [_replaced({name: each}, copy.deepcopy(node.elt)) for each in elts]
    return []


def _iterated(node: ast.GeneratorExp | ast.ListComp) -> ast.expr:
    """What it goes through, if it does nothing else."""
    match node:
        case ast.GeneratorExp(ast.Name(x), [each]) | ast.ListComp(ast.Name(x), [each]) if not each.ifs:
            return each.iter if isinstance(each.iter, ast.Name) and ast.unparse(each.target) == x else node
    return node


def _spliced(nodes: list[ast.expr]) -> list[ast.expr]:
    found: list[ast.expr] = []
    for node in nodes:
        match node:
            case ast.Starred(ast.Tuple(elts) | ast.List(elts) as value) if not hasattr(value, "lineno"):  # made here
                found += elts
            case _:
                found.append(node)
    return found


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
                inner = {arg.arg for arg in _parameters(node)} | set(_names([node], ast.Store))
                return _Replace({n: v for n, v in self.new.items() if n not in inner}).generic_visit(node)
        return self.generic_visit(node)


def _replaced(new: dict[str, ast.expr], node: N) -> N:
    return cast(N, _Replace(new).visit(node))


def _names(nodes: Iterable[ast.AST], context: type = ast.Load) -> Iterator[str]:
    for node in nodes:
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and isinstance(part.ctx, context):
                yield part.id


def _used(nodes: Iterable[ast.stmt]) -> Iterator[str]:
    """The names that statements take from elsewhere."""
    for node in nodes:
        own = (
            {each.arg for each in _parameters(node)} | {*_locals(node)} if isinstance(node, ast.FunctionDef) else set()
        )
        yield from (name for name in _names([node]) if name not in own)


def _parameters(node: ast.FunctionDef | ast.Lambda) -> list[ast.arg]:
    given = node.args
    return [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]


# ---- The whole file.


class _Program:
    def __init__(self, text: str, any_shape: bool) -> None:
        self.text, self.lines, self.any_shape = text, text.splitlines(), any_shape
        tree = ast.parse(text)
        self.comments = {
            token.start[0]: token.string
            for token in tokenize.generate_tokens(io.StringIO(text).readline)
            if token.type == tokenize.COMMENT and token.line[: token.start[1]].strip()
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.stmt | ast.JoinedStr):
                vars(node).update(before=ast.dump(node), form=_form(node))
        self.read = set(_names([tree]))
        self.top, example = tree.body[1:-1], tree.body[-1]
        assert isinstance(example, ast.If)
        self.main = example.body
        self.left_out: set[str] = set()
        floats = any(isinstance(each, ast.Attribute) and each.attr == "float32" for each in ast.walk(example))
        self.dtypes = {"float32"} if floats else {"float64", "int64"}

    @property
    def functions(self) -> dict[str, ast.FunctionDef]:
        return {each.name: each for each in self.top if isinstance(each, ast.FunctionDef)}

    def shorten(self) -> None:
        if isinstance(end := self.main[-1], ast.Expr) and _calls(end.value, "print"):
            self.main.pop()  # what was compared before it is right
        optional = self.functions.keys() & OPTIONAL
        self.main = self.leaving_out().statements(self.main)
        for _ in self.until_nothing_changes():
            self.shake()
            self.specialise()
            self.top = self.leaving_out().statements(self.top)
            for function in self.functions.values():
                if not function.decorator_list:
                    function.body = _tidied(function.body, self.read) or [ast.Pass()]
            inline = _Inline(self.functions, self.count)
            self.top, self.main = ([inline.visit(each) for each in nodes] for nodes in (self.top, self.main))
        self.left_out |= {OPTIONAL[name] for name in optional - self.functions.keys()}
        if "engine" not in self.functions:
            own = set(_names(self.main, ast.Store))
            for _ in self.until_nothing_changes():
                self.main = self.unfold(self.main)
                self.main = _tidied(self.leaving_out().statements(self.main), self.read, own)
            self.shake()

    def until_nothing_changes(self) -> Iterator[None]:
        before = ""
        while before != (before := ast.dump(ast.Module([*self.top, *self.main], []))):
            yield

    def leaving_out(self) -> _LeaveOut:
        return _LeaveOut(self.left_out, self.dtypes, self.any_shape)

    def shake(self) -> None:
        """Leaves out what nothing needs any more."""
        needed = set(_names(self.main))
        used = {node: set(_used([node])) for node in self.top}
        known = -1
        while known != (known := len(needed)):
            for node in self.top:
                if not needed.isdisjoint(_defined(node)):
                    needed |= used[node]
        needed |= EFFECTS
        roots = {name.partition(".")[0] for node in self.top for name in _sources(node, needed)}
        kept: list[ast.stmt] = []
        for node in self.top:
            match node:
                case ast.Import() | ast.ImportFrom():
                    node.names = [
                        each
                        for each in node.names
                        if (each.asname or each.name) in needed
                        or isinstance(node, ast.Import)
                        and _loads(each) in roots
                    ]
                    kept += [node] * bool(node.names)
                case _ if not needed.isdisjoint(_defined(node)):
                    kept.append(node)
        self.top = kept

    def specialise(self) -> None:
        """Leaves out parameters that are always None."""
        every = [each for each in ast.walk(ast.Module([*self.top, *self.main], [])) if isinstance(each, ast.Call)]
        counts = Counter(_used([*self.top, *self.main]))
        for name, function in self.functions.items():
            calls = [each for each in every if _calls(each, name)]
            if function.decorator_list or len(calls) != counts[name]:
                continue
            given = function.args
            required = len(given.args) - len(given.defaults)
            for place in reversed(range(len(given.args))):
                parameter = given.args[place].arg
                default = given.defaults[place - required] if place >= required else None
                values = [_argument(call, place, parameter, default) for call in calls]
                if all(isinstance(value, ast.Constant) and value.value is None for value in values):
                    del given.args[place]
                    if place >= required:
                        del given.defaults[place - required]
                    for call in calls:
                        call.args = [each for i, each in enumerate(call.args) if i != place or _starred(call)]
                        call.keywords = [each for each in call.keywords if each.arg != parameter]
                    self.left_out.add(f"{parameter}=")
                    leaving = self.leaving_out()
                    leaving.none = {parameter}
                    function.body = leaving.statements(function.body)

    def count(self, name: str) -> int:
        return [*_used([*self.top, *self.main])].count(name)

    # -- Unfolding.

    def unfold(self, nodes: list[ast.stmt]) -> list[ast.stmt]:
        """The statements, with those of one function in the place of its call."""
        for i, node in enumerate(nodes):
            new: list[ast.stmt] = []
            match node:
                case ast.Assign([*others, target], ast.Call() as call) if function := self.opens(call):
                    new = self.opened(function, call, target)
                    if others:
                        new.append(_assignment(others, ast.Name(ast.unparse(target), ast.Load())))
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
        inner = [part for each in function.body for part in _own_parts(each)]
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
        taken = {*_names([*self.main, target or call]), *_names(self.main, ast.Store)}
        taken |= {name for each in self.top for name in _defined(each)} | _imported(self.top)

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
        elif _starred(call):
            (star,) = call.args
            assert isinstance(star, ast.Starred)
            there = ast.Tuple([name(each.arg) for each in required], ast.Store())
            first.append(_assignment([there], star.value))
        else:
            values |= {each.arg: value for each, value in zip(given.args, call.args, strict=False)}
        values |= {each.arg: each.value for each in call.keywords if each.arg}

        leaving = self.leaving_out()
        leaving.given = {each.arg for each in given.args}
        body = leaving.statements(function.body)
        assigned = set(_names(body, ast.Store))
        bound = []
        for old in (each.arg for each in given.args if each.arg in values):
            value = values[old]
            if isinstance(value, ast.Name) and old not in assigned or _returns(body, old):
                new[old] = value
            else:
                bound.append((name(old), value))
        if len(bound) > 1 and not any(isinstance(value, ast.Call) for _, value in bound):
            stores, loads = map(list, zip(*bound, strict=True))
            first.append(_assignment([ast.Tuple(stores, ast.Store())], ast.Tuple(loads, ast.Load())))
        else:
            first += [_assignment([store], value) for store, value in bound]
        for old in _locals(function):
            if old not in new:
                name(old)
        return first + _ended([_replaced(new, each) for each in body if not _is_docstring(each)], target)

    # -- Printing.

    def printed(self) -> str:
        checks = [what for what in CHECKS if what in self.left_out]
        others = [*self.left_out - CHECKS.keys()]
        words = [f"{' and '.join(', '.join(checks).rsplit(', ', 1))} checks"] * bool(checks) + sorted(others)
        parts = [f"# Left out: {', '.join(words)}." if words else "# Nothing is left out."]
        previous: ast.stmt | None = None
        for node in self.top:
            parts += self.gap(previous, node) + self.lines_of(node, 0)
            previous = node
        indent = 4 if "engine" in self.functions else 0
        parts += [""] * (2 if isinstance(previous, ast.FunctionDef | ast.ClassDef) or indent else 1)
        if indent:
            parts.append('if __name__ == "__main__":')
        previous = None
        for node in self.main:
            if previous and ast.FunctionDef in (type(previous), type(node)):
                parts += ["", ""]
            parts += self.lines_of(node, indent)
            previous = node
        return "\n".join(parts) + "\n"

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
        if getattr(node, "before", "") == ast.dump(node):
            shift = indent - node.col_offset
            lines = self.lines[self.first_line(node) - 1 : node.end_lineno]
            return [" " * shift + line if shift > 0 and line else line[-shift if shift < 0 else 0 :] for line in lines]
        same = getattr(node, "form", "") == _form(node)
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


def _tidied(nodes: list[ast.stmt], read: set[str], own: set[str] | None = None) -> list[ast.stmt]:
    """Statements without names that nothing reads, and without second names of one thing. ``own``: names that the
    example itself gives, if these are its statements."""
    before = ""
    while before != (before := ast.dump(ast.Module(nodes, []))):
        nodes = _Unread(set(_names(nodes)), read).statements(nodes)
        reads, writes = Counter(_names(nodes)), Counter(_names(nodes, ast.Store))
        for i, node in enumerate(nodes[:-1]):
            rest = nodes[i + 1 :]
            new: dict[str, ast.expr] | None = None
            match node, nodes[i + 1]:
                case ast.Assign([ast.Name(name)], ast.Tuple(elts) | ast.List(elts) as value), _ if writes[
                    name
                ] == 1 and all(isinstance(each, ast.Name) and writes[each.id] <= 1 for each in elts):
                    new = {name: value}
                case ast.Assign([ast.Name(name)], ast.Tuple() | ast.List() as value), (
                    ast.Assign() | ast.Expr() | ast.Return() as following
                ) if writes[name] == reads[name] == [*_names([following])].count(name) == 1:
                    new = {name: value}
                case (
                    ast.Assign([ast.Name(name)], ast.Call(ast.Attribute(attr="empty" | "empty_like"))),
                    ast.Return(ast.Call(keywords=[ast.keyword("out", ast.Name(out))]) as call),
                ) if name == out and reads[name] == 1:
                    call.keywords = []
                    new = {}
            if new is not None:
                nodes = [*nodes[:i], *(_replaced(new, each) for each in rest)]
                break
        else:
            if own is not None:
                nodes = _without_aliases(nodes, own)
    return nodes


def _without_aliases(nodes: list[ast.stmt], own: set[str]) -> list[ast.stmt]:
    writes = Counter(_names(nodes, ast.Store))
    for i, node in enumerate(nodes):
        match node:
            case ast.Assign([ast.Name(alias)], ast.Name(name)) if writes[alias] == 1:
                others = [*nodes[:i], *nodes[i + 1 :]]
                if name not in own and writes[name] and name not in _names(nodes[i + 1 :]):
                    return [_replaced({name: ast.Name(alias, ast.Load())}, each) for each in others]
                if writes[name] == 1 and alias not in own:
                    return [_replaced({alias: node.value}, each) for each in others]
            case ast.Assign([ast.Tuple(aliases) as there], ast.Name(name)) if writes[name] == 1 and name not in own:
                # Named together first: the statement that makes them gets their own names.
                made = next(k for k, each in enumerate(nodes) if name in _names([each], ast.Store))
                match nodes[made]:
                    case ast.Assign([ast.Name()], ast.Tuple(values)) if len(values) == len(aliases):
                        loads = ast.Tuple([ast.Name(ast.unparse(each), ast.Load()) for each in aliases], ast.Load())
                        between = [_replaced({name: loads}, each) for each in nodes[made + 1 : i]]
                        first = _assignment([there], ast.Tuple(values, ast.Load()))
                        return [*nodes[:made], first, *between, *nodes[i + 1 :]]
            case ast.Assign([ast.Tuple(aliases)], ast.Tuple(values)) if all(
                isinstance(x, ast.Name) and isinstance(y, ast.Name) and x.id not in own and writes[x.id] == 1
                for x, y in zip(aliases, values, strict=False)
            ):
                new = {x.id: y for x, y in zip(aliases, values, strict=True) if isinstance(x, ast.Name)}
                return [_replaced(new, each) for each in [*nodes[:i], *nodes[i + 1 :]]]
    return nodes


class _Unread(ast.NodeTransformer):
    """Leaves out assignments of names that were read before, and no longer are."""

    def __init__(self, reads: set[str], before: set[str]) -> None:
        self.reads, self.before = reads, before

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        match node:
            case ast.Assign([ast.Tuple(targets) as left], ast.Tuple(elts) as right) if len(targets) == len(elts):
                gone = [name in self.before - self.reads for name in map(ast.unparse, targets)]
                left.elts = [each for each, is_gone in zip(targets, gone, strict=True) if not is_gone]
                right.elts = [each for each, is_gone in zip(elts, gone, strict=True) if not is_gone]
                if not left.elts:
                    return None
        names = {*_names(node.targets, ast.Store)}
        simple = all(isinstance(target, ast.Name | ast.Tuple) for target in node.targets)
        return None if simple and names and names <= self.before and names.isdisjoint(self.reads) else node

    def statements(self, nodes: list[ast.stmt]) -> list[ast.stmt]:
        return [new for node in nodes if (new := self.visit(node))]


def _ended(body: list[ast.stmt], target: ast.expr | None) -> list[ast.stmt]:
    """The statements of a function, in which its return becomes an assignment."""
    *first, last = body
    match last:
        case ast.Return(ast.expr() as value):
            return [*first, _assignment([target], value) if target else ast.Expr(value)]
        case ast.With():
            last.body = _ended(last.body, target)
    return body


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _sources(node: ast.stmt, needed: set[str]) -> list[str]:
    """The modules from which an import takes what is needed."""
    match node:
        case ast.Import(names):
            return [each.name for each in names if (each.asname or each.name) in needed]
        case ast.ImportFrom(str(module), names) if any((each.asname or each.name) in needed for each in names):
            return [module]
    return []


def _loads(alias: ast.alias) -> str | None:
    """``a`` of ``import a.b``, which makes ``a.b`` usable under whatever name ``a`` has."""
    return alias.name.partition(".")[0] if "." in alias.name and not alias.asname else None


def _imported(nodes: list[ast.stmt]) -> set[str]:
    return {
        (alias.asname or alias.name).partition(".")[0]
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }


class _Inline(ast.NodeTransformer):
    """Puts the expression that a function returns in the place of its only call, within another expression."""

    def __init__(self, functions: dict[str, ast.FunctionDef], count: Callable[[str], int]) -> None:
        self.functions, self.count = functions, count

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
            ):
                new = {each.arg: argument for each, argument in zip(given, node.args, strict=True)}
                return _replaced(new, copy.deepcopy(value))
        return node


def _assignment(targets: list[ast.expr], value: ast.expr) -> ast.Assign:
    return ast.Assign(targets, value, lineno=0)  # without a place in the file


def _calls(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def _starred(call: ast.Call) -> bool:
    return any(isinstance(each, ast.Starred) for each in call.args)


def _argument(call: ast.Call, place: int, name: str, default: ast.expr | None) -> ast.expr | None:
    """What a call gives for a parameter. A starred argument fills those that have no default."""
    for each in call.keywords:
        if each.arg == name:
            return each.value
    if _starred(call):
        return default
    return call.args[place] if place < len(call.args) else default


def _returns(body: list[ast.stmt], name: str) -> bool:
    """Whether a function only gives this parameter back."""
    match body:
        case [ast.Return(ast.Name(found))]:
            return found == name
    return False


def _own_parts(node: ast.AST) -> Iterator[ast.AST]:
    """The node and what is in it, without what is in other functions."""
    yield node
    if not isinstance(node, ast.FunctionDef | ast.Lambda):
        for each in ast.iter_child_nodes(node):
            yield from _own_parts(each)


def _locals(function: ast.FunctionDef) -> list[str]:
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


def _defined(node: ast.stmt) -> set[str]:
    """The names that a statement at the top gives, or changes the things of."""
    match node:
        case ast.FunctionDef() | ast.ClassDef():
            return {node.name}
        case ast.Import() | ast.ImportFrom():
            return set()
        case ast.For():
            return {next(_names([node.iter]))}
        case ast.Assign(targets):
            return {*_names(targets, ast.Store), *_names(targets)}
        case ast.Expr():
            return {next(_names([node]))}
    return {*_names([node]), *_names([node], ast.Store)}


def _form(node: ast.AST) -> str:
    """All of it but its names."""
    return re.sub(r"Name\(id='\w+'", "Name(", ast.dump(node))


class _AsWritten(ast.NodeTransformer):
    """Constants as they were written, in the form of names; and brackets where a person would put them."""

    def __init__(self, text: str) -> None:
        self.text = text

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        source = ast.get_source_segment(self.text, node) if hasattr(node, "lineno") else None
        return ast.Name(source, ast.Load()) if source and "\n" not in source else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        source = ast.get_source_segment(self.text, node) if getattr(node, "before", "") == ast.dump(node) else None
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
                    and not {*_names(targets, ast.Store)} & {*_names(elts)}
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
