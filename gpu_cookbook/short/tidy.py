"""Names that are in the way once other things are left out."""

import ast
from collections import Counter

from gpu_cookbook.short.names import assignment, names_in, replaced


def tidied(nodes: list[ast.stmt], read: set[str], own: set[str] | None = None) -> list[ast.stmt]:
    """Statements without names that nothing reads, and without second names of one thing. ``own``: names that the
    example itself gives, if these are its statements."""
    before = ""
    while before != (before := ast.dump(ast.Module(nodes, []))):
        nodes = _Unread(set(names_in(nodes)), read).statements(nodes)
        reads, writes = Counter(names_in(nodes)), Counter(names_in(nodes, ast.Store))
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
                ) if writes[name] == reads[name] == [*names_in([following])].count(name) == 1:
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
                gone = [name in self.before - self.reads for name in map(ast.unparse, targets)]
                left.elts = [each for each, is_gone in zip(targets, gone, strict=True) if not is_gone]
                right.elts = [each for each, is_gone in zip(elts, gone, strict=True) if not is_gone]
                if not left.elts:
                    return None
        names = {*names_in(node.targets, ast.Store)}
        simple = all(isinstance(target, ast.Name | ast.Tuple) for target in node.targets)
        return None if simple and names and names <= self.before and names.isdisjoint(self.reads) else node

    def statements(self, nodes: list[ast.stmt]) -> list[ast.stmt]:
        return [new for node in nodes if (new := self.visit(node))]
