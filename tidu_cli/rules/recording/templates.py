"""The templates of rules: each rule is called once for each case and choice of active operands, whatever the number of documents.

What a rule emits depends on these alone. So a set of primitives keeps its templates, over tables of cases of their own, and a
document gets them with the numbers that the cases have in its table.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar, cast

from tidu_cli.errors import LimitError, MissingRuleError, TypeRuleError, placed
from tidu_cli.frozen import replace
from tidu_cli.graph.graph import Case, CaseTable, Graph
from tidu_cli.graph.large import no_collection
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
from tidu_cli.rules.recording.linearity import require_linear_emission
from tidu_cli.rules.recording.trace import Template, Trace
from tidu_cli.rules.terms import HIDDEN, Term
from tidu_cli.rules.vocabulary import PrimitiveSet


def tangents_of_results(trace: Trace, op: str, node: JVP) -> Sequence[Term | None]:
    """What a primitive's JVP rule gives, where it has a say.

    A bool has no tangent, and an integer or datetime only one that comes from such: what is made of floats alone is made by
    rounding. What is an index, or a step function, contributes nothing. Of records the rule has the say. Raises MissingRuleError.
    """
    primitive, rule = trace.primitives[op], trace.primitives.jvp_rule(op)
    zeros: list[Term | None] = [None] * len(node.results)
    if primitive.rules.integers == "moved" or any(isinstance(x.known_type, RecordType) for x in (*node.operands, *node.results)):
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


def _is_exact(x: Term) -> bool:
    """Whether a value is of integers or datetimes, whose tangents have another dtype."""
    return isinstance(x.known_type, TensorType) and x.known_type.dtype in INTEGERS | DATETIMES


def _as_number(trace: Trace, x: Term) -> Term:
    """An integer value in the float dtype of its tangents. (A recording keeps the conversion only if the rule reads it.)"""
    return trace.emit("convert_element_type", x, new_dtype=tensor_tangent_type(x.type).dtype) if _is_exact(x) else x


Flags = tuple[bool, ...]
"""Which operands (of a transpose rule: results) are active."""

P = ParamSpec("P")
MaybeTemplate = TypeVar("MaybeTemplate", Template, Template | None)
Recording = Callable[Concatenate[PrimitiveSet, CaseTable, int, Flags, P], MaybeTemplate]

KEPT = 2**12
"""So many templates a set of primitives keeps; then it begins anew."""
KEPT_NODES = 2**8
"""Templates of more nodes than this are not kept: their memory costs more than to record them again."""


class Templates(dict[Hashable, Template]):
    """The templates of nodes by their case's number and which operands are active, as far as they have been asked for.

    key = code, all(active) or tuple(map(bool, active))
    template = templates.get(key) or templates.record(graph, node, key, active)
    """

    def __init__(self, template: Callable[[int, Flags], Template]) -> None:
        self.template = template

    def record(self, graph: Graph, node: int, key: Hashable, active: Iterable[object]) -> Template:
        """The template of a node, which is that of this key from now on. Raises MissingRuleError or LimitError naming the node."""
        try:
            template = self[key] = self.template(graph.code[node], tuple(map(bool, active)))
        except (MissingRuleError, LimitError) as error:  # what it makes may be too large
            raise type(error)(placed(graph.describe(node), error)) from None
        return template


@contextmanager
def _rule_refused(case: Case) -> Iterator[None]:
    """What a rule would emit may be no node, such as an array of too many axes: then there is no rule for this case.

    Nor is there, where it reads a type that a detached operand hides.
    """
    try:
        yield
    except (AttributeError, TypeError):
        if None not in case.operands:
            raise
        raise MissingRuleError(HIDDEN) from None
    except TypeRuleError as error:
        raise MissingRuleError(f"its rule does not apply: {error}") from None


def recorded_once(record: Recording[P, MaybeTemplate]) -> Recording[P, MaybeTemplate]:
    """The template as the set of primitives has it, recorded if it is the first of its kind, over a document's table of cases.

    What stands within many graphs is so derived and narrowed once: nested loops take time in proportion to what is made of them.
    """

    @wraps(record)
    def template(
        primitives: PrimitiveSet, cases: CaseTable, code: int, flags: Flags, /, *args: P.args, **kwargs: P.kwargs
    ) -> MaybeTemplate:
        case, kept = cases[code], primitives.templates
        key = record, case, flags, args, *kwargs.values()
        primitive = primitives[case.op]  # which a package may have changed
        entry = kept.get(key)
        if entry is None or entry[0] is not primitive:
            own = CaseTable(cases.vocabulary)
            with no_collection(), _rule_refused(case):
                entry = primitive, own, record(primitives, own, own.intern(case), flags, *args, **kwargs)
            if entry[2] is None or len(entry[2].nodes) <= KEPT_NODES:
                if len(kept) >= KEPT:
                    kept.clear()
                kept[key] = entry
        return entry[2] and entry[2].renumbered([cases.intern(emitted) for emitted in entry[1].cases])

    return template


@recorded_once
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
    of_results = tangents_of_results(trace, case.op, JVP(case.attrs, operands, results, given))
    template = trace.template(n_sources, _checked(of_results, case.op, [tangent_type(t) for t in case.results]))
    takes = primitives[case.op].domain.takes
    if takes is not None:
        template = replace(template, takes=(tangents[0].slot, takes(case.attrs)))
    return _linear(trace, template, f"JVP rule of {case.op}")


@recorded_once
def along_template(primitives: PrimitiveSet, cases: CaseTable, code: int, active: tuple[bool, ...]) -> Template:
    """The template of what gives the results of a case and their tangents at once, for these active operands.

    Its sources are the operands, and one tangent per operand; nothing in it is linear. Its results are those of the case, and their
    tangents. Raises MissingRuleError.
    """
    case, rule = cases[code], primitives[cases[code].op].rules.along
    assert rule is not None
    trace = Trace(primitives, cases)
    operands = [trace.source(t, linear=False) for t in case.operands]
    tangents = [trace.source(t and tangent_type(t), linear=False) for t in case.operands]
    results = [trace.source(t, linear=False) for t in case.results]
    given = [t if a else None for t, a in zip(tangents, active, strict=True)]
    values, derivatives = rule(JVP(case.attrs, operands, results, given))
    return trace.template(2 * len(operands) + len(results), [*values, *derivatives])


@recorded_once
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
    readable = [None if a else t for t, a in zip(operands, case.mask, strict=True)]
    incoming = [t if a else None for t, a in zip(cotangents, live, strict=True)]
    back = rule(Transposition(case.attrs, readable, case.operands, case.mask, incoming))  # type: ignore[arg-type]
    return _linear(trace, trace.template(n_sources, _checked(back, case.op, case.operands)), f"transpose rule of {case.op}")


@recorded_once
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
            given = f"a tangent {term.value_type}" if term.linear else "a value that is not a tangent"
            raise MissingRuleError(f"the rule of {op} gives {given} where a tangent {type_} is due")
    return terms
