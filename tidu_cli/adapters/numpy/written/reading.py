"""Files of NumPy source that tidu wrote, read again: loops and branches of the forms that it writes are those of graphs.

Python has no way to trace a `for`, `while` or `if` over arrays. In these files each has one form, which calls functions that stand
above it; it becomes a call of `nodes`. What has another form stays as it is, and so do files of others. So does what would be
something else as a graph: a loop of which more is read than it carries out, and functions that read what changes, or change it.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from types import ModuleType

from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.adapters.numpy.written import nodes, operations
from tidu_cli.adapters.numpy.written.nodes import Scope, dotted, lists_of, loads, names_of, stored
from tidu_cli.adapters.source_code import HELPERS

NODES, OPERATIONS, MADE = "__nodes", "__operations", "__made"
"""The names under which they have the functions of two modules, and results of nodes; no name that tidu writes begins so."""
_MEANT = {"np": 1, "range": 0, "reversed": 0, "*": 0}
"""How often such a file gives names a meaning that is read into it: one that gives others is what it says."""


def run(module: ModuleType, source: bytes, file: str) -> None:
    """Run the source of a file that tidu wrote as this module. Raises what Python does, and BuildError."""
    try:
        tree = ast.parse(source, file)
        statements, given = _Statements(Scope(tree, None)), Counter(stored(ast.walk(tree)))
        if all(given[name] == n for name, n in _MEANT.items()):
            tree.body = [statements.visit(x) if isinstance(x, ast.FunctionDef) else x for x in tree.body]
        code = compile(ast.fix_missing_locations(tree), file, "exec")
    except (RecursionError, MemoryError):  # of Python's parser, too
        raise BuildError(f"{file}: an expression has too many others within it; give parts of it names") from None
    module.__dict__.update({NODES: nodes, OPERATIONS: operations})
    exec(code, module.__dict__)


class _Statements(ast.NodeTransformer):
    """Statements of a function, and of those within it, as graphs are made of them."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.backwards: set[str] = set()
        self.begun: dict[str, str] = {}

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        outer = self.backwards, self.begun, self.scope
        self.scope = Scope(node, self.scope)
        self.backwards, self.begun = set(), lists_of(self.scope)
        if node.name in operations.HELPERS and ast.dump(node) == ast.dump(ast.parse(HELPERS[node.name]).body[0]):
            node.decorator_list.append(ast.Subscript(_operation("HELPERS"), ast.Constant(node.name), ast.Load()))
        else:
            self.generic_visit(node)
        self.backwards, self.begun, self.scope = outer
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
        """`for k in range(n): carry, y_k = body(consts, carry, xs[k]); y_ks.append(y_k)`, also reversed."""
        call, *appends = node.body
        n, reverse = _counted(node.iter)
        found, kept = _call(call), [_appended(append) for append in appends]
        if n is None or found is None or None in kept or node.orelse or not isinstance(node.target, ast.Name):
            return node
        targets, function, arguments = found
        k, lists, items = node.target.id, [name for name, _ in filter(None, kept)], [item for _, item in filter(None, kept)]
        scanned = [_at(argument, k) for argument in arguments]
        n_scanned = next((n for n, x in enumerate(reversed(scanned)) if x is None), len(scanned))
        carry, xs = targets[: len(targets) - len(items)], [x for x in scanned[len(scanned) - n_scanned :] if x is not None]
        first = len(arguments) - n_scanned - len(carry)
        if targets[len(carry) :] != items or first < 0 or names_of(arguments[first : first + len(carry)]) != carry:
            return node
        if {"", k, *targets, *lists} & {*names_of([function, *arguments[:first], *xs])}:  # which each step would have anew
            return node
        within = loads(ast.walk(node))
        is_read = any(self.scope.loads[name] > within[name] for name in (k, *items))  # as Python has them afterwards, too
        is_listed = all(self.begun.get(name) in ("", "[::-1]" if reverse else "[]") for name in lists)
        if is_read or not is_listed or not self.scope.keeps(function):
            return node
        self.backwards |= set(lists) if reverse else set()
        given = [n, ast.Constant(reverse), _tuple(arguments[:first]), _loaded(carry), _tuple(xs)]
        return _replaced(node, [*carry, *lists], "scan", [function, *given])

    def visit_While(self, node: ast.While) -> ast.AST:
        """`while condition(consts, carry): carry = body(consts, carry)`."""
        found = _call(node.body[0]) if len(node.body) == 1 else None
        if found is None or node.orelse or not _is_call(node.test):
            return node
        carry, function, arguments = found
        tested, n = node.test.args, len(carry)  # type: ignore[attr-defined]
        firsts = [some[: len(some) - n] for some in (tested, arguments)]
        called = [node.test.func, function]  # type: ignore[attr-defined]
        carried = all(names_of(some[len(some) - n :]) == carry for some in (tested, arguments))
        fixed = not {"", *carry} & {name for some in firsts for name in names_of(some)}
        if not n or not carried or not fixed or not all(map(self.scope.keeps, called)):
            return node
        given = [*called, *map(_tuple, firsts), _loaded(carry)]
        return _replaced(node, carry, "loop", given)

    def visit_If(self, node: ast.If) -> ast.AST:
        """`if index <= 0: y = branch(x)`, `elif index == 1: ...`, `else: ...`; or of a bool, `if index: ... else: ...`."""
        match node:
            case ast.If(ast.Compare(_, _, [ast.Constant(int())]), [ast.Raise()], []):  # of a bound, which types may leave open
                nothing = ast.arguments([], [], None, [], [], None, [])
                node.test = _of_nodes("surely", [ast.Lambda(nothing, node.test)])
                return node
        tests, bodies = [], []
        rest: list[ast.stmt] = [node]
        while len(rest) == 1 and isinstance(rest[0], ast.If):
            tests.append(rest[0].test)
            bodies.append(rest[0].body)
            rest = rest[0].orelse
        found = [_call(body[0]) if len(body) == 1 else None for body in (*bodies, rest)]
        calls = [call for call in found if call is not None]
        if len(calls) < len(found) or any(_given(a) != _given(b) for a, b in pairwise(calls)):
            return node
        index = tests[0] if len(tests) == 1 and isinstance(tests[0], ast.Name) else _index(tests)
        functions = [function for _, function, _ in calls]
        if index is None or not all(map(self.scope.keeps, functions)):
            return node
        of_bool = index is tests[0]
        given = [index, _tuple(functions[::-1] if of_bool else functions), _tuple(calls[0][2]), ast.Constant(of_bool)]
        return _replaced(node, calls[0][0], "branch", given)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """A list of results as it is stacked: those of loops that go backwards are in order."""
        node = self.generic_visit(node)  # type: ignore[assignment]
        if self.backwards & {*names_of([node.value])} and ast.unparse(node.slice) == "::-1":
            return _performed("in_order", [node.value])
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        node = self.generic_visit(_backwards(node))  # type: ignore[assignment]
        name = dotted(node.func)
        match name, len(node.args), [k.arg for k in node.keywords]:
            case _, 1, ["axis"] | ["axis", "dtype"] if name in _ACCUMULATING:
                given = [ast.Constant(_ACCUMULATING[name]), ast.Constant(False), *node.args]
                return _performed("accumulated", given, node.keywords)
            case "np.bitwise_and.reduce" | "np.bitwise_or.reduce" | "np.bitwise_xor.reduce", 1, ["axis"]:
                return _performed("bitwise", [ast.Constant(name[11:-7]), *node.args], node.keywords)
            case _, 1, [] if _A_NUMBER.fullmatch(name):
                return _performed("number", [node.func, *node.args])
            case (
                ("np.pad", 2, [] | ["constant_values"])
                | ("np.arange", 1, ["dtype"])
                | ("np.outer" | "np.clip", _, [])
                | ("np.stack", 1, [])
            ):
                return _performed(name.removeprefix("np."), node.args, node.keywords)
            case "np.max" | "np.min", 1, ["initial"] | ["axis", "initial"]:
                return _performed("extreme", [ast.Constant(name.removeprefix("np.")), *node.args], node.keywords)
            case "np.select", 3, []:
                return _selected(node, *node.args)
        match node:
            case ast.Call(ast.Attribute(x, "view"), [dtype], []):
                return _performed("view", [x, dtype])
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """`x.T @ y`, which is one product, and 1 / np.sqrt(x); a number that is divided would be 1.0."""
        node = self.generic_visit(node)  # type: ignore[assignment]
        match node:
            case ast.BinOp(ast.Constant(int(1)), ast.Div(), ast.Call(function, [x], [])) if dotted(function) == "np.sqrt":
                return _performed("rsqrt", [x])
        if not isinstance(node.op, ast.MatMult):
            return node
        sides = [node.left, node.right]
        turned = [isinstance(x, ast.Attribute) and x.attr == "T" for x in sides]
        given = [x.value if isinstance(x, ast.Attribute) and is_turned else x for x, is_turned in zip(sides, turned, strict=True)]
        return _performed("matmul", [*given, _tuple(list(map(ast.Constant, turned)))])


