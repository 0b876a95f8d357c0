"""Slicing: slices at fixed and at computed places, and splitting.

A slice is a copy: a view would keep the whole operand in memory for as long as the slice lives.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Annotated, Any, cast

from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.graph import Case
from tidu_cli.graph.sizes.open import larger
from tidu_cli.graph.types import INTEGERS, TensorType
from tidu_cli.rules.analysis import Spread, Spreading
from tidu_cli.rules.attrs import Axis, Shape
from tidu_cli.rules.batching import later, preceded, sized, stacked
from tidu_cli.rules.catalogue import Caption, arrays, shape_words
from tidu_cli.rules.contract import Attrs, Batching, Example, Kernel, Transposition, Types
from tidu_cli.rules.families import linear, linear_transpose, require_axis
from tidu_cli.rules.fields import Bounded, Sized
from tidu_cli.rules.terms import Term, op

broadcast_in_dim, concatenate, dynamic_slice, dynamic_update_slice, gather, pad, scatter, slice_ = map(
    op, ("broadcast_in_dim", "concatenate", "dynamic_slice", "dynamic_update_slice", "gather", "pad", "scatter", "slice")
)

Stride = Annotated[int, Bounded(ge=1)]


class SliceAttrs(Attrs):
    """`start_indices`, `limit_indices`: per axis, the first index taken and the one past the last.

    `strides`: per axis, the distance between the indices taken; null means 1 on all axes.
    """

    start_indices: Shape
    limit_indices: Shape
    strides: tuple[Stride, ...] | None = None


class DynamicSliceAttrs(Attrs):
    """`slice_sizes`: the shape of the slice."""

    slice_sizes: Shape


class SplitAttrs(Attrs):
    """`sizes`: how many elements along `axis` each result takes, in order; they add up to the operand's."""

    sizes: Annotated[Shape, Sized(1)]
    axis: Axis


def zeros(type_: TensorType, like: Term) -> Term:
    """A constant array of zeros, recorded where `like` is."""
    return like.trace.full(0, type_)


def part(x: Term, axis: int, start: int, limit: int) -> Term:
    """The slice of an array along one axis."""
    starts, limits = [0] * x.type.rank, list(x.type.shape)
    starts[axis], limits[axis] = start, limit
    return slice_(x, start_indices=tuple(starts), limit_indices=tuple(limits))


def operand_type(node: Transposition, k: int) -> TensorType:
    """The type of operand k, active or not. Raises MissingRuleError where a detached reference hides it."""
    operand = node.operands[k]
    return node.types[k] if operand is None else operand.type


def require_one_per_axis(name: str, values: Sequence[object], operand: TensorType) -> None:
    """Raises TypeRuleError unless the attr has as many entries as the operand has axes."""
    if len(values) != operand.rank:
        raise TypeRuleError(f"{name} has {len(values)} entries for the operand {operand} of rank {operand.rank}")


