"""Identities of what only moves elements: movements that are none, that undo one another, or are one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from tidu_cli.frozen import Frozen, field
from tidu_cli.graph.graph import Case
from tidu_cli.graph.types import COMPLEXES, FLOATS, INTEGERS, REALS, TensorType
from tidu_cli.lax.identities.arithmetic import FINITE, NO_SIGNED_ZEROS
from tidu_cli.lax.identities.constants import MOVING
from tidu_cli.lax.vocabulary import FAMILIES
from tidu_cli.rules.terms import Identity, Operand, Rewriting, Site, Term, op

broadcast_in_dim, reshape, transpose = map(op, ("broadcast_in_dim", "reshape", "transpose"))
_RESHAPING = ("reshape", "expand_dims", "squeeze")


def _only(site: Site) -> Term:
    return site.operands[0].term


def _unchanged(site: Site) -> Term | None:
    """The operand of a movement of all elements that changes no axis."""
    return _only(site) if site.operands[0].type == site.type else None


def _reshape_of_reshape(site: Site) -> Term | None:
    (y,) = site.operands
    if y.op not in _RESHAPING:
        return None
    x = y.operands[0]
    return x.term if x.type == site.type else reshape(x.term, new_sizes=site.type.shape)


def _moved_repeated_scalar(site: Site) -> Term | None:
    y = site.operands[0]
    if y.op != "broadcast_in_dim" or y.operands[0].type.rank:
        return None
    if site.type == y.type:
        return y.term
    return broadcast_in_dim(y.operands[0].term, shape=site.type.shape, broadcast_dimensions=())


def _straight(site: Site) -> Term | None:
    permutation = site.attrs.permutation
    return _only(site) if list(permutation) == sorted(permutation) else None


def _transpose_of_transpose(site: Site) -> Term | None:
    (y,) = site.operands
    if y.op != "transpose":
        return None
    permutation = tuple(y.attrs.permutation[k] for k in site.attrs.permutation)
    x = y.operands[0].term
    return x if list(permutation) == sorted(permutation) else transpose(x, permutation=permutation)


def _repeated_again(site: Site) -> Term | None:
    (y,) = site.operands
    if y.op != "broadcast_in_dim":
        return None
    axes = tuple(site.attrs.broadcast_dimensions[k] for k in y.attrs.broadcast_dimensions)
    return broadcast_in_dim(y.operands[0].term, shape=site.attrs.shape, broadcast_dimensions=axes)


def _repeated_reshaped(site: Site) -> Term | None:
    """A broadcast of what only got axes of one element: of what had none."""
    (y,) = site.operands
    if y.op not in _RESHAPING:
        return None
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
    return _only(site) if all(site.type.shape[axis] <= 1 for axis in site.attrs.dimensions) else None


def _reversed_twice(site: Site) -> Term | None:
    (y,) = site.operands
    if y.op != "rev" or {*y.attrs.dimensions} != {*site.attrs.dimensions}:
        return None
    return y.operands[0].term


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


def _field_of_record(site: Site) -> Term | None:
    (y,) = site.operands
    if y.op != "record":
        return None
    names = y.attrs.fields or [name for name, _ in y.attrs.type.fields]
    return dict(zip(names, (x.term for x in y.operands), strict=True)).get(site.attrs.name)


_OF_BITS = ("reduce_and", "reduce_or", "reduce_xor")
_REDUCTIONS = ("max", "min", "and", "or", "xor")
_MOVED = ("reshape", "expand_dims", "squeeze", "transpose", "rev")

_MOVEMENT = (
    *(Identity(o, "of the same shape: x", _unchanged, in_place=True) for o in (*_RESHAPING, "broadcast_in_dim", "slice", "copy")),
    *(Identity(o, "reshape of reshape: one, or x", _reshape_of_reshape) for o in _RESHAPING),
    *(Identity(o, "of a number repeated: the number repeated", _moved_repeated_scalar, in_place=True) for o in _MOVED),
    Identity("transpose", "axes in order: x", _straight, in_place=True),
    Identity("transpose", "transpose of transpose: one, or x", _transpose_of_transpose, in_place=True),
    Identity("broadcast_in_dim", "broadcast of broadcast: one", _repeated_again, in_place=True),
    Identity("broadcast_in_dim", "of what got axes of one element: of what had none", _repeated_reshaped, in_place=True),
    *(Identity(o, "of what was reshaped alike: reshaped once", _reshaped_operands) for o in ("add", "sub", "mul", "div", "neg")),
    Identity("rev", "along axes of one element: x", _reversed_nowhere),
    Identity("rev", "rev of rev along the same axes: x", _reversed_twice, in_place=True),
    *(Identity(f"reduce_{name}", "along axes of one element: reshape", _reduced_nowhere) for name in _REDUCTIONS),
    Identity("reduce_sum", "of integers, along axes of one element: reshape", _of_dtypes(INTEGERS, _reduced_nowhere)),
    Identity("reduce_sum", "along axes of one element: reshape", _reduced_nowhere, NO_SIGNED_ZEROS),
    Identity("reduce_prod", "of reals, along axes of one element: reshape", _of_dtypes(REALS, _reduced_nowhere)),
    Identity("dot_general", "1 X = X, for the unit matrix 1", _by_unit_matrix, NO_SIGNED_ZEROS | FINITE),
    Identity("field", "the field of a record that is put together", _field_of_record),
)


# How results lie in memory where NumPy computes them, as far as readers can tell by how they round.
#
# Sums over several axes and products of matrices add up in an order that depends on it. So what stands for a node has to lie as
# that did, unless no reader of it sums up.


class Layout(Frozen):
    """How an array lies: in which order its axes do, and whether its elements fill a stretch of memory without gaps.

    `order` is "C" for row-major, empty where all elements are one in memory, and otherwise an object for each that is another, or
    not known.
    """

    order: object = field(default_factory=object)
    dense: bool = False


ROW_MAJOR, ORDERED, REPEATED = Layout("C", True), Layout("C"), Layout("")

_ELEMENTWISE = frozenset(op for family, ops in FAMILIES.items() if family.startswith("elementwise.") for op in ops.split())
_ELEMENTWISE = _ELEMENTWISE - {"real", "imag", "bitcast_convert_type"} | {"convert_element_type"}
_FRESH = frozenset({"pad", "constant", "concatenate", "reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "dynamic_slice"})
_MOVING = MOVING | {
    "pad",
    "concatenate",
    "split",
    "gather",
    "dynamic_slice",
    "real",
    "imag",
    "optimization_barrier",
    "stop_gradient",
}


def layout(case: Case, operands: Sequence[Layout]) -> Layout:
    """How the results of a case lie, from how its operands do."""
    in_order, attrs, op = all(x.order in ("C", "") for x in operands), cast(Any, case.attrs), case.op
    if not all(isinstance(t, TensorType) for t in case.results):
        return Layout()
    rank = max(len(cast(TensorType, t).shape) for t in case.results)
    if not rank or op == "constant":
        return ROW_MAJOR
    if op in _ELEMENTWISE:
        orders = {x.order for x in operands} - {""} or {"C"}
        return Layout(orders.pop(), True) if len(orders) == 1 else Layout(dense=True)
    if op == "dot_general":
        return ROW_MAJOR if in_order and not attrs.dimension_numbers[1][0] else Layout(dense=True)
    if op in _FRESH:
        return ROW_MAJOR if in_order or rank == 1 or op == "pad" else Layout(dense=True)
    if op == "iota":
        return ROW_MAJOR if rank == 1 else ORDERED
    if op == "broadcast_in_dim" and not cast(TensorType, case.operands[0]).rank:
        return REPEATED
    return _moved(case, *operands[:1]) if op in MOVING or op == "split" else Layout()


def _moved(case: Case, x: Layout) -> Layout:
    """How what is moved lies."""
    if case.op == "copy" or (x is REPEATED and case.op != "slice"):
        return x
    if x.order != "C" or case.op == "rev":
        return Layout()
    if case.op == "transpose":
        shape = cast(TensorType, case.operands[0]).shape
        axes = [k for k in cast(Any, case.attrs).permutation if shape[k] != 1]
        return x if axes == sorted(axes) else Layout()
    if case.op in ("slice", "split"):
        return ROW_MAJOR if x.dense and _is_stretch(case) else ORDERED
    return x if case.op != "broadcast_in_dim" else ORDERED


def passes_on(case: Case) -> bool:
    """Whether a case rounds alike however its operands lie, and at most its result lies otherwise."""
    return case.op in _ELEMENTWISE or case.op in _MOVING or not case.operands


def _is_stretch(case: Case) -> bool:
    """Whether a slice is of neighbours: of the first axis that has more than one element."""
    attrs, operand = cast(Any, case.attrs), cast(TensorType, case.operands[0])
    if any(stride > 1 for stride in getattr(attrs, "strides", None) or ()):
        return False
    first = next((k for k, n in enumerate(operand.shape) if n > 1), 0)
    return all(cast(TensorType, t).shape[first + 1 :] == operand.shape[first + 1 :] for t in case.results)


# Identities of conversions: a dtype that has all values of another loses none.


convert = op("convert_element_type")


def _same_dtype(site: Site) -> Term | None:
    return site.operands[0].term if site.operands[0].type == site.type else None


_DIGITS = {"f16": (11, 5), "bf16": (8, 8), "f32": (24, 8), "f64": (53, 11)}
"""The digits and the bits of the exponent of floats."""


def _holds(wide: str, narrow: str) -> bool:
    """Whether a dtype has all values of another, so that a conversion there and back changes none."""
    if narrow in FLOATS and wide in FLOATS:
        return all(a >= b for a, b in zip(_DIGITS[wide], _DIGITS[narrow], strict=True))
    if narrow in INTEGERS and wide in INTEGERS:
        more = int(wide[1:]) - int(narrow[1:])
        return more > 0 if (wide[0], narrow[0]) == ("i", "u") else more >= 0 and wide[0] == narrow[0]
    if wide in COMPLEXES:
        part = {"c64": "f32", "c128": "f64"}
        return _holds(part[wide], part.get(narrow, narrow)) if narrow in FLOATS | COMPLEXES else False
    return narrow == "bool" and (wide in INTEGERS or wide in FLOATS)


def _there_and_back(site: Site) -> Term | None:
    (y,) = site.operands
    if y.op != "convert_element_type" or y.operands[0].type != site.type:
        return None
    return y.operands[0].term if _holds(y.dtype, site.type.dtype) else None


def _by_way_of_wider(site: Site) -> Term | None:
    (y,) = site.operands
    if y.op != "convert_element_type" or not {y.operands[0].dtype, y.dtype, site.type.dtype} <= FLOATS:
        return None
    x = y.operands[0]
    return convert(x.term, new_dtype=site.type.dtype) if _holds(y.dtype, x.dtype) and x.type != site.type else None


_CONVERSION = (
    Identity("convert_element_type", "to the same dtype: x", _same_dtype),
    Identity("convert_element_type", "to a wider dtype and back: x", _there_and_back),
    Identity("convert_element_type", "by way of a wider float: at once", _by_way_of_wider),
)


IDENTITIES = (*_MOVEMENT, *_CONVERSION)
