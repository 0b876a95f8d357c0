"""How a value depends on the tangents of a linear map, as far as that can be seen."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any

from tidu_cli.graph.closed import ClosedGraph


class Dependence(IntEnum):
    """What is seen of a value."""

    FREE = 0
    """It does not depend on tangents."""
    ZERO = 1
    """It is zero, whatever they are."""
    LINEAR = 2
    """It is linear in them, and so zero where they are."""
    OTHER = 3
    """It depends on them, and is not seen to be linear."""

    @property
    def vanishes(self) -> bool:
        """Whether it is zero where the tangents are, and linear in them."""
        return self in (Dependence.ZERO, Dependence.LINEAR)

    @property
    def moves(self) -> bool:
        """Whether it depends on tangents."""
        return self >= Dependence.LINEAR

    def joined(self, other: Dependence) -> Dependence:
        """What is seen of a value that is one of two."""
        if self is other:
            return self
        low, high = sorted((self, other))
        if low is Dependence.FREE:
            return Dependence.FREE if high is Dependence.ZERO else Dependence.OTHER
        return high


Dependences = tuple[Dependence, ...]

DependenceOf = Callable[[ClosedGraph, Dependences], Dependences]
"""From a graph, and how its inputs depend on tangents, to how its outputs do."""

DependenceRule = Callable[[DependenceOf, Any, Dependences], Dependences]
"""The same of a node: from that of graphs, attrs, and how operands depend to how results do."""


def stable(first: Dependences, step: Callable[[Dependences], Dependences]) -> Dependences:
    """How what a loop carries depends on tangents, after any number of steps."""
    while True:
        after = tuple([a.joined(b) for a, b in zip(first, step(first), strict=True)])
        if after == first:
            return first
        first = after
