"""Linear algebra: factorizations of matrices, and linear systems with triangular ones.

Matrices are the last two axes; those before are a batch, of one factorization or system each. LAPACK and BLAS do the work, as
they do in JAX on CPUs, so that edges are the same: NaN where there is no Cholesky factor, infinities where a diagonal has zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, cast

from tidu_cli.errors import MissingRuleError, TypeRuleError
from tidu_cli.graph.graph import Case
from tidu_cli.graph.sizes.open import smaller
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.arrays.windows import taken
from tidu_cli.lax.linear_algebra.matrices import (
    DTYPES,
    extended,
    hermitian,
    lower_half,
    of_matrices,
    product,
    require_matrices,
    require_square,
    square,
    triangle,
    turned,
    with_diagonal,
)
from tidu_cli.rules.analysis import Places, Spread, Spreading, cholesky_factor, free, lu_factors, triangular_systems
from tidu_cli.rules.attrs import Extent
from tidu_cli.rules.batching import itself, stacked
from tidu_cli.rules.catalogue import Caption, arrays
from tidu_cli.rules.contract import JVP, Attrs, Batching, Example, Kernel, Transposition, Types
from tidu_cli.rules.families import conj, no_tangent, primitive, require_dtype, summed
from tidu_cli.rules.terms import Term, op

reshape, transpose, triangular_solve = map(op, ("reshape", "transpose", "triangular_solve"))


class TriangularSolveAttrs(Attrs):
    """`left_side`: whether op(a) x = b is solved, or x op(a) = b; `lower`: which triangle of a is read, the other is not.

    `transpose_a`, `conjugate_a`: what op does; `unit_diagonal`: whether the diagonal is taken to be 1, whatever it holds. All are
    false by default.
    """

    left_side: bool = False
    lower: bool = False
    transpose_a: bool = False
    conjugate_a: bool = False
    unit_diagonal: bool = False


# Cholesky factors.


def _cholesky_kernel(np: Any, attrs: Any, operands: Types, results: Types) -> Kernel:
    def factors(x: Any) -> Any:
        try:
            return np.linalg.cholesky(x)
        except np.linalg.LinAlgError:
            # Some have no factor; NumPy does not say which.
            return np.stack([factors(one) for one in x]) if x.ndim > 2 else np.tril(np.full_like(x, np.nan))

    return factors


def _cholesky_jvp(node: JVP) -> Sequence[Term | None]:
    # I. Murray, "Differentiation of the Cholesky decomposition" (2016), equation 8: L' = L Φ(L⁻¹ A' L⁻ᴴ). The lower triangle
    # is what is read, so that it alone makes A'.
    t, (factor,) = node.tangent, node.results
    right = triangular_solve(factor, hermitian(t), lower=True, transpose_a=True, conjugate_a=factor.type.complex)
    return [product(factor, lower_half(triangular_solve(factor, right, left_side=True, lower=True)))]


# Triangular systems.


def _solve_types(attrs: TriangularSolveAttrs, operands: Types) -> Types:
    a, b = operands
    require_dtype(DTYPES, operands)
    if a.dtype != b.dtype:
        raise TypeRuleError(f"type mismatch: input 0 is {a}, input 1 is {b}; use convert_element_type first")
    require_square((a,))
    if b.rank != a.rank or b.shape[:-2] != a.shape[:-2]:
        raise TypeRuleError(f"takes matrices in batches of one shape, got {a} and {b}; use broadcast_in_dim or reshape first")
    axis = -2 if attrs.left_side else -1
    if b.shape[axis] != a.shape[-1]:
        side, form = ("rows", "op(a) x = b") if attrs.left_side else ("columns", "x op(a) = b")
        raise TypeRuleError(f"solves {form}, so b must have {a.shape[-1]} {side}, got {a} and {b}")
    return (b,)


def _solve_kernel(np: Any, attrs: TriangularSolveAttrs, operands: Types, results: Types) -> Kernel:
    a_type, b_type = operands
    if not b_type.size:
        return lambda a, b: b
    from scipy.linalg import get_blas_funcs  # type: ignore[import-untyped]  # slow to import, and rarely needed

    (trsm,) = get_blas_funcs(("trsm",), dtype=numpy_dtype(np, b_type.dtype))
    only_conjugate = attrs.conjugate_a and not attrs.transpose_a and a_type.complex
    # The transpose of a row-major array is column-major, as BLAS wants it: xᵀ op(a)ᵀ = bᵀ, of transposes that cost nothing.
    options = {
        "side": int(attrs.left_side),
        "lower": int(not attrs.lower),
        "trans_a": (2 if attrs.conjugate_a else 1) if attrs.transpose_a else 0,
        "diag": int(attrs.unit_diagonal),
    }

    def one(a: Any, b: Any) -> Any:
        return trsm(1.0, a.T, b.T, **options).T

    def solve(a: Any, b: Any) -> Any:
        a = np.conj(a) if only_conjugate else a
        if b.ndim == 2:
            return one(a, b)
        solution = np.empty(b.shape, b.dtype)
        for k in np.ndindex(*b.shape[:-2]):
            solution[k] = one(a[k], b[k])
        return solution

    return solve


def _solve_jvp(node: JVP) -> Sequence[Term | None]:
    # From op(a) x = b: op(a) x' = b' - op(a)' x, where a' is that part of the tangent that stands where a is read.
    (a, _), (x,), (ta, tb), attrs = node.operands, node.results, node.tangents, node.attrs
    moved = None
    if ta is not None:
        read = triangle(ta, lower=attrs.lower, diagonal=not attrs.unit_diagonal)
        read = turned(read) if attrs.transpose_a else read
        read = conj(read) if attrs.conjugate_a else read
        moved = -(product(read, x) if attrs.left_side else product(x, read))
    total = summed([tb, moved])
    assert total is not None
    return [triangular_solve(a, total, **dict(attrs))]


def _solve_transpose(node: Transposition) -> Sequence[Term | None]:
    # The adjoint of op(a)⁻¹ is the inverse of op(a)ᴴ.
    a, attrs = node.operands[0], node.attrs
    if a is None:
        raise MissingRuleError("missing transpose rule for triangular_solve with an active matrix: it is linear in b alone")
    turned = {"transpose_a": not attrs.transpose_a, "conjugate_a": (not attrs.conjugate_a) and a.type.complex}
    return [None, triangular_solve(a, node.cotangent, **(dict(attrs) | turned))]


def _solve_batch(node: Batching) -> Sequence[Term]:
    a, b = node.operands
    if node.batched[0]:
        return [triangular_solve(a, stacked(node, 1), **dict(node.attrs))]
    # Systems with one matrix are one system with more right-hand sides: b of [size, ..., m, n] becomes [..., m, size n] or, where
    # it stands on the right, [..., size m, n].
    *batch, m, n = node.types[1].shape
    k = len(batch)
    left, inner = node.attrs.left_side, tuple(range(1, k + 1))
    order = (*inner, k + 1, 0, k + 2) if left else (*inner, 0, k + 1, k + 2)
    sizes = (*batch, m, node.size * n) if left else (*batch, node.size * m, n)
    wide = reshape(_permuted(b, order), new_sizes=sizes)
    solution = triangular_solve(a, wide, **dict(node.attrs))
    apart = reshape(solution, new_sizes=tuple(b.type.shape[axis] for axis in order))
    return [_permuted(apart, tuple(map(order.index, range(k + 3))))]


def _solve_spreads(node: Spreading) -> Sequence[Spread]:
    """Systems are on their own, and an unknown depends on those that are solved for before it."""
    a, rank = node.attrs, node.operand.rank
    along, aside = (rank - 2, rank - 1) if a.left_side else (rank - 1, rank - 2)
    which: Places = "upto" if (a.lower != a.transpose_a) == a.left_side else "from"
    return [*((k, k, None) for k in (*range(rank - 2), aside)), (along, along, which)]


def _permuted(x: Term, order: tuple[int, ...]) -> Term:
    return x if order == tuple(range(len(order))) else transpose(x, permutation=order)


def _solve_caption(case: Case, operands: Sequence[str]) -> Caption:
    (matrix, right), attrs = operands, cast(TriangularSolveAttrs, case.attrs)
    conjugated = attrs.conjugate_a and any(t is not None and t.complex for t in arrays(case))
    turned = matrix + {(True, True): "⁻ᴴ", (True, False): "⁻ᵀ", (False, True): "̄⁻¹"}.get((attrs.transpose_a, conjugated), "⁻¹")
    what = f"the {'lower' if attrs.lower else 'upper'} triangular system"
    formula = f"{turned} @ {right}" if attrs.left_side else f"{right} @ {turned}"
    return Caption(formula, what + (", with ones on the diagonal" if attrs.unit_diagonal else ""))


# LU factors.


def _lu_types(attrs: Any, operands: Types) -> Types:
    x = require_matrices(operands)
    *batch, m, n = x.shape
    return x, TensorType("i32", (*batch, smaller(m, n))), TensorType("i32", (*batch, m))


def lu_kernel(np: Any, attrs: Any, operands: Types, results: Types) -> Kernel:
    """Makes a function of matrices that gives their LU factors, pivots and permutations."""
    from scipy.linalg import get_lapack_funcs  # slow to import, and rarely needed

    (x_type,) = operands
    *batch, m, n = x_type.shape
    (getrf,) = get_lapack_funcs(("getrf",), dtype=numpy_dtype(np, x_type.dtype))

    def factors(x: Any) -> Any:
        lu, pivots, permutation = (np.empty(t.shape, d) for t, d in zip(results, (x.dtype, np.int32, np.int32), strict=True))
        permutation[...] = np.arange(m, dtype=np.int32)
        if not (m and n):
            return lu, pivots, permutation
        for k in np.ndindex(*batch):
            lu[k], pivots[k], _ = getrf(x[k])
            order = permutation[k]
            for i, j in enumerate(pivots[k].tolist()):
                order[i], order[j] = order[j], order[i]
        return lu, pivots, permutation

    return factors


def _lu_jvp(node: JVP) -> Sequence[Term | None]:
    # From P A = L U: with F = L⁻¹ P A' U⁻¹ the part of F below the diagonal is L⁻¹ L', the rest U' U⁻¹. Where the matrix is not
    # square, L or U is made so by columns or rows of the identity.
    t, (lu, _, permutation) = node.tangent, node.results
    m, n = lu.type.shape[-2:]
    left, right = extended(lu, 0, m - n), extended(lu, n - m, 0)
    if n > m:
        right = with_diagonal(right, 1, m)
    moved = triangular_solve(left, taken(t, permutation, t.type.rank - 2), left_side=True, lower=True, unit_diagonal=True)
    moved = triangular_solve(right, moved)
    lower = with_diagonal(triangle(left, lower=True, diagonal=False), 1)
    upper = triangle(right, lower=False, diagonal=True)
    within = product(lower, triangle(moved, lower=True, diagonal=False))
    return [within + product(triangle(moved, lower=False, diagonal=True), upper), None, None]


# Pivots.


class PermutationAttrs(Attrs):
    """`permutation_size`: the number of rows, at least those that are exchanged."""

    permutation_size: Extent


def _permutation_types(attrs: PermutationAttrs, operands: Types) -> Types:
    (pivots,) = operands
    require_dtype(frozenset({"i32"}), operands)
    if not pivots.rank or pivots.shape[-1] > attrs.permutation_size:
        raise TypeRuleError(f"takes at most {attrs.permutation_size} pivots (permutation_size) along the last axis, got {pivots}")
    return (pivots.with_shape((*pivots.shape[:-1], attrs.permutation_size)),)


def _permutation_kernel(np: Any, attrs: PermutationAttrs, operands: Types, results: Types) -> Kernel:
    (result,) = results

    def permuted(pivots: Any) -> Any:
        lists = pivots.reshape(prod(pivots.shape[:-1]), pivots.shape[-1])
        order = np.tile(np.arange(attrs.permutation_size, dtype=np.int32), (len(lists), 1))
        every = np.arange(len(lists))
        for k in range(lists.shape[1]):
            j = np.clip(lists[:, k], 0, attrs.permutation_size - 1)
            order[every, j], order[:, k] = order[:, k].copy(), order[every, j]
        return order.reshape(result.shape)

    return permuted


_SOLVED = {"left_side": True, "lower": True}

PRIMITIVES = (
    of_matrices(
        "cholesky",
        square,
        _cholesky_kernel,
        jvp=_cholesky_jvp,
        examples=(
            Example(("T[3,3]",), within=((-1.0, 1.0),), diagonals=(5.0,)),
            Example(("T[2,2,2]",), within=((-1.0, 1.0),), diagonals=(4.0,)),
        ),
        one_type=True,
        flops=cholesky_factor,
        formula="L, where x = L Lᴴ",
        summary="lower Cholesky factor, of the matrix that the lower triangle makes Hermitian; NaN if not positive definite",
        caption=("cholesky({0})", "the lower Cholesky factor"),
    ),
    primitive(
        "triangular_solve",
        2,
        _solve_types,
        _solve_kernel,
        jvp=_solve_jvp,
        transpose=_solve_transpose,
        batch=_solve_batch,
        sparsity=_solve_spreads,
        attrs=TriangularSolveAttrs,
        dtypes=DTYPES,
        examples=(
            Example(("T[3,3]", "T[3,2]"), _SOLVED, diagonals=(5.0, 0.0)),
            Example(("T[2,2]", "T[3,2]"), {"transpose_a": True, "conjugate_a": True}, diagonals=(5.0, 0.0)),
            Example(("T[2,3,3]", "T[2,3,1]"), {"left_side": True, "conjugate_a": True}, diagonals=(5.0, 0.0)),
            Example(("T[2,2]", "T[1,2]"), {"lower": True, "unit_diagonal": True, "transpose_a": True}),
        ),
        linear=((1, 2),),
        flops=triangular_systems,
        formula="op(a)⁻¹ b, or b op(a)⁻¹",
        summary="solution of systems of linear equations with triangular matrices",
        caption=_solve_caption,
    ),
    of_matrices(
        "lu",
        _lu_types,
        lu_kernel,
        jvp=_lu_jvp,
        n_results=lambda attrs, n_operands: 3,
        examples=(Example(("T[3,3]",), within=((-1.0, 1.0),), diagonals=(5.0,)), Example(("T[3,2]",)), Example(("T[2,2,3]",))),
        flops=lu_factors,
        formula="L (below the diagonal) and U (from it up), where P x = L U",
        summary="LU factors with partial pivoting, the rows that are exchanged in turn, and the permutation P",
        caption=("lu({0})", "the LU factorization"),
    ),
    primitive(
        "lu_pivots_to_permutation",
        1,
        _permutation_types,
        _permutation_kernel,
        jvp=no_tangent,
        batch=itself("lu_pivots_to_permutation"),
        attrs=PermutationAttrs,
        dtypes=frozenset({"i32"}),
        integers="steps",
        examples=(Example(("i32[2,3]",), {"permutation_size": 4}, within=((0.0, 3.0),)),),
        flops=free,
        formula="P, from the rows that are exchanged",
        summary="the permutation that exchanging row k with row x_k, for each k in turn, makes of 0, 1, …",
        caption=("P({0})", "the permutation of the pivots"),
    ),
)
