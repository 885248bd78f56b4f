"""Names that are in the way once other things are left out."""

import ast
from collections import Counter
from collections.abc import Iterator

from gpu_cookbook.short.names import assignment, calls_to, dumped, names_in, replaced, walk


def tidied(nodes: list[ast.stmt], read: set[str], own: set[str] | None = None) -> list[ast.stmt]:
    """Statements without names that nothing reads, and without second names of one thing. ``own``: names that the
    example itself gives, if these are its statements."""
    before = ""
    while before != (before := dumped(ast.Module(nodes, []))):
        nodes = _Unread(set(names_in(nodes)), read).statements(nodes)
        reads, writes = Counter(names_in(nodes)), Counter(names_in(nodes, ast.Store))
        for i, node in enumerate(nodes[:-1]):
            rest = nodes[i + 1 :]
            new: dict[str, ast.expr] | None = None
            match node, nodes[i + 1]:
                case ast.Assign([ast.Name(name)], ast.Tuple(elts) | ast.List(elts) as value), _ if (
                    writes[name] == 1
                    and _stays(name, value, nodes)
                    and all(isinstance(each, ast.Name) for each in elts)
                    and {*names_in(elts)}.isdisjoint(names_in(rest, ast.Store))
                ):
                    new = {name: value}
                case ast.Assign([ast.Name(name)], ast.Tuple() | ast.List() as value), (
                    ast.Assign() | ast.Expr() | ast.Return() as following
                ) if (
                    writes[name] == reads[name] == [*names_in([following])].count(name) == 1
                    and _stays(name, value, nodes)
                    and name not in names_in(_repeated(following))
                ):
                    new = {name: value}
                case (
                    ast.Assign([ast.Name(name)], ast.Call(ast.Attribute(attr="empty" | "empty_like"))),
                    ast.Return(ast.Call(keywords=[ast.keyword("out", ast.Name(out))]) as call),
                ) if name == out and reads[name] == 1:
                    call.keywords = []
                    new = {}
            if new is not None:
                nodes = [*nodes[:i], *(replaced(new, each) for each in rest)]
                break
        else:
            if own is not None:
                nodes = _without_aliases(nodes, own)
    return nodes


def _stays(name: str, value: ast.expr, nodes: list[ast.stmt]) -> bool:
    """Whether nothing changes it: a tuple, or a list that is only unpacked or gone through."""
    parts = [part for node in nodes for part in walk(node)]
    reads = [
        part for part in parts if isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Load)
    ]
    safe = [part.value for part in parts if isinstance(part, ast.Starred)]
    safe += [part.iter for part in parts if isinstance(part, ast.comprehension | ast.For)]
    return isinstance(value, ast.Tuple) or all(any(read is each for each in safe) for read in reads)


def _repeated(node: ast.AST) -> Iterator[ast.AST]:
    """What is done again and again there, or later."""
    for part in walk(node):
        match part:
            case ast.Lambda(body=body):
                yield body
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                once = part.generators[0].iter
                yield from (each for each in walk(part) if isinstance(each, ast.Name) and each is not once)


def _acts(node: ast.AST) -> bool:
    """Whether a call there may do something. One without arguments only asks for something, as len() does."""
    calls = [part for part in walk(node) if isinstance(part, ast.Call) and not calls_to(part, "len")]
    return any(call.args or call.keywords for call in calls)


def _without_aliases(nodes: list[ast.stmt], own: set[str]) -> list[ast.stmt]:
    writes = Counter(names_in(nodes, ast.Store))
    for i, node in enumerate(nodes):
        match node:
            case ast.Assign([ast.Name(alias)], ast.Name(name)) if writes[alias] == 1:
                others = [*nodes[:i], *nodes[i + 1 :]]
                if name not in own and writes[name] and name not in names_in(nodes[i + 1 :]):
                    return [replaced({name: ast.Name(alias, ast.Load())}, each) for each in others]
                if writes[name] == 1 and alias not in own:
                    return [replaced({alias: node.value}, each) for each in others]
            case ast.Assign([ast.Tuple(aliases) as there], ast.Name(name)) if writes[name] == 1 and name not in own:
                # Named together first: the statement that makes them gets their own names.
                made = next(k for k, each in enumerate(nodes) if name in names_in([each], ast.Store))
                match nodes[made]:
                    case ast.Assign([ast.Name()], ast.Tuple(values)) if len(values) == len(aliases):
                        loads = ast.Tuple([ast.Name(ast.unparse(each), ast.Load()) for each in aliases], ast.Load())
                        between = [replaced({name: loads}, each) for each in nodes[made + 1 : i]]
                        first = assignment([there], ast.Tuple(values, ast.Load()))
                        return [*nodes[:made], first, *between, *nodes[i + 1 :]]
            case ast.Assign([ast.Tuple(aliases)], ast.Tuple(values)) if all(
                isinstance(x, ast.Name) and isinstance(y, ast.Name) and x.id not in own and writes[x.id] == 1
                for x, y in zip(aliases, values, strict=False)
            ):
                new = {x.id: y for x, y in zip(aliases, values, strict=True) if isinstance(x, ast.Name)}
                return [replaced(new, each) for each in [*nodes[:i], *nodes[i + 1 :]]]
    return nodes


class _Unread(ast.NodeTransformer):
    """Leaves out assignments of names that were read before, and no longer are."""

    def __init__(self, reads: set[str], before: set[str]) -> None:
        self.reads, self.before = reads, before

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        match node:
            case ast.Assign([ast.Tuple(targets) as left], ast.Tuple(elts) as right) if len(targets) == len(elts):
                unread = [name in self.before - self.reads for name in map(ast.unparse, targets)]
                gone = [is_unread and not _acts(each) for is_unread, each in zip(unread, elts, strict=True)]
                left.elts = [each for each, is_gone in zip(targets, gone, strict=True) if not is_gone]
                right.elts = [each for each, is_gone in zip(elts, gone, strict=True) if not is_gone]
                if not left.elts:
                    return None
        names = {*names_in(node.targets, ast.Store)}
        simple = all(isinstance(target, ast.Name | ast.Tuple) for target in node.targets)
        is_unread = simple and names and names <= self.before and names.isdisjoint(self.reads)
        return None if is_unread and not _acts(node.value) else node

    def statements(self, nodes: list[ast.stmt]) -> list[ast.stmt]:
        return [new for node in nodes if (new := self.visit(node))]
