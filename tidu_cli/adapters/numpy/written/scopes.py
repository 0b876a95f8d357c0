"""The names of functions in files that tidu wrote: what is read, stored and kept, and which lists loops fill."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence


class Scope:
    """The names of a function, or of a module: how often each is read there, and what functions within it read."""

    def __init__(self, node: ast.FunctionDef | ast.Module, outer: Scope | None) -> None:
        self.outer, self.own = outer, list(_own(node))
        self.stored = Counter(stored(self.own))
        functions = [x for x in self.own if isinstance(x, ast.FunctionDef)]
        self.functions = {f.name: f for f in functions if self.stored[f.name] == 1 and not f.decorator_list}
        self.loads = loads(self.own)
        for function in functions:
            self.loads.update(_free(function))
        loops = [x for loop in self.own if isinstance(loop, ast.For | ast.While) for x in ast.walk(loop)]
        held = [t for x in self.own if isinstance(x, ast.Assign) and _may_change(x.value) for t in x.targets]
        self.changing = {_ANYTHING, *(name for name, n in self.stored.items() if n > 1), *names_of(held), *stored(loops)}

    def keeps(self, function: ast.expr) -> bool:
        """Whether a function gives the same whenever it is called with the same: it reads nothing else that changes."""
        seen: dict[str, ast.FunctionDef | None] = {}
        pending = [(self, name) for name in names_of([function])]
        while pending:
            scope, name = pending.pop()
            while name not in scope.stored and name != _ANYTHING and scope.outer is not None:
                scope = scope.outer
            called = scope.functions.get(name)
            if name in scope.changing or not (seen or called):
                return False
            if called and seen.get(name) is not called:
                pending += [(scope, other) for other in _free(called)]
            seen[name] = called
        return True


_ANYTHING = ""
"""Stands for what a function that has `global` or `nonlocal` may read and change."""


def _may_change(value: ast.expr) -> bool:
    """Whether it is a list or the like, or made by a function that is not NumPy's; sizes are computed by max and min."""
    displays = ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp | ast.GeneratorExp
    return isinstance(value, displays) or (isinstance(value, ast.Call) and names_of([value.func])[0] not in ("", "max", "min"))


def stored(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The names that these nodes store, each as often as they do."""
    for node in nodes:
        match node:
            case ast.Name(name, ast.Store() | ast.Del()) | ast.FunctionDef(name) | ast.ClassDef(name) | ast.arg(name):
                yield name
            case ast.alias(name, other):
                yield (other or name).partition(".")[0]


def loads(nodes: Iterable[ast.AST]) -> Counter[str]:
    """How often names are read by these nodes."""
    return Counter(x.id for x in nodes if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Load))


def _free(function: ast.FunctionDef) -> set[str]:
    """The names that a function reads, also in functions within it, which are not its own."""
    own = list(_own(function))
    read = set(loads(own)).union(*[_free(x) for x in own if isinstance(x, ast.FunctionDef)]) - set(stored(own))
    return read | ({_ANYTHING} if any(isinstance(x, ast.Global | ast.Nonlocal) for x in own) else set())


def lists_of(scope: Scope) -> dict[str, str]:
    """Lists that one statement fills, from `[]` on: how each is stacked, as it is, "[]", all backwards, "[::-1]", or never, ""."""
    empty: set[str] = set()
    appended: Counter[str] = Counter()
    stacked: Counter[tuple[str, str]] = Counter()
    for node in scope.own:
        match node:
            case ast.Assign([ast.Name(name)], ast.List([])):
                empty.add(name)
            case ast.Attribute(ast.Name(name), "append"):
                appended[name] += 1
            case ast.Call(function, [ast.Name(name)]) if dotted(function) in ("np.stack", "np.array"):
                stacked[name, "[]"] += 1
            case ast.Call(function, [ast.Subscript(ast.Name(name), index)]) if dotted(function) in ("np.stack", "np.array"):
                stacked[name, ast.unparse(index).join("[]")] += 1
    lists = {}  # in whose place an array may stand, as np.stack and np.array give the same of both
    for name in empty:
        ways = stacked[name, "[]"], stacked[name, "[::-1]"]
        if scope.stored[name] == appended[name] == 1 and scope.loads[name] == 1 + sum(ways) and not all(ways):
            lists[name] = "[]" if ways[0] else "[::-1]" if ways[1] else ""
    return lists


def _own(function: ast.FunctionDef | ast.Module) -> Iterator[ast.AST]:
    """What stands in a function or module, its parameters too, and not in functions within it, which have names of their own."""
    pending: list[ast.AST] = [*function.body, *([function.args] if isinstance(function, ast.FunctionDef) else [])]
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, ast.FunctionDef):
            pending += ast.iter_child_nodes(node)


def names_of(nodes: Sequence[ast.AST]) -> list[str]:
    """The names that nodes are; "" for others."""
    return [node.id if isinstance(node, ast.Name) else "" for node in nodes]


def dotted(function: ast.expr) -> str:
    """A name such as np.linalg.svd; "" of what is none."""
    match function:
        case ast.Attribute(ast.Name(name), attribute):
            return f"{name}.{attribute}"
        case ast.Attribute(ast.Attribute() as inner, attribute):
            return f"{dotted(inner)}.{attribute}"
    return ""
