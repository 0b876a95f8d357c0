"""Gathering: gather reads windows of an array at computed places."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from tidu_cli.errors import TypeRuleError, TypeTextError
from tidu_cli.graph.literals import literal_from_numbers
from tidu_cli.graph.text import NOT_A_TIME
from tidu_cli.graph.types import DATETIMES, INEXACT, SIGNED, TensorType, storage_dtype
from tidu_cli.lax.arrays.dtypes import literal_array, numpy_dtype
from tidu_cli.lax.arrays.slicing import zeros
from tidu_cli.lax.arrays.windows import (
    GatherDimensionNumbers,
    Mode,
    Windows,
    batched_numbers,
    gather_windows,
    locator,
    staying,
    transposed,
)
from tidu_cli.rules.analysis import Spread, Spreading
from tidu_cli.rules.attrs import Shape
from tidu_cli.rules.contract import JVP, Attrs, Batching, Example, Kernel, Transposition, Types
from tidu_cli.rules.families import linear, linear_transpose
from tidu_cli.rules.fields import After, Bounded
from tidu_cli.rules.terms import Term, op

gather, scatter_add = op("gather"), op("scatter-add")


def _one_spelling(x: bool | int | float | str) -> bool | int | float | str:
    # Numbers that are equal must be the same fill value, for attrs are told apart by ==. (NaNs are, by their spelling.)
    if isinstance(x, float):
        if x == 0 and math.copysign(1, x) < 0:
            raise ValueError("-0.0 is not kept apart from 0; use 0")
        return int(x) if x.is_integer() and abs(x) < 2**53 else x
    return x


FillValue = Annotated[
    bool | Annotated[int, Bounded(ge=-(2**63), lt=2**64)] | float | Literal["NaN", "Infinity", "-Infinity"], After(_one_spelling)
]


class GatherAttrs(Attrs):
    """`dimension_numbers`: StableHLO's, index_vector_dim being the last axis of the indices; `slice_sizes`: the windows' shape.

    `mode`: what a window is that does not fit. `clip` moves its start so that it fits, and so does `promise_in_bounds`, which
    says that there is none; `fill` takes `fill_value` instead: by default NaN, the least of signed integers, the greatest of
    unsigned ones, true, the first datetime. (That of a complex operand is real; that of times counts units.) Negative indices do
    not count from the end.
    """

    dimension_numbers: GatherDimensionNumbers
    slice_sizes: Shape
    mode: Mode
    fill_value: FillValue | None = None


def _types(attrs: GatherAttrs, operands: Types) -> Types:
    operand, indices = operands
    windows = gather_windows(attrs.dimension_numbers, attrs.slice_sizes, operand, indices)
    if attrs.fill_value is not None:
        _fill_literal(operand.dtype, attrs.fill_value)
    return (operand.with_shape(windows.shape),)


def _fill_literal(dtype: str, value: Any) -> Any:
    type_ = TensorType(dtype)
    try:
        return literal_from_numbers(type_, [value, 0] if type_.complex else [value])
    except TypeTextError:
        raise TypeRuleError(f"fill_value {value!r} is not a value of {dtype}") from None


def filling(np: Any, dtype: str, value: Any) -> Any:
    """What is read where a window does not fit: a value, or what stands for none."""
    if value is None and storage_dtype(dtype) in INEXACT:
        value = "NaN"
    if value is not None:
        return literal_array(np, _fill_literal(dtype, value))
    if dtype == "bool":
        return True
    if dtype in DATETIMES:
        return NOT_A_TIME
    info = np.iinfo(numpy_dtype(np, dtype))
    return info.min if dtype in SIGNED else info.max


def _kernel(np: Any, attrs: GatherAttrs, operands: Types, results: Types) -> Kernel:
    (result,) = results
    if not result.size:
        return lambda x, indices: np.empty(result.shape, numpy_dtype(np, result.dtype))
    windows = gather_windows(attrs.dimension_numbers, attrs.slice_sizes, *operands)
    if _are_rows(windows):
        return _rows_kernel(np, attrs, windows, operands)
    locate, layout, unordered = locator(np, windows, attrs.mode), windows.layout, windows.unordered
    matrix = (-1, math.prod(windows.operand[len(windows.operand) - windows.n_tail :]))
    fill = filling(np, result.dtype, attrs.fill_value) if attrs.mode == "fill" else None

    def gathered(x: Any, indices: Any) -> Any:
        rows, fits = locate(indices)
        values = np.take(np.reshape(x, matrix), rows, axis=0)
        if fill is not None and not fits.all():
            values[~fits] = fill
        return np.transpose(np.reshape(values, unordered), layout)

    return gathered


def _are_rows(windows: Windows) -> bool:
    """Whether each window is one element along the first axis, where its one index says, and all of the operand's other axes."""
    return (
        windows.index_map == (0,) and windows.sizes[0] == 1 and windows.n_tail == len(windows.operand) - 1 and not windows.in_step
    )


