"""materialize: link, deduplicate and prune a document into one self-contained graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, compress
from operator import itemgetter

from tidu_cli.errors import TransformError
from tidu_cli.frozen import Frozen, replace
from tidu_cli.graph.closed import are_marked, first_results, whole_nodes
from tidu_cli.graph.graph import Document, Externals, Meta, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.large import by_columns, no_collection
from tidu_cli.graph.link import GraphBuilder, LogicalGraph, link
from tidu_cli.graph.passes import with_used_passes
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.transforms.batch import holds_graphs, narrowed
from tidu_cli.watching import watch


class Trace(Frozen, slots=False, eq=False):
    """What became of a document's values in its materialized graph."""

    document: Document
    logical: LogicalGraph
    needed: bytearray
    new_id: Sequence[int]

    def value(self, graph: int, argument: int) -> int | None:
        """The new local id of what an argument of a graph stands for; None if no output needs it."""
        flat = self.logical.flat_id(graph, argument)
        return self.new_id[flat] if self.needed[flat] else None

    def values_of(self, graph: int) -> Iterator[int]:
        """The new local ids of a graph's own values, as far as they are needed."""
        own = range(self.logical.base[graph], self.logical.base[graph + 1])
        return (self.new_id[flat] for flat in own if self.needed[flat])


def materialize(document: Document, *, outputs: Sequence[Key] | None = None, needed_inputs: bool = False) -> Document:
    """One graph with the head's outputs (or `outputs`), named like the head.

    Equal values, by ValueKey, become one: nodes of one case that read equal values. A difference of op, attrs, role or mask keeps
    values apart. Nodes that no output depends on go. The inputs are all those of the document that are not bound, in the order in
    which it declares them, so that they do not depend on how a function is computed; with `needed_inputs` only those that an output
    depends on. Nodes that hold graphs and read the same are merged, and what is not needed in such graphs goes, too. Raises
    UnknownNameError for an output that does not exist, TransformError if a detached value is needed.
    """
    single, _ = materialize_traced(document, outputs=outputs, needed_inputs=needed_inputs)
    while holds_graphs(single.head):  # what goes from one node may be what another was kept for
        graph = narrowed(single.head, vocabulary(single.cases))
        if graph is single.head:
            break
        single, _ = materialize_traced(replace(single, graphs=(graph,)), needed_inputs=needed_inputs)
    return single


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
    renamed = [Output(o.key, None if flat is None else new_id[flat], o.type, o.meta) for o, flat in chosen]
    head = document.head
    graph = builder.build(head.name, renamed, meta=head.meta, node_meta=node_meta)
    single = with_used_passes(Document((graph,), document.cases, meta=document.meta), document.passes)
    return single, Trace(document, logical, needed, new_id)


@by_columns("tidu_cli.transforms.columns.kept", lambda logical, *_: logical.n_nodes)
@no_collection()
def copy_nodes(
    logical: LogicalGraph, needed: bytearray, builder: GraphBuilder, inputs: Mapping[int, int], node_meta: dict[int, Meta]
) -> Sequence[int]:
    """Copy the nodes that are needed. Gives the new local id of each flat id that is needed."""
    new_id = [-1] * logical.n_values
    for value, number in inputs.items():
        new_id[value] = number
    # Hash-consing: a node is known by its case and the new ids of what it reads, which are equal just for equal ValueKeys.
    first_of, n_values = dict[tuple[int, ...], int](), builder.n_values
    watched = watch("materializing", logical.n_nodes)
    for g, (graph, base) in enumerate(zip(logical.document.graphs, logical.base, strict=False)):
        ids, firsts, flat = logical.by_argument(g, new_id), first_results(graph), first_results(graph, base)
        nodes = zip(whole_nodes(graph, map(ids.__getitem__, graph.args)), firsts, firsts[1:], strict=False)
        for node, first, end in compress(watched(nodes), are_marked(needed, flat, flat[1:])):
            value = ids[first] = first_of.setdefault(node, n_values)
            if value == n_values:
                n_values += end - first
            if end - first > 1:
                ids[first:end] = range(value, value + end - first)
        new_id[base : base + graph.n_values] = ids[: graph.n_values]
    builder.code, builder.n_values = [node[0] for node in first_of], n_values
    builder.args = [*chain.from_iterable(map(itemgetter(slice(1, None)), first_of))]
    _keep_meta(logical, new_id, first_of.values(), node_meta)
    return new_id


def _keep_meta(logical: LogicalGraph, new_id: Sequence[int], values: Iterable[int], node_meta: dict[int, Meta]) -> None:
    """Enter the meta of nodes that are the first of their kind. Those that have been copied make these values, in order."""
    if any(graph.node_meta for graph in logical.document.graphs):
        node_of, newest = {value: node for node, value in enumerate(values)}, [-1, *accumulate(new_id, max)]
        for graph, base in zip(logical.document.graphs, logical.base, strict=False):
            for node, meta in graph.node_meta.items():
                flat = base + graph.firsts[node]
                if new_id[flat] > newest[flat]:
                    node_meta[node_of[new_id[flat]]] = meta


def _require_no_detached(logical: LogicalGraph, needed: bytearray) -> None:
    missing = [d.digest for k, d in enumerate(logical.document.detached) if needed[logical.base[-1] + k]]
    if missing:
        readers = (graph.name for graph in logical.document.graphs if Externals.DETACHED in graph.external.graph)
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise TransformError(
            f"graph '{next(readers)}' reads the detached value {missing[0]}{more}; resolve it with the document that defines it"
        )
