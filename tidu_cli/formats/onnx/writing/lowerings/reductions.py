"""Reductions, and what is cumulative."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from tidu_cli.formats.onnx.writing.body import Body, wider
from tidu_cli.formats.onnx.writing.lowering import Lowering, Rule, through
from tidu_cli.graph.types import FLOATS, SIGNED, TensorType


def _reduce(op_type: str) -> Rule:
    def rule(low: Lowering, x: str) -> str | Sequence[str]:
        axes = low.attrs.axes
        if not axes:
            return low.emit("Identity", x)
        if not low.operand.size:
            return low.filled(_OF_NOTHING[op_type](low.operand.dtype), low.result)
        dtypes = wider(op_type, low.body.opset)
        return through(dtypes, lambda inner, wide: inner.emit(op_type, wide, inner.ints(axes), keepdims=0))(low, x)

    return rule


def _bitwise(op_type: str) -> Rule:
    """and and or of bools; ONNX has none of bits along an axis."""

    def rule(low: Lowering, x: str) -> str | Sequence[str]:
        if low.operand.dtype != "bool":
            raise low.refuse("of integers has no operator in ONNX")
        return _reduce(op_type)(low, x)

    return rule


def _xor(low: Lowering, x: str) -> str:
    if low.operand.dtype != "bool":
        raise low.refuse("of integers has no operator in ONNX")
    if not low.attrs.axes:
        return low.emit("Identity", x)
    count = low.emit("ReduceSum", low.cast(x, "i32"), low.ints(low.attrs.axes), keepdims=0)
    return low.cast(low.emit("Mod", count, low.number(2, "i32")), "bool")


def _cumulative_sum(low: Lowering, x: str) -> str:
    axis, reverse = low.number(low.attrs.axis, "i64"), 1 if low.attrs.reverse else None
    return low.emit("CumSum", x, axis, reverse=reverse)


Step = Callable[[Body, str, str], str]
"""From what is carried and an element to what is carried on."""


def _cumulative(step: Step, first: Callable[[str], object]) -> Rule:
    """A Scan along the axis."""

    def rule(low: Lowering, x: str) -> str:
        operand, axis = low.operand, low.attrs.axis
        row = TensorType(operand.dtype, tuple(n for k, n in enumerate(operand.shape) if k != axis))

        def write(body: Body, carried: str, element: str) -> list[tuple[str, TensorType]]:
            found = step(body, carried, element)
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
    return False if dtype == "bool" else -math.inf if dtype in FLOATS else -(2 ** (int(dtype[1:]) - 1)) if dtype in SIGNED else 0


def greatest(dtype: str) -> object:
    """The greatest number of a dtype."""
    return True if dtype == "bool" else math.inf if dtype in FLOATS else 2 ** (int(dtype[1:]) - (dtype in SIGNED)) - 1


def _log_add_exp(body: Body, x: str, y: str) -> str:
    """log(exp x + exp y): the greater one, and log(1 + exp(-|x - y|)), which is 0 where both are infinite."""
    most, same = body.emit("Max", x, y), body.emit("Equal", x, y)
    zero = body.emit("CastLike", body.constant(0.0), x)
    apart = body.emit("Where", same, zero, body.emit("Sub", x, y))
    return body.emit("Add", most, body.emit("Softplus", body.emit("Neg", body.emit("Abs", apart))))


_OF_NOTHING: Mapping[str, Callable[[str], object]] = {
    "ReduceMax": least,
    "ReduceMin": greatest,
    "ReduceProd": lambda dtype: 1,
    "ReduceSum": lambda dtype: 0,
}
"""What reductions of no elements give."""

LOWERINGS: Mapping[str, Rule] = {
    "cumlogsumexp": through({"bf16": "f32"}, _cumulative(_log_add_exp, least)),
    "cummax": _cumulative(lambda body, x, y: body.emit("Max", x, y), least),
    "cummin": _cumulative(lambda body, x, y: body.emit("Min", x, y), greatest),
    "cumprod": _cumulative(lambda body, x, y: body.emit("Mul", x, y), lambda dtype: 1),
    "cumsum": through({"bf16": "f32", "f16": "f32", **dict.fromkeys(("i8", "i16", "u8", "u16"), "i32")}, _cumulative_sum),
    "reduce_and": _bitwise("ReduceMin"),
    "reduce_max": _reduce("ReduceMax"),
    "reduce_min": _reduce("ReduceMin"),
    "reduce_or": _bitwise("ReduceMax"),
    "reduce_prod": _reduce("ReduceProd"),
    "reduce_sum": _reduce("ReduceSum"),
    "reduce_xor": _xor,
}
