"""Which opcode computes a case of scalars."""

from __future__ import annotations

from typing import Any, NamedTuple

from tidu_cli.adapters.native.machine import OPCODES
from tidu_cli.adapters.native.opcodes.table import COMPLEXES, TYPES, Signature
from tidu_cli.graph.graph import Case
from tidu_cli.graph.types import TensorType, Type

NATIVE = frozenset({*TYPES, *COMPLEXES})
"""The dtypes whose numbers the machine computes with."""


class Choice(NamedTuple):
    """An opcode, and a last operand that is the same for all nodes of a case, as a double."""

    opcode: int
    last: float | None = None


def width(dtype: str) -> int:
    """The words that a number takes."""
    return 2 if dtype == "c128" else 1


def is_native(type_: Type | None) -> bool:
    """Whether values of a type are, or are made of, numbers that the machine computes with."""
    return isinstance(type_, TensorType) and type_.dtype in NATIVE


def elementwise(case: Case) -> Choice | None:
    """The opcode for each element of a case that works element by element; None if there is none."""
    if len(case.results) != 1 or not case.operands or len(case.operands) > 3:
        return None
    if not all(map(is_native, (*case.operands, case.results[0]))):
        return None
    op, last = _variant(case.op, case.attrs)
    dtypes = tuple([t.dtype for t in case.operands if isinstance(t, TensorType)])
    given = dtypes if last is None else (*dtypes, "f64")
    (result,) = case.results
    assert isinstance(result, TensorType)
    opcode = OPCODES.get(Signature(op, given, result.dtype))
    return None if opcode is None else Choice(opcode, last)


_DIRECT = (-1, 1, 2, 3, 4)
"""Exponents for which there are opcodes."""


def _variant(op: str, attrs: Any) -> tuple[str, float | None]:
    """The name of an operation in the table, with what of its attrs makes another of it; and an operand that attrs hold."""
    if op == "integer_pow":
        return (f"{op} {attrs.y}", None) if attrs.y in _DIRECT else (op, float(attrs.y))
    return (f"{op} {attrs.rounding_method}", None) if op == "round" else (op, None)
