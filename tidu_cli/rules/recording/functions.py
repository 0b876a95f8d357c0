"""Closed graphs as functions of Python: a statement a node, compiled once, so that a loop over it costs what one by hand does.

Names are slots: that of a value which was read for the last time serves the next. What depends on no input is computed when the
function is made. Sums, products and the like of scalars, whose kernels are Python's operators, are written as such.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, cast

from tidu_cli.graph.graph import Graph
from tidu_cli.graph.walk import backwards, forwards
from tidu_cli.rules.contract import Kernel, Types
from tidu_cli.rules.vocabulary import PrimitiveSet

_SIGNS = {operator.add: "+", operator.sub: "-", operator.mul: "*", operator.truediv: "/"}

Lines = list[str]


class Writer:
    """Writes graphs as statements of one function. `known` is what the names in them stand for, beside its variables."""

    def __init__(self, np: Any, primitives: PrimitiveSet) -> None:
        self.np = np
        self.primitives = primitives
        self.known: dict[str, Any] = {"np": np}
        self._n_variables = 0

    def variable(self) -> str:
        """A new variable."""
        self._n_variables += 1
        return f"v{self._n_variables}"

    def constant(self, value: Any) -> str:
        """A name for a value."""
        name = f"k{len(self.known)}"
        self.known[name] = value
        return name

    def statements(self, graph: Graph, inputs: Sequence[str]) -> tuple[Lines, list[str]]:
        """The statements that compute a closed graph of inputs of these names, which they leave alone; and its outputs' names."""
        names: dict[int, str] = dict(enumerate(inputs))
        results = [o.value for o in graph.outputs if o.value is not None]
        last = _last_uses(graph, results)
        kernels: dict[int, tuple[Kernel, str]] = {}
        closed: dict[int, Any] = {}
        free: list[str] = []
        lines: Lines = []
        for node, (code, args, first, end) in enumerate(forwards(graph, graph.args)):
            if code not in kernels:
                case = graph.cases[code]
                made = self.primitives[case.op].evaluation.kernel(
                    self.np, case.attrs, cast(Types, case.operands), cast(Types, case.results)
                )
                kernels[code] = made, self.constant(made) if made not in _SIGNS else _SIGNS[made]
            kernel, name = kernels[code]
            made_here = range(first, end)
            if not any(v in last for v in made_here):
                continue
            if all(a in closed for a in args):
                found = kernel(*[closed[a] for a in args])
                closed.update(zip(made_here, found if len(made_here) > 1 else (found,), strict=True))
                continue
            for a in args:
                if a not in names:
                    names[a] = self.constant(_kept(self.np, closed[a]))
            operands = [names[a] for a in args]
            free += [names[a] for a in dict.fromkeys(args) if last[a] == node and a >= len(inputs) and a not in closed]
            for value in made_here:
                names[value] = free.pop() if free else self.variable()
            text = f" {name} ".join(operands) if kernel in _SIGNS else f"{name}({', '.join(operands)})"
            lines.append(f"{', '.join(names[v] for v in made_here)} = {text}")
            free += [names[v] for v in made_here if v not in last]
        for value in results:
            if value not in names:
                names[value] = self.constant(_kept(self.np, closed[value]))
        return lines, [names[v] for v in results]

    def function(self, parameters: Sequence[str], lines: Lines) -> Kernel:
        """The function of these parameters and statements."""
        head = f"def run({', '.join(parameters)}):"
        exec(compile("\n ".join([head, *lines]), "<graph>", "exec"), self.known)  # of names and numbers that are all made here
        return cast(Kernel, self.known.pop("run"))


def kernel(np: Any, graph: Graph, primitives: PrimitiveSet) -> Kernel:
    """A function of the arrays of a closed graph's inputs that gives its output, or a tuple of several, but for zeros."""
    writer = Writer(np, primitives)
    inputs = [writer.variable() for _ in graph.inputs]
    lines, results = writer.statements(graph, inputs)
    return writer.function(inputs, [*lines, f"return {returned(results)}"])


def returned(names: Sequence[str]) -> str:
    """What kernels give: one result, or a tuple of several."""
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def _last_uses(graph: Graph, results: Sequence[int]) -> dict[int, int]:
    """Of each value that a result needs, the last node that reads it; of results the number of nodes."""
    last = dict.fromkeys(results, graph.n_nodes)
    node = graph.n_nodes
    for _, args, first, end in backwards(graph, graph.args):
        node -= 1
        if any(v in last for v in range(first, end)):
            for a in args:
                last.setdefault(a, node)
    return last


def _kept(np: Any, value: Any) -> Any:
    """What is computed once: an array as a view, which is copied where it is a result."""
    return value.view() if isinstance(value, np.ndarray) else value
