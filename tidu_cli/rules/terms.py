"""Terms: the values that a rule computes with; of records, their fields taken, put together, and gone through."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import copysign
from typing import Any, Protocol, cast, get_args
from typing import Literal as OneOf

from tidu_cli.errors import MissingRuleError
from tidu_cli.frozen import Frozen
from tidu_cli.graph.graph import CaseAttrs, CaseTable
from tidu_cli.graph.literals import Literal, filled
from tidu_cli.graph.types import COMPLEXES, INEXACT, RecordType, TensorType, Type

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

    def emit_all(self, op: str, /, *operands: Term | Number, **attrs: object) -> tuple[Term, ...]:
        """Record a node of any number of results."""

    def apply(self, op: str, attrs: CaseAttrs, operands: Sequence[Term]) -> tuple[Term, ...]:
        """Likewise, for attrs that are parsed."""

    def append(self, code: int, operands: Sequence[Term]) -> tuple[Term, ...]:
        """Likewise, for a case by its number."""

    def full(self, value: Number, type_: TensorType) -> Term:
        """A constant array."""


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


def trace_of(terms: Sequence[Term | None]) -> Recorder:
    """The recording of tangents or cotangents, of which one at least is not zero."""
    return next(t.trace for t in terms if t is not None)


def zeros(trace: Recorder, type_: Type) -> Term:
    """The zero of a type of tangents."""
    if isinstance(type_, TensorType):
        return trace.full(0, type_)
    name, first = type_.fields[0]  # the others are structurally zero
    return trace.emit(trace.primitives.record, zeros(trace, first), type=type_, fields=(name,) if len(type_.fields) > 1 else None)


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


# Identities: what a simplifier may put in the place of a node, as lines of a table.
#
# A rule sees a *site*: a node, what made its operands, and which values are known or the same. It gives what the node's result
# equals, in terms of these, or None. What it sees is the same for all nodes of one kind, so that it is asked once for each kind.


Assumption = OneOf["no-signed-zeros", "finite"]
"""What a user may grant, by the names of compilers' flags: that zeros have no sign, that no value is infinite or NaN."""

ASSUMPTIONS: tuple[Assumption, ...] = get_args(Assumption)


class Known(Frozen):
    """What is known of a constant array.

    `kind` "uniform": all elements are the one of `element`. "count": they count 0, 1, … along axis `axes[0]`. "unit": they are 1
    where the indices on the two `axes` are equal, and 0 elsewhere. "small": they are those of `element`, an array of few bytes.
    """

    kind: OneOf["uniform", "count", "unit", "small"]
    element: Literal | None = None
    axes: tuple[int, ...] = ()


class Operand(Frozen):
    """An operand at a site: its term, what made it (`op` is empty for an input, and for what is not looked at), what is known.

    Two operands are the same value where their `number` is the same. `alone` says that nobody else reads it.
    """

    term: Term
    number: int
    known: Known | None = None
    op: str = ""
    attrs: Any = None
    slot: int = 0
    alone: bool = False
    operands: tuple[Operand, ...] = ()

    @property
    def type(self) -> TensorType:
        """The type of an array."""
        return self.term.type

    @property
    def dtype(self) -> str:
        """Its dtype."""
        return self.type.dtype

    def equals(self, number: float) -> bool:
        """Whether all elements are known to be this number, complex ones with two parts of a zero of that sign."""
        if self.known is None or self.known.kind != "uniform":
            return False
        assert self.known.element is not None
        return self.known.element.data == _scalar(self.dtype, number, copysign(1, number))


@cache
def _scalar(dtype: str, number: float, sign: float) -> bytes:
    """The bytes of a number in a dtype. The sign tells the zeros apart, which are one to a dictionary."""
    exact: complex = number
    if dtype in COMPLEXES and number == 0:
        exact = complex(number, number)
    return filled(TensorType(dtype), exact if dtype in INEXACT else int(number)).data


class Site(Frozen):
    """A node as a rule sees it."""

    op: str
    attrs: Any
    operands: tuple[Operand, ...]
    types: tuple[Type, ...]

    @property
    def type(self) -> TensorType:
        """The type of the one result, an array. Raises MissingRuleError for a record."""
        (type_, *_) = self.types
        if isinstance(type_, RecordType):
            raise MissingRuleError(f"the identity is one of arrays, and a value is a record, {type_}")
        return type_

    @property
    def trace(self) -> Any:
        """The recording that terms are of."""
        return self.operands[0].term.trace


Rewriting = Callable[[Site], "Sequence[Term] | Term | None"]
"""From a site to its result, or its results; None where the identity does not apply."""


class Identity(Frozen):
    """A line of the table: nodes of `op` for which `rewrite` has something are that, bit for bit, provided what it `assumes`.

    The bits of NaNs, which IEEE 754 leaves open, may differ, and not their places. `statement` is the equation.
    `in_place` says that what is put there is in memory where and as the node's result would be, so that no reader can tell.
    """

    op: str
    statement: str
    rewrite: Rewriting
    assumes: frozenset[Assumption] = frozenset()
    in_place: bool = False
