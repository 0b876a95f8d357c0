"""Datetimes and durations, which are counts: where those are not simply numbers, as in other units, or where NaT is.

NaT is the least of all counts, and among datetimes what NaN is among floats. Less 1, modulo 2^64, counts are in the same order
but for NaT, which is the greatest then: so it wins as a maximum, and comes last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from jax import lax
from jax import numpy as jnp

from tidu_cli.adapters.jax.lowering import arrays
from tidu_cli.adapters.jax.lowering.records import of_kernel
from tidu_cli.graph.graph import Case
from tidu_cli.graph.text import NOT_A_TIME
from tidu_cli.graph.types import DATETIMES, TIMES, TensorType

_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_FIRST: dict[str, Callable[..., Any]] = {
    "max": lambda attrs, x, y: lax.max(x, y),
    "reduce_max": lambda attrs, x: lax.reduce_max(x, **attrs),
    "cummax": lambda attrs, x: lax.cummax(x, **attrs),
    "argmax": arrays.FUNCTIONS["argmax"],
    "sort": arrays.FUNCTIONS["sort"],
    "top_k": arrays.FUNCTIONS["top_k"],
    "scatter-max": arrays.FUNCTIONS["scatter-max"],
}
"""The functions in which NaT is to be the greatest."""


def function(case: Case) -> Callable[..., Any] | None:
    """The function of a case of times that is not the function of their counts; None of others."""
    dtypes = [t.dtype for t in (*case.operands, *case.results) if isinstance(t, TensorType)]
    if not any(dtype in TIMES for dtype in dtypes):
        return None
    attrs = dict(cast(Any, case.attrs))
    if case.op == "convert_element_type":
        return _converted(case, *dtypes)
    if not DATETIMES.intersection(dtypes):
        return None
    if case.op == "sub":
        return of_kernel(case)
    if case.op in _COMPARISONS:
        return lambda x, y: _compared(case.op, x, y)
    if case.op == "clamp":
        return lambda low, x, high: jnp.where(_none(low) | _none(x) | _none(high), NOT_A_TIME, lax.clamp(low, x, high))
    called = _FIRST.get(case.op)
    return None if called is None else _with_none_greatest(case, lambda *xs: called(attrs, *xs))


def _converted(case: Case, old: str, new: str) -> Callable[..., Any]:
    """Conversions of times: of their counts as they are, but where datetimes may be NaT, or units differ."""
    if old == new:
        return lambda x: x
    if (old in TIMES and new in TIMES) or DATETIMES & {old, new}:
        return of_kernel(case)
    attrs = dict(cast(Any, case.attrs))
    return lambda x: arrays.convert(attrs, x)


def _compared(op: str, x: Any, y: Any) -> Any:
    either, truth = _none(x) | _none(y), getattr(lax, op)(x, y)
    return truth | either if op == "ne" else truth & ~either


def _none(x: Any) -> Any:
    return jnp.equal(x, NOT_A_TIME)


def _with_none_greatest(case: Case, compute: Callable[..., Any]) -> Callable[..., Any]:
    taken, given = ([isinstance(t, TensorType) and t.dtype in DATETIMES for t in types] for types in (case.operands, case.results))

    def ordered(*values: Any) -> Any:
        outcome = compute(*[x - 1 if time else x for x, time in zip(values, taken, strict=True)])
        results = outcome if isinstance(outcome, tuple | list) else (outcome,)
        return tuple([y + 1 if time else y for y, time in zip(results, given, strict=True)])

    return ordered
