"""Branches that checks do not try: of integers they draw 0 and 1, so that a comparison with another number is decided by that."""

from __future__ import annotations

import operator
from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any

from tidu_cli.errors import Remedy
from tidu_cli.graph.closed import forwards
from tidu_cli.graph.graph import Document, Graph
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import INTEGERS, TensorType

_COMPARED: Mapping[str, tuple[str, str, Callable[[Any, Any], bool]]] = {
    "eq": ("==", "!=", operator.eq),
    "ne": ("!=", "==", operator.ne),
    "lt": ("<", ">=", operator.lt),
    "le": ("<=", ">", operator.le),
    "gt": (">", "<=", operator.gt),
    "ge": (">=", "<", operator.ge),
}
"""By operations: how they are written, how their opposite is, and what they compute."""


def untried_branches(document: Document, given: Container[Key]) -> Iterator[str]:
    """What to say of each comparison of an input with a number that chooses a branch, where no drawn integer chooses the other."""
    for graph in document.graphs:
        drawn = {k: str(i.key) for k, i in enumerate(graph.inputs) if i.key not in given and _is_integer(i.type)}
        if drawn and any(case.op == "cond" for case in graph.cases.cases):
            yield from _untried(graph, drawn)


def _is_integer(type_: object) -> bool:
    return isinstance(type_, TensorType) and type_.dtype in INTEGERS and all(n == 1 for n in type_.shape)


def _untried(graph: Graph, drawn: dict[int, str]) -> Iterator[str]:
    numbers, told = dict[int, int](), dict[int, str]()
    by_value: list[dict[int, Any]] = [drawn, numbers, told]
    for code, args, first, _ in forwards(graph, graph.args):
        case: Any = graph.cases[code]
        if case.op == "constant" and _is_integer(case.results[0]):
            import numpy as np

            from tidu_cli.lax.arrays.structural import literal_array

            numbers[first] = int(literal_array(np, case.attrs.value).item())
        elif case.op in ("convert_element_type", "reshape", "squeeze"):
            for known in by_value:
                if args[0] in known:
                    known[first] = known[args[0]]
        elif case.op in _COMPARED and args[0] in drawn and args[1] in numbers:
            text = _said(drawn[args[0]], case.op, numbers[args[1]])
            if text:
                told[first] = text
        elif case.op == "cond" and args[0] in told:
            yield told[args[0]]


def _said(name: str, op: str, number: int) -> str:
    """Empty where 0 and 1 choose different branches, or no number chooses another one."""
    sign, opposite, holds = _COMPARED[op]
    usual = holds(0, number)
    other = next((n for n in (number, number + 1, number - 1) if holds(n, number) != usual), None)
    if holds(1, number) != usual or other is None:
        return ""
    branch = f"{name} {opposite if usual else sign} {number}"
    way = Remedy("inputs", python="inputs")
    return f"{name} is drawn as 0 or 1, so that the branch of {branch} is not tried; give {name}, such as {other}, by {way}"
