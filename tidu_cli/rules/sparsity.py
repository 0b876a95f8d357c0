"""What an operation says of which elements of its results depend on which of its operands: `Rules.sparsity` and `Rules.pattern`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol
from typing import Literal as OneOf

from tidu_cli.frozen import Frozen
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.types import TensorType
from tidu_cli.rules.flops import Types


class Spreading(Frozen):
    """What a sparsity rule sees of a linear node: one active operand, of type `operand`, and the result, of type `result`.

    `types` are those of all operands, and `k` is the number of the active one. `values` are those operands whose values are known.
    """

    attrs: Any
    types: Types
    k: int
    result: TensorType
    values: Sequence[Any] = ()

    @property
    def operand(self) -> TensorType:
        """The type of the active operand."""
        return self.types[self.k]


Places = OneOf["upto", "from"]

Spread = tuple[int, int, "Sequence[tuple[int, int]] | Places | None"]
"""An axis of the result, one of the operand, and which places on the first depend on which on the second: pairs of places, those up
to the same one or from it on; None: the same one."""

SpreadRule = Callable[[Spreading], Sequence[Spread]]
"""From a linear node to how axes of the result depend on those of an active operand. On axes that it leaves out, all places depend
on all."""

Sparsity = OneOf["elements", "moved", "summed"] | SpreadRule
"""`elements`: the elements of the result are those of the operands, in order, whatever is done to each. `moved`: each is an element
of an operand, or none; which, the kernel tells. `summed`: each element of an operand is in one of the result; which, the transpose
tells."""


class Patterns(Protocol):
    """What a rule of an operation that holds graphs has to say which elements depend on which.

    A value is a pattern, that of a value which depends on tangents; an array, where it is known; or None, where neither is.
    """

    def through(self, graph: ClosedGraph, values: Sequence[Any]) -> list[Any]:
        """The outputs of a graph for these values of its inputs."""
        ...

    def union(self, values: Sequence[Any]) -> Any:
        """What may be any of these values."""
        ...

    def same(self, values: Sequence[Any], others: Sequence[Any]) -> bool:
        """Whether these are the same values."""
        ...

    def steps(self, n: int, values: Sequence[Any]) -> Iterator[list[Any]]:
        """The parts of values along their first axis, which has `n` places."""
        ...

    def stacked(self, parts: Sequence[Any]) -> Any:
        """The value that has these along its first axis."""
        ...

    def solved(self, map: ClosedGraph, consts: Sequence[Any], right: Sequence[Any]) -> list[Any]:
        """What a linear map, a graph of constants and of unknowns, takes to the values `right`."""
        ...


PatternRule = Callable[["Patterns", Any, Sequence[Any]], Sequence[Any]]
"""From (what there is to do it with, attrs, operands) to results, of a node that holds graphs or records."""
