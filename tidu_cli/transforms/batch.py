"""Batching: a graph applied to many values of some inputs at once, every value that depends on them with a batch axis in front."""

from __future__ import annotations

from collections.abc import Sequence

from tidu_cli.errors import MissingRuleError
from tidu_cli.graph.builder import GraphBuilder
from tidu_cli.graph.graph import Column, Graph, column
from tidu_cli.limits import limits, require
from tidu_cli.rules.contract import PrimitiveSet
from tidu_cli.rules.recording import Template
from tidu_cli.rules.templates import batch_template
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
    cases = graph.cases
    arity, n_results = cases.arity, cases.n_results
    new = column(inputs)
    flags = bytearray(batched)
    externals = [builder.refer(g, v) for g, v in graph.external]
    stamper = Appender(builder)
    templates: dict[tuple[int, ...], Template] = {}
    end = 0
    for node, code in enumerate(watch("batch", graph.n_nodes)(graph.code)):
        start, end = end, end + arity[code]
        reads = graph.args[start:end]
        mask = tuple([a >= 0 and flags[a] == 1 for a in reads])
        arguments = [new[a] if a >= 0 else externals[-1 - a] for a in reads]
        if not any(mask):
            first = builder.append(code, arguments)
            new.extend(range(first, first + n_results[code]))
            flags.extend([0] * n_results[code])
            continue
        template = templates.get((code, *mask))
        if template is None:
            try:
                template = templates[code, *mask] = batch_template(primitives, cases, code, mask, size)
            except MissingRuleError as error:
                raise MissingRuleError(f"{graph.describe(node)}: {error}") from None
        new.extend(stamper.append(template, arguments))
        flags.extend([1] * n_results[code])
    return new, flags


class Appender:
    """Stamps templates of primary nodes out at the end of one graph, and what reads no source once for all."""

    def __init__(self, builder: GraphBuilder) -> None:
        self.builder = builder
        self._most = limits().nodes
        self._closed: dict[Template, list[int]] = {}
        self._constants: dict[tuple[int, ...], list[int]] = {}

    def append(self, template: Template, sources: Sequence[int]) -> list[int]:
        """Append the template's nodes. `sources` and what is given are arguments of the builder's graph, one per result.

        Raises LimitError.
        """
        if len(self.builder.code) > self._most:
            require("nodes", len(self.builder.code), "the graph, so far")
        environment = [*sources, *self._closed_arguments(template)]
        for node in template.nodes:
            first = self.builder.append(node.code, [environment[slot] for slot in node.reads])
            environment += range(first, first + node.n_results)
        return [environment[slot] for slot in template.results if slot is not None]

    def _closed_arguments(self, template: Template) -> list[int]:
        known = self._closed.get(template)
        if known is None:
            environment = [0] * template.n_sources
            for node in template.closed:
                constant = (node.code, *(environment[slot] for slot in node.reads))  # templates share their constants
                if constant not in self._constants:
                    first = self.builder.append(node.code, constant[1:])
                    self._constants[constant] = list(range(first, first + node.n_results))
                environment += self._constants[constant]
            known = self._closed[template] = environment[template.n_sources :]
        return known
