"""What analyses ask of an operation: how many operations it takes, and which elements depend on which.

Rules for the number of operations are what `tidu info` adds up. A rule counts operations on real numbers: arithmetic, comparisons,
bitwise operations, and functions such as exp, which count as one each. Of complex numbers an addition is 2, a product 6 and a
quotient 11; a function is 2, one for each part of its result. What only moves, repeats or converts elements is free. The cost
analysis of XLA counts alike, but keeps functions apart ("transcendentals"), takes an operation on complex numbers for one, and
conversions too.

`Rules.sparsity` and `Rules.pattern` say which elements of the results depend on which of the operands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any, Protocol
from typing import Literal as OneOf

from tidu_cli.frozen import Frozen
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.types import TensorType, leaves

Types = tuple[TensorType, ...]

FlopsRule = Callable[[Any, Types, Types], int]
"""From (attrs, operand types, result types) to the number of operations."""

WorkRule = Callable[[Any, Types, Types], int]
"""From (attrs, operand types, result types) to a number of bytes."""

PRODUCT = 6
"""Operations of a complex product: 4 products and 2 sums of real numbers."""

QUOTIENT = 11
"""Operations of a complex quotient: the product with the conjugate (6), the squared magnitude (3), and 2 quotients."""

Weight = Callable[[TensorType], int]
"""The operations that combining two elements takes."""


def adding(t: TensorType) -> int:
    """The operations of a sum, or of any function, of elements of this type."""
    return 2 if t.complex else 1


def multiplying(t: TensorType) -> int:
    """The operations of a product of elements of this type."""
    return PRODUCT if t.complex else 1


def dividing(t: TensorType) -> int:
    """The operations of a quotient of elements of this type."""
    return QUOTIENT if t.complex else 1


def free(attrs: Any, operands: Types, results: Types) -> int:
    """None: elements are moved, repeated or converted."""
    return 0


def per_element(weight: Weight = adding) -> FlopsRule:
    """One application of `weight` for each element of the first result, which may be a record."""
    return lambda attrs, operands, results: sum(weight(leaf) * leaf.size for _, leaf in leaves(results[0]))


ONE_EACH = per_element()
"""The rule of functions and sums, and of all that state no other: an operation for each element, or part of a complex one."""


def per_power(y: Callable[[Any], int]) -> FlopsRule:
    """Powers with a fixed integer exponent, by repeated squaring; one quotient more where the exponent is negative."""

    def flops(attrs: Any, operands: Types, results: Types) -> int:
        exponent, (result,) = abs(y(attrs)), results
        products = max(exponent.bit_length() + exponent.bit_count() - 2, 0)
        return result.size * (products * multiplying(result) + (dividing(result) if y(attrs) < 0 else 0))

    return flops


def per_case(attrs: Any, operands: Types, results: Types) -> int:
    """A choice among n cases takes n - 1 decisions for each element."""
    return max(len(operands) - 2, 0) * results[0].size


def reducing(weight: Weight = adding) -> FlopsRule:
    """Reductions: n elements that become one are combined n - 1 times."""
    return lambda attrs, operands, results: weight(operands[0]) * max(operands[0].size - results[0].size, 0)


def accumulating(weight: Weight = adding) -> FlopsRule:
    """Reductions of all elements up to each, along the axis `attrs.axis`: n - 1 combinations on each line of n elements."""

    def flops(attrs: Any, operands: Types, results: Types) -> int:
        n = operands[0].shape[attrs.axis]
        return weight(operands[0]) * (operands[0].size // n * (n - 1) if n else 0)

    return flops


def sorting(axis: Callable[[Any], int]) -> FlopsRule:
    """Sorting each line of n elements along an axis: n ⌈log₂ n⌉ comparisons."""

    def flops(attrs: Any, operands: Types, results: Types) -> int:
        n = operands[0].shape[axis(attrs)]
        return operands[0].size * (n - 1).bit_length() if n else 0

    return flops


def products(axes: Callable[[Any], tuple[int, ...]]) -> FlopsRule:
    """A product and a sum for each element of the result and each place of the contracted axes of the first operand."""

    def flops(attrs: Any, operands: Types, results: Types) -> int:
        (result,), contracted = results, prod(operands[0].shape[axis] for axis in axes(attrs))
        return (multiplying(result) + adding(result)) * result.size * contracted

    return flops


def updating(weight: Weight) -> FlopsRule:
    """Scatters: each element of the updates, input 2, is combined with one of the operand."""
    return lambda attrs, operands, results: weight(operands[2]) * operands[2].size


def cholesky_factor(attrs: Any, operands: Types, results: Types) -> int:
    """Of each matrix: a root for each element of the diagonal, a quotient for each below it, and the inner products before that."""
    *batch, n, _ = (x := operands[0]).shape
    roots, quotients, pairs = n, n * (n - 1) // 2, (n**3 - n) // 6
    return prod(batch) * (roots * adding(x) + quotients * dividing(x) + pairs * (multiplying(x) + adding(x)))


def triangular_systems(attrs: Any, operands: Types, results: Types) -> int:
    """For each element of the solution a quotient, unless the diagonal is 1, and the inner product of half a row before that."""
    (a, x) = operands
    n = a.shape[-1]
    lines = x.size // n if n else 0
    quotients = 0 if attrs.unit_diagonal else n
    return lines * (quotients * dividing(x) + n * (n - 1) // 2 * (multiplying(x) + adding(x)))


def lu_factors(attrs: Any, operands: Types, results: Types) -> int:
    """Of each m x n matrix, in step k of min(m, n): m - k quotients, and for each of them a row of n - k that is taken away."""
    *batch, m, n = (x := operands[0]).shape
    steps = min(m, n)
    ones, squares = steps * (steps + 1) // 2, steps * (steps + 1) * (2 * steps + 1) // 6  # sums of k and k² over the steps
    quotients = steps * m - ones
    pairs = steps * m * n - (m + n) * ones + squares
    return prod(batch) * (quotients * dividing(x) + pairs * (multiplying(x) + adding(x)))


def on_matrices(count: Callable[[Any, int, int], float]) -> FlopsRule:
    """Algorithms of LAPACK: `count` says of (attrs, m, n) how many operations on real numbers they take for an m x n matrix.

    It is by the leading terms, as in G. H. Golub, C. F. Van Loan, "Matrix Computations" (4th edition). Half of them are products,
    half sums, of complex numbers as of real ones.
    """

    def flops(attrs: Any, operands: Types, results: Types) -> int:
        *batch, m, n = (x := operands[0]).shape
        return round(prod(batch) * count(attrs, m, n) * (multiplying(x) + adding(x)) / 2)

    return flops


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

    def union(self, values: Sequence[Any]) -> Any:
        """What may be any of these values."""

    def same(self, values: Sequence[Any], others: Sequence[Any]) -> bool:
        """Whether these are the same values."""

    def steps(self, n: int, values: Sequence[Any]) -> Iterator[list[Any]]:
        """The parts of values along their first axis, which has `n` places."""

    def stacked(self, parts: Sequence[Any]) -> Any:
        """The value that has these along its first axis."""

    def solved(self, map: ClosedGraph, consts: Sequence[Any], right: Sequence[Any]) -> list[Any]:
        """What a linear map, a graph of constants and of unknowns, takes to the values `right`."""


PatternRule = Callable[["Patterns", Any, Sequence[Any]], Sequence[Any]]
"""From (what there is to do it with, attrs, operands) to results, of a node that holds graphs or records."""
