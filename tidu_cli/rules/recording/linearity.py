"""Linearity: whether a graph is linear in some of its inputs, by the rules of the primitives in it.

A node is linear in some operands together if its primitive says so, or if its JVP for just these shows two things: it does not read
their values, nor the results', so that the derivative is the same everywhere; and it reads every other operand, since what it would
pass over would be something added (the c of t + c, the other case of a selection). Such a node is zero where those operands are. A
graph is linear in its tangents if, node by node, its outputs are seen to be zero with them. Constant zeros count with the tangents:
t + 0 is linear in t.

Documents claim, node by node, to be linear in active operands. What is added to these (the c of t + c, what is written into) has to
be a structural zero: a constant 0, or what is made of such by primitives that are linear in all their operands together.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import cast

from tidu_cli.errors import MissingRuleError, TypeRuleError
from tidu_cli.frozen import replace
from tidu_cli.graph.closed import forwards
from tidu_cli.graph.graph import Case, CaseTable, Graph
from tidu_cli.graph.literals import Literal
from tidu_cli.graph.types import Type, leaves, tangent_type
from tidu_cli.rules.catalogue import Dependence, Dependences
from tidu_cli.rules.contract import JVP, Primitive, ValueTypes
from tidu_cli.rules.recording.trace import Emitted, Trace, expanded
from tidu_cli.rules.vocabulary import PrimitiveSet

Known = dict[tuple[Case, Dependences], Dependences]
"""By cases, and how operands depend on tangents, how results do."""


def require_linear(primitives: PrimitiveSet, graph: Graph, active: Sequence[bool], what: str) -> None:
    """Whether a closed graph is linear in its `active` inputs, which `what` names for messages.

    What is not known to be linear counts as not linear. Raises MissingRuleError naming a node by its number. Takes a step for each
    node, and each distinct one is looked at once.
    """
    depends = _dependences(primitives, graph, [Dependence.LINEAR if a else Dependence.FREE for a in active], {})
    culprit: dict[int, int] = {}
    for number, (_, args, first, end) in enumerate(forwards(graph, graph.args)):
        # The first node that is not linear, of those that an output depends on.
        before = min((culprit[a] for a in args if a in culprit), default=number)
        culprit |= {value: before for value in range(first, end) if depends[value] is Dependence.OTHER}
    for output in graph.outputs:
        if output.value is None or depends[output.value].vanishes:
            continue
        if output.value in culprit:
            number = culprit[output.value]
            raise MissingRuleError(f"node {number} ({graph.case(number).op}): not known to be linear in the {what}")
        raise MissingRuleError(f"a result does not depend on the {what}, and is not zero; a linear map takes zeros to zero")


def is_vector(type_: Type) -> bool:
    """Whether values of a type are numbers or durations throughout, of which some are zero: a vector space."""
    return all(leaf.inexact for _, leaf in leaves(type_))


def constant_of(primitives: PrimitiveSet, case: Case) -> Literal | None:
    """The constant that a case is; None of any other."""
    value = getattr(case.attrs, "value", None) if case.op == primitives.constant else None
    return value if isinstance(value, Literal) else None


def is_zero_constant(primitives: PrimitiveSet, case: Case) -> bool:
    """Whether a case is that of a constant array of zeros."""
    constant = constant_of(primitives, case)
    return constant is not None and not any(constant.data)


def _dependences(primitives: PrimitiveSet, graph: Graph, inputs: Sequence[Dependence], known: Known) -> list[Dependence]:
    """Of every value of a graph how it depends on tangents, if its inputs do so."""
    depends = list(inputs)
    seen: dict[tuple[int, ...], Dependences] = {}
    for code, args, _, _ in forwards(graph, graph.args):
        key = (code, *[depends[a] for a in args])
        if key not in seen:
            seen[key] = _of_results(primitives, graph.cases[code], tuple([depends[a] for a in args]), known)
        depends += seen[key]
    return depends


def _of_results(primitives: PrimitiveSet, case: Case, operands: Dependences, known: Known) -> Dependences:
    """How each result of a case depends on tangents, if its operands do so."""
    if not operands:
        return (Dependence.ZERO if is_zero_constant(primitives, case) else Dependence.FREE,) * len(case.results)
    key = replace(case, mask=None), operands
    if key not in known:
        rules = primitives[case.op].rules
        if rules.inlined is not None:
            known[key] = _of_outputs(primitives, known, expanded(primitives, case), operands)
        elif rules.dependence is not None:
            known[key] = rules.dependence(lambda g, some: _of_outputs(primitives, known, g.graph, some), case.attrs, operands)
        else:
            known[key] = _of_one(primitives, case, operands)
    return known[key]


def _of_outputs(primitives: PrimitiveSet, known: Known, graph: Graph, inputs: Dependences) -> Dependences:
    depends = _dependences(primitives, graph, inputs, known)
    return tuple([Dependence.ZERO if o.value is None else depends[o.value] for o in graph.outputs])


def _of_one(primitives: PrimitiveSet, case: Case, operands: Dependences) -> Dependences:
    """The same of a primitive whose rules tell, or its linear groups."""
    types, inert = cast(ValueTypes, case.operands), primitives[case.op].rules.inert
    able = [is_vector(t) and k not in inert for k, t in enumerate(types)]
    zero, linear = (
        tuple([a and d is kind for a, d in zip(able, operands, strict=True)]) for kind in (Dependence.ZERO, Dependence.LINEAR)
    )
    others = any(d.moves and not m for d, m in zip(operands, linear, strict=True))
    kinds = [Dependence.OTHER if others or any(linear) else Dependence.FREE] * len(case.results)
    # Zeros are constants, too: t + 0 is linear as what is zero with both, t · 0 as a product with a constant.
    both = tuple(map(operator.or_, zero, linear))
    for mask in (linear, both) if any(linear) and not others else ():
        kinds = [Dependence.LINEAR if v else d for v, d in zip(_vanishes(primitives, replace(case, mask=mask)), kinds, strict=True)]
    # A sum is zero if all its operands are, a product if one is.
    alone = [tuple([j == k for j in range(len(zero))]) for k, z in enumerate(zero) if z] if sum(zero) > 1 else []
    for mask in (zero, *alone):
        kinds = [Dependence.ZERO if v else d for v, d in zip(_vanishes(primitives, replace(case, mask=mask)), kinds, strict=True)]
    return tuple(kinds)


def _vanishes(primitives: PrimitiveSet, case: Case) -> Sequence[bool]:
    """Of each result of a case, whether it is zero where its active operands are, and linear in them."""
    mask, primitive = case.mask, primitives[case.op]
    if not mask or not any(mask):
        return (False,) * len(case.results)
    if primitive.groups is not None:
        return (primitive.others(mask) == () and all(map(is_vector, case.results)),) * len(case.results)
    return [unread == frozenset() for unread in _unread(primitives, case)]


def _zeros_carried(primitives: PrimitiveSet, case: Case) -> tuple[int, ...] | None:
    """The inactive operands, such as a loop carries, that must be zeros for a case to be linear; None where no zeros make it so."""
    mask, known = case.mask, Known()
    assert mask is not None

    def is_linear(zero: Sequence[int]) -> bool:
        operands = [Dependence.LINEAR if a else Dependence.ZERO if k in zero else Dependence.FREE for k, a in enumerate(mask)]
        return all(d.vanishes for d in _of_results(primitives, case, tuple(operands), known))

    carried = primitives[case.op].rules.carried(case.attrs)
    candidates = [k for k in carried if not mask[k] and is_vector(cast(Type, case.operands[k]))]
    if not is_linear(candidates):
        return None
    return tuple([k for k in candidates if not is_linear([j for j in candidates if j != k])])


def _unread(primitives: PrimitiveSet, case: Case) -> Sequence[frozenset[int] | None]:
    """Of each result the inactive operands, but for indices, that its tangent does not depend on; None if it is not linear."""
    mask, primitive = case.mask, primitives[case.op]
    assert mask is not None
    trace = Trace(primitives, CaseTable())
    operands = [trace.source(t, linear=False) for t in case.operands]
    results = [trace.source(t, linear=False) for t in case.results]
    tangents = [
        trace.source(tangent_type(cast(Type, t)), linear=True) if m else None for t, m in zip(case.operands, mask, strict=True)
    ]
    try:
        rule = primitives.jvp_rule(case.op)
        derivatives = rule(JVP(case.attrs, operands, results, tangents)) if any(map(is_vector, case.results)) else ()
    except MissingRuleError:
        derivatives = ()
    if len(derivatives) != len(results):
        return (None,) * len(results)
    values = {t.slot for t in results} | {k for k, m in enumerate(mask) if m}
    others = frozenset(k for k, m in enumerate(mask) if not m and not primitive.domain.is_index(k))
    return [None if t is None or values & (live := trace.live([t])) else others - live for t in derivatives]


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
    elif primitive.rules.dependence is not None or primitive.rules.inlined is not None:
        due = _zeros_carried(primitives, case)
    else:
        unread = _unread(primitives, case)
        due = None if None in unread else tuple(sorted(frozenset().union(*cast(list[frozenset[int]], unread))))
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
    spans = [range(first, n if end is None else end) for first, end in primitive.groups or ()]
    groups = [_inputs([k for k in span if not primitive.domain.is_index(k)]) for span in spans]
    return f"; {primitive.name} is linear in {', or in '.join(groups)}" if groups else ""
