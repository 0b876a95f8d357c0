"""Choices from windows: their extreme elements, of which derivatives of reduce_window_max and reduce_window_min are made.

The first of ties is chosen, in row-major order, and the first NaN if there is one; never padding, and of windows of nothing else no
element. In JAX windows of -inf alone (of a minimum: inf) may choose padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any, Literal

from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.types import FLOATS, NUMERIC, TensorType
from tidu_cli.lax.arrays.dtypes import numpy_dtype
from tidu_cli.lax.arrays.slicing import operand_type
from tidu_cli.lax.signal import window_reduction
from tidu_cli.lax.signal.sliding import Counts, Padding, Parts, Sliding, Window, laid_out, most_places, slid, spread
from tidu_cli.rules.analysis import Spread, Spreading
from tidu_cli.rules.contract import Attrs, Example, Kernel, Transposition, Types
from tidu_cli.rules.families import linear, linear_transpose, require_dtype
from tidu_cli.rules.terms import Term, op

select_and_gather_add, select_and_scatter_add = op("select_and_gather_add"), op("select_and_scatter_add")

Select = Literal["ge", "le"]


class GatherSelectedAttrs(window_reduction.WindowAttrs):
    """`select_prim`: ge to choose the greatest of each window, le the least.

    `window_dimensions`, `window_strides`, `padding`, `base_dilation`, `window_dilation`: those of the reduce_window_max, or
    reduce_window_min, whose elements are chosen.
    """

    select_prim: Select


class ScatterSelectedAttrs(Attrs):
    """`select_prim`: ge to choose the greatest of each window, le the least.

    `window_dimensions`, `window_strides`, `padding`, `base_dilation`, `window_dilation`: those of the reduce_window_max, or
    reduce_window_min, whose elements are chosen. Null is a dilation of 1 on all axes. (JAX has only that.)
    """

    select_prim: Select
    window_dimensions: Window
    window_strides: Counts
    padding: Padding
    base_dilation: Counts | None = None
    window_dilation: Counts | None = None


def _compared(operands: Types) -> None:
    require_dtype(NUMERIC, operands[:1])
    if operands[1].dtype not in window_reduction.COMPARED:
        raise TypeRuleError(f"input 1 has type {operands[1]}, whose values are in no order; take it of real numbers")


def _gather_types(attrs: GatherSelectedAttrs, operands: Types) -> Types:
    _compared(operands)
    values, operand = operands
    if values.shape != operand.shape:
        raise TypeRuleError(f"the values (input 0) are {values}, the operand is {operand}; they must have one shape")
    return (values.with_shape(tuple(along.count for along in window_reduction.windows_of(attrs, operand))),)


def _scatter_types(attrs: ScatterSelectedAttrs, operands: Types) -> Types:
    _compared(operands)
    source, operand = operands
    counts = tuple(along.count for along in window_reduction.windows_of(attrs, operand))
    if source.shape != counts:
        raise TypeRuleError(
            f"the source (input 0) is {source}; windows of the operand {operand} are {list(counts)}, one element each"
        )
    return (source.with_shape(operand.shape),)


def _chosen(np: Any, axes: Sequence[Sliding], select: Select, operand: TensorType) -> Kernel:
    """The function from an operand to the place of the element that each window chooses, row-major, -1 where it has none."""
    fill = (window_reduction.lowest if select == "ge" else window_reduction.highest)(np, operand.dtype)
    beats = np.greater if select == "ge" else np.less
    padded, floating = not all(along.plain for along in axes), operand.dtype in FLOATS
    places = laid_out(np, np.arange(operand.size).reshape(operand.shape), axes, -1)

    def first(one: Parts, other: Parts) -> Parts:
        (x, i), (y, k) = one, other
        better = beats(y, x)
        if floating:
            better |= (y != y) & (x == x)
        if padded:
            better |= i < 0
        return np.where(better, y, x), np.where(better, k, i)

    def chosen(x: Any) -> Any:
        parts = laid_out(np, x, axes, fill), places
        # The last axis first: what comes first within a row, then among rows.
        for axis in reversed(range(len(axes))):
            parts = slid(parts, first, axis, axes[axis])
        return parts[1]

    return chosen


def _gather_kernel(np: Any, attrs: GatherSelectedAttrs, operands: Types, results: Types) -> Kernel:
    axes, (result,) = window_reduction.windows_of(attrs, operands[1]), results
    dtype = numpy_dtype(np, result.dtype)
    if not operands[1].size or not result.size:
        return lambda values, x: np.zeros(result.shape, dtype)
    chosen, padded = _chosen(np, axes, attrs.select_prim, operands[1]), not all(along.plain for along in axes)

    def gathered(values: Any, x: Any) -> Any:
        places = chosen(x)
        taken = np.take(values, places)
        return np.where(places < 0, np.zeros((), dtype), taken) if padded else taken

    return gathered


def _scatter_kernel(np: Any, attrs: ScatterSelectedAttrs, operands: Types, results: Types) -> Kernel:
    axes, (result,) = window_reduction.windows_of(attrs, operands[1]), results
    dtype = numpy_dtype(np, result.dtype)
    if not operands[0].size or not result.size:
        return lambda source, x: np.zeros(result.shape, dtype)
    chosen, padded = _chosen(np, axes, attrs.select_prim, operands[1]), not all(along.plain for along in axes)
    apart = all(along.stride >= spread(along.window, along.dilation) for along in axes)
    through = np.float32 if result.dtype in ("f16", "bf16") else dtype

    def scattered(source: Any, x: Any) -> Any:
        places, added = np.reshape(chosen(x), -1), np.reshape(source, -1).astype(through, copy=False)
        if padded:
            places, added = places[places >= 0], added[places >= 0]
        sums = np.zeros(result.size, through)
        if apart:
            sums[places] = added
        else:
            np.add.at(sums, places, added)
        return np.reshape(sums, result.shape).astype(dtype, copy=False)

    return scattered


def _work(attrs: Any, operands: Types, results: Types) -> int:
    values, operand = operands
    axes = window_reduction.windows_of(attrs, operand)
    each, place = TensorType(operand.dtype).nbytes, 8
    # Beside elements and their places which of two are better, and in the end what is chosen.
    sliding = (each + place + 2) * most_places(axes[::-1]) + place * (prod(along.padded for along in axes) + operand.size)
    return sliding + 3 * (place + max(TensorType(values.dtype).nbytes, 4)) * max(values.size, results[0].size)


def _of_values(node: Transposition, ct: Term, type_: TensorType) -> Term:
    attrs = dict(node.attrs)
    for name in ("base_dilation", "window_dilation"):
        attrs[name] = attrs[name] if max(attrs[name], default=1) > 1 else None
    return select_and_scatter_add(ct, node.operands[1], **attrs)


def _of_source(node: Transposition, ct: Term, type_: TensorType) -> Term:
    attrs, ones = dict(node.attrs), (1,) * operand_type(node, 1).rank
    plain = {name: attrs[name] or ones for name in ("base_dilation", "window_dilation")}
    return select_and_gather_add(ct, node.operands[1], **(attrs | plain))


def _back(node: Spreading) -> Sequence[Spread]:
    """Each element may be the extremum of each window that it is in."""
    return [
        (k, k, [(i, w) for w, i in along.pairs]) for k, along in enumerate(window_reduction.windows_of(node.attrs, node.types[1]))
    ]


_kinks = window_reduction.ties(lambda attrs: bool(attrs.select_prim == "le"))
_selection = partial(
    linear,
    arity=2,
    shifts=window_reduction.SHIFTS,
    indices=(1, 2),
    dtypes=NUMERIC,
    fresh=True,
    flops=window_reduction.flops,
    work=_work,
    kinks=_kinks,
)
_WITHIN = ((-2.0, 2.0), (-30.0, 30.0))

PRIMITIVES = (
    _selection(
        "select_and_gather_add",
        _gather_types,
        _gather_kernel,
        transpose=linear_transpose(_of_values),
        sparsity="moved",
        unplaced=window_reduction.spreads,
        attrs=GatherSelectedAttrs,
        examples=tuple(
            Example((f"{dtype}{shape}", f"f64{shape}"), {**attrs, "select_prim": select}, _WITHIN)
            for (shape, attrs), dtype, select in zip(
                window_reduction.EXAMPLES, ("T", "T", "T", "f64"), ("ge", "le") * 2, strict=True
            )
        ),
        formula="x where y is greatest, or least, in each window",
        summary="elements of input 0 at the places where windows of input 1 have their extremum; of ties the first",
        caption=("{0} where windows of {1} are extreme", "taken at the extrema of windows of {1}"),
    ),
    _selection(
        "select_and_scatter_add",
        _scatter_types,
        _scatter_kernel,
        transpose=linear_transpose(_of_source),
        sparsity="summed",
        unplaced=_back,
        attrs=ScatterSelectedAttrs,
        examples=(
            Example(
                ("T[4]", "f64[5]"),
                {"select_prim": "ge", "window_dimensions": [2], "window_strides": [1], "padding": [[0, 0]]},
                _WITHIN,
            ),
            Example(
                ("T[2,2]", "f64[4,6]"),
                {"select_prim": "le", "window_dimensions": [2, 3], "window_strides": [2, 3], "padding": [[0, 0], [0, 0]]},
                _WITHIN,
            ),
            Example(
                ("T[3,2]", "f64[3,5]"),
                {
                    "select_prim": "ge",
                    "window_dimensions": [2, 3],
                    "window_strides": [1, 2],
                    "padding": [[1, 0], [1, 0]],
                    "window_dilation": [1, 1],
                },
                _WITHIN,
            ),
        ),
        formula="Σ x of the windows that choose an element",
        summary="zeros of the shape of input 1, to which each window adds its element of input 0 where input 1 is extreme in it",
        caption=("{0} added where windows of {1} are extreme", "added at the extrema of windows of {1}"),
    ),
)
