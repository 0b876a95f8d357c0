"""Recording what a rule emits.

A rule computes with `Term`s; every operation on them is recorded in a `Trace`. A node that reads a tangent (or cotangent) is
linear, with the mask that says which operands do; any other is residual. The recording is a `Template`: stamped out once per
node of the case, with no further call of the rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import cast

from tidu_cli.errors import MissingRuleError, TypeRuleError
from tidu_cli.graph.columns.garbage_collection import no_collection
from tidu_cli.graph.graph import CaseAttrs, CaseTable
from tidu_cli.graph.literals import filled
from tidu_cli.graph.types import (
    DATETIMES,
    INTEGERS,
    RecordType,
    TensorType,
    Type,
    moves,
    of_batch,
    tangent_type,
    tensor_tangent_type,
)
from tidu_cli.rules.contract import JVP, Batching, Transposition, Types
from tidu_cli.rules.summands import require_linear_emission
from tidu_cli.rules.vocabulary import PrimitiveSet

Number = int | float | complex

HIDDEN = "its rule needs the type of a detached value; resolve the document first"
"""Why a rule does nothing where a detached reference hides a type that it reads."""


class UnreadableError(MissingRuleError):
    """A rule computes with a value of another recording, or with one that only exists as a tangent."""


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A value within a rule. `slot` is its place in the template's environment; `linear` says that it depends on a tangent."""

    trace: Trace
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

    def __add__(self, other: Term | Number) -> Term:
        return self.trace.emit("add", self, other)

    def __radd__(self, other: Number) -> Term:
        return self.trace.emit("add", other, self)

    def __sub__(self, other: Term | Number) -> Term:
        return self.trace.emit("sub", self, other)

    def __rsub__(self, other: Number) -> Term:
        return self.trace.emit("sub", other, self)

    def __mul__(self, other: Term | Number) -> Term:
        return self.trace.emit("mul", self, other)

    def __rmul__(self, other: Number) -> Term:
        return self.trace.emit("mul", other, self)

    def __truediv__(self, other: Term | Number) -> Term:
        return self.trace.emit("div", self, other)

    def __rtruediv__(self, other: Number) -> Term:
        return self.trace.emit("div", other, self)

    def __neg__(self) -> Term:
        return self.trace.emit("neg", self)


def op(name: str) -> Callable[..., Term]:
    """The function that applies a primitive of one result to Terms, for use in rules: `cos = op("cos")`."""

    def apply(*operands: Term | Number, **attrs: object) -> Term:
        trace = next(t.trace for t in operands if isinstance(t, Term))
        return trace.emit(name, *operands, **attrs)

    apply.__name__ = name
    return apply


@dataclass(frozen=True, slots=True)
class Emitted:
    """One recorded node: case number, the environment slots it reads, and whether it is linear."""

    code: int
    reads: tuple[int, ...]
    linear: bool
    n_results: int


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """What a rule emits for one case. Its environment holds the sources, then the results of all nodes in order.

    `closed` nodes come first: they read no source (constants), so one stamping serves all nodes of the case.
    `results` are the slots of what the rule returned, None for zeros. `made` are the records that linear nodes put together: the
    slot of each, and those of its fields by name.
    """

    n_sources: int
    closed: tuple[Emitted, ...]
    nodes: tuple[Emitted, ...]
    results: tuple[int | None, ...]
    made: tuple[tuple[int, Mapping[str, int]], ...] = ()

    def ignores(self, sources: Iterable[int]) -> bool:
        """Whether no result depends on some of these sources: what had been emitted to compute it may be dead."""
        read = {slot for node in self.nodes for slot in node.reads}.union(self.results)
        return any(source not in read for source in sources)


