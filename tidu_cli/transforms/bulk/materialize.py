"""materialize of large documents: the nodes that are needed, equal ones once, renumbered as a whole."""

from __future__ import annotations

import numpy as np

from tidu_cli.graph.builder import GraphBuilder
from tidu_cli.graph.flow import array_of, column_of, spans
from tidu_cli.graph.graph import Column, Meta, column
from tidu_cli.graph.link import LogicalGraph
from tidu_cli.transforms.bulk.equal import representatives
from tidu_cli.watching import watch

BLOCK = 2**18
"""So many nodes at once: more would take more memory than all that is kept."""


def copy_nodes(
    logical: LogicalGraph, needed: bytearray, builder: GraphBuilder, new_id: Column[int], node_meta: dict[int, Meta]
) -> bool:
    """Copy the nodes that are needed and enter their new ids, as the plain way does.

    False, and nothing done, where that one is better: several results, or equal values that build upon equal values far up.
    """
    flow = logical.flow
    if flow is None:
        return False
    nodes = np.flatnonzero(np.frombuffer(needed, np.bool_) & (flow.code >= 0)).astype(np.int32)
    found = representatives(flow, nodes)
    if found is None:
        return False
    kept = nodes[found[nodes] == nodes]
    ids, first = array_of(new_id), builder.n_values
    ids[kept] = np.arange(first, first + len(kept), dtype=np.int32)
    ids[nodes] = ids[found[nodes]]
    builder.code = column_of(flow.code[kept])
    builder.args = column([0]) * int(np.sum(flow.start[kept + 1] - flow.start[kept]))
    args, end = array_of(builder.args), 0
    for begin in watch("materializing", -(-len(kept) // BLOCK))(range(0, len(kept), BLOCK)):
        block = kept[begin : begin + BLOCK]
        old = flow.args[spans(flow.start[block], flow.start[block + 1])]
        start, end = end, end + len(old)
        args[start:end] = ids[old]
    builder.n_values += len(kept)
    for base, graph in zip(logical.base, logical.document.graphs, strict=False):
        for node, meta in graph.node_meta.items():
            flat = base + len(graph.inputs) + node
            if needed[flat] and found[flat] == flat:
                node_meta[new_id[flat] - first] = meta
    return True
