"""Choices that comparisons of floats make, as `relu` and its derivative do: by operators that do not branch at each element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tidu_cli.graph.closed import forwards
from tidu_cli.graph.graph import Case, Graph
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.arrays.structural import literal_array

LEAST = 2**14
"""Choices of fewer elements are Where: what else they take is more than they save."""


def choices(graph: Graph) -> tuple[Mapping[int, str], Mapping[int, int]]:
    """The nodes that are written in another form, by the names of `templates.FORMS`; and comparisons behind Relu.

    Masks that come in, or that places decide, are in runs, at which Where is quick. What Relu gives is compared with 0 instead of
    what it takes, so that it is the one reader of a convolution, which runtimes make it a part of. It has the number of Relu.
    """
    forms: dict[int, str] = {}
    behind: dict[int, int] = {}
    made: dict[int, tuple[Case, Sequence[int]]] = {}
    node_of: dict[int, int] = {}
    read: set[int] = set()
    for node, (code, args, first, _) in enumerate(forwards(graph, graph.args)):
        case = graph.cases[code]
        if case.op == "select_n" and len(args) == 3 and args[0] in made:
            comparison, compared = made[args[0]]
            if comparison.op in ("lt", "le", "gt", "ge") and _floats(comparison.operands[0]) and _floats(case.results[0]):
                zeros = [_is_zero(made, value) for value in (args[1], args[2], compared[1])]
                if comparison.op == "le" and compared[0] == args[1] and zeros[1] and zeros[2] and args[2]:
                    forms[node] = "relu"
                    if args[0] not in read and compared[0] > 0:
                        behind[node_of[args[0]]] = node
                elif case.results[0].size >= LEAST:
                    forms[node] = "others kept" if zeros[1] else "kept" if zeros[0] else "by products"
        made[first], node_of[first] = (case, args), node
        read.update(args)
    return forms, behind


def _floats(type_: object) -> bool:
    return isinstance(type_, TensorType) and type_.dtype == "f32"


def _is_zero(made: Mapping[int, tuple[Case, Sequence[int]]], value: int) -> bool:
    while value in made and made[value][0].op == "broadcast_in_dim":
        value = made[value][1][0]
    if value not in made or made[value][0].op != "constant":
        return False
    return not np.any(literal_array(np, made[value][0].attrs.value))  # type: ignore[attr-defined]
