"""Dropping dead nodes: those that no output depends on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tidu_cli.graph.columns.large import is_large
from tidu_cli.graph.graph import Column, Externals, Graph, column


def drop_dead_nodes(graphs: Sequence[Graph], first_number: int) -> list[Graph]:
    """The last of these graphs without its dead nodes; of the one before it, what the last still reads, or nothing.

    `graphs` are a linear graph, or a residual graph and its linear graph, numbered on from `first_number`. All inputs stay.
    """
    *before, last = graphs
    last = _with_live_nodes(last, (o.value for o in last.outputs if o.value is not None))[0]
    if not before:
        return [last]
    (residual,) = before
    external = last.external
    residual, new_id = _with_live_nodes(residual, (v for g, v in external if g == first_number))
    if not residual.n_nodes:
        return [last]
    values = [new_id[v] if g == first_number else v for g, v in external]
    return [residual, replace(last, external=Externals(external.graph, column(values)))]


def _with_live_nodes(graph: Graph, roots: Iterable[int]) -> tuple[Graph, Column[int]]:
    """The graph without the nodes that no root depends on, and the new local id of each old one."""
    roots = list(roots)
    if is_large(graph.n_nodes):
        from tidu_cli.transforms.columns.dead import with_live_nodes

        in_bulk = with_live_nodes(graph, roots)
        if in_bulk is not None:
            return in_bulk
    arity, n_results = graph.cases.arity, graph.cases.n_results
    n_inputs = len(graph.inputs)
    live = bytearray(graph.n_values)
    for root in roots:
        if root >= 0:
            live[root] = 1
    end, value = len(graph.args), graph.n_values
    for code in reversed(graph.code):
        start, first = end - arity[code], value - n_results[code]
        if 1 in live[first:value]:
            for argument in graph.args[start:end]:
                if argument >= 0:
                    live[argument] = 1
        end, value = start, first

    codes, args = column(), column()
    externals, new_external = Externals(), dict[int, int]()
    new_id = column(range(n_inputs)) + column([0]) * (graph.n_values - n_inputs)
    end, value, n_values = 0, n_inputs, n_inputs
    for code in graph.code:
        start, first = end, value
        end, value = start + arity[code], first + n_results[code]
        if 1 not in live[first:value]:
            continue
        codes.append(code)
        for argument in graph.args[start:end]:
            if argument < 0 and argument not in new_external:
                new_external[argument] = -1 - len(externals)
                externals.graph.append(graph.external.graph[-1 - argument])
                externals.value.append(graph.external.value[-1 - argument])
            args.append(new_external[argument] if argument < 0 else new_id[argument])
        for k in range(first, value):
            new_id[k], n_values = n_values, n_values + 1
    outputs = tuple(o if o.value is None or o.value < 0 else replace(o, value=new_id[o.value]) for o in graph.outputs)
    return replace(graph, code=codes, args=args, external=externals, outputs=outputs), new_id
