"""Products of arrays; factorizations of real matrices and triangular systems, as LAPACK has them without blocks.

Loops run over columns or rows of matrices; batches are computed at once. What LAPACK finds by iteration, such as eigenvalues, is
not here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tidu_cli.adapters.onnx.writing.lowering import WIDE_INTEGERS, Body, Lowering, Rule, widened
from tidu_cli.graph.types import FLOATS, TensorType
from tidu_cli.lax.linear_algebra.determinants import by_factors, by_inverse

Carried = tuple[str, TensorType]
Step = Callable[..., Sequence[Carried]]


def _steps(low: Lowering, order: Sequence[int], carried: Sequence[Carried], step: Step, n_stacked: int = 0) -> list[str]:
    """Scan numbers in this order. `step` is given a body, the number and what is carried; what it stacks comes last."""
    types = [t for _, t in carried]
    graph = low.body.subgraph([*types, TensorType("i64")], lambda body, *names: step(body, names[-1], *names[:-1]))
    inputs = [*[name for name, _ in carried], low.ints(order)]
    return low.emit_all("Scan", inputs, len(types) + n_stacked, body=graph, num_scan_inputs=1)


def _places(body: Body, n: int, axis: int) -> str:
    """0, 1, ..., n - 1 along the last axis but one, or the last one."""
    return body.constant(np.arange(n, dtype=np.int64).reshape((n, 1) if axis == -2 else (1, n)))


def _swapped(body: Body | Lowering, x: str, rank: int) -> str:
    return body.emit("Transpose", x, perm=[*range(rank - 2), rank - 1, rank - 2])


def _taken(body: Body, x: str, k: str, axis: int) -> str:
    """Row or column k of matrices, as matrices of one row or column."""
    return body.emit("Gather", x, body.emit("Unsqueeze", k, body.ints([0])), axis=axis)


def _sum(body: Body, x: str, axis: int) -> str:
    return body.emit("ReduceSum", x, body.ints([axis]), keepdims=1)


def _triangular_solve(low: Lowering, a: str, b: str) -> str:
    """Row by row from the rows that are solved: x_k = (b_k - a_k x) / a_kk. Of matrices on the right transposes are solved."""
    attrs, (matrix, due) = low.attrs, low.operands
    rank, n, lower, turned = matrix.rank, int(matrix.shape[-1]), attrs.lower, attrs.transpose_a != (not attrs.left_side)
    triangle = np.tri(n, dtype=bool) if lower else np.tri(n, dtype=bool).T
    a = low.emit("Where", low.body.constant(triangle), a, low.number(0))  # the other one may hold anything
    a = _swapped(low, a, rank) if turned else a
    b = b if attrs.left_side else _swapped(low, b, rank)
    shape = due.shape if attrs.left_side else (*due.shape[:-2], due.shape[-1], due.shape[-2])
    carried = TensorType(due.dtype, shape)

    def step(body: Body, k: str, x: str) -> list[Carried]:
        row = _taken(body, a, k, rank - 2)
        solved = body.emit("Sub", _taken(body, b, k, rank - 2), body.emit("MatMul", row, x))
        if not attrs.unit_diagonal:
            solved = body.emit("Div", solved, _taken(body, row, k, rank - 1))
        here = body.emit("Equal", _places(body, n, -2), k)
        return [(body.emit("Where", here, solved, x), carried)]

    order = range(n) if lower != turned else range(n - 1, -1, -1)
    (x,) = _steps(low, order, [(low.filled(0, carried), carried)], step)
    return x if attrs.left_side else _swapped(low, x, rank)


def _cholesky(low: Lowering, x: str) -> str:
    """Column by column: c = x_k - L L_k', of which the first is a square. All is NaN where one is not positive."""
    type_, n, axis = low.operand, low.operand.shape[-1], low.operand.rank - 1

    def step(body: Body, k: str, factor: str) -> list[Carried]:
        rows = body.emit("MatMul", factor, _swapped(body, _taken(body, factor, k, axis - 1), type_.rank))
        column = body.emit("Sub", _taken(body, x, k, axis), rows)
        column = body.emit("Div", column, body.emit("Sqrt", _taken(body, column, k, axis - 1)))
        below = body.emit("GreaterOrEqual", _places(body, n, -2), k)
        column = body.emit("Where", below, column, body.constant(0, type_.dtype))
        here = body.emit("Equal", _places(body, n, -1), k)
        return [(body.emit("Where", here, column, factor), type_)]

    (factor,) = _steps(low, range(n), [(low.filled(0, type_), type_)], step)
    eye = low.body.constant(np.eye(n, dtype=bool))
    pivots = low.emit("Where", eye, factor, low.number(1))
    fine = low.emit("And", low.emit("Greater", pivots, low.number(0)), low.emit("Less", pivots, low.number(math.inf)))
    is_fine = low.cast(low.emit("ReduceMin", low.cast(fine, "i32"), low.ints([axis - 1, axis]), keepdims=1), "bool")
    lower = low.body.constant(np.tri(n, dtype=bool))
    return low.emit("Where", low.emit("Or", is_fine, low.emit("Not", lower)), factor, low.number(math.nan))


