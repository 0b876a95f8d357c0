"""How many steps a Loop runs, where its condition depends on what is known alone.

That part of its graph is run by itself, step by step: what the condition reads, and what this reads of the step before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.onnx.loading import package
from tidu_cli.adapters.onnx.reading.inputs import read_by
from tidu_cli.adapters.onnx.reading.node import Node, Value

MOST_RUN = 2**14
"""As many nodes are run at most to count steps; a loop whose count takes more is a while loop."""


class Count(NamedTuple):
    """How many steps there are, None where that is not known; and then the inputs of the model that it depends on."""

    steps: int | None
    inputs: Sequence[str] = ()


def count_of(node: Node, most: int | None, initial: Sequence[Value]) -> Count:
    """The count of a loop that begins, and runs at most as many steps, if there is a number. Raises DocumentError."""
    graph = node["body"]
    if graph is None or len(graph.input) < len(initial) + 2 or len(graph.output) < len(initial) + 1:
        return Count(None)
    carried, nodes, names = _part(graph, len(initial))
    known = {k: node.importing.known(initial[k]) for k in carried}
    own = {t.name for t in (*graph.input, *graph.initializer)} | {name for n in nodes for name in n.output}
    outer = [node.scope.get(name) for name in names - own]
    unknown = [initial[k] for k, x in known.items() if x is None or isinstance(x, list)]
    unknown += [x for x in outer if isinstance(x, Array) and node.importing.known(x) is None]
    if unknown:
        return Count(None, list(dict.fromkeys(name for x in unknown for name in node.importing.sources(x))))
    condition = package().GraphProto(name=graph.name)
    condition.node.extend(nodes)
    condition.initializer.extend(t for t in graph.initializer if t.name in names)
    condition.input.extend([*graph.input[:2], *[graph.input[2 + k] for k in carried]])
    condition.output.extend([graph.output[0], *[graph.output[1 + k] for k in carried]])
    is_constant = not carried and graph.input[0].name not in names
    return Count(_steps(node, condition, list(known.values()), most, is_constant))


def _part(graph: Any, n: int) -> tuple[list[int], list[Any], set[str]]:
    """The carried values, nodes and names that the condition of a loop's graph depends on, whatever the step."""
    carried: set[int] = set()
    while True:
        names = {graph.output[0].name, *[graph.output[1 + k].name for k in carried]}
        nodes = []
        for proto in reversed(graph.node):
            if not names.isdisjoint(proto.output):
                nodes.append(proto)
                names.update(name for name in read_by(proto) if name)
        reached = {k for k in range(n) if graph.input[2 + k].name in names}
        if reached <= carried:
            return sorted(carried), nodes[::-1], names
        carried |= reached


def _steps(node: Node, condition: Any, states: list[Value], most: int | None, is_constant: bool) -> int | None:
    """After how many steps the condition is false, or as many as there are at most; None if that is not seen."""
    number = 0
    while most is None or number < most:
        if number * (len(condition.node) + 1) > MOST_RUN:
            return None
        operands = [np.array(number, np.int64), np.array(True), *states]
        goes_on, *states = node.importing.run(condition, node.scope, operands, is_written=False)
        known = node.importing.known(goes_on)
        number += 1
        if known is None or np.size(known) != 1:
            return None
        if not known.all():
            return number
        if is_constant:  # and true
            return most
    return number