def _counted(iterated: ast.expr) -> tuple[ast.expr | None, bool]:
    """The n of range(n), or of reversed(range(n)), and whether it is that."""
    match iterated:
        case ast.Call(ast.Name("range"), [n], []):
            return n, False
        case ast.Call(ast.Name("reversed"), [ast.Call(ast.Name("range"), [n], [])], []):
            return n, True
    return None, False


def _is_call(node: ast.AST) -> bool:
    """Whether it calls a function by its name, and by positions alone."""
    if not isinstance(node, ast.Call) or node.keywords or not isinstance(node.func, ast.Name):
        return False
    return not any(isinstance(x, ast.Starred) for x in node.args)


def _call(statement: ast.stmt) -> tuple[list[str], ast.expr, list[ast.expr]] | None:
    """What `a, b = f(x, y)` assigns, calls and gives it; None of other statements."""
    if not isinstance(statement, ast.Assign | ast.Expr) or not _is_call(statement.value):
        return None
    targets: Sequence[ast.expr] = ()
    if isinstance(statement, ast.Assign):
        (target, *others) = statement.targets
        targets = target.elts if isinstance(target, ast.Tuple) else [target]
        if others or not all(isinstance(t, ast.Name) for t in targets):
            return None
    call = statement.value
    assert isinstance(call, ast.Call)
    return names_of(targets), call.func, call.args


