"""Reductions, what is cumulative, and differences of arrays, which are in f64 where dtypes differ, as in documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from tidu_cli.adapters.onnx.writing.bits import log1p, reduced_bits
from tidu_cli.adapters.onnx.writing.control_flow import of_any_length
from tidu_cli.adapters.onnx.writing.lowering import WIDE_INTEGERS, Body, Lowering, Rule, greatest, least, widened
from tidu_cli.frozen import replace
from tidu_cli.graph.sizes.open import OpenSize
from tidu_cli.graph.types import FLOATS, Type


def _require_narrow(low: Lowering) -> None:
    if low.operand.dtype in ("i64", "u64"):
        raise low.refuse(
            f"of {low.operand.dtype} is exact beyond what f64 holds, in which ONNX would compute it; convert to floats"
        )


def _difference(low: Lowering, x: str, y: str) -> str:
    _require_narrow(low)
    if low.operand.dtype == low.result.dtype:
        return low.emit("Sub", x, y)
    wide = low.emit("Sub", low.cast(x, "f64"), low.cast(y, "f64"))
    return low.cast(wide, low.result.dtype) if low.result.dtype != "f64" else wide


def _retract(low: Lowering, x: str, d: str) -> str:
    """Integers go whole steps, up to the last ones; NaN is no step."""
    _require_narrow(low)
    dtype, tangent = (t.dtype for t in low.operands)
    if dtype == tangent:
        return low.emit("Add", x, d)
    d = low.cast(d, "f64") if tangent != "f64" else d
    if dtype not in FLOATS:
        d = low.emit("Where", low.emit("IsNaN", d), low.number(0, "f64"), low.emit("Round", d))
    moved = low.emit("Add", low.cast(x, "f64") if dtype != "f64" else x, d)
    if dtype not in FLOATS:
        moved = low.emit("Clip", moved, low.number(least(dtype), "f64"), low.number(greatest(dtype), "f64"))
    return low.cast(moved, dtype) if dtype != "f64" else moved


def _reduce(op_type: str, **wider: str) -> Rule:
    """A reduction, in wider dtypes where these are; of nothing in its own, as the least number of i32 is none of i16."""

    def reduced(low: Lowering, x: str) -> str:
        return low.emit(op_type, x, low.ints(low.attrs.axes), keepdims=0)

    def rule(low: Lowering, x: str) -> str | Sequence[str]:
        if not low.attrs.axes:
            return low.emit("Identity", x)
        if low.operand.size == 0:
            return low.filled(_OF_NOTHING[op_type](low.operand.dtype), low.result)
        return widened(reduced, bool="i32", **wider)(low, x)

    return rule


def _bitwise(op_type: str, low: Lowering, x: str) -> str:
    """and, or and xor along axes: of integers bit by bit."""
    if not low.attrs.axes:
        return low.emit("Identity", x)
    if low.operand.size == 0:
        zero = low.emit("Expand", low.number(0), low.ints(low.result.shape))
        return zero if op_type != "ReduceMin" else low.emit("Not" if low.operand.dtype == "bool" else "BitwiseNot", zero)
    if low.operand.dtype != "bool":
        return reduced_bits(low, x, op_type)
    result = low.emit(op_type, low.cast(x, "i32"), low.ints(low.attrs.axes), keepdims=0)
    return low.cast(low.emit("Mod", result, low.number(2, "i32")) if op_type == "ReduceSum" else result, "bool")


def _cumulative_sum(low: Lowering, x: str) -> str:
    return low.emit("CumSum", x, low.number(low.attrs.axis, "i64"), reverse=1 if low.attrs.reverse else None)


Step = Callable[[Lowering, str, str], str]
"""The operation of two arrays that accumulates."""


def _cumulative(step: Step, first: Callable[[str], object], low: Lowering, x: str) -> str | Sequence[str]:
    """Each element with that before it, then each with that two before, four, and so on."""
    rank, axis, n, reach = low.operand.rank, low.attrs.axis, low.operand.shape[low.attrs.axis], 1
    if isinstance(n, OpenSize):
        one_by_one = partial(_one_by_one, x=x, step=step, first=first(low.operand.dtype))
        return of_any_length(low, n, one_by_one, lambda low: [low.emit("Identity", x)])
    nothing, side = low.number(first(low.operand.dtype)), axis + rank if low.attrs.reverse else axis
    while reach < n:
        start, end = (reach, n) if low.attrs.reverse else (0, n - reach)
        moved = low.emit("Slice", x, low.ints([start]), low.ints([end]), low.ints([axis]))
        moved = low.emit("Pad", moved, low.ints([reach if k == side else 0 for k in range(2 * rank)]), nothing)
        x, reach = step(low, x, moved), 2 * reach
    return low.emit("Identity", x) if n < 2 else x


def _one_by_one(low: Lowering, x: str, step: Step, first: object) -> list[str]:
    """Each element with what came before it, by a Scan: of an axis of open size it is open how often a reach doubles."""
    axis, back = low.attrs.axis, [1] if low.attrs.reverse else None
    row = low.operand.with_shape(tuple(n for k, n in enumerate(low.operand.shape) if k != axis))
    case = replace(low.case, operands=(row,), results=(row,))

    def write(body: Body, before: str, element: str) -> list[tuple[str, Type]]:
        return [(step(replace(low, body=body, case=case), before, element), row)] * 2

    _, along = low.emit_all(
        "Scan",
        [low.filled(first, row), x],
        2,
        body=low.body.subgraph([row, row], write, in_steps=True),
        num_scan_inputs=1,
        scan_input_axes=[axis],
        scan_output_axes=[axis],
        scan_input_directions=back,
        scan_output_directions=back,
    )
    return [along]


def _by(op_type: str) -> Step:
    return lambda low, x, y: low.emit(op_type, x, y)


def _log_add_exp(low: Lowering, x: str, y: str) -> str:
    """log(exp x + exp y): the greater one, and log(1 + exp(-|x - y|)), which is log 2 where both are the same, infinite or not."""
    most, same = low.emit("Max", x, y), low.emit("Equal", x, y)
    apart = low.emit("Where", same, low.number(0), low.emit("Sub", x, y))
    less = low.emit("Neg", low.emit("Abs", apart))
    if low.operand.dtype != "f64":
        return low.emit("Add", most, low.emit("Softplus", less))
    return low.emit("Add", most, log1p(low, low.emit("Exp", less)))  # runtimes have no Softplus of f64


_OF_NOTHING: Mapping[str, Callable[[str], object]] = {
    "ReduceMax": least,
    "ReduceMin": greatest,
    "ReduceProd": lambda dtype: 1,
    "ReduceSum": lambda dtype: 0,
}
"""What reductions of no elements give."""

LOWERINGS: Mapping[str, Rule] = {
    "cumlogsumexp": widened(partial(_cumulative, _log_add_exp, least), f16="f32", bf16="f32"),
    "cummax": widened(partial(_cumulative, _by("Max"), least), i16="i32", u16="i32"),
    "cummin": widened(partial(_cumulative, _by("Min"), greatest), i16="i32", u16="i32"),
    "cumprod": widened(partial(_cumulative, _by("Mul"), lambda dtype: 1), **WIDE_INTEGERS),
    "cumsum": widened(_cumulative_sum, f16="f32", bf16="f32", **WIDE_INTEGERS),
    "reduce_and": partial(_bitwise, "ReduceMin"),
    "reduce_max": _reduce("ReduceMax", i16="i32", u16="i32", u32="i64"),
    "reduce_min": _reduce("ReduceMin", i16="i32", u16="i32", u32="i64"),
    "reduce_or": partial(_bitwise, "ReduceMax"),
    "reduce_prod": _reduce("ReduceProd", **WIDE_INTEGERS),
    "reduce_sum": _reduce("ReduceSum", **WIDE_INTEGERS),
    "reduce_xor": partial(_bitwise, "ReduceSum"),
    "difference": _difference,
    "retract": _retract,
}
