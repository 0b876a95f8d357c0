"""Batching: a graph applied to many values of some inputs at once, every value that depends on them with a batch axis in front."""

from __future__ import annotations

from collections.abc import Sequence

from tidu_cli.graph.builder import GraphBuilder
from tidu_cli.graph.graph import Column, Graph, column
from tidu_cli.graph.walk import forwards
from tidu_cli.rules.recording.templates import Templates, batch_template
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms.stamp import Stamper
from tidu_cli.watching import watch


def append_batched(
    builder: GraphBuilder, graph: Graph, inputs: Sequence[int], batched: Sequence[bool], size: int, primitives: PrimitiveSet
) -> tuple[Column[int], bytearray]:
    """Append to `builder` the nodes of `graph`, for `size` values of the inputs that are `batched`.

    `inputs` are the arguments in `builder` that stand for the graph's inputs; the batched ones have the batch as their first axis.
    Values of other graphs are shared by all applications. Gives the argument of each local value of `graph`, and whether it is
    batched. Nodes become primary: what was linear in an input is now computed from a given batch of it. Raises MissingRuleError
    naming the node.
    """
    primitives.require_written_out([graph])
    cases, stamper = graph.cases, Stamper.alone(builder)
    templates = Templates(lambda code, mask: batch_template(primitives, cases, code, mask, size))
    new, flags = column(inputs), bytearray(batched)
    externals = [builder.refer(g, v) for g, v in graph.external]
    nodes = watch("batch", graph.n_nodes)(forwards(graph, graph.args))
    for node, (code, reads, _, _) in enumerate(nodes):
        mask = tuple([a >= 0 and flags[a] == 1 for a in reads])
        arguments = [new[a] if a >= 0 else externals[-1 - a] for a in reads]
        if any(mask):
            template = templates.get((code, mask)) or templates.record(graph, node, (code, mask), mask)
            new.extend(stamper.stamp(template, arguments))
        else:
            new.extend(stamper.linear.append(code, arguments))
        flags.extend([any(mask)] * cases.n_results[code])
    return new, flags
