"""Loops written out, where stop_gradient stands in their steps: so that what it passes on can be held in difference quotients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tidu_cli.frozen import replace
from tidu_cli.graph.closed import cases_within, forwards, named_graphs
from tidu_cli.graph.graph import Case, Document, Graph
from tidu_cli.graph.types import TensorType
from tidu_cli.rules.recording.trace import Trace, recorded
from tidu_cli.rules.terms import Term
from tidu_cli.rules.vocabulary import PrimitiveSet

STOP = "stop_gradient"

MOST_NODES = 20_000
"""Loops that would be more nodes stay loops."""


def unrolled(document: Document, primitives: PrimitiveSet) -> Document:
    """A document of one graph, with scans whose steps hold stop_gradient written out, at any depth, where they are few nodes."""
    (graph,) = document.graphs
    if not any(_is_unrolled(case) for case in _used(graph)):
        return document
    trace = Trace(primitives, graph.cases)
    results = _results(trace, graph, [trace.source(i.type, linear=False) for i in graph.inputs])
    ends = [replace(o, value=None if term is None else term.slot) for o, term in zip(graph.outputs, results, strict=True)]
    return replace(document, graphs=(recorded(trace, graph.name, graph.inputs, ends),))


def not_held(document: Document, primitives: PrimitiveSet) -> Iterator[str]:
    """Why what stop_gradient passes on within the nodes of a graph cannot be held, once scans are written out."""
    (graph,) = unrolled(document, primitives).graphs
    for case in dict.fromkeys(_used(graph)):
        inner = (node.op for d in primitives.reached_from([case.op]) for node in d.graphs["forward"].nodes)
        if case.op == STOP or not (_holds(case) or STOP in inner):
            continue
        if case.op == "scan":
            why = f"of {case.attrs.length} steps is more than {MOST_NODES:,} nodes"  # type: ignore[attr-defined]
        else:
            why = "runs as its values say" if named_graphs(case.attrs) else "has a graph of its own"
        yield f"{STOP} passes on values within {case.op}, which {why}, so that difference quotients cannot hold them still"


def _used(graph: Graph) -> list[Case]:
    return [graph.cases[code] for code in sorted(set(graph.code))]


def _holds(case: Case) -> bool:
    return any(inner.op == STOP for inner in cases_within([case]))


def _is_unrolled(case: Case) -> bool:
    arrays = all(isinstance(t, TensorType) for t in (*case.operands, *case.results))
    return case.op == "scan" and _holds(case) and arrays and 0 < _size(case) <= MOST_NODES


def _size(case: Case) -> int:
    """The nodes that a node is, scans within it written out."""
    if case.op != "scan":
        return 1
    attrs: Any = case.attrs
    body = attrs.body.graph
    sizes = {code: _size(body.cases[code]) for code in set(body.code)}
    return int(attrs.length * (len(case.operands) + sum(sizes[code] for code in body.code)))


def _results(trace: Trace, graph: Graph, inputs: Sequence[Term]) -> list[Term | None]:
    """The outputs of a graph for these inputs."""
    values = list(inputs)
    for code, args, _, _ in forwards(graph, graph.args):
        case, operands = graph.cases[code], [values[a] for a in args]
        values += _steps(trace, case, operands) if _is_unrolled(case) else trace.apply(case.op, case.attrs, operands)
    return [None if o.value is None else values[o.value] for o in graph.outputs]


def _steps(trace: Trace, case: Case, operands: Sequence[Term]) -> list[Term]:
    """A scan, step by step."""
    attrs: Any = case.attrs
    n = attrs.num_consts + attrs.num_carry
    consts, carry, xs = operands[: attrs.num_consts], list(operands[attrs.num_consts : n]), operands[n:]
    rows: list[list[Term]] = []
    for step in range(attrs.length)[:: -1 if attrs.reverse else 1]:
        taken = []
        for x in xs:
            shape = x.type.shape
            limits = {"start_indices": (step, *[0] * (len(shape) - 1)), "limit_indices": (step + 1, *shape[1:]), "strides": None}
            taken.append(trace.emit("reshape", trace.emit("slice", x, **limits), new_sizes=shape[1:]))
        after = [term for term in _results(trace, attrs.body.graph, [*consts, *carry, *taken]) if term is not None]
        carry = after[: attrs.num_carry]
        rows.append([trace.emit("reshape", y, new_sizes=(1, *y.type.shape)) for y in after[attrs.num_carry :]])
    columns = zip(*(rows[::-1] if attrs.reverse else rows), strict=True)
    return [*carry, *[trace.emit("concatenate", *column, dimension=0) for column in columns]]
