"""What is known of constant arrays without making them, and the arithmetic on them that rounds alike on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from tidu_cli.graph.graph import Case
from tidu_cli.graph.literals import Literal
from tidu_cli.graph.sizes.open import surely
from tidu_cli.graph.types import ALL, COMPLEXES, ITEMSIZE, TensorType
from tidu_cli.lax.arrays.structural import literal_array
from tidu_cli.rules.contract import Types
from tidu_cli.rules.terms import Known
from tidu_cli.rules.vocabulary import PrimitiveSet

MOST_BYTES = 1024
"""Constant arrays of more than this are not computed with, lest documents grow."""

MOVING = frozenset({"broadcast_in_dim", "reshape", "transpose", "expand_dims", "squeeze", "rev", "slice", "copy"})
"""The ops whose results have elements of operand 0 and no others."""

_ANY_DTYPE = frozenset({
    "neg", "abs", "sign", "max", "min", "eq", "ne", "lt", "le", "gt", "ge", "not", "and", "or", "xor", "select_n", "conj", "real",
    "imag", "complex", "convert_element_type", "floor", "ceil", "is_finite", "add", "sub",
})  # fmt: skip
"""The ops that are exact, or round once as IEEE 754 says; so do the next of real numbers."""
_REAL = frozenset({"mul", "div", "sqrt", "square"})


_COUNTS = {"i8": 2**7, "u8": 2**8, "bf16": 2**8, "f16": 2**11, "i16": 2**15, "u16": 2**16}
"""So far dtypes count without wrapping or rounding, those of 32 bits and more at least to 2²⁴."""

_TELLING = MOVING | {"constant", "iota", "eq", "convert_element_type"}


def tells(op: str) -> bool:
    """Whether something may be known of results of an op."""
    return op in _TELLING


def may_fold(op: str) -> bool:
    """Whether an op on constants may be computed."""
    return op in _ANY_DTYPE or op in _REAL


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
