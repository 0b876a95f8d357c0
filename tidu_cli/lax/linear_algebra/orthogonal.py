"""QR factors: matrices as products of orthonormal columns and a triangle.

They are those of LAPACK, by Householder's reflections: the diagonal of R is real, of either sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidu_cli.graph.sizes.open import smaller
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.arrays.windows import taken
from tidu_cli.lax.linear_algebra import matrices
from tidu_cli.lax.linear_algebra.singular import either, vanishing
from tidu_cli.rules.analysis import on_matrices
from tidu_cli.rules.contract import JVP, Attrs, Example, Kernel, Types
from tidu_cli.rules.families import conj
from tidu_cli.rules.terms import Term


class QRAttrs(Attrs):
    """`full_matrices`: whether Q is square, as it is by default, or has no more columns than x has.

    `pivoting`: whether columns are exchanged, so that the magnitudes on the diagonal of R decrease; false by default. Then there is
    a third result, the permutation of the columns.
    """

    full_matrices: bool = True
    pivoting: bool = False


def _types(attrs: QRAttrs, operands: Types) -> Types:
    x = matrices.require_matrices(operands)
    *batch, m, n = x.shape
    k = m if attrs.full_matrices else smaller(m, n)
    factors = x.with_shape((*batch, m, k)), x.with_shape((*batch, k, n))
    return (*factors, TensorType("i32", (*batch, n))) if attrs.pivoting else factors


def _kernel(np: Any, attrs: QRAttrs, operands: Types, results: Types) -> Kernel:
    if not attrs.pivoting:
        mode = "complete" if attrs.full_matrices else "reduced"
        return matrices.of_batches(np, lambda x: np.linalg.qr(x, mode), operands, results)
    from scipy.linalg import qr  # type: ignore[import-untyped]  # slow to import, and rarely needed

    mode = "full" if attrs.full_matrices else "economic"
    return matrices.of_each(np, lambda x: qr(x, mode=mode, pivoting=True, check_finite=False), operands, results)


def _jvp(node: JVP) -> Sequence[Term | None]:
    t, (q, r, *permutation) = node.tangent, node.results
    if permutation:
        t = matrices.turned(taken(matrices.turned(t), permutation[0], t.type.rank - 2))
    m, n = t.type.shape[-2:]
    if m >= n:
        dq, dr = _thin(matrices.part(q, columns=(0, n)), matrices.part(r, rows=(0, n)), t)
        rows, columns = r.type.shape[-2:]
        if rows > columns:
            dq, dr = matrices.beside(dq, completed(q, dq)), matrices.extended(dr, rows - columns, 0)
    else:
        # The first columns are those of a square matrix, which make Q; of the others Qᴴ A is what R has.
        dq, first = _thin(q, matrices.part(r, columns=(0, m)), matrices.part(t, columns=(0, m)))
        dr = matrices.beside(
            first,
            matrices.product(
                matrices.adjoint(q), matrices.part(t, columns=(m, n)) - matrices.product(dq, matrices.part(r, columns=(m, n)))
            ),
        )
    return [dq, dr, *[None] * len(permutation)]


def _thin(q: Term, r: Term, t: Term) -> tuple[Term, Term]:
    # S. F. Walter, L. Lehmann, "Algorithmic differentiation of linear algebra functions with application in optimum experimental
    # design" (2010), section 4.2: of M = Qᴴ A' R⁻¹ what is below the diagonal makes Q' = Q (M_low - M_lowᴴ) + (1 - Q Qᴴ) A' R⁻¹.
    # That the diagonal of R stays real leaves the imaginary part of the diagonal of M to Q.
    moved = matrices.triangular_solve(r, t)
    m = matrices.product(matrices.adjoint(q), moved)
    low = matrices.triangle(m, lower=True, diagonal=False)
    turning = low - matrices.adjoint(low)
    if q.type.complex:
        turning = turning + _imaginary_diagonal(m)
    return matrices.product(q, turning - m) + moved, matrices.product(m - turning, r)


def _imaginary_diagonal(m: Term) -> Term:
    on = m - matrices.with_diagonal(m, 0)
    return (on - conj(on)) * 0.5


def completed(q: Term, dq: Term) -> Term:
    """The tangent of the last columns of Q, made square by Householder's reflections, from that of the first ones.

    Of Q = 1 - Y T Yᴴ (R. Schreiber, C. Van Loan, "A storage-efficient WY representation for products of Householder
    transformations", 1989) the first n columns tell the others: with E₁ and E₂ these columns of the identity, and Z the lower rows
    of Q₁ times the inverse of its upper rows less 1, Q₂ = E₂ + (Q₁ - E₁) Zᴴ. So it is differentiated.
    """
    m, n = dq.type.shape[-2:]
    first = matrices.part(q, columns=(0, n))
    moved = first - matrices.with_diagonal(first - first, 1)
    upper = matrices.adjoint(matrices.part(moved, rows=(0, n)))
    z = matrices.solved(upper, matrices.adjoint(matrices.part(moved, rows=(n, m))))
    dz = matrices.solved(
        upper,
        matrices.adjoint(matrices.part(dq, rows=(n, m))) - matrices.product(matrices.adjoint(matrices.part(dq, rows=(0, n))), z),
    )
    return matrices.product(dq, z) + matrices.product(moved, dz)


def _operations(attrs: QRAttrs, m: int, n: int) -> float:
    """For R, and as many for a thin Q; a square one of more rows than columns takes 4 (m² n - m n² + n³/3)."""
    k = min(m, n)
    for_r = 2 * k * k * (max(m, n) - k / 3)
    return for_r + (4 * (m * m * n - m * n * n + n**3 / 3) if attrs.full_matrices and m > n else 2 * k * k * (m - k / 3))


def _triangular(np: Any, attrs: Any, operands: Any, results: Any) -> str:
    below = operands[0][..., 1:, :1]
    zero = below.size and (below == 0).all((-2, -1)).any()
    return "column 0 is 0 below the diagonal: there LAPACK leaves its sign, which it changes elsewhere" if zero else ""


def _diagonal_of_r(np: Any, attrs: Any, operands: Any, results: Any) -> Any:
    return np.diagonal(results[1], axis1=-2, axis2=-1)


PRIMITIVES = (
    matrices.of_matrices(
        "qr",
        _types,
        _kernel,
        jvp=_jvp,
        attrs=QRAttrs,
        n_results=lambda attrs, n_operands: 3 if attrs.pivoting else 2,
        examples=(
            Example(("T[3,3]",), diagonals=(3.0,)),
            Example(("T[2,4,2]",), {"full_matrices": False}, diagonals=(3.0,)),
            Example(("T[2,3]",), diagonals=(3.0,)),
            Example(("T[4,2]",), diagonals=(3.0,)),
            Example(("T[3,3]",), {"pivoting": True}, diagonals=(3.0,)),
        ),
        flops=on_matrices(_operations),
        singular=either(
            vanishing("element of R's diagonal", "columns are linearly dependent, and Q has no derivative", _diagonal_of_r),
            _triangular,
        ),
        formula="Q, R, where x = Q R",
        summary="orthonormal columns and an upper triangle with a real diagonal; "
        "derivatives are NaN or infinite where the first columns are linearly dependent",
        caption=("qr({0})", "the QR factorization"),
    ),
)
