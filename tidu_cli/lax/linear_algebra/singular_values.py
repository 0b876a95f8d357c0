"""Singular values: of matrices of any shape, and their pseudoinverses.

Where singular values repeat, their own derivatives are those of u_iᴴ A' v_i, for the vectors that there are, and those of the
vectors are NaN or infinite; second derivatives of the values go through the vectors. Of a singular value 0 the derivative is one
of its subgradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from tidu_cli.graph.sizes.open import larger, smaller
from tidu_cli.graph.types import TensorType, real_dtype
from tidu_cli.lax.linear_algebra import matrices
from tidu_cli.lax.linear_algebra.orthogonal import completed
from tidu_cli.lax.linear_algebra.singular import apart, either, quotient, repeating, rounding, singular_values, vanishing
from tidu_cli.rules.analysis import on_matrices
from tidu_cli.rules.contract import JVP, Attrs, Example, Kernel, Types
from tidu_cli.rules.families import conj
from tidu_cli.rules.fields import Bounded
from tidu_cli.rules.terms import Term


class SVDAttrs(Attrs):
    """`full_matrices`: whether U and V are square, or have as many columns as there are singular values; true by default.

    `compute_uv`: whether there are U and Vᴴ, which is so by default, or singular values alone.
    """

    full_matrices: bool = True
    compute_uv: bool = True


def _types(attrs: SVDAttrs, operands: Types) -> Types:
    x = matrices.require_matrices(operands)
    *batch, m, n = x.shape
    k = smaller(m, n)
    values = TensorType(real_dtype(x.dtype), (*batch, k))
    if not attrs.compute_uv:
        return (values,)
    left, right = (m, n) if attrs.full_matrices else (k, k)
    return values, x.with_shape((*batch, m, left)), x.with_shape((*batch, right, n))


def _kernel(np: Any, attrs: SVDAttrs, operands: Types, results: Types) -> Kernel:
    m, n = operands[0].shape[-2:]

    def factors(x: Any) -> Any:
        if not attrs.compute_uv:
            return (np.linalg.svd(x, compute_uv=False),)
        u, s, vh = np.linalg.svd(x, full_matrices=False)
        if operands[0].complex and s.size:
            phase = matrices.phases(np, u)
            u, vh = matrices.turned_by(np, u, phase), vh * np.swapaxes(np.conj(phase), -1, -2)
        if attrs.full_matrices and m > n:
            u = np.concatenate([u, _others(np, u)], -1)
        if attrs.full_matrices and n > m:
            vh = np.concatenate([vh, matrices.adjoint_of(np, _others(np, matrices.adjoint_of(np, vh)))], -2)
        return s, u, vh

    return matrices.of_batches(np, factors, operands, results)


def _others(np: Any, u: Any) -> Any:
    """The columns that make orthonormal ones a square matrix: a function of these, as those that LAPACK gives are not."""
    return np.linalg.qr(u, "complete")[0][..., u.shape[-1] :]


def _jvp(node: JVP) -> Sequence[Term | None]:
    # M. B. Giles, "An extended collection of matrix derivative results for forward and reverse mode algorithmic differentiation"
    # (2008), section 3.2, and Wan and Zhang (2019) for the phases: with P = Uᴴ A' V, s' is the real diagonal of P, and U' = U X,
    # V' = V Y with X_ij = (P_ij s_j + s_i conj(P_ji)) / (s_j² - s_i²) and Y_ij = (s_i P_ij + conj(P_ji) s_j) / (s_j² - s_i²), and
    # X_ii - Y_ii = i Im(P_ii) / s_i. Where U has fewer columns than rows, (1 - U Uᴴ) A' V / s comes to U', and likewise for V.
    t, x = node.tangent, node.operands[0]
    m, n = t.type.shape[-2:]
    k = smaller(m, n)
    if not node.attrs.compute_uv:
        _, u, vh = x.trace.emit_all("svd", x, full_matrices=False, compute_uv=True)
        return [matrices.real(matrices.diagonal(matrices.product(matrices.adjoint(u), matrices.product(t, matrices.adjoint(vh)))))]
    s, whole_u, whole_vh = node.results
    u, v = matrices.part(whole_u, columns=(0, k)), matrices.adjoint(matrices.part(whole_vh, rows=(0, k)))
    p = matrices.product(matrices.adjoint(u), matrices.product(t, v))
    ds = matrices.real(matrices.diagonal(p))
    along, down = matrices.by_columns(s, p), matrices.by_rows(s, p)
    bound = rounding(s, larger(m, n))
    regular, gaps, nonzero = apart(s, bound, p), (along + down) * (along - down), matrices.gt(s, bound)
    dx = quotient(matrices.with_diagonal(p * along + matrices.adjoint(p) * down, 0), gaps, regular)
    dy = quotient(matrices.with_diagonal(p * down + matrices.adjoint(p) * along, 0), gaps, regular)
    if p.type.complex:
        on = p - matrices.with_diagonal(p, 0)
        dx = dx + _by_columns((on - conj(on)) * 0.5, s, nonzero)
    du = _outside(u, matrices.product(u, dx), matrices.product(t, v), s, nonzero) if m > n else matrices.product(u, dx)
    dv = (
        _outside(v, matrices.product(v, dy), matrices.product(matrices.adjoint(t), u), s, nonzero)
        if n > m
        else matrices.product(v, dy)
    )
    if p.type.complex:
        rate = matrices.turning(u, du)
        du, dv = du + u * matrices.by_columns(rate, u), dv + v * matrices.by_columns(rate, v)
    if node.attrs.full_matrices and m > n:
        du = matrices.beside(du, _others_tangent(u, du))
    if node.attrs.full_matrices and n > m:
        dv = matrices.beside(dv, _others_tangent(v, dv))
    return [ds, du, matrices.adjoint(dv)]


def _outside(u: Term, within: Term, image: Term, s: Term, nonzero: Term) -> Term:
    """The tangent of the columns u, from that part of it within their span, and the image of the vectors on the other side."""
    return within + _by_columns(image - matrices.product(u, matrices.product(matrices.adjoint(u), image)), s, nonzero)


def _by_columns(x: Term, s: Term, nonzero: Term) -> Term:
    """The columns of x over the singular values, of which these are not 0."""
    columns = matrices.broadcast_in_dim(
        nonzero, shape=x.type.shape, broadcast_dimensions=(*matrices.batch_axes(x), x.type.rank - 1)
    )
    return quotient(x, matrices.by_columns(s, x), columns)


def _others_tangent(u: Term, du: Term) -> Term:
    """That of `_others`. The first columns of the Q from which these are taken are those of u, each times 1 or -1."""
    _, r = u.trace.emit_all("qr", u, full_matrices=False)
    signs = matrices.by_columns(matrices.sign(matrices.real(matrices.diagonal(r))), u)
    return completed(u * signs, du * signs)


def _operations(attrs: SVDAttrs, m: int, n: int) -> float:
    """Values alone by bidiagonalization; with vectors by way of QR factors (section 8.6.4)."""
    m, n = max(m, n), min(m, n)
    if not attrs.compute_uv:
        return 4 * m * n * n - 4 * n**3 / 3
    return (4 * m * m * n if attrs.full_matrices else 6 * m * n * n) + 20 * n**3


class PinvAttrs(Attrs):
    """`rtol`: singular values up to this part of the greatest count as 0, in derivatives too: it should be that of rounding."""

    rtol: Annotated[float, Bounded(ge=0)]


def _pinv_types(attrs: PinvAttrs, operands: Types) -> Types:
    x = matrices.require_matrices(operands)
    *batch, m, n = x.shape
    return (x.with_shape((*batch, n, m)),)


def _pinv_jvp(node: JVP) -> Sequence[Term | None]:
    # G. H. Golub, V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems whose variables
    # separate" (1973), equation 4.12, for changes that keep the rank:
    # P' = -P A' P + P Pᴴ A'ᴴ (1 - A P) + (1 - P A) A'ᴴ Pᴴ P.
    t, a, (p,) = node.tangent, node.operands[0], node.results
    left = matrices.product(matrices.product(p, matrices.adjoint(p)), matrices.adjoint(t))
    right = matrices.product(matrices.adjoint(t), matrices.product(matrices.adjoint(p), p))
    return [
        left
        - matrices.product(matrices.product(left, a), p)
        + right
        - matrices.product(p, matrices.product(a, right))
        - matrices.product(p, matrices.product(t, p))
    ]


def _values(np: Any, attrs: Any, operands: Any, results: Any) -> Any:
    return results[0]


PRIMITIVES = (
    matrices.iterated(
        "svd",
        _types,
        _kernel,
        jvp=_jvp,
        attrs=SVDAttrs,
        n_results=lambda attrs, n_operands: 3 if attrs.compute_uv else 1,
        examples=(
            Example(("T[2,2]",), {"compute_uv": False}),
            Example(("T[3,3]",), diagonals=(3.0,)),
            Example(("T[2,3,2]",), {"full_matrices": False}),
            Example(("T[2,4]",)),
        ),
        flops=on_matrices(_operations),
        singular=either(
            repeating("singular values", "singular vectors have no derivative, nor have singular values a second one", _values),
            vanishing("singular value", "it has a kink, and its vectors may have no derivative", _values),
        ),
        formula="s, U, Vᴴ, where x = U diag(s) Vᴴ",
        summary="singular values from the greatest on, and their vectors, of which complex ones have phases such that the greatest "
        "component of each column of U is real; where values repeat, derivatives of vectors are NaN or infinite",
        caption=("svd({0})", "the singular value decomposition"),
    ),
    matrices.iterated(
        "pinv",
        _pinv_types,
        lambda np, attrs, operands, results: matrices.of_batches(
            np, lambda x: (np.linalg.pinv(x, rtol=attrs.rtol),), operands, results
        ),
        jvp=_pinv_jvp,
        attrs=PinvAttrs,
        examples=(
            Example(("T[3,3]",), {"rtol": 1e-6}, diagonals=(3.0,)),
            Example(("T[2,4,2]",), {"rtol": 1e-6}, diagonals=(3.0,)),
            Example(("T[2,3]",), {"rtol": 1e-6}, diagonals=(3.0,)),
        ),
        flops=on_matrices(lambda attrs, m, n: 6 * m * n * n + 20 * min(m, n) ** 3),
        singular=vanishing("singular value", "where the rank changes the pseudoinverse jumps", singular_values),
        formula="x⁺",
        summary="the pseudoinverse of Moore and Penrose; derivatives are those of changes that keep the rank",
        caption=("{0}⁺", "the pseudoinverse"),
    ),
)
