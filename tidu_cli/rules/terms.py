"""Terms: the values that a rule computes with; of records, their fields taken, put together, and gone through."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, cast

from tidu_cli.errors import MissingRuleError
from tidu_cli.frozen import Frozen
from tidu_cli.graph.graph import CaseAttrs, CaseTable
from tidu_cli.graph.types import RecordType, TensorType, Type

Number = int | float | complex

HIDDEN = "its rule needs the type of a detached value; resolve the document first"
"""Why a rule does nothing where a detached reference hides a type that it reads."""


Operator = Callable[["Term", "Term | Number"], "Term"]


def _operators(name: str) -> tuple[Operator, Operator]:
    """A primitive as Python's operator: of a Term and what stands on its right, and of one and a number on its left."""
    return (lambda x, y: x.trace.emit(name, x, y)), (lambda x, y: x.trace.emit(name, y, x))


class Recorder(Protocol):
    """The recording that a term is part of, which writes down what is done with it (`tidu_cli.rules.recording.trace`)."""

    primitives: Any
    """The set of primitives that the recording is of."""
    cases: CaseTable
    """The table of what it writes down."""

    def emit(self, op: str, /, *operands: Term | Number, **attrs: object) -> Term:
        """Record a node of one result."""
        ...

    def emit_all(self, op: str, /, *operands: Term | Number, **attrs: object) -> tuple[Term, ...]:
        """Record a node of any number of results."""
        ...

    def apply(self, op: str, attrs: CaseAttrs, operands: Sequence[Term]) -> tuple[Term, ...]:
        """Likewise, for attrs that are parsed."""
        ...

    def append(self, code: int, operands: Sequence[Term]) -> tuple[Term, ...]:
        """Likewise, for a case by its number."""
        ...

    def full(self, value: Number, type_: TensorType) -> Term:
        """A constant array."""
        ...


class Term(Frozen, eq=False):
    """A value within a rule. `slot` is its place in the template's environment; `linear` says that it depends on a tangent."""

    trace: Recorder
    slot: int
    known_type: Type | None
    linear: bool

    @property
    def type(self) -> TensorType:
        """The type of an array. Raises MissingRuleError where a detached reference hides it, and for a record."""
        type_ = self.value_type
        if isinstance(type_, RecordType):
            raise MissingRuleError(f"its rule takes arrays, and a value is a record, {type_}")
        return type_

    @property
    def value_type(self) -> Type:
        """The value's type. Raises MissingRuleError where a detached reference hides it."""
        if self.known_type is None:
            raise MissingRuleError(HIDDEN)
        return self.known_type

    __add__, __radd__ = _operators("add")
    __sub__, __rsub__ = _operators("sub")
    __mul__, __rmul__ = _operators("mul")
    __truediv__, __rtruediv__ = _operators("div")

    def __neg__(self) -> Term:
        return self.trace.emit("neg", self)


def op(name: str) -> Callable[..., Term]:
    """The function that applies a primitive of one result to Terms, for use in rules: `cos = op("cos")`."""

    def apply(*operands: Term | Number, **attrs: object) -> Term:
        trace = next(t.trace for t in operands if isinstance(t, Term))
        return trace.emit(name, *operands, **attrs)

    apply.__name__ = name
    return apply


def field(record: Term, name: str) -> Term:
    """A field of a record."""
    return record.trace.emit("field", record, name=name)


def record(type_: Type, fields: Mapping[str, Term]) -> Term:
    """A record of these fields, at least one; of tangents, others are structurally zero."""
    type_ = cast(RecordType, type_)
    given = {name: fields[name] for name in type_.names if name in fields}
    named = None if len(given) == len(type_.fields) else tuple(given)
    trace = next(iter(given.values())).trace
    return trace.emit("record", *given.values(), type=type_, fields=named)


def fieldwise(type_: Type, part: Callable[[str, Type], Term | None]) -> Term:
    """The record of this type whose fields, by name and type, `part` gives: of tangents, None where one is structurally zero."""
    parts = {name: part(name, inner) for name, inner in cast(RecordType, type_).fields}
    return record(type_, {name: term for name, term in parts.items() if term is not None})
