"""Bodies: small graphs that stand for an operation, and what can be done with them while a rule is recorded.

Own primitives are defined by graphs. To differentiate, transpose or batch such a primitive is to do so with its graph, node by
node, by the rules of the primitives in it; here that happens inside a `Trace`, so that it is stamped out like any other rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

from tidu_cli.custom.templates import Rule, Stamps
from tidu_cli.errors import MissingRuleError
from tidu_cli.graph.graph import Case, CaseAttrs, CaseTable
from tidu_cli.graph.types import TensorType, Type
from tidu_cli.rules.batching import repeated
from tidu_cli.rules.contract import JVP, Batching, Kernel, PrimitiveSet, Transposition, Types, ValueTypes
from tidu_cli.rules.conversion import converted
from tidu_cli.rules.integers import tangents_of_results
from tidu_cli.rules.recording import Term, Trace, UnreadableError


@dataclass(frozen=True, slots=True)
class Step:
    """One node of a body: its op and attrs, the slots it reads, and the types of its results."""

    op: str
    attrs: CaseAttrs
    reads: tuple[int, ...]
    results: ValueTypes


@dataclass(frozen=True, eq=False)
class Body:
    """Straight-line code over slots: first the sources, then the results of the steps in order. A result of None is zero."""

    sources: ValueTypes
    steps: tuple[Step, ...]
    results: tuple[int | None, ...]

    def then(self, result: int, other: Body) -> Body:
        """This body with what another one, of one source and one result, makes of one of its results in the place of that."""
        read = self.results[result]
        assert read is not None
        n_slots = len(self.types)
        moved = [replace(s, reads=tuple(n_slots + r - 1 if r else read for r in s.reads)) for s in other.steps]
        slots = list(self.results)
        slots[result] = n_slots + (other.results[0] or 0) - 1
        return Body(self.sources, (*self.steps, *moved), tuple(slots))

    @cached_property
    def types(self) -> ValueTypes:
        """The type of every slot."""
        return (*self.sources, *(t for step in self.steps for t in step.results))

    @cached_property
    def result_types(self) -> tuple[Type | None, ...]:
        """The type of every result."""
        return tuple(None if r is None else self.types[r] for r in self.results)

    @cached_property
    def kinds(self) -> tuple[int | None, ...]:
        """Of each step a number that all those have that apply one op, with equal attrs, to equal types; None for the only one."""
        types = self.types
        number: dict[object, int] = {}
        kinds = [number.setdefault((step.op, step.attrs, *[types[r] for r in step.reads]), len(number)) for step in self.steps]
        count = Counter(kinds)
        return tuple([None if count[kind] == 1 else kind for kind in kinds])


def spliced(trace: Trace, body: Body, sources: Sequence[Term]) -> list[Term | None]:
    """Emit a body's steps for these sources. Gives its results."""
    terms: list[Term | None] = list(sources)
    stamps = Stamps(trace)
    for step, kind in zip(body.steps, body.kinds, strict=True):
        terms += stamps.apply(_applying(step), [terms[slot] for slot in step.reads], kind)
    return [None if slot is None else terms[slot] for slot in body.results]


def pushed_forward(
    trace: Trace, body: Body, operands: Sequence[Term], tangents: Sequence[Term | None]
) -> tuple[list[Term | None], list[Term | None]]:
    """Emit a body's steps and the JVP of each. Gives its results and their tangents."""
    values: list[Term | None] = list(operands)
    moved: list[Term | None] = list(tangents)
    stamps = Stamps(trace)
    for step, kind in zip(body.steps, body.kinds, strict=True):
        sources = [values[slot] for slot in step.reads] + [moved[slot] for slot in step.reads]
        found = stamps.apply(_pushing_forward(step), sources, kind)
        values += found[: len(step.results)]
        moved += found[len(step.results) :]
    return [None if r is None else values[r] for r in body.results], [None if r is None else moved[r] for r in body.results]


