"""Eigenvalues: of Hermitian matrices and of general ones, with their vectors, and Schur forms.

Where eigenvalues of a Hermitian matrix repeat, their own derivatives are those of v_iᴴ A' v_i, for the vectors that there are, and
those of the vectors are NaN or infinite; second derivatives of the values go through the vectors. Of a general matrix the
derivatives of values that repeat may be infinite, too, as where it has fewer vectors than rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidu_cli.errors import MissingRuleError
from tidu_cli.graph.types import TensorType, complex_dtype, real_dtype
from tidu_cli.lax.linear_algebra import matrices
from tidu_cli.lax.linear_algebra.singular import apart, infinite, quotient, repeating, resolution, rounding
from tidu_cli.rules.analysis import on_matrices
from tidu_cli.rules.contract import JVP, Attrs, Example, Kernel, Types
from tidu_cli.rules.families import as_dtype, conj
from tidu_cli.rules.terms import Term, op

# Hermitian matrices.


class EighAttrs(Attrs):
    """`lower`: which triangle is read, the other is not; true by default. `sort_eigenvalues`: they ascend in either case."""

    lower: bool = True
    sort_eigenvalues: bool = True


def _eigh_types(attrs: EighAttrs, operands: Types) -> Types:
    (x,) = matrices.require_square(operands)
    return x, TensorType(real_dtype(x.dtype), x.shape[:-1])


def _eigh_kernel(np: Any, attrs: EighAttrs, operands: Types, results: Types) -> Kernel:
    def factors(x: Any) -> Any:
        w, v = np.linalg.eigh(x, "L" if attrs.lower else "U")
        return matrices.turned_by(np, v, matrices.phases(np, v)) if operands[0].complex and v.size else v, w

    kernel, read = matrices.of_batches(np, factors, operands, results), np.tril if attrs.lower else np.triu
    return lambda x: kernel(read(x))  # what is not read may be NaN


def _eigh_jvp(node: JVP) -> Sequence[Term | None]:
    # M. B. Giles, "An extended collection of matrix derivative results for forward and reverse mode algorithmic differentiation"
    # (2008), section 3.1: with P = Vᴴ A' V, w' is the diagonal of P, and V' = V X with X_ij = P_ij / (w_j - w_i), and imaginary
    # X_ii, by the phases. M. Seeger et al., "Auto-differentiating linear algebra" (2017), have the same.
    v, w = node.results
    p = matrices.product(matrices.adjoint(v), matrices.product(matrices.hermitian(node.tangent, lower=node.attrs.lower), v))
    regular = apart(w, rounding(w, v.type.shape[-1]), p)
    dv = matrices.product(v, quotient(matrices.with_diagonal(p, 0), matrices.by_columns(w, p) - matrices.by_rows(w, p), regular))
    if v.type.complex:
        dv = dv + v * matrices.by_columns(matrices.turning(v, dv), v)
    return [dv, matrices.real(matrices.diagonal(p))]


# General matrices.


class EigAttrs(Attrs):
    """`compute_left_eigenvectors`, `compute_right_eigenvectors`: which vectors there are beside the values; both by default."""

    compute_left_eigenvectors: bool = True
    compute_right_eigenvectors: bool = True


def _eig_types(attrs: EigAttrs, operands: Types) -> Types:
    (x,) = matrices.require_square(operands)
    vectors = x if x.complex else x.with_dtype(complex_dtype(x.dtype))
    n_vectors = attrs.compute_left_eigenvectors + attrs.compute_right_eigenvectors
    return (vectors.with_shape(x.shape[:-1]), *[vectors] * n_vectors)


def _eig_kernel(np: Any, attrs: EigAttrs, operands: Types, results: Types) -> Kernel:
    if not attrs.compute_left_eigenvectors:
        if attrs.compute_right_eigenvectors:
            return matrices.of_batches(np, np.linalg.eig, operands, results)
        return matrices.of_batches(np, lambda x: (np.linalg.eigvals(x),), operands, results)
    from scipy.linalg import eig  # type: ignore[import-untyped]  # slow to import, and rarely needed

    def factors(x: Any) -> Any:
        return eig(x, left=True, right=attrs.compute_right_eigenvectors) if x.size else results_of_none

    results_of_none = [np.zeros(t.shape[t.rank - k :]) for t, k in zip(results, (1, 2, 2), strict=False)]
    return matrices.of_each(np, factors, operands, results)


def _eig_jvp(node: JVP) -> Sequence[Term | None]:
    t, x, (w, *_) = node.tangent, node.operands[0], node.results
    left, right = node.attrs.compute_left_eigenvectors, node.attrs.compute_right_eigenvectors
    t, tangents = as_dtype(t, w.type.dtype), list[Term]()
    if left:
        _, dv = _eig_tangents(conj(w), node.results[1], matrices.adjoint(t), x)
        tangents.append(dv)
    if right:
        dw, dv = _eig_tangents(w, node.results[-1], t, x)
        return [dw, *tangents, dv]
    # Values and vectors must be of one decomposition: where values repeat, no other order is known. LAPACK finds them in the same
    # order without the vectors, and if ever it did not, derivatives are infinite.
    ws, v = x.trace.emit_all("eig", x, compute_left_eigenvectors=False, compute_right_eigenvectors=True)
    p, growth = _projected(v, t)
    same = op("le")(matrices.abs_(w - ws), rounding(w, v.type.shape[-1], x) * growth)
    return [infinite(matrices.diagonal(p), same), *tangents]


def _projected(v: Term, t: Term) -> tuple[Term, Term]:
    """P = V⁻¹ A' V, and the norms of the rows of V⁻¹, by which changes of the matrix grow in eigenvalues.

    A row of P is infinite where rounding alone would make it: where a change of the matrix by rounding changes that norm by as
    much as itself (the square of the norm times rounding is 1: so near is a matrix with too few eigenvectors, by J. H. Wilkinson,
    "Note on matrices with a very ill-conditioned eigenproblem", 1972), or where rounding in the inverse comes to 1.
    """
    n, inverse = v.type.shape[-1], matrices.solved(v, matrices.with_diagonal(v.trace.full(0, v.type), 1))
    size = matrices.abs_(inverse)
    norms = op("reduce_max")(size, axes=(v.type.rank - 1,))  # the greatest elements: squares of others might overflow
    error = matrices.reduce_sum(
        matrices.product(size, matrices.abs_(v)) * matrices.by_columns(norms, size), axes=(v.type.rank - 1,)
    )
    regular = matrices.gt(resolution(norms, n), op("max")(norms * norms, error))
    rows = matrices.broadcast_in_dim(regular, shape=v.type.shape, broadcast_dimensions=tuple(range(v.type.rank - 1)))
    return infinite(matrices.product(inverse, matrices.product(t, v)), rows), norms


def _eig_tangents(w: Term, v: Term, t: Term, x: Term) -> tuple[Term, Term]:
    # Giles (2008), section 3.1: with P = V⁻¹ A' V, w' is the diagonal of P, and V' = V X with X_ij = P_ij / (w_j - w_i). LAPACK's
    # vectors have norm 1, and a greatest component that is real, which says what X_ii is.
    p, growth = _projected(v, t)
    regular = apart(w, rounding(w, v.type.shape[-1], x) * growth, p)
    u = matrices.product(v, quotient(matrices.with_diagonal(p, 0), matrices.by_columns(w, p) - matrices.by_rows(w, p), regular))
    grown = matrices.reduce_sum(matrices.real(conj(v) * u), axes=(v.type.rank - 2,))
    return matrices.diagonal(p), u + v * (matrices.by_columns(matrices.turning(v, u), v) - matrices.by_columns(grown, v))


# Schur forms.


class SchurAttrs(Attrs):
    """`compute_schur_vectors`: whether there is Z beside T, which is so by default."""

    compute_schur_vectors: bool = True


def _schur_types(attrs: SchurAttrs, operands: Types) -> Types:
    (x,) = matrices.require_square(operands)
    return (x, x) if attrs.compute_schur_vectors else (x,)


def _schur_kernel(np: Any, attrs: SchurAttrs, operands: Types, results: Types) -> Kernel:
    from scipy.linalg import schur  # slow to import, and rarely needed

    output = "complex" if operands[0].complex else "real"
    return matrices.of_each(np, lambda x: schur(x, output)[: len(results)] if x.size else [x, x][: len(results)], operands, results)


_NO_DERIVATIVE = "blocks of T appear and vanish, and vectors jump where eigenvalues meet; eig, expm, logm and sqrtm have one"


def _schur_jvp(node: JVP) -> Sequence[Term | None]:
    raise MissingRuleError(f"schur has no derivative in input 0: {_NO_DERIVATIVE}")


def _vectors_too(with_vectors: float, values: float) -> Any:
    """Multiples of n³, with the vectors and without: the figures of sections 7.5.6 and 8.3.3."""
    return lambda attrs, m, n: (with_vectors if any(dict(attrs).values()) else values) * n**3


_EQUAL = repeating("eigenvalues", "eigenvectors have no derivative, nor have eigenvalues a second one", lambda *a: a[3][1])

PRIMITIVES = (
    matrices.iterated(
        "eigh",
        _eigh_types,
        _eigh_kernel,
        jvp=_eigh_jvp,
        attrs=EighAttrs,
        n_results=lambda attrs, n_operands: 2,
        examples=(Example(("T[3,3]",)), Example(("T[2,2,2]",), {"lower": False})),
        flops=on_matrices(lambda attrs, m, n: 9 * n**3),
        singular=_EQUAL,
        kinks=lambda k: [
            k.Kink(_EQUAL, "eigenvalues are equal", "NaN or infinite of vectors", "NaN of vectors", "NaN of vectors", "")
        ],
        formula="V, w, where x = V diag(w) Vᴴ",
        summary="eigenvectors and eigenvalues, which ascend, of the matrix that one triangle makes Hermitian; complex vectors have "
        "phases such that the greatest component is real; where values repeat, derivatives of vectors are NaN or infinite",
        caption=("eigh({0})", "the eigenvectors and eigenvalues"),
    ),
    matrices.iterated(
        "eig",
        _eig_types,
        _eig_kernel,
        jvp=_eig_jvp,
        attrs=EigAttrs,
        n_results=lambda attrs, n_operands: 1 + attrs.compute_left_eigenvectors + attrs.compute_right_eigenvectors,
        examples=(
            Example(("T[3,3]",), {"compute_left_eigenvectors": False}),
            Example(("T[2,2,2]",)),
            Example(("T[3,3]",), {"compute_left_eigenvectors": False, "compute_right_eigenvectors": False}),
        ),
        flops=on_matrices(_vectors_too(25, 10)),
        singular=repeating("eigenvalues", "neither they nor their vectors have derivatives", lambda *a: a[3][0]),
        formula="w, U, V, where Uᴴ x = diag(w) Uᴴ and x V = V diag(w)",
        summary="eigenvalues in LAPACK's order, left and right eigenvectors, all complex; vectors have norm 1, and a greatest "
        "component that is real; where values repeat, derivatives of vectors are NaN or infinite, and those of values, too, where "
        "there are fewer vectors than rows",
        caption=("eig({0})", "the eigenvalues and eigenvectors"),
    ),
    matrices.iterated(
        "schur",
        _schur_types,
        _schur_kernel,
        jvp=_schur_jvp,
        attrs=SchurAttrs,
        n_results=lambda attrs, n_operands: 1 + attrs.compute_schur_vectors,
        inert=(0,),
        inert_reason=_NO_DERIVATIVE,
        examples=(Example(("T[3,3]",)), Example(("T[2,2,2]",), {"compute_schur_vectors": False})),
        flops=on_matrices(_vectors_too(25, 10)),
        formula="T, Z, where x = Z T Zᴴ",
        summary="the Schur form, upper triangular, or where x is real with blocks of 2 × 2 for pairs of complex eigenvalues",
        caption=("schur({0})", "the Schur form"),
    ),
)
