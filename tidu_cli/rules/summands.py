"""Summands: what must be zero for a node to be linear, and what is seen to be.

A node claims to be linear in its active operands. Its primitive says in which groups of operands it is linear together; an inactive
operand of the group is something added (the c of t + c, the other case of a selection, what is written into), and has to be a
structural zero: a constant 0, or what is made of such by primitives that are linear in all their operands together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidu_cli.errors import MissingRuleError, TypeRuleError
from tidu_cli.graph.graph import Case, CaseTable
from tidu_cli.rules.contract import Primitive
from tidu_cli.rules.linearity import is_vector, is_zero_constant, summands
from tidu_cli.rules.recording import Emitted
from tidu_cli.rules.vocabulary import PrimitiveSet


def zeros_due(primitives: PrimitiveSet, case: Case) -> tuple[int, ...]:
    """The inactive operands that must be structural zeros for a node of a linearized case to be linear.

    Of types that a detached reference hides the best is thought. Raises TypeRuleError where no zeros make it linear in its active
    operands.
    """
    mask, primitive = case.mask, primitives[case.op]
    assert mask is not None
    active = [k for k, a in enumerate(mask) if a]
    if not active:
        return ()
    for place, type_ in (
        *((f"input {k} is active and", case.operands[k]) for k in active),
        *(("a result", t) for t in case.results),
    ):
        if type_ is not None and not is_vector(type_):
            raise TypeRuleError(
                f"{place} has type {type_}, but what is linear in tangents is made of floats, complex numbers, durations"
            )
    if primitive.groups is not None:
        due = primitive.others(mask)
    elif None in case.operands:
        due = () if primitive.rules.transpose else None  # to transpose it takes the types
    else:
        due = summands(primitives, case)
    if due is None:
        raise TypeRuleError(f"is not linear in its active {_inputs(active)}{_way_out(primitive, len(mask))}")
    return due


def makes_zeros(primitives: PrimitiveSet, case: Case) -> bool:
    """Whether a node is seen to give zeros, provided that all its operands, if it has any, are structural zeros."""
    if not case.operands:
        return is_zero_constant(primitives, case)
    return primitives[case.op].others((True,) * len(case.operands)) == ()


def require_linear_emission(
    primitives: PrimitiveSet, cases: CaseTable, n_sources: int, nodes: Iterable[Emitted], rule: str
) -> None:
    """Raises MissingRuleError, which names the rule, unless each linear node that it emits is linear in what it says."""
    nodes = list(nodes)
    due = {}
    for code in {node.code for node in nodes if node.linear}:
        try:
            due[code] = zeros_due(primitives, cases[code])
        except TypeRuleError as error:
            raise MissingRuleError(f"the {rule} emits {cases[code].op}, which {error}") from None
    if not any(due.values()):
        return
    zeros, first = set[int](), n_sources
    for node in nodes:
        for k in due.get(node.code, ()) if node.linear else ():
            if node.reads[k] not in zeros:
                case = cases[node.code]
                raise MissingRuleError(f"the {rule} emits {case.op}, whose {not_zero(k, case)}")
        if zeros.issuperset(node.reads) and makes_zeros(primitives, cases[node.code]):
            zeros.update(range(first, first + node.n_results))
        first += node.n_results


def not_zero(operand: int, case: Case) -> str:
    """What is wrong with an inactive operand that is not zero."""
    assert case.mask is not None
    active = _inputs([k for k, a in enumerate(case.mask) if a])
    return (
        f"input {operand} is added to what is linear in {active}: it must be a structural zero (a constant 0, or one broadcast, …)"
    )


def _inputs(numbers: Sequence[int]) -> str:
    return f"input{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def _way_out(primitive: Primitive, n: int) -> str:
    groups = []
    for first, end in primitive.groups or ():
        groups.append(_inputs([k for k in range(first, n if end is None else end) if not primitive.domain.is_index(k)]))
    return f"; {primitive.name} is linear in {', or in '.join(groups)}" if groups else ""
