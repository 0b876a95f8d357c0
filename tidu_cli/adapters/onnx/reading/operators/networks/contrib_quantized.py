"""Quantized operators of the domain com.microsoft, as onnxruntime's quantization tools write them. Its documentation defines them.

Those on integers are the operator on the floats that these stand for, rounded again. Where weights alone are quantized, floats are
computed with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import name_of
from tidu_cli.adapters.onnx.reading.node import Node, Operator, RefusedError, Value, number
from tidu_cli.adapters.onnx.reading.operators.elementwise import OPERATORS as ELEMENTWISE
from tidu_cli.adapters.onnx.reading.operators.elementwise import converted
from tidu_cli.adapters.onnx.reading.operators.networks.contrib import checked
from tidu_cli.adapters.onnx.reading.operators.networks.pooling import OPERATORS as POOLING
from tidu_cli.adapters.onnx.reading.operators.networks.recurrent import OPERATORS as RECURRENT
from tidu_cli.adapters.onnx.reading.operators.quantization import OPERATORS as QUANTIZATION
from tidu_cli.adapters.onnx.reading.operators.quantization import along, requantized, rounded, told
from tidu_cli.adapters.onnx.reading.operators.reductions import matmul, softmax
from tidu_cli.frozen import replace
from tidu_cli.graph.types import FLOATS
from tidu_cli.limits import require

_I32 = np.dtype(np.int32)

_OPSET = 21
"""The version of the standard's operators that those here stand for."""


def _standard(node: Node, op_type: str) -> Node:
    """The node as one of the standard's operators, with its defaults."""
    return replace(node, op_type=op_type, domain="", version=_OPSET)


def _floats(node: Node, x: Value, scale: Value, zero: Value | None) -> Value:
    """The floats that integers stand for."""
    return QUANTIZATION["DequantizeLinear"](replace(_standard(node, "DequantizeLinear"), attributes={}), x, scale, zero)


def _integers(node: Node, y: Value, scale: Value, zero: Value | None, kind: str) -> Value:
    """Integers that stand for floats, of the zero point's type or, without one, of this."""
    told(node, y)
    point = None if zero is None else np.reshape(zero, ())
    return rounded(node, y / np.reshape(scale, ()), point, kind if zero is None else node.kind(zero))


def _of_one(function: Callable[[Node, Value], Value]) -> Operator:
    """A function of the floats of one array."""

    def run(node: Node, x: Value, by: Value, zero: Value | None, y_scale: Value, y_zero: Value | None = None) -> Value:
        return _integers(node, function(node, _floats(node, x, by, zero)), y_scale, y_zero, node.kind(x))

    return checked(run, whole=True)


def _of_two(function: Callable[[Value, Value], Value]) -> Operator:
    """A function of the floats of two arrays."""

    def run(
        node: Node, a: Value, a_scale: Value, a_zero: Value | None, b: Value, b_scale: Value, b_zero: Value | None,
        y_scale: Value, y_zero: Value | None = None,
    ) -> Value:  # fmt: skip
        y = function(_floats(node, a, a_scale, a_zero), _floats(node, b, b_scale, b_zero))
        return _integers(node, y, y_scale, y_zero, node.kind(a))

    return checked(run, whole=True)


def _softmax(node: Node, x: Value) -> Value:
    axis = -1 if node["axis"] is None else node["axis"]
    if not -x.ndim <= axis < x.ndim:
        raise RefusedError(f"has no axis {axis} in an array of shape {list(x.shape)}")
    axis %= x.ndim
    return softmax(node, x, (axis,) if (node["opset"] or _OPSET) >= 13 else tuple(range(axis, x.ndim)))


def _pooled(op_type: str, node: Node, x: Value) -> Value:
    if not node["channels_last"]:
        return POOLING[op_type](_standard(node, op_type), x)
    return np.moveaxis(POOLING[op_type](_standard(node, op_type), np.moveaxis(x, -1, 1)), 1, -1)


def _where(
    node: Node, condition: Value, x: Value, x_scale: Value, x_zero: Value, y: Value, y_scale: Value, y_zero: Value,
    z_scale: Value, z_zero: Value,
) -> Value:  # fmt: skip
    z = np.where(condition, _floats(node, x, x_scale, x_zero), _floats(node, y, y_scale, y_zero))
    return _integers(node, z, z_scale, z_zero, node.kind(x))


