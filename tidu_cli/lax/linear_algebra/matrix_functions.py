"""Functions of matrices: exponential, logarithm, square root with the equation that its derivative solves, and polar factors.

The derivative of a function f at A is linear in the direction E, and so a primitive: `expm_frechet` and `logm_frechet`. It is what
f of the matrix [[A, E], [0, A]] has above its diagonal (N. J. Higham, "Functions of Matrices" (2008), equation 3.16), and its own
derivative is found likewise (N. J. Higham, S. D. Relton, "Higher order Fréchet derivatives of matrix functions and the
level-2 condition number" (2014), theorem 3.5): so that there are all orders. The adjoint of the derivative at A is that at Aᴴ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

from tidu_cli.errors import MissingRuleError, TypeRuleError
from tidu_cli.frozen import replace
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.linear_algebra import matrices
from tidu_cli.lax.linear_algebra.singular import ROUNDINGS, infinite, rounding, singular_values, vanishing
from tidu_cli.rules.analysis import adding, multiplying, on_matrices
from tidu_cli.rules.contract import JVP, Attrs, Example, Kernel, Primitive, Transposition, Types
from tidu_cli.rules.families import require_one_type, summed
from tidu_cli.rules.terms import Term, op

solve_sylvester = op("solve_sylvester")


# The exponential and the logarithm, and their derivatives.


def _expm_kernel(np: Any, attrs: Attrs, operands: Types, results: Types) -> Kernel:
    from scipy.linalg import expm  # type: ignore[import-untyped]  # slow to import, and rarely needed

    return matrices.of_batches(np, lambda x: (expm(x) if x.size else x,), operands, results)


def _expm_frechet_kernel(np: Any, attrs: Attrs, operands: Types, results: Types) -> Kernel:
    from scipy.linalg import expm_frechet

    return matrices.of_each(np, lambda a, e: (expm_frechet(a, e, compute_expm=False) if a.size else a,), operands, results)


def _logm_kernel(np: Any, attrs: Attrs, operands: Types, results: Types) -> Kernel:
    return matrices.of_each(np, lambda x: (_principal(np, "logm", x),), operands, results)


def _logm_frechet_kernel(np: Any, attrs: Attrs, operands: Types, results: Types) -> Kernel:
    n = operands[0].shape[-1]

    def derivative(a: Any, e: Any) -> Any:
        size = np.abs(e).max(initial=0)
        if size == 0:
            return (e,)
        # The direction is made about as great as the matrix, so that neither is lost beside the other.
        scale = 2.0 ** np.round(np.log2(np.abs(a).max() / size)) if a.any() else 1.0
        return (_principal(np, "logm", np.block([[a, e * scale], [np.zeros_like(a), a]]))[:n, n:] / scale,)

    return matrices.of_each(np, derivative, operands, results)


def _principal(np: Any, name: str, x: Any) -> Any:
    """SciPy's function of that name. Raises LinAlgError where it has no value, or none that is real of a real matrix.

    SciPy gives values for matrices that have none, with a warning.
    """
    import warnings

    import scipy.linalg  # type: ignore[import-untyped]

    if not x.size:
        return x
    x = x.astype(np.result_type(x, np.float64))
    s = np.linalg.svd(x, compute_uv=False)
    singular = s[-1] <= np.finfo(np.float64).eps * s[0]
    if singular and name == "logm":
        raise np.linalg.LinAlgError("the matrix is singular")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = getattr(scipy.linalg, name)(x)
    if singular and not np.abs(value @ value - x).max() <= _ROOT_ERROR * s[0]:
        raise np.linalg.LinAlgError("the matrix has no square root")
    if value.dtype.kind == "c" and x.dtype.kind != "c" and value.imag.any():
        raise np.linalg.LinAlgError(f"{name} of a real matrix is not real")
    return value.real if x.dtype.kind != "c" else value


_ROOT_ERROR = 1e-12
"""How far from a singular matrix the square of its root may be, relative to it."""


def _frechet_types(attrs: Attrs, operands: Types) -> Types:
    matrices.require_square(operands)
    require_one_type(operands)
    return operands[:1]


def _with_derivative(
    name: str,
    kernels: tuple[Callable[..., Kernel], Callable[..., Kernel]],
    operations: tuple[float, float],
    examples: tuple[Example, Example],
    what: str,
    **told: Any,
) -> tuple[Primitive, Primitive]:
    """A function of matrices and its derivative. `operations` are multiples of n³."""
    frechet = op(f"{name}_frechet")
    first, second = operations
    return (
        matrices.iterated(
            name,
            matrices.square,
            kernels[0],
            jvp=lambda node: [frechet(node.operands[0], node.tangent)],
            one_type=True,
            examples=(examples[0], replace(examples[0], operands=("T[2,2,2]",))),
            flops=on_matrices(lambda attrs, m, n: first * n**3),
            caption=(f"{name}({{0}})", what),
            **told,
        ),
        matrices.iterated(
            f"{name}_frechet",
            _frechet_types,
            kernels[1],
            arity=2,
            jvp=partial(_derivative_jvp, frechet),
            transpose=partial(_derivative_transpose, frechet),
            sparsity=matrices.of_each_matrix,
            one_type=True,
            examples=(examples[1],),
            linear=((1, 2),),
            flops=on_matrices(lambda attrs, m, n: second * n**3),
            formula=f"d/dt {name}(x + t y) at t = 0",
            summary=f"the derivative of {name} at x in the direction y",
            caption=(f"{name}′({{0}}) {{1}}", f"the derivative of {name}"),
        ),
    )


def _derivative_jvp(frechet: Callable[..., Term], node: JVP) -> Sequence[Term | None]:
    (a, e), (ta, te) = node.operands, node.tangents
    n = a.type.shape[-1]
    moved = None
    if ta is not None:
        moved = matrices.part(frechet(_block(a, e), _block(ta, None)), rows=(0, n), columns=(n, 2 * n))
    return [summed([moved, None if te is None else frechet(a, te)])]


def _derivative_transpose(frechet: Callable[..., Term], node: Transposition) -> Sequence[Term | None]:
    a = node.operands[0]
    if a is None:
        raise MissingRuleError(f"missing transpose rule for {frechet.__name__} with an active matrix: it is linear in input 1")
    return [None, frechet(matrices.adjoint(a), node.cotangent)]


def _block(a: Term, e: Term | None) -> Term:
    """[[a, e], [0, a]]."""
    zero = a.trace.full(0, a.type)
    return matrices.above(matrices.beside(a, zero if e is None else e), matrices.beside(zero, a))


# Square roots, and Sylvester's equation.


def _sqrtm_jvp(node: JVP) -> Sequence[Term | None]:
    # From X X = A: X X' + X' X = A'. Of an A that is singular but for rounding X is not so, having the root of the rounding in it.
    (x,), a, t = node.results, node.operands[0], node.tangent
    s = a.trace.emit("svd", a, compute_uv=False)
    regular = op("reduce_and")(matrices.gt(s, rounding(s, a.type.shape[-1])), axes=(s.type.rank - 1,))
    every = matrices.broadcast_in_dim(regular, shape=t.type.shape, broadcast_dimensions=matrices.batch_axes(t))
    return [solve_sylvester(x, x, infinite(t, every))]


def _sylvester_types(attrs: Attrs, operands: Types) -> Types:
    a, b, c = operands
    matrices.require_square(operands)
    matrices.require_square((b,))
    if not a.dtype == b.dtype == c.dtype:
        raise TypeRuleError(f"type mismatch: inputs are {a}, {b} and {c}; use convert_element_type first")
    due = c.with_shape((*a.shape[:-1], b.shape[-1]))
    if a.shape[:-2] != b.shape[:-2] or c != due:
        raise TypeRuleError(f"solves a x + x b = c, so c must be {due}, got {a}, {b} and {c}")
    return (c,)


def _sylvester_kernel(np: Any, attrs: Attrs, operands: Types, results: Types) -> Kernel:
    from scipy.linalg import get_lapack_funcs, schur

    output = "complex" if operands[0].complex else "real"
    (trsyl,) = get_lapack_funcs(("trsyl",), dtype=numpy_dtype(np, operands[0].dtype))

    def solution(a: Any, b: Any, c: Any) -> Any:
        # R. H. Bartels, G. W. Stewart, "Solution of the matrix equation AX + XB = C" (1972).
        if not c.size:
            return (c,)
        (r, u), (s, v) = schur(a, output), schur(np.conj(b.T), output)
        sums = np.abs(np.linalg.eigvals(r)[:, None] + np.conj(np.linalg.eigvals(s)))
        size = ROUNDINGS * sum(c.shape) * np.finfo(c.dtype).eps * (np.abs(r).max() + np.abs(s).max())
        if sums.min() <= size:
            raise np.linalg.LinAlgError("a and -b have eigenvalues in common, to rounding")
        y, scale, info = trsyl(r, s, np.conj(u.T) @ c @ v, tranb="C")
        if info:
            raise np.linalg.LinAlgError("a and -b have eigenvalues in common")  # others close to these have been taken
        return (u @ (scale * y) @ np.conj(v.T),)

    return matrices.of_each(np, solution, operands, results)


def _sylvester_jvp(node: JVP) -> Sequence[Term | None]:
    (a, b, _), (x,), (ta, tb, tc) = node.operands, node.results, node.tangents
    moved = [tc, None if ta is None else -matrices.product(ta, x), None if tb is None else -matrices.product(x, tb)]
    return [solve_sylvester(a, b, summed(moved))]


def _sylvester_transpose(node: Transposition) -> Sequence[Term | None]:
    a, b, _ = node.operands
    if a is None or b is None:
        raise MissingRuleError("missing transpose rule for solve_sylvester with an active matrix a or b: it is linear in c alone")
    return [None, None, solve_sylvester(matrices.adjoint(a), matrices.adjoint(b), node.cotangent)]


def _sylvester_operations(attrs: Attrs, operands: Types, results: Types) -> int:
    """25 (m³ + n³) + 5 (m² n + m n²), by Schur forms (Golub and Van Loan, section 7.6.3), half of them products."""
    (c,) = results
    *batch, m, n = c.shape
    return round(prod(batch) * (25 * (m**3 + n**3) + 5 * m * n * (m + n)) * (multiplying(c) + adding(c)) / 2)


# Polar factors.


def _polar_types(attrs: Attrs, operands: Types) -> Types:
    x = matrices.require_matrices(operands)
    *batch, m, n = x.shape
    if m < n:
        raise TypeRuleError(f"takes matrices with at least as many rows as columns, got {x}; take that of the conjugate transpose")
    return x, x.with_shape((*batch, n, n))


def _polar_kernel(np: Any, attrs: Attrs, operands: Types, results: Types) -> Kernel:
    def factors(x: Any) -> Any:
        u, s, vh = np.linalg.svd(x, full_matrices=False)
        return u @ vh, matrices.adjoint_of(np, vh) @ (s[..., :, None] * vh)

    return matrices.of_batches(np, factors, operands, results)


def _polar_jvp(node: JVP) -> Sequence[Term | None]:
    # From Uᴴ A' = W P + P', where W = Uᴴ U' is skew-Hermitian and P' Hermitian: W P + P W = Uᴴ A' - A'ᴴ U (N. J. Higham, "Functions
    # of Matrices" (2008), section 8.2). Singular values may repeat; that of 0 makes the equation one without a solution.
    t, (u, p) = node.tangent, node.results
    moved = matrices.product(matrices.adjoint(u), t)
    w = solve_sylvester(p, p, moved - matrices.adjoint(moved))
    within = matrices.product(u, w)
    if t.type.shape[-2] > t.type.shape[-1]:
        within = within + matrices.turned(matrices.solved(matrices.turned(p), matrices.turned(t - matrices.product(u, moved))))
    return [within, moved - matrices.product(w, p)]


def _positive(*operands: str) -> Example:
    return Example(operands, within=((-1.0, 1.0),), diagonals=(4.0, 0.0))


PRIMITIVES = (
    *_with_derivative(
        "expm",
        (_expm_kernel, _expm_frechet_kernel),
        (44 / 3, 44),  # products and systems of the greatest Padé approximant, without squarings; and thrice that
        (Example(("T[3,3]",)), Example(("T[2,2,2]", "T[2,2,2]"))),
        "the matrix exponential",
        formula="1 + x + x²/2 + x³/6 + …",
        summary="the matrix exponential",
    ),
    *_with_derivative(
        "logm",
        (_logm_kernel, _logm_frechet_kernel),
        (32, 8 * 32),  # a Schur form, three square roots of it, and a Padé approximant of degree 7; and that of twice as many rows
        (_positive("T[3,3]"), _positive("T[2,2,2]", "T[2,2,2]")),
        "the matrix logarithm",
        formula="y, where expm(y) = x",
        summary="the principal matrix logarithm; NaN where x is singular, or real and its logarithm is not",
    ),
    matrices.iterated(
        "sqrtm",
        matrices.square,
        lambda np, attrs, operands, results: matrices.of_each(np, lambda x: (_principal(np, "sqrtm", x),), operands, results),
        jvp=_sqrtm_jvp,
        one_type=True,
        examples=(_positive("T[3,3]"), _positive("T[2,2,2]")),
        flops=on_matrices(lambda attrs, m, n: 85 / 3 * n**3),
        singular=vanishing("singular value", "the root of a singular matrix has no derivative", singular_values),
        formula="y, where y y = x",
        summary="the principal square root of matrices; NaN where x has none, or is real and its root is not",
        caption=("sqrtm({0})", "the matrix square root"),
    ),
    matrices.iterated(
        "solve_sylvester",
        _sylvester_types,
        _sylvester_kernel,
        arity=3,
        jvp=_sylvester_jvp,
        transpose=_sylvester_transpose,
        sparsity=matrices.of_each_matrix,
        examples=(
            Example(("T[2,2]", "T[3,3]", "T[2,3]"), diagonals=(4.0, 4.0, 0.0)),
            Example(("T[2,3,3]", "T[2,1,1]", "T[2,3,1]"), diagonals=(4.0, 4.0, 0.0)),
        ),
        linear=((2, 3),),
        flops=_sylvester_operations,
        formula="x, where a x + x b = c",
        summary="solution of Sylvester's equation; NaN where a and -b have eigenvalues in common",
        caption=("sylvester({all})", "the solution of Sylvester's equation"),
    ),
    matrices.iterated(
        "polar",
        _polar_types,
        _polar_kernel,
        jvp=_polar_jvp,
        n_results=lambda attrs, n_operands: 2,
        examples=(Example(("T[3,3]",), diagonals=(3.0,)), Example(("T[2,3,2]",), diagonals=(3.0,))),
        flops=on_matrices(lambda attrs, m, n: 8 * m * n * n + 22 * n**3),
        singular=vanishing("singular value", "the polar factors have no derivative", singular_values),
        formula="U, P, where x = U P",
        summary="orthonormal columns and a positive semidefinite matrix; derivatives are NaN where x has not full rank",
        caption=("polar({0})", "the polar factors"),
    ),
)
