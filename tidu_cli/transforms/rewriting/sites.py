"""Sites: nodes of one kind, and what stands for all of them. Rules are asked once for each kind."""

from __future__ import annotations

from collections.abc import Sequence

from tidu_cli.errors import MissingRuleError, TypeRuleError
from tidu_cli.frozen import Frozen
from tidu_cli.graph.graph import Case, CaseTable
from tidu_cli.graph.literals import Literal
from tidu_cli.graph.types import TensorType, Type
from tidu_cli.lax.identities.constants import folded
from tidu_cli.lax.identities.table import identities
from tidu_cli.rules.identities import Identity, Known, Operand, Site
from tidu_cli.rules.recording.linearity import is_vector, makes_zeros, zeros_due
from tidu_cli.rules.recording.trace import Template, Trace
from tidu_cli.rules.terms import Term
from tidu_cli.rules.vocabulary import PrimitiveSet


class Kind(Frozen):
    """What a rule may ask of a node: its case; of values that it, or the maker of an operand, reads, what is known and a number.

    `makers` are, of each operand, the case that made it, which result it is, and whether nobody else reads it; None where that is
    not looked at. Values are those of the operands, and then what their makers read, in order: those of one number are the same.
    """

    case: Case
    makers: tuple[tuple[Case, int, bool] | None, ...]
    numbers: tuple[int, ...]
    known: tuple[Known | None, ...]


class Replacement(Frozen):
    """What stands for nodes of a kind: a template over the values of the kind; and whether it lies in memory as they did."""

    template: Template
    in_place: bool


def replacement(primitives: PrimitiveSet, cases: CaseTable, kind: Kind, assumptions: frozenset[str]) -> Replacement | None:
    """What stands for nodes of this kind: the first identity of the table that has something, or a constant; None if none has."""
    constant = folded(primitives, kind.case, kind.known[: len(kind.case.operands)])
    if constant is not None:
        trace = Trace(primitives, cases)
        for type_ in _types(kind):
            trace.source(type_, linear=False)
        return Replacement(trace.template(trace.n_slots, [_full(trace, primitives, constant)]), in_place=False)
    for identity in identities(assumptions).get(kind.case.op, ()):
        template = _recorded(primitives, cases, kind, identity)
        if template is not None:
            return Replacement(template, identity.in_place)
    return None


def _full(trace: Trace, primitives: PrimitiveSet, literal: Literal) -> Term:
    """A constant array: of equal elements, one that is repeated."""
    type_ = literal.type
    if type_.rank and literal.data == literal.data[: type_.nbytes // max(type_.size, 1)] * type_.size:
        repeated = trace.full(0, type_)  # as the recording repeats a number
        case = trace.cases[trace.nodes[-1].code]
        element = Literal(TensorType(type_.dtype), literal.data[: type_.nbytes // type_.size])
        return trace.apply(case.op, case.attrs, [_constant(trace, primitives, element)])[0] if case.operands else repeated
    return _constant(trace, primitives, literal)


def _constant(trace: Trace, primitives: PrimitiveSet, literal: Literal) -> Term:
    return trace.emit(primitives.constant, value=literal)


def _types(kind: Kind) -> list[Type | None]:
    found = list(kind.case.operands)
    for maker in kind.makers:
        if maker is not None:
            found += maker[0].operands
    return found


def _recorded(primitives: PrimitiveSet, cases: CaseTable, kind: Kind, identity: Identity) -> Template | None:
    trace = Trace(primitives, cases)
    site = _site(trace, kind)
    n_sources = trace.n_slots
    try:
        found = identity.rewrite(site)
    except MissingRuleError:  # of records, say
        return None
    if found is None:
        return None
    results: Sequence[Term] = [found] if isinstance(found, Term) else found
    if [t.value_type for t in results] != list(kind.case.results):
        return None
    template = trace.template(n_sources, results)
    return template if _is_linear(primitives, cases, kind, template) else None


def _is_linear(primitives: PrimitiveSet, cases: CaseTable, kind: Kind, template: Template) -> bool:
    """Whether linear nodes of a template are linear, provided that zeros are seen to be such."""
    zeros = {slot for slot, k in enumerate(kind.known) if k is not None and k.element is not None and not any(k.element.data)}
    first = template.n_sources
    for node in (*template.closed, *template.nodes):
        case = cases[node.code]
        if node.linear:
            try:
                if not zeros.issuperset(node.reads[k] for k in zeros_due(primitives, case)) or not all(
                    map(is_vector, case.results)
                ):
                    return False
            except TypeRuleError:
                return False
        if zeros.issuperset(node.reads) and makes_zeros(primitives, case):
            zeros.update(range(first, first + node.n_results))
        first += node.n_results
    return True


def _site(trace: Trace, kind: Kind) -> Site:
    case, rest = kind.case, len(kind.case.operands)
    mask = case.mask or (False,) * rest
    terms = [trace.source(t, linear=a) for t, a in zip(case.operands, mask, strict=True)]
    operands = []
    for k, (term, maker) in enumerate(zip(terms, kind.makers, strict=True)):
        if maker is None:
            operands.append(Operand(term, kind.numbers[k], kind.known[k]))
            continue
        made_by, slot, alone = maker
        # A tangent that a primary node made, of a constant say, counts as one from its operands on.
        flags = (made_by.mask or (True,) * len(made_by.operands)) if mask[k] else (False,) * len(made_by.operands)
        inner = []
        for j, (t, a) in enumerate(zip(made_by.operands, flags, strict=True)):
            inner.append(Operand(trace.source(t, linear=a), kind.numbers[rest + j], kind.known[rest + j]))
        rest += len(inner)
        operands.append(Operand(term, kind.numbers[k], kind.known[k], made_by.op, made_by.attrs, slot, alone, tuple(inner)))
    return Site(case.op, case.attrs, tuple(operands), case.results)
