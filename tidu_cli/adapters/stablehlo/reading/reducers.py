"""What regions compute, told by their structure: reductions (sums, maxima, and the like) and the comparators of sorts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from tidu_cli.adapters.stablehlo.module import Block, Operation
from tidu_cli.adapters.stablehlo.reading.site import array_of
from tidu_cli.custom.packages import KNOWN
from tidu_cli.frozen import Frozen
from tidu_cli.graph.closed import ClosedGraph, forwards
from tidu_cli.graph.types import COMPLEXES, FLOATS, TensorType, Type
from tidu_cli.rules.recording.known import Recording
from tidu_cli.rules.terms import Term

COMMUTATIVE = frozenset({"add", "mul", "max", "min", "and", "or", "xor", "eq", "ne"})
TURNED = {"gt": "lt", "ge": "le"}
"""Comparisons that are another one of the operands in the other order."""

Function = Callable[..., Sequence[Term]]

SIMPLE = {"add": "sum", "mul": "prod", "max": "max", "min": "min", "and": "and", "or": "or", "xor": "xor"}
"""What a region of one operation reduces to."""


def reducer(graph: ClosedGraph) -> str | None:
    """What the graph of a region of one pair computes: sum, prod, max, min, and, or, xor, logsumexp, or None of these."""
    types = graph.input_types
    if len(types) != 2 or len(graph.output_types) != 1:
        return None
    return _signatures(types[0]).get(_signature(graph))


def pair_reducer(graph: ClosedGraph) -> str | None:
    """What the graph of a region of two pairs computes: argmax or argmin; ge or le for the second where the first is chosen."""
    types = graph.input_types
    if len(types) != 4 or len(graph.output_types) != 2:
        return None
    return _signatures(types[0], types[1]).get(_signature(graph))


def comparison(graph: ClosedGraph) -> str | None:
    """By what the graph of a region compares its two arguments: ge or le, or None of these."""
    if len(graph.input_types) != 2:
        return None
    return _names({op: _alone(op) for op in ("ge", "le")}, graph.input_types).get(_signature(graph))


def separate(graph: ClosedGraph) -> list[ClosedGraph] | None:
    """The graphs of a region of n pairs, if each result depends on its own pair alone."""
    n = len(graph.output_types)
    parts = [_part(graph, k, n) for k in range(n)]
    return None if None in parts else parts  # type: ignore[return-value]


def _part(graph: ClosedGraph, number: int, n: int) -> ClosedGraph | None:
    inner = graph.graph
    recording = Recording(KNOWN, [graph.input_types[number], graph.input_types[number + n]])
    values: dict[int, Term] = dict(zip((number, number + n), recording.sources, strict=True))
    for code, args, first, _ in forwards(inner, inner.args):
        if all(a in values for a in args):
            case = inner.cases[code]
            values.update(enumerate(recording.apply(case.op, case.attrs, [values[a] for a in args]), first))
    value = inner.outputs[number].value
    return recording.closed([values[value]]) if value in values else None


def _signature(graph: ClosedGraph) -> Any:
    """The results as expressions of the inputs, in which the order of operands that commute counts for nothing."""
    inner = graph.graph
    expressions: list[Any] = [("input", k) for k in range(len(inner.inputs))]
    for code, args, _, _ in forwards(inner, inner.args):
        case = inner.cases[code]
        operands = [expressions[a] for a in args]
        op = case.op
        if op in COMMUTATIVE:
            operands.sort(key=repr)
        if op in TURNED:
            op, operands = TURNED[op], operands[::-1]
        expressions += [(op, repr(case.attrs), *operands, k) for k in range(len(case.results))]
    return tuple(expressions[o.value] for o in inner.outputs if o.value is not None)


@cache
def _signatures(type_: TensorType, second: TensorType | None = None) -> dict[Any, str]:
    """What regions of this type may compute, or of pairs with a second one, by their signatures."""
    functions = _of_one(type_) if second is None else _of_two(type_)
    return _names(functions, [type_, type_] if second is None else [type_, second, type_, second])


def _names(functions: Mapping[str, Function], types: Sequence[Type]) -> dict[Any, str]:
    """The names of functions by their signatures."""
    names = {}
    for name, function in functions.items():
        recording = Recording(KNOWN, types)
        names[_signature(recording.closed(function(*recording.sources)))] = name.strip()
    return names


def _alone(op: str) -> Function:
    return lambda x, y: [x.trace.emit(op, x, y)]


def _of_one(type_: TensorType) -> dict[str, Function]:
    dtype = type_.dtype
    ops = [op for op in SIMPLE if dtype in KNOWN[op].domain.dtypes]
    functions = {SIMPLE[op]: _alone(op) for op in ops}
    if dtype in FLOATS:
        functions["logsumexp"] = _logaddexp
    if dtype in COMPLEXES:
        functions |= {"max": _complex("gt"), "min": _complex("lt")}
    return functions


def _of_two(type_: TensorType) -> dict[str, Function]:
    functions: dict[str, Function] = {"ge": _chosen("ge"), "le": _chosen("le")}
    for nan in (True,) if type_.dtype in FLOATS else (False, True):  # of what has none JAX asks for NaN, too
        functions |= {f"argmax{' ' * nan}": _place("gt", nan), f"argmin{' ' * nan}": _place("lt", nan)}
    return functions


def _logaddexp(x: Term, y: Term) -> Sequence[Term]:
    """log(e^x + e^y), which `equivalents.cancelling_kinks` reads, as JAX writes it: x + y if one is NaN, or both one infinity."""
    emit = x.trace.emit
    d = emit("sub", x, y)
    highest = emit("select_n", emit("le", x, y), x, y)
    distance = emit("select_n", emit("le", x, y), d, emit("neg", d))
    smooth = emit("add", highest, emit("log1p", emit("exp", emit("neg", distance))))
    return [emit("select_n", emit("ne", d, d), smooth, emit("add", x, y))]


def _complex(comparison: str) -> Function:
    """The greater or less of complex numbers by their real parts, and of the same by imaginary ones."""

    def function(x: Term, y: Term) -> Sequence[Term]:
        emit = x.trace.emit
        re, im = ([emit(part, z) for z in (x, y)] for part in ("real", "imag"))
        which = emit("select_n", emit("eq", *re), emit(comparison, *re), emit(comparison, *im))
        return [emit("select_n", which, y, x)]

    return function


def _chosen(comparison: str) -> Function:
    """Of two pairs the one whose first is greater, or less, and the first of both where they are equal."""

    def function(x: Term, i: Term, y: Term, j: Term) -> Sequence[Term]:
        emit = x.trace.emit
        which = emit(comparison, x, y)
        return [emit("select_n", which, y, x), emit("select_n", which, j, i)]

    return function


def _place(comparison: str, nan: bool) -> Function:
    """The greatest or least and its place, the first of equals; with `nan` NaN wins."""

    def function(x: Term, i: Term, y: Term, j: Term) -> Sequence[Term]:
        emit = x.trace.emit
        better = emit(comparison, x, y)
        if nan:
            better = emit("or", better, emit("ne", x, x))
        before = emit("and", emit("eq", x, y), emit("lt", i, j))
        return [emit("select_n", better, y, x), emit("select_n", emit("or", better, before), j, i)]

    return function


# What the comparators of sorts say: by which operands, in which order.
#
# A comparator takes two elements of each operand and says whether the first come before. JAX compares floats in their total order,
# and makes one of all NaNs and of both zeros before: that is how `sort` compares, so what does so is taken away here.


MIRRORED = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "EQ": "EQ", "NE": "NE"}


class SortKey(Frozen, slots=False):
    """An operand by its number, and whether the greatest of it comes first; of complex numbers, which `part`, or both for None."""

    operand: int
    descending: bool
    part: str | None = None


def sort_keys(block: Block, known: Callable[[int], Any]) -> list[SortKey] | None:
    """The keys of a comparator, the one that counts most first. None if it is no comparator of keys.

    `known` gives arrays for those values from around it that are known.
    """
    keys = _Comparator(block, known).keys(block.results[0])
    return None if keys is None else _whole(keys)


def _whole(keys: list[SortKey]) -> list[SortKey] | None:
    """Real and imaginary parts of a complex number as the number."""
    whole: list[SortKey] = []
    rest = list(keys)
    while rest:
        key = rest.pop(0)
        if key.part == "real":
            if not rest or rest.pop(0) != SortKey(key.operand, key.descending, "imag"):
                return None
            key = SortKey(key.operand, key.descending)
        elif key.part is not None:
            return None
        whole.append(key)
    return whole


class _Comparator:
    """The operations of a comparator by the values that they make."""

    def __init__(self, block: Block, known: Callable[[int], Any]) -> None:
        self.first = block.first
        self.known = known
        self.arguments = range(block.first, block.first + len(block.arguments))
        self.made = {o.first + k: o for o in block.operations for k in range(len(o.results))}

    def keys(self, value: int) -> list[SortKey] | None:
        """The keys of what a value says: a < b; or a < b or (a = b and what is said of further keys)."""
        operation = self.made.get(value)
        if operation is None:
            return None
        if operation.name == "stablehlo.compare":
            return self.compared(operation, ("LT", "GT"))
        if operation.name == "stablehlo.or":
            return self.either(*operation.operands) or self.either(*reversed(operation.operands))
        if operation.name == "stablehlo.select":
            which, same, differ = operation.operands
            return self.then(which, differ, same)
        return None

    def either(self, first: int, other: int) -> list[SortKey] | None:
        """The keys where the one says that a < b, and the other that they are the same, and more."""
        both = self.made.get(other)
        if both is None or both.name != "stablehlo.and":
            return None
        x, y = both.operands
        return self.then(x, first, y) or self.then(y, first, x)

    def then(self, same: int, differ: int, more: int) -> list[SortKey] | None:
        """The keys where elements are compared, and then others where they are the same."""
        key, equal = self.keys(differ), self.equal(same)
        rest = self.keys(more) if key is not None and equal is not None else None
        if key is None or equal is None or rest is None or len(key) != 1:
            return None
        return [*key, *rest] if (key[0].operand, key[0].part) == equal else None

    def equal(self, value: int) -> tuple[int, str | None] | None:
        """The operand whose two elements a value says to be the same."""
        operation = self.made.get(value)
        keys = self.compared(operation, ("EQ",)) if operation is not None and operation.name == "stablehlo.compare" else None
        return (keys[0].operand, keys[0].part) if keys else None

    def compared(self, operation: Operation, directions: tuple[str, ...]) -> list[SortKey] | None:
        """The key of a comparison of an operand's two elements."""
        direction = str(operation.attributes["comparison_direction"])
        x, y = (self.element(v) for v in operation.operands)
        if x is None or y is None:
            return None
        if x[0] % 2:
            x, y, direction = y, x, MIRRORED[direction]
        if direction not in directions or x[0] % 2 or y != (x[0] + 1, x[1]):
            return None
        return [SortKey(x[0] // 2, direction == "GT", x[1])]

    def element(self, value: int) -> tuple[int, str | None] | None:
        """The argument that a value is, and the part of it, but for what makes one of all NaNs, and of zeros."""
        part = None
        while value not in self.arguments:
            operation = self.made.get(value)
            if operation is None:
                return None
            if operation.name in ("stablehlo.real", "stablehlo.imag") and part is None:
                part = operation.name.rpartition(".")[2]
                value = operation.operands[0]
            elif operation.name == "stablehlo.select" and self.is_tidying(operation):
                value = operation.operands[2]
            else:
                return None
        return value - self.first, part

    def is_tidying(self, operation: Operation) -> bool:
        """Whether a choice is of NaN where a number is NaN, or of 0 where it is 0."""
        which, constant, _ = operation.operands
        test, due = self.made.get(which), self.constant(constant)
        if test is None or test.name != "stablehlo.compare" or due is None:
            return False
        x, y = test.operands
        direction = test.attributes["comparison_direction"]
        if math.isnan(due):
            return direction == "NE" and x == y
        return direction == "EQ" and due == 0 and 0 in (self.constant(x), self.constant(y))

    def constant(self, value: int) -> Any:
        """The number that a value is, None for others."""
        operation = self.made.get(value)
        if operation is not None and operation.name == "stablehlo.constant":
            array: Any = array_of(operation.attributes["value"])[0]
        else:
            array = self.known(value) if value < self.first else None
        return float(array) if array is not None and array.ndim == 0 and np.isrealobj(array) else None
