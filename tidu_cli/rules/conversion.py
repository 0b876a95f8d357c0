"""Conversion of tangents between the types that one primal type admits: linear, so that it transposes.

At the start of a linear graph it makes natural tangents of those of the types that were chosen, and its transpose gives cotangents
in these.
"""

from __future__ import annotations

from tidu_cli.graph.graph import CaseTable
from tidu_cli.graph.types import RecordType, TensorType, Type
from tidu_cli.rules.contract import PrimitiveSet
from tidu_cli.rules.recording import Template, Term, Trace


def conversion(primitives: PrimitiveSet, cases: CaseTable, given: Type, wanted: Type) -> Template:
    """What makes of a tangent of the type `given`, its one source, one of the type `wanted`, its one result."""
    trace = Trace(primitives, cases)
    tangent = trace.source(given, linear=True)
    return trace.template(1, [converted(tangent, wanted)])


def converted(tangent: Term, wanted: Type) -> Term:
    """A tangent in another type that the same primal type admits; fields that it lacks are structurally zero.

    Between an array of durations and the record of a count of units, the units are those of the array.
    """
    trace, given = tangent.trace, tangent.value_type
    if given == wanted:
        return tangent
    if isinstance(wanted, TensorType):
        while isinstance(tangent.value_type, RecordType):
            (name,) = tangent.value_type.names
            tangent = trace.emit("field", tangent, name=name)
        return tangent if tangent.type == wanted else trace.emit("convert_element_type", tangent, new_dtype=wanted.dtype)
    if isinstance(given, TensorType):
        ((name, inner),) = wanted.fields
        return trace.emit("record", converted(tangent, inner), type=wanted)
    fields = {name: converted(trace.emit("field", tangent, name=name), due) for name, due in wanted.fields if name in given.names}
    return trace.emit("record", *fields.values(), type=wanted, fields=None if len(fields) == len(wanted.fields) else tuple(fields))