def _concat(node: Node, y_scale: Value, y_zero: Value, *arrays: Value) -> Value:
    if not arrays or len(arrays) % 3:
        raise RefusedError(f"has {len(arrays)} inputs for arrays, and takes three for each: the array, its scale and zero point")
    parts = [_floats(node, *arrays[k : k + 3]) for k in range(0, len(arrays), 3)]
    return _integers(node, np.concatenate(parts, node["axis"] or 0), y_scale, y_zero, node.kind(arrays[0]))


# Products.


def _q_gemm(
    node: Node, a: Value, a_scale: Value, a_zero: Value, b: Value, b_scale: Value, b_zero: Value, c: Value | None = None,
    y_scale: Value | None = None, y_zero: Value | None = None,
) -> Value:  # fmt: skip
    if a.ndim != 2 or b.ndim != 2:
        raise RefusedError(f"multiplies matrices, and is given arrays of {a.ndim} and {b.ndim} axes")
    a, b = (node.importing.standing(x.T, node.kind(x)) if node[f"trans{letter}"] else x for x, letter in ((a, "A"), (b, "B")))
    whole = QUANTIZATION["MatMulInteger"](node, a, b, a_zero, b_zero)
    if c is not None:
        whole = whole + converted(node, c, whole.dtype)
    scale = along(a_scale, whole, -2) * along(b_scale, whole, -1)
    scale = scale * number(scale, 1.0 if node["alpha"] is None else node["alpha"])
    if y_scale is None:
        return converted(node, whole, scale.dtype) * scale
    return requantized(node, whole, scale / np.reshape(y_scale, ()), y_zero if y_zero is not None else a_zero)


def _to_float(
    node: Node, a: Value, b: Value, a_scale: Value, b_scale: Value, a_zero: Value | None = None, b_zero: Value | None = None,
    bias: Value | None = None,
) -> Value:  # fmt: skip
    whole = QUANTIZATION["MatMulInteger"](node, a, b, a_zero, b_zero)
    y = converted(node, whole, a_scale.dtype) * (along(a_scale, whole, -2) * along(b_scale, whole, -1))
    return y if bias is None else y + bias


def _dynamic_matmul(
    node: Node, a: Value, b: Value, b_scale: Value, b_zero: Value | None = None, bias: Value | None = None
) -> Value:  # fmt: skip
    whole, scale, zero = QUANTIZATION["DynamicQuantizeLinear"](node, a)
    return _to_float(node, whole, b, scale, b_scale, zero, b_zero, bias)


# Weights alone are quantized.


def _dynamic_lstm(
    node: Node, x: Value, w: Value, r: Value, biases: Value | None, lengths: Value | None, h: Value | None, c: Value | None,
    peepholes: Value | None, w_scale: Value, w_zero: Value, r_scale: Value, r_zero: Value,
) -> Any:  # fmt: skip
    """An LSTM, whose weights are transposed. What onnxruntime rounds of its inputs and states is not rounded."""
    node.note("onnxruntime rounds its inputs and states to 8 bits, step by step; here they stay floats, and values differ by that")
    weights = []
    for name, whole, scale, zero in (("W", w, w_scale, w_zero), ("R", r, r_scale, r_zero)):
        if whole.ndim != 3 or any(p.ndim not in (1, 2) or p.shape[0] != whole.shape[0] for p in (scale, zero)):
            raise RefusedError(f"its input '{name}' has the shape {list(whole.shape)}, with a scale of {list(scale.shape)}")
        by, point = (p.reshape(p.shape[0], 1, -1) for p in (scale, zero))
        floats = converted(node, converted(node, whole, _I32) - converted(node, point, _I32), scale.dtype) * by
        weights.append(np.swapaxes(floats, 1, 2))
    return RECURRENT["LSTM"](_standard(node, "LSTM"), x, *weights, biases, lengths, h, c, peepholes)


