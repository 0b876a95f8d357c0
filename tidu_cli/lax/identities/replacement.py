"""What may stand for a node: by an identity of its op, or as a result of constants; and how that has to lie in memory.

Of constant arrays something is known without making them, and what is computed with them is arithmetic that rounds alike on every
machine.

How results lie where NumPy computes them matters as far as readers can tell by how they round: sums over several axes and products
of matrices add up in an order that depends on it. So what stands for a node has to lie as that did, unless no reader of it sums up.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, cast

from tidu_cli.frozen import Frozen, field
from tidu_cli.graph.graph import Case
from tidu_cli.graph.literals import Literal
from tidu_cli.graph.sizes.open import surely
from tidu_cli.graph.types import ALL, COMPLEXES, ITEMSIZE, TensorType
from tidu_cli.lax.arrays.structural import literal_array
from tidu_cli.lax.identities import elementwise, movement
from tidu_cli.lax.identities.elementwise import Of
from tidu_cli.lax.vocabulary import FAMILIES
from tidu_cli.rules.contract import Types
from tidu_cli.rules.terms import Identity, Known
from tidu_cli.rules.vocabulary import PrimitiveSet

MOST_BYTES = 1024
"""Constant arrays of more than this are not computed with, lest documents grow."""

MOVING = frozenset({"broadcast_in_dim", "reshape", "transpose", "expand_dims", "squeeze", "rev", "slice", "copy"})
"""The ops whose results have elements of operand 0 and no others."""

_ANY_DTYPE = frozenset({
    "neg", "abs", "sign", "max", "min", "eq", "ne", "lt", "le", "gt", "ge", "not", "and", "or", "xor", "select_n", "conj", "real",
    "imag", "complex", "convert_element_type", "floor", "ceil", "is_finite", "add", "sub",
})  # fmt: skip
"""The ops that are exact, or round once as IEEE 754 says; so do those of `_REAL` of real numbers."""

_REAL = frozenset({"mul", "div", "sqrt", "square"})

_COUNTS = {"i8": 2**7, "u8": 2**8, "bf16": 2**8, "f16": 2**11, "i16": 2**15, "u16": 2**16}
"""So far dtypes count without wrapping or rounding, those of 32 bits and more at least to 2²⁴."""

TELLING = MOVING | {"constant", "iota", "eq", "convert_element_type"}
"""The ops of whose results something may be known."""


def known_result(case: Case, operands: Sequence[Known | None]) -> Known | None:
    """What is known of the one result of a case, from what is known of its operands."""
    result = case.results[0]
    if not isinstance(result, TensorType) or result.dtype not in ALL or result.size == 0:
        return None
    if case.op == "constant":
        return _of_literal(case.attrs.value)  # type: ignore[attr-defined]
    if case.op == "iota":
        axis: int = case.attrs.dimension  # type: ignore[attr-defined]
        exact = surely(lambda: result.shape[axis] <= _COUNTS.get(result.dtype, 2**24))
        return Known("count", axes=(axis,)) if exact else None
    if case.op == "eq" and all(k is not None and k.kind == "count" for k in operands):
        (one,), (other,) = (cast(Known, k).axes for k in operands)
        return Known("unit", axes=tuple(sorted((one, other)))) if one != other else None
    if not operands or operands[0] is None:
        return None
    if case.op == "convert_element_type" and operands[0].kind == "unit":
        return operands[0]
    return _moved(case, operands[0], result) if case.op in MOVING else None


def _of_literal(literal: Literal) -> Known | None:
    one = ITEMSIZE[literal.type.dtype]
    if literal.data == literal.data[:one] * literal.type.size:
        return Known("uniform", Literal(TensorType(literal.type.dtype), literal.data[:one]))
    return Known("small", literal) if len(literal.data) <= MOST_BYTES else None


def _moved(case: Case, known: Known, result: TensorType) -> Known | None:
    """What is known after a movement of elements: all are still the same, or axes are others."""
    if known.kind == "uniform":
        return known
    attrs, (operand, *_) = cast(Any, case.attrs), cast(Types, case.operands)
    if known.kind == "small" or case.op not in ("transpose", "broadcast_in_dim"):
        return None
    new = attrs.permutation.index if case.op == "transpose" else attrs.broadcast_dimensions.__getitem__
    axes = tuple(map(new, known.axes))
    whole = all(operand.shape[old] == result.shape[axis] for old, axis in zip(known.axes, axes, strict=True))
    return Known(known.kind, axes=tuple(sorted(axes))) if whole else None


def folded(primitives: PrimitiveSet, case: Case, operands: Sequence[Known | None]) -> Literal | None:
    """The result of a case on constants, as NumPy computes it where the graph is evaluated; None where it is to stay.

    Only of arithmetic that rounds alike on every machine: documents do not depend on where they were simplified.
    """
    types = [*case.operands, *case.results]
    if len(case.results) != 1 or not operands or not _is_exact(case):
        return None
    if any(k is None or k.kind not in ("uniform", "small") for k in operands):
        return None
    tensors = [t for t in types if isinstance(t, TensorType) and t.dtype in ALL and isinstance(t.nbytes, int)]
    if len(tensors) < len(types) or any(t.nbytes > MOST_BYTES for t in tensors):  # open sizes have no constants
        return None
    import numpy as np

    kernel = primitives[case.op].evaluation.kernel(np, case.attrs, cast(Types, case.operands), cast(Types, case.results))
    arrays = [_array(np, cast(Known, k), cast(TensorType, t)) for k, t in zip(operands, case.operands, strict=True)]
    with np.errstate(all="ignore"):
        array = np.asarray(kernel(*arrays))
    if not array.any() and any(array.tobytes()):
        return None  # -0, which nobody would see to be a zero, as it is in what is linear
    return Literal(cast(TensorType, case.results[0]), array.astype(array.dtype.newbyteorder("<")).tobytes())


def _is_exact(case: Case) -> bool:
    if case.op in _ANY_DTYPE:
        return True
    return case.op in _REAL and not any(isinstance(t, TensorType) and t.dtype in COMPLEXES for t in case.operands)


def _array(np: Any, known: Known, type_: TensorType) -> Any:
    assert known.element is not None
    return np.broadcast_to(literal_array(np, known.element), type_.shape)[()]


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
    "pad", "concatenate", "split", "gather", "dynamic_slice", "real", "imag", "optimization_barrier", "stop_gradient",
}  # fmt: skip


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
    return _moved_layout(case, *operands[:1]) if op in MOVING or op == "split" else Layout()


def _moved_layout(case: Case, x: Layout) -> Layout:
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
    first = next((k for k, n in enumerate(operand.shape) if n not in (0, 1)), 0)
    return all(cast(TensorType, t).shape[first + 1 :] == operand.shape[first + 1 :] for t in case.results)


IDENTITIES: tuple[Identity, ...] = (
    *elementwise.IDENTITIES,
    *movement.IDENTITIES,
    *movement.PARTS,
    *elementwise.CONVERSIONS,
    *elementwise.CHOICES,
)


@cache
def identities(assumptions: frozenset[str]) -> dict[str, tuple[Identity, ...]]:
    """Those that hold where this is assumed, by op, in the order of the table."""
    by_op: dict[str, tuple[Identity, ...]] = {}
    for identity in IDENTITIES:
        if identity.assumes <= assumptions:
            by_op[identity.op] = (*by_op.get(identity.op, ()), identity)
    return by_op


def may_change(op: str, assumptions: frozenset[str]) -> bool:
    """Whether there may be something that stands for nodes of an op: by an identity, or as it is computed on constants."""
    return op in identities(assumptions) or op in _ANY_DTYPE or op in _REAL


_RESHAPED = frozenset({"reshape", "expand_dims", "squeeze"})
_ARITHMETIC = _RESHAPED | {"broadcast_in_dim", "neg"}
_ALSO: dict[str, frozenset[str]] = {
    **dict.fromkeys(("sub", "mul", "div"), _ARITHMETIC),
    "add": _ARITHMETIC | {"pad"},
    "neg": _RESHAPED,
    "complex": frozenset({"real", "imag"}),
    "concatenate": frozenset({"concatenate", "slice", "split"}),
}
"""What made operands, of importance to identities that are not `Of` it."""


@cache
def looked_at(op: str) -> frozenset[str]:
    """What may have made operands of an op, where that is of importance to an identity."""
    inner = (i.rewrite.inner for i in IDENTITIES if i.op == op and isinstance(i.rewrite, Of))
    return _ALSO.get(op, frozenset()).union(*inner)
