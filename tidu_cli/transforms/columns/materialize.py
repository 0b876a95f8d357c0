"""materialize of large documents: the nodes that are needed, equal ones once, renumbered as a whole."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tidu_cli.graph.builder import GraphBuilder
from tidu_cli.graph.columns.blocks import Bools, Ints, array_of, blocks, spans
from tidu_cli.graph.columns.dataflow import Flow, within
from tidu_cli.graph.graph import Column, Meta, column
from tidu_cli.graph.link import LogicalGraph
from tidu_cli.transforms.columns.common_subexpressions import equal_nodes
from tidu_cli.watching import watch


def copy_nodes(
    logical: LogicalGraph, needed: bytearray, builder: GraphBuilder, inputs: Mapping[int, int], node_meta: dict[int, Meta]
) -> Column[int] | None:
    """Copy the nodes that are needed, and give the new ids of all values, as the plain way does.

    None, and nothing done, where that one is better: several results, or equal values that build upon equal values far up.
    """
    flow = logical.flow
    if flow is None:
        return None
    is_kept = np.frombuffer(needed, np.bool_) & (flow.code >= 0)
    equal = equal_nodes(flow, is_kept)
    if equal is None:
        return None
    later, first = equal
    is_kept[later] = False
    new_id = column([0]) * logical.n_values
    for flat, number in inputs.items():
        new_id[flat] = number
    ids, number = array_of(new_id), builder.n_values
    for block in blocks(0, flow.n_values):
        kept = within(is_kept, block)
        ids[kept] = np.arange(number, number + len(kept))
        number += len(kept)
    ids[later] = ids[first]

    for base, graph in zip(logical.base, logical.document.graphs, strict=False):
        for node, meta in graph.node_meta.items():
            flat = base + len(graph.inputs) + node
            if is_kept[flat]:
                node_meta[new_id[flat] - builder.n_values] = meta
    _write(flow, is_kept, ids, builder)
    return new_id


def _write(flow: Flow, is_kept: Bools, ids: Ints, builder: GraphBuilder) -> None:
    """Write the nodes that are kept. What they read has these ids."""
    pieces = list(blocks(0, flow.n_values))
    n_args = sum(int(np.diff(flow.start[piece.start : piece.stop + 1])[is_kept[piece]].sum()) for piece in pieces)
    builder.code, builder.args = column([0]) * int(np.count_nonzero(is_kept)), column([0]) * n_args
    code, args, node, arg = array_of(builder.code), array_of(builder.args), 0, 0
    for piece in watch("materializing", len(pieces))(pieces):
        kept = within(is_kept, piece)
        read = ids[flow.args[spans(flow.start[kept], flow.start[kept + 1])]]
        code[node : node + len(kept)] = flow.code[kept]
        args[arg : arg + len(read)] = read
        node, arg = node + len(kept), arg + len(read)
    builder.n_values += node