def spliced_linearly(trace: Trace, body: Body, sources: Sequence[Term], tangents: Sequence[Term | None]) -> list[Term | None]:
    """Emit a body that is linear in its last sources, for tangents of which some are zero (None), in the nodes that rules emit.

    `sources` are the first ones. A linear map is its own JVP, so each step that depends on tangents becomes its JVP, which drops
    zeros and puts constants where they belong. An own primitive becomes what it stands for: its own JVP may be defined by itself,
    and of a linear map it is no other. Raises MissingRuleError naming a step that is not linear, if a rule shows it; what only adds
    a constant does not show, so see `tidu_cli.custom.linearity` first.
    """
    types = body.types
    values: list[Term | None] = [*sources, *(None for _ in tangents)]  # of what depends on tangents there are none
    depends = [False] * len(sources) + [True] * len(tangents)
    moved: list[Term | None] = [*(None for _ in sources), *tangents]
    stamps = Stamps(trace)
    for number, (step, kind) in enumerate(zip(body.steps, body.kinds, strict=True)):
        mask = tuple([depends[slot] for slot in step.reads])
        n_results, active = len(step.results), any(mask)
        if active:
            operands = [values[slot] for slot in step.reads] + [moved[slot] for slot in step.reads]
            rule = _splicing_linearly(step, tuple([types[slot] for slot in step.reads]), mask)
            try:
                moved += stamps.apply(rule, operands, None if kind is None else (kind, mask))
            except UnreadableError:
                raise MissingRuleError(f"node {number} ({step.op}): it is not linear in them") from None
            values += [None] * n_results
        else:
            values += stamps.apply(_applying(step), [values[slot] for slot in step.reads], kind)
            moved += [None] * n_results
        depends += [active] * n_results
    return [None if r is None else moved[r] for r in body.results]


def _applying(step: Step) -> Rule:
    """A step as a rule from its operands to its results."""
    return lambda trace, operands: trace.apply(step.op, step.attrs, _known(operands))


def _pushing_forward(step: Step) -> Rule:
    """A step and its JVP as a rule, from operands and their tangents to results and theirs."""

    def rule(trace: Trace, sources: Sequence[Term | None]) -> Sequence[Term | None]:
        n = len(step.reads)
        operands = _known(sources[:n])
        results = trace.apply(step.op, step.attrs, operands)
        return [*results, *_jvp(trace, step, operands, results, sources[n:])]

    return rule


def _splicing_linearly(step: Step, types: ValueTypes, depends: Sequence[bool]) -> Rule:
    """The JVP of a step as a rule, from operands, those that depend on tangents being None, and their tangents."""

    def rule(trace: Trace, sources: Sequence[Term | None]) -> Sequence[Term | None]:
        values, tangents = sources[: len(types)], sources[len(types) :]
        if _stands_for_a_body(trace.primitives, step, tangents):
            order, body = residual_first(expanded(trace.primitives, step, types), depends)
            residual = _known([values[k] for k in order if not depends[k]])
            return spliced_linearly(trace, body, residual, [tangents[k] for k in order if depends[k]])
        operands = [unreadable(trace, t) if v is None else v for v, t in zip(values, types, strict=True)]
        return _jvp(trace, step, operands, [unreadable(trace, t) for t in step.results], tangents)

    return rule


def _stands_for_a_body(primitives: PrimitiveSet, step: Step, tangents: Sequence[Term | None]) -> bool:
    """Whether a step is of an own primitive that is not declared linear in just these tangents."""
    primitive = primitives[step.op]
    declared = primitive.linear_in(len(tangents)) if primitive.linear_in else None
    return primitive.inlined is not None and declared != tuple(t is not None for t in tangents)


