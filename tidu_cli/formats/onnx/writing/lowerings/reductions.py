"""Reductions, and what is cumulative."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from tidu_cli.formats.onnx.writing.body import Body
from tidu_cli.formats.onnx.writing.lowering import WIDE_INTEGERS, Lowering, Rule, widened
from tidu_cli.formats.onnx.writing.lowerings.bits import reduced_bits
from tidu_cli.formats.onnx.writing.lowerings.doubles import log1p
from tidu_cli.graph.types import FLOATS, SIGNED, TensorType


def _reduce(op_type: str) -> Rule:
    def rule(low: Lowering, x: str) -> str:
        axes = low.attrs.axes
        if not axes:
            return low.emit("Identity", x)
        if low.operand.dtype == "bool":
            if not low.operand.size:
                return low.emit("Expand", low.number(op_type == "ReduceMin"), low.ints(low.result.shape))
            return low.cast(low.emit(op_type, low.cast(x, "i32"), low.ints(axes), keepdims=0), "bool")
        return low.emit(op_type, x, low.ints(axes), keepdims=0)

    return rule


def _bitwise(op_type: str) -> Rule:
    """and, or and xor along axes: of integers bit by bit."""

    def rule(low: Lowering, x: str) -> str:
        if not low.attrs.axes:
            return low.emit("Identity", x)
        if not low.operand.size:
            zero = low.emit("Expand", low.number(0), low.ints(low.result.shape))
            return zero if op_type != "ReduceMin" else low.emit("Not" if low.operand.dtype == "bool" else "BitwiseNot", zero)
        if low.operand.dtype != "bool":
            return reduced_bits(low, x, op_type)
        found = low.emit(op_type, low.cast(x, "i32"), low.ints(low.attrs.axes), keepdims=0)
        return low.cast(low.emit("Mod", found, low.number(2, "i32")) if op_type == "ReduceSum" else found, "bool")

    return rule


def _cumulative_sum(low: Lowering, x: str) -> str:
    return low.emit("CumSum", x, low.number(low.attrs.axis, "i64"), reverse=1 if low.attrs.reverse else None)


Step = Callable[[Lowering, str, str], str]
"""From what is carried and an element to what is carried on."""


def _cumulative(step: Step, first: Callable[[str], object]) -> Rule:
    """A Scan along the axis."""

    def rule(low: Lowering, x: str) -> str:
        operand, axis = low.operand, low.attrs.axis
        if not operand.size:
            return low.emit("Identity", x)
        row = TensorType(operand.dtype, tuple(n for k, n in enumerate(operand.shape) if k != axis))

        def write(body: Body, carried: str, element: str) -> list[tuple[str, TensorType]]:
            found = step(replace(low, body=body), carried, element)
            return [(found, row), (found, row)]

        start = low.emit("Expand", low.number(first(operand.dtype)), low.ints(row.shape))
        turned = [1] if low.attrs.reverse else None
        return low.emit_all(
            "Scan",
            [start, x],
            2,
            body=low.body.subgraph([row, row], write),
            num_scan_inputs=1,
            scan_input_axes=[axis],
            scan_output_axes=[axis],
            scan_input_directions=turned,
            scan_output_directions=turned,
        )[1]

    return rule


def least(dtype: str) -> object:
    """The least number of a dtype."""
    if dtype == "bool":
        return False
    return -math.inf if dtype in FLOATS else -(2 ** (int(dtype[1:]) - 1)) if dtype in SIGNED else 0


def greatest(dtype: str) -> object:
    """The greatest number of a dtype."""
    if dtype == "bool":
        return True
    return math.inf if dtype in FLOATS else 2 ** (int(dtype[1:]) - (dtype in SIGNED)) - 1


def _log_add_exp(low: Lowering, x: str, y: str) -> str:
    """log(exp x + exp y): the greater one, and log(1 + exp(-|x - y|)), of whose infinities the difference is 0."""
    apart = low.emit("Where", low.emit("Equal", x, y), low.number(0), low.emit("Sub", x, y))
    return low.emit("Add", low.emit("Max", x, y), log1p(low, low.emit("Exp", low.emit("Neg", low.emit("Abs", apart)))))


LOWERINGS: Mapping[str, Rule] = {
    "cumlogsumexp": widened(_cumulative(_log_add_exp, least), f16="f32", bf16="f32"),
    "cummax": widened(_cumulative(lambda low, x, y: low.emit("Max", x, y), least), i16="i32", u16="i32"),
    "cummin": widened(_cumulative(lambda low, x, y: low.emit("Min", x, y), greatest), i16="i32", u16="i32"),
    "cumprod": _cumulative(lambda low, x, y: low.emit("Mul", x, y), lambda dtype: 1),
    "cumsum": widened(_cumulative_sum, **WIDE_INTEGERS),
    "reduce_and": _bitwise("ReduceMin"),
    "reduce_max": widened(_reduce("ReduceMax"), i16="i32", u16="i32", u32="i64"),
    "reduce_min": widened(_reduce("ReduceMin"), i16="i32", u16="i32", u32="i64"),
    "reduce_or": _bitwise("ReduceMax"),
    "reduce_prod": widened(_reduce("ReduceProd"), **WIDE_INTEGERS),
    "reduce_sum": widened(_reduce("ReduceSum"), **WIDE_INTEGERS),
    "reduce_xor": _bitwise("ReduceSum"),
}
