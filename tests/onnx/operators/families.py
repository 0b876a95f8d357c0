"""Checks of an operator over models that are drawn at random: values against other evaluators, dtypes and derivatives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

import ml_dtypes
import numpy as np

from tests.onnx.operators.derivatives import require_right
from tests.onnx.operators.one_node import One, by_reference, by_runtime, by_tidu, eps, require_agreement, require_equal
from tests.tiers import examples

Draw = Callable[[np.random.Generator], One | None]
"""A model for a generator, None for one that makes no sense."""

Evaluator = Callable[[One], Sequence[Any]]


def both(one: One) -> list[Evaluator]:
    """The other evaluators, where each is right."""
    return [by_reference, by_runtime]


def models(draw: Draw, n: int) -> Iterable[One]:
    """The models of n seeds."""
    drawn = (draw(np.random.default_rng(seed)) for seed in range(n))
    return (one for one in drawn if one is not None)


def require_values(draw: Draw, others: Callable[[One], Sequence[Evaluator]] = both, n: int = 60, tolerance: float = 2e-5) -> None:
    """What tidu computes is what those of the other evaluators compute that take the model, of at least a third of them.

    In `make test` there are fewer.
    """
    n, compared = examples(n, check=max(n // 5, 10)), 0
    for one in models(draw, n):
        right = [given for other in others(one) if (given := _computed(other, one))]
        if right:
            require_agreement(one, tolerance, tolerance, right)
            compared += 1
    assert compared >= n // 3, f"{compared} of {n} are compared"


def _computed(other: Evaluator, one: One) -> Evaluator | None:
    """An evaluator that gives what this one computes, which takes a while, once; None if it does not take the model."""
    try:
        outputs = other(one)
    except Exception:  # each has its own
        return None
    return wraps(other)(lambda _: outputs)


def require_dtypes(
    draw: Draw, dtypes: Sequence[Any] = (np.float16, ml_dtypes.bfloat16, np.float64), apart: Sequence[int] = ()
) -> None:
    """Floats of other dtypes, `apart` from some operands, give results of these, as exact as they can be."""
    for dtype in (np.float16, ml_dtypes.bfloat16, np.float64):
        for one in models(draw, 8):
            operands = [_cast(x, x if k in apart else dtype) for k, x in enumerate(one.operands)]
            exact = [_cast(x, x if k in apart else np.float64) for k, x in enumerate(operands)]
            outputs, due = (by_tidu(One(one.op, x, one.attrs, outputs=one.outputs)) for x in (operands, exact))
            expected = [_cast(y, dtype) for y in due]
            scale = max(1.0, *(np.abs(y).max(initial=0) for y in due if y.dtype.kind == "f"))
            require_equal(outputs, expected, str(one), 32 * eps(dtype), 32 * eps(dtype) * scale)


def _cast(x: Any, dtype: Any) -> Any:
    """Floats of a dtype, or as those of an array; other values as they are."""
    if x is None or np.asarray(x).dtype.kind not in "fV" or isinstance(dtype, np.ndarray):
        return x
    return np.asarray(x).astype(dtype)


def require_derivatives(draw: Draw, apart: Sequence[int] = (), n: int = 8) -> None:
    """Derivatives by all operands of floats, `apart` from some, are right."""
    for one in models(draw, n):
        floats = [k for k, x in enumerate(one.operands) if x is not None and np.asarray(x).dtype.kind == "f" and k not in apart]
        if floats and all(np.size(x) for x in one.operands if x is not None):
            require_right(one.model, one.given, [f"x{k}" for k in floats])