def _given(call: tuple[list[str], ast.expr, list[ast.expr]]) -> tuple[list[str], str]:
    """What a call assigns and is given, to be compared."""
    return call[0], ast.dump(_tuple(call[2]))


def _appended(statement: ast.stmt) -> tuple[str, str] | None:
    """The names in `ys.append(y)`."""
    match statement:
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(name), "append"), [ast.Name(item)], [])):
            return name, item
    return None


def _at(argument: ast.expr, k: str) -> ast.expr | None:
    """The array of `xs[k]`."""
    match argument:
        case ast.Subscript(array, ast.Name(index)) if index == k:
            return array
    return None


def _index(tests: Sequence[ast.expr]) -> ast.expr | None:
    """The i of `i <= 0`, `i == 1`, ..."""
    index = tests[0].left if isinstance(tests[0], ast.Compare) else None
    if not isinstance(index, ast.Name):
        return None
    due = [f"{index.id} {'==' if k else '<='} {k}" for k in range(len(tests))]
    return index if list(map(ast.unparse, tests)) == due else None


_ACCUMULATING = {
    "np.cumsum": "cumsum", "np.cumprod": "cumprod", "np.maximum.accumulate": "cummax", "np.minimum.accumulate": "cummin",
    "np.logaddexp.accumulate": "cumlogsumexp",
}  # fmt: skip

_A_NUMBER = re.compile(r"np\.(int|uint|float|complex)\d+")


def _backwards(node: ast.Call) -> ast.Call:
    """`np.flip(np.cumsum(np.flip(x, k), axis=k), k)`, as one operation; other calls as they are."""
    match node:
        case ast.Call(_, [ast.Call(_, [ast.Call(_, [x, first], [])], _) as inner, last], []):
            functions = [dotted(f) for f in (node.func, inner.args[0].func)]  # type: ignore[attr-defined]
            op = _ACCUMULATING.get(dotted(inner.func))
            along = {ast.dump(axis) for axis in (first, last, *(k.value for k in inner.keywords if k.arg == "axis"))}
            if functions == ["np.flip"] * 2 and op and len(along) == 1:
                return _performed("accumulated", [ast.Constant(op), ast.Constant(True), x], inner.keywords)
    return node


def _operation(name: str) -> ast.expr:
    """A function of `operations`."""
    return ast.Attribute(ast.Name(OPERATIONS, ast.Load()), name, ast.Load())


def _performed(name: str, operands: Sequence[ast.expr], options: Sequence[ast.keyword] = ()) -> ast.Call:
    return ast.Call(_operation(name), list(operands), list(options))


def _selected(node: ast.Call, tests: ast.expr, cases: ast.expr, last: ast.expr) -> ast.expr:
    """The choice that `np.select([i < 1, i < 2], [a, b], c)` is."""
    if not isinstance(tests, ast.List) or not isinstance(cases, ast.List):
        return node
    indices = [test.left if isinstance(test, ast.Compare) else test for test in tests.elts]
    due = [f"{ast.unparse(indices[0])} < {k}" for k in range(1, len(indices) + 1)]
    if list(map(ast.unparse, tests.elts)) != due or len(cases.elts) != len(due):
        return node
    return _performed("select", [indices[0], *cases.elts, last])


def _tuple(parts: Sequence[ast.expr]) -> ast.Tuple:
    return ast.Tuple(list(parts), ast.Load())


def _loaded(names: Sequence[str]) -> ast.Tuple:
    return _tuple([ast.Name(name, ast.Load()) for name in names])


def _replaced(node: ast.stmt, targets: Sequence[str], function: str, arguments: Sequence[ast.expr]) -> ast.stmt:
    """A statement in the place of one: a call of a function of `nodes`, and the statement itself where that gives None."""
    made = ast.NamedExpr(ast.Name(MADE, ast.Store()), _of_nodes(function, arguments))
    target = ast.Tuple([ast.Name(name, ast.Store()) for name in targets], ast.Store())
    assigned = ast.Assign([target], ast.Name(MADE, ast.Load()))
    return ast.copy_location(ast.If(ast.Compare(made, [ast.Is()], [ast.Constant(None)]), [node], [assigned]), node)


def _of_nodes(function: str, arguments: Sequence[ast.expr]) -> ast.expr:
    return ast.Call(ast.Attribute(ast.Name(NODES, ast.Load()), function, ast.Load()), list(arguments), [])
