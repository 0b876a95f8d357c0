"""Determinants, and their derivatives of any order, which are polynomials of the matrix and exist where it is singular, too.

The derivative of the determinant at A in the directions E₁ … Eₖ is linear in each and symmetric in all: a mixed discriminant, but
for a factor. `cofactors` is its gradient: the matrix G whose sum of products with C is the derivative in one direction more, C.
Without directions it is the matrix of cofactors (C. G. J. Jacobi, "De formatione et proprietatibus determinantium" (1841)).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import prod
from typing import Any, cast

from tidu_cli.errors import MissingRuleError, TypeRuleError
from tidu_cli.graph.graph import Case
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.linear_algebra.factorizations import lu_kernel
from tidu_cli.lax.linear_algebra.matrices import (
    adjoint_of,
    diagonal,
    of_batches,
    of_each,
    of_each_matrix,
    of_matrices,
    product,
    require_square,
    solved,
    turned,
    with_diagonal,
)
from tidu_cli.rules.analysis import lu_factors, on_matrices
from tidu_cli.rules.catalogue import Caption
from tidu_cli.rules.contract import JVP, Example, Kernel, Transposition, Types
from tidu_cli.rules.families import conj, require_one_type, summed
from tidu_cli.rules.terms import Term, op

cofactors, det, mul, reduce_prod, reduce_sum = map(op, ("cofactors", "det", "mul", "reduce_prod", "reduce_sum"))

ROOM = 2**21
"""How many tuples of rows there may be: of larger matrices, or with more directions, the gradient is found by the inverse."""

MAX_DIRECTIONS = 6
"""For more there is no room in matrices whose derivatives are not zero: 8⁸ is too much."""


# The determinant.


def of_factors(np: Any, lu: Any, pivots: Any) -> Any:
    """The determinants of matrices by their LU factors. `np` is NumPy, or JAX's."""
    odd = (pivots != np.arange(pivots.shape[-1])).sum(-1) % 2
    return np.diagonal(lu, axis1=-2, axis2=-1).prod(-1) * (1 - 2 * odd).astype(lu.dtype)


def by_factors(x: Term) -> Term:
    """The determinants of matrices, in terms of their LU factors."""
    lu, pivots, _ = x.trace.emit_all("lu", x)
    axis = pivots.type.rank - 1
    places = x.trace.emit("iota", dtype="i32", shape=pivots.type.shape, dimension=axis)
    signs = op("convert_element_type")(op("ne")(pivots, places), new_dtype=x.type.dtype) * -2 + 1
    return reduce_prod(mul(diagonal(lu), signs), axes=(axis,))


def _det_kernel(np: Any, attrs: Any, operands: Types, results: Types) -> Kernel:
    (x,) = operands
    factors = lu_kernel(np, attrs, operands, (x, TensorType("i32", x.shape[:-1]), TensorType("i32", x.shape[:-1])))
    return lambda x: of_factors(np, *factors(x)[:2])


def _det_jvp(node: JVP) -> Sequence[Term | None]:
    (x,), t = node.operands, node.tangent
    slope = _gradient(x)
    return [None if slope is None else reduce_sum(mul(slope, t), axes=(x.type.rank - 2, x.type.rank - 1))]


# Its derivatives.


def gradient(np: Any, a: Any, *directions: Any) -> Any:
    """The gradients of derivatives of determinants. `np` is NumPy, or JAX's.

    In the basis of singular vectors the matrix is diagonal: the derivative is the sum over sets of rows of the determinant of the
    directions there, by the product of the other singular values. Nothing is divided by them, so that they may be 0.
    """
    n, k = a.shape[-1], len(directions)
    if k >= n or not a.size:
        return np.zeros_like(a)
    # Rows and columns are made about as great as one another, by powers of 2, so that small ones keep their digits.
    rows = _exponents(np, a, -1)
    exponents = rows + _exponents(np, _scaled(np, a, -rows), -2)
    others = np.trace(exponents, axis1=-2, axis2=-1)[..., None, None] - exponents
    return _scaled(np, _of_balanced(np, *(_scaled(np, x, -exponents) for x in (a, *directions))), others)


