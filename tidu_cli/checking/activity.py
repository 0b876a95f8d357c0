"""Through which nodes of a graph derivatives go: where a value moves with the inputs, but what is computed of it does not.

Nodes that were read from another format are told by what their meta says of them there.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from tidu_cli.errors import TiduError
from tidu_cli.frozen import Frozen
from tidu_cli.graph.graph import Case, CaseTable, Graph
from tidu_cli.graph.types import TensorType, leaves
from tidu_cli.rules.recording.templates import jvp_template
from tidu_cli.rules.vocabulary import PrimitiveSet


class Activity(Frozen, slots=False):
    """Operators at which derivatives are zero from there on, and those without a rule, with how many nodes; why those have none.

    `moving` says whether some output has a derivative by some input of floats.
    """

    ending: Counter[str]
    lacking: Counter[str]
    reasons: tuple[str, ...]
    moving: bool


def activity(graph: Graph, primitives: PrimitiveSet) -> Activity:
    """Walk a graph whose inputs of floats all move."""
    table, known = CaseTable(), dict[tuple[int, tuple[bool, ...]], tuple[bool, ...] | TiduError]()
    ending, lacking, reasons = Counter[str](), Counter[str](), dict[str, None]()
    active = [any(t.inexact for _, t in leaves(i.type)) for i in graph.inputs]
    reached = list(active)  # and values that end within an operator, which may be of several nodes
    for number, (case, args) in enumerate(graph.nodes()):
        mask = tuple(active[a] for a in args)
        key = graph.code[number], mask
        if key not in known:
            known[key] = _moving(case, mask, table, primitives) if any(mask) else (False,) * len(case.results)
        found = known[key]
        if isinstance(found, TiduError):
            lacking[_operator(graph, number) or case.op] += 1
            reasons[str(found)] = None
            found = (False,) * len(case.results)
        touched, name = any(reached[a] for a in args), _operator(graph, number)
        if name and touched and not any(found) and not all(_is_bool(t) for t in case.results):
            ending[name] += 1
        active += found
        reached += [f or (touched and not name) for f in found]
    moving = any(o.value is not None and active[o.value] for o in graph.outputs)
    return Activity(ending, lacking, tuple(reasons), moving)


def _moving(case: Case, mask: tuple[bool, ...], table: CaseTable, primitives: PrimitiveSet) -> tuple[bool, ...] | TiduError:
    """Of each result of a case whether it moves with the operands of the mask; or what its rule lacks."""
    try:
        template = jvp_template(primitives, table, table.intern(case), mask)
    except TiduError as error:
        return error
    return tuple(slot is not None and t.inexact for slot, t in zip(template.results, case.results, strict=True))


def _operator(graph: Graph, number: int) -> str:
    """The operator that a node is of where it was read from, as its meta says; empty if it does not."""
    meta: Any = graph.node_meta.get(number)
    told = meta.get("onnx") if isinstance(meta, dict) else None
    found = told.get("op") if isinstance(told, dict) else None
    return found if isinstance(found, str) else ""


def _is_bool(type_: Any) -> bool:
    return isinstance(type_, TensorType) and type_.dtype == "bool"