def _slice_types(attrs: SliceAttrs, operands: Types) -> Types:
    (operand,) = operands
    strides = attrs.strides or (1,) * operand.rank
    for name, values in (("start_indices", attrs.start_indices), ("limit_indices", attrs.limit_indices), ("strides", strides)):
        require_one_per_axis(name, values, operand)
    for axis, (start, limit, size) in enumerate(zip(attrs.start_indices, attrs.limit_indices, operand.shape, strict=True)):
        if start > limit:
            raise TypeRuleError(f"axis {axis}: start index {start} is past limit index {limit}")
        if limit > size:
            raise TypeRuleError(f"limit index {limit} exceeds axis {axis} of the operand {operand}, which has {size} elements")
    steps = zip(attrs.start_indices, attrs.limit_indices, strides, strict=True)
    return (operand.with_shape(tuple((limit - start + stride - 1) // stride for start, limit, stride in steps)),)


_VIEWED = 4
"""A slice of less than one in so many elements is a copy: a view would keep all of the array."""


def _slice_kernel(np: Any, attrs: SliceAttrs, operands: Types, results: Types) -> Kernel:
    if results == operands and not attrs.strides:
        return lambda x: x
    where = tuple(map(slice, attrs.start_indices, attrs.limit_indices, attrs.strides or (1,) * operands[0].rank))
    if _VIEWED * results[0].nbytes >= operands[0].nbytes:
        return lambda x: x[where]
    return lambda x: x[where].copy()


def _slice_transpose(node: Transposition, ct: Term, type_: TensorType) -> Term:
    if ct.type == type_:
        return ct
    attrs, config = node.attrs, []
    for axis, (start, size) in enumerate(zip(attrs.start_indices, type_.shape, strict=True)):
        stride, taken = attrs.strides[axis] if attrs.strides else 1, ct.type.shape[axis]
        end = start + taken + larger(taken - 1, 0) * (stride - 1)  # as pad counts
        config.append((start, size - end, stride - 1))
    return pad(ct, zeros(TensorType(type_.dtype), ct), padding_config=tuple(config))


def _require_indices(operand: TensorType, indices: Types, first: int) -> None:
    if len(indices) != operand.rank:
        raise TypeRuleError(f"takes one index per axis of the operand {operand}: {operand.rank}, got {len(indices)}")
    for k, index in enumerate(indices, start=first):
        if index.dtype not in INTEGERS or index.rank:
            raise TypeRuleError(f"the index of axis {k - first} (input {k}) is {index}; it must be a scalar integer")
        if index != indices[0]:
            raise TypeRuleError(f"indices differ in type: input {first} is {indices[0]}, input {k} is {index}")


def _dynamic_slice_types(attrs: DynamicSliceAttrs, operands: Types) -> Types:
    operand, *indices = operands
    _require_indices(operand, tuple(indices), first=1)
    require_one_per_axis("slice_sizes", attrs.slice_sizes, operand)
    for axis, (size, available) in enumerate(zip(attrs.slice_sizes, operand.shape, strict=True)):
        if size > available:
            raise TypeRuleError(f"slice size {size} exceeds axis {axis} of the operand {operand}, which has {available} elements")
    return (operand.with_shape(attrs.slice_sizes),)


def _place(indices: Sequence[Any], sizes: Sequence[int], shape: Sequence[int]) -> tuple[slice, ...]:
    """Where a slice of these sizes starts: at the indices, moved so that it fits."""
    starts = [min(max(int(i), 0), available - size) for i, size, available in zip(indices, sizes, shape, strict=True)]
    return tuple(slice(start, start + size) for start, size in zip(starts, sizes, strict=True))


def _dynamic_slice_kernel(np: Any, attrs: DynamicSliceAttrs, operands: Types, results: Types) -> Kernel:
    sizes, shape = attrs.slice_sizes, operands[0].shape
    return lambda x, *indices: np.array(np.asarray(x)[_place(indices, sizes, shape)])


def _dynamic_slice_batch(node: Batching) -> Sequence[Term]:
    (x, *indices), sizes, rank = node.operands, node.attrs.slice_sizes, node.types[0].rank
    if not any(node.batched[1:]):
        return [dynamic_slice(x, _first_index(x, indices), *indices, slice_sizes=(node.size, *sizes))]
    axes = tuple(range(rank))
    numbers = {"offset_dims": later(axes), "collapsed_slice_dims": (), "start_index_map": axes}
    if node.batched[0]:
        numbers |= {"start_index_map": later(axes), "operand_batching_dims": (0,), "start_indices_batching_dims": (0,)}
        sizes = (1, *sizes)
    return [gather(x, _index_vectors(node, 1), dimension_numbers=numbers, slice_sizes=sizes, mode="clip")]


def _first_index(x: Term, indices: Sequence[Term]) -> Term:
    """The index 0, of the type of the others: of a batch axis that is taken whole."""
    return x.trace.full(0, indices[0].type if indices else TensorType("i32"))


def _index_vectors(node: Batching, first: int) -> Term:
    """The indices from operand `first` on as vectors, one for each item of the batch."""
    columns = [
        broadcast_in_dim(i, shape=(node.size, 1), broadcast_dimensions=(0,) if batched else ())
        for i, batched in zip(node.operands[first:], node.batched[first:], strict=True)
    ]
    return concatenate(*columns, dimension=1) if len(columns) > 1 else columns[0]


def _update_types(attrs: Any, operands: Types) -> Types:
    if len(operands) < 2:
        raise TypeRuleError("takes an operand, an update and one index per axis of the operand, got 1 input")
    operand, update, *indices = operands
    _require_indices(operand, tuple(indices), first=2)
    if update.dtype != operand.dtype:
        raise TypeRuleError(f"type mismatch: the operand is {operand}, the update is {update}; use convert_element_type first")
    if update.rank != operand.rank:
        raise TypeRuleError(f"the update {update} has {update.rank} axes, the operand {operand} has {operand.rank}")
    for axis, (size, available) in enumerate(zip(update.shape, operand.shape, strict=True)):
        if size > available:
            raise TypeRuleError(f"axis {axis} of the update {update} has {size} elements, of the operand {operand} {available}")
    return (operand,)


def _update_kernel(np: Any, attrs: Any, operands: Types, results: Types) -> Kernel:
    update = _updating_kernel(np, attrs, operands, results)
    return lambda x, new, *indices: update(np.array(x), new, *indices)


def _updating_kernel(np: Any, attrs: Any, operands: Types, results: Types) -> Kernel:
    """The kernel that writes into its operand."""
    shape, sizes = operands[0].shape, operands[1].shape

    def update(x: Any, new: Any, *indices: Any) -> Any:
        x[_place(indices, sizes, shape)] = new
        return x

    return update


def _update_batch(node: Batching) -> Sequence[Term]:
    x, update, (_, _, *indices) = stacked(node, 0), stacked(node, 1), node.operands
    if not any(node.batched[2:]):
        return [dynamic_update_slice(x, update, _first_index(x, indices), *indices)]
    axes = tuple(range(1, x.type.rank))
    numbers = {
        "update_window_dims": axes,
        "inserted_window_dims": (),
        "scatter_dims_to_operand_dims": axes,
        "operand_batching_dims": (0,),
        "scatter_indices_batching_dims": (0,),
    }
    return [scatter(x, _index_vectors(node, 2), update, dimension_numbers=numbers, mode="clip", unique_indices=True)]


def _slice_caption(case: Case, operands: Sequence[str]) -> Caption:
    attrs, (type_,) = cast(SliceAttrs, case.attrs), arrays(case)
    starts, limits, n = attrs.start_indices, attrs.limit_indices, len(attrs.start_indices)
    sizes, spans = type_.shape if type_ else [None] * n, []
    for start, limit, stride, size in zip(starts, limits, attrs.strides or [1] * n, sizes, strict=True):
        ends = f"{'' if start == 0 else start}:{'' if limit == size else limit}"
        spans.append(f"{ends}:{stride}" if stride != 1 else ends)
    where = f"[{', '.join(spans)}]" if spans else ""
    return Caption(operands[0] + where, f"the slice {where}".rstrip())


def _dynamic_slice_caption(case: Case, operands: Sequence[str]) -> Caption:
    (first, *starts), sizes = operands, cast(DynamicSliceAttrs, case.attrs).slice_sizes
    where = ", ".join(f"{i} : {i} + {n}" for i, n in zip(starts, sizes, strict=True))
    return Caption(f"{first}[{where}]", f"the slice of shape {shape_words(sizes)} at a computed place")


def _split_types(attrs: SplitAttrs, operands: Types) -> Types:
    (operand,) = operands
    require_axis("axis", attrs.axis, operand)
    if sum(attrs.sizes) != operand.shape[attrs.axis]:
        raise TypeRuleError(
            f"sizes {list(attrs.sizes)} add up to {sum(attrs.sizes)}; "
            f"axis {attrs.axis} of the operand {operand} has {operand.shape[attrs.axis]} elements"
        )
    before, after = operand.shape[: attrs.axis], operand.shape[attrs.axis + 1 :]
    return tuple(operand.with_shape((*before, size, *after)) for size in attrs.sizes)


def _split_kernel(np: Any, attrs: SplitAttrs, operands: Types, results: Types) -> Kernel:
    if len(results) == 1:
        return lambda x: x
    ends, whole = list(accumulate(attrs.sizes, initial=0)), (slice(None),) * attrs.axis
    pieces = [
        ((*whole, slice(a, b)), _VIEWED * t.nbytes >= operands[0].nbytes) for a, b, t in zip(ends, ends[1:], results, strict=False)
    ]
    return lambda x: [x[where] if viewed else x[where].copy() for where, viewed in pieces]


def _split_transpose(node: Transposition) -> Sequence[Term | None]:
    some = next(ct for ct in node.cotangents if ct is not None)
    pieces = _split_types(node.attrs, node.types)
    parts = [ct or zeros(piece, some) for ct, piece in zip(node.cotangents, pieces, strict=True)]
    return [concatenate(*parts, dimension=node.attrs.axis) if len(parts) > 1 else some]


def whole_axes(node: Spreading) -> Sequence[Spread]:
    """Along axes that a slice has all of, its elements can only stay where they are."""
    return [(axis, axis, None) for axis, n in enumerate(node.operand.shape) if n == node.result.shape[axis]]


PRIMITIVES = (
    linear(
        "slice",
        _slice_types,
        _slice_kernel,
        _slice_transpose,
        sparsity="moved",
        shifts={"start_indices": preceded(0), "limit_indices": sized, "strides": preceded(1)},
        attrs=SliceAttrs,
        examples=(
            Example(("T[3,5]",), {"start_indices": [1, 0], "limit_indices": [3, 4]}),
            Example(("T[3,5]",), {"start_indices": [0, 1], "limit_indices": [3, 5], "strides": [2, 3]}),
            Example(("f64[3]",), {"start_indices": [0], "limit_indices": [3]}),
        ),
        reads=lambda attrs, positions, others: slice_(positions, **dict(attrs)),
        formula="x[start : limit : stride] on each axis",
        summary="slice at a fixed place",
        caption=_slice_caption,
    ),
    linear(
        "dynamic_slice",
        _dynamic_slice_types,
        _dynamic_slice_kernel,
        sparsity="moved",
        arity=None,
        transpose=linear_transpose(lambda node, ct, type_: dynamic_update_slice(zeros(type_, ct), ct, *node.operands[1:])),
        batch=_dynamic_slice_batch,
        indices=(1, None),
        attrs=DynamicSliceAttrs,
        examples=(Example(("T[3,5]", "i32[]", "i32[]"), {"slice_sizes": [2, 3]}, ((-2.0, 2.0), (0, 4))),),
        unplaced=whole_axes,
        reads=lambda attrs, positions, indices: dynamic_slice(positions, *indices, **dict(attrs)),
        fresh=True,
        formula="x[i : i + size] on each axis",
        summary="slice at a computed place; after the operand one index per axis, clamped so that the slice fits",
        caption=_dynamic_slice_caption,
    ),
    linear(
        "dynamic_update_slice",
        _update_types,
        _update_kernel,
        sparsity="moved",
        arity=None,
        transpose=linear_transpose(
            lambda node, ct, type_: dynamic_update_slice(ct, zeros(operand_type(node, 1), ct), *node.operands[2:]),
            lambda node, ct, type_: dynamic_slice(ct, *node.operands[2:], slice_sizes=type_.shape),
        ),
        batch=_update_batch,
        unplaced=whole_axes,
        indices=(2, None),
        examples=(Example(("T[3,5]", "T[2,3]", "i32[]", "i32[]"), {}, ((-2.0, 2.0), (-2.0, 2.0), (0, 4))),),
        fresh=True,
        reusing=_updating_kernel,
        formula="x with x[i : i + size] on each axis replaced by the update",
        summary="operand with a slice replaced; after operand and update one index per axis, clamped so that the update fits",
        caption=("{0} with {1} put in", "with a slice replaced, at a computed place"),
    ),
    linear(
        "split",
        _split_types,
        _split_kernel,
        sparsity="moved",
        transpose=_split_transpose,
        shifts={"axis": later},
        attrs=SplitAttrs,
        n_results=lambda attrs, n_operands: len(attrs.sizes),
        examples=(Example(("T[2,5]",), {"sizes": [2, 3], "axis": 1}), Example(("f64[3]",), {"sizes": [3], "axis": 0})),
        formula="x[0 : n₁], x[n₁ : n₁ + n₂], … along an axis",
        summary="slices that make up the operand along an axis, one result each",
        caption=("{0} split", "split along axis {axis}"),
    ),
)
