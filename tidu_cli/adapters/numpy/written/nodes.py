"""Loops and branches of files that tidu wrote: the names that they read and store, and the nodes that they become.

The functions of nodes take all that they read, in the order of the operands. Each node is None where the statement is Python's to
run: where nothing is traced, where a loop has no steps, changes the types of what it carries, or carries numbers of Python's, which
have no bounds. Such numbers, and lists, are given to functions as they are.
"""

from __future__ import annotations

import ast
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.buffers.memory import resolved
from tidu_cli.adapters.numpy.control_flow.bodies import Body, Leaf, Outside, operands_of, parameters, type_of, weak_of
from tidu_cli.adapters.numpy.recorder import Recorder, distinct, innermost
from tidu_cli.adapters.numpy.written.operations import as_array
from tidu_cli.graph.sizes.open import OpenSize
from tidu_cli.graph.sizes.open import surely as surely
from tidu_cli.graph.types import TensorType


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


Function = Callable[..., Any]
Results = tuple[Array, ...] | None


def scan(
    body: Function, length: Any, reverse: bool, consts: Sequence[Leaf], carry: Sequence[Leaf], scanned: Sequence[Leaf]
) -> Results:
    """What a loop of this length carries out, and the arrays of its other results."""
    recorder = _recorder()
    n = length if isinstance(length, OpenSize | Array) else operator.index(length)
    if recorder is None or isinstance(n, Array) or (isinstance(n, int) and n < 1):
        return None
    (first, first_arrays), (last, carried), (_, xs) = (_operands(recorder, some) for some in (consts, carry, scanned))
    if len(carried) < len(carry) or len(xs) < len(scanned) or any(x.shape[:1] != (n,) for x in xs):
        return None
    due = [x.type for x in carried]
    made, types = _recorded(recorder, body, [*first, *last, *[x.type.with_shape(x.type.shape[1:]) for x in xs]])
    if types[: len(due)] != due:
        return None
    return recorder.emit_all(
        "scan",
        [*operands_of(recorder, made.outside), *first_arrays, *carried, *xs],
        length=n,
        num_consts=len(made.outside) + len(first_arrays),
        num_carry=len(due),
        reverse=reverse,
        body=made.closed(made.outside),
    )


def loop(
    condition: Function, body: Function, of_condition: Sequence[Leaf], of_body: Sequence[Leaf], carry: Sequence[Leaf]
) -> Results:
    """What a loop carries out that goes on while a condition holds."""
    recorder = _recorder()
    if recorder is None:
        return None
    (tested, consts), (given, others), (last, carried) = (_operands(recorder, some) for some in (of_condition, of_body, carry))
    if len(carried) < len(carry):
        return None
    test, (*_, type_) = _recorded(recorder, condition, [*tested, *last])
    step, types = _recorded(recorder, body, [*given, *last])
    if type_ != TensorType("bool") or types != [x.type for x in carried]:
        return None
    return recorder.emit_all(
        "while",
        [*operands_of(recorder, test.outside), *consts, *operands_of(recorder, step.outside), *others, *carried],
        cond_consts=len(test.outside) + len(consts),
        body_consts=len(step.outside) + len(others),
        condition=test.closed(test.outside),
        body=step.closed(step.outside),
    )


def branch(index: Leaf, functions: Sequence[Function], operands: Sequence[Leaf], of_bool: bool) -> Results:
    """What one of these functions gives; the last of two where a bool is true, or any other number is not 0."""
    recorder = _recorder()
    if recorder is None or isinstance(index, bool | int | OpenSize):
        return None
    _, (chosen,) = _operands(recorder, [index])
    chosen = chosen if not of_bool or chosen.type.dtype == "bool" else chosen != 0
    given, arrays = _operands(recorder, operands)
    bodies = [_recorded(recorder, function, given)[0] for function in functions]
    outside: Outside = {}
    for body in bodies:
        outside |= body.outside
    closed = tuple([body.closed(outside) for body in bodies])
    return recorder.emit_all("cond", [chosen, *operands_of(recorder, outside), *arrays], branches=closed)


def _recorder() -> Recorder | None:
    """Where nodes are recorded now."""
    recorder = innermost()
    return recorder and recorder.open[-1]


def _operands(recorder: Recorder, leaves: Sequence[Leaf]) -> tuple[list[Any], list[Array]]:
    """What a function is given, and the arrays in it, which are operands."""
    given = [as_array(recorder, x) if isinstance(x, Array | np.ndarray | np.generic) else x for x in map(resolved, leaves)]
    return given, [x for x in given if isinstance(x, Array)]


def _recorded(recorder: Recorder, function: Function, given: Sequence[Any]) -> tuple[Body, list[TensorType | None]]:
    """The graph of a function of these, which it takes as inputs if they are arrays or types, and the types of its results.

    Python's numbers have no type.
    """
    body = Body(recorder)
    body.recorder.keeps_constants = True
    with body.going_on():
        names = distinct(parameters(function, [f"x{k}" for k in range(len(given))]))
        types = [x if isinstance(x, TensorType) else x.type if isinstance(x, Array) else None for x in given]
        arguments = [x if t is None else body.argument(name, t) for x, t, name in zip(given, types, names, strict=True)]
        results = function(*arguments)
        results = [resolved(x) for x in (results if isinstance(results, tuple) else (results,))]
        due = [None if weak_of(x) else type_of(x) for x in results]
        body.give([f"y{k}" for k in range(len(results))], [body.array(as_array(body.recorder, x)) for x in results])
    return body, due
