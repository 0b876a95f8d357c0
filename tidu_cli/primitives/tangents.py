"""Tangent types: which types of tangents a primal type has, and how they convert.

Rules compute with the natural tangent type, `tidu_cli.graph.types.tangent_type`. A linear graph may take its tangents in another
type that the primal admits: a linear conversion at its start makes natural ones of them, and its transpose gives cotangents in the
type that was chosen.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidu_cli.graph.graph import CaseTable
from tidu_cli.graph.types import COMPLEXES, FLOATS, INTEGERS, TensorType, tangent_type
from tidu_cli.primitives.contract import PrimitiveSet
from tidu_cli.primitives.trace import Template, Trace


@dataclass(frozen=True, slots=True)
class TangentRow:
    """A row of the table: primal dtypes, and those of the tangents that they admit, of the primal's shape."""

    primals: frozenset[str]
    admitted: tuple[str, ...]


TABLE = (
    TangentRow(FLOATS, ("f16", "bf16", "f32", "f64")),
    TangentRow(COMPLEXES, ("c64", "c128")),
    TangentRow(INTEGERS, ("f32", "f64")),
    TangentRow(frozenset({"bool"}), ()),
)
"""Of every dtype, one row. A conversion in either direction is convert_element_type: linear, and its own kind's transpose."""


def natural(primal: TensorType) -> TensorType | None:
    """The tangent type that rules compute with; None where the only tangent is zero."""
    return tangent_type(primal) if admitted(primal) else None


def admitted(primal: TensorType) -> tuple[TensorType, ...]:
    """All tangent types of a primal type, the natural one among them; none where the only tangent is zero."""
    return tuple(primal.with_dtype(dtype) for row in TABLE if primal.dtype in row.primals for dtype in row.admitted)


def conversion(primitives: PrimitiveSet, cases: CaseTable, given: TensorType, wanted: TensorType) -> Template:
    """What makes of a tangent of the type `given`, its one source, one of the type `wanted`, its one result."""
    trace = Trace(primitives, cases)
    tangent = trace.source(given, linear=True)
    return trace.template(1, [trace.emit("convert_element_type", tangent, new_dtype=wanted.dtype)])
