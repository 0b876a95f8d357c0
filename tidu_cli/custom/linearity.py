"""Linearity: whether a body is linear in some of its sources, by the rules of the primitives in it.

A step is linear in some operands together if its JVP for just these shows two things: it does not read their values, so that the
derivative is the same everywhere; and it reads every other operand, since what it would pass over would be something added (the c
of t + c, the other case of a selection). Such a step is zero where those operands are. A body is linear in its tangents if, step
by step, its results are seen to be zero with them. Constant zeros count with the tangents: t + 0 is linear in t.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from tidu_cli.custom.bodies import Body, Step, expanded, unreadable
from tidu_cli.errors import MissingRuleError
from tidu_cli.graph.graph import Case, CaseTable
from tidu_cli.graph.types import tangent_type
from tidu_cli.rules.contract import JVP, ValueTypes
from tidu_cli.rules.recording import Trace, UnreadableError
from tidu_cli.rules.summands import is_vector, is_zero_constant
from tidu_cli.rules.vocabulary import PrimitiveSet

Known = dict[tuple[object, ...], tuple[bool, ...]]


def require_linear(primitives: PrimitiveSet, body: Body, n_primal: int, what: str) -> None:
    """Whether a body is linear in its sources after the first `n_primal`, which `what` names for messages.

    What is not known to be linear counts as not linear. Raises MissingRuleError naming a step by its number. Takes a step for each
    of the body's, and each distinct one is looked at once.
    """
    zero = [False] * n_primal + [True] * (len(body.sources) - n_primal)
    depends = list(zero)
    zero = _zeros(primitives, body, zero, {})
    culprit: dict[int, int] = {}
    for number, step in enumerate(body.steps):
        found, first = step.results, len(depends)
        depends += [any(depends[r] for r in step.reads)] * len(found)
        # The first step that is not linear, of those that a result depends on.
        before = min((culprit[r] for r in step.reads if r in culprit), default=None)
        for slot in range(first, len(depends)):
            if depends[slot] and not zero[slot]:
                culprit[slot] = number if before is None else before
    for result in body.results:
        if result is None or zero[result]:
            continue
        if result in culprit:
            number = culprit[result]
            raise MissingRuleError(f"node {number} ({body.steps[number].op}): not known to be linear in the {what}")
        raise MissingRuleError(f"a result does not depend on the {what}, and is not zero; a linear map takes zeros to zero")


def _vanishes(primitives: PrimitiveSet, step: Step, types: ValueTypes, zero: Sequence[bool], known: Known) -> tuple[bool, ...]:
    """Of each result of a step, whether it is zero where these operands are, and linear in them."""
    primitive = primitives[step.op]
    moving = tuple(z and is_vector(t) and k not in primitive.rules.inert for k, (z, t) in enumerate(zip(zero, types, strict=True)))
    if not step.reads:
        return (is_zero_constant(primitives, step.op, step.attrs),) * len(step.results)
    if not any(moving):
        return (False,) * len(step.results)
    case = (step.op, step.attrs, types, moving)
    if case not in known:
        if primitive.rules.inlined is not None:
            known[case] = _body_vanishes(primitives, expanded(primitives, step, types), moving, known)
        elif primitive.groups is not None:
            is_linear = primitive.others(moving) == () and all(map(is_vector, step.results))
            known[case] = (is_linear,) * len(step.results)
        else:
            known[case] = tuple(rest == frozenset() for rest in _by_jvp(primitives, step, types, moving))
    return known[case]


def summands(primitives: PrimitiveSet, case: Case) -> tuple[int, ...] | None:
    """What must be zero for a case of known types to be linear in its active operands, by the rules of its primitive.

    None if it is not linear in them, as far as can be seen.
    """
    assert case.mask is not None
    types, mask = cast(ValueTypes, case.operands), case.mask
    step = Step(case.op, case.attrs, tuple(range(len(types))), case.results)
    if primitives[case.op].rules.inlined is not None:
        return () if all(_vanishes(primitives, step, types, mask, {})) else None
    unread = _by_jvp(primitives, step, types, mask)
    return None if None in unread else tuple(sorted(frozenset().union(*cast(list[frozenset[int]], unread))))


def _by_jvp(primitives: PrimitiveSet, step: Step, types: ValueTypes, moving: Sequence[bool]) -> Sequence[frozenset[int] | None]:
    """Of each result the other operands, but for indices, that its tangent does not depend on; None if it is not linear."""
    trace = Trace(primitives, CaseTable())
    values = [trace.source(t, linear=False) for t in types]
    operands = [unreadable(trace, t) if m else x for x, t, m in zip(values, types, moving, strict=True)]
    results = [unreadable(trace, t) for t in step.results]
    tangents = [trace.source(tangent_type(t), linear=True) if m else None for t, m in zip(types, moving, strict=True)]
    try:
        rule = primitives.jvp_rule(step.op)
        found = rule(JVP(step.attrs, operands, results, tangents)) if any(map(is_vector, step.results)) else ()
    except (UnreadableError, MissingRuleError):
        found = ()
    if len(found) != len(step.results):
        return (None,) * len(step.results)
    others = frozenset(
        x.slot for x, m in zip(values, moving, strict=True) if not m and not primitives[step.op].domain.is_index(x.slot)
    )
    return [None if t is None else others - trace.live([t]) for t in found]


def _body_vanishes(primitives: PrimitiveSet, body: Body, moving: Sequence[bool], known: Known) -> tuple[bool, ...]:
    zero = _zeros(primitives, body, moving, known)
    return tuple(r is None or zero[r] for r in body.results)


def _zeros(primitives: PrimitiveSet, body: Body, sources: Sequence[bool], known: Known) -> list[bool]:
    """Of every slot of a body, whether it is zero where these sources are, and linear in them."""
    types, zero = body.types, list(sources)
    of_kind: dict[tuple[object, ...], tuple[bool, ...]] = {}
    for step, kind in zip(body.steps, body.kinds, strict=True):
        reads = [zero[r] for r in step.reads]
        case = (kind, *reads)
        found = of_kind.get(case) if kind is not None else None
        if found is None:
            found = of_kind[case] = _vanishes(primitives, step, tuple([types[r] for r in step.reads]), reads, known)
        zero += found
    return zero
