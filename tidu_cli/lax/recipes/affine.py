"""Which values of a loop's body are numbers a t + b in its step t: places of slices, mostly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from tidu_cli.errors import UndecidedSizeError
from tidu_cli.frozen import Frozen
from tidu_cli.graph.closed import ClosedGraph, forwards
from tidu_cli.graph.graph import Case
from tidu_cli.graph.sizes.open import OpenSize
from tidu_cli.graph.types import INTEGERS, TensorType
from tidu_cli.lax.arrays.structural import literal_array


class Affine(Frozen, slots=False):
    """The number slope · t + start in step t."""

    slope: int
    start: Any
    """An integer, or an open size."""

    def range(self, length: Any) -> tuple[Any, Any]:
        """The least and the greatest value after these steps, which is one at least."""
        ends = self.start, self.start + self.slope * (length - 1)
        return ends if self.slope >= 0 else ends[::-1]


def affine_values(graph: ClosedGraph, counts: Mapping[int, Affine], length: Any) -> dict[int, Affine]:
    """The scalars of integers of a body that are affine, where inputs of these numbers are; `length` may be an open size."""
    scalars, truths = dict(counts), dict[int, bool]()
    inner = graph.graph
    for code, args, first, _ in forwards(inner, inner.args):
        case = inner.cases[code]
        result = case.results[0]
        if len(case.results) != 1 or not isinstance(result, TensorType) or result.shape:
            continue
        if result.dtype == "bool":
            truth = decided(lambda: _truth(case, [scalars.get(a) for a in args], length))  # noqa: B023 - called at once
            if truth is not None:
                truths[first] = truth
        elif result.dtype in INTEGERS:
            value = decided(lambda: _value(case, args, scalars, truths, length))  # noqa: B023
            if value is not None and fits(value, result.dtype, length):
                scalars[first] = value
    return scalars


T = TypeVar("T")


def decided(answer: Callable[[], T]) -> T | None:
    """An answer, None where it depends on what open sizes are."""
    try:
        return answer()
    except UndecidedSizeError:
        return None


def fits(value: Affine, dtype: str, length: Any) -> bool:
    """Whether a dtype of integers has the numbers of all steps, so that none wraps round: as i32 has all open sizes of modules."""
    low, high = value.range(length)
    n = int(dtype[1:]) - (dtype[0] == "i")
    if isinstance(low, OpenSize) or isinstance(high, OpenSize):
        return n >= 31 and decided(lambda: low >= 0) is True
    return bool((-(2**n) if dtype[0] == "i" else 0) <= low and high < 2**n)


def _truth(case: Case, operands: list[Affine | None], length: Any) -> bool | None:
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


def _value(case: Case, args: Any, scalars: dict[int, Affine], truths: dict[int, bool], length: Any) -> Affine | None:
    if case.op == "constant":
        import numpy as np

        value: Any = case.attrs
        return Affine(0, int(literal_array(np, value.value)))
    if case.op == "size":
        return Affine(0, case.attrs.expression)  # type: ignore[attr-defined]
    if case.op == "select_n":
        which = truths.get(args[0])
        return None if which is None else scalars.get(args[1 + which])
    operands = [scalars.get(a) for a in args]
    if None in operands:
        return None
    known = [o for o in operands if o is not None]
    return _computed(case.op, known, length)


def _computed(op: str, known: list[Affine], length: Any) -> Affine | None:
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