def _lu(low: Lowering, x: str) -> list[str]:
    """Column by column, of which the largest element below is exchanged with the one on the diagonal (partial pivoting)."""
    type_, _, order_type = low.results
    rank, (m, n) = type_.rank, type_.shape[-2:]
    permutation = TensorType("i64", (*type_.shape[:-1], 1))
    start = low.emit("Expand", _places(low.body, m, -2), low.ints(permutation.shape))
    if not type_.size:
        return [low.emit("Identity", x), low.filled(0, low.results[1]), low.cast(low.reshape(start, order_type.shape), "i32")]

    def step(body: Body, k: str, factors: str, order: str) -> list[Carried]:
        zero, rows, columns = body.constant(0, type_.dtype), _places(body, m, -2), _places(body, n, -1)
        size = body.emit("Abs", _taken(body, factors, k, rank - 1))
        size = body.emit("Where", body.emit("Less", rows, k), body.constant(-1, type_.dtype), size)
        pivot = body.emit("ArgMax", size, axis=rank - 2, keepdims=1)
        moved = body.emit("Where", body.emit("Equal", rows, pivot), k, rows)
        moved = body.emit("Where", body.emit("Equal", rows, k), pivot, moved)
        order = body.emit("GatherElements", order, moved, axis=rank - 2)
        wide = body.emit("Expand", moved, body.ints(type_.shape))
        factors = body.emit("GatherElements", factors, wide, axis=rank - 2)
        row, column = _taken(body, factors, k, rank - 2), _taken(body, factors, k, rank - 1)
        value = _taken(body, row, k, rank - 1)
        below = body.emit("Greater", rows, k)
        ratio = body.emit("Where", body.emit("Equal", value, zero), column, body.emit("Div", column, value))
        ratio = body.emit("Where", below, ratio, zero)
        right = body.emit("Where", body.emit("Greater", columns, k), row, zero)
        factors = body.emit("Sub", factors, body.emit("Mul", ratio, right))
        written = body.emit("And", below, body.emit("Equal", columns, k))
        factors = body.emit("Where", written, ratio, factors)
        one = TensorType("i64", (*type_.shape[:-2], 1, 1))
        return [(factors, type_), (order, permutation), (pivot, one)]

    factors, order, pivots = _steps(low, range(min(m, n)), [(x, type_), (start, permutation)], step, 1)
    pivots = low.emit("Transpose", pivots, perm=[*range(1, rank - 1), 0, rank - 1, rank])
    pivots = low.reshape(pivots, low.results[1].shape)
    return [factors, low.cast(pivots, "i32"), low.cast(low.reshape(order, order_type.shape), "i32")]


def _permutation(low: Lowering, pivots: str) -> str:
    """Exchange places 0 and p_0, 1 and p_1, ... in turn."""
    rank, n, size = low.operand.rank, low.operand.shape[-1], low.result.shape[-1]
    type_ = TensorType("i64", low.result.shape)
    start = low.emit("Expand", low.body.constant(np.arange(size)), low.ints(type_.shape))
    if not n:
        return low.cast(start, "i32")
    given = low.emit("Max", low.emit("Min", low.cast(pivots, "i64"), low.number(size - 1, "i64")), low.number(0, "i64"))

    def step(body: Body, k: str, order: str) -> list[Carried]:
        pivot, places = _taken(body, given, k, rank - 1), body.constant(np.arange(size))
        moved = body.emit("Where", body.emit("Equal", places, pivot), k, places)
        moved = body.emit("Where", body.emit("Equal", places, k), pivot, moved)
        return [(body.emit("GatherElements", order, moved, axis=rank - 1), type_)]

    return low.cast(_steps(low, range(n), [(start, type_)], step)[0], "i32")


def _qr(low: Lowering, x: str) -> list[str]:
    """Householder reflections I - t v v', which make the diagonal of R what LAPACK makes it: against the sign of what was there."""
    if low.attrs.pivoting:
        raise low.refuse("with exchanged columns has no short form in operators of ONNX")
    type_ = low.operand
    rank, (m, n), k_kept = type_.rank, type_.shape[-2:], low.results[0].shape[-1]
    square = type_.with_shape((*type_.shape[:-1], m))
    if not type_.size:
        eye = low.body.constant(np.eye(m, k_kept), type_.dtype)
        return [low.emit("Expand", eye, low.ints(low.results[0].shape)), low.filled(0, low.results[1])]

    def step(body: Body, k: str, upper: str, q: str) -> list[Carried]:
        zero, rows = body.constant(0, type_.dtype), _places(body, m, -2)
        column = _taken(body, upper, k, rank - 1)
        below = body.emit("Where", body.emit("Greater", rows, k), column, zero)
        rest = _sum(body, body.emit("Mul", below, below), rank - 2)
        first = _taken(body, column, k, rank - 2)
        norm = body.emit("Sqrt", body.emit("Add", body.emit("Mul", first, first), rest))
        against = body.emit("Where", body.emit("Less", first, zero), body.emit("Neg", norm), norm)
        head = body.emit("Where", body.emit("Equal", rows, k), body.emit("Add", first, against), below)
        v = body.emit("Where", body.emit("Equal", rest, zero), zero, head)
        size = _sum(body, body.emit("Mul", v, v), rank - 2)
        some = body.emit("Where", body.emit("Equal", size, zero), body.constant(1, type_.dtype), size)
        t = body.emit("Div", body.constant(2, type_.dtype), some)
        scaled, turned = body.emit("Mul", v, t), _swapped(body, v, rank)
        upper = body.emit("Sub", upper, body.emit("MatMul", scaled, body.emit("MatMul", turned, upper)))
        q = body.emit("Sub", q, body.emit("MatMul", body.emit("MatMul", q, scaled), turned))
        return [(upper, type_), (q, square)]

    start = low.emit("Expand", low.body.constant(np.eye(m), type_.dtype), low.ints(square.shape))
    upper, q = _steps(low, range(min(m, n)), [(x, type_), (start, square)], step)
    upper = low.emit("Where", low.body.constant(np.tri(n, m, dtype=bool).T), upper, low.number(0))
    if k_kept == m:
        return [q, upper]
    ends, first = low.ints([k_kept]), low.ints([0])
    return [low.emit("Slice", q, first, ends, low.ints([rank - 1])), low.emit("Slice", upper, first, ends, low.ints([rank - 2]))]


