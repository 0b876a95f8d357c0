"""The nodes of large graphs that are kept, renumbered as a whole: those that materialize needs, each once, or all live ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from tidu_cli.frozen import replace
from tidu_cli.graph.builder import GraphBuilder
from tidu_cli.graph.columns.blocks import Bools, Ints, array_of, before_each, blocks, column_of, counts, spans
from tidu_cli.graph.columns.dataflow import Flow, has_single_results, number_by_first_use, peel, within
from tidu_cli.graph.graph import Column, Externals, Graph, Meta, column
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
    pieces = list(blocks(0, flow.n_values))
    for block in pieces:
        kept = within(is_kept, block)
        ids[kept] = np.arange(number, number + len(kept))
        number += len(kept)
    ids[later] = ids[first]

    for base, graph in zip(logical.base, logical.document.graphs, strict=False):
        for node, meta in graph.node_meta.items():
            flat = base + len(graph.inputs) + node
            if is_kept[flat]:
                node_meta[new_id[flat] - builder.n_values] = meta
    builder.code, builder.args = _written(flow, is_kept, ids, watch("materializing", len(pieces))(pieces))
    builder.n_values += len(builder.code)
    return new_id


def values_of(external: Externals, number: int) -> Column[int]:
    """Those of these externals that are values of the graph of this number."""
    return column_of(array_of(external.value)[array_of(external.graph) == number])


def live_part(graph: Graph, roots: Column[int]) -> tuple[Graph, Column[int] | None] | None:
    """What the plain way does; None if something is dead, and some node has several results."""
    n_inputs, n_external = len(graph.inputs), len(graph.external)
    if _are_all_read(graph, roots):
        return graph, None
    code = np.concatenate([np.full(n_inputs, -1, np.int32), array_of(graph.code)])
    if not has_single_results(graph.cases, code):
        return None
    flow = Flow.of(code, array_of(graph.args), graph.cases)
    is_local = flow.args >= 0
    own = flow.args[is_local]
    held = counts(own, flow.n_values)
    np.add.at(held, array_of(roots)[array_of(roots) >= 0], 1)
    peel(held, before_each(is_local)[flow.start], own)
    is_live = held > 0
    is_live[:n_inputs] = True

    new_id = before_each(is_live)[:-1]
    # Externals, which are negative, count from the end.
    ids = np.concatenate([new_id, np.arange(-n_external, 0, dtype=np.int32)])
    codes, args = _written(flow, is_live & (flow.code >= 0), ids, blocks(0, flow.n_values))
    kept = number_by_first_use(array_of(args), n_external)
    external = Externals(column_of(array_of(graph.external.graph)[kept]), column_of(array_of(graph.external.value)[kept]))
    renumbered = column_of(new_id)
    outputs = tuple(o if o.value is None or o.value < 0 else replace(o, value=renumbered[o.value]) for o in graph.outputs)
    return replace(graph, code=codes, args=args, external=external, outputs=outputs), renumbered


def _are_all_read(graph: Graph, roots: Column[int]) -> bool:
    is_read = np.zeros(graph.n_values + len(graph.external), np.bool_)  # externals, which are negative, count from the end
    for values in (array_of(graph.args), array_of(roots)):
        for block in blocks(0, len(values)):
            is_read[values[block]] = True
    return bool(is_read[len(graph.inputs) : graph.n_values].all())


def _written(flow: Flow, is_kept: Bools, ids: Ints, pieces: Iterable[slice]) -> tuple[Column[int], Column[int]]:
    """The columns `code` and `args` of the nodes that are kept. What they read has these ids; `pieces` are blocks of all values."""
    n_args = sum(int(np.diff(flow.start[b.start : b.stop + 1])[is_kept[b]].sum()) for b in blocks(0, flow.n_values))
    codes, arguments = column([0]) * int(np.count_nonzero(is_kept)), column([0]) * n_args
    code, args, node, arg = array_of(codes), array_of(arguments), 0, 0
    for piece in pieces:
        kept = within(is_kept, piece)
        read = ids[flow.args[spans(flow.start[kept], flow.start[kept + 1])]]
        code[node : node + len(kept)] = flow.code[kept]
        args[arg : arg + len(read)] = read
        node, arg = node + len(kept), arg + len(read)
    return codes, arguments
