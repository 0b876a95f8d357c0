"""Unit vectors and matrix blocks, in terms of primitives: what `tidu matrix` feeds a linear graph with, and what it cuts out.

The units of several arrays are those of their direct sum: unit k has a 1 in one element of one array, elements being counted
row-major through the arrays in order. A record counts as its arrays, depth first.
"""

from __future__ import annotations

from tidu_cli.graph.graph import CaseTable
from tidu_cli.graph.types import TIMES, Path, RecordType, TensorType, Type, map_leaves
from tidu_cli.rules.contract import ValueTypes
from tidu_cli.rules.recording.trace import Template, Trace
from tidu_cli.rules.terms import Term, field, op, record
from tidu_cli.rules.vocabulary import PrimitiveSet

add, conj, convert, eq, reshape, slice_, transpose = map(
    op, ("add", "conj", "convert_element_type", "eq", "reshape", "slice", "transpose")
)


def unit_template(primitives: PrimitiveSet, cases: CaseTable, types: ValueTypes) -> Template:
    """A template without sources. Its results are all N units of values of these types: of each value N parts, on a first axis.

    Records are of arrays that have that axis.
    """
    trace, n, start = Trace(primitives, cases), sum(t.size for t in types), 0

    def parts(type_: Type) -> Term:
        """Those of the next value, which is of this type. Recurses as deep as records nest."""
        nonlocal start
        if isinstance(type_, RecordType):
            batched = map_leaves(type_, lambda t: t.with_shape((n, *t.shape)))
            return record(batched, {name: parts(inner) for name, inner in type_.fields})
        row, column = (trace.emit("iota", dtype="i64", shape=(n, type_.size), dimension=axis) for axis in (0, 1))
        units = eq(row, add(column, start) if start else column)
        start += type_.size
        if type_.dtype in TIMES:
            units = convert(units, new_dtype="f64")
        return reshape(convert(units, new_dtype=type_.dtype), new_sizes=(n, *type_.shape))

    return trace.template(0, [parts(type_) for type_ in types])


def block_type(image: TensorType, unit: TensorType, *, by_rows: bool) -> TensorType:
    """The type of the block of one array of images and one of units. Times are counted: their quotients are no times."""
    dtype = "f64" if image.dtype in TIMES else image.dtype
    return TensorType(dtype, (*unit.shape, *image.shape) if by_rows else (*image.shape, *unit.shape))


def block_template(
    primitives: PrimitiveSet, cases: CaseTable, images: Type, path: Path, start: int, unit: TensorType, *, by_rows: bool
) -> Template:
    """A template from the images of units, stacked on a first axis, to the block of their array at `path` and one array of units.

    That is of type `unit`, and its units are those from `start` on. The block has the axes of the image and then those of the unit:
    it is the matrix of the map. `by_rows` says that the map is the adjoint of the one whose matrix is wanted: the axes are the
    unit's and then the image's, and complex elements are conjugated.
    """
    trace = Trace(primitives, cases)
    block = trace.source(images, linear=False)
    for name in path:
        block = field(block, name)
    image = block.type
    if unit.size != image.shape[0]:
        limits = (start + unit.size, *image.shape[1:])
        block = slice_(block, start_indices=(start, *[0] * (image.rank - 1)), limit_indices=limits)
    if unit.rank != 1:
        block = reshape(block, new_sizes=(*unit.shape, *image.shape[1:]))
    if by_rows:
        block = conj(block) if image.complex else block
    elif unit.rank and image.rank > 1:
        axes = range(block.type.rank)
        block = transpose(block, permutation=(*axes[unit.rank :], *axes[: unit.rank]))
    if image.dtype in TIMES:
        block = convert(block, new_dtype="f64")
    return trace.template(1, [block])
