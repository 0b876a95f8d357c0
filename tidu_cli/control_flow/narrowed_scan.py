"""scan without what nobody needs, and two scans over the same as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidu_cli.control_flow.narrowing import both, invariants, needed_carries, output_values, over, tidy, values_read, varying
from tidu_cli.rules.batching import repeated
from tidu_cli.rules.contract import Narrowing
from tidu_cli.rules.recording.graphs import emitted
from tidu_cli.rules.terms import Term


def narrowed(node: Narrowing) -> Sequence[Term | None] | None:
    """The scan of what is needed: what no needed result depends on goes, and what is the same in all steps is computed before."""
    attrs, trace = node.attrs, node.operands[0].trace
    n, n_carry = attrs.num_consts, attrs.num_carry
    body = tidy(trace.primitives, attrs.body)
    graph, outputs = body.graph, output_values(body)
    first_x, n_inputs = n + n_carry, len(graph.inputs)

    def read(carry: Sequence[bool]) -> set[int]:
        return values_read(graph, [v for v, w in zip(outputs, (*carry, *node.needed[n_carry:]), strict=True) if w])

    carry = needed_carries(node.needed[:n_carry], n, read)
    live = read(carry)
    carried = [k for k in range(n_carry) if carry[k] and outputs[k] != n + k]
    xs = [k for k in range(first_x, n_inputs) if k in live]
    varies = varying(graph, [*[n + k for k in carried], *xs])
    ys = [k for k in range(n_carry, len(outputs)) if node.needed[k]]
    stacked = [k for k in ys if varies[outputs[k]] and not first_x <= outputs[k] < n_inputs]
    wanted = [outputs[k] for k in (*carried, *stacked)]
    before = invariants(graph, varies, wanted)
    known = {k: t for k, t in enumerate(node.operands) if k < first_x and k - n not in carried}
    fixed = sorted(values_read(graph, wanted, before) & known.keys())
    if body is attrs.body and not before and [*fixed, *carried, *xs, *stacked] == _everything(attrs):
        return None
    found = {k: t for k in range(n_carry) if (t := known.get(n + k)) is not None}
    if carried or stacked:
        inputs = [*fixed, *before, *[n + k for k in carried], *xs]
        values = known | dict(zip(before, emitted(trace, graph, known, before), strict=True)) | dict(enumerate(node.operands))
        numbers = {"length": attrs.length, "num_consts": len(fixed) + len(before), "num_carry": len(carried)}
        changed = over(trace.primitives, body, inputs, wanted)
        results = trace.emit_all("scan", *[values[v] for v in inputs], **numbers, reverse=attrs.reverse, body=changed)
        found |= dict(zip([*carried, *stacked], results, strict=True))
    for k in ys:
        if k not in found:  # slices of what is scanned, or the same in all steps
            v = outputs[k]
            found[k] = node.operands[v] if varies[v] else repeated(emitted(trace, graph, known, [v])[0], attrs.length)
    return [found[k] if needed else None for k, needed in enumerate(node.needed)]


def _everything(attrs: Any) -> list[int]:
    n, n_carry = attrs.num_consts, attrs.num_carry
    inputs, outputs = len(attrs.body.graph.inputs), len(attrs.body.graph.outputs)
    return [*range(n), *range(n_carry), *range(n + n_carry, inputs), *range(n_carry, outputs)]


def merged(one: Any, other: Any, operands: Sequence[Term]) -> Sequence[Term] | None:
    """One scan for two that carry the same: its slices are those of both."""
    n_carry, trace = one.num_carry, operands[0].trace
    if any(getattr(one, name) != getattr(other, name) for name in ("length", "reverse", "num_consts", "num_carry")):
        return None
    body = both(trace.primitives, one.body, other.body)
    values, n_one = output_values(body), len(one.body.graph.outputs)
    if values[:n_carry] != values[n_one : n_one + n_carry]:
        return None
    union = over(trace.primitives, body, range(len(operands)), [*values[:n_one], *values[n_one + n_carry :]])
    numbers = {"length": one.length, "num_consts": one.num_consts, "num_carry": n_carry, "reverse": one.reverse}
    found = trace.emit_all("scan", *operands, **numbers, body=union)
    return [*found[:n_one], *found[:n_carry], *found[n_one:]]
