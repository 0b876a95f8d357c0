"""Values of which more is known than their arrays say: the type that they stand for, and integers but for names of open sizes.

Values stand for another type than their array's where they are integers of 2 or 4 bits, floats of 4 or 8, and with
`straight_through` quantized integers, which stay floats so that derivatives go through them. What is known of a value is kept by
the object that it is. So operators that move elements hand it on, those that quantize use it, and no other gets to see such a
value.

Sizes are what `Shape` gives, and what models compute of it. The arithmetic of shapes folds away with them as it does with numbers.
What it is not known of, or where it cannot be decided, takes them as arrays of the graph, which are computed when it runs.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array, dtype_of, name_of
from tidu_cli.adapters.onnx.loading import HELD
from tidu_cli.adapters.onnx.reading.node import Node, Operator, RefusedError, Sizes, Value, as_sizes, computed
from tidu_cli.errors import UndecidedSizeError
from tidu_cli.graph.sizes.open import OpenSize, larger, smaller, surely
from tidu_cli.graph.types import FLOATS, INTEGERS
from tidu_cli.rules.recording.trace import emit_size

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


_READING = frozenset((
    "AffineGrid", "CenterCropPad", "Col2Im", "ConstantOfShape", "Expand", "EyeLike", "Loop", "MaxUnpool", "OneHot", "Pad", "Range",
    "Reshape", "Resize", "Shape", "Size", "Slice", "Split", "Tile", "TopK", "Trilu", "Upsample",
))  # fmt: skip
"""Operators of which inputs are sizes, which they take as such."""

_MOVING = frozenset({
    "Concat", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "Reshape", "ScatterElements", "ScatterND",
    "Slice", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze",
})  # fmt: skip
"""Operators that do nothing with elements but move them."""


def with_sizes(node: Node, operator: Operator, operands: Sequence[Value]) -> Any:
    """What an operator gives for operands some of which are sizes."""
    held = [x for x in operands if isinstance(x, Sizes)]
    if not held:
        return operator(node, *operands)
    if not any(isinstance(x, Array) for x in operands):
        if node.op_type in _MOVING:
            return _moved(node, operator, operands, held[0].dtype)
        fold = FOLDED.get("Div of floats" if node.op_type == "Div" and held[0].dtype.kind == "f" else node.op_type)
        try:
            folded = fold and fold(node, *[None if x is None else _elements(x) for x in operands])
        except UndecidedSizeError:
            folded = None
        if folded is not None:
            is_size = folded.dtype == object and node.op_type != "Cast"
            return as_sizes(folded, operands[-1].dtype) if is_size else folded
    if node.op_type in _READING:
        return operator(node, *operands)
    return operator(node, *[node.traced(x) if isinstance(x, Sizes) else x for x in operands])


def _elements(x: Value) -> Any:
    """The elements as Python's integers and sizes; floats and bools as they are."""
    if isinstance(x, Sizes):
        return x.array
    return x.astype(object) if x.dtype.kind in "iu" else x


def _moved(node: Node, operator: Operator, operands: Sequence[Value], dtype: Any) -> Any:
    """What moves: the first operand, the updates of a scatter, or all that are joined. Others are places and sizes."""
    moved = {"Concat": range(len(operands)), "ScatterElements": (0, 2), "ScatterND": (0, 2)}.get(node.op_type, (0,))
    if not any(isinstance(operands[k], Sizes) for k in moved):
        return operator(node, *operands)
    if node.op_type.startswith("Scatter"):
        return _scattered(node, *operands)
    given = [_elements(x) if k in moved else x for k, x in enumerate(operands)]
    result = operator(node, *given)
    return [as_sizes(x, dtype) for x in result] if isinstance(result, list | tuple) else as_sizes(result, dtype)


def _scattered(node: Node, x: Value, places: Value, updates: Value) -> Value:
    """Elements of a vector that are replaced."""
    if x.ndim != 1 or node["reduction"] not in (None, "none"):
        raise UndecidedSizeError("writes sizes into an array of several axes, or adds them")
    after = _elements(x).copy()
    after[np.ravel(places).astype(np.int64)] = np.ravel(_elements(updates))
    return as_sizes(after, x.dtype)


# Arithmetic.

Fold = Callable[..., Any]
"""From a node and elements to elements; None, or UndecidedSizeError, where these are to be computed when the graph runs."""


def _each(function: Callable[..., Any]) -> Fold:
    """A function of elements, with NumPy's broadcasting."""
    n = function.__code__.co_argcount

    def fold(node: Node, *operands: Any) -> Any:
        if not all(_is_whole(x) for x in operands):
            return None
        return np.asarray(np.frompyfunc(function, n, 1)(*[_whole(x) for x in operands]), object)

    return fold


def _is_whole(x: Any) -> bool:
    """Whether elements are integers, or floats that are."""
    return x.dtype == object or (x.dtype.kind == "f" and bool(np.all(np.isfinite(x) & (x == np.round(x)))))