def _exponents(np: Any, a: Any, axis: int) -> Any:
    return np.frexp(abs(a).max(axis, keepdims=True))[1]


def _scaled(np: Any, x: Any, exponents: Any) -> Any:
    return x * np.ldexp(np.ones((), x.real.dtype), exponents)


def _of_balanced(np: Any, a: Any, *directions: Any) -> Any:
    n, k = a.shape[-1], len(directions)
    u, s, vh = np.linalg.svd(a)
    inner = [adjoint_of(np, u) @ e @ adjoint_of(np, vh) for e in directions]
    places = np.indices((n,) * (k + 1))  # the rows of directions, and that of the gradient, in each order
    weight = _of_others(np, s, places)
    if k:
        rows = np.stack([np.stack([e[..., i, j] for j in places], -1) for e, i in zip(inner, places, strict=False)], -2)
    total = 0
    for c in range(k + 1):
        minor = np.linalg.det(np.delete(rows, c, -1)) if k else 1
        term = (-1) ** (k + c) * weight * minor
        part = term.sum(tuple(r - k - 1 for r in range(k) if r != c))
        total = total + (part[..., None] * np.eye(n, dtype=s.dtype) if c == k else np.swapaxes(part, -1, -2))
    sign = (np.linalg.det(u) * np.linalg.det(vh))[..., None, None]
    return sign * (np.conj(u) @ total @ np.conj(vh))


def _of_others(np: Any, s: Any, places: Any) -> Any:
    """For each tuple of places the product of the numbers at all others; 0 where a place repeats."""
    n = s.shape[-1]
    ordered = np.sort(places, 0)
    edge = np.zeros_like(ordered[:1])
    starts, ends = np.concatenate([edge, ordered + 1]), np.concatenate([ordered, edge + n])
    row, column = np.arange(n + 1)[:, None], np.arange(n)
    # Products from a number on to before another: 1 of none, and 0 where the latter comes first.
    products = np.cumprod(np.where(column >= row, s[..., None, :], 1), -1)
    products = np.concatenate([np.ones_like(products[..., :1]), products], -1) * (np.arange(n + 1) >= row)
    return prod(products[..., start, end] for start, end in zip(starts, ends, strict=True))


def by_inverse(a: Term, *directions: Term) -> Term:
    """The same in terms of A⁻¹, not finite where there is none, for any size.

    Of A + Σ tᵢ Eᵢ these are the parts of the determinant d, the inverse R and the gradient d Rᵀ that have each t of a set once:
    by R′ = -R E R and d′ = d tr(R E).
    """
    every = tuple(range(len(directions)))
    inverse = solved(a, with_diagonal(a.trace.full(0, a.type), 1))
    through = [product(inverse, e) for e in directions]
    inverses: dict[tuple[int, ...], Term] = {(): inverse}
    determinants: dict[tuple[int, ...], Term] = {(): det(a)}
    matrices = (a.type.rank - 2, a.type.rank - 1)

    def scaled(x: Term, factor: Term) -> Term:
        return mul(op("broadcast_in_dim")(factor, shape=x.type.shape, broadcast_dimensions=tuple(range(x.type.rank - 2))), x)

    for some in (s for size in every for s in combinations(every, size + 1)):
        inverses[some] = -_sum(product(through[k], inverses[_without(some, k)]) for k in some)
        rest, last = some[:-1], directions[some[-1]]
        moved = _sum(scaled(turned(inverses[_without(rest, *t)]), determinants[t]) for t in _subsets(rest))
        determinants[some] = reduce_sum(mul(moved, last), axes=matrices)
    return _sum(scaled(turned(inverses[_without(every, *t)]), determinants[t]) for t in _subsets(every))


