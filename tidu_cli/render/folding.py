"""Which nodes of a large graph may be drawn as one: runs of nodes that only hand a value on, and what is computed of constants.

A fold never hides a branch: it has one result that others read, or none but constants go into it. So folding makes no cycles.
"""

from __future__ import annotations

from collections.abc import Container

from tidu_cli.graph.graph import Graph

_SEVERAL = -2
"""Instead of a reader: a value is read by more than one node, or is an output."""


def folds(graph: Graph, apart: Container[int] = ()) -> list[int]:
    """For each node the node that it is drawn with: the last of its fold, or itself. Linear in the size of the graph.

    A node joins its reader if nothing else reads it and the reader has no other operand of this graph, not counting constants
    and, in linear nodes, inactive operands, which are held fixed. Nodes computed of constants alone join one another, and
    together their reader, if they have one only. The nodes `apart` are in no fold.
    """
    feeding, constant = _feeding(graph)
    component = _components(feeding, constant)
    reader = _readers(graph, component)
    leader = list(range(graph.n_nodes))
    for node in range(graph.n_nodes - 1, -1, -1):
        if component[node] != node:
            leader[node] = leader[component[node]]
        elif node in apart or (read_by := reader[node]) in apart:
            continue
        elif read_by > node and (constant[node] or feeding[read_by][1] == {node}):
            leader[node] = leader[read_by]
    return leader


def _made_by(graph: Graph, argument: int) -> int:
    """The node of this graph that makes what an argument stands for; -1 for inputs and values of other graphs."""
    return graph.producer(argument)[0] if argument >= len(graph.inputs) else -1


def _feeding(graph: Graph) -> tuple[list[tuple[set[int], set[int]]], list[bool]]:
    """Of each node the constant nodes that it reads, and those it depends on, -1 for inputs; and whether it is constant itself."""
    feeding: list[tuple[set[int], set[int]]] = []
    constant: list[bool] = []
    for case, arguments in graph.nodes():
        nodes = [_made_by(graph, argument) for argument in arguments]
        fixed = {node for node in nodes if node >= 0 and constant[node]}
        moving = {n for slot, n in enumerate(nodes) if n not in fixed and (case.mask is None or case.mask[slot])}
        feeding.append((fixed, moving))
        constant.append(fixed.issuperset(nodes))
    return feeding, constant


def _components(feeding: list[tuple[set[int], set[int]]], constant: list[bool]) -> list[int]:
    """Of each constant node the last one of those it hangs together with; of any other node itself."""
    parent = list(range(len(feeding)))

    def last(node: int) -> int:
        while parent[node] != node:
            parent[node] = node = parent[parent[node]]
        return node

    for node, (fixed, _) in enumerate(feeding):
        if constant[node]:
            for other in fixed:
                parent[last(other)] = node
    return [last(node) for node in range(len(feeding))]


def _readers(graph: Graph, component: list[int]) -> list[int]:
    """Of each component the only node outside it that reads it, -1 if none does, or _SEVERAL."""
    reader = [-1] * graph.n_nodes

    def read(argument: int, by: int) -> None:
        node = _made_by(graph, argument)
        if node >= 0 and (by < 0 or component[node] != component[by]):
            one = component[node]
            reader[one] = by if reader[one] in (-1, by) else _SEVERAL

    for node, (_, arguments) in enumerate(graph.nodes()):
        for argument in arguments:
            read(argument, node)
    for output in graph.outputs:
        if output.value is not None:
            read(output.value, _SEVERAL)
    return reader
