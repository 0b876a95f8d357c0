"""Derivatives from values alone: an interval in which one lies, at points around which nothing jumps or bends.

Whether a kink may be near is not guessed. Every node with kinks has a quantity that is 0 where it has one (the operand of `abs`,
the difference of the operands of `max`); where that quantity moves, between x - h v and x + h v, by less than half of its distance
from 0, its interval, taken twice as wide, does not hold 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.graphs.interpret import every_value
from tidu_cli.graph.graph import Case, Document, Graph
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import INEXACT, TensorType

Values = dict[Key, Any]

STEPS = (2.0**-5, 2.0**-8, 2.0**-11)
"""The first steps of difference quotients that are tried, until none meets a kink."""


def is_decided(document: Document, at: Values, v: Values) -> float | None:
    """The greatest of STEPS within which no node can have a kink; None if there is none."""
    for h in STEPS:
        points = [every_value(document, {**at, **{k: at[k] + s * h * t for k, t in v.items()}})[-1] for s in (0, -1, 1, -0.5, 0.5)]
        if not any(_may_bend(document.head, node, points) for node in range(document.head.n_nodes)):
            return h
    return None


def _may_bend(graph: Graph, node: int, points: list[list[Any]]) -> bool:
    case = graph.case(node)
    operands = [[values[a] for a in graph.operands(node)] for values in points]
    first = len(graph.inputs) + sum(len(graph.case(n).results) for n in range(node))
    for k, type_ in enumerate(case.results):
        if isinstance(type_, TensorType) and type_.dtype not in INEXACT:  # a choice, or something rounded
            here, *others = (np.asarray(values[first + k]) for values in points)
            if any((x != here).any() for x in others):
                return True
    here, *others = (list(_distances(case, x)) for x in operands)
    for k, quantity in enumerate(here):
        spread = np.max([np.abs(other[k] - quantity) for other in others], axis=0)
        if not (np.abs(quantity) > 2 * spread).all() and np.size(quantity):
            return True
    return False


def _distances(case: Case, x: list[Any]) -> Iterator[Any]:
    """Quantities that are 0 where a node of this case has a kink or jumps, at these operands."""
    match case.op:
        case "abs" | "sign":
            yield np.asarray(x[0])
        case "max" | "min" | "eq" | "ne" | "lt" | "le" | "gt" | "ge" | "nextafter":
            yield np.subtract(x[0], x[1], dtype=np.result_type(x[0], x[1], float))
        case "clamp":
            for bound in (x[0], x[2]):
                yield np.subtract(x[1], bound, dtype=np.result_type(x[1], float))
        case "floor" | "ceil" | "round":
            yield _from_half(x[0])
        case "convert_element_type" if not np.iscomplexobj(x[0]):
            if isinstance(case.results[0], TensorType) and case.results[0].dtype not in INEXACT:
                yield _from_half(np.asarray(x[0], float))
        case "rem":
            yield _from_half(np.divide(x[0], x[1]))
        case "atan2" if not np.iscomplexobj(x[0]):
            yield np.where(np.asarray(x[1]) < 0, x[0], np.hypot(x[0], x[1]))
        case (
            "reduce_max"
            | "reduce_min"
            | "cummax"
            | "cummin"
            | "argmax"
            | "argmin"
            | "sort"
            | "top_k"
            | "scatter-max"
            | "scatter-min"
        ):
            elements = np.concatenate([np.ravel(a) for a in x if np.asarray(a).dtype.kind in "fc"] or [np.zeros(0)])
            order = np.lexsort((elements.imag, elements.real))
            yield np.diff(elements[order])
        case "lu":
            yield np.diff(np.sort(np.abs(np.ravel(x[0]))))
        case "sqrt" | "rsqrt" | "log" | "log1p" | "pow" | "cbrt" | "lgamma" if np.iscomplexobj(x[0]):
            z = np.asarray(x[0]) + (case.op == "log1p")
            yield np.where(z.real < 0, z.imag, np.abs(z))
        case "asin" | "acos" | "atan" | "asinh" | "acosh" | "atanh" if np.iscomplexobj(x[0]):
            yield np.real(x[0])
            yield np.imag(x[0])


def _from_half(x: Any) -> Any:
    """How far numbers are from the next multiple of 1/2."""
    twice = 2 * np.asarray(x, float)
    return twice - np.round(twice)


def difference_interval(f: Callable[[Values], Any], at: Values, v: Values, h: float) -> tuple[Any, Any]:
    """Middle and radius of an interval in which the derivative of f along v lies, elementwise.

    Central differences at h, h/2, h/4 and h/8, three times extrapolated to 0 (Richardson). The radius is what the last
    extrapolation changed, fourfold, and what rounding of the values can have changed.
    """
    column, largest = [], 0.0
    for k in range(4):
        step = h / 2**k
        ahead, behind = (np.asarray(f({**at, **{key: at[key] + s * step * t for key, t in v.items()}})) for s in (1, -1))
        largest = np.maximum(largest, np.abs(ahead) + np.abs(behind))
        column.append((ahead - behind) / (2 * step))
    table = [column]
    for order in range(1, 4):
        factor = 4.0**order
        table.append([(factor * b - a) / (factor - 1) for a, b in zip(table[-1], table[-1][1:], strict=False)])
    rounding = 64 * 2.0**-52 * largest / (h / 8)
    return table[3][0], 4 * np.abs(table[3][0] - table[2][1]) + rounding