def _rows_kernel(np: Any, attrs: GatherAttrs, windows: Windows, operands: Types) -> Kernel:
    """The kernel for windows that are rows, as of x[i]. The result is not empty."""
    n_rows, rest = windows.operand[0], windows.operand[1:]
    taken, unordered, layout = (math.prod(windows.batch), *rest), windows.unordered, windows.layout
    in_order = layout == tuple(range(len(layout)))
    fill = filling(np, operands[0].dtype, attrs.fill_value) if attrs.mode == "fill" else None
    unsigned = operands[1].dtype == "u64"

    def gathered(x: Any, indices: Any) -> Any:
        rows = np.minimum(indices, np.uint64(2**63 - 1)) if unsigned else indices
        rows = np.reshape(rows, -1).astype(np.int64, copy=False)
        values = np.take(x, rows, axis=0, mode="clip")
        # Below 0 is beyond all rows where the sign is a digit: one pass instead of two.
        if fill is not None and rows.view(np.uint64).max() >= n_rows:
            values[(rows < 0) | (rows >= n_rows)] = fill
        if taken != unordered:
            values = np.reshape(values, unordered)
        return values if in_order else np.transpose(values, layout)

    return gathered


def _jvp(node: JVP) -> Sequence[Term | None]:
    (t, _), (_, indices), attrs = node.tangents, node.operands, dict(node.attrs)
    return [gather(t, indices, **(attrs | {"fill_value": 0 if node.attrs.mode == "fill" else None}))]


def _adjoint(node: Transposition, ct: Term, type_: TensorType) -> Term:
    numbers = transposed(node.attrs.dimension_numbers)
    return scatter_add(zeros(type_, ct), node.operands[1], ct, dimension_numbers=numbers, mode=node.attrs.mode)


def _reads(attrs: GatherAttrs, positions: Term, others: Sequence[Term]) -> Term:
    fill_value = positions.type.size if attrs.mode == "fill" else None
    return gather(positions, *others, **(dict(attrs) | {"fill_value": fill_value}))


def _batch(node: Batching) -> Sequence[Term]:
    (x, indices), (of_operand, of_indices), attrs = node.operands, node.batched, node.attrs
    sizes = attrs.slice_sizes
    if of_operand:
        sizes = (1 if of_indices else node.size, *sizes)
    numbers = batched_numbers(attrs.dimension_numbers, operand=of_operand, indices=of_indices)
    return [gather(x, indices, **(dict(attrs) | {"dimension_numbers": numbers, "slice_sizes": sizes}))]


def _unplaced(node: Spreading) -> Sequence[Spread]:
    return [(r, o, None) for r, o in staying(node.attrs.dimension_numbers, node.result.shape, node.operand.shape)]


_ROWS = {"offset_dims": [1], "collapsed_slice_dims": [0], "start_index_map": [0]}
_BLOCKS = {
    "offset_dims": [0, 2],
    "collapsed_slice_dims": [],
    "start_index_map": [2],
    "operand_batching_dims": [0],
    "start_indices_batching_dims": [0],
}

PRIMITIVES = (
    linear(
        "gather",
        _types,
        _kernel,
        sparsity="moved",
        arity=2,
        jvp=_jvp,
        transpose=linear_transpose(_adjoint),
        batch=_batch,
        indices=(1, 2),
        attrs=GatherAttrs,
        examples=(
            Example(
                ("T[3,4]", "i32[5,1]"),
                {"dimension_numbers": _ROWS, "slice_sizes": [1, 4], "mode": "promise_in_bounds"},
                ((-2.0, 2.0), (0, 3)),
            ),
            Example(
                ("T[2,3,4]", "i32[2,1]"),
                {"dimension_numbers": _BLOCKS, "slice_sizes": [1, 2, 2], "mode": "clip"},
                ((-2.0, 2.0), (0, 6)),
            ),
            Example(
                ("T[3,4]", "i32[5,1]"),
                {"dimension_numbers": _ROWS, "slice_sizes": [1, 4], "mode": "fill", "fill_value": None},
                ((-2.0, 2.0), (0, 3)),
            ),
        ),
        reads=_reads,
        unplaced=_unplaced,
        fresh=True,
        formula="x[indices]",
        summary="windows of an array, at places that the last axis of the integers in input 1 says",
        caption=("{0} taken at {1}", "taken at the indices {1}"),
    ),
)
