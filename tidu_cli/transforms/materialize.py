"""materialize: link, deduplicate and prune a document into one self-contained graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tidu_cli.errors import TransformError
from tidu_cli.graph.builder import GraphBuilder
from tidu_cli.graph.columns.large import by_columns
from tidu_cli.graph.graph import Column, Document, Externals, Meta, column
from tidu_cli.graph.keys import Key
from tidu_cli.graph.link import LogicalGraph, link
from tidu_cli.graph.passes import with_used_passes
from tidu_cli.graph.walk import forwards
from tidu_cli.lax.builtin import vocabulary
from tidu_cli.transforms.simplify import holds_graphs, simplified
from tidu_cli.watching import watch


@dataclass(frozen=True, eq=False)
class Trace:
    """What became of a document's values in its materialized graph."""

    document: Document
    logical: LogicalGraph
    needed: bytearray
    new_id: Column[int]

    def value(self, graph: int, argument: int) -> int | None:
        """The new local id of what an argument of a graph stands for; None if no output needs it."""
        flat = self.logical.flat_id(graph, argument)
        return self.new_id[flat] if self.needed[flat] else None

    def values_of(self, graph: int) -> Iterator[int]:
        """The new local ids of a graph's own values, as far as they are needed."""
        for flat in range(self.logical.base[graph], self.logical.base[graph + 1]):
            if self.needed[flat]:
                yield self.new_id[flat]


def materialize(document: Document, *, outputs: Sequence[Key] | None = None, needed_inputs: bool = False) -> Document:
    """One graph with the head's outputs (or `outputs`), named like the head.

    Equal values, by ValueKey, become one: nodes of one case that read equal values. A difference of op, attrs, role or mask keeps
    values apart. Nodes that no output depends on go. The inputs are all those of the document that are not bound, in the order in
    which it declares them, so that they do not depend on how a function is computed; with `needed_inputs` only those that an output
    depends on. Nodes that hold graphs and read the same are merged, and what is not needed in such graphs goes, too. Raises
    UnknownNameError for an output that does not exist, TransformError if a detached value is needed.
    """
    found, _ = materialize_traced(document, outputs=outputs, needed_inputs=needed_inputs)
    if not holds_graphs(found.head):
        return found
    graph = simplified(found.head, vocabulary(found.cases))
    return found if graph is found.head else materialize_traced(replace(found, graphs=(graph,)), needed_inputs=needed_inputs)[0]


def materialize_traced(
    document: Document, *, outputs: Sequence[Key] | None = None, needed_inputs: bool = False
) -> tuple[Document, Trace]:
    """Likewise, and what became of the document's values."""
    logical = link(document)
    chosen = logical.select_outputs(outputs)
    needed = logical.depends_on(flat for _, flat in chosen if flat is not None)
    _require_no_detached(logical, needed)

    node_meta: dict[int, Meta] = {}
    declared = [i for i in document.free_inputs if not needed_inputs or needed[logical.source[i.key]]]
    builder = GraphBuilder(document.cases, declared)
    new_id = copy_nodes(logical, needed, builder, {logical.source[i.key]: k for k, i in enumerate(declared)}, node_meta)
    renamed = [replace(o, value=None if flat is None else new_id[flat]) for o, flat in chosen]
    head = document.head
    graph = builder.build(head.name, renamed, meta=head.meta, node_meta=node_meta)
    found = with_used_passes(Document((graph,), document.cases, meta=document.meta), document.passes)
    return found, Trace(document, logical, needed, new_id)


@by_columns("tidu_cli.transforms.columns.materialize", lambda logical, *_: logical.n_nodes)
def copy_nodes(
    logical: LogicalGraph, needed: bytearray, builder: GraphBuilder, inputs: Mapping[int, int], node_meta: dict[int, Meta]
) -> Column[int]:
    """Copy the nodes that are needed. Gives the new local id of each flat id that is needed."""
    new_id = column([0]) * logical.n_values
    for flat, number in inputs.items():
        new_id[flat] = number
    # Hash-consing: a node is known by its case and the new ids of what it reads, which are equal just for equal ValueKeys.
    first_of: dict[tuple[int, Sequence[int]], int] = {}
    watched = watch("materializing", logical.n_nodes)
    for graph, args, base in zip(logical.document.graphs, logical.args, logical.base, strict=False):
        operands = map(new_id.__getitem__, args)
        for node, (code, reads, first, end) in enumerate(watched(forwards(graph, operands, base))):
            if not (needed[first] or 1 in needed[first:end]):
                continue
            value = first_of.get((code, reads))
            if value is None:
                if node in graph.node_meta:
                    node_meta[len(builder.code)] = graph.node_meta[node]
                value = first_of[code, reads] = builder.append(code, reads)
            new_id[first] = value
            if end - first > 1:
                new_id[first:end] = column(range(value, value + end - first))
    return new_id


def _require_no_detached(logical: LogicalGraph, needed: bytearray) -> None:
    missing = [d.digest for k, d in enumerate(logical.document.detached) if needed[logical.base[-1] + k]]
    if missing:
        readers = (graph.name for graph in logical.document.graphs if Externals.DETACHED in graph.external.graph)
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise TransformError(
            f"graph '{next(readers)}' reads the detached value {missing[0]}{more}; resolve it with the document that defines it"
        )
