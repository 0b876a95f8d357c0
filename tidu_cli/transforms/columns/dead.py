"""Dropping the dead nodes of large graphs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tidu_cli.graph.columns.blocks import array_of, before_each, blocks, column_of, counts, spans
from tidu_cli.graph.columns.dataflow import Flow, has_single_results, number_by_first_use, peel
from tidu_cli.graph.graph import Column, Externals, Graph


def values_of(external: Externals, number: int) -> Column[int]:
    """Those of these externals that are values of the graph of this number."""
    return column_of(array_of(external.value)[array_of(external.graph) == number])


def live_part(graph: Graph, roots: Column[int]) -> tuple[Graph, Column[int] | None] | None:
    """What the plain way does; None if something is dead, and some node has several results."""
    n_inputs = len(graph.inputs)
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


def _are_all_read(graph: Graph, roots: Column[int]) -> bool:
    is_read = np.zeros(graph.n_values + len(graph.external), np.bool_)  # externals, which are negative, count from the end
    for values in (array_of(graph.args), array_of(roots)):
        for block in blocks(0, len(values)):
            is_read[values[block]] = True
    return bool(is_read[len(graph.inputs) : graph.n_values].all())
