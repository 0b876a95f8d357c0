"""Nodes that take less in another form, for what is beside or before them.

Choices that comparisons of floats make, as `relu` and its derivative do, by operators that do not branch at each element. Sums of
what is scattered, which is added to the others in place. What bounds allow, whatever inputs are: gates of recurrent networks and
their slopes are small, and places that were clipped fit an integer.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from tidu_cli.graph.closed import forwards
from tidu_cli.graph.graph import Case, Graph
from tidu_cli.graph.types import FLOATS, INTEGERS, TensorType
from tidu_cli.lax.arrays.structural import literal_array

LEAST = 2**14
"""Choices of fewer elements are Where: what else they take is more than they save."""


def choices(graph: Graph) -> tuple[Mapping[int, str], Mapping[int, int]]:
    """The nodes that are written in another form, by the names of `templates.FORMS`; and comparisons behind Relu.

    Masks that come in, or that places decide, are in runs, at which Where is quick. What Relu gives is compared with 0 instead of
    what it takes, so that it is the one reader of a convolution, which runtimes make it a part of. It has the number of Relu.
    """
    forms: dict[int, str] = {}
    behind: dict[int, int] = {}
    made: dict[int, tuple[Case, Sequence[int]]] = {}
    node_of: dict[int, int] = {}
    read: set[int] = set()
    for node, (code, args, first, _) in enumerate(forwards(graph, graph.args)):
        case = graph.cases[code]
        if case.op == "select_n" and len(args) == 3 and args[0] in made:
            comparison, compared = made[args[0]]
            if comparison.op in ("lt", "le", "gt", "ge") and _floats(comparison.operands[0]) and _floats(case.results[0]):
                zeros = [_is_zero(made, value) for value in (args[1], args[2], compared[1])]
                if comparison.op == "le" and compared[0] == args[1] and zeros[1] and zeros[2] and args[2]:
                    forms[node] = "relu"
                    if args[0] not in read and compared[0] > 0:
                        behind[node_of[args[0]]] = node
                elif case.results[0].size >= LEAST:
                    forms[node] = "others kept" if zeros[1] else "kept" if zeros[0] else "by products"
        made[first], node_of[first] = (case, args), node
        read.update(args)
    return forms, behind


def _floats(type_: object) -> bool:
    return isinstance(type_, TensorType) and type_.dtype == "f32"


def _is_zero(made: Mapping[int, tuple[Case, Sequence[int]]], value: int) -> bool:
    while value in made and made[value][0].op == "broadcast_in_dim":
        value = made[value][1][0]
    if value not in made or made[value][0].op != "constant":
        return False
    return not np.any(literal_array(np, made[value][0].attrs.value))  # type: ignore[attr-defined]


def additions(graph: Graph, kept: Collection[int]) -> tuple[Mapping[int, str], Mapping[int, int]]:
    """The forms of sums of a value and of what is scattered to zeros for this alone; and those scatters, which add to the value.

    What they give is the sum already. `kept` are values that are read outside of the graph.
    """
    forms: dict[int, str] = {}
    onto: dict[int, int] = {}
    made: dict[int, tuple[Case, Sequence[int]]] = {}
    node_of: dict[int, int] = {}
    uses = Counter([*graph.args, *kept])
    for node, (code, args, first, _) in enumerate(forwards(graph, graph.args)):
        case = graph.cases[code]
        if case.op == "add" and args[0] != args[1] and min(args) >= 0:
            last = max(args)
            scatter, operands = made.get(last, (case, ()))
            if scatter.op == "scatter-add" and uses[last] == 1 and _is_zero(made, operands[0]) and scatter.results == case.results:
                onto[node_of[last]] = min(args)
                forms[node] = "first" if args[0] == last else "second"
        made[first], node_of[first] = (case, args), node
    return forms, onto


SMALL = 16.0
"""Products by elements so large at most are as good in another order: none overflows that does not nearly do so else."""

Bounds = tuple[float, float]
"""The least and the greatest an element may be, if it is not NaN."""

_ANY: Bounds = (-math.inf, math.inf)
_OF_OP: Mapping[str, Bounds] = {"logistic": (0.0, 1.0), **dict.fromkeys(("tanh", "sin", "cos", "erf"), (-1.0, 1.0))}
_SAME = frozenset({"reshape", "transpose", "broadcast_in_dim", "slice", "split", "expand_dims", "squeeze", "rev", "copy"})


def by_bounds(graph: Graph) -> Mapping[int, str]:
    """The nodes of a graph that bounds have written in another form: scans, with their small operands; and conversions."""
    bounds, found = [_ANY] * len(graph.inputs), dict[int, str]()
    for node, (code, args, _, _) in enumerate(forwards(graph, graph.args)):
        case, operands = graph.cases[code], [bounds[a] if a >= 0 else _ANY for a in args]
        if case.op == "scan":
            found[node] = " ".join(str(k) for k, (low, high) in enumerate(operands) if low >= -SMALL and high <= SMALL)
        elif case.op == "convert_element_type" and _fits(case, *operands):
            found[node] = "fits"
        bounds += _of_results(case, operands)
    return {node: form for node, form in found.items() if form}


def _fits(case: Case, bounds: Bounds) -> bool:
    """Whether floats are within the range of an integer, with much room for rounding."""
    source, target = case.operands[0].dtype, case.results[0].dtype  # type: ignore[union-attr]
    if source not in FLOATS or target not in INTEGERS:
        return False
    most = 2.0 ** (int(target[1:]) - 2)
    return (-most if target[0] == "i" else 0.0) <= bounds[0] and bounds[1] <= most


def _of_results(case: Case, operands: Sequence[Bounds]) -> Sequence[Bounds]:
    if case.op == "scan":
        return _of_steps(case.attrs, operands)
    return [_of_result(case, operands)] * len(case.results)


def _of_result(case: Case, operands: Sequence[Bounds]) -> Bounds:
    if getattr(case.results[0], "dtype", "") not in FLOATS:  # integers wrap round
        return _ANY
    op, (x, y, *_) = case.op, (*operands, _ANY, _ANY)
    if op == "constant":
        array = literal_array(np, case.attrs.value)  # type: ignore[attr-defined]
        return (float(array.min()), float(array.max())) if array.size else _ANY
    if op == "add":
        return x[0] + y[0], x[1] + y[1]
    if op == "sub":
        return x[0] - y[1], x[1] - y[0]
    if op == "mul" and all(map(math.isfinite, (*x, *y))):
        products = [a * b for a, b in product(x, y)]
        return min(products), max(products)
    if op in ("max", "min"):
        chosen = max if op == "max" else min
        return chosen(x[0], y[0]), chosen(x[1], y[1])
    return x if op in _SAME else _OF_OP.get(op, _ANY)


def _of_steps(attrs: Any, operands: Sequence[Bounds]) -> Sequence[Bounds]:
    """What is carried may be anything."""
    graph, n, end = attrs.body.graph, attrs.num_consts, attrs.num_consts + attrs.num_carry
    bounds = [*operands[:n], *[_ANY] * (end - n), *operands[end:]]
    for code, args, _, _ in forwards(graph, graph.args):
        bounds += _of_results(graph.cases[code], [bounds[a] for a in args])
    return [_ANY if k < end - n else bounds[o.value] for k, o in enumerate(graph.outputs)]
