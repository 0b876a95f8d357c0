"""Dropping dead nodes: those that no output depends on."""

from __future__ import annotations

from collections.abc import Sequence

from tidu_cli.frozen import replace
from tidu_cli.graph.columns.large import by_columns
from tidu_cli.graph.graph import Column, Externals, Graph, column
from tidu_cli.graph.walk import forwards, mark_dependencies
from tidu_cli.transforms.origins import kept


def drop_dead_nodes(graphs: Sequence[Graph], first_number: int) -> list[Graph]:
    """The last of these graphs without its dead nodes; of the one before it, what the last still reads, or nothing.

    `graphs` are a linear graph, or a residual graph and its linear graph, numbered on from `first_number`. All inputs stay.
    """
    *before, last = graphs
    last, _ = _with_meta(last, column([o.value for o in last.outputs if o.value is not None]))
    if not before:
        return [last]
    residual, new_id = _with_meta(before[0], values_of(last.external, first_number))
    if not residual.n_nodes:
        return [last]
    if new_id is not None:
        values = [new_id[v] if g == first_number else v for g, v in last.external]
        last = replace(last, external=Externals(last.external.graph, column(values)))
    return [residual, last]


def _with_meta(graph: Graph, roots: Column[int]) -> tuple[Graph, Column[int] | None]:
    found, new_id = live_part(graph, roots)
    return found if new_id is None else kept(graph, found, new_id), new_id


@by_columns("tidu_cli.transforms.columns.kept", lambda external, _: len(external))
def values_of(external: Externals, number: int) -> Column[int]:
    """Those of these externals that are values of the graph of this number."""
    return column([v for g, v in external if g == number])


@by_columns("tidu_cli.transforms.columns.kept", lambda graph, _: graph.n_nodes)
def live_part(graph: Graph, roots: Column[int]) -> tuple[Graph, Column[int] | None]:
    """The graph without the nodes that no root depends on, and the new local id of each old one; None where nothing is dead.

    The ids of dead values are those of the live ones after them.
    """
    # If every value is read, or a root, then the last one is a root, and so all are live.
    if {*graph.args, *roots}.issuperset(range(len(graph.inputs), graph.n_values)):
        return graph, None
    live = [0] * (graph.n_values + len(graph.external))
    for root in roots:
        live[root] = 1
    mark_dependencies(graph, live)

    codes, args = column(), column()
    externals, new_external = Externals(), dict[int, int]()
    n_values = len(graph.inputs)
    new_id = column(range(n_values)) + column([0]) * (graph.n_values - n_values)
    for code, arguments, first, end in forwards(graph, graph.args):
        if 1 not in live[first:end]:
            for k in range(first, end):
                new_id[k] = n_values
            continue
        codes.append(code)
        for argument in arguments:
            if argument < 0 and argument not in new_external:
                new_external[argument] = -1 - len(externals)
                externals.graph.append(graph.external.graph[-1 - argument])
                externals.value.append(graph.external.value[-1 - argument])
            args.append(new_external[argument] if argument < 0 else new_id[argument])
        for k in range(first, end):
            new_id[k], n_values = n_values, n_values + 1
    outputs = tuple(o if o.value is None or o.value < 0 else replace(o, value=new_id[o.value]) for o in graph.outputs)
    return replace(graph, code=codes, args=args, external=externals, outputs=outputs), new_id