def transposed(
    trace: Trace, body: Body, sources: Sequence[Term], active: Sequence[bool], cotangents: Sequence[Term | None]
) -> list[Term | None]:
    """Emit the transpose of a body that is linear in its last sources, those of them that are `active`; the others are zero.

    `sources` are the first ones. Gives a cotangent for each of the last sources, None for zero. Raises MissingRuleError.
    """
    # The linear steps go to a scratch recording first: in the nodes that rules emit, which have transpose rules.
    scratch = Trace(trace.primitives, CaseTable())
    primal = [scratch.source(t.value_type, linear=False) for t in sources]
    tangents = [scratch.source(t, linear=True) for t in body.sources[len(sources) :]]
    given = [t if a else None for t, a in zip(tangents, active, strict=True)]
    results = spliced_linearly(scratch, body, primal, given)

    stamps = Stamps(trace)
    count = Counter(node.code for node in scratch.nodes)
    values = [*sources, *(None for _ in tangents)]
    linear = []
    for node in scratch.nodes:
        if node.linear:
            linear.append((len(values), node))
            values += [None] * node.n_results
        else:
            kind = None if count[node.code] == 1 else node.code
            values += stamps.apply(_applying_case(scratch.cases[node.code]), [values[slot] for slot in node.reads], kind)

    incoming: list[Term | None] = [None] * len(values)
    for result, cotangent in zip(results, cotangents, strict=True):
        if result is not None and cotangent is not None:
            incoming[result.slot] = _sum(trace, incoming[result.slot], cotangent)
    for first, node in reversed(linear):
        due = incoming[first : first + node.n_results]
        if not any(due):
            continue
        case = scratch.cases[node.code]
        assert case.mask is not None
        operands = [None if a else values[slot] for slot, a in zip(node.reads, case.mask, strict=True)]
        alike = None if count[node.code] == 1 else (node.code, tuple([c is not None for c in due]))
        found = stamps.apply(_transposing(case), [*operands, *due], alike)
        for slot, contribution in zip(node.reads, found, strict=True):
            if contribution is not None:
                incoming[slot] = _sum(trace, incoming[slot], contribution)
    return [incoming[t.slot] if a else None for t, a in zip(tangents, active, strict=True)]


def naturalized(primitives: PrimitiveSet, given: Type, natural: Type) -> Body:
    """What makes of a tangent of a type that is admitted one of the natural type."""
    trace = Trace(primitives, CaseTable())
    return recorded(trace, (given,), [converted(trace.source(given, linear=False), natural)])


def naturalized_cotangent(primitives: PrimitiveSet, given: Type, natural: Type) -> Body:
    """Likewise of a cotangent: the transpose of what makes the tangent of that type from the natural one."""
    trace = Trace(primitives, CaseTable())
    cotangent = trace.source(given, linear=False)
    return recorded(trace, (given,), transposed(trace, naturalized(primitives, natural, given), [], [True], [cotangent]))


def _applying_case(case: Case) -> Rule:
    return lambda trace, operands: trace.apply(case.op, case.attrs, _known(operands))


def _transposing(case: Case) -> Rule:
    """The transpose of a linear case as a rule, from operands, active ones being None, and cotangents of results."""

    def rule(trace: Trace, sources: Sequence[Term | None]) -> Sequence[Term | None]:
        assert case.mask is not None
        n, types = len(case.operands), cast(Types, case.operands)
        return trace.primitives.transpose_rule(case.op)(Transposition(case.attrs, sources[:n], types, case.mask, sources[n:]))

    return rule


def batched(trace: Trace, body: Body, operands: Sequence[Term], is_batched: Sequence[bool], size: int) -> list[Term]:
    """Emit a body for many values of some operands at once. Gives its results, each with the batch as its first axis."""
    types = body.types
    values: list[Term | None] = list(operands)
    flags = list(is_batched)
    stamps = Stamps(trace)
    for step, kind in zip(body.steps, body.kinds, strict=True):
        mask = tuple([flags[slot] for slot in step.reads])
        alike = None if kind is None else (kind, mask)
        rule = (
            _batching(step, cast(Types, tuple([types[slot] for slot in step.reads])), mask, size) if any(mask) else _applying(step)
        )
        values += stamps.apply(rule, [values[slot] for slot in step.reads], alike)
        flags += [any(mask)] * len(step.results)
    found = []
    for slot in body.results:
        assert slot is not None
        term = values[slot]
        assert term is not None
        found.append(term if flags[slot] else repeated(term, size))
    return found


def _batching(step: Step, types: Types, mask: tuple[bool, ...], size: int) -> Rule:
    """The batch rule of a step as a rule from operands to results."""
    return lambda trace, operands: trace.primitives.batch_rule(step.op)(Batching(step.attrs, _known(operands), types, mask, size))


def zeros(trace: Trace, type_: Type) -> Term:
    """The zero of a type of tangents."""
    if isinstance(type_, TensorType):
        return trace.full(0, type_)
    name, first = type_.fields[0]  # the others are structurally zero
    return trace.emit(trace.primitives.record, zeros(trace, first), type=type_, fields=(name,) if len(type_.fields) > 1 else None)


