"""Which opcode computes a case, if one does."""

from __future__ import annotations

from typing import Any, NamedTuple

from tidu_cli.graph.graph import Case
from tidu_cli.graph.types import TensorType, Type, storage_dtype
from tidu_cli.runtime.engines.native.machine import ESCAPE, OPCODES
from tidu_cli.runtime.engines.native.opcodes.table import FLOATS, Signature

SCALARS = frozenset(dtype for signature in OPCODES for dtype in (*signature.operands, signature.result))
"""The dtypes of registers."""


class Operation(NamedTuple):
    """An opcode, ESCAPE if there is none, and the number that is its last operand, if that is no value of the graph."""

    opcode: int
    arity: int
    number: Any = None


def dtype_of(type_: Type | None) -> str:
    """The dtype in which a value lies in registers; "" for what does not."""
    if isinstance(type_, TensorType) and not type_.shape:
        dtype = storage_dtype(type_.dtype)
        return dtype if dtype in SCALARS and type_.dtype == dtype else ""
    return ""


def operation_of(case: Case) -> Operation:
    """What the machine does for a case."""
    escape = Operation(ESCAPE, len(case.operands))
    operands, results = tuple(map(dtype_of, case.operands)), tuple(map(dtype_of, case.results))
    if len(results) != 1 or not results[0] or not operands or "" in operands:
        return escape
    op = case.op
    if op == "integer_pow":
        if case.attrs.y in (1, 2, -1):  # type: ignore[union-attr]
            op = f"integer_pow {case.attrs.y}"  # type: ignore[union-attr]
        elif operands[0] in FLOATS and abs(case.attrs.y) < 2**24:  # type: ignore[union-attr]
            opcode = OPCODES[Signature("pow", operands * 2, results[0])]
            return Operation(opcode, 1, case.attrs.y)  # type: ignore[union-attr]
    elif op == "round":
        op = f"round {case.attrs.rounding_method}"  # type: ignore[union-attr]
    elif op in _SAME:
        return Operation(OPCODES[Signature("convert_element_type", operands, results[0])], 1) if operands == results else escape
    opcode = OPCODES.get(Signature(op, operands, results[0]), ESCAPE)
    return Operation(opcode, len(operands))


_SAME = frozenset({"reshape", "squeeze", "broadcast_in_dim", "transpose", "stop_gradient", "copy", "optimization_barrier"})
"""What gives a scalar as it is."""
