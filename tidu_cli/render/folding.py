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
    producers = _producers(graph)
    feeding, constant = _feeding(graph, producers)
    component = _components(feeding, constant)
    reader = _readers(graph, producers, feeding, constant, component)
    leader = list(range(graph.n_nodes))
    for node in range(graph.n_nodes - 1, -1, -1):
        if component[node] != node:
            leader[node] = leader[component[node]]
        elif node in apart or (read_by := reader[node]) in apart:
            continue
        elif read_by > node and (constant[node] or feeding[read_by][1] == {node}):
            leader[node] = leader[read_by]
    return leader


def _producers(graph: Graph) -> list[int]:
    """Of each local value the node that makes it, -1 for inputs."""
    producers = [-1] * len(graph.inputs)
    for node, code in enumerate(graph.code):
        producers += [node] * graph.cases.n_results[code]
    return producers


def _feeding(graph: Graph, producers: list[int]) -> tuple[list[tuple[set[int], set[int]]], list[bool]]:
    """Of each node the constant nodes that it reads, and those it depends on, -1 for inputs; and whether it is constant itself."""
    feeding: list[tuple[set[int], set[int]]] = []
    constant: list[bool] = []
    for case, arguments in graph.nodes():
        fixed, moving, alone = set(), set(), True
        for slot, argument in enumerate(arguments):
            node = producers[argument] if argument >= 0 else -1
            if node >= 0 and constant[node]:
                fixed.add(node)
                continue
            alone = False
            if case.mask is None or case.mask[slot]:
                moving.add(node)
        feeding.append((fixed, moving))
        constant.append(alone)
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


def _readers(
    graph: Graph, producers: list[int], feeding: list[tuple[set[int], set[int]]], constant: list[bool], component: list[int]
) -> list[int]:
    """Of each component the only node outside it that reads it, -1 if none does, or _SEVERAL."""
    reader = [-1] * graph.n_nodes

    def read(value_of: int, by: int) -> None:
        one = component[value_of]
        reader[one] = by if reader[one] in (-1, by) else _SEVERAL

    for node, (_, arguments) in enumerate(graph.nodes()):
        for argument in arguments:
            if argument >= 0 and (made_by := producers[argument]) >= 0 and component[made_by] != component[node]:
                read(made_by, node)
    for output in graph.outputs:
        if output.value is not None and output.value >= 0 and producers[output.value] >= 0:
            reader[component[producers[output.value]]] = _SEVERAL
    return reader
