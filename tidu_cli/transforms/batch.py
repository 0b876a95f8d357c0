"""Batching: a graph applied to many values of some inputs at once, every value that depends on them with a batch axis in front."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tidu_cli.graph.builder import GraphBuilder
from tidu_cli.graph.graph import Column, Graph, Input, Output, column
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import of_batch
from tidu_cli.graph.walk import forwards
from tidu_cli.lax.builtin import vocabulary
from tidu_cli.rules.recording.templates import Templates, batch_template
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms.stamp import Stamper
from tidu_cli.watching import watch


def vectorized(graph: Graph, keys: Collection[Key], size: int, primitives: PrimitiveSet | None = None) -> tuple[Graph, list[bool]]:
    """A self-contained graph applied to `size` values of the inputs `keys` at once, and which of its outputs depend on these.

    Such inputs and outputs have the batch as their first axis; all others are shared by its items. Raises MissingRuleError naming
    the node.
    """
    batched = [i.key in keys for i in graph.inputs]
    inputs = [Input(i.key, of_batch(i.type, size) if b else i.type) for i, b in zip(graph.inputs, batched, strict=True)]
    builder = GraphBuilder(graph.cases, inputs)
    new, flags = append_batched(builder, graph, range(len(inputs)), batched, size, primitives or vocabulary(graph.cases))
    outputs, depend = [], []
    for output in graph.outputs:
        depends = output.value is not None and flags[output.value] == 1
        type_ = of_batch(output.type, size) if depends else output.type
        outputs.append(Output(output.key, None if output.value is None else new[output.value], type_))
        depend.append(depends)
    return builder.build(graph.name, outputs), depend


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