def _sum(terms: Any) -> Term:
    return cast(Term, summed(list(terms)))


def _without(some: tuple[int, ...], *others: int) -> tuple[int, ...]:
    return tuple(k for k in some if k not in others)


def _subsets(some: tuple[int, ...]) -> list[tuple[int, ...]]:
    return [t for size in range(len(some) + 1) for t in combinations(some, size)]


def _gradient(a: Term, *directions: Term) -> Term | None:
    n, k = a.type.shape[-1], len(directions)
    if k >= n:
        return None
    return cofactors(a, *directions) if _has_room(n, k) else by_inverse(a, *directions)


def _has_room(n: int, k: int) -> bool:
    return k < 2 or (k <= MAX_DIRECTIONS and n ** (k + 1) <= ROOM)


def _cofactors_types(attrs: Any, operands: Types) -> Types:
    require_square(operands)
    require_one_type(operands)
    x, k = operands[0], len(operands) - 1
    if not _has_room(x.shape[-1], k):
        raise TypeRuleError(f"has no room for {k} directions of {x}; take derivatives of det, which goes by the inverse")
    return (x,)


def _cofactors_kernel(np: Any, attrs: Any, operands: Types, results: Types) -> Kernel:
    every = of_batches if len(operands) < 3 else of_each  # so that there is room for one at least
    return every(np, lambda *arrays: (gradient(np, *arrays),), operands, results)


def _cofactors_jvp(node: JVP) -> Sequence[Term | None]:
    a, *directions = node.operands
    moved = [None if t is None else cofactors(a, *directions[:k], t, *directions[k + 1 :]) for k, t in enumerate(node.tangents[1:])]
    t = node.tangents[0]
    return [summed([None if t is None else _gradient(a, *directions, t), *moved])]


def _cofactors_transpose(node: Transposition) -> Sequence[Term | None]:
    # The derivative is symmetric in all its directions, C included; in the scalar product one side is conjugated.
    a, *directions = node.operands
    if a is None:
        raise MissingRuleError("missing transpose rule for cofactors with an active matrix: it is linear in each direction alone")
    moved = cofactors(conj(a), *[node.cotangent if e is None else conj(e) for e in directions])
    return [None, *[moved if active else None for active in node.active[1:]]]


def _cofactors_caption(case: Case, operands: Sequence[str]) -> Caption:
    matrix, *directions = operands
    return Caption(
        f"cofactors({', '.join((matrix, *directions))})",
        "the gradient of the derivative of the determinant" if directions else "the cofactors",
    )


PRIMITIVES = (
    of_matrices(
        "det",
        lambda attrs, operands: (require_square(operands)[0].with_shape(operands[0].shape[:-2]),),
        _det_kernel,
        jvp=_det_jvp,
        examples=(Example(("T[3,3]",)), Example(("T[2,2,2]",)), Example(("T[1,4,4]",))),
        flops=lu_factors,
        formula="det x",
        summary="the determinants of matrices; derivatives of any order, also where they are singular",
        caption=("det({0})", "the determinant"),
    ),
    of_matrices(
        "cofactors",
        _cofactors_types,
        _cofactors_kernel,
        arity=None,
        jvp=_cofactors_jvp,
        transpose=_cofactors_transpose,
        sparsity=of_each_matrix,
        one_type=True,
        examples=(Example(("T[3,3]",)), Example(("T[3,3]", "T[3,3]")), Example(("T[2,4,4]",) * 3)),
        linear=tuple((k, k + 1) for k in range(1, MAX_DIRECTIONS + 1)),
        flops=on_matrices(lambda attrs, m, n: 22 * n**3),
        formula="the gradient of the derivative of det at x in the directions y, …",
        summary="the cofactors of matrices, det x · x⁻ᵀ where there is an inverse; with directions, their derivatives in these",
        caption=_cofactors_caption,
    ),
)
