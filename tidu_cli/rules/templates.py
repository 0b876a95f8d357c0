"""The templates of rules: what a rule emits for a case, recorded and found to be what it should."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import cast

from tidu_cli.errors import MissingRuleError, TypeRuleError
from tidu_cli.graph.columns.garbage_collection import no_collection
from tidu_cli.graph.graph import CaseTable
from tidu_cli.graph.types import Type, of_batch, tangent_type
from tidu_cli.rules.contract import JVP, Batching, PrimitiveSet, Transposition, Types
from tidu_cli.rules.integers import tangents_of_results
from tidu_cli.rules.recording import HIDDEN, Template, Term, Trace
from tidu_cli.rules.summands import require_linear_emission


@contextmanager
def _rule_refused() -> Iterator[None]:
    """What a rule would emit may be no node, such as an array of too many axes: then there is no rule for this case."""
    try:
        yield
    except TypeRuleError as error:
        raise MissingRuleError(f"its rule does not apply: {error}") from None


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
    # A rule that gets its result wrong must not write a wrong document: some come from users.
    if len(terms) != len(types):
        raise MissingRuleError(f"the rule of {op} gives {len(terms)} tangents where {len(types)} are due")
    for term, type_ in zip(terms, types, strict=True):
        if term is not None and (not term.linear or type_ not in (None, term.value_type)):
            given = f"a tangent {term.value_type}" if term.linear else "a value that is no tangent"
            raise MissingRuleError(f"the rule of {op} gives {given} where a tangent {type_} is due")
    return terms
