"""Matrices, as rules and kernels of linear algebra have them: terms of matrices, and calls of LAPACK.

Matrices are the last two axes; those before are a batch.

Of matrices for which LAPACK fails the results are NaN, and no other matrix of a batch suffers for it. It is not called for matrices
with infinities or NaN: it may iterate for ever on them, or complain on standard output.

The phases of eigenvectors and singular vectors are complex numbers of magnitude 1 that nothing else determines.
LAPACK's geev makes the component of greatest magnitude real and positive, so that the vectors are functions of the matrix with
derivatives, but where two components are as great. We do the same with the vectors of Hermitian matrices and singular vectors.
What does not depend on the phases has the derivatives that it has with any others, such as those of H.-Q. Wan, S.-X. Zhang,
"Automatic differentiation for complex valued SVD" (2019), and of A. Francuz, N. Schuch, B. Vanhecke, "Stable and efficient
differentiation of tensor network algorithms" (2023), where only such functions are to be differentiated. The sign of real vectors
is that of LAPACK, and locally constant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.arrays.windows import taken
from tidu_cli.rules.analysis import Spread, Spreading
from tidu_cli.rules.batching import itself
from tidu_cli.rules.contract import Attrs, Kernel, KernelRule, Primitive, TypeRule, Types
from tidu_cli.rules.families import as_dtype, conj, primitive, require_dtype
from tidu_cli.rules.terms import Term, op

abs_, and_, argmax, broadcast_in_dim = map(op, ("abs", "and", "argmax", "broadcast_in_dim"))
dot_general, eq, ge, gt, pad, reduce_sum, reshape = map(op, ("dot_general", "eq", "ge", "gt", "pad", "reduce_sum", "reshape"))
select_n, sign, slice_, transpose, triangular_solve = map(op, ("select_n", "sign", "slice", "transpose", "triangular_solve"))

DTYPES = frozenset({"f32", "f64", "c64", "c128"})
"""Those that LAPACK has."""


def require_matrices(types: Types) -> TensorType:
    """The type of the first operand. Raises TypeRuleError unless it is of matrices, of a dtype that LAPACK has."""
    require_dtype(DTYPES, types)
    if types[0].rank < 2:
        raise TypeRuleError(f"takes matrices, got {types[0]}")
    return types[0]


def require_square(types: Types) -> Types:
    """The types of operands. Raises TypeRuleError unless the first is of square matrices, of a dtype that LAPACK has."""
    require_dtype(DTYPES, types)
    x = types[0]
    if x.rank < 2 or x.shape[-1] != x.shape[-2]:
        raise TypeRuleError(f"takes square matrices, got {x}")
    return types


def square(attrs: Attrs, operands: Types) -> Types:
    """The type rule of what makes of a square matrix one of its type."""
    return require_square(operands)


def of_matrices(name: str, types: TypeRule, kernel: KernelRule, *, arity: int | None = 1, **rest: Any) -> Primitive:
    """A primitive of matrices of the dtypes that LAPACK has. A batch of it is itself."""
    return primitive(name, arity, types, kernel, batch=itself(name), dtypes=DTYPES, **rest)


iterated = partial(of_matrices, opaque="is computed by iteration, whose steps depend on the matrix")
"""Likewise, one that is not defined by other operations."""


def of_each_matrix(node: Spreading) -> Sequence[Spread]:
    """The sparsity of an operation on each matrix of a batch: all of its result depends on all of it."""
    return [(k, k, None) for k in range(node.operand.rank - 2)]


def batch_axes(x: Term) -> tuple[int, ...]:
    """The axes before those of the matrices."""
    return tuple(range(x.type.rank - 2))


def product(x: Term, y: Term) -> Term:
    """Products of matrices."""
    batch, rank = batch_axes(x), x.type.rank
    return dot_general(x, y, dimension_numbers=(((rank - 1,), (rank - 2,)), (batch, batch)))


def turned(x: Term) -> Term:
    """Transposes of matrices."""
    return transpose(x, permutation=(*batch_axes(x), x.type.rank - 1, x.type.rank - 2))


def adjoint(x: Term) -> Term:
    """Conjugate transposes of matrices."""
    return turned(conj(x))


def real(x: Term) -> Term:
    """The real part, of the dtype that is the real one of x."""
    return op("real")(x) if x.type.complex else x


def _counted(x: Term) -> tuple[Term, Term]:
    """Of each element of matrices its row and its column."""
    rank = x.type.rank
    rows, columns = (x.trace.emit("iota", dtype="i32", shape=x.type.shape, dimension=rank + k) for k in (-2, -1))
    return rows, columns


def triangle(x: Term, *, lower: bool, diagonal: bool) -> Term:
    """x below its diagonal, or above it, with the diagonal or without, and 0 elsewhere."""
    rows, columns = _counted(x)
    order = (rows, columns) if lower else (columns, rows)
    return select_n((ge if diagonal else gt)(*order), x.trace.full(0, x.type), x)


def with_diagonal(x: Term, value: float, start: int = 0) -> Term:
    """x with a number on its diagonal, from element `start` on."""
    rows, columns = _counted(x)
    on = eq(rows, columns)
    if start:
        on = and_(on, ge(rows, start))
    return select_n(on, x, x.trace.full(value, x.type))


def diagonal(x: Term) -> Term:
    """The diagonals of square matrices, each as a vector."""
    rows, columns = _counted(x)
    return reduce_sum(select_n(eq(rows, columns), x.trace.full(0, x.type), x), axes=(x.type.rank - 1,))


def lower_half(x: Term) -> Term:
    """x below its diagonal, half of it there, and 0 above: of a Hermitian matrix the H of H + Hᴴ."""
    rows, columns = _counted(x)
    return select_n(sign(rows - columns) + 1, x.trace.full(0, x.type), x * 0.5, x)


def hermitian(x: Term, *, lower: bool = True) -> Term:
    """The Hermitian matrix that has this triangle of x. Of its diagonal the real part counts."""
    half = lower_half(x if lower else adjoint(x))
    return half + adjoint(half)


def extended(x: Term, rows: int, columns: int) -> Term:
    """Matrices with this many more rows and columns of zeros, or fewer."""
    if rows == columns == 0:
        return x
    zero = x.trace.full(0, TensorType(x.type.dtype))
    return pad(x, zero, padding_config=(*[(0, 0, 0)] * (x.type.rank - 2), (0, rows, 0), (0, columns, 0)))


def part(x: Term, rows: tuple[int, int] | None = None, columns: tuple[int, int] | None = None) -> Term:
    """Rows and columns of matrices, each from the first of two numbers to before the second; all of them by default."""
    *batch, m, n = x.type.shape
    (top, bottom), (left, right) = rows or (0, m), columns or (0, n)
    if (top, bottom, left, right) == (0, m, 0, n):
        return x
    return slice_(x, start_indices=(*[0] * len(batch), top, left), limit_indices=(*batch, bottom, right))


def beside(x: Term, y: Term) -> Term:
    """Matrices [x y]."""
    return op("concatenate")(x, y, dimension=x.type.rank - 1)


def above(x: Term, y: Term) -> Term:
    """Matrices with the rows of x and then those of y."""
    return op("concatenate")(x, y, dimension=x.type.rank - 2)


def by_columns(d: Term, like: Term) -> Term:
    """A number for each column, d, or a matrix of one row, in all rows of matrices like these, and in their dtype."""
    shape = like.type.shape
    axes = tuple(range(d.type.rank)) if d.type.rank == len(shape) else (*range(len(shape) - 2), len(shape) - 1)
    return broadcast_in_dim(as_dtype(d, like.type.dtype), shape=shape, broadcast_dimensions=axes)


def by_rows(d: Term, like: Term) -> Term:
    """A number for each row, d, in all columns of matrices like these, and in their dtype."""
    axes = tuple(range(like.type.rank - 1))
    return broadcast_in_dim(as_dtype(d, like.type.dtype), shape=like.type.shape, broadcast_dimensions=axes)


def at_greatest(v: Term, x: Term) -> Term:
    """Of each column of x the element where that of v has its greatest magnitude: matrices of one row."""
    axis = v.type.rank - 2
    if not v.type.shape[axis]:
        return reshape(x, new_sizes=(*x.type.shape[:axis], 1, x.type.shape[-1]))  # of no elements either
    places = argmax(abs_(v), axes=(axis,), index_dtype="i32")
    *batch, n = places.type.shape
    return taken(x, reshape(places, new_sizes=(*batch, 1, n)), axis)


def solved(a: Term, b: Term) -> Term:
    """x of a x = b, by LU factors."""
    lu, _, order = a.trace.emit_all("lu", a)
    rows = taken(b, order, b.type.rank - 2)
    forward = triangular_solve(lu, rows, left_side=True, lower=True, unit_diagonal=True)
    return triangular_solve(lu, forward, left_side=True)


def of_batches(np: Any, function: Callable[..., Any], operands: Types, results: Types) -> Kernel:
    """A kernel of a function of batches of matrices, which gives a tuple of results, and raises where LAPACK fails."""
    by_one = of_each(np, function, operands, results)

    def run(*arrays: Any) -> Any:
        if not all(np.isfinite(x).all() for x in arrays):
            return by_one(*arrays)
        try:
            return _typed(np, function(*arrays), results)
        except (np.linalg.LinAlgError, ValueError):
            return by_one(*arrays)  # some have failed; NumPy does not say which

    return run


def of_each(np: Any, function: Callable[..., Any], operands: Types, results: Types) -> Kernel:
    """A kernel of a function of single matrices, which gives a tuple of results, and raises where LAPACK fails.

    Iterations that do not converge are such failures.
    """
    batch = operands[0].shape[:-2]
    nothing = [np.nan if t.inexact else 0 for t in results]

    def run(*arrays: Any) -> Any:
        outputs = [np.empty(t.shape, numpy_dtype(np, t.dtype)) for t in results]
        for k in np.ndindex(*batch):
            matrices = [x[k] for x in arrays]
            try:
                parts = function(*matrices) if all(np.isfinite(x).all() for x in matrices) else nothing
            except (np.linalg.LinAlgError, ValueError):
                parts = nothing
            for whole, one in zip(outputs, parts, strict=True):
                whole[k] = one
        return _typed(np, outputs, results)

    return run


def _typed(np: Any, outputs: Any, results: Types) -> Any:
    arrays = [np.asarray(x, numpy_dtype(np, t.dtype)) for x, t in zip(outputs, results, strict=True)]
    return arrays if len(results) > 1 else arrays[0]


def adjoint_of(np: Any, x: Any) -> Any:
    """The conjugate transposes of matrices."""
    return np.conj(np.swapaxes(x, -1, -2))


def phases(np: Any, v: Any) -> Any:
    """By which the columns of matrices are to be multiplied, as matrices of one row."""
    greatest = np.take_along_axis(v, np.abs(v).argmax(-2, keepdims=True), -2)
    size = np.abs(greatest)
    zero = size == 0
    return np.where(zero, 1, np.conj(greatest) / np.where(zero, 1, size)).astype(v.dtype)


def turned_by(np: Any, v: Any, phase: Any) -> Any:
    """The columns multiplied by their phases, the component of greatest magnitude exactly real."""
    turned, rows = np.multiply(v, phase, order="C"), np.abs(v).argmax(-2, keepdims=True)
    np.put_along_axis(turned, rows, np.take_along_axis(turned, rows, -2).real, -2)
    return turned


def turning(v: Term, dv: Term) -> Term:
    """The rates of the phases, imaginary, by which tangents dv of the columns of v keep the greatest components real.

    They are a number for each column, in matrices of one row.
    """
    ratio = at_greatest(v, dv) / at_greatest(v, v)
    return (ratio - conj(ratio)) * -0.5
