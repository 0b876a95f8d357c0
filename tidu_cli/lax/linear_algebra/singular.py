"""What primitives of linear algebra say of values where they have no derivative: numbers that repeat, or are 0, to rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidu_cli.rules.contract import SingularRule

_ROUNDINGS = 16
"""As many as part numbers that are taken for equal, for each of them."""


def repeating(what: str, why: str, numbers: Callable[..., Any]) -> SingularRule:
    """The rule of what has no derivative where two of some `numbers`, of (numpy, attrs, operands, results), are equal."""

    def rule(np: Any, attrs: Any, operands: Any, results: Any) -> str:
        w = numbers(np, attrs, operands, results)
        n = w.shape[-1]
        if not w.size:
            return ""
        gaps = np.abs(w[..., :, None] - w[..., None, :])
        near = (gaps <= _bound(np, w)[..., None]) & np.triu(np.ones((n, n), bool), 1)
        places = np.argwhere(near)
        if not len(places):
            return ""
        place: list[int] = places[0].tolist()
        i, j = place[-2:]
        return f"{what} {i} and {j}{_of(place[:-2])} are equal, {w[tuple(place[:-1])].item():.4g}: {why}"

    return rule


def vanishing(what: str, why: str, numbers: Callable[..., Any]) -> SingularRule:
    """The rule of what has no derivative where one of some `numbers` is 0."""

    def rule(np: Any, attrs: Any, operands: Any, results: Any) -> str:
        w = numbers(np, attrs, operands, results)
        if not w.size:
            return ""
        places = np.argwhere(np.abs(w) <= _bound(np, w))
        if not len(places):
            return ""
        place: list[int] = places[0].tolist()
        return f"{what} {place[-1]}{_of(place[:-1])} is 0: {why}"

    return rule


def either(*rules: SingularRule) -> SingularRule:
    """The first of several rules that has something to say."""
    return lambda np, attrs, operands, results: next(filter(None, (rule(np, attrs, operands, results) for rule in rules)), "")


def _bound(np: Any, w: Any) -> Any:
    return _ROUNDINGS * w.shape[-1] * np.finfo(w.dtype).eps * np.abs(w).max(-1, keepdims=True)


def _of(batch: list[int]) -> str:
    return f" of matrix {batch}" if batch else ""
