"""Differences of arrays of numbers, and arrays moved along them: in f64 where dtypes differ, as in documents."""

from __future__ import annotations

from collections.abc import Mapping

from tidu_cli.adapters.onnx.writing.lowering import Lowering, Rule
from tidu_cli.adapters.onnx.writing.lowerings.reductions import greatest, least
from tidu_cli.graph.types import FLOATS


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
        bounds = (float(str(bound(dtype))) for bound in (least, greatest))
        moved = low.emit("Clip", moved, *[low.number(bound, "f64") for bound in bounds])
    return low.cast(moved, dtype) if dtype != "f64" else moved


LOWERINGS: Mapping[str, Rule] = {"difference": _difference, "retract": _retract}