def _unpacked(packed: Any, bits: int, n: int) -> Any:
    """The first n numbers of each row of bytes, the lowest bits first, as i32."""
    per_byte = 8 // bits
    require("memory", packed.size * per_byte * 4, "the weights, unpacked")
    shifts = np.arange(per_byte, dtype=np.uint8) * np.uint8(bits)
    whole = (packed[..., np.newaxis] >> shifts) & np.uint8(2**bits - 1)
    return whole.reshape(*packed.shape[:-1], -1)[..., :n].astype(np.int32)


def _matmul_n_bits(
    node: Node, a: Value, b: Value, scales: Value, zeros: Value | None = None, groups: Value | None = None,
    bias: Value | None = None,
) -> Value:  # fmt: skip
    """A product with weights of [features, blocks, bytes], a scale and a zero point for each block."""
    k, n, bits, block = (node[name] or 0 for name in ("K", "N", "bits", "block_size"))
    bits = bits or 4
    if bits not in (2, 4, 8) or block < 1 or k < 1 or n < 1:
        raise RefusedError(f"has weights of {bits} bits in blocks of {block}, {k} by {n}; those of 2, 4 and 8 bits are read")
    blocks = -(-k // block)
    whole = node.known(b, "weights")
    if whole.size != n * blocks * block * bits // 8 or whole.dtype != np.uint8 or scales.size != n * blocks:
        raise RefusedError(f"has weights of shape {list(whole.shape)} and {scales.size} scales for {k} by {n} in blocks of {block}")
    weights = _unpacked(whole.reshape(n, -1), bits, blocks * block).reshape(n, blocks, block)
    if zeros is None:
        point: Value = np.int32(2 ** (bits - 1))
    elif name_of(zeros.dtype) in FLOATS:
        point = zeros.reshape(n, blocks, 1)
    else:
        point = _unpacked(node.known(zeros, "zero points").reshape(n, -1), bits, blocks).reshape(n, blocks, 1)
    by = scales.reshape(n, blocks, 1)
    floats = ((converted(node, weights, by.dtype) - converted(node, point, by.dtype)) * by).reshape(n, blocks * block)[:, :k]
    if groups is not None:  # which block's scale a row has
        floats = _regrouped(node, weights, point, by, groups, k)
    y = matmul(node, a, np.swapaxes(floats, 0, 1))
    return y if bias is None else y + bias


def _regrouped(node: Node, weights: Value, point: Value, by: Value, groups: Value, k: int) -> Value:
    """Weights, of which row j has the scale and the zero point of block groups[j]."""
    block_of = node.known(groups, "g_idx")[:k]
    n, blocks, _ = weights.shape
    if block_of.shape != (k,) or block_of.min(initial=0) < 0 or block_of.max(initial=0) >= blocks:
        raise RefusedError(f"its g_idx has not one of {blocks} blocks for each of {k} rows")
    scale, zero = (np.broadcast_to(x, (n, blocks, 1))[:, block_of, 0] for x in (by, converted(node, point, by.dtype)))
    return (converted(node, weights.reshape(n, -1)[:, :k], by.dtype) - zero) * scale


OPERATORS: Mapping[str, Operator] = {
    "DynamicQuantizeLSTM": checked(_dynamic_lstm, whole=True),
    "DynamicQuantizeMatMul": checked(_dynamic_matmul),
    "MatMulIntegerToFloat": checked(_to_float, whole=True),
    "MatMulNBits": checked(_matmul_n_bits),
    "QGemm": checked(_q_gemm, whole=True),
    "QLinearAdd": _of_two(np.add),
    "QLinearAveragePool": _of_one(partial(_pooled, "AveragePool")),
    "QLinearConcat": checked(_concat, whole=True),
    "QLinearGlobalAveragePool": _of_one(partial(_pooled, "GlobalAveragePool")),
    "QLinearLeakyRelu": _of_one(lambda node, x: ELEMENTWISE["LeakyRelu"](_standard(node, "LeakyRelu"), x)),
    "QLinearMul": _of_two(np.multiply),
    "QLinearSigmoid": _of_one(lambda node, x: ELEMENTWISE["Sigmoid"](_standard(node, "Sigmoid"), x)),
    "QLinearSoftmax": _of_one(_softmax),
    "QLinearWhere": checked(_where, whole=True),
}