class Trace:
    """A recording in progress, over the table of cases that the emitted nodes will go to."""

    def __init__(self, primitives: PrimitiveSet, cases: CaseTable) -> None:
        self.primitives = primitives
        self.cases = cases
        self.nodes: list[Emitted] = []
        self.n_slots = 0
        self._constants: dict[tuple[TensorType, str], Term] = {}

    def source(self, type_: Type | None, *, linear: bool) -> Term:
        """A value that exists before the rule runs."""
        term = Term(self, self.n_slots, type_, linear)
        self.n_slots += 1
        return term

    def emit(self, op: str, *operands: Term | Number, **attrs: object) -> Term:
        """Record a node and give its first result. Numbers become constants of the type of the last operand that is a Term."""
        return self.emit_all(op, *operands, **attrs)[0]

    def emit_all(self, op: str, *operands: Term | Number, **attrs: object) -> tuple[Term, ...]:
        """Likewise, and give all results."""
        terms = [t if isinstance(t, Term) else self.full(t, _last_term(operands).type) for t in operands]
        return self.apply(op, self.primitives.parse_attrs(op, attrs), terms)

    def apply(self, op: str, attrs: CaseAttrs, operands: Sequence[Term]) -> tuple[Term, ...]:
        """Likewise, for attrs that are parsed. Raises UnreadableError for an operand of another recording."""
        if any(t.trace is not self for t in operands):
            raise UnreadableError("reads a value that is not there")
        linear = any(t.linear for t in operands)
        mask = tuple(t.linear for t in operands) if linear else None
        case = self.primitives.case(op, attrs, mask, [t.value_type for t in operands])
        self.nodes.append(Emitted(self.cases.intern(case), tuple(t.slot for t in operands), linear, len(case.results)))
        first = self.n_slots
        self.n_slots += len(case.results)
        return tuple(Term(self, first + k, type_, linear) for k, type_ in enumerate(case.results))

    def full(self, value: Number, type_: TensorType) -> Term:
        """A constant array: a scalar constant, broadcast if the type has axes. Recorded once per rule and value."""
        known = self._constants.get((type_, repr(value)))
        if known is None:
            known = self.emit("constant", value=filled(TensorType(type_.dtype), value))
            if type_.shape:
                known = self.emit("broadcast_in_dim", known, shape=type_.shape, broadcast_dimensions=())
            self._constants[type_, repr(value)] = known
        return known

    def template(self, n_sources: int, results: Sequence[Term | None]) -> Template:
        """The finished recording without what no result needs, its closed nodes moved to the front."""
        live = self.live(results)
        slot_after: dict[int, int] = {s: s for s in range(n_sources)}
        closed_slots: set[int] = set()
        closed: list[tuple[int, Emitted]] = []
        others: list[tuple[int, Emitted]] = []
        first = n_sources
        for node in self.nodes:
            slots = range(first, first + node.n_results)
            first += node.n_results
            if live.isdisjoint(slots):
                continue
            reads_no_source = not node.linear and all(r in closed_slots for r in node.reads)
            (closed if reads_no_source else others).append((slots.start, node))
            if reads_no_source:
                closed_slots.update(slots)
        for old, node in closed + others:
            for k in range(node.n_results):
                slot_after[old + k] = len(slot_after)

        def renumbered(nodes: list[tuple[int, Emitted]]) -> tuple[Emitted, ...]:
            return tuple(Emitted(n.code, tuple(slot_after[r] for r in n.reads), n.linear, n.n_results) for _, n in nodes)

        results_after = tuple(None if r is None else slot_after[r.slot] for r in results)
        nodes = renumbered(others)
        made = tuple(
            (slot_after[old], fields) for (old, _), node in zip(others, nodes, strict=True) if (fields := self._fields(node))
        )
        return Template(n_sources, renumbered(closed), nodes, results_after, made)

    def _fields(self, node: Emitted) -> dict[str, int]:
        """Of a linear node that puts a record together, what it reads by the names of the fields."""
        case = self.cases[node.code]
        makes = self.primitives[case.op].domain.makes if node.linear else None
        return dict(zip(makes(case.attrs), node.reads, strict=True)) if makes else {}

    def live(self, results: Sequence[Term | None]) -> set[int]:
        """The slots that these results need: rules that take a whole graph (own primitives') record more."""
        live = {r.slot for r in results if r is not None}
        first = self.n_slots
        for node in reversed(self.nodes):
            first -= node.n_results
            if not live.isdisjoint(range(first, first + node.n_results)):
                live.update(node.reads)
        return live


@contextmanager
def _rule_refused() -> Iterator[None]:
    """What a rule would emit may be no node, such as an array of too many axes: then there is no rule for this case."""
    try:
        yield
    except TypeRuleError as error:
        raise MissingRuleError(f"its rule does not apply: {error}") from None


def _last_term(operands: Sequence[Term | Number]) -> Term:
    return next(t for t in reversed(operands) if isinstance(t, Term))


@no_collection()
@_rule_refused()
def jvp_template(primitives: PrimitiveSet, cases: CaseTable, code: int, active: tuple[bool, ...]) -> Template:
    """The template of a case's JVP rule for these active operands.

    Its sources are the operands, the results, and one tangent per operand (the slots of inactive ones are never read).
    A result without a tangent gets None. Raises MissingRuleError.
    """
    case = cases[code]
    trace = Trace(primitives, cases)
    operands = [trace.source(t, linear=False) for t in case.operands]
    results = [trace.source(t, linear=False) for t in case.results]
    tangents = [trace.source(t and tangent_type(t), linear=True) for t in case.operands]
    n_sources = trace.n_slots
    given = [t if a else None for t, a in zip(tangents, active, strict=True)]
    found = tangents_of_results(trace, case.op, JVP(case.attrs, operands, results, given))
    return _linear(
        trace,
        trace.template(n_sources, _checked(found, case.op, [tangent_type(t) for t in case.results])),
        f"JVP rule of {case.op}",
    )


