"""Which values of a loop's body are numbers a t + b in its step t: places of slices, mostly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidu_cli.frozen import Frozen
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.graph import Case
from tidu_cli.graph.types import INTEGERS, TensorType
from tidu_cli.graph.walk import forwards
from tidu_cli.lax.arrays.structural import literal_array


class Affine(Frozen, slots=False):
    """The number slope · t + start in step t."""

    slope: int
    start: int

    def range(self, length: int) -> tuple[int, int]:
        """The least and the greatest of so many steps."""
        ends = self.start, self.start + self.slope * (length - 1)
        return min(ends), max(ends)


def affine_values(graph: ClosedGraph, counts: Mapping[int, Affine], length: int) -> dict[int, Affine]:
    """The scalars of integers of a body that are affine, where inputs of these numbers are."""
    found, truths = dict(counts), dict[int, bool]()
    inner = graph.graph
    for code, args, first, _ in forwards(inner, inner.args):
        case = inner.cases[code]
        result = case.results[0]
        if len(case.results) != 1 or not isinstance(result, TensorType) or result.shape:
            continue
        if result.dtype == "bool":
            truth = _truth(case, [found.get(a) for a in args], length)
            if truth is not None:
                truths[first] = truth
        elif result.dtype in INTEGERS:
            value = _value(case, args, found, truths, length)
            if value is not None and fits(value, result.dtype, length):
                found[first] = value
    return found


def fits(value: Affine, dtype: str, length: int) -> bool:
    """Whether a dtype of integers has the numbers of all steps, so that none wraps round."""
    low, high = value.range(length)
    n = int(dtype[1:]) - (dtype[0] == "i")
    return (-(2**n) if dtype[0] == "i" else 0) <= low and high < 2**n


def _truth(case: Case, operands: list[Affine | None], length: int) -> bool | None:
    """What a comparison says in all steps, None if it says this in some and that in others."""
    if len(operands) != 2 or None in operands or case.op not in ("lt", "le", "gt", "ge"):
        return None
    x, y = (o.range(length) for o in operands if o is not None)
    if case.op in ("gt", "ge"):
        x, y = y, x
    strict = case.op in ("lt", "gt")
    if x[1] < y[0] or (x[1] == y[0] and not strict):
        return True
    return False if x[0] > y[1] or (x[0] == y[1] and strict) else None


def _value(case: Case, args: Any, found: dict[int, Affine], truths: dict[int, bool], length: int) -> Affine | None:
    if case.op == "constant":
        import numpy as np

        value: Any = case.attrs
        return Affine(0, int(literal_array(np, value.value)))
    if case.op == "select_n":
        which = truths.get(args[0])
        return None if which is None else found.get(args[1 + which])
    operands = [found.get(a) for a in args]
    if None in operands:
        return None
    known = [o for o in operands if o is not None]
    return _computed(case.op, known, length)


def _computed(op: str, known: list[Affine], length: int) -> Affine | None:
    x, y = known[0], known[-1]
    if op in ("convert_element_type", "copy"):
        return x
    if op == "neg":
        return Affine(-x.slope, -x.start)
    if op in ("add", "sub"):
        sign = 1 if op == "add" else -1
        return Affine(x.slope + sign * y.slope, x.start + sign * y.start)
    if op == "mul" and not (x.slope and y.slope):
        steep, flat = (x, y) if x.slope else (y, x)
        return Affine(steep.slope * flat.start, steep.start * flat.start)
    if op in ("max", "min"):
        (x0, x1), (y0, y1) = x.range(length), y.range(length)
        if x0 >= y1 or x1 <= y0:
            return (x if x0 >= y1 else y) if op == "max" else (y if x0 >= y1 else x)
    if op == "clamp":
        low, x, high = known
        if low.range(length)[1] <= x.range(length)[0] and x.range(length)[1] <= high.range(length)[0]:
            return x
    return None
