"""Graphs as functions: node by node, without recursion, and a value is let go once the last node that reads it has run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidu_cli.errors import MissingRuleError, placed
from tidu_cli.graph.closed import forwards
from tidu_cli.graph.graph import Case, Graph

Function = Callable[..., tuple[Any, ...]]


def graph_function(graph: Graph, function_of: Callable[[Case], Function]) -> Function:
    """The function of a self-contained graph, from its inputs in order to its outputs; `function_of` a case is asked for once.

    Outputs that are structural zeros are None. Raises MissingRuleError naming the node of a case that has no function.
    """
    functions: dict[int, Function] = {}
    for node, code in enumerate(graph.code):
        if code not in functions:
            functions[code] = _function(graph, node, function_of)
    outputs = [o.value for o in graph.outputs]
    steps = [(functions[code], reads, dying) for code, reads, dying in _with_last_uses(graph)]

    def run(*inputs: Any) -> tuple[Any, ...]:
        values: list[Any] = list(inputs)
        for function, reads, dying in steps:
            values += function(*[values[k] for k in reads])
            for k in dying:
                values[k] = None
        return tuple([None if k is None else values[k] for k in outputs])

    return run


def _function(graph: Graph, node: int, function_of: Callable[[Case], Function]) -> Function:
    try:
        return function_of(graph.case(node))
    except MissingRuleError as error:
        raise MissingRuleError(placed(graph.describe(node), error)) from None


def _with_last_uses(graph: Graph) -> list[tuple[int, tuple[int, ...], tuple[int, ...]]]:
    """Of each node its code, what it reads, and the values that nothing needs after it."""
    nodes = list(forwards(graph, graph.args))
    live = bytearray(graph.n_values)
    for o in graph.outputs:
        if o.value is not None:
            live[o.value] = 1
    steps = []
    for code, reads, first, end in reversed(nodes):
        dying = [k for k in range(first, end) if not live[k]]
        for k in reads:
            if not live[k]:
                live[k] = 1
                dying.append(k)
        steps.append((code, reads, tuple(dying)))
    steps.reverse()
    return steps
