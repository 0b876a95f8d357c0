"""Quantization: integers that stand for floats by a scale and a zero point, and products of them.

What is rounded to integers has the derivative 0, and a note says so. With `straight_through` rounding has the derivative 1 within
the range of the integers: they are held as floats then, and sums of their products are, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array, dtype_of, name_of
from tidu_cli.adapters.numpy.numpy.indexing import normal_axis
from tidu_cli.adapters.onnx.loading import held
from tidu_cli.adapters.onnx.reading.node import Node, Operator, RefusedError, Value, number
from tidu_cli.adapters.onnx.reading.operators.elementwise import converted
from tidu_cli.adapters.onnx.reading.operators.networks.signal import OPERATORS as CONVOLUTION
from tidu_cli.adapters.onnx.reading.values import holding, is_straight, is_whole, range_of, rounded_straight
from tidu_cli.errors import Remedy
from tidu_cli.graph.types import FLOATS

_I32, _F32, _U8 = np.dtype(np.int32), np.dtype(np.float32), np.dtype(np.uint8)


def told(node: Node, *operands: Value) -> None:
    """Tell the user that derivatives end at rounding."""
    if any(isinstance(x, Array) for x in operands) and not node.importing.straight_through:
        way = Remedy("straight_through", True)
        who = "QLinear operators" if node.op_type.startswith(("QLinear", "QGemm")) else node.op_type  # one note for all of these
        node.importing.note(
            f"{who}: rounds to integers, so derivatives through it are 0; {way} makes them 1 within the range of the integers"
        )


def _spread(node: Node, scale: Value, x: Value, what: str) -> Value:
    """A scale or zero point for all elements, for each place of an axis or each block of it, such that it broadcasts with x."""
    if scale.size == 1 and scale.ndim < 2:
        return np.reshape(scale, ())
    axis, block = normal_axis(1 if node["axis"] is None else node["axis"], x.ndim), node["block_size"] or 0
    n = x.shape[axis]
    if scale.ndim == 1 and scale.shape[0] == n and not (block and x.ndim == 1):
        return np.reshape(scale, [n if k == axis else 1 for k in range(x.ndim)])
    blocks = -(-n // block) if block > 0 else n
    if scale.shape != tuple(blocks if k == axis else size for k, size in enumerate(x.shape)):
        told = f"in blocks of {block} " if block else ""
        raise RefusedError(
            f"{what} of shape {list(scale.shape)} does not fit an array of shape {list(x.shape)} {told}along axis {axis}"
        )
    return np.repeat(node.sized(scale, x.shape), max(block, 1), axis)[(slice(None),) * axis + (slice(n),)]


def _require_zero(scale: Value, zero: Value | None) -> None:
    """Raises RefusedError unless a zero point has the shape of its scale; for one number, shape [] and [1] are the same."""
    if zero is not None and zero.shape != scale.shape and not {zero.shape, scale.shape} <= {(), (1,)}:
        raise RefusedError(f"has a scale of shape {list(scale.shape)} and a zero point of shape {list(zero.shape)}")


def rounded(node: Node, x: Value, zero: Value | None, kind: str) -> Value:
    """x rounded, halves to even, plus a zero point, as integers of a type, which end at the ends of their range."""
    wide = x.dtype if x.dtype.itemsize >= 4 else _F32  # floats of 16 bits do not have all integers of 16 bits
    zero = number(np.zeros((), wide), 0) if zero is None else converted(node, zero, wide)
    low, high = (np.array(n).astype(wide) for n in range_of(kind))
    if node.importing.straight_through and isinstance(x, Array):
        x = converted(node, x, wide)
        whole = rounded_straight(x) + zero
        inside = np.logical_and(whole >= low, whole <= high)
        clipped = np.minimum(np.maximum(np.rint(x) + zero, low), high).emit("stop_gradient")  # through it derivatives are 0
        return node.importing.standing(np.where(inside, whole, clipped), kind)
    whole = converted(node, np.rint(x), wide) + zero
    if kind != holding(kind):
        whole = np.minimum(np.maximum(whole, low), high)
    return node.importing.standing(converted(node, whole, dtype_of(holding(kind))), kind)


def _quantize_linear(node: Node, x: Value, scale: Value, zero: Value | None = None) -> Value:
    _require_zero(scale, zero)
    code = node["output_dtype"]
    due = held(code, node.importing.cast)[1] or name_of(node.dtype(code)) if code else "u8"
    kind = node.kind(zero) if zero is not None else due
    if code and kind != due:
        raise RefusedError(f"its output_dtype is {due}, and that of its zero point {kind}")
    if not is_whole(kind):
        raise RefusedError(f"quantizes to {kind}, which is not a type of integers")
    told(node, x, scale)
    precision = node.dtype(node["precision"]) if node["precision"] else scale.dtype
    by = converted(node, _spread(node, scale, x, "a scale"), precision)
    quotient = converted(node, x, precision) / by
    return rounded(node, quotient, None if zero is None else _spread(node, zero, x, "a zero point"), kind)


def _dequantize_linear(node: Node, x: Value, scale: Value, zero: Value | None = None) -> Value:
    dtype = node.dtype(node["output_dtype"]) if node["output_dtype"] else scale.dtype
    by = converted(node, _spread(node, scale, x, "a scale"), dtype)
    _require_zero(scale, zero)
    if zero is not None:
        wide = x.dtype if name_of(x.dtype) in FLOATS else _I32
        x = converted(node, x, wide) - converted(node, _spread(node, zero, x, "a zero point"), wide)
    return converted(node, x, dtype) * by


def _dynamic_quantize_linear(node: Node, x: Value) -> list[Value]:
    """Integers of 8 bits, and the scale and zero point with which their range is that of x and 0."""
    told(node, x)
    zero, top = number(x, 0), number(x, 255)
    low, high = (np.minimum(np.min(x), zero), np.maximum(np.max(x), zero)) if x.size else (zero, zero)
    scale = np.where(low == high, number(x, 1), high - low) / top
    point = np.rint(np.minimum(np.maximum(-low / scale, zero), top))
    return [rounded(node, x / scale, point, "u8"), scale, converted(node, point, _U8)]


def _shifted(node: Node, x: Value, zero: Value | None, axis: int, wide: Any = _I32) -> Value:
    """The integers less their zero point, as i32 or `wide`: one for all, or one for each place of an axis."""
    x = converted(node, x, wide)
    return x if zero is None else x - converted(node, along(zero, x, axis), wide)


def _wide(node: Node, *operands: Value) -> Any:
    """The dtype in which integers are multiplied: that of floats which hold some of them, or i32."""
    return next((x.dtype for x in operands if is_straight(node, x)), _I32)


def along(parameter: Value, x: Value, axis: int) -> Value:
    """A parameter, such that it broadcasts with x along an axis: a vector is along that one."""
    if parameter.ndim != 1 or x.ndim < 2 or parameter.size == 1:
        return np.reshape(parameter, ()) if parameter.size == 1 else parameter
    return np.reshape(parameter, [parameter.size if k == axis % x.ndim else 1 for k in range(x.ndim)])


def _mat_mul_integer(node: Node, x: Value, y: Value, x_zero: Value | None = None, y_zero: Value | None = None) -> Value:
    wide = _wide(node, x, y)
    return node.importing.standing(np.matmul(_shifted(node, x, x_zero, -2, wide), _shifted(node, y, y_zero, -1, wide)), "i32")


def _conv_integer(node: Node, x: Value, w: Value, x_zero: Value | None = None, w_zero: Value | None = None) -> Value:
    wide = _wide(node, x, w)
    y = CONVOLUTION["Conv"](node, _shifted(node, x, x_zero, 0, wide), _shifted(node, w, w_zero, 0, wide))
    return node.importing.standing(y, "i32")


def requantized(node: Node, whole: Value, scale: Value, y_zero: Value) -> Value:
    """Sums of products of integers, times a scale, as integers with a zero point."""
    told(node, whole)
    wide = scale.dtype if scale.dtype.itemsize >= 4 else _F32
    product = converted(node, whole, wide) * converted(node, scale, wide)
    return rounded(node, product, np.reshape(y_zero, ()) if y_zero.size == 1 else y_zero, node.kind(y_zero))


def _q_linear_mat_mul(
    node: Node, a: Value, a_scale: Value, a_zero: Value, b: Value, b_scale: Value, b_zero: Value, y_scale: Value, y_zero: Value
) -> Value:
    whole = _mat_mul_integer(node, a, b, a_zero, b_zero)
    scale = along(a_scale, whole, -2) * along(b_scale, whole, -1) / along(y_scale, whole, -2)
    return requantized(node, whole, scale, y_zero)


def _q_linear_conv(
    node: Node,
    x: Value,
    x_scale: Value,
    x_zero: Value,
    w: Value,
    w_scale: Value,
    w_zero: Value,
    y_scale: Value,
    y_zero: Value,
    bias: Value | None = None,
) -> Value:
    whole = _conv_integer(node, x, w, x_zero, w_zero)
    if bias is not None:
        whole = whole + converted(node, along(bias, whole, 1), whole.dtype)
    scale = along(x_scale, whole, 1) * along(w_scale, whole, 1) / along(y_scale, whole, 1)
    return requantized(node, whole, scale, y_zero)


OPERATORS: Mapping[str, Operator] = {
    "ConvInteger": _conv_integer,
    "DequantizeLinear": _dequantize_linear,
    "DynamicQuantizeLinear": _dynamic_quantize_linear,
    "MatMulInteger": _mat_mul_integer,
    "QLinearConv": _q_linear_conv,
    "QLinearMatMul": _q_linear_mat_mul,
    "QuantizeLinear": _quantize_linear,
}