def recorded(trace: Trace, sources: ValueTypes, results: Sequence[Term | None]) -> Body:
    """A recording as a body, without what its results do not need. Its roles are forgotten."""
    needed = {t.slot for t in results if t is not None}
    first = trace.n_slots
    kept: list[tuple[int, Step]] = []
    for node in reversed(trace.nodes):
        first -= node.n_results
        if needed.isdisjoint(range(first, first + node.n_results)):
            continue
        needed.update(node.reads)
        case = trace.cases[node.code]
        kept.append((first, Step(case.op, case.attrs, node.reads, case.results)))
    slots = {k: k for k in range(len(sources))}
    steps: list[Step] = []
    for first, step in reversed(kept):
        steps.append(Step(step.op, step.attrs, tuple(slots[r] for r in step.reads), step.results))
        for k in range(len(step.results)):
            slots[first + k] = len(slots)
    return Body(sources, tuple(steps), tuple(None if t is None else slots[t.slot] for t in results))


def expanded(primitives: PrimitiveSet, step: Step, types: ValueTypes) -> Body:
    """What a step of an own primitive stands for, one level deep."""
    rule = primitives[step.op].inlined
    assert rule is not None
    trace = Trace(primitives, CaseTable())
    return recorded(trace, types, rule(step.attrs, [trace.source(t, linear=False) for t in types]))


def residual_first(body: Body, active: Sequence[bool]) -> tuple[list[int], Body]:
    """The order of the sources with the active ones last, and the body whose sources are in it."""
    order = sorted(range(len(active)), key=lambda k: active[k])
    slot = {old: new for new, old in enumerate(order)}
    steps = tuple(Step(s.op, s.attrs, tuple(slot.get(r, r) for r in s.reads), s.results) for s in body.steps)
    results = tuple(None if r is None else slot.get(r, r) for r in body.results)
    return order, Body(tuple(body.sources[k] for k in order), steps, results)


def flops(body: Body, primitives: PrimitiveSet) -> int:
    """The operations of all steps of a body."""
    types = cast(Types, body.types)
    return sum(primitives[s.op].flops(s.attrs, tuple(types[slot] for slot in s.reads), cast(Types, s.results)) for s in body.steps)


def kernel(np: Any, body: Body, primitives: PrimitiveSet) -> Kernel:
    """A function of the arrays of a body's sources that gives its result, or a tuple of several."""
    types = cast(Types, body.types)
    steps: list[tuple[Kernel, tuple[int, ...], bool]] = []
    built: dict[object, Kernel] = {}  # own primitives build those of their own bodies: each once
    for step in body.steps:
        operands = tuple(types[slot] for slot in step.reads)
        case = step.op, step.attrs, operands
        if case not in built:
            built[case] = primitives[step.op].kernel(np, step.attrs, operands, cast(Types, step.results))
        steps.append((built[case], step.reads, len(step.results) > 1))

    def run(*arrays: Any) -> Any:
        values = list(arrays)
        for compute, reads, several in steps:
            found = compute(*[values[slot] for slot in reads])
            values += found if several else (found,)
        results = [values[slot] for slot in body.results if slot is not None]
        return results[0] if len(results) == 1 else tuple(results)

    return run


class _Unreadable(Trace):
    """Where the values of tangents are said to be recorded: whoever computes with one finds out that it is not there."""

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace.primitives, trace.cases)

    def apply(self, op: str, attrs: CaseAttrs, operands: Sequence[Term]) -> tuple[Term, ...]:
        raise UnreadableError("reads the value of a tangent")


def unreadable(trace: Trace, type_: Type) -> Term:
    """A value that is not there, only its type."""
    return Term(_Unreadable(trace), -1, type_, False)


def _jvp(
    trace: Trace, step: Step, operands: Sequence[Term], results: Sequence[Term], tangents: Sequence[Term | None]
) -> Sequence[Term | None]:
    if not any(t is not None for t in tangents):
        return [None] * len(results)
    return tangents_of_results(trace, step.op, JVP(step.attrs, operands, results, tangents))


def _known(values: Sequence[Term | None]) -> list[Term]:
    assert None not in values  # what reads no tangent reads values that are there
    return cast(list[Term], values)


def _sum(trace: Trace, so_far: Term | None, contribution: Term) -> Term:
    return contribution if so_far is None else trace.emit(trace.primitives.add, so_far, contribution)