def _det(low: Lowering, x: str) -> list[str]:
    """By LU factors: runtimes have no Det of doubles."""
    return low.defined(lambda terms: [by_factors(*terms)], [x])


def _cofactors(low: Lowering, *operands: str) -> list[str]:
    """By the inverse, so that there are none of singular matrices."""
    if len(operands) > low.operand.shape[-1]:
        return [low.filled(0, low.result)]
    return low.defined(lambda terms: [by_inverse(*terms)], operands)


def _dot_general(low: Lowering, x: str, y: str) -> str:
    (contract_x, contract_y), (batch_x, batch_y) = low.attrs.dimension_numbers
    left, right, dtype = *low.operands[:2], low.result.dtype
    if left.size == 0 or right.size == 0:
        return low.filled(0, low.result)
    x, y = (low.cast(v, dtype) if t.dtype != dtype else v for v, t in ((x, left), (y, right)))
    n = len(batch_x)
    in_order = list(batch_x) == list(batch_y) == list(range(n))
    one = len(contract_x) == 1 and in_order
    if one and contract_x[0] == left.rank - 1 and contract_y[0] == n and _single(right.rank, n) and (n == 0 or left.rank == n + 2):
        return low.emit("MatMul", x, y)
    if one and not n and left.rank == right.rank == 2 and dtype in FLOATS:
        return low.emit("Gemm", x, y, transA=1 if contract_x[0] == 0 else None, transB=1 if contract_y[0] == 1 else None)
    if one and n and left.rank == right.rank == n + 2:
        x = x if contract_x[0] == n + 1 else _swapped(low, x, left.rank)
        y = y if contract_y[0] == n else _swapped(low, y, right.rank)
        return low.emit("MatMul", x, y)
    return _by_matrices(low, x, y)


def _by_matrices(low: Lowering, x: str, y: str) -> str:
    """As one product of matrices: axes of the batch, of the result, and those that are summed, each next to one another."""
    (contract_x, contract_y), (batch_x, batch_y) = low.attrs.dimension_numbers
    left, right = low.operands[:2]
    free_x, free_y = _free(left, contract_x, batch_x), _free(right, contract_y, batch_y)
    batch, m, n, k = (
        [t.shape[a] for a in axes] for t, axes in ((left, batch_x), (left, free_x), (right, free_y), (left, contract_x))
    )
    lead = [math.prod(batch)] if batch else []
    due_x = [*lead, *(m if not batch and len(k) == 1 and m else [math.prod(m)]), math.prod(k)]
    x = _shaped(low, low.transpose(x, [*batch_x, *free_x, *contract_x]), [*batch, *m, *k], due_x)
    y = _shaped(low, low.transpose(y, [*batch_y, *contract_y, *free_y]), [*batch, *k, *n], [*lead, math.prod(k), math.prod(n)])
    return _shaped(low, low.emit("MatMul", x, y), [*due_x[:-1], math.prod(n)], list(low.result.shape))


def _free(type_: TensorType, contract: Sequence[int], batch: Sequence[int]) -> list[int]:
    return [k for k in range(type_.rank) if k not in contract and k not in batch]


def _shaped(low: Lowering, x: str, shape: Sequence[int], due: Sequence[int]) -> str:
    return x if list(shape) == list(due) else low.reshape(x, due)


def _single(rank: int, n: int) -> bool:
    """Whether an array of n batch axes has one axis that is contracted and at most one other."""
    return rank in (n + 1, n + 2) if not n else rank == n + 2


LOWERINGS: Mapping[str, Rule] = {
    "cholesky": _cholesky,
    "cofactors": _cofactors,
    "det": _det,
    "lu": _lu,
    "lu_pivots_to_permutation": _permutation,
    "qr": _qr,
    "triangular_solve": _triangular_solve,
    "dot_general": widened(_dot_general, **WIDE_INTEGERS),
}
