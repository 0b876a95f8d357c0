"""Identities of what only moves elements: movements that are none, that undo one another, or are one."""

from __future__ import annotations

from tidu_cli.graph.types import INTEGERS, REALS, TensorType
from tidu_cli.lax.identities.arithmetic import FINITE, NO_SIGNED_ZEROS, Of, only, unchanged
from tidu_cli.rules.terms import Identity, Operand, Rewriting, Site, Term, op

broadcast_in_dim, reshape, transpose = map(op, ("broadcast_in_dim", "reshape", "transpose"))
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
        if unit.known is None or unit.known.kind != "unit" or unit.type.rank != 2:
            continue
        (axis,), rest = contract[1 - k], [a for a in range(other.type.rank) if a != contract[1 - k][0]]
        if unit.type.shape[0] != unit.type.shape[1]:
            continue
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
