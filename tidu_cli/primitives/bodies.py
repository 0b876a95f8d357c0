"""Bodies: small graphs that stand for an operation, and what can be done with them while a rule is recorded.

Own primitives are defined by graphs. To differentiate, transpose or batch such a primitive is to do so with its graph, node by
node, by the rules of the primitives in it; here that happens inside a `Trace`, so that it is stamped out like any other rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tidu_cli.errors import MissingRuleError
from tidu_cli.graph.graph import CaseAttrs, CaseTable
from tidu_cli.graph.types import TensorType
from tidu_cli.primitives.contract import JVP, Batching, Kernel, PrimitiveSet, Transposition, Types
from tidu_cli.primitives.trace import Term, Trace, UnreadableError, tangents_of_results


@dataclass(frozen=True, slots=True)
class Step:
    """One node of a body: its op and attrs, the slots it reads, and the types of its results."""

    op: str
    attrs: CaseAttrs
    reads: tuple[int, ...]
    results: Types


@dataclass(frozen=True, eq=False)
class Body:
    """Straight-line code over slots: first the sources, then the results of the steps in order. A result of None is zero."""

    sources: Types
    steps: tuple[Step, ...]
    results: tuple[int | None, ...]

    @property
    def types(self) -> Types:
        """The type of every slot."""
        return (*self.sources, *(t for step in self.steps for t in step.results))


def spliced(trace: Trace, body: Body, sources: Sequence[Term]) -> list[Term | None]:
    """Emit a body's steps for these sources. Gives its results."""
    terms = list(sources)
    for step in body.steps:
        terms += trace.apply(step.op, step.attrs, [terms[slot] for slot in step.reads])
    return [None if slot is None else terms[slot] for slot in body.results]


def pushed_forward(
    trace: Trace, body: Body, operands: Sequence[Term], tangents: Sequence[Term | None]
) -> tuple[list[Term | None], list[Term | None]]:
    """Emit a body's steps and the JVP of each. Gives its results and their tangents."""
    values: list[Term] = list(operands)
    moved: list[Term | None] = list(tangents)
    for step in body.steps:
        reads = [values[slot] for slot in step.reads]
        results = trace.apply(step.op, step.attrs, reads)
        moved += _jvp(trace, step, reads, results, [moved[slot] for slot in step.reads])
        values += results
    return [None if r is None else values[r] for r in body.results], [None if r is None else moved[r] for r in body.results]


def spliced_linearly(trace: Trace, body: Body, sources: Sequence[Term], tangents: Sequence[Term | None]) -> list[Term | None]:
    """Emit a body that is linear in its last sources, for tangents of which some are zero (None), in the nodes that rules emit.

    `sources` are the first ones. A linear map is its own JVP, so each step that depends on tangents becomes its JVP, which drops
    zeros and puts constants where they belong. An own primitive becomes what it stands for: its own JVP may be defined by itself,
    and of a linear map it is no other. Raises MissingRuleError naming a step that is not linear, if a rule shows it; what only adds
    a constant does not show, so see `tidu_cli.primitives.linearity` first.
    """
    types = body.types
    values: list[Term] = [*sources, *(unreadable(trace, t) for t in body.sources[len(sources) :])]
    depends = [False] * len(sources) + [True] * len(tangents)
    moved: list[Term | None] = [*(None for _ in sources), *tangents]
    for number, step in enumerate(body.steps):
        reads = [values[slot] for slot in step.reads]
        mask = [depends[slot] for slot in step.reads]
        active = any(mask)
        if active:
            results: Sequence[Term] = [unreadable(trace, t) for t in step.results]
            incoming = [moved[slot] for slot in step.reads]
            try:
                if _stands_for_a_body(trace.primitives, step, incoming):
                    order, inner = residual_first(expanded(trace.primitives, step, tuple(types[r] for r in step.reads)), mask)
                    residual = [reads[k] for k in order if not mask[k]]
                    moved += spliced_linearly(trace, inner, residual, [incoming[k] for k in order if mask[k]])
                else:
                    moved += _jvp(trace, step, reads, results, incoming)
            except UnreadableError:
                raise MissingRuleError(f"node {number} ({step.op}): it is not linear in them") from None
        else:
            results = trace.apply(step.op, step.attrs, reads)
            moved += [None] * len(results)
        values += results
        depends += [active] * len(results)
    return [None if r is None else moved[r] for r in body.results]


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
    primal = [scratch.source(t.type, linear=False) for t in sources]
    tangents = [scratch.source(t, linear=True) for t in body.sources[len(sources) :]]
    given = [t if a else None for t, a in zip(tangents, active, strict=True)]
    results = spliced_linearly(scratch, body, primal, given)

    values: list[Term | None] = [*sources, *(None for _ in tangents)]
    linear = []
    for node in scratch.nodes:
        if node.linear:
            linear.append((len(values), node))
            values += [None] * node.n_results
        else:
            case = scratch.cases[node.code]
            values += trace.apply(case.op, case.attrs, [_known(values[slot]) for slot in node.reads])

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
        rule = trace.primitives.transpose_rule(case.op)
        found = rule(Transposition(case.attrs, operands, case.operands, case.mask, due))  # type: ignore[arg-type]
        for slot, contribution in zip(node.reads, found, strict=True):
            if contribution is not None:
                incoming[slot] = _sum(trace, incoming[slot], contribution)
    return [incoming[t.slot] if a else None for t, a in zip(tangents, active, strict=True)]


