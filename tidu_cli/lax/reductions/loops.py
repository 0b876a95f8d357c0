"""Loops in rules: what a rule emits along an axis whose length is open, where it would unroll steps along others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.graph import CaseTable, Input
from tidu_cli.graph.keys import Key
from tidu_cli.rules.recording.trace import Trace, as_output, recorded
from tidu_cli.rules.terms import Term, op

transpose = op("transpose")

Step = Callable[..., Sequence[Term]]
"""From the constants, what is carried, and slices of what is scanned to what is carried on and slices of results."""


def loop(
    length: int, step: Step, consts: Sequence[Term], carry: Sequence[Term], xs: Sequence[Term] = (), *, reverse: bool = False
) -> Sequence[Term]:
    """Emit a scan of a step, linear where the operands are. Gives what is carried out, and the results along axis 0."""
    operands = [*consts, *carry, *xs]
    outer: Any = operands[0].trace
    inner = Trace(outer.primitives, CaseTable(outer.cases.vocabulary))
    n_whole = len(consts) + len(carry)
    types = [t.type if k < n_whole else t.type.with_shape(t.type.shape[1:]) for k, t in enumerate(operands)]
    inputs = [Input(Key(f"x{k}"), t) for k, t in enumerate(types)]
    results = step(*[inner.source(i.type, linear=t.linear) for i, t in zip(inputs, operands, strict=True)])
    body = ClosedGraph.of(recorded(inner, "step", inputs, [as_output(f"y{k}", y) for k, y in enumerate(results)]))
    make = outer.primitives["scan"].domain.attrs
    attrs = make(length=length, num_consts=len(consts), num_carry=len(carry), reverse=reverse, body=body)
    return outer.apply("scan", attrs, operands)  # type: ignore[no-any-return]


def recurrence(step: Callable[..., Term], xs: Sequence[Term], axis: int, *, reverse: bool) -> Term:
    """Along an axis d[i] = step(d[i-1], *xs[i]), from zero on; in `reverse` from the end. Of the type of the last of the arrays."""
    last = xs[-1]
    order = (axis, *[k for k in range(last.type.rank) if k != axis])
    rows = [transpose(x, permutation=order) for x in xs] if axis else xs
    zero = last.trace.full(0, rows[-1].type.with_shape(rows[-1].type.shape[1:]))
    _, found = loop(last.type.shape[axis], lambda *row: (step(*row),) * 2, (), (zero,), rows, reverse=reverse)
    back = tuple(sorted(range(len(order)), key=order.__getitem__))
    return transpose(found, permutation=back) if axis else found
