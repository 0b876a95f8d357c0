"""What a document costs: operations, depth and memory, told from types before anything runs. Linear in its size, without NumPy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from tidu_cli.frozen import Frozen, field
from tidu_cli.graph.graph import Case, Column, Document, Graph, column
from tidu_cli.graph.link import LogicalGraph, link
from tidu_cli.lax.builtin import vocabulary
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.runtime.liveness import Liveness


class Flops(Frozen):
    """Operations of some nodes. `unknown` of the nodes are left out, since a detached reference hides an operand's type."""

    known: int
    unknown: int = 0


class Evaluation(Frozen):
    """What evaluating the head's outputs takes.

    `nodes` counts those that some output needs, `depth` those on the longest path among them. `peak` is the greatest number of
    bytes alive at once, inputs and results included (see `tidu_cli.runtime.liveness`); None where a detached reference hides one.
    `depths` counts, for each graph, the nodes on the longest path that ends in it, needed or not; it may begin in another.
    """

    nodes: int
    depth: int
    flops: Flops
    peak: int | None
    depths: tuple[int, ...] = field(default=(), compare=False)


def flops(graph: Graph, primitives: PrimitiveSet | None = None) -> Flops:
    """The operations of all nodes of a graph."""
    return _flops(graph.cases.cases, Counter(graph.code), primitives or vocabulary(graph.cases))


def evaluation(document: Document) -> Evaluation:
    """What evaluating the head's outputs takes, nodes being run in order, and each value let go of after its last use.

    The estimate is that of `estimate_memory` for the materialized document, except that nodes that compute the same count each.
    """
    primitives, cases = vocabulary(document.cases), document.cases.cases
    logical, head = link(document), len(document.graphs) - 1
    depth, alive = _depth(logical), Liveness(logical, primitives)
    made = zip(logical.base, logical.base[1:], strict=False)
    used = {code: n for code, n in enumerate(alive.count) if n}
    return Evaluation(
        nodes=sum(used.values()),
        depth=max((depth[logical.flat_id(head, o.value)] for o in document.head.outputs if o.value is not None), default=0),
        flops=_flops(cases, used, primitives),
        peak=None if any(None in cases[code].operands for code in used) else alive.given + alive.peak,
        depths=tuple(max(depth[first:end], default=0) for first, end in made),
    )


def lesser(before: Document, after: Document) -> tuple[Document, Evaluation, Evaluation]:
    """The document whose evaluation peaks lower, `before` where `after` does not; and what evaluating each of them takes."""
    old, new = evaluation(before), evaluation(after)
    assert old.peak is not None and new.peak is not None  # nothing is detached here
    return (before if new.peak >= old.peak else after), old, new


def _flops(cases: list[Case], counts: Mapping[int, int], primitives: PrimitiveSet) -> Flops:
    known = unknown = 0
    for code, n in counts.items():
        case = cases[code]
        if None in case.operands:
            unknown += n
        else:
            known += n * primitives[case.op].evaluation.flops(case.attrs, case.operands, case.results)  # type: ignore[arg-type]
    return Flops(known, unknown)


def _depth(logical: LogicalGraph) -> Column[int]:
    """For each value the number of nodes on the longest path that ends in it; inputs stand for what they are bound to."""
    depth = column([0]) * logical.n_values
    for graph, args, base in zip(logical.document.graphs, logical.args, logical.base, strict=False):
        arity, n_results, end, value = graph.cases.arity, graph.cases.n_results, 0, base + len(graph.inputs)
        for code in graph.code:  # which is twice as fast as a walk that serves all
            start, end = end, end + arity[code]
            deepest = 0
            for a in args[start:end]:
                if depth[a] > deepest:
                    deepest = depth[a]
            for _ in range(n_results[code]):
                depth[value] = deepest + 1
                value += 1
    return depth