def batched(trace: Trace, body: Body, operands: Sequence[Term], is_batched: Sequence[bool], size: int) -> list[Term]:
    """Emit a body for many values of some operands at once. Gives its results, each with the batch as its first axis."""
    types = body.types
    values, flags = list(operands), list(is_batched)
    for step in body.steps:
        reads, mask = [values[slot] for slot in step.reads], tuple(flags[slot] for slot in step.reads)
        if any(mask):
            rule = trace.primitives.batch_rule(step.op)
            values += rule(Batching(step.attrs, reads, tuple(types[slot] for slot in step.reads), mask, size))
        else:
            values += trace.apply(step.op, step.attrs, reads)
        flags += [any(mask)] * len(step.results)
    found = []
    for slot in body.results:
        assert slot is not None
        term = values[slot]
        if not flags[slot]:
            axes = tuple(range(1, term.type.rank + 1))
            term = trace.emit("broadcast_in_dim", term, shape=(size, *term.type.shape), broadcast_dimensions=axes)
        found.append(term)
    return found


def recorded(trace: Trace, sources: Types, results: Sequence[Term | None]) -> Body:
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


def expanded(primitives: PrimitiveSet, step: Step, types: Types) -> Body:
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
    types = body.types
    return sum(primitives[s.op].flops(s.attrs, tuple(types[slot] for slot in s.reads), s.results) for s in body.steps)


def kernel(np: Any, body: Body, primitives: PrimitiveSet) -> Kernel:
    """A function of the arrays of a body's sources that gives its result, or a tuple of several."""
    types = body.types
    steps: list[tuple[Kernel, tuple[int, ...], bool]] = []
    built: dict[object, Kernel] = {}  # own primitives build those of their own bodies: each once
    for step in body.steps:
        operands = tuple(types[slot] for slot in step.reads)
        case = step.op, step.attrs, operands
        if case not in built:
            built[case] = primitives[step.op].kernel(np, step.attrs, operands, step.results)
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


def unreadable(trace: Trace, type_: TensorType) -> Term:
    """A value that is not there, only its type."""
    return Term(_Unreadable(trace), -1, type_, False)


def _jvp(
    trace: Trace, step: Step, operands: Sequence[Term], results: Sequence[Term], tangents: Sequence[Term | None]
) -> Sequence[Term | None]:
    if not any(t is not None for t in tangents):
        return [None] * len(results)
    return tangents_of_results(trace, step.op, JVP(step.attrs, operands, results, tangents))


def _known(value: Term | None) -> Term:
    assert value is not None  # a residual node reads no tangent
    return value


def _sum(trace: Trace, so_far: Term | None, contribution: Term) -> Term:
    return contribution if so_far is None else trace.emit(trace.primitives.add, so_far, contribution)
