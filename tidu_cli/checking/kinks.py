"""Where a document is not smooth: kinks that an evaluation meets, and branches that checks do not try.

At kinks operands of a node tie, or sit on a boundary, and by some convention it has a derivative. Each operation says it of itself
(`kinks` and `singular` of its rules). The graphs in loops and branches are run step by step. Of integers checks draw 0 and 1, so
that a comparison with another number is decided by that.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from tidu_cli.errors import Remedy
from tidu_cli.frozen import Frozen, replace
from tidu_cli.graph.closed import closed_graphs, forwards
from tidu_cli.graph.graph import Case, Document, Graph, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import INTEGERS, TensorType
from tidu_cli.lax.arrays.dtypes import literal_array
from tidu_cli.rules import kinks as words
from tidu_cli.rules.kinks import Kink
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.runtime.memory import check_memory
from tidu_cli.runtime.plans.interpreter import Runnable
from tidu_cli.runtime.plans.program import compile_graph


class _Plan(Frozen, slots=False, eq=False):
    """A graph, the nodes of it that are looked at, and the program of its outputs and of the values that these nodes have."""

    graph: Graph
    nodes: Sequence[int]
    program: Runnable
    values: Sequence[int]


def kinks_at(graph: Graph, primitives: PrimitiveSet, inputs: Mapping[Key, Any]) -> list[dict[str, Any]]:
    """The kinks of a graph without references at this point, a row for each node and kink, in order.

    `inputs` are values of the declared types. A row has the "node" as messages name it, the first "step" of loops, and how many
    "times" it is met; how many "elements" are at the kink the first time, and the "index" of one; what holds there, "at"; and the
    derivatives there of "tidu", "jax", "pytorch" and "onnx". Raises EvaluationError where memory runs out.
    """
    looking = _Looking(primitives)
    looking.run(graph, [inputs.get(i.key) for i in graph.inputs], f"graph '{graph.name}', ", ())
    return list(looking.rows.values())


class _Looking:
    def __init__(self, primitives: PrimitiveSet) -> None:
        self.primitives = primitives
        self.rows: dict[tuple[str, int], dict[str, Any]] = {}
        self.kinks = cache(self._kinks)
        self.plan_of = cache(self._plan_of)
        self.has_some = cache(self._has_some)

    def run(self, graph: Graph, inputs: Sequence[Any], place: str, steps: tuple[int, ...]) -> list[Any]:
        """The outputs of a graph for these inputs. Notes the kinks met on the way."""
        plan = self.plan_of(_Same(graph))
        given = dict(zip([i.key for i in graph.inputs], inputs, strict=True))
        results = plan.program.run({i.key: given[i.key] for i in plan.program.inputs})
        values = dict(zip(plan.values, results[len(graph.outputs) :], strict=True))
        for node in plan.nodes:
            case, (operands, made) = graph.case(node), of_node(graph, node, values)
            name = f"{place}node {node} ({case.op})"
            with np.errstate(all="ignore"):
                for number, kink in enumerate(self.kinks(case)):
                    self.note((name, number), kink, kink.where(np, case.attrs, operands, made), steps)
            if (inner := self.primitives[case.op].evaluation.inner) is not None:
                self.step_through(case, inner, (operands, made), name, steps)
        return results[: len(graph.outputs)]

    def step_through(
        self, case: Case, inner: Any, values: tuple[Sequence[Any], Sequence[Any]], name: str, steps: tuple[int, ...]
    ) -> None:
        """Run the graphs of a node, one by one."""
        graphs, parts = closed_graphs(case.attrs), self.primitives[case.op].catalogue.parts

        def run(number: int, step: int | None, inputs: Sequence[Any]) -> list[Any]:
            which = parts(case.attrs)[number].name if parts else f"graph {number}"
            return self.run(graphs[number].graph, inputs, f"{name}, {which}, ", steps if step is None else (*steps, step))

        inner(case.attrs, *values, run)

    def note(self, key: tuple[str, int], kink: Kink, met: Any, steps: tuple[int, ...]) -> None:
        """Note what a kink says of values: a text, or a mask of elements."""
        text, _, convention = met.partition(": ") if isinstance(met, str) else (kink.at, "", "")
        places: Any = np.zeros((int(met != ""), 0)) if isinstance(met, str) else np.argwhere(met)
        if not len(places):
            return
        if key in self.rows:
            self.rows[key]["times"] += 1
            return
        told = kink.conventions
        self.rows[key] = {
            "node": key[0],
            "step": list(steps),
            "times": 1,
            "elements": len(places),
            "index": places[0].tolist(),
            "at": text,
            **({**told, "tidu": convention} if convention else told),
        }

    def _kinks(self, case: Case) -> Sequence[Kink]:
        """The kinks that a case can have: none of integers, which do not move."""
        rules = self.primitives[case.op].rules
        dtype = str(getattr(case.operands[0], "dtype", "")) if case.operands else ""
        if not dtype.startswith(("f", "bf", "c")):
            return ()
        if rules.kinks is not None:
            return tuple(rules.kinks(words))
        return (Kink(rules.singular, jax="", pytorch="", onnx=""),) if rules.singular else ()

    def _is_asked(self, case: Case) -> bool:
        return bool(self.kinks(case)) or any(self.has_some(_Same(closed.graph)) for closed in closed_graphs(case.attrs))

    def _has_some(self, graph: _Same) -> bool:
        return any(map(self._is_asked, (graph.it.cases[code] for code in set(graph.it.code))))

    def _plan_of(self, same: _Same) -> _Plan:
        graph = same.it
        asked = {code for code in set(graph.code) if self._is_asked(graph.cases[code])}
        nodes = [node for node in _needed(graph) if graph.code[node] in asked]
        values = around(graph, nodes)
        program = compile_graph(replace(graph, outputs=(*graph.outputs, *values.values())), self.primitives)
        check_memory(program, None)
        return _Plan(graph, nodes, program, list(values))


class _Same:
    """A graph, by itself and not by what is in it."""

    def __init__(self, it: Graph) -> None:
        self.it = it

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.it is other.it

    def __hash__(self) -> int:
        return id(self.it)


def around(graph: Graph, nodes: Iterable[int]) -> dict[int, Output]:
    """The values that nodes take and give, each as an output."""
    values = [value for node in nodes for value in (*graph.operands(node), *graph.results(node))]
    return {value: Output(Key(f"value{value}"), value, graph.type_of(value)) for value in values}


def of_node(graph: Graph, node: int, values: Mapping[int, Any]) -> tuple[list[Any], list[Any]]:
    """Of the values of `around` those that a node takes, and those that it gives."""
    return [values[value] for value in graph.operands(node)], [values[value] for value in graph.results(node)]


def _needed(graph: Graph) -> Iterator[int]:
    """The nodes that outputs depend on, in order."""
    wanted = {o.value for o in graph.outputs}
    needed = []
    for node in range(graph.n_nodes - 1, -1, -1):
        if not wanted.isdisjoint(graph.results(node)):
            needed.append(node)
            wanted.update(graph.operands(node))
    return reversed(needed)


def table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Kinks as lines of text: a heading, and a line for each."""
    lines = [("where", "kink", "tidu", "JAX", "PyTorch", "ONNX")]
    for row in rows:
        place = f" {row['index']}" if row["index"] else ""
        steps = f" in step {', '.join(map(str, row['step']))}" if row["step"] else ""
        more = [f"{row['elements']} elements"] * (row["elements"] > 1) + [f"{row['times']} times"] * (row["times"] > 1)
        where = f"{row['node']}{place}{steps}" + (f" ({', '.join(more)})" if more else "")
        lines.append((where, row["at"], *(row[name] or "-" for name in ("tidu", "jax", "pytorch", "onnx"))))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines]


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
