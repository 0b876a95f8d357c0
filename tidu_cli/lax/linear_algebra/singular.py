"""Where numbers that repeat, or are 0, to rounding, leave no derivative: rules make it infinite there, and `tidu check` says why.

A quotient by what is 0 but for rounding would be a number like any other. It is infinite instead, unless the dividend is exactly 0:
then it is 0, so that derivatives of what does not depend on the vectors of such numbers, and of some vectors alone, are right.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidu_cli.graph.sizes.open import OpenSize, larger
from tidu_cli.graph.types import TensorType, real_dtype
from tidu_cli.lax.linear_algebra.matrices import abs_, broadcast_in_dim, gt, select_n
from tidu_cli.rules.contract import SingularRule
from tidu_cli.rules.terms import Term, op

_EPSILON = {"f32": 2.0**-23, "f64": 2.0**-52}
_GREATEST = {"f32": (2 - 2.0**-23) * 2.0**127, "f64": (2 - 2.0**-52) * 2.0**1023}
ROUNDINGS = 16
"""As many as part numbers that are taken for equal, for each of them."""


def rounding(w: Term, n: int, scale: Term | None = None) -> Term:
    """Up to which magnitude numbers are taken for 0: of each vector w of n values, or of `scale`, in the shape of w."""
    greatest = op("reduce_max")(abs_(w if scale is None else scale), axes=tuple(range(w.type.rank - 1, (scale or w).type.rank)))
    bound = greatest * _relative(greatest, n)
    return broadcast_in_dim(bound, shape=w.type.shape, broadcast_dimensions=tuple(range(w.type.rank - 1)))


def resolution(like: Term, n: int) -> Term:
    """1 over the rounding of computations with n × n matrices, in an array of this type."""
    relative = 1 / _relative(like, larger(n, 1))
    return relative if isinstance(relative, Term) else like.trace.full(relative, like.type)


def _relative(like: Term, n: int) -> Term | float:
    """The rounding of n numbers, relative to them: in an array of this type where n is open."""
    roundings, epsilon = ROUNDINGS * n, _EPSILON[like.type.dtype]
    return like.trace.full(roundings, like.type) * epsilon if isinstance(n, OpenSize) else roundings * epsilon


def apart(w: Term, bound: Term, like: Term) -> Term:
    """Of which pairs of numbers w the difference is more than the bounds of both, in matrices of the shape of `like`."""
    shape = TensorType(w.type.dtype, like.type.shape)
    columns, rows = (_spread(w, shape, axis) for axis in (1, 2))
    limits = op("max")(*(_spread(bound, shape.with_dtype(bound.type.dtype), axis) for axis in (1, 2)))
    return gt(abs_(columns - rows), limits)


def _spread(d: Term, type_: TensorType, axis: int) -> Term:
    return broadcast_in_dim(d, shape=type_.shape, broadcast_dimensions=(*range(d.type.rank - 1), type_.rank - axis))


def infinite(x: Term, unless: Term) -> Term:
    """x, but infinite where `unless` does not hold and x is not exactly 0: it is linear in x."""
    one = x.trace.full(1, x.type)
    scale = select_n(unless, x.trace.full(_GREATEST[real_dtype(x.type.dtype)], x.type), one)
    return x * scale * scale


def quotient(x: Term, divisor: Term, regular: Term) -> Term:
    """x / divisor, but infinite where `regular` does not hold and x is not exactly 0."""
    return infinite(x, regular) / select_n(regular, divisor.trace.full(1, divisor.type), divisor)


def repeating(what: str, why: str, numbers: Callable[..., Any]) -> SingularRule:
    """The rule of what has no derivative where two of some `numbers`, of (numpy, attrs, operands, results), are equal."""

    def near(np: Any, w: Any) -> Any:
        gaps, n = np.abs(w[..., :, None] - w[..., None, :]), w.shape[-1]
        return (gaps <= _bound(np, w)[..., None]) & np.triu(np.ones((n, n), bool), 1)

    def words(w: Any, place: list[int]) -> str:
        i, j = place[-2:]
        return f"{what} {i} and {j}{_of(place[:-2])} are equal, {w[tuple(place[:-1])].item():.4g}: {why}"

    return _where_first(numbers, near, words)


def singular_values(np: Any, attrs: Any, operands: Any, results: Any) -> Any:
    """Those of the operand, as numbers of a rule; of a matrix that is not finite, NaN."""
    finite = np.isfinite(operands[0]).all((-2, -1))
    return np.where(finite[..., None], np.linalg.svd(np.where(finite[..., None, None], operands[0], 0), compute_uv=False), np.nan)


def vanishing(what: str, why: str, numbers: Callable[..., Any]) -> SingularRule:
    """The rule of what has no derivative where one of some `numbers` is 0."""

    def near(np: Any, w: Any) -> Any:
        return np.abs(w) <= _bound(np, w)

    return _where_first(numbers, near, lambda w, place: f"{what} {place[-1]}{_of(place[:-1])} is 0: {why}")


def _where_first(
    numbers: Callable[..., Any], near: Callable[[Any, Any], Any], words: Callable[[Any, list[int]], str]
) -> SingularRule:
    """The rule that says in words of some numbers the first place where they are near what they must not be."""

    def rule(np: Any, attrs: Any, operands: Any, results: Any) -> str:
        w = numbers(np, attrs, operands, results)
        places = np.argwhere(near(np, w)).tolist() if w.size else []
        return words(w, places[0]) if places else ""

    return rule


def either(*rules: SingularRule) -> SingularRule:
    """The first of several rules that has something to say."""
    return lambda np, attrs, operands, results: next(filter(None, (rule(np, attrs, operands, results) for rule in rules)), "")


def _bound(np: Any, w: Any) -> Any:
    return ROUNDINGS * w.shape[-1] * np.finfo(w.dtype).eps * np.abs(w).max(-1, keepdims=True)


def _of(batch: list[int]) -> str:
    return f" of matrix {batch}" if batch else ""