def _whole(x: Any) -> Any:
    return x if x.dtype == object else x.astype(np.int64).astype(object)


def _many(function: Callable[[Any, Any], Any]) -> Fold:
    """A function of two, of as many as there are from the left."""
    each = _each(function)
    return lambda node, *operands: reduce(lambda x, y: None if x is None else each(node, x, y), operands)


def _quotient(a: Any, b: Any) -> Any:
    """Rounded towards zero."""
    if surely(lambda: b < 0):
        a, b = -a, -b
    return a // b if surely(lambda: a >= 0) else -(-a // b) if surely(lambda: a <= 0) else _undecided(a)


def _undecided(a: Any) -> Any:
    raise UndecidedSizeError(f"cannot decide of what sign {a} is")


def _ratio(a: Any, b: Any) -> Any:
    """Of floats where it comes out even."""
    quotient, remainder = divmod(a, b)
    return quotient if remainder == 0 else _undecided(remainder)


def _compared(decide: Callable[[Any, Any], bool], node: Node, x: Any, y: Any) -> Any:
    compared = _each(decide)(node, x, y)
    return None if compared is None else np.asarray(compared, bool)


def _equal(a: Any, b: Any) -> bool:
    """Raises UndecidedSizeError where it depends on names."""
    if surely(lambda: a > b) or surely(lambda: a < b):
        return False
    return bool(a == b) or bool(_undecided(a - b))


def _cast(node: Node, x: Any) -> Any:
    """Integers of other bits, and floats, which stay whole."""
    dtype = node.dtype(node["to"])
    return as_sizes(x, dtype) if name_of(dtype) in FLOATS | INTEGERS else None


def _reduced(function: Callable[[Any, Any], Any], node: Node, x: Any, axes: Any = None) -> Any:
    given = node["axes"] if axes is None else [int(n) for n in axes]
    if x.ndim != 1 or x.size == 0 or (given is not None and list(given) not in ([0], [-1], [])):
        return None
    result = np.empty((1,) if node["keepdims"] in (None, 1) else (), object)
    result[...] = reduce(function, x.tolist())
    return result


FOLDED: Mapping[str, Fold] = {
    **dict.fromkeys(("Ceil", "Floor", "Round"), _each(lambda a: a)),
    "Abs": _each(lambda a: larger(a, -a)),
    "Add": _each(lambda a, b: a + b),
    "Cast": _cast,
    "Div": _each(_quotient),
    "Div of floats": _each(_ratio),
    "Equal": partial(_compared, _equal),
    "Greater": partial(_compared, lambda a, b: a > b),
    "GreaterOrEqual": partial(_compared, lambda a, b: a >= b),
    "Less": partial(_compared, lambda a, b: a < b),
    "LessOrEqual": partial(_compared, lambda a, b: a <= b),
    "Max": _many(larger),
    "Min": _many(smaller),
    "Mod": lambda node, x, y: None if node["fmod"] else _each(lambda a, b: a % b)(node, x, y),
    "Mul": _each(lambda a, b: a * b),
    "Neg": _each(lambda a: -a),
    "ReduceMax": partial(_reduced, larger),
    "ReduceMin": partial(_reduced, smaller),
    "ReduceProd": partial(_reduced, lambda a, b: a * b),
    "ReduceSum": partial(_reduced, lambda a, b: a + b),
    "Sub": _each(lambda a, b: a - b),
    "Where": lambda node, condition, x, y: None if condition.dtype != bool else np.asarray(np.where(condition, x, y), object),
}
"""What is computed of sizes as it is of numbers."""


# Sizes as values of a graph.


def as_nodes(recorder: Any, x: Sizes) -> Array:
    """Sizes as a value of the graph, which knows them when it runs."""
    dtype = name_of(x.dtype)
    of = dtype if dtype in FLOATS else "i64"
    numbers = [_number(recorder, n, of) for n in x.array.ravel().tolist()]
    array: Array = recorder.numpy["stack"](numbers).reshape(x.shape) if x.ndim else numbers[0]
    return array.convert(dtype)


def _number(recorder: Any, size: Any, dtype: str) -> Array:
    """A size as a number; one that may be below 0 by what it is more than its least. Raises UndecidedSizeError."""
    if not isinstance(size, OpenSize):
        constant: Array = recorder.constant(np.array(size, dtype_of(dtype)))
        return constant
    n: Any = size
    if surely(lambda: n >= 0):
        emitted: Array = emit_size(recorder.emit, n, dtype)
        return emitted
    from tidu_cli.graph.sizes.polynomials import bounds  # which models without open sizes do without

    low, high = bounds(n)
    if low == -math.inf and high == math.inf:
        raise UndecidedSizeError(f"cannot decide of what sign the size {n} is")
    if low == -math.inf:
        return -_number(recorder, -n, dtype)
    above: Array = _number(recorder, n - int(low), dtype) + dtype_of(dtype).type(low)
    return above
