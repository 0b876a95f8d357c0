"""A graph for many values of some inputs at once."""

from __future__ import annotations

from collections.abc import Collection

from tidu_cli.graph.builder import GraphBuilder
from tidu_cli.graph.graph import Graph, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import of_batch
from tidu_cli.lax.builtin import vocabulary
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms.batch import append_batched


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
