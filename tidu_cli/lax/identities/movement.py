"""Identities of what only moves elements, and of parts of arrays.

Movements that change nothing, that undo one another, or are one; slices, what is joined, and padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

from tidu_cli.graph.types import INEXACT, INTEGERS, REALS, TensorType
from tidu_cli.lax.arrays.slicing import part
from tidu_cli.lax.identities.elementwise import FINITE, NO_SIGNED_ZEROS, Of, only, unchanged, whole_number
from tidu_cli.rules.terms import Identity, Operand, Rewriting, Site, Term, op

broadcast_in_dim, concatenate, pad, reshape, slice_ = map(op, ("broadcast_in_dim", "concatenate", "pad", "reshape", "slice"))
transpose = op("transpose")

_RESHAPING = ("reshape", "expand_dims", "squeeze")


def _reshape_of_reshape(site: Site, y: Operand) -> Term | None:
    x = y.operands[0]
    return x.term if x.type == site.type else reshape(x.term, new_sizes=site.type.shape)


def _moved_repeated_scalar(site: Site, y: Operand) -> Term | None:
    if y.operands[0].type.rank:
        return None
    if site.type == y.type:
        return y.term
    return broadcast_in_dim(y.operands[0].term, shape=site.type.shape, broadcast_dimensions=())


def _straight(site: Site) -> Term | None:
    permutation = site.attrs.permutation
    return only(site) if list(permutation) == sorted(permutation) else None


def _transpose_of_transpose(site: Site, y: Operand) -> Term:
    permutation = tuple(y.attrs.permutation[k] for k in site.attrs.permutation)
    x = y.operands[0].term
    return x if list(permutation) == sorted(permutation) else transpose(x, permutation=permutation)


def _repeated_again(site: Site, y: Operand) -> Term:
    axes = tuple(site.attrs.broadcast_dimensions[k] for k in y.attrs.broadcast_dimensions)
    return broadcast_in_dim(y.operands[0].term, shape=site.attrs.shape, broadcast_dimensions=axes)


def _repeated_reshaped(site: Site, y: Operand) -> Term | None:
    """A broadcast of what only got axes of one element: of what had none."""
    x, axes = y.operands[0], [k for k, n in enumerate(y.type.shape) if n != 1]
    if [y.type.shape[k] for k in axes] != list(x.type.shape):
        return None
    return broadcast_in_dim(
        x.term, shape=site.type.shape, broadcast_dimensions=tuple(site.attrs.broadcast_dimensions[k] for k in axes)
    )


def _reshaped_operands(site: Site) -> Term | None:
    """Arithmetic on what was reshaped alike, and is read by nobody else: reshaped once."""
    of = [_before_reshape(x, site.type) for x in site.operands]
    types = {x.type for x in of if x is not None}
    if not any(x is not None for x in of) or len(types) != 1:
        return None
    (type_,) = types
    terms = []
    for x, before in zip(site.operands, of, strict=True):
        if before is not None:
            terms.append(before.term)
        elif x.op == "broadcast_in_dim" and not x.operands[0].type.rank and x.type == site.type:
            terms.append(broadcast_in_dim(x.operands[0].term, shape=type_.shape, broadcast_dimensions=()))
        else:
            return None
    return reshape(site.trace.emit(site.op, *terms), new_sizes=site.type.shape)


def _before_reshape(x: Operand, due: TensorType) -> Operand | None:
    return x.operands[0] if x.op in _RESHAPING and x.alone and x.type == due else None


def _reversed_nowhere(site: Site) -> Term | None:
    return only(site) if all(site.type.shape[axis] <= 1 for axis in site.attrs.dimensions) else None


def _reversed_twice(site: Site, y: Operand) -> Term | None:
    return y.operands[0].term if {*y.attrs.dimensions} == {*site.attrs.dimensions} else None


def _reduced_nowhere(site: Site) -> Term | None:
    """A reduction along axes of one element each."""
    (x,) = site.operands
    if site.op in _OF_BITS and x.dtype != "bool":  # which have no tangents, as those of integers
        return None
    if any(x.type.shape[axis] != 1 for axis in site.attrs.axes):
        return None
    return x.term if x.type == site.type else reshape(x.term, new_sizes=site.type.shape)


def _of_dtypes(dtypes: frozenset[str], rewrite: Rewriting) -> Rewriting:
    return lambda site: rewrite(site) if site.type.dtype in dtypes else None


def _by_unit_matrix(site: Site) -> Term | None:
    """A product with a unit matrix that sums one of its axes: the other operand, the axis of the sum in another place."""
    (contract, batch), (x, y) = site.attrs.dimension_numbers, site.operands
    if batch[0] or len(contract[0]) != 1 or site.type.dtype != x.dtype or x.dtype != y.dtype:
        return None
    for k, unit, other in ((0, x, y), (1, y, x)):
        if unit.known is None or unit.known.kind != "unit" or unit.type.rank != 2 or unit.type.shape[0] != unit.type.shape[1]:
            continue
        (axis,), rest = contract[1 - k], [a for a in range(other.type.rank) if a != contract[1 - k][0]]
        order = (axis, *rest) if k == 0 else (*rest, axis)
        return other.term if list(order) == sorted(order) else transpose(other.term, permutation=order)
    return None


def _field_of_record(site: Site, y: Operand) -> Term | None:
    names = y.attrs.fields or [name for name, _ in y.attrs.type.fields]
    return dict(zip(names, (x.term for x in y.operands), strict=True)).get(site.attrs.name)


_OF_BITS = ("reduce_and", "reduce_or", "reduce_xor")
_REDUCTIONS = ("max", "min", "and", "or", "xor")
_OF_RESHAPED = Of(_RESHAPING, _repeated_reshaped)
_OF_REPEATED = Of(("broadcast_in_dim",), _moved_repeated_scalar)
_MOVED = ("reshape", "expand_dims", "squeeze", "transpose", "rev")

IDENTITIES = (
    *(Identity(o, "of the same shape: x", unchanged, in_place=True) for o in (*_RESHAPING, "broadcast_in_dim", "slice", "copy")),
    *(Identity(o, "reshape of reshape: one, or x", Of(_RESHAPING, _reshape_of_reshape)) for o in _RESHAPING),
    *(Identity(o, "of a number repeated: the number repeated", _OF_REPEATED, in_place=True) for o in _MOVED),
    Identity("transpose", "axes in order: x", _straight, in_place=True),
    Identity("transpose", "transpose of transpose: one, or x", Of(("transpose",), _transpose_of_transpose), in_place=True),
    Identity("broadcast_in_dim", "broadcast of broadcast: one", Of(("broadcast_in_dim",), _repeated_again), in_place=True),
    Identity("broadcast_in_dim", "of what got axes of one element: of what had none", _OF_RESHAPED, in_place=True),
    *(Identity(o, "of what was reshaped alike: reshaped once", _reshaped_operands) for o in ("add", "sub", "mul", "div", "neg")),
    Identity("rev", "along axes of one element: x", _reversed_nowhere),
    Identity("rev", "rev of rev along the same axes: x", Of(("rev",), _reversed_twice), in_place=True),
    *(Identity(f"reduce_{name}", "along axes of one element: reshape", _reduced_nowhere) for name in _REDUCTIONS),
    Identity("reduce_sum", "of integers, along axes of one element: reshape", _of_dtypes(INTEGERS, _reduced_nowhere)),
    Identity("reduce_sum", "along axes of one element: reshape", _reduced_nowhere, NO_SIGNED_ZEROS),
    Identity("reduce_prod", "of reals, along axes of one element: reshape", _of_dtypes(REALS, _reduced_nowhere)),
    Identity("dot_general", "1 X = X, for the unit matrix 1", _by_unit_matrix, NO_SIGNED_ZEROS | FINITE),
    Identity("field", "the field of a record that is put together", Of(("record",), _field_of_record)),
)


def _slice_of_slice(site: Site, y: Operand) -> Term | None:
    attrs, x, rank = site.attrs, y.operands[0], site.type.rank
    inner, outer = y.attrs.strides or (1,) * rank, attrs.strides or (1,) * rank
    starts = [a + s * b for a, s, b in zip(y.attrs.start_indices, inner, attrs.start_indices, strict=True)]
    strides = [s * t for s, t in zip(inner, outer, strict=True)]
    limits = [a + (n - 1) * t + 1 if n else a for a, n, t in zip(starts, site.type.shape, strides, strict=True)]
    starts = [min(a, m) for a, m in zip(starts, x.type.shape, strict=True)]
    limits = [max(a, min(b, m)) for a, b, m in zip(starts, limits, x.type.shape, strict=True)]
    return slice_(
        x.term,
        start_indices=tuple(starts),
        limit_indices=tuple(limits),
        strides=tuple(strides) if max(strides, default=1) > 1 else None,
    )


def _joined_at_once(site: Site) -> Term | None:
    """What was joined along the same axis, and is read by nobody else, is joined with the rest."""
    axis, terms = site.attrs.dimension, []
    for x in site.operands:
        inner = x.op == "concatenate" and x.alone and x.attrs.dimension == axis
        terms += [y.term for y in x.operands] if inner else [x.term]
    return concatenate(*terms, dimension=axis) if len(terms) > len(site.operands) else None


def _padded_by_nothing(site: Site) -> Term | None:
    shape = site.operands[0].type.shape
    config = zip(site.attrs.padding_config, shape, strict=True)
    return only(site) if all(low == high == 0 and (not gap or n <= 1) for (low, high, gap), n in config) else None


def _joined_with_nothing(site: Site) -> Term | None:
    axis = site.attrs.dimension
    some = [x.term for x in site.operands if x.type.shape[axis]]
    if len(some) == len(site.operands) > 1:
        return None
    return concatenate(*some, dimension=axis) if len(some) > 1 else (some or [only(site)])[0]


def _limits(attrs: Any, part: TensorType, whole: TensorType, axis: int) -> tuple[int, int] | None:
    """Where a slice begins and ends along an axis, if it takes all along the others and leaves no gaps."""
    if any(stride > 1 for stride in attrs.strides or ()):
        return None
    if any(m != n for k, (m, n) in enumerate(zip(part.shape, whole.shape, strict=True)) if k != axis):
        return None
    return attrs.start_indices[axis], attrs.limit_indices[axis]


def _stretch(x: Operand, axis: int) -> tuple[int, int, int] | None:
    """Of a part of an array along an axis, and whole along all others: the array, and where the part begins and ends."""
    if x.op == "split" and x.attrs.axis == axis:
        ends = [0, *accumulate(x.attrs.sizes)]
        return x.operands[0].number, ends[x.slot], ends[x.slot + 1]
    limits = _limits(x.attrs, x.type, x.operands[0].type, axis) if x.op == "slice" else None
    return None if limits is None else (x.operands[0].number, *limits)


def _joined_parts(site: Site) -> Term | None:
    """Parts of one array, in order and without gaps, are a larger part of it."""
    axis = site.attrs.dimension
    parts = [_stretch(x, axis) for x in site.operands]
    if len(parts) < 2 or None in parts:
        return None
    if any((one[0], one[2]) != other[:2] for one, other in pairwise(parts)):  # type: ignore[index]
        return None
    x, first, end = site.operands[0].operands[0], parts[0][1], parts[-1][2]  # type: ignore[index]
    return x.term if (first, end) == (0, x.type.shape[axis]) else part(x.term, axis, first, end)


def _part_of_joined(site: Site, y: Operand) -> Term | None:
    """A part of what was joined that is of one operand alone is a part of that."""
    axis = y.attrs.dimension
    limits = _limits(site.attrs, site.type, y.type, axis)
    if limits is None:
        return None
    first, end = limits
    starts = list(accumulate((x.type.shape[axis] for x in y.operands), initial=0))
    for x, start in zip(y.operands, starts, strict=False):
        size = x.type.shape[axis]
        if start <= first < end <= start + size:
            return x.term if end - first == size else part(x.term, axis, first - start, end - start)
    return None


def _split_of_joined(site: Site, y: Operand) -> Sequence[Term] | None:
    attrs, sizes = site.attrs, [x.type.shape[y.attrs.dimension] for x in y.operands]
    return [x.term for x in y.operands] if y.attrs.dimension == attrs.axis and sizes == list(attrs.sizes) else None


def _unpadded(site: Site, y: Operand) -> Term | None:
    """A slice that takes out just what was padded."""
    if y.operands[0].type != site.type:
        return None
    strides = site.attrs.strides or (1,) * site.type.rank
    for n, (low, _, gap), start, stride in zip(
        site.type.shape, y.attrs.padding_config, site.attrs.start_indices, strides, strict=True
    ):
        if n and (low < 0 or start != low or (n > 1 and stride != gap + 1)):
            return None
    edges = all(low >= 0 and high >= 0 for low, high, _ in y.attrs.padding_config)
    return y.operands[0].term if edges and site.type.size != 0 else None


def _sum_of_padded(site: Site) -> Term | None:
    """Neighbours that were padded with zeros and added up are joined, and then padded."""
    x, y = site.operands
    if x.op != "pad" or y.op != "pad" or not all(p.operands[1].equals(0.0) for p in (x, y)) or x.dtype not in INEXACT:
        return None
    if any(gap for p in (x, y) for _, _, gap in p.attrs.padding_config):
        return None
    differing = [k for k, (a, b) in enumerate(zip(x.attrs.padding_config, y.attrs.padding_config, strict=True)) if a != b]
    if len(differing) != 1:
        return None
    (axis,) = differing
    one, other = sorted((x, y), key=lambda p: p.attrs.padding_config[axis][0])
    low, high = one.attrs.padding_config[axis][0], other.attrs.padding_config[axis][1]
    met = one.attrs.padding_config[axis][0] + one.operands[0].type.shape[axis] == other.attrs.padding_config[axis][0]
    config = [*one.attrs.padding_config]
    if not met or low < 0 or high < 0 or any(edge < 0 for edges in config for edge in edges[:2]):
        return None
    config[axis] = (low, high, 0)
    joined = concatenate(one.operands[0].term, other.operands[0].term, dimension=axis)
    return pad(joined, one.operands[1].term, padding_config=tuple(config))


def _slice_at_known_place(site: Site) -> Term | None:
    x, *indices = site.operands
    places = [whole_number(i) for i in indices]
    if None in places:
        return None
    sizes = site.attrs.slice_sizes
    starts = tuple(min(max(i, 0), n - size) for i, n, size in zip(places, x.type.shape, sizes, strict=True))  # type: ignore[type-var]
    limits = tuple(start + size for start, size in zip(starts, sizes, strict=True))
    return slice_(x.term, start_indices=starts, limit_indices=limits) if sizes != x.type.shape else None


def _written_over(site: Site) -> Term | None:
    x, update, *_ = site.operands
    return update.term if update.type == x.type else None


PARTS = (
    Identity("pad", "pad by nothing: x", _padded_by_nothing),
    Identity("concatenate", "with arrays of no elements: without", _joined_with_nothing),
    Identity("concatenate", "neighbouring parts of x: a part of x", _joined_parts),
    Identity("concatenate", "of what was joined along the axis: all at once", _joined_at_once),
    Identity("slice", "slice of slice: one", Of(("slice",), _slice_of_slice)),
    Identity("slice", "of what was joined: of one operand", Of(("concatenate",), _part_of_joined)),
    Identity("slice", "what was padded: x", Of(("pad",), _unpadded)),
    Identity("split", "in one: x", lambda site: only(site) if len(site.types) == 1 else None, in_place=True),
    Identity("split", "of what was joined: the operands", Of(("concatenate",), _split_of_joined)),
    Identity("add", "x and y padded with zeros, side by side: x and y joined", _sum_of_padded, NO_SIGNED_ZEROS),
    Identity("dynamic_slice", "of the operand's shape: x", unchanged),
    Identity("dynamic_slice", "at a constant place: slice", _slice_at_known_place),
    Identity("dynamic_update_slice", "with an update of the operand's shape: the update", _written_over),
)