def tangents_of_results(trace: Trace, op: str, node: JVP) -> Sequence[Term | None]:
    """What a primitive's JVP rule gives, where it has a say.

    A bool has no tangent, and an integer or datetime only one that comes from such: what is made of floats alone is made by
    rounding. What is an index, or a step function, contributes nothing. Of records the rule has the say. Raises MissingRuleError.
    """
    primitive, rule = trace.primitives[op], trace.primitives.jvp_rule(op)
    zeros: list[Term | None] = [None] * len(node.results)
    if primitive.rules.integers == "moved" or _holds_record(node):
        if not any(moves(y.value_type) for y in node.results):
            return zeros
        return [t if moves(y.value_type) else None for t, y in zip(rule(node), node.results, strict=True)]
    exact = {k for k, (x, t) in enumerate(zip(node.operands, node.tangents, strict=True)) if t and _is_exact(x)}
    if exact:
        idle = {k for k in exact if primitive.rules.integers == "steps" or primitive.domain.is_index(k)}
        exact -= idle
        node = replace(node, tangents=[None if k in idle else t for k, t in enumerate(node.tangents)])
        if not any(node.tangents):
            return zeros
    if not exact:
        if not any(y.type.inexact for y in node.results):
            return zeros
        inactive = {k for k, y in enumerate(node.results) if not y.type.inexact}
        return [None if k in inactive else t for k, t in enumerate(rule(node))]
    if all(y.type.dtype == "bool" for y in node.results):
        return zeros
    if primitive.rules.integers == "numbers":
        operands = [x if primitive.domain.is_index(k) else _as_number(trace, x) for k, x in enumerate(node.operands)]
        node = replace(node, operands=operands, results=[_as_number(trace, y) for y in node.results])
    return rule(node)


def _holds_record(node: JVP) -> bool:
    return any(isinstance(x.known_type, RecordType) for x in (*node.operands, *node.results))


def _is_exact(x: Term) -> bool:
    """Whether a value is of integers or datetimes, whose tangents have another dtype."""
    return isinstance(x.known_type, TensorType) and x.known_type.dtype in INTEGERS | DATETIMES


def _as_number(trace: Trace, x: Term) -> Term:
    """An integer value in the float dtype of its tangents. (A recording keeps the conversion only if the rule reads it.)"""
    return trace.emit("convert_element_type", x, new_dtype=tensor_tangent_type(x.type).dtype) if _is_exact(x) else x


@no_collection()
@_rule_refused()
def transpose_template(primitives: PrimitiveSet, cases: CaseTable, code: int, live: tuple[bool, ...]) -> Template:
    """The template of a linear case's transpose rule, where `live` says which results have a cotangent.

    Its sources are the operands (the slots of active ones are never read) and one cotangent per result. Raises MissingRuleError.
    """
    case = cases[code]
    assert case.mask is not None
    rule = primitives.transpose_rule(case.op)
    trace = Trace(primitives, cases)
    operands = [trace.source(t, linear=False) for t in case.operands]
    cotangents = [trace.source(t, linear=True) for t in case.results]
    n_sources = trace.n_slots
    found = rule(
        Transposition(
            case.attrs,
            [None if a else t for t, a in zip(operands, case.mask, strict=True)],
            case.operands,  # type: ignore[arg-type]
            case.mask,
            [t if a else None for t, a in zip(cotangents, live, strict=True)],
        )
    )
    return _linear(trace, trace.template(n_sources, _checked(found, case.op, case.operands)), f"transpose rule of {case.op}")


@no_collection()
@_rule_refused()
def batch_template(primitives: PrimitiveSet, cases: CaseTable, code: int, batched: tuple[bool, ...], size: int) -> Template:
    """The template of a case's batch rule: `size` applications at once, the `batched` operands with the batch as their first axis.

    Its sources are the operands; nothing in it is linear. All results have the batch as their first axis. Raises
    MissingRuleError, also where the rule gives results of other types than (size, *shape) of the case's.
    """
    case = cases[code]
    rule = primitives.batch_rule(case.op)
    trace = Trace(primitives, cases)
    if None in case.operands:
        raise MissingRuleError(HIDDEN)
    types = cast(Types, case.operands)

    operands = [trace.source(of_batch(t, size) if b else t, linear=False) for t, b in zip(types, batched, strict=True)]
    results = rule(Batching(case.attrs, operands, types, batched, size))
    due = [of_batch(t, size) for t in case.results]
    if [t.value_type for t in results] != due:
        given = ", ".join(str(t.value_type) for t in results)
        raise MissingRuleError(f"the batch rule of {case.op} gives {given or 'nothing'} where {', '.join(map(str, due))} is due")
    return trace.template(len(operands), results)


def _linear(trace: Trace, template: Template, rule: str) -> Template:
    require_linear_emission(trace.primitives, trace.cases, template.n_sources, (*template.closed, *template.nodes), rule)
    return template


def _checked(terms: Sequence[Term | None], op: str, types: Sequence[Type | None]) -> Sequence[Term | None]:
    # A rule that gets its result wrong must not write a wrong document: own primitives come from users.
    if len(terms) != len(types):
        raise MissingRuleError(f"the rule of {op} gives {len(terms)} tangents where {len(types)} are due")
    for term, type_ in zip(terms, types, strict=True):
        if term is not None and (not term.linear or type_ not in (None, term.value_type)):
            given = f"a tangent {term.value_type}" if term.linear else "a value that is no tangent"
            raise MissingRuleError(f"the rule of {op} gives {given} where a tangent {type_} is due")
    return terms
