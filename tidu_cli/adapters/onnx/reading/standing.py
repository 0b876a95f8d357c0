"""Values that stand for another type than their array's: integers of 2 or 4 bits, floats of 4 or 8, and with `straight_through`
quantized integers, which stay floats so that derivatives go through them.

What is known of a value is kept by the object that it is. So operators that move elements hand it on, those that quantize use it,
and no other gets to see such a value.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array, dtype_of, name_of
from tidu_cli.adapters.onnx.loading import HELD
from tidu_cli.adapters.onnx.reading.node import Node, RefusedError, Value, computed
from tidu_cli.graph.types import FLOATS

_RANGES: Mapping[str, tuple[int, int]] = {"uint4": (0, 15), "int4": (-8, 7), "uint2": (0, 3), "int2": (-2, 1)}

_HOLDING: Mapping[str, str] = dict(HELD.values())

MOVING = frozenset((
    "Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "MaxPool", "Reshape",
    "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze",
))  # fmt: skip
"""Operators whose results have the elements of their first operand, and so the type that it stands for."""

_QUANTIZING = frozenset((
    "Cast", "CastLike", "ConvInteger", "DequantizeLinear", "DynamicQuantizeMatMul", "MatMulInteger", "MatMulIntegerToFloat",
    "QGemm", "QuantizeLinear", "Shape", "Size",
))  # fmt: skip
"""Operators that take values as what they stand for, as all do whose names begin with QLinear."""


def range_of(kind: str) -> tuple[int, int]:
    """The least and the greatest number of a type of integers."""
    if kind in _RANGES:
        return _RANGES[kind]
    info = np.iinfo(dtype_of(kind))
    return int(info.min), int(info.max)


def holding(kind: str) -> str:
    """The dtype whose arrays hold the numbers of a type."""
    return _HOLDING.get(kind, kind)


def is_whole(kind: str) -> bool:
    """Whether a type is one of integers."""
    return np.dtype(dtype_of(holding(kind))).kind in "iu"


class Standing:
    """The types that values stand for."""

    def __init__(self) -> None:
        self._kinds: dict[int, tuple[Value, str]] = {}  # with the value itself, whose number nothing else gets then

    def of(self, x: Value) -> str:
        """The type that a value stands for, "" for that of its array."""
        return self._kinds[id(x)][1] if id(x) in self._kinds else ""

    def mark(self, x: Value, kind: str) -> Value:
        """The value, as one that stands for this type."""
        if self.of(x) == kind or (kind == name_of(x.dtype) and not self.of(x)):
            return x
        fresh = copy.copy(x) if isinstance(x, Array) else np.asarray(x).view()
        if kind not in ("", name_of(x.dtype)):
            self._kinds[id(fresh)] = (fresh, kind)
        return fresh

    def handed_on(self, old: Value, new: Value) -> Value:
        """The new value, which stands for what the old one does."""
        kind = self.of(old)
        return self.mark(new, kind) if kind else new


def operands_for(node: Node, operands: Sequence[Value]) -> list[Value]:
    """The operands of an operator, those that stand for another type as that, unless it knows what to do with them.

    Raises RefusedError where no array is of that type.
    """
    kinds = {node.importing.stands_for(x) for x in operands if not isinstance(x, list)}
    if kinds == {""} or not kinds or node.op_type in _QUANTIZING or node.op_type.startswith("QLinear"):
        return list(operands)
    if node.op_type in MOVING and (len(kinds) == 1 or node.op_type != "Concat"):
        return list(operands)
    return [x if x is None or isinstance(x, list) else _plain(node, x) for x in operands]


def _plain(node: Node, x: Value) -> Value:
    kind = node.importing.stands_for(x)
    if kind in _HOLDING:
        raise RefusedError(f"takes an array of {kind}; these are quantized, cast, and moved, but not computed with: Cast it before")
    return converted_to(node, x, kind) if kind else x


def converted_to(node: Node, x: Value, kind: str) -> Value:
    """x as another type: integers of fewer bits have the lowest bits of what they are made of. Raises RefusedError."""
    if node.kind(x) == kind:
        return x
    held = holding(kind)
    if kind not in _RANGES:
        if kind in _HOLDING:
            raise RefusedError(f"elements of type {kind}, which tidu has not got, though it reads them; cast to f16 here")
        array = x if name_of(x.dtype) == held else computed(node, "convert_element_type", x, new_dtype=held)
        return node.importing.standing(array, kind)
    low, high = _RANGES[kind]
    whole = np.bitwise_and(computed(node, "convert_element_type", x, new_dtype="i32") - np.int32(low), np.int32(high - low))
    return node.importing.standing(computed(node, "convert_element_type", whole + np.int32(low), new_dtype=held), kind)


def is_straight(node: Node, *operands: Value) -> bool:
    """Whether any of these are integers that are held as floats, so that derivatives go through them."""
    return any(x is not None and is_whole(node.kind(x)) and name_of(x.dtype) in FLOATS for x in operands)


def rounded_straight(x: Value) -> Value:
    """A traced array, rounded, halves to even, with the derivative 1."""
    return np.rint(x).emit("stop_gradient") + (x - x.emit("stop_gradient"))
