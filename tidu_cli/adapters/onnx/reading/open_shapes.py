"""Shapes with open sizes, and what has to be decided of them that bounds of names may decide."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from tidu_cli.errors import UndecidedSizeError
from tidu_cli.graph.sizes.open import OpenSize

Shape = tuple[int, ...]


class UnboundedError(UndecidedSizeError):
    """What would be decided if names had bounds: those by which the size `due` is at least 0, or the sizes in `same` are."""

    def __init__(self, problem: str, due: Any = None, same: tuple[Any, Any] | None = None) -> None:
        super().__init__(problem)
        self.due, self.same = due, same


def not_same(a: Any, b: Any, problem: str) -> UndecidedSizeError:
    """The error of two sizes that are to be the same, and may be for some names."""
    return UnboundedError(problem, None, (a, b))


def is_open_shape(shape: Sequence[Any]) -> bool:
    """Whether any of these sizes is open."""
    return any(isinstance(n, OpenSize) for n in shape)


def reshaped(shape: Shape, sizes: Sequence[Any]) -> Shape:
    """The sizes that a shape is given, of which one may be -1. Raises ValueError if they do not fit."""
    unknown = [k for k, n in enumerate(sizes) if n == -1]
    total, rest = map(prod, _cancelled(shape, [n for n in sizes if n != -1]))
    if len(unknown) > 1:
        raise ValueError("a shape has one -1 at most")
    if unknown:
        whole, remainder = divmod(total, rest)
        if remainder != 0:
            told = f"cannot decide whether {rest} divides the number of elements of shape {_listed(shape)}"
            raise not_same(remainder, 0, told)
        sizes = [whole if n == -1 else n for n in sizes]
    elif total != rest:
        raise not_same(total, rest, f"cannot decide whether the shape {_listed(shape)} has as many elements as {_listed(sizes)}")
    return tuple(sizes)


def _cancelled(shape: Sequence[Any], sizes: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Sizes without those that both have, so that products of many open ones need not be taken apart."""
    left, right = [], list(sizes)
    for n in shape:
        if n != 0 and n in right:
            right.remove(n)
        else:
            left.append(n)
    return left, right


def _listed(shape: Sequence[Any]) -> str:
    return f"[{', '.join(map(str, shape))}]"
