"""Loops and branches as Scan, Loop and If."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from tidu_cli.adapters.onnx.writing.lowering import Body, Lowering, Rule, tensor_type
from tidu_cli.adapters.onnx.writing.stages import Form, Node, Stages
from tidu_cli.frozen import replace
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.sizes.open import least
from tidu_cli.graph.types import TensorType, Type

Written = Callable[[Body], Sequence[str]]
"""From the body that is written to, to the names of the results."""


def _cond(low: Lowering, index: str, *operands: str) -> list[str]:
    branches = low.attrs.branches
    if low.operand.dtype != "bool":
        return _choice(low, low.body, index, branches, operands)
    return _if(low, low.body, index, *[partial(low.graph, graph=branches[k], inputs=operands) for k in (1, 0)])


def _if(low: Lowering, body: Body, condition: str, then: Written, other: Written) -> list[str]:
    """The results of the node by one of two graphs."""
    graphs = [body.subgraph([], lambda inner, w=write: list(zip(w(inner), low.results, strict=True))) for write in (then, other)]
    return body.emit_all("If", [condition], len(low.results), then_branch=graphs[0], else_branch=graphs[1])


def _choice(low: Lowering, body: Body, index: str, branches: Sequence[ClosedGraph], operands: Sequence[str]) -> list[str]:
    """One branch of several by nested Ifs, which halve them."""
    if len(branches) == 1:
        return low.graph(body, branches[0], operands)
    half = len(branches) // 2

    def later(within: Body) -> list[str]:
        moved = within.emit("Sub", index, within.constant(half, low.operand.dtype))
        return _choice(low, within, moved, branches[half:], operands)

    is_later = body.emit("GreaterOrEqual", index, body.constant(half, low.operand.dtype))
    return _if(low, body, is_later, later, lambda within: _choice(low, within, index, branches[:half], operands))


Steps = Callable[[Lowering], Sequence[str]]


def of_any_length(low: Lowering, n: Any, some: Steps, none: Steps) -> Sequence[str]:
    """Write n steps, or, for an open size that is 0 when the model runs, none: runtimes do not run a Scan of no steps."""
    if least(n) > 0:
        return some(low)
    is_any = low.emit("Greater", low.number(n, "i64"), low.number(0, "i64"))
    return _if(low, low.body, is_any, lambda inner: some(replace(low, body=inner)), lambda inner: none(replace(low, body=inner)))


def scan(low: Lowering, *operands: str, form: Form) -> Sequence[str]:
    """A scan, in this form."""
    attrs = low.attrs
    none = partial(_without_steps, init=operands[attrs.num_consts : attrs.num_consts + attrs.num_carry])
    return none(low) if attrs.length == 0 else of_any_length(low, attrs.length, partial(_steps, operands=operands, form=form), none)


def _steps(low: Lowering, operands: Sequence[str], form: Form) -> list[str]:
    attrs, length = low.attrs, low.attrs.length
    stages, names = Stages(attrs, form), dict(enumerate(operands))
    carry = stages.carry
    for k, v in stages.begun.items():
        row = low.emit("Gather", operands[v], low.number(length - 1 if attrs.reverse else 0, "i64"), axis=0)
        names[k] = low.emit("Add", operands[k], row)

    def put(body: Body, nodes: Iterable[Node], names: dict[int, str]) -> None:
        for case, args, results in nodes:
            if results[0] in stages.scalars:
                names[results[0]] = names[stages.scalars[results[0]]]
                continue
            names.update(zip(results, low.of(body, case).written([names[a] for a in args]), strict=True))

    put(low.body, stages.before, names)
    put(low.body, stages.products(length), names)
    given = stages.scanned or [*stages.slices][:1]
    rows = [names[v] for v in given]
    types = [stages.types[v] for v in (*carry, *given)]
    if not rows:  # Scan counts its steps by what it takes slices of
        rows, types = [low.filled(0, TensorType("i64", (length,)))], [*types, TensorType("i64")]  # an array that is not in the file
    due = [*stages.carried, *stages.stacked]

    def write(body: Body, *arguments: str) -> list[tuple[str, Type]]:
        inner = {**names, **dict(zip([*carry, *given], arguments, strict=False))}
        put(body, stages.within, inner)
        return [(inner[v], stages.types[v]) for v in due]

    if due:
        written = low.emit_all(
            "Scan",
            [*(names[k] for k in carry), *rows],
            len(due),
            body=low.body.subgraph(types, write, in_steps=True),
            num_scan_inputs=len(rows),
            scan_input_directions=[1] * len(rows) if attrs.reverse else None,
            scan_output_directions=[1] * len(stages.stacked) if attrs.reverse and stages.stacked else None,
        )
        names.update(zip(stages.stacked, written[len(carry) :], strict=True))
    put(low.body, stages.of_all_steps(length), names)
    rows = [names[v] for v in stages.rows]
    for k, v in enumerate(stages.rows):
        if v in stages.fixed:  # the same in all steps
            rows[k] = low.emit("Expand", rows[k], low.ints([length, *tensor_type(stages.types[v]).shape]))
    return [*(written[: len(carry)] if due else []), *rows]


def _without_steps(low: Lowering, init: Sequence[str]) -> list[str]:
    empty = [low.filled(0, t) for t in low.results[len(init) :]]
    return [*[low.emit("Identity", x) for x in init], *empty]


def _while(low: Lowering, *operands: str) -> list[str]:
    attrs = low.attrs
    n_cond, n_body = attrs.cond_consts, attrs.body_consts
    of_condition, of_body, init = operands[:n_cond], operands[n_cond : n_cond + n_body], operands[n_cond + n_body :]
    carried = attrs.body.output_types

    def write(body: Body, step: str, going: str, *state: str) -> list[tuple[str, Type]]:
        after = low.graph(body, attrs.body, [*of_body, *state])
        (goes_on,) = low.graph(body, attrs.condition, [*of_condition, *after])
        return [(goes_on, TensorType("bool")), *zip(after, carried, strict=True)]

    (begins,) = low.graph(low.body, attrs.condition, [*of_condition, *init])
    graph = low.body.subgraph([TensorType("i64"), TensorType("bool"), *carried], write)
    return low.emit_all("Loop", ["", begins, *init], len(carried), body=graph)


LOWERINGS: Mapping[str, Rule] = {"cond": _cond, "scan": partial(scan, form=Form()), "while": _while}
