"""What an example does not need: checks of arguments, and ways for others than its own."""

import ast
import copy

from gpu_cookbook.short.names import assignment, calls_to, is_docstring, names_in, replaced, walk

COUNTS = {"rows", "columns", "count", "k"}  # what recipes call a number of elements
CHECKS = {  # what is looked at -> the words in a check that tell it
    "shape": ("shape", "ndim", "chunk", "size", "rows"),
    "dtype": ("dtype",),
    "layout": ("contiguous", "carray", "offset", "fits", "strides"),
    "device": ("device", "place", "GPU"),
    "other": (),  # others
}


class LeaveOut(ast.NodeTransformer):
    """Leaves out, below a statement, what an example does not need, and notes what that is."""

    def __init__(
        self, left_out: set[str], dtypes: set[str], any_shape: bool, functions: dict[str, ast.FunctionDef]
    ) -> None:
        self.left_out = left_out
        self.parts = "engine" in functions  # whether processes get parts of the arrays, which may be empty
        self.empty = {name for name, function in functions.items() if _does_nothing(function)}
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

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        self.generic_visit(node)
        return None if any(calls_to(node.value, name) for name in self.empty) else node

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        node.value = self.visit(node.value)
        self.none -= set(names_in(node.targets, ast.Store))
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
        node.body = node.body or [ast.Pass()] * bool(node.orelse)
        return node if node.body else []

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        match node.iter:
            case ast.Tuple([_, _, *_]) as ways if "round_trip" in names_in([ways]):  # two ways to one result
                ways.elts = [way for way in ways.elts if "round_trip" not in names_in([way])]
        match node.iter:
            case ast.Tuple([value]):
                return [assignment([node.target], value), *node.body]
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
            case ast.Subscript(ast.Tuple(elts), ast.Constant(int(place))) if all(map(_is_name, elts)):
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
            while node.args and _is_none(node.args[-1]):  # an argument before others keeps its place
                node.args.pop()
            node.keywords = [each for each in node.keywords if not _is_none(each.value)]
        # An array of PyCUDA's pool may not outlive the context, as a script's own arrays do.
        if node.args and _allocates(node.args[-1]) or any(_allocates(each.value) for each in node.keywords):
            self.left_out.add("memory pools")
            node.args = [each for each in node.args if not _allocates(each)]
            node.keywords = [each for each in node.keywords if not _allocates(each.value)]
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
            case ast.Call(ast.Name("map"), [ast.Name("index"), ast.Tuple() as numbers]):
                self.left_out.add("conversions")
                return numbers
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
                    return replaced({f"{x}.ravel()": ast.Name(x, ast.Load())}, made)
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
            case ast.Compare(ast.Name(name), [ast.Is() | ast.IsNot() as op], [ast.Name(same)]) if name == same:
                return ast.Constant(isinstance(op, ast.Is))
            case ast.Compare(ast.Name(name), [ast.Is() | ast.IsNot() as op], [ast.Constant(None)]) if (
                name in self.given
            ):
                return ast.Constant(isinstance(op, ast.IsNot))
            case ast.Compare(ast.Attribute(attr="ndim"), [ast.Eq()], [ast.Constant(1)]):
                self.left_out.add("other shapes")
                return ast.Constant(True)
            case ast.Compare(left, [ast.Eq()], [ast.Constant(0)]) if self.counts(left):
                self.left_out.add("empty arrays")
                return ast.Constant(False)
            case ast.Call(ast.Attribute(attr="may_share_memory")):
                self.left_out.add("overlaps")
                return ast.Constant(False)
        if self.counts(test):
            self.left_out.add("empty arrays")
            return ast.Constant(True)
        return test

    def counts(self, node: ast.expr) -> bool:
        """Whether it counts elements or axes of an array that is not empty, and so is not 0."""
        match node:
            case ast.Attribute(ast.Name(), "size") | ast.Call(ast.Attribute(ast.Name(), "numel"), []):
                return not self.parts
            case ast.Attribute(ast.Name(), "ndim"):
                return True
            case ast.Name(name):
                return name in COUNTS and not self.parts
            case ast.BinOp(left, ast.Mult(), right):
                return self.counts(left) and self.counts(right)
        return False


def _refuses(node: ast.If) -> bool:
    """Whether it is a check of arguments. Other errors are answers of the work itself."""
    match node.body[-1]:
        case ast.Raise(ast.Call(ast.Name("ValueError"))):
            return not any(isinstance(part, ast.NamedExpr) for part in walk(node.test))
    return False


def _is_none(node: ast.expr) -> bool:
    """Whether it stood for a parameter that is None."""
    return isinstance(node, ast.Constant) and node.kind == "out"


def _does_nothing(function: ast.FunctionDef) -> bool:
    """Whether no statement is left. A decorator may make something of it."""
    return not function.decorator_list and all(isinstance(x, ast.Pass) or is_docstring(x) for x in function.body)


def _is_name(node: ast.expr) -> bool:
    return isinstance(node, ast.Name)


def _is_plain(node: ast.expr) -> bool:
    """Whether it is a name, or a number of NumPy's that is made of one."""
    match node:
        case ast.Name() | ast.Call(ast.Attribute(ast.Name("np")), [ast.Name()], []):
            return True
    return False


def _allocates(node: ast.expr) -> bool:
    """Whether it is a pool's way to make memory, as an argument."""
    return isinstance(node, ast.Attribute) and node.attr == "allocate"


def _unrolled(node: ast.GeneratorExp | ast.ListComp) -> list[ast.expr]:
    """The elements, if there are few and they are known."""
    match node.generators:
        case [ast.comprehension(ast.Name(name), ast.Tuple(elts) | ast.List(elts), [])] if (
            all(isinstance(each, ast.Name) for each in elts) or [*names_in([node.elt])].count(name) == 1
        ) and not any(isinstance(each, ast.Starred) for each in elts):
            return [replaced({name: each}, copy.deepcopy(node.elt)) for each in elts]
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
            # Made here, or of a few numbers; a star may also group what is long.
            case ast.Starred(ast.Tuple(elts) | ast.List(elts) as value) if not hasattr(value, "lineno") or all(
                map(_is_plain, elts)
            ):
                found += elts
            case _:
                found.append(node)
    return found
