"""Dropping the dead nodes of large graphs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from tidu_cli.graph.columns.blocks import array_of, column_of, counts, spans
from tidu_cli.graph.columns.dataflow import Flow, has_single_results, peel
from tidu_cli.graph.graph import Column, Externals, Graph
from tidu_cli.transforms.columns.externals import number_by_first_use
from tidu_cli.transforms.columns.stamps import before_each


def with_live_nodes(graph: Graph, roots: Iterable[int]) -> tuple[Graph, Column[int]] | None:
    """The graph without the nodes that no root depends on, and the new local id of each old one.

    None if some node has several results.
    """
    n_inputs = len(graph.inputs)
    code = np.concatenate([np.full(n_inputs, -1, np.int32), array_of(graph.code)])
    if not has_single_results(graph.cases, code):
        return None
    flow = Flow.of(code, array_of(graph.args), graph.cases)
    is_local = flow.args >= 0
    own = flow.args[is_local]
    held = counts(own, flow.n_values)
    np.add.at(held, np.array([root for root in roots if root >= 0], np.int64), 1)
    peel(held, before_each(is_local)[flow.start], own)
    is_live = held > 0
    is_live[:n_inputs] = True

    new_id = np.where(is_live, before_each(is_live)[:-1], 0).astype(np.int32)
    live = np.flatnonzero(is_live)
    args = flow.args[spans(flow.start[live], flow.start[live + 1])]
    is_local = args >= 0
    args[is_local] = new_id[args[is_local]]
    kept = number_by_first_use(args, len(graph.external))
    external = Externals(column_of(array_of(graph.external.graph)[kept]), column_of(array_of(graph.external.value)[kept]))
    renumbered = column_of(new_id)
    outputs = tuple(o if o.value is None or o.value < 0 else replace(o, value=renumbered[o.value]) for o in graph.outputs)
    live_graph = replace(
        graph, code=column_of(flow.code[live[n_inputs:]]), args=column_of(args), external=external, outputs=outputs
    )
    return live_graph, renumbered
