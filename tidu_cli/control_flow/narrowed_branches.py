"""cond and while without what nobody needs; two conds over the same as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidu_cli.control_flow.narrowing import both, invariants, needed_carries, output_values, over, tidy, values_read, varying
from tidu_cli.graph.literals import literal_to_numbers
from tidu_cli.rules.contract import Narrowing
from tidu_cli.rules.recording.graphs import emitted
from tidu_cli.rules.terms import Term


def narrowed_cond(node: Narrowing) -> Sequence[Term | None] | None:
    """The cond of the needed results; the one branch there is, or the index says, in its place."""
    attrs, (index, *operands) = node.attrs, node.operands
    trace, literal = index.trace, node.literals[0]
    branches = [tidy(trace.primitives, b) for b in attrs.branches]
    wanted = [[v for v, n in zip(output_values(b), node.needed, strict=True) if n] for b in branches]
    chosen = 0 if len(branches) == 1 else None if literal is None else _clamped(literal_to_numbers(literal)[0], len(branches))
    # What is linear in a branch may stand beside what is not, of which a while carries both.
    linear = any(t.linear for t in operands)
    if chosen is not None and linear and trace.primitives.is_irreversible(branches[chosen].graph.cases.cases):
        chosen = None
    if chosen is not None:
        found = emitted(trace, branches[chosen].graph, dict(enumerate(operands)), wanted[chosen])
    else:
        read = {v for b, some in zip(branches, wanted, strict=True) for v in values_read(b.graph, some)}
        kept = [k for k in range(len(operands)) if k in read]
        unchanged = all(a is b for a, b in zip(branches, attrs.branches, strict=True))
        if unchanged and len(kept) == len(operands) and all(node.needed):
            return None
        changed = tuple([over(trace.primitives, b, kept, some) for b, some in zip(branches, wanted, strict=True)])
        found = list(trace.emit_all("cond", index, *[operands[k] for k in kept], branches=changed))
    results = iter(found)
    return [next(results) if n else None for n in node.needed]


def _clamped(index: Any, n: int) -> int:
    return min(max(int(index), 0), n - 1)


def merged_conds(one: Any, other: Any, operands: Sequence[Term]) -> Sequence[Term] | None:
    """One cond of the results of two that choose by the same index among as many branches."""
    if len(one.branches) != len(other.branches):
        return None
    trace = operands[0].trace
    branches = tuple([both(trace.primitives, *pair) for pair in zip(one.branches, other.branches, strict=True)])
    return trace.emit_all("cond", *operands, branches=branches)


def narrowed_while(node: Narrowing) -> Sequence[Term | None] | None:
    """The while without carries on which no needed result nor the condition depends; those that stay the same are constants."""
    attrs, trace = node.attrs, node.operands[0].trace
    condition, body = (tidy(trace.primitives, g) for g in (attrs.condition, attrs.body))
    cond_consts, body_consts, init = attrs.split(node.operands)
    n, m, outputs = len(cond_consts), len(body_consts), output_values(body)
    tested = values_read(condition.graph, output_values(condition))
    due = [needed or n + k in tested for k, needed in enumerate(node.needed)]

    def read(carry: Sequence[bool]) -> set[int]:
        return values_read(body.graph, [v for v, c in zip(outputs, carry, strict=True) if c])

    carry = needed_carries(due, m, read)
    carried = [k for k, c in enumerate(carry) if c and outputs[k] != m + k]
    varies = varying(body.graph, [m + k for k in carried])
    wanted = [outputs[k] for k in carried]
    before = invariants(body.graph, varies, wanted)
    known = dict(enumerate(body_consts)) | {m + k: t for k, t in enumerate(init) if k not in carried}
    fixed = sorted(values_read(body.graph, wanted, before) & known.keys())
    tests = sorted(k for k in tested if k < len(condition.graph.inputs) and k - n not in carried)
    same = condition is attrs.condition and body is attrs.body and tests == [*range(n)] and fixed == [*range(m)] and not before
    if same and len(carried) == len(init):
        return None
    found: dict[int, Term] = {k: t for k, t in enumerate(init) if k not in carried}
    if carried:
        of_test = dict(enumerate(cond_consts)) | {n + k: t for k, t in enumerate(init)}
        values = known | dict(zip(before, emitted(trace, body.graph, known, before), strict=True))
        operands = [*[of_test[k] for k in tests], *[values[v] for v in (*fixed, *before)], *[init[k] for k in carried]]
        condition = over(trace.primitives, condition, [*tests, *[n + k for k in carried]], output_values(condition))
        body = over(trace.primitives, body, [*fixed, *before, *[m + k for k in carried]], wanted)
        numbers = {"cond_consts": len(tests), "body_consts": len(fixed) + len(before)}
        results = trace.emit_all("while", *operands, **numbers, condition=condition, body=body)
        found |= dict(zip(carried, results, strict=True))
    return [found[k] if needed else None for k, needed in enumerate(node.needed)]
