"""Unit vectors and matrix blocks, in terms of primitives: what `tidu matrix` feeds a linear graph with, and what it cuts out.

The units of several arrays are those of their direct sum: unit k has a 1 in one element of one array, elements being counted
row-major through the arrays in order.
"""

from __future__ import annotations

from tidu_cli.graph.graph import CaseTable
from tidu_cli.graph.types import TensorType
from tidu_cli.primitives.contract import PrimitiveSet, Types
from tidu_cli.primitives.trace import Template, Trace, op

add, conj, convert, eq, reshape, slice_, transpose = map(
    op, ("add", "conj", "convert_element_type", "eq", "reshape", "slice", "transpose")
)


def unit_template(primitives: PrimitiveSet, cases: CaseTable, types: Types) -> Template:
    """A template without sources. Its results are all N units of arrays of these types: of each array N parts, on a first axis."""
    trace = Trace(primitives, cases)
    n, start, units = sum(t.size for t in types), 0, []
    for type_ in types:
        row, column = (trace.emit("iota", dtype="i64", shape=(n, type_.size), dimension=axis) for axis in (0, 1))
        if start:
            column = add(column, start)
        units.append(reshape(convert(eq(row, column), new_dtype=type_.dtype), new_sizes=(n, *type_.shape)))
        start += type_.size
    return trace.template(0, units)


def block_template(
    primitives: PrimitiveSet, cases: CaseTable, images: TensorType, start: int, unit: TensorType, *, by_rows: bool
) -> Template:
    """A template from the images of units, stacked on a first axis, to the block of those of one array of type `unit`.

    Its units are those from `start` on. The block has the axes of the image and then those of the unit: it is the matrix of the
    map. `by_rows` says that the map is the adjoint of the one whose matrix is wanted: the axes are the unit's and then the image's,
    and complex elements are conjugated.
    """
    trace = Trace(primitives, cases)
    block = trace.source(images, linear=False)
    if unit.size != images.shape[0]:
        limits = (start + unit.size, *images.shape[1:])
        block = slice_(block, start_indices=(start, *[0] * (images.rank - 1)), limit_indices=limits)
    if unit.rank != 1:
        block = reshape(block, new_sizes=(*unit.shape, *images.shape[1:]))
    if by_rows:
        block = conj(block) if images.complex else block
    elif unit.rank and images.rank > 1:
        axes = range(block.type.rank)
        block = transpose(block, permutation=(*axes[unit.rank :], *axes[: unit.rank]))
    return trace.template(1, [block])
