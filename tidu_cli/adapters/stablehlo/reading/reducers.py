"""What the regions of reductions compute, told by their structure: sums, maxima, and the like."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from tidu_cli.adapters.stablehlo.reading.recording import Recording
from tidu_cli.custom.packages import KNOWN
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.types import COMPLEXES, FLOATS, TensorType
from tidu_cli.graph.walk import forwards
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
    return _signatures(types[0], "one").get(_signature(graph))


def pair_reducer(graph: ClosedGraph) -> str | None:
    """What the graph of a region of two pairs computes: argmax or argmin; ge or le for the second where the first is chosen."""
    types = graph.input_types
    if len(types) != 4 or len(graph.output_types) != 2:
        return None
    return _signatures(types[0], "two", types[1]).get(_signature(graph))


def comparison(graph: ClosedGraph) -> str | None:
    """By what the graph of a region compares its two arguments: ge or le, or None of these."""
    if len(graph.input_types) != 2:
        return None
    found = {}
    for name in ("ge", "le"):
        recording = Recording(KNOWN, graph.input_types)
        found[_signature(recording.closed([recording.emit(name, *recording.sources)]))] = name
    return found.get(_signature(graph))


def separate(graph: ClosedGraph) -> list[ClosedGraph] | None:
    """The graphs of a region of n pairs, if each result depends on its own pair alone."""
    n = len(graph.output_types)
    found = [_part(graph, k, n) for k in range(n)]
    return None if None in found else found  # type: ignore[return-value]


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
    found: list[Any] = [("input", k) for k in range(len(inner.inputs))]
    for code, args, _, _ in forwards(inner, inner.args):
        case = inner.cases[code]
        operands = [found[a] for a in args]
        op = case.op
        if op in COMMUTATIVE:
            operands.sort(key=repr)
        if op in TURNED:
            op, operands = TURNED[op], operands[::-1]
        found += [(op, repr(case.attrs), *operands, k) for k in range(len(case.results))]
    return tuple(found[o.value] for o in inner.outputs if o.value is not None)


@cache
def _signatures(type_: TensorType, kind: str, second: TensorType | None = None) -> dict[Any, str]:
    """What regions of this type may compute, by their signatures."""
    functions = _of_one(type_) if kind == "one" else _of_two(type_)
    types = [type_, type_] if second is None else [type_, second, type_, second]
    found = {}
    for name, function in functions.items():
        recording = Recording(KNOWN, types)
        found[_signature(recording.closed(function(*recording.sources)))] = name.strip()
    return found


def _of_one(type_: TensorType) -> dict[str, Function]:
    dtype = type_.dtype
    ops = [op for op in SIMPLE if dtype in KNOWN[op].domain.dtypes]
    found: dict[str, Function] = {SIMPLE[op]: lambda x, y, op=op: [x.trace.emit(op, x, y)] for op in ops}
    if dtype in FLOATS:
        found["logsumexp"] = _logaddexp
    if dtype in COMPLEXES:
        found |= {"max": _complex("gt"), "min": _complex("lt")}
    return found


def _of_two(type_: TensorType) -> dict[str, Function]:
    found: dict[str, Function] = {"ge": _chosen("ge"), "le": _chosen("le")}
    for nan in (True,) if type_.dtype in FLOATS else (False, True):  # of what has none JAX asks for NaN, too
        found |= {f"argmax{' ' * nan}": _place("gt", nan), f"argmin{' ' * nan}": _place("lt", nan)}
    return found


def _logaddexp(x: Term, y: Term) -> Sequence[Term]:
    """log(e^x + e^y) as JAX writes it, which is x + y where one is NaN, or both are the same infinity."""
    emit = x.trace.emit
    d = emit("sub", x, y)
    smooth = emit("add", emit("max", x, y), emit("log1p", emit("exp", emit("neg", emit("abs", d)))))
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
